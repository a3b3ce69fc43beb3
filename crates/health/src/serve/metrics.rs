//! Prometheus' text format.

use crate::board::{Board, Shown};
use crate::machine::HealthState;
use crate::reason::Cause;

type Value = fn(&Shown) -> Option<f64>;

/// Name, help, type, and what it is of a server; one without a value is left out.
const METRICS: [(&str, &str, &str, Value); 14] = [
    ("up", "1 if clients may use the server.", "gauge", |it| {
        Some(f64::from(u8::from(it.state == HealthState::Up)))
    }),
    ("probes_total", "Probes that ended.", "counter", |it| {
        Some(it.counts.probes as f64)
    }),
    (
        "probe_failures_total",
        "Probes that failed.",
        "counter",
        |it| Some(it.counts.failures as f64),
    ),
    (
        "probe_seconds",
        "How long the last probe took.",
        "gauge",
        |it| Some(it.probe_s),
    ),
    (
        "probe_age_seconds",
        "How long ago the last probe ended.",
        "gauge",
        |it| it.probe_age_s,
    ),
    (
        "state_seconds",
        "For how long the server has been in its state.",
        "gauge",
        |it| Some(it.for_s),
    ),
    ("flaps", "Failures within the window.", "gauge", |it| {
        Some(it.flaps as f64)
    }),
    ("writable", "1 if clients can write.", "gauge", |it| {
        it.writable.map(|is| f64::from(u8::from(is)))
    }),
    (
        "lag_seconds",
        "How far replication is behind.",
        "gauge",
        |it| it.lag_s.map(|lag| lag as f64),
    ),
    ("connections", "Connections in use.", "gauge", |it| {
        it.connections.map(|count| count as f64)
    }),
    (
        "connections_max",
        "Connections that are allowed.",
        "gauge",
        |it| it.connections_max.map(|count| count as f64),
    ),
    (
        "disk_free_bytes",
        "Free space below the data directory.",
        "gauge",
        |it| it.disk_free.map(|bytes| bytes as f64),
    ),
    ("blocked", "1 if its port is blocked.", "gauge", |it| {
        it.blocked.map(|is| f64::from(u8::from(is)))
    }),
    (
        "block_failures_total",
        "How often its port could not be blocked or opened.",
        "counter",
        |it| it.blocked.map(|_| it.counts.block_failures as f64),
    ),
];

/// Returns everything about every server.
pub(super) fn text(board: &Board) -> String {
    let shown: Vec<Shown> = (0..board.len()).map(|server| board.shown(server)).collect();
    let mut text = String::new();
    for (name, help, kind, value) in METRICS {
        head(&mut text, name, help, kind);
        for server in &shown {
            if let Some(value) = value(server) {
                let label = escaped(&server.server);
                text.push_str(&format!(
                    "evenkeel_health_{name}{{server=\"{label}\"}} {value}\n"
                ));
            }
        }
    }
    head(
        &mut text,
        "state",
        "1 for the state that the server is in.",
        "gauge",
    );
    for server in &shown {
        for state in HealthState::ALL {
            let is = u8::from(server.state == state);
            labelled(&mut text, "state", server, state.word(), is);
        }
    }
    head(
        &mut text,
        "reason",
        "1 for each reason why the server is not up.",
        "gauge",
    );
    for server in &shown {
        for cause in Cause::ALL {
            let is = u8::from(server.is_for(cause));
            labelled(&mut text, "reason", server, cause.word(), is);
        }
    }
    text
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    text.push_str(&format!(
        "# HELP evenkeel_health_{name} {help}\n# TYPE evenkeel_health_{name} {kind}\n"
    ));
}

fn labelled(text: &mut String, name: &str, server: &Shown, word: &str, is: u8) {
    let label = escaped(&server.server);
    text.push_str(&format!(
        "evenkeel_health_{name}{{server=\"{label}\",{name}=\"{word}\"}} {is}\n"
    ));
}

/// Escapes a label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}
