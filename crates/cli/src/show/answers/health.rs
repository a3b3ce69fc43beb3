//! Answers of `health`.

use super::Answer;
use crate::show::{Align, TextTable};
use evenkeel_health::board::Shown;
use evenkeel_health::probe::{Checks, Observed};
use evenkeel_health::reason::{Reason, few, plain};
use evenkeel_op::{Error, units};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// What Nagios calls a verdict. Number and word are its contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NagiosStatus {
    /// Use it.
    Ok,
    /// Use it, and look at it.
    Warning,
    /// Do not use it.
    Critical,
    /// Nobody knows.
    Unknown,
}

impl NagiosStatus {
    /// Returns the exit code.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// What `health check` found.
#[derive(Debug, Serialize)]
pub struct HealthCheckAnswer {
    /// The verdict.
    pub status: NagiosStatus,
    /// The exit code.
    pub exit_code: u8,
    server: Option<String>,
    reasons: Vec<Reason>,
    /// Why nothing was checked.
    message: Option<String>,
    hints: Vec<String>,
    writable: Option<bool>,
    replicating: Option<bool>,
    lag_s: Option<u64>,
    connections: Option<u64>,
    connections_max: Option<u64>,
    threads_running: Option<u64>,
    disk_free: Option<u64>,
    probe_s: Option<f64>,
    #[serde(skip)]
    performance: Vec<String>,
}

impl HealthCheckAnswer {
    /// Judges what was found.
    #[must_use]
    pub fn new(
        server: String,
        seen: Observed,
        checks: &Checks,
        timeout: Duration,
        warn_lag: Option<Duration>,
    ) -> Self {
        let is_late = warn_lag
            .zip(seen.lag_s)
            .is_some_and(|(warn, lag)| lag >= warn.as_secs());
        // What is known to be bad counts more than what is not known.
        let status = if seen.reasons.len() > seen.unknown.len() {
            NagiosStatus::Critical
        } else if !seen.unknown.is_empty() {
            NagiosStatus::Unknown
        } else if is_late {
            NagiosStatus::Warning
        } else {
            NagiosStatus::Ok
        };
        Self {
            status,
            exit_code: status.exit_code(),
            performance: performance(&seen, checks, timeout, warn_lag),
            server: Some(server),
            reasons: few(seen.reasons),
            message: None,
            hints: Vec::new(),
            writable: seen.is_writable,
            replicating: seen.replicates,
            lag_s: seen.lag_s,
            connections: seen.connections,
            connections_max: seen.connections_max,
            threads_running: seen.running,
            disk_free: seen.disk_free,
            probe_s: Some(seen.took.as_secs_f64()),
        }
    }

    /// Says that nothing could be checked.
    #[must_use]
    pub fn unknown(error: &Error) -> Self {
        Self {
            status: NagiosStatus::Unknown,
            exit_code: NagiosStatus::Unknown.exit_code(),
            server: None,
            reasons: Vec::new(),
            message: Some(error.chain()),
            hints: error.hints().into_iter().map(str::to_owned).collect(),
            writable: None,
            replicating: None,
            lag_s: None,
            connections: None,
            connections_max: None,
            threads_running: None,
            disk_free: None,
            probe_s: None,
            performance: Vec::new(),
        }
    }

    /// Returns it as the line of a plugin.
    #[must_use]
    pub fn line(&self) -> String {
        let mut says: Vec<String> = self.reasons.iter().map(ToString::to_string).collect();
        says.extend(self.message.clone());
        if says.is_empty() {
            says.push(self.good());
        }
        // A bar begins the performance data.
        let says = says.join("; ").replace(['|', '\n', '\r'], " ");
        let mut line = format!("EVENKEEL {} - {says}", self.status.word());
        if !self.performance.is_empty() {
            line.push_str(&format!(" | {}", self.performance.join(" ")));
        }
        line.push('\n');
        line
    }

