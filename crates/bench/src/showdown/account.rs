//! Whom a replica is for its source.

use evenkeel_op::Result;
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;

/// The account that a replica uses. It is for one server, which only this machine reaches.
pub(super) struct Account;

impl Account {
    pub(super) const NAME: &str = "showdown";

    /// Makes it.
    pub(super) fn make(session: &mut Session) -> Result<()> {
        let abilities = Abilities::probe(session)?;
        let how = match abilities.native_password_for_replicas {
            true => "WITH mysql_native_password BY",
            false => "BY",
        };
        let name = Self::NAME;
        session.run(&format!(
            "CREATE USER '{name}'@'%' IDENTIFIED {how} '{name}'"
        ))?;
        session.run(&format!("GRANT REPLICATION SLAVE ON *.* TO '{name}'@'%'"))
    }
}
