//! Why a server is not up.

use evenkeel_op::obeyed::is_obeyed;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Of a reason. It is an environment variable of the action, and part of each answer.
const LETTERS: usize = 500;

/// Of a server: more of them tell nobody more.
const REASONS: usize = 20;

/// What is wrong, in one word. The words are a contract: of JSON, of HAProxy's log, of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Not probed often enough yet.
    Starting,
    /// Nothing listens there, or what listens hangs up.
    Refused,
    /// No answer in time, not even to a login or to the simplest statement: a frozen server or host.
    Hung,
    /// One statement is not answered in time, but a new session is.
    Stuck,
    /// No connection is free.
    Connections,
    /// The server does not accept the account or lacks what a check needs.
    Login,
    /// It is writable and should not be, or the other way round.
    Role,
    /// Replication does not run.
    Replication,
    /// Replication is too far behind, or nobody knows how far.
    Lag,
    /// Too little space is free.
    Disk,
    /// The node is not a synced member of the primary component.
    Galera,
    /// A table cannot be read.
    Unreadable,
    /// A row cannot be written.
    Unwritable,
    /// The operator's statement failed.
    Query,
    /// No probe has ended for too long: the prober is stuck.
    Stalled,
    /// It answers again, but failed a short while ago more than once.
    Held,
    /// It failed so often that only a person declares it up again.
    Flapping,
    /// A person takes it out of use.
    Order,
}

impl Cause {
    /// Every cause, for metrics.
    pub const ALL: [Self; 18] = [
        Self::Starting,
        Self::Refused,
        Self::Hung,
        Self::Stuck,
        Self::Connections,
        Self::Login,
        Self::Role,
        Self::Replication,
        Self::Lag,
        Self::Disk,
        Self::Galera,
        Self::Unreadable,
        Self::Unwritable,
        Self::Query,
        Self::Stalled,
        Self::Held,
        Self::Flapping,
        Self::Order,
    ];

    /// Returns the word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Refused => "refused",
            Self::Hung => "hung",
            Self::Stuck => "stuck",
            Self::Connections => "connections",
            Self::Login => "login",
            Self::Role => "role",
            Self::Replication => "replication",
            Self::Lag => "lag",
            Self::Disk => "disk",
            Self::Galera => "galera",
            Self::Unreadable => "unreadable",
            Self::Unwritable => "unwritable",
            Self::Query => "query",
            Self::Stalled => "stalled",
            Self::Held => "held",
            Self::Flapping => "flapping",
            Self::Order => "order",
        }
    }
}

/// Why a server is not up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// In one word.
    pub cause: Cause,
    /// In a sentence.
    pub text: String,
}

impl Reason {
    /// Makes a reason. A server's words are its own: no letter of them drives a terminal, and there are not many.
    pub fn new(cause: Cause, text: impl AsRef<str>) -> Self {
        let mut letters = text.as_ref().chars().map(plain_letter);
        let mut text: String = letters.by_ref().take(LETTERS).collect();
        if letters.next().is_some() {
            text.push('…');
        }
        Self { cause, text }
    }
}

/// Returns the first reasons, and how many more there are.
#[must_use]
pub fn few(mut reasons: Vec<Reason>) -> Vec<Reason> {
    let more = reasons.len().saturating_sub(REASONS);
    if let Some(cause) = reasons.get(REASONS).map(|reason| reason.cause) {
        reasons.truncate(REASONS);
        reasons.push(Reason::new(cause, format!("and {more} more reasons")));
    }
    reasons
}

/// Returns a text of somebody else's without letters that drive a terminal.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars().map(plain_letter).collect()
}

fn plain_letter(letter: char) -> char {
    if is_obeyed(letter) { ' ' } else { letter }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.cause.word(), self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_words_are_few_and_plain() {
        let reason = Reason::new(
            Cause::Query,
            format!("a\u{1b}]0;b\u{9b}{}", "x".repeat(1 << 20)),
        );
        assert!(reason.text.starts_with("a ]0;b xxx"), "{}", reason.text);
        assert_eq!(reason.text.chars().count(), LETTERS + 1);
    }

    #[test]
    fn words_are_those_of_json_and_none_is_left_out() {
        for cause in Cause::ALL {
            let json = serde_json::to_string(&cause).unwrap();
            assert_eq!(json, format!("\"{}\"", cause.word()));
        }
        let words: std::collections::BTreeSet<_> = Cause::ALL.map(Cause::word).into();
        assert_eq!(words.len(), Cause::ALL.len());
    }
}
