//! What all questions about objects need.

use super::grants::Grants;
use crate::objects::{ObjectName, SchemaObjectKind, Selection, Unmatched};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;

/// What all questions need.
pub(super) struct Reader<'a> {
    pub(super) session: &'a mut Session,
    pub(super) selection: &'a Selection,
    pub(super) abilities: Abilities,
    pub(super) grants: Grants,
    pub(super) gone: Vec<ObjectName>,
    pub(super) unmatched: Unmatched,
}

impl Reader<'_> {
    /// Returns whether an object is wanted, and notes what patterns it matches.
    pub(super) fn wants(&mut self, database: &str, object: &str) -> bool {
        self.unmatched.wants(self.selection, database, object)
    }

    /// Notes that something was listed and is no longer there.
    pub(super) fn is_gone(&mut self, kind: SchemaObjectKind, database: &str, name: &str) {
        self.gone.push(ObjectName {
            kind,
            database: database.to_owned(),
            name: name.to_owned(),
        });
    }
}
