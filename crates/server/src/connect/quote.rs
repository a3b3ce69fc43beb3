//! Texts and names as SQL has them.

/// Returns `text` as an SQL string literal, for sessions opened by [`super::Session::open`].
#[must_use]
pub fn quote(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('\'');
    for character in text.chars() {
        match character {
            '\'' => literal.push_str("''"),
            '\\' => literal.push_str("\\\\"),
            '\0' => literal.push_str("\\0"),
            other => literal.push(other),
        }
    }
    literal.push('\'');
    literal
}

/// Returns `name` as an SQL identifier in backticks.
#[must_use]
pub fn quote_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_names_are_quoted() {
        assert_eq!(quote("it's \\"), "'it''s \\\\'");
        assert_eq!(quote_name("a`b"), "`a``b`");
    }
}