    fn good(&self) -> String {
        let mut says = vec![match self.writable {
            Some(true) => "writable".to_owned(),
            Some(false) => "read-only".to_owned(),
            None => "answers".to_owned(),
        }];
        says.extend(self.lag_s.map(|lag| format!("{lag} s behind")));
        if let Some((used, most)) = self.connections.zip(self.connections_max) {
            says.push(format!("{used} of {most} connections"));
        }
        says.extend(
            self.disk_free
                .map(|free| format!("{} free", units::bytes(free))),
        );
        says.join(", ")
    }
}

/// `label=value;warn;crit;min;max`, as the plugins' guidelines have it.
fn performance(
    seen: &Observed,
    checks: &Checks,
    timeout: Duration,
    warn_lag: Option<Duration>,
) -> Vec<String> {
    let seconds =
        |span: Option<Duration>| span.map_or(String::new(), |it| it.as_secs().to_string());
    let mut all = vec![format!(
        "time={:.3}s;;{:.3};0",
        seen.took.as_secs_f64(),
        timeout.as_secs_f64()
    )];
    if let Some(lag) = seen.lag_s {
        all.push(format!(
            "lag={lag}s;{};{};0",
            seconds(warn_lag),
            seconds(checks.lag_max)
        ));
    }
    if let Some((used, most)) = seen.connections.zip(seen.connections_max) {
        let critical = most.saturating_sub(checks.connections_min);
        all.push(format!("connections={used};;{critical};0;{most}"));
    }
    all.extend(
        seen.running
            .map(|running| format!("threads_running={running};;;0")),
    );
    if let Some(free) = seen.disk_free {
        let least = checks
            .disk_min
            .map_or(String::new(), |least| format!("{least}:"));
        all.push(format!("disk_free={free}B;;{least};0"));
    }
    all
}

impl Answer for HealthCheckAnswer {
    const SCHEMA: &'static str = "evenkeel/health-check/1";

    fn text(&self) -> String {
        self.line()
    }
}

/// What `health run` says about its servers.
#[derive(Debug, Serialize)]
pub struct HealthStatusAnswer {
    servers: Value,
}

impl HealthStatusAnswer {
    /// Takes what it said.
    #[must_use]
    pub fn new(servers: Value) -> Self {
        Self { servers }
    }

    fn each(&self) -> impl Iterator<Item = &Value> {
        self.servers.as_array().into_iter().flatten()
    }

    /// Returns whether every server is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.each().all(|server| server["state"] == "up")
    }
}

impl Answer for HealthStatusAnswer {
    const SCHEMA: &'static str = "evenkeel/health/1";

    fn text(&self) -> String {
        let mut table = TextTable::new(&[
            ("server", Align::Left),
            ("state", Align::Left),
            ("for", Align::Right),
            ("why", Align::Left),
        ]);
        for server in self.each() {
            // It may be another user's, and say what it likes.
            let text = |name: &str| plain(server[name].as_str().unwrap_or("-"));
            let span = server["for_s"].as_f64().unwrap_or_default();
            let span = Duration::try_from_secs_f64(span).unwrap_or_default();
            let reasons = server["reasons"].as_array().into_iter().flatten();
            let why: Vec<String> = reasons
                .map(|reason| {
                    let word = |name: &str| reason[name].as_str().unwrap_or_default();
                    plain(&format!("{}: {}", word("cause"), word("text")))
                })
                .collect();
            table.row([
                text("server"),
                text("state"),
                units::duration(span),
                why.join("; "),
            ]);
        }
        table.text()
    }
}

/// A server that `health run` found changed.
#[derive(Debug, Serialize)]
pub struct HealthChange<'a> {
    schema: &'static str,
    time: String,
    #[serde(flatten)]
    shown: &'a Shown,
}

impl<'a> HealthChange<'a> {
    /// Describes it as of now.
    #[must_use]
    pub fn new(shown: &'a Shown) -> Self {
        Self {
            schema: "evenkeel/health-change/1",
            time: jiff::Timestamp::now().to_string(),
            shown,
        }
    }

    /// Returns it as a line of JSON.
    #[must_use]
    pub fn json_line(&self) -> String {
        // A plain struct: it cannot fail to serialise.
        format!("{}\n", serde_json::to_string(self).unwrap_or_default())
    }

    /// Returns it as a line for people.
    #[must_use]
    pub fn text_line(&self) -> String {
        let Shown { server, state, .. } = self.shown;
        let why: Vec<String> = self.shown.reasons.iter().map(ToString::to_string).collect();
        let why = match why.is_empty() {
            true => String::new(),
            false => format!(" ({})", why.join("; ")),
        };
        format!("{} {server}: {}{why}\n", self.time, state.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::obeyed::is_obeyed;

    #[test]
    fn words_of_somebody_elses_prober_drive_no_terminal() {
        let strange = "a\u{1b}]0;b\u{9b}31m\u{202e}\n";
        let answer = HealthStatusAnswer::new(serde_json::json!([{
            "server": strange, "state": strange, "for_s": -1.0,
            "reasons": [{"cause": strange, "text": strange}],
        }]));
        let text = answer.text();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.replace('\n', "").contains(is_obeyed), "{text:?}");
        assert!(!answer.is_up());
    }
}
