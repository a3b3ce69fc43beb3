//! Numbers in narrow columns.

/// Returns a rate with as many digits as matter: `0.4`, `17`, `254149`; `-` for one that is not known.
#[must_use]
pub fn number(rate: Option<f64>) -> String {
    match rate {
        None => "-".to_owned(),
        Some(rate) if rate > 0.0 && rate < 9.95 => format!("{rate:.1}"),
        Some(rate) => format!("{rate:.0}"),
    }
}
