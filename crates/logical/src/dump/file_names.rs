//! What files of a dump are called.

/// What a directory holds from the first moment until its manifest is there. Its holder's lock is
/// on it.
pub(super) const MARK: &str = "UNFINISHED";
pub(super) const MARK_TEXT: &str = "evenkeel: a dump is being written here, or was interrupted.\n\
    Without manifest.json nothing in this directory may be relied on.\n";
/// Longest piece of a name that is kept as it is, in bytes: file names end at 255.
const LONGEST_NAME: usize = 150;

/// Returns a name of the server as part of a file's: letters, digits, `_`, `-` and `$` as they are,
/// other bytes as `%XX`. A long one is cut and made unique by a hash.
pub(super) fn file_name(name: &str) -> String {
    let mut safe = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'$' => {
                safe.push(char::from(byte));
            }
            other => safe.push_str(&format!("%{other:02X}")),
        }
    }
    if safe.len() > LONGEST_NAME {
        let hash = blake3::hash(name.as_bytes()).to_hex();
        safe.truncate(LONGEST_NAME - 20);
        safe.push('~');
        safe.push_str(&hash[..16]);
    }
    safe
}

/// Returns the beginning of the names of a table's files.
pub(super) fn stem(schema: &str, table: &str) -> String {
    format!("{}/{}", file_name(schema), file_name(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_file_names() {
        assert_eq!(file_name("order_items-2$"), "order_items-2$");
        assert_eq!(file_name("a/b.c d"), "a%2Fb%2Ec%20d");
        assert_eq!(file_name(".."), "%2E%2E");
        let (one, two) = ("ü".repeat(64), format!("{}x", "ü".repeat(63)));
        assert!(file_name(&one).len() <= LONGEST_NAME);
        assert_ne!(file_name(&one), file_name(&two));
    }
}
