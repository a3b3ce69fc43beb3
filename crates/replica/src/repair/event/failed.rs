//! Which event a SQL thread could not apply, as the server says it.

use crate::checksum::TableName;
use crate::survey::table_in_error;
use evenkeel_binlog::Done;
use evenkeel_op::Result;
use evenkeel_server::connect::Session;
use evenkeel_server::replication::Channel;

/// A row that the event changes is not there.
const NO_SUCH_ROW: u32 = 1032;
/// Another row has a value that the event's row must have.
const DUPLICATE: u32 = 1062;

/// Why it could not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    MissingRow,
    RowInTheWay,
}

/// An event of rows that could not be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FailedEvent {
    pub(super) lack: Lack,
    pub(super) table: TableName,
    /// What it does to rows.
    pub(super) done: Done,
    /// Where it ends in the source's binary log; `None` where the server does not say.
    pub(super) end: Option<u64>,
    /// In which file, if it says that.
    pub(super) file: Option<String>,
    /// MySQL: the GTID of its transaction.
    pub(super) gtid: Option<Gtid>,
}

/// A transaction's name: the UUID of a server, and a number.
pub(super) type Gtid = ([u8; 16], u64);

impl FailedEvent {
    /// Asks the replica; `None` if its error is of another kind.
    pub(super) fn of(session: &mut Session, channel: &Channel) -> Result<Option<Self>> {
        let own = channel.applier_error.clone();
        let workers = workers(session, &channel.name)?;
        Ok(workers
            .into_iter()
            .chain(own)
            .find_map(|(number, text)| Self::read(number, &text)))
    }

    fn read(number: u32, text: &str) -> Option<Self> {
        let lack = match number {
            NO_SUCH_ROW => Lack::MissingRow,
            DUPLICATE => Lack::RowInTheWay,
            _ => return None,
        };
        // What stands in between may be a value of a row, which is whatever a client wrote.
        let (before, behind) = text.split_at(text.find(EXECUTE)?);
        let (database, table) = table_in_error(behind)?;
        let (_, place) = text.rsplit_once("; the event's ")?;
        Some(Self {
            lack,
            table: TableName { database, table },
            done: done(behind)?,
            end: end(place),
            file: file(place).or_else(|| file(before)),
            gtid: before.split('\'').nth(1).and_then(gtid),
        })
    }
}

/// What the part about the event begins with.
const EXECUTE: &str = "Could not execute ";
/// What stands between a file and a place in it.
const END: &str = ", end_log_pos ";

/// Reads what the event does: `Update_rows_v1 event on table …`.
fn done(text: &str) -> Option<Done> {
    let word = text.strip_prefix(EXECUTE)?.split('_').next()?;
    match word {
        "Write" => Some(Done::Inserted),
        "Update" => Some(Done::Updated),
        "Delete" => Some(Done::Deleted),
        _ => None,
    }
}

/// Reads where the event ends: `master log FILE, end_log_pos N`. MariaDB 11 says 0 within transactions.
fn end(place: &str) -> Option<u64> {
    let (_, behind) = place.split_once(END)?;
    let digits = behind
        .split(|letter: char| !letter.is_ascii_digit())
        .next()?;
    digits.parse().ok().filter(|position| *position > 0)
}

/// Reads in which file. Workers of MySQL 8.0 call it `FIRST`, and name it where they name the transaction, or nowhere.
fn file(text: &str) -> Option<String> {
    let (before, _) = text.split_once(END)?;
    let file = before.rsplit(' ').next()?;
    Some(file.to_owned()).filter(|file| !file.is_empty() && file != "FIRST")
}

/// Reads `3e11fa47-71ca-11e1-9e33-c80aa9429562:23`.
fn gtid(text: &str) -> Option<Gtid> {
    let (uuid, number) = text.split_once(':')?;
    let digits: String = uuid.chars().filter(|letter| *letter != '-').collect();
    let uuid = u128::from_str_radix(&digits, 16).ok()?;
    let is_one = digits.len() == 32;
    Some((uuid.to_be_bytes(), number.parse().ok()?)).filter(|_| is_one)
}

