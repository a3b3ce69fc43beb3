//! sysbench's tables.

use super::Shape;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::Session;
use fastrand::Rng;

/// Statements that make table `number`; its index comes when its rows are there.
pub(super) fn create(number: u32, engine: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS sbtest{number} (id INT NOT NULL AUTO_INCREMENT, \
         k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', \
         PRIMARY KEY (id)) ENGINE = {engine} DEFAULT CHARACTER SET latin1"
    )
}

/// Adds table `number`'s index unless it is there.
pub(super) fn index(session: &mut Session, number: u32) -> Result<()> {
    let there = session.rows(&format!(
        "SHOW INDEX FROM sbtest{number} WHERE Key_name = 'k_{number}'"
    ))?;
    match there.is_empty() {
        true => session.run(&format!("CREATE INDEX k_{number} ON sbtest{number} (k)")),
        false => Ok(()),
    }
}

/// Looks for the tables of the session's schema.
///
/// Errors: `Refused` when the first is missing or empty.
pub(super) fn find(session: &mut Session, tables: Option<u32>, size: Option<u32>) -> Result<Shape> {
    let missing = |what: String| {
        Err(Error::refused(what).hint(
            "fill them: evenkeel bench oltp load; or name the schema of an earlier sysbench run with --database",
        ))
    };
    let mut found = 0;
    let mut least: Option<u32> = None;
    while tables.is_none_or(|wanted| found < wanted) {
        let number = found + 1;
        let there = session.rows(&format!("SHOW TABLES LIKE 'sbtest{number}'"))?;
        if there.is_empty() {
            break;
        }
        let rows = session.value(&format!("SELECT MAX(id) FROM sbtest{number}"))?;
        let rows: u32 = rows.and_then(|text| text.parse().ok()).unwrap_or(0);
        if rows == 0 {
            return missing(format!("table sbtest{number} has no rows"));
        }
        least = Some(least.map_or(rows, |least| least.min(rows)));
        found = number;
    }
    match (least, tables) {
        (_, Some(wanted)) if wanted > found => {
            missing(format!("there is no table sbtest{}", found + 1))
        }
        (None, _) => missing("there is no table sbtest1".to_owned()),
        (Some(least), _) => Ok(Shape {
            tables: found,
            table_size: size.unwrap_or(least),
        }),
    }
}

/// Writes groups of eleven digits with dashes between them, as sysbench fills its strings: ten groups for
/// `c`, five for `pad`.
pub(super) fn digits(into: &mut Vec<u8>, groups: usize, random: &mut Rng) {
    for group in 0..groups {
        if group > 0 {
            into.push(b'-');
        }
        let mut number = random.u64(0..100_000_000_000);
        let mut text = [b'0'; 11];
        for digit in text.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        into.extend_from_slice(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_digits_in_groups() {
        let mut text = Vec::new();
        digits(&mut text, 10, &mut Rng::with_seed(2));
        assert_eq!(text.len(), 119);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.split('-').count(), 10);
        assert!(text.split('-').all(|group| group.len() == 11));
    }
}
