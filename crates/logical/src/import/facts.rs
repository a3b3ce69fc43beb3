//! What the server says about a table that rows are to go to.

use super::classify::Head;
use evenkeel_op::Result;
use evenkeel_server::connect::{Session, quote};

/// A table's full name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TableName {
    pub(super) database: String,
    pub(super) name: String,
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.database, self.name)
    }
}

/// What decides how a table's rows may be spread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// A failed statement leaves nothing, and several make one.
    pub(super) transactional: bool,
    /// No two rows can be equal in some unique key.
    pub(super) keyed: bool,
    /// Rows set off triggers, or take numbers from a sequence: any order is another outcome.
    pub(super) far_reaching: bool,
    /// It refers to other tables.
    pub(super) refers: bool,
    /// Columns that take part where no columns are named, in lower case.
    columns: Vec<String>,
    /// The AUTO_INCREMENT column, in lower case.
    counter: Option<String>,
}

/// Where in rows the AUTO_INCREMENT column's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    /// The table has none.
    None,
    /// The value of this number, from 0.
    At(usize),
    /// The rows leave it out.
    LeftOut,
}

impl Facts {
    /// Asks the server; `None` for what is not a base table there.
    ///
    /// Errors: those of the session.
    pub(super) fn of(session: &mut Session, table: &TableName) -> Result<Option<Self>> {
        let (schema, name) = (quote(&table.database), quote(&table.name));
        let kind = session.one(&format!(
            "SELECT t.ENGINE, e.TRANSACTIONS FROM information_schema.TABLES t \
             JOIN information_schema.ENGINES e ON e.ENGINE = t.ENGINE \
             WHERE t.TABLE_SCHEMA = {schema} AND t.TABLE_NAME = {name} \
             AND t.TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"
        ))?;
        let Some(kind) = kind else { return Ok(None) };
        let mut facts = Self {
            transactional: kind.at(1) == Some("YES"),
            ..Self::default()
        };
        let columns = session.rows(&format!(
            "SELECT COLUMN_NAME, EXTRA, COALESCE(COLUMN_DEFAULT, '') FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {name} ORDER BY ORDINAL_POSITION"
        ))?;
        for column in &columns {
            let text = |at| column.at(at).unwrap_or_default().to_lowercase();
            let (extra, default) = (text(1), text(2));
            if extra.contains("auto_increment") {
                facts.counter = Some(text(0));
            }
            if !extra.contains("invisible") {
                facts.columns.push(text(0));
            }
            facts.far_reaching |= default.contains("nextval") || default.contains("next value");
        }
        let count = |session: &mut Session, sql: String| -> Result<bool> {
            Ok(session.value(&sql)?.is_some_and(|count| count != "0"))
        };
        facts.far_reaching |= count(
            session,
            format!(
                "SELECT COUNT(*) FROM information_schema.TRIGGERS \
                 WHERE EVENT_OBJECT_SCHEMA = {schema} AND EVENT_OBJECT_TABLE = {name}"
            ),
        )?;
        facts.keyed = count(
            session,
            format!(
                "SELECT COUNT(*) FROM (SELECT INDEX_NAME FROM information_schema.STATISTICS \
                 WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {name} AND NON_UNIQUE = 0 \
                 GROUP BY INDEX_NAME HAVING SUM(NULLABLE = 'YES') = 0) k"
            ),
        )?;
        facts.refers = count(
            session,
            format!(
                "SELECT COUNT(*) FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = {schema} \
                 AND TABLE_NAME = {name} AND CONSTRAINT_TYPE = 'FOREIGN KEY'"
            ),
        )?;
        Ok(Some(facts))
    }

    /// Says where in the rows of a head the AUTO_INCREMENT value is.
    pub(super) fn counter(&self, head: &Head) -> Counter {
        let Some(counter) = &self.counter else {
            return Counter::None;
        };
        let at = match &head.columns {
            // Without a value there is nothing that could be at its place.
            Some(named) => named
                .iter()
                .position(|name| name.to_lowercase() == *counter),
            None => self.columns.iter().position(|name| name == counter),
        };
        at.map_or(Counter::LeftOut, Counter::At)
    }
}
