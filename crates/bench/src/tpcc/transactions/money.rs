//! Money, as the tables have it and as it is counted with.

/// Money, in cents, from a DECIMAL's text.
pub(super) fn cents(text: &str) -> i64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, "00"));
    let negative = whole.starts_with('-');
    let digits: String = whole
        .trim_start_matches('-')
        .chars()
        .chain(part.chars().chain("00".chars()).take(2))
        .collect();
    let value: i64 = digits.parse().unwrap_or(0);
    if negative { -value } else { value }
}

/// Cents as a DECIMAL's text.
pub(super) fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    let cents = cents.unsigned_abs();
    format!("{sign}{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_goes_to_cents_and_back() {
        for (text, expected) in [
            ("0.05", 5),
            ("-0.05", -5),
            ("123.40", 12340),
            ("-10.00", -1000),
        ] {
            assert_eq!(cents(text), expected, "{text}");
            assert_eq!(money(expected), text);
        }
        assert_eq!((cents("7"), cents("7.1")), (700, 710));
    }
}
