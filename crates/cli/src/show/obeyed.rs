//! Letters that a terminal obeys, in texts that are somebody else's.

/// Returns whether a letter does something else than being seen: control characters, and those that turn the
/// direction of the letters beside them.
#[must_use]
pub(crate) fn is_obeyed(letter: char) -> bool {
    let turns = matches!(
        letter,
        '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    );
    letter.is_control() || turns
}
