//! Global variables that only one variant has.

use evenkeel_op::{Error, Result};
use evenkeel_server::connect::{Session, quote};

/// A variable, and the value that it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    name: String,
    value: String,
}

impl Setting {
    /// Reads `VARIABLE=VALUE`.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let is_name = |name: &str| {
            let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
            !name.is_empty() && name.chars().all(is_letter)
        };
        match text.split_once('=') {
            Some((name, value)) if is_name(name.trim()) => Ok(Self {
                // Option files allow dashes.
                name: name.trim().replace('-', "_"),
                value: value.trim().to_owned(),
            }),
            _ => Err(
                Error::usage(format!("--set {text} names no variable and value"))
                    .hint("write --set innodb_flush_log_at_trx_commit=2"),
            ),
        }
    }

    /// Writes it as typed.
    pub(super) fn shown(&self) -> String {
        format!("{} = {}", self.name, self.value)
    }

    /// Checks that it can be set while the server runs.
    pub(super) fn check(&self, session: &mut Session) -> Result<()> {
        let name = &self.name;
        self.now(session)?;
        session
            .run(&format!("SET GLOBAL {name} = @@GLOBAL.{name}"))
            .map_err(|error| {
                error.hint(format!(
                    "if {name} can only be set at the start, use a second server that has it in its option file: --against"
                ))
            })
    }

    /// Sets it, and returns what it was.
    pub(super) fn set(&self, session: &mut Session) -> Result<Self> {
        let before = self.now(session)?;
        let (name, value) = (&self.name, literal(&self.value));
        session
            .run(&format!("SET GLOBAL {name} = {value}"))
            .map_err(|error| error.hint(format!("check --set {}", self.shown())))?;
        if self.now(session)? == before {
            return Err(
                Error::usage(format!("{name} is {before} without --set, too"))
                    .hint("give the variant B another value: nothing would be compared"),
            );
        }
        Ok(Self {
            name: name.clone(),
            value: before,
        })
    }

    /// Sets it back to what it was.
    pub(super) fn undo(&self, session: &mut Session) -> Result<()> {
        let (name, value) = (&self.name, literal(&self.value));
        session.run(&format!("SET GLOBAL {name} = {value}"))
    }

    fn now(&self, session: &mut Session) -> Result<String> {
        let value = session
            .value(&format!("SELECT @@GLOBAL.{}", self.name))
            .map_err(|error| error.hint("--set takes a global variable of the server"))?;
        Ok(value.unwrap_or_default())
    }
}

/// Returns a value as SQL: numbers and words as they are, other text in quotes.
fn literal(value: &str) -> String {
    let is_number = value.parse::<f64>().is_ok();
    let is_word = matches!(
        value.to_ascii_uppercase().as_str(),
        "ON" | "OFF" | "TRUE" | "FALSE" | "DEFAULT"
    );
    match is_number || is_word {
        true => value.to_owned(),
        false => quote(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_and_values_are_literals() {
        let parsed = Setting::parse("sort-buffer-size = 1000").unwrap();
        assert_eq!(parsed.shown(), "sort_buffer_size = 1000");
        for wrong in ["", "x", "=1", "a b=1", "x;y=1"] {
            assert!(Setting::parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(literal("-1.5"), "-1.5");
        assert_eq!(literal("on"), "on");
        assert_eq!(literal("a'; DROP"), "'a''; DROP'");
    }
}