/// MySQL: what the workers of a channel failed with. The coordinator only says that one of them did.
fn workers(session: &mut Session, channel: &str) -> Result<Vec<(u32, String)>> {
    let there = session.value(
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'performance_schema' \
         AND TABLE_NAME = 'replication_applier_status_by_worker'",
    )?;
    if there.as_deref() != Some("1") {
        return Ok(Vec::new());
    }
    let rows = session.rows(
        "SELECT CHANNEL_NAME, LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE \
         FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER <> 0",
    )?;
    let own = rows.iter().filter(|row| row.at(0) == Some(channel));
    let errors = own.filter_map(|row| Some((row.at(1)?.parse().ok()?, row.at(2)?.to_owned())));
    Ok(errors.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_say_where_the_event_ends() {
        let read = |number, text: &str| FailedEvent::read(number, text);
        let mariadb = read(
            1032,
            "Could not execute Update_rows_v1 event on table shop.a; Can't find record in 'a', Error_code: 1032; \
             handler error HA_ERR_KEY_NOT_FOUND; the event's master log bin.000001, end_log_pos 31178",
        )
        .unwrap();
        assert_eq!(mariadb.lack, Lack::MissingRow);
        assert_eq!(mariadb.table.to_string(), "shop.a");
        assert_eq!((mariadb.end, mariadb.done), (Some(31178), Done::Updated));
        assert_eq!(mariadb.file.as_deref(), Some("bin.000001"));
        assert_eq!(mariadb.gtid, None);
        let worker = |which: &str, file: &str| {
            let text = format!(
                "Worker 1 failed executing transaction '{which}' at source log {file}, end_log_pos 1049; Could not \
                 execute Write_rows event on table shop.a; Duplicate entry '7' for key 'a.PRIMARY', Error_code: 1062; \
                 handler error HA_ERR_FOUND_DUPP_KEY; the event's source log FIRST, end_log_pos 1018"
            );
            read(1062, &text).unwrap()
        };
        let anonymous = worker("ANONYMOUS", "b.000002");
        assert_eq!(anonymous.lack, Lack::RowInTheWay);
        assert_eq!((anonymous.end, anonymous.gtid), (Some(1018), None));
        assert_eq!(anonymous.file.as_deref(), Some("b.000002"));
        let named = worker("00000000-0000-0000-0000-00000000000a:78", "");
        let mut uuid = [0; 16];
        uuid[15] = 10;
        assert_eq!((named.file, named.gtid), (None, Some((uuid, 78))));
    }

    #[test]
    fn values_of_rows_say_nothing() {
        let text = "Could not execute Write_rows_v1 event on table shop.a; Duplicate entry ''x:1' at bin.000009, \
                    end_log_pos 7; the event's master log bin.000009, end_log_pos 7' for key 'u', Error_code: 1062; \
                    handler error HA_ERR_FOUND_DUPP_KEY; the event's master log bin.000001, end_log_pos 31178";
        let read = FailedEvent::read(1062, text).unwrap();
        assert_eq!((read.end, read.gtid), (Some(31178), None));
        assert_eq!(read.file.as_deref(), Some("bin.000001"));
    }

    #[test]
    fn what_is_not_said_is_not_known() {
        let text = "Could not execute Delete_rows_v1 event on table shop.a; Can't find record in 'a', Error_code: \
                    1032; handler error HA_ERR_KEY_NOT_FOUND; the event's master log bin.000001, end_log_pos 0";
        assert_eq!(FailedEvent::read(1032, text).unwrap().end, None);
        assert_eq!(FailedEvent::read(1205, text), None);
        assert_eq!(FailedEvent::read(1032, "Can't find record in 'a'"), None);
    }
}
