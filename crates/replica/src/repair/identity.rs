//! Which server it is: a plan is for one replica and its one source.

use evenkeel_op::{Error, Result};
use evenkeel_server::connect::Session;
use serde::{Deserialize, Serialize};

/// Who a server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Identity {
    server_id: u64,
    uuid: Option<String>,
    host: String,
    port: u64,
    datadir: String,
}

impl Identity {
    pub(super) fn of(session: &mut Session) -> Result<Self> {
        let row = session.one("SELECT @@server_id, @@hostname, @@port, @@datadir")?;
        let text = |at: usize| {
            let value = row.as_ref().and_then(|row| row.at(at));
            value.map(str::to_owned)
        };
        let number = |at: usize| text(at).and_then(|text| text.parse().ok());
        match (number(0), text(1), number(2), text(3)) {
            (Some(server_id), Some(host), Some(port), Some(datadir)) => Ok(Self {
                server_id,
                host,
                port,
                datadir,
                uuid: session.variable("server_uuid")?,
            }),
            _ => Err(Error::failed("a server does not say who it is")),
        }
    }

    /// Refuses a server that is another one.
    pub(super) fn require(&self, session: &mut Session, what: &str) -> Result<()> {
        if Self::of(session)? == *self {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{} is not the {what} of this plan: that is {}",
            session.place(),
            self.words()
        ))
        .hint("name the servers that the plan was made for, or make a new plan"))
    }

    pub(super) fn words(&self) -> String {
        format!(
            "server {} on {}, port {}, with its data in {}",
            self.server_id, self.host, self.port, self.datadir
        )
    }
}
