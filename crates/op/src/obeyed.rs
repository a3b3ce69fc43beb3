//! Letters that a terminal or a browser obeys, in texts that are somebody else's.

/// Returns whether a letter does something else than being seen: control characters, and those that turn the
/// direction of the letters beside them.
#[must_use]
pub fn is_obeyed(letter: char) -> bool {
    letter.is_control() || turns(letter)
}

/// Returns whether a letter turns the direction of the letters beside it.
#[must_use]
pub fn turns(letter: char) -> bool {
    matches!(
        letter,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    )
}
