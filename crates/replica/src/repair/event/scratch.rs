//! What rows of an event are, as the replica's own server reads them: it inserts them into an empty table of the same
//! definition (`BINLOG`), in a schema of our own, and in no binary log.

use super::fetch::{Fetched, RowsEvent, refused};
use crate::checksum::catalog::ComparableTable;
use crate::checksum::sides::Side;
use crate::repair::plan::RowValues;
use crate::repair::rows::RowStatements;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use evenkeel_binlog::{Images, Layout, event_of, kind, renamed};
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::connect::{Row, quote, quote_name};
use evenkeel_server::options::ConnectOptions;

/// What the schema's name begins with; the table in it.
const SCHEMA: &str = "evenkeel_event_";
const TABLE: &str = "image";

/// A row: its key, and everything that is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadRow {
    pub(super) key: Vec<String>,
    pub(super) values: RowValues,
}

/// The table. Its schema is dropped with it.
pub(super) struct Scratch {
    side: Side,
    schema: String,
}

impl Scratch {
    /// Makes it. Whoever does so has the replica's lease: what others have left is dropped.
    pub(super) fn make(
        replica: &ConnectOptions,
        source: &mut Side,
        table: &ComparableTable,
    ) -> Result<Self> {
        let mut side = Side::open(replica)?;
        // Whoever holds a lock is not waited for.
        let first =
            "SET SESSION sql_log_bin = 0, lock_wait_timeout = 10, innodb_lock_wait_timeout = 10";
        side.session.run(first)?;
        drop_left(&mut side, source)?;
        let schema = own_name();
        side.session
            .run(&format!("CREATE SCHEMA {}", quote_name(&schema)))
            .context(|| "failed to make a schema for the rows of the event on the replica")?;
        let mut scratch = Self { side, schema };
        let sql = format!("CREATE TABLE {} LIKE {}", scratch.quoted(), table.quoted());
        scratch.side.session.run(&sql)?;
        Ok(scratch)
    }

    /// Returns its name, as statements have it.
    pub(super) fn quoted(&self) -> String {
        format!("{}.{}", quote_name(&self.schema), quote_name(TABLE))
    }

    /// Returns the images of an event.
    ///
    /// Errors: `Refused` for one without all columns, or of another kind than is read.
    pub(super) fn images(event: &RowsEvent, table: &ComparableTable) -> Result<Images> {
        let layout = Layout::of(&event.map);
        let layout = layout.filter(|layout| layout.columns() == table.columns.len());
        let layout = layout.ok_or_else(|| {
            refused(
                &table.name,
                "its columns in the event are not those of the replica",
            )
        })?;
        layout.images(event.kind, &event.rows).ok_or_else(|| {
            refused(
                &table.name,
                "its event does not have all columns (binlog_row_image), or is compressed",
            )
        })
    }

    /// Has the server read rows: `rows` is the body of an event of this kind that inserts them.
    pub(super) fn read(
        &mut self,
        fetched: &Fetched,
        event: &RowsEvent,
        (kind_of, rows): (u8, &[u8]),
        statements: &RowStatements,
    ) -> Result<Vec<ReadRow>> {
        let quoted = self.quoted();
        let session = &mut self.side.session;
        session.run(&format!("DELETE FROM {quoted}"))?;
        let map = renamed(&event.map, &self.schema, TABLE)
            .ok_or_else(|| Error::failed("a table map makes no sense"))?;
        let whole = |kind, body: &[u8]| event_of(kind, event.server, body, fetched.checksums);
        let events = [whole(kind::TABLE_MAP, &map), whole(kind_of, rows)].concat();
        let binlog = |bytes: &[u8]| format!("BINLOG '{}'", STANDARD.encode(bytes));
        let why = || "failed to have the replica read the rows of the event";
        session.run(&binlog(&fetched.format)).context(why)?;
        if session.variable("gtid_mode")?.is_some() {
            // Behind a format, MySQL waits for the name of a transaction.
            session.run("SET SESSION gtid_next = 'AUTOMATIC'")?;
        }
        session.run(&binlog(&events)).context(why)?;
        let read = session.rows(&statements.select_all_of(&quoted))?;
        read.iter()
            .map(|row| {
                let (key, values) = statements.split(values_of(row))?;
                Ok(ReadRow { key, values })
            })
            .collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The next one drops what is left.
        let sql = format!("DROP SCHEMA {}", quote_name(&self.schema));
        let _ = self.side.session.run(&sql);
    }
}

/// Returns the values of a row.
pub(super) fn values_of(row: &Row) -> RowValues {
    (0..row.names().len())
        .map(|at| row.at(at).map(str::to_owned))
        .collect()
}

/// Drops schemas of ours that runs which were killed have left: those with our name, and nothing but our table, that
/// did not come from the source.
fn drop_left(side: &mut Side, source: &mut Side) -> Result<()> {
    let sql = format!(
        "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE LEFT(SCHEMA_NAME, {}) = {}",
        SCHEMA.len(),
        quote(SCHEMA)
    );
    let of_source = source.session.rows(&sql)?;
    let is_of_source = |name: &str| of_source.iter().any(|row| row.at(0) == Some(name));
    let session = &mut side.session;
    let names = session.rows(&sql)?;
    let names = names.iter().filter_map(|row| row.at(0));
    for name in names.filter(|name| is_ours(name) && !is_of_source(name)) {
        let own = quote(name);
        let other = session.value(&format!(
            "SELECT (SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = {own} AND TABLE_NAME <> {}) \
             + (SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {own}) \
             + (SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = {own})",
            quote(TABLE)
        ))?;
        if other.as_deref() == Some("0") {
            session.run(&format!("DROP SCHEMA {}", quote_name(name)))?;
        }
    }
    Ok(())
}

fn is_ours(name: &str) -> bool {
    let number = name.strip_prefix(SCHEMA);
    number.is_some_and(|number| {
        number.len() == 16 && number.bytes().all(|one| one.is_ascii_hexdigit())
    })
}

/// A name that nobody else has.
fn own_name() -> String {
    let nanos = jiff::Timestamp::now().subsec_nanosecond().unsigned_abs();
    format!("{SCHEMA}{:08x}{nanos:08x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_schemas_of_ours_are_dropped() {
        assert!(is_ours("evenkeel_event_0123456789abcdef"));
        assert!(is_ours(&own_name()));
        for other in [
            "evenkeel_event_",
            "evenkeel_event_shop",
            "evenkeel_event_0123456789abcdefa",
            "shop",
        ] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
