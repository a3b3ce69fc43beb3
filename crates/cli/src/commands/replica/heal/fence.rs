//! Replicas taken out of use by `health run`, which answers load balancers.

use evenkeel_health::control::{HealthRequest, ask};
use evenkeel_health::machine::HealthOrder;
use evenkeel_op::paths::absolute;
use evenkeel_op::{Error, Result};
use evenkeel_replica::heal::Fence;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The process that obeys at a socket.
pub(super) struct HealthFence(PathBuf);

impl HealthFence {
    /// Makes sure that it answers.
    ///
    /// Errors: those of asking.
    pub(super) fn at(path: &Path) -> Result<Self> {
        let path = absolute(path);
        ask(&path, &HealthRequest::Status)?;
        Ok(Self(path))
    }

    fn shown(&self, server: &str) -> Result<Value> {
        let all = ask(&self.0, &HealthRequest::Status)?;
        let all = all.as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|one| one["server"] == server);
        found.ok_or_else(|| {
            let at = self.0.display();
            Error::usage(format!("'health run' at {at} checks no server '{server}'"))
                .hint("name the servers there and here alike")
        })
    }
}

/// How everything begins that everyone who asks is told.
const REASON: &str = "evenkeel replica heal ";

/// Whether it was drained for the repair with this name; with an empty one, for any.
fn is_drained_by(shown: &Value, id: &str) -> bool {
    let reasons = shown["reasons"].as_array().map_or(&[][..], Vec::as_slice);
    let ours = format!("{REASON}{id}");
    let says = |one: &Value| {
        let text = one["text"].as_str().unwrap_or_default();
        text == ours || id.is_empty() && text.starts_with(REASON)
    };
    shown["order"] == "drain" && reasons.iter().any(says)
}

impl Fence for HealthFence {
    fn is_out(&mut self, server: &str, id: Option<&str>) -> Result<bool> {
        let all = ask(&self.0, &HealthRequest::Status)?;
        let mut all = all.as_array().into_iter().flatten();
        let found = all.find(|one| one["server"] == server);
        // One that is not checked there cannot be drained there.
        Ok(found.is_some_and(|shown| match id {
            Some(id) => is_drained_by(shown, id),
            None => shown["order"].is_string(),
        }))
    }

    fn drain(&mut self, server: &str, id: &str) -> Result<()> {
        let shown = self.shown(server)?;
        let order = shown["order"].as_str();
        // One that was for a repair that failed is taken over.
        if let Some(order) = order.filter(|_| !is_drained_by(&shown, "")) {
            return Err(Error::refused(format!(
                "'{server}' was taken out of use already ({order}): whoever did that may be at work on it"
            ))
            .hint("evenkeel health status says why"));
        }
        let order = HealthOrder::Drain(format!("{REASON}{id}"));
        let server = server.to_owned();
        ask(&self.0, &HealthRequest::Order { server, order }).map(drop)
    }

    fn release(&mut self, server: &str, id: &str) -> Result<bool> {
        if !is_drained_by(&self.shown(server)?, id) {
            return Ok(false);
        }
        let server = server.to_owned();
        ask(&self.0, &HealthRequest::Release { server })?;
        Ok(true)
    }
}
