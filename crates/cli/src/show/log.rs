//! The lines of standard error, in the form that was asked for.

use crate::args::{LogFormat, Output};
use evenkeel_op::Error;
use serde::Serialize;
use serde_json::Value;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Info,
    Warning,
    Error,
}

/// How lines are written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Log {
    format: LogFormat,
    timestamps: bool,
}

/// A line as programs read it. Its fields are a contract.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    level: Level,
    message: &'a str,
    /// Of an error: what to do next, what kind it is, and the exit code.
    #[serde(flatten)]
    failure: Option<Failure<'a>>,
}

#[derive(Serialize)]
struct Failure<'a> {
    hints: Vec<&'a str>,
    kind: &'static str,
    exit_code: u8,
}

impl Log {
    pub(super) fn of(output: &Output) -> Self {
        Self {
            format: output.log_format,
            timestamps: output.log_timestamps,
        }
    }

    /// Whether lines are for a log rather than for somebody who looks on.
    pub(super) fn is_asked_for(self) -> bool {
        self.timestamps || self.is_json()
    }

    pub(super) fn is_json(self) -> bool {
        self.format == LogFormat::Json
    }

    /// Returns something that was said as a line with its end.
    pub(super) fn line(self, level: Level, message: &str) -> String {
        if self.is_json() {
            return json(level, message, None);
        }
        let mark = if level == Level::Warning {
            "warning: "
        } else {
            ""
        };
        let message = super::failure::without_controls(message);
        self.stamped(&format!("evenkeel: {mark}{message}\n"))
    }

    /// Returns a failure as lines.
    pub(super) fn failure(self, error: &Error) -> String {
        if self.is_json() {
            let failure = Failure {
                hints: error.hints(),
                kind: error.kind().name(),
                exit_code: error.kind().exit_code(),
            };
            return json(Level::Error, &error.chain(), Some(failure));
        }
        self.stamped(&super::failure::text(error))
    }

    /// Returns an answer that does not go to standard output, which is a text of its own, as lines.
    pub(super) fn aside(self, text: &str) -> String {
        match self.is_json() {
            true => json(Level::Info, text.trim_end(), None),
            false => self.stamped(text),
        }
    }

    fn stamped(self, text: &str) -> String {
        if !self.timestamps {
            return text.to_owned();
        }
        // As `cron --timestamps` writes them.
        let stamp = jiff::Zoned::now().strftime("[%Y-%m-%d %H:%M:%S%:z] ");
        let lines = text.lines().map(|line| format!("{stamp}{line}\n"));
        lines.collect()
    }
}

fn json(level: Level, message: &str, failure: Option<Failure<'_>>) -> String {
    let now = jiff::Timestamp::now();
    let line = Line {
        // RFC 3339, in UTC, to the millisecond.
        time: now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        level,
        message,
        failure,
    };
    // Plain structs: they cannot fail to serialise.
    let line = serde_json::to_value(&line).unwrap_or(Value::Null);
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::ErrorKind;

    const JSON: Log = Log {
        format: LogFormat::Json,
        timestamps: false,
    };
    const STAMPED: Log = Log {
        format: LogFormat::Text,
        timestamps: true,
    };

    fn busy() -> Error {
        Error::new(ErrorKind::Busy, "two\nlines").hint("wait for it")
    }

    #[test]
    fn a_line_of_json_has_time_level_and_message() {
        let line = JSON.line(Level::Warning, "a \"snapshot\"\nremoved");
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let line: Value = serde_json::from_str(&line).unwrap();
        let time: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
        assert!(jiff::Timestamp::now().duration_since(time).as_secs() < 60);
        assert_eq!(line["level"], "warning");
        assert_eq!(line["message"], "a \"snapshot\"\nremoved");
        assert_eq!(line.as_object().unwrap().len(), 3);
    }

    #[test]
    fn a_failure_is_one_line_with_what_to_do() {
        let line: Value = serde_json::from_str(&JSON.failure(&busy())).unwrap();
        assert_eq!(line["level"], "error");
        assert_eq!(line["message"], "two\nlines");
        assert_eq!(line["hints"], serde_json::json!(["wait for it"]));
        assert_eq!(
            (&line["kind"], &line["exit_code"]),
            (&"busy".into(), &11.into())
        );
    }

    #[test]
    fn every_line_of_text_begins_with_the_time() {
        let text = STAMPED.failure(&busy());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(
            lines
                .iter()
                .all(|line| line.starts_with("[20") && line.contains("] "))
        );
        assert_eq!(Log::default().line(Level::Info, "x"), "evenkeel: x\n");
    }
}
