//! Indexes and foreign keys that are made once the rows are there.

use super::classify::Name;
use super::driver::Driver;
use super::places::At;
use super::work::{Job, is_duplicate};
use crate::objects::{SplitTable, split_table};
use evenkeel_op::{Context, Result};
use evenkeel_server::connect::quote_name;

/// What a table still lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Later {
    /// Statements that add indexes, in order.
    pub(super) indexes: Vec<Vec<u8>>,
    /// The statement that adds foreign keys.
    pub(super) foreign_key: Option<Vec<u8>>,
    /// How the definition's text should be read, as SET has it.
    pub(super) reading: String,
    /// Where the table's definition is.
    pub(super) at: At,
}

impl Driver<'_> {
    /// Splits a table's definition, if that was asked for, and remembers its second half. Returns
    /// the first.
    pub(super) fn split(&mut self, table: usize, create: &[u8]) -> Result<Option<Vec<u8>>> {
        // Rows that are checked on their way in need what they are checked by.
        if !self.request.indexes_after || self.checks {
            return Ok(None);
        }
        let Some(split) = split_table(create) else {
            return Ok(None);
        };
        if split.indexes.is_empty() && split.foreign_key.is_none() {
            return Ok(None);
        }
        let reading = self.state.reading(&mut self.main)?;
        Ok(self.remember(table, split, reading))
    }

    fn remember(&mut self, table: usize, split: SplitTable, reading: String) -> Option<Vec<u8>> {
        let name = &self.tables[table].name;
        let full = format!("{}.{}", quote_name(&name.database), quote_name(&name.name));
        // It may run when another database is the default.
        let qualified = |sql: Vec<u8>| -> Option<Vec<u8>> {
            let begin = sql.windows(6).position(|part| part == b"\n  ADD")?;
            Some([b"ALTER TABLE ", full.as_bytes(), &sql[begin..]].concat())
        };
        let indexes: Option<Vec<Vec<u8>>> = split.indexes.into_iter().map(qualified).collect();
        let later = Later {
            indexes: indexes?,
            foreign_key: match split.foreign_key {
                Some(sql) => Some(qualified(sql)?),
                None => None,
            },
            reading,
            at: self.at,
        };
        self.tables[table].later = Some(later);
        Some(split.create)
    }

    /// Remembers what a table that an earlier run made may still lack.
    pub(super) fn remember_later(&mut self, name: &Name, create: &[u8]) -> Result<bool> {
        if let Some(table) = self.number(name) {
            self.split(table, create)?;
        }
        Ok(true)
    }

    /// Hands on the indexes of tables whose rows have come, or of all.
    pub(super) fn put_off_indexes(&mut self, all: bool) -> Result<bool> {
        for table in 0..self.tables.len() {
            if (all || self.tables[table].last_line > 0) && !self.push_later(table)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Hands on a table's indexes, behind its rows.
    pub(super) fn push_later(&mut self, table: usize) -> Result<bool> {
        let Some(later) = &mut self.tables[table].later else {
            return Ok(true);
        };
        let indexes = std::mem::take(&mut later.indexes);
        let (at, reading) = (later.at, later.reading.clone());
        if indexes.is_empty() {
            return Ok(true);
        }
        if !self.flush(table)? {
            return Ok(false);
        }
        for sql in indexes {
            let reading = reading.clone();
            let job = Job::Index { reading, sql, at };
            if !self.pool.push(table, true, job)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the foreign keys, when everything else is there.
    pub(super) fn foreign_keys(&mut self) -> Result<bool> {
        let tables = self.tables.iter_mut();
        let all: Vec<(String, Vec<u8>, String)> = tables
            .filter_map(|one| {
                let later = one.later.as_mut()?;
                let sql = later.foreign_key.take()?;
                Some((later.reading.clone(), sql, one.name.to_string()))
            })
            .collect();
        if all.is_empty() {
            return Ok(true);
        }
        // As the file had them made: what its rows refer to is the file's affair.
        self.main.run(
            "SET SESSION foreign_key_checks = 0, sql_mode = '' /*M!100201 , check_constraint_checks = 0 */",
        )?;
        for (reading, sql, name) in all {
            self.main.run(&format!("SET SESSION {reading}"))?;
            match self.main.run_bytes(&sql) {
                // MariaDB has no number of its own for a key that is there.
                Err(error)
                    if self.pool.resumed
                        && (is_duplicate(&error) || error.to_string().contains("errno: 121")) => {}
                done => {
                    done.context(|| format!("failed to add the foreign keys of {name}"))?;
                }
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::classify::{StatementKind, classify};
    use super::*;
    use evenkeel_sql::Mode;

    #[test]
    fn what_dumps_define_can_be_split() {
        let create = b"CREATE TABLE `t` (\n  `a` int NOT NULL,\n  `b` int,\n  PRIMARY KEY (`a`),\n  KEY `b` (`b`)\n) ENGINE=InnoDB";
        assert!(matches!(
            classify(create, Mode::default()),
            StatementKind::Table(..)
        ));
        assert_eq!(split_table(create).unwrap().indexes.len(), 1);
    }
}
