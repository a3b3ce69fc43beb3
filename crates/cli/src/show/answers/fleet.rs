//! Answer of `fleet`.

use super::Answer;
use crate::show::{Align, TextTable};
use evenkeel_op::{exit, units};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// What became of every server.
#[derive(Debug, Serialize)]
pub struct FleetAnswer {
    /// In the order of the list.
    pub servers: Vec<Member>,
    /// How many ended with exit code 0.
    pub done: usize,
    /// How many did not, or were not begun.
    pub failed: usize,
}

/// What became of one server.
#[derive(Debug, Clone, Serialize)]
pub struct Member {
    /// Its name in the list.
    pub name: String,
    /// The exit code of its run, 128 + N when signal N killed it; null when it was not begun.
    pub exit_code: Option<u8>,
    /// How long it took; null when it was not begun.
    pub seconds: Option<f64>,
    /// What it answered, or its error: the document that the command prints by itself.
    pub answer: Value,
}

impl FleetAnswer {
    /// Counts.
    #[must_use]
    pub fn new(servers: Vec<Member>) -> Self {
        let done = servers.iter().filter(|one| one.is_done()).count();
        Self {
            done,
            failed: servers.len() - done,
            servers,
        }
    }

    /// Returns the exit code that says how many are done.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match (self.done, self.failed) {
            (_, 0) => exit::DONE,
            (0, _) => exit::FAILED,
            _ => exit::PARTIAL,
        }
    }
}

impl Member {
    fn is_done(&self) -> bool {
        self.exit_code == Some(exit::DONE)
    }

    /// Says in half a line what became of it.
    #[must_use]
    pub fn outcome(&self) -> String {
        let Some(code) = self.exit_code else {
            return "not begun".to_owned();
        };
        if let Some(message) = self.answer["message"].as_str() {
            return message.to_owned();
        }
        match self.in_a_line() {
            Some(line) => line,
            None if self.answer.is_null() && code == exit::DONE => "done".to_owned(),
            None if self.answer.is_null() => "ended without output".to_owned(),
            None if code == exit::DONE => "done, see its output".to_owned(),
            None => "see its output".to_owned(),
        }
    }

    /// What a backup made, if this is the answer of one: the rest of it is not needed.
    fn in_a_line(&self) -> Option<String> {
        let generation = self.answer["generation"].as_u64()?;
        let stored = units::bytes(self.answer["bytes_stored"].as_u64()?);
        let kind = self.answer["kind"].as_str().unwrap_or_default();
        Some(format!("generation {generation} ({kind}), {stored} stored"))
    }

    /// The answer as people read it, where no line says it all.
    fn in_full(&self) -> Option<String> {
        let text = self.answer["as_text"].as_str()?;
        let lines = text.lines().map(|line| format!("  {line}\n"));
        let is_reported = self.in_a_line().is_some();
        (!is_reported).then(|| format!("{}:\n{}\n", self.name, lines.collect::<String>()))
    }
}

impl Answer for FleetAnswer {
    const SCHEMA: &'static str = "evenkeel/fleet/1";

    fn text(&self) -> String {
        let mut table = TextTable::new(&[
            ("server", Align::Left),
            ("exit code", Align::Right),
            ("time", Align::Right),
            ("", Align::Left),
        ]);
        for one in &self.servers {
            table.row([
                one.name.clone(),
                one.exit_code
                    .map_or("-".to_owned(), |code| code.to_string()),
                one.seconds.map_or("-".to_owned(), |seconds| {
                    units::duration(Duration::from_secs_f64(seconds))
                }),
                one.outcome(),
            ]);
        }
        let answers: String = self.servers.iter().filter_map(Member::in_full).collect();
        let (done, failed) = (self.done, self.failed);
        format!("{answers}{}{done} done, {failed} not\n", table.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(exit_code: Option<u8>, answer: Value) -> Member {
        Member {
            name: "shop".into(),
            exit_code,
            seconds: exit_code.map(|_| 1.0),
            answer,
        }
    }

    #[test]
    fn the_exit_code_says_how_many_are_done() {
        for (codes, expected) in [
            (&[Some(0), Some(0)][..], exit::DONE),
            (&[Some(0), Some(3)], exit::PARTIAL),
            (&[Some(0), None], exit::PARTIAL),
            (&[Some(13), Some(137)], exit::FAILED),
        ] {
            let servers = codes
                .iter()
                .map(|code| member(*code, Value::Null))
                .collect();
            assert_eq!(FleetAnswer::new(servers).exit_code(), expected, "{codes:?}");
        }
    }

    #[test]
    fn each_server_is_reported_of_in_a_line() {
        let made = serde_json::json!({"generation": 4, "kind": "full", "bytes_stored": 2048});
        assert_eq!(
            member(Some(0), made).outcome(),
            "generation 4 (full), 2.0 KiB stored"
        );
        let failed = serde_json::json!({"message": "down"});
        assert_eq!(member(Some(13), failed).outcome(), "down");
        assert_eq!(
            member(Some(137), Value::Null).outcome(),
            "ended without output"
        );
        let not_begun = member(None, Value::Null);
        assert_eq!(not_begun.outcome(), "not begun");
        assert!(serde_json::to_value(&not_begun).unwrap()["seconds"].is_null());
        let text = FleetAnswer::new(vec![not_begun]).text();
        let row = text.lines().nth(1).unwrap_or_default();
        assert_eq!(row.matches(" - ").count(), 2, "{text}");
    }

    #[test]
    fn what_no_line_says_is_shown_in_full() {
        let made = serde_json::json!({
            "generation": 4, "kind": "full", "bytes_stored": 2048, "as_text": "generation 4 …",
        });
        let looked = serde_json::json!({"ready": false, "as_text": "server  here\nlock  none\n"});
        let servers = vec![member(Some(0), made), member(Some(4), looked)];
        let text = FleetAnswer::new(servers).text();
        assert!(
            text.starts_with("shop:\n  server  here\n  lock  none\n\nserver "),
            "{text}"
        );
        assert!(!text.contains("generation 4 …"), "{text}");
    }
}
