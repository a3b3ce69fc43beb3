//! Whether a server waits for replicas that acknowledge.

use crate::abilities::Flavour;
use crate::connect::Session;
use evenkeel_op::{Error, Result};

/// Asks whether a server waits for replicas that acknowledge.
///
/// Errors: `Refused` where it does not, with the statements that make it.
pub fn is_on(session: &mut Session, flavour: Flavour) -> Result<()> {
    let names = [
        "rpl_semi_sync_source_enabled",
        "rpl_semi_sync_master_enabled",
    ];
    let mut known = None;
    for name in names {
        let value = session.variable(name)?;
        if value.as_deref() == Some("ON") {
            return Ok(());
        }
        known = known.or(value.map(|_| name));
    }
    let place = session.place();
    let error = Error::refused(format!("{place} does not wait for replicas to acknowledge"));
    Err(match (known, flavour) {
        (Some(name), _) => error.hint(format!("SET GLOBAL {name} = ON")),
        (None, Flavour::MariaDb) => error.hint("SET GLOBAL rpl_semi_sync_master_enabled = ON"),
        (None, Flavour::MySql) => error
            .hint("first, once: INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
            .hint("before MySQL 8.0.26: rpl_semi_sync_master and semisync_master.so")
            .hint("then: SET GLOBAL rpl_semi_sync_source_enabled = ON"),
    })
}
