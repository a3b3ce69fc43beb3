//! Whom a replica is for its source.

use evenkeel_op::Result;
use evenkeel_server::abilities::{Abilities, Flavour};
use evenkeel_server::connect::Session;

/// The account that a replica uses. It is for one server, which only this machine reaches.
pub(super) struct Account;

impl Account {
    pub(super) const NAME: &str = "showdown";

    /// Makes it.
    pub(super) fn make(session: &mut Session) -> Result<()> {
        let abilities = Abilities::probe(session)?;
        let how = match abilities.flavour {
            // What needs no certificate, where there is a choice.
            Flavour::MySql if !abilities.change_replication_source => {
                "WITH mysql_native_password BY"
            }
            Flavour::MySql | Flavour::MariaDb => "BY",
        };
        let name = Self::NAME;
        session.run(&format!(
            "CREATE USER '{name}'@'%' IDENTIFIED {how} '{name}'"
        ))?;
        session.run(&format!("GRANT REPLICATION SLAVE ON *.* TO '{name}'@'%'"))
    }
}
