//! The members of an ENUM or SET, as the server prints its type.

/// Returns whether one of the members is the empty text, in a type such as `enum('a','it''s','')`.
pub(crate) fn has_empty_member(column_type: &str) -> bool {
    let mut bytes = column_type.bytes().peekable();
    let mut length: Option<usize> = None;
    while let Some(byte) = bytes.next() {
        length = match (length, byte) {
            (None, b'\'') => Some(0),
            (None, _) => None,
            // A quote is doubled within a member; alone it ends one.
            (Some(length), b'\'') if bytes.next_if_eq(&b'\'').is_some() => Some(length + 1),
            (Some(0), b'\'') => return true,
            (Some(_), b'\'') => None,
            (Some(length), b'\\') => {
                bytes.next();
                Some(length + 1)
            }
            (Some(length), _) => Some(length + 1),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_members_are_found_among_quotes() {
        for with in [
            "enum('')",
            "enum('a','')",
            "set('','a')",
            "enum('a','','b')",
            "enum('''','')",
        ] {
            assert!(has_empty_member(with), "{with}");
        }
        for without in [
            "enum('a')",
            "set('a','b')",
            "enum('''')",
            "enum('''''','a')",
            "enum(',','b')",
            "enum(' ')",
            "enum('\\\\','b')",
            "enum('a'',''b')",
            "int(11)",
        ] {
            assert!(!has_empty_member(without), "{without}");
        }
    }
}
