//! Letters that a terminal obeys, in texts that are somebody else's.

pub(crate) use evenkeel_op::obeyed::is_obeyed;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns a JSON document that means the same, in which such letters are written as numbers.
pub(crate) fn numbered(json: &str) -> Cow<'_, str> {
    // Those below are escaped already, and line breaks are the document's own.
    let is_raw = |letter: char| letter >= '\u{7f}' && is_obeyed(letter);
    if !json.contains(is_raw) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len() + 16);
    for letter in json.chars() {
        match is_raw(letter) {
            true => {
                let _ = write!(safe, "\\u{:04x}", u32::from(letter));
            }
            false => safe.push(letter),
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_means_the_same_and_turns_nothing() {
        let text = "SELECT 'a\u{202e}b\u{9b}31m\u{7f}' /* \u{1F600} ü */\n";
        let json = serde_json::to_string_pretty(&[text]).unwrap();
        let safe = numbered(&json);
        assert!(!safe.contains(['\u{202e}', '\u{9b}', '\u{7f}']), "{safe}");
        let read: Vec<String> = serde_json::from_str(&safe).unwrap();
        assert_eq!(read, [text]);
        assert_eq!(numbered("[\n  \"ü\"\n]"), "[\n  \"ü\"\n]");
    }
}
