//! HTTP/1.0 and 1.1, as much of it as checks of load balancers use: one request, one answer, closed.
//!
//! 200: use it. 404: it is drained, so nothing new, but what is on it may end (`http-check disable-on-404` of
//! HAProxy). 503: do not use it. 400: no such path or server; it must not look like one that is drained.

use super::metrics;
use crate::board::{Board, Shown};
use crate::machine::HealthState;
use crate::reason::{Cause, Reason};
use evenkeel_op::units;
use serde::Serialize;

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// Of what type the body is.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

const JSON: &str = "application/json";

#[derive(Serialize)]
struct All {
    schema: &'static str,
    servers: Vec<Shown>,
}

#[derive(Serialize)]
struct One {
    schema: &'static str,
    #[serde(flatten)]
    shown: Shown,
}

#[derive(Serialize)]
struct Wrong<'a> {
    schema: &'static str,
    message: &'a str,
}

/// Which role is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Any,
    Primary,
    Replica,
}

/// Returns the bytes of the answer to a request.
pub(super) fn reply(board: &Board, request: &str) -> Vec<u8> {
    let mut words = request.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next());
    let answer = match (method, target) {
        ("GET" | "HEAD" | "OPTIONS", Some(target)) => answer(board, target),
        _ => wrong("only GET, HEAD and OPTIONS are answered"),
    };
    let HttpAnswer {
        status,
        content_type,
        body,
    } = answer;
    let phrase = match status {
        200 => "OK",
        404 => "Not Found",
        503 => "Service Unavailable",
        _ => "Bad Request",
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} {phrase}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    match method {
        "HEAD" => head.into_bytes(),
        _ => (head + &body).into_bytes(),
    }
}

/// Answers a request for a path: `/`, `/metrics`, `/ROLE`, `/SERVER` or `/SERVER/ROLE`, with `?max_lag=TIME`.
#[must_use]
pub fn answer(board: &Board, target: &str) -> HttpAnswer {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (name, role) = match parts[..] {
        [] if board.len() == 1 => ("", Role::Any),
        [] => return all(board),
        ["servers"] => return all(board),
        ["metrics"] => {
            return HttpAnswer {
                status: 200,
                content_type: "text/plain; version=0.0.4",
                body: metrics::text(board),
            };
        }
        // With one server, nobody names it: a role is a role, also if the server is called so.
        [role] if board.len() == 1 && role_of(role).is_some() => {
            ("", role_of(role).unwrap_or(Role::Any))
        }
        [name] if board.find(name).is_some() => (name, Role::Any),
        [role] => match role_of(role) {
            Some(role) => ("", role),
            None => return wrong("there is no such server or path here"),
        },
        [name, role] => match role_of(role) {
            Some(role) => (name, role),
            None => return wrong("the path is /SERVER/primary, /SERVER/replica or /SERVER/any"),
        },
        _ => return wrong("there is no such path here"),
    };
    let Some(server) = board.find(name) else {
        return wrong("name the server: /SERVER/primary, /SERVER/replica or /SERVER/any");
    };
    match lag_in(query) {
        Ok(lag_max) => one(board.shown(server), role, lag_max),
        Err(answer) => answer,
    }
}

fn role_of(word: &str) -> Option<Role> {
    match word {
        "any" => Some(Role::Any),
        "primary" => Some(Role::Primary),
        "replica" => Some(Role::Replica),
        _ => None,
    }
}

fn lag_in(query: &str) -> Result<Option<u64>, HttpAnswer> {
    let mut lag_max = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let value = pair.strip_prefix("max_lag=");
        let span = value.and_then(|value| units::parse_duration(value).ok());
        match span {
            Some(span) => lag_max = Some(span.as_secs()),
            // What is not understood may have been meant to be strict.
            None => return Err(wrong("only max_lag=TIME is understood after '?'")),
        }
    }
    Ok(lag_max)
}

/// 200 as long as one of them is up.
fn all(board: &Board) -> HttpAnswer {
    let servers: Vec<Shown> = (0..board.len()).map(|server| board.shown(server)).collect();
    let is_up = servers.iter().any(|one| one.state == HealthState::Up);
    json(
        if is_up { 200 } else { 503 },
        &All {
            schema: "evenkeel/health/1",
            servers,
        },
    )
}

fn one(mut shown: Shown, role: Role, lag_max: Option<u64>) -> HttpAnswer {
    // Of a server that is drained while its prober restarts, nothing is known yet.
    let is_known = shown.state != HealthState::Draining || shown.probe_age_s.is_some();
    if is_known && let Some(reason) = unfit(&shown, role, lag_max) {
        shown.reasons.push(reason);
        return server(503, shown);
    }
    match shown.state {
        HealthState::Up => server(200, shown),
        HealthState::Draining => server(404, shown),
        HealthState::Starting | HealthState::Down | HealthState::Maintenance => server(503, shown),
    }
}

/// Returns why a server is not what is asked for. What is unknown is not fit.
fn unfit(shown: &Shown, role: Role, lag_max: Option<u64>) -> Option<Reason> {
    let wrong = |cause, text: &str| Some(Reason::new(cause, text));
    match (role, shown.writable) {
        (Role::Primary, Some(false)) => return wrong(Cause::Role, "it is read-only"),
        (Role::Replica, Some(true)) => return wrong(Cause::Role, "it is writable"),
        (Role::Primary | Role::Replica, None) => {
            return wrong(Cause::Role, "nobody knows if it is writable");
        }
        _ => {}
    }
    if role == Role::Replica && shown.replicating == Some(false) {
        return wrong(Cause::Replication, "replication does not run");
    }
    match (lag_max, shown.lag_s) {
        (Some(most), Some(lag)) if lag > most => {
            wrong(Cause::Lag, &format!("{lag} s behind, more than {most} s"))
        }
        (Some(_), None) if role != Role::Primary => {
            wrong(Cause::Lag, "nobody knows how far it is behind (--max-lag)")
        }
        _ => None,
    }
}

fn server(status: u16, shown: Shown) -> HttpAnswer {
    json(
        status,
        &One {
            schema: "evenkeel/health-server/1",
            shown,
        },
    )
}

fn wrong(message: &str) -> HttpAnswer {
    json(
        400,
        &Wrong {
            schema: "evenkeel/health-error/1",
            message,
        },
    )
}

fn json<T: Serialize>(status: u16, document: &T) -> HttpAnswer {
    // Plain structs: they cannot fail to serialise.
    let mut body = serde_json::to_string(document).unwrap_or_default();
    body.push('\n');
    HttpAnswer {
        status,
        content_type: JSON,
        body,
    }
}
