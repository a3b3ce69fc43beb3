//! Names of binary log files: a base and a number, `binlog.000042`.

/// Returns the number of a file, by which the files of one server are in order.
#[must_use]
pub fn number_of(file: &str) -> Option<u64> {
    let (base, number) = file.rsplit_once('.')?;
    let digits = !base.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| number.parse().ok())?
}

/// Returns the name of the file after one.
#[must_use]
pub fn successor(file: &str) -> Option<String> {
    let next = number_of(file)?.checked_add(1)?;
    let base = file.rsplit_once('.')?.0;
    Some(format!("{base}.{next:06}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_each_other() {
        assert_eq!(number_of("mysql-bin.000042"), Some(42));
        assert_eq!(successor("db.1.000999").as_deref(), Some("db.1.001000"));
        assert_eq!(successor("b.999999").as_deref(), Some("b.1000000"));
        for none in ["binlog", "binlog.", ".000001", "binlog.index", "b.0x1"] {
            assert_eq!(number_of(none), None, "{none}");
        }
    }
}
