//! What never gets from the source to the replica, because somebody wants it so.

use super::report::TableVerdict;
use super::request::TableName;
use super::sides::Side;
use evenkeel_op::Result;
use evenkeel_server::connect::Row;
use evenkeel_server::replication::{Channel, Filters};

/// What never gets there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    replica: Filters,
    /// `binlog_do_db` and `binlog_ignore_db` of the source.
    logged: Vec<String>,
    not_logged: Vec<String>,
}

impl Filter {
    pub(crate) fn read(source: &mut Side, replica: &mut Side, channel: &Channel) -> Result<Self> {
        let sql = match source.abilities.show_binary_log_status {
            true => "SHOW BINARY LOG STATUS",
            false => "SHOW MASTER STATUS",
        };
        let row = source.session.one(sql)?;
        let list = |name: &str| names(row.as_ref(), name);
        Ok(Self {
            replica: Filters::read(&mut replica.session, &replica.abilities, &channel.name)?,
            logged: list("Binlog_Do_DB"),
            not_logged: list("Binlog_Ignore_DB"),
        })
    }

    /// Returns what to say of it.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = self.replica.words();
        let all = [
            ("binlog_do_db", &self.logged),
            ("binlog_ignore_db", &self.not_logged),
        ];
        for (name, list) in all {
            if !list.is_empty() {
                notes.push(format!("the source logs by {name}={}", list.join(",")));
            }
        }
        notes
    }

    /// Returns why a table's rows do not all get there, and what that makes of it: what is meant to be left out, or what
    /// nobody can say.
    pub(crate) fn refusal(&self, name: &TableName) -> Option<(TableVerdict, String)> {
        let database = &name.database;
        let left_out = |why: &str| Some((TableVerdict::LeftOut, why.to_owned()));
        if !self.logged.is_empty() && !self.logged.contains(database) {
            return left_out("the source does not log this database (binlog_do_db)");
        }
        if self.not_logged.contains(database) {
            return left_out("the source does not log this database (binlog_ignore_db)");
        }
        let why = self.replica.refusal(database, &name.table)?;
        if self.replica.may_leave_out_rows() {
            let why = format!("replication may leave out some of its rows ({why})");
            return Some((TableVerdict::NotCompared, why));
        }
        left_out(&format!("replication leaves it out ({why})"))
    }
}

fn names(row: Option<&Row>, column: &str) -> Vec<String> {
    let text = row.and_then(|row| row.get(column)).unwrap_or_default();
    let names = text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}
