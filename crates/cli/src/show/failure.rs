//! Failures as people and as programs read them.

use evenkeel_op::Error;
use serde::Serialize;

/// A failure as a JSON document.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    schema: &'static str,
    kind: &'static str,
    message: String,
    hints: Vec<String>,
    exit_code: u8,
}

impl Document {
    pub(super) fn of(error: &Error) -> Self {
        Self {
            schema: "evenkeel/error/1",
            kind: error.kind().name(),
            message: error.chain(),
            hints: error.hints().into_iter().map(str::to_owned).collect(),
            exit_code: error.kind().exit_code(),
        }
    }
}

/// Returns a failure as lines for standard error.
pub(super) fn text(error: &Error) -> String {
    let mut text = format!("evenkeel: {}\n", without_controls(&error.chain()));
    for hint in error.hints() {
        text.push_str(&format!("hint: {}\n", without_controls(hint)));
    }
    text
}

/// Returns a text, which may have words of a server or a file in it, without what could drive a terminal.
pub(super) fn without_controls(text: &str) -> String {
    let is_harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    match text.chars().all(is_harmless) {
        true => text.to_owned(),
        false => text
            .chars()
            .map(|c| if is_harmless(c) { c } else { '\u{fffd}' })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::ErrorKind;

    fn busy() -> Error {
        Error::new(ErrorKind::Busy, "the repository is locked")
            .because(std::io::Error::other("pid 7"))
            .hint("wait for it")
    }

    #[test]
    fn words_of_a_server_drive_no_terminal() {
        let error = Error::failed("Access \u{1b}]0;owned\u{7} denied\nfor you").hint("a\u{9b}2Jb");
        let shown = text(&error);
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{shown:?}");
        assert!(shown.contains("denied\nfor you"), "{shown:?}");
    }

    #[test]
    fn people_read_message_cause_and_hint() {
        let seen = "evenkeel: the repository is locked: pid 7\nhint: wait for it\n";
        assert_eq!(text(&busy()), seen);
    }

    #[test]
    fn programs_read_kind_and_code() {
        let json = serde_json::to_value(Document::of(&busy())).unwrap();
        let expected = serde_json::json!({
            "schema": "evenkeel/error/1", "kind": "busy", "exit_code": 11,
            "message": "the repository is locked: pid 7", "hints": ["wait for it"],
        });
        assert_eq!(json, expected);
    }
}
