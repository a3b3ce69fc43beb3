//! What is to be done, before anything is.

use super::found::{Found, Routine, find};
use super::routines::{ROUTINES, TABLES};
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::Session;

/// What is to be done.
#[derive(Debug)]
pub struct Plan {
    /// What the database has.
    pub found: Found,
    /// Routines to drop.
    pub drop: Vec<Routine>,
    /// Routines to make.
    pub create: Vec<String>,
    /// Tables to make.
    pub create_tables: Vec<String>,
    /// Tables to drop, when all else is done.
    pub drop_tables: Vec<String>,
}

impl Plan {
    /// Returns whether there is nothing to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.drop.is_empty()
            && self.create.is_empty()
            && self.create_tables.is_empty()
            && self.drop_tables.is_empty()
    }

    /// Returns whether something is lost or replaced, not only added.
    #[must_use]
    pub fn is_destructive(&self) -> bool {
        !self.drop.is_empty() || !self.drop_tables.is_empty()
    }
}

/// Plans to have the verbs in a database, of this program's version.
///
/// Errors: as [`find`]; `Refused` where routines of these names are somebody else's.
pub fn plan_install(session: &mut Session, database: &str) -> Result<Plan> {
    let found = find(session, database)?;
    if let Some(stranger) = found.strangers().next() {
        return Err(Error::refused(format!(
            "database {database} has a {} {} that evenkeel did not create",
            stranger.kind.word().to_lowercase(),
            stranger.name
        ))
        .hint("drop it if nothing needs it, or choose another database"));
    }
    let is_current = |one: &&Routine| one.stamp == found.stamp;
    let drop = found.routines.iter().filter(|one| !is_current(one));
    let drop = drop.cloned().collect();
    let has = |name: &str| {
        let mut current = found.routines.iter().filter(is_current);
        current.any(|one| one.name == name)
    };
    let create = ROUTINES.iter().map(|one| one.name.to_owned());
    let create = create.filter(|name| !has(name)).collect();
    let tables = TABLES.iter().map(|(name, _)| (*name).to_owned());
    let create_tables = tables.filter(|name| !found.tables.contains(name)).collect();
    Ok(Plan {
        drop,
        create,
        create_tables,
        drop_tables: Vec::new(),
        found,
    })
}

/// Plans to have nothing of them in a database.
///
/// Errors: as [`find`]; `Refused` while there are queues.
pub fn plan_uninstall(session: &mut Session, database: &str) -> Result<Plan> {
    let found = find(session, database)?;
    if let Some(queue) = found.queues.first() {
        let many = found.queues.len();
        return Err(Error::refused(format!(
            "database {database} has queues that need the procedures: {many}, the first is {queue}"
        ))
        .hint("drop each with CALL queue_drop('name') when its rows are no longer needed"));
    }
    let ours = found.routines.iter();
    let ours = ours.filter(|one| found.strangers().all(|other| other != *one));
    Ok(Plan {
        drop: ours.cloned().collect(),
        create: Vec::new(),
        create_tables: Vec::new(),
        drop_tables: found.tables.clone(),
        found,
    })
}
