//! Which settings of the file are in force for rows.
//!
//! A connection repeats the file's settings in their order and cannot go back, so rows under one state of
//! the session wait for rows under the state before it. Dumps change settings around each definition and put
//! them back: the server is asked what the state is, and rows under the same state do not wait.

use crate::objects::text::all_tokens;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::quote;
use evenkeel_wire::Connection;

/// What SET may change for the server to be asked whether it is as it was.
const ASKED: [&str; 10] = [
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "sql_mode",
    "time_zone",
    "foreign_key_checks",
    "unique_checks",
    "autocommit",
    "sql_notes",
];

/// What decides how the text of a definition is read.
const READING: [&str; 2] = ["character_set_client", "collation_connection"];

/// Puts them aside on a connection, and back.
pub(super) const ASIDE: &str = "SET @evenkeel_client = @@character_set_client, \
     @evenkeel_collation = @@collation_connection";
pub(super) const BACK: &str = "SET SESSION character_set_client = @evenkeel_client, \
     collation_connection = @evenkeel_collation";

/// The default database and what is in `ASKED`.
type Values = Vec<Option<Vec<u8>>>;

/// The state of the session at the file's place that has been read up to.
#[derive(Debug, Default)]
pub(super) struct ReadSettings {
    /// How many settings of the file there were so far.
    latest: usize,
    /// How many of them a connection has to have repeated.
    needed: usize,
    /// How many of them there were when the server was asked.
    asked: usize,
    /// Something was set that is not asked about.
    unknown: bool,
    values: Values,
}

impl ReadSettings {
    /// Notes that the file has had a setting, and so many of them by now.
    pub(super) fn note(&mut self, sql: &[u8], latest: usize) {
        self.latest = latest;
        self.unknown |= !is_asked_about(sql);
    }

    /// Notes that every connection has repeated all settings, and that nothing waits for any.
    pub(super) fn all_followed(&mut self) {
        self.needed = self.latest;
        self.unknown = true;
    }

    /// Returns how many settings a connection has to have repeated for rows at this place, and whether
    /// the state is another one than for the rows before.
    ///
    /// Errors: those of the connection, which is the one that runs all of the file's settings.
    pub(super) fn needed(&mut self, connection: &mut Connection) -> Result<(usize, bool)> {
        if self.asked == self.latest {
            return Ok((self.needed, false));
        }
        let values = ask(connection)?;
        let other = self.unknown || values != self.values;
        if other {
            self.needed = self.latest;
        }
        (self.asked, self.unknown, self.values) = (self.latest, false, values);
        Ok((self.needed, other))
    }

    /// Returns how a definition at this place is read, as SET has it.
    ///
    /// Errors: as [`ReadSettings::needed`].
    pub(super) fn reading(&self, connection: &mut Connection) -> Result<String> {
        let values = ask(connection)?;
        // The default database is the first.
        let one = |name: &str| {
            let at = ASKED.iter().position(|asked| *asked == name);
            let value = at.and_then(|at| values.get(at + 1)?.as_deref());
            let value = String::from_utf8_lossy(value.unwrap_or_default());
            format!("{name} = {}", quote(&value))
        };
        Ok(READING.map(one).join(", "))
    }
}

fn ask(connection: &mut Connection) -> Result<Values> {
    let all = ASKED.map(|name| format!("@@SESSION.{name}")).join(", ");
    let sql = format!("SELECT DATABASE(), {all} LIMIT 1");
    let mut rows = connection.query(&sql)?;
    let mut values = Values::new();
    while let Some(row) = rows.next()? {
        let mut cells = row.cells();
        while !cells.is_empty() {
            let cell = cells.next().map_err(|error| {
                Error::failed("the server's answer about the session is not valid").because(error)
            })?;
            values.push(cell.map(<[u8]>::to_vec));
        }
    }
    Ok(values)
}

/// Returns whether USE or SET changes nothing but variables of the file's own, of which rows that are
/// spread have none, and what the server is asked for.
fn is_asked_about(sql: &[u8]) -> bool {
    // How it is read could depend on the very setting.
    if sql.contains(&b'\\') {
        return false;
    }
    let Some(mut tokens) = all_tokens(sql) else {
        return false;
    };
    tokens.retain(|token| !token.is_gate());
    let sign = |at: usize, sign| tokens.get(at).is_some_and(|one| one.is_sign(sign));
    let word = |at: usize, word| tokens.get(at).is_some_and(|one| one.is_word(sql, word));
    if word(0, "USE") {
        return true;
    }
    let mut named = usize::from(word(1, "NAMES") || word(1, "CHARACTER"));
    let known = (0..tokens.len()).filter(|at| sign(*at, b'=')).all(|at| {
        named += 1;
        // `:=` is the same.
        let colon = at > 0 && sign(at - 1, b':');
        let Some(name) = at.checked_sub(1 + usize::from(colon)) else {
            return false;
        };
        let of_the_file = name > 1 && sign(name - 1, b'@') && !sign(name - 2, b'@');
        let text = tokens[name].of(sql);
        of_the_file
            || ASKED
                .iter()
                .any(|one| one.as_bytes().eq_ignore_ascii_case(text))
    });
    known && named > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dumps_put_back_is_asked_about() {
        for sql in [
            "USE `a b`",
            "SET NAMES latin1 COLLATE latin1_bin",
            "/*!40101 SET NAMES utf8mb4 */",
            "/*!40101 SET @saved_cs_client     = @@character_set_client */",
            "/*!50503 SET character_set_client = utf8mb4 */",
            "/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */",
            "/*!40103 SET TIME_ZONE='+00:00' */",
            "SET SESSION sql_mode = 'ANSI', time_zone := '+00:00', @@session.sql_notes = 0",
        ] {
            assert!(is_asked_about(sql.as_bytes()), "{sql}");
        }
        for sql in [
            "SET SESSION TRANSACTION READ ONLY",
            "SET timestamp = 5",
            "SET NAMES latin1, timestamp = 5",
            "SET sql_mode = '', auto_increment_increment = 2",
            "SET @@timestamp = 5",
            "SET @@session.timestamp = 5",
            "SET sql_notes = lc_time_names = 1",
            "SET sql_mode = '\\', timestamp = 5, x = '",
            "SET sql_mode = 'open",
            "SET =",
        ] {
            assert!(!is_asked_about(sql.as_bytes()), "{sql}");
        }
    }
}
