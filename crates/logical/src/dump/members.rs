//! The members of an ENUM or SET, as the server prints its type.

/// Returns whether one of the members is the empty text, in a type such as `enum('a','it''s','')`.
pub(crate) fn has_empty_member(column_type: &str) -> bool {
    members(column_type).iter().any(String::is_empty)
}

/// Returns the members in order; what a backslash stands for is left as it is printed.
pub(super) fn members(column_type: &str) -> Vec<String> {
    let mut letters = column_type.chars().peekable();
    let (mut all, mut member) = (Vec::new(), None::<String>);
    while let Some(letter) = letters.next() {
        match (&mut member, letter) {
            (None, '\'') => member = Some(String::new()),
            (None, _) => {}
            // A quote is doubled within a member; alone it ends one.
            (Some(text), '\'') if letters.next_if_eq(&'\'').is_some() => text.push('\''),
            (Some(_), '\'') => all.extend(member.take()),
            (Some(text), '\\') => {
                text.push('\\');
                text.extend(letters.next());
            }
            (Some(text), other) => text.push(other),
        }
    }
    all
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
