//! What the file sets in its session, and what that means for how it is read on.

use super::FailedStatement;
use super::driver::Driver;
use evenkeel_op::{Error, Result};
use evenkeel_sql::{Mode, Wide};

/// How many settings of the file are remembered for connections that have not followed them.
const SETTINGS: usize = 4096;
/// Character sets that decide where a string ends, and what may bring one of them back.
const WIDE: [&str; 6] = ["gbk", "gb18030", "big5", "sjis", "cp932", "default"];
/// What begins statements that leave the session as it was.
const ROWS: [&[u8]; 6] = [
    b"INSERT", b"REPLACE", b"UPDATE", b"DELETE", b"SELECT", b"LOAD",
];
/// How many failed statements are kept to be listed.
const LISTED: usize = 1000;

impl Driver<'_> {
    /// Runs settings of the session, and has the connections repeat them.
    pub(super) fn set(&mut self, text: &[u8]) -> Result<bool> {
        self.statements += 1;
        // Rows may belong to a transaction from here on.
        self.recent = None;
        self.main.run_bytes(text)?;
        let says = |word: &str| {
            text.windows(word.len())
                .any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
        };
        self.note(text);
        if says("autocommit") {
            if !self.bound && !self.keeps_transactions()? {
                self.main.run("SET autocommit = 1")?;
            }
            // A transaction left open would lock others out of what it has touched, forever.
            self.note(b"SET autocommit = 1");
            self.note_transaction();
        }
        self.wide_seen |= WIDE.iter().any(|name| says(name));
        let reads = says("sql_mode") || says("foreign_key_checks");
        if reads || (self.wide_seen && (says("names") || says("char"))) {
            self.read_modes()?;
        }
        if self.pool.settings_held() > SETTINGS {
            if !self.flush_all()? || !self.pool.follow_all()? {
                return Ok(false);
            }
            self.state.all_followed();
        }
        Ok(true)
    }

    /// Has the connections repeat a setting, each before the first rows under it.
    fn note(&mut self, sql: &[u8]) {
        let count = self.pool.set(sql);
        self.state.note(sql, count);
    }

    /// Takes another default database, whose name is given as it is and as it stands between backticks.
    pub(super) fn use_database(&mut self, name: &str, quoted: &str) -> Result<()> {
        let sql = format!("USE `{quoted}`");
        self.main.run(&sql)?;
        self.note(sql.as_bytes());
        self.database = Some(name.to_owned());
        self.recent = None;
        Ok(())
    }

    /// Asks again how the session is, where a statement may have changed it.
    pub(super) fn look_at_session(&mut self, text: &[u8]) -> Result<()> {
        let begins = |word: &&[u8]| {
            let begin = text.get(..word.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(word))
        };
        let escapes = self.main.session().no_backslash;
        if !ROWS.iter().any(begins) || escapes != self.mode.no_backslash_escapes {
            self.read_modes()?;
        }
        self.note_transaction();
        Ok(())
    }

    /// Asks how the file has set the session.
    pub(super) fn read_modes(&mut self) -> Result<()> {
        let sql =
            "SELECT @@sql_mode, @@foreign_key_checks, @@character_set_client, DATABASE() LIMIT 1";
        let mut cells = Vec::new();
        let mut rows = self.main.query(sql)?;
        while let Some(row) = rows.next()? {
            let mut read = row.cells();
            for _ in 0..4 {
                let cell = read.next().unwrap_or_default().unwrap_or_default();
                cells.push(String::from_utf8_lossy(cell).into_owned());
            }
        }
        let [mode, checks, characters, database] = &cells[..] else {
            return Err(Error::failed(
                "the server does not report the session's settings",
            ));
        };
        let has = |word: &str| mode.split(',').any(|one| one == word);
        self.mode = Mode {
            no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
            ansi_quotes: has("ANSI_QUOTES"),
            wide: Wide::of(characters),
        };
        self.wide_seen |= self.mode.wide != Wide::No;
        self.oracle = has("ORACLE");
        self.zero_counts = has("NO_AUTO_VALUE_ON_ZERO");
        self.checks = checks != "0";
        let known = self.database.as_deref().unwrap_or_default();
        if database.is_empty() {
            self.database = None;
        } else if !known.eq_ignore_ascii_case(database) {
            // Changed among several statements, which the other connections know nothing of.
            (self.database, self.bound) = (Some(database.clone()), true);
        }
        Ok(())
    }

    /// Notes that what is at hand failed, and that it continues.
    pub(super) fn note_forgiven(&mut self, error: Error) -> Result<()> {
        self.tell_forgiven();
        self.list(self.at, &error);
        self.recent = None;
        // Of several statements, some were run.
        self.read_modes()?;
        self.note_transaction();
        Ok(())
    }

    /// Tells what failed on the connections, where it continues.
    pub(super) fn tell_forgiven(&mut self) {
        if !self.request.force {
            return;
        }
        for failure in self.pool.forgiven() {
            self.list(failure.at, &failure.error);
        }
    }

    fn list(&mut self, at: super::places::At, error: &Error) {
        let message = error.chain();
        self.progress
            .warn(format!("{}: {message}", self.places.shown(at)));
        self.failed += 1;
        if self.failures.len() < LISTED {
            let (file, line) = self.places.of(at.line);
            self.failures.push(FailedStatement {
                file: file.to_owned(),
                line,
                column: at.column,
                message,
            });
        }
    }
}
