//! The statements for one row of a table: it is read, deleted and inserted by a key that no other row has.

use super::plan::RowValues;
use crate::checksum::catalog::ComparableTable;
use crate::checksum::column::Column;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::quote_name;

/// The statements for the rows of a table.
#[derive(Debug)]
pub(super) struct RowStatements {
    table: String,
    index: String,
    key: Vec<Column>,
    /// What is kept of a row, in order.
    kept: Vec<Column>,
}

impl RowStatements {
    /// Makes them; `None` for a table without a key that names its rows.
    pub(super) fn of(table: &ComparableTable) -> Option<Self> {
        let identity = table.identity()?;
        let key = identity.columns.iter().flatten();
        let kept = table.columns.iter().filter(|column| column.counts());
        Some(Self {
            table: table.quoted(),
            index: quote_name(&identity.name),
            key: key.map(|at| table.columns[*at].clone()).collect(),
            kept: kept.cloned().collect(),
        })
    }

    pub(super) fn columns(&self) -> Vec<String> {
        self.kept.iter().map(|column| column.name.clone()).collect()
    }

    /// Reads a row: its key, and everything that is kept of it.
    pub(super) fn select(&self, key: &[String], lock: bool) -> Result<String> {
        Ok(format!(
            "SELECT {} FROM {} FORCE INDEX ({}) WHERE {}{}",
            self.read_columns(),
            self.table,
            self.index,
            self.is(key)?,
            if lock { " FOR UPDATE" } else { "" }
        ))
    }

    /// Reads all rows of a table that is defined alike.
    pub(super) fn select_all_of(&self, table: &str) -> String {
        format!("SELECT {} FROM {table}", self.read_columns())
    }

    /// Reads the rows of its table that have the same values in these columns as some row of another one.
    pub(super) fn select_alike(&self, columns: &[String], other: &str) -> String {
        let columns = columns.join(", ");
        let (read, table) = (self.read_columns(), &self.table);
        format!("SELECT {read} FROM {table} WHERE ({columns}) IN (SELECT {columns} FROM {other})")
    }

    fn read_columns(&self) -> String {
        let all = || self.key.iter().chain(&self.kept);
        let values: Vec<String> = all().map(Column::as_value).collect();
        let lost: Vec<String> = all().filter_map(Column::is_lost).collect();
        let lost = match lost.is_empty() {
            true => "0".to_owned(),
            false => lost.join(" OR "),
        };
        format!("{}, {lost}", values.join(", "))
    }

    /// Returns a key, for people.
    pub(super) fn named(&self, key: &[String]) -> String {
        let pairs = self.key.iter().zip(key);
        let pairs = pairs.map(|(column, value)| format!("{}={value}", column.name));
        pairs.collect::<Vec<_>>().join(", ")
    }

    /// Returns the row out of what [`RowStatements::select`] found. A row whose key only compares as equal is another.
    ///
    /// Errors: `Refused` for a row with a value that would not come back as it is.
    pub(super) fn found(
        &self,
        key: &[String],
        mut rows: Vec<RowValues>,
    ) -> Result<Option<RowValues>> {
        let Some(row) = rows.pop() else {
            return Ok(None);
        };
        if !rows.is_empty() {
            return Err(senseless());
        }
        let (own, values) = self.split(row)?;
        Ok((own == key).then_some(values))
    }

    /// Returns the key and the values of a row that was read.
    ///
    /// Errors: `Refused` for a row with a value that would not come back as it is.
    pub(super) fn split(&self, mut row: RowValues) -> Result<(Vec<String>, RowValues)> {
        if row.len() != self.key.len() + self.kept.len() + 1 {
            return Err(senseless());
        }
        if row.pop() != Some(Some("0".to_owned())) {
            return Err(Error::refused(
                "a value of one of its rows cannot be read exactly: it is longer than half of the server's \
                 max_allowed_packet, or it is a JSON document with dates, decimals or bytes, which text does not keep",
            ));
        }
        let values = row.split_off(self.key.len());
        let key: Option<Vec<String>> = row.into_iter().collect();
        Ok((key.ok_or_else(senseless)?, values))
    }

    pub(super) fn delete(&self, key: &[String]) -> Result<String> {
        Ok(format!(
            "DELETE FROM {} WHERE {}",
            self.table,
            self.is(key)?
        ))
    }

    /// Inserts a row; what the server computes is left to it.
    pub(super) fn insert(&self, row: &RowValues) -> Result<String> {
        let written = self.kept.iter().zip(row).filter(|(one, _)| !one.computed);
        let names: Vec<String> = written
            .clone()
            .map(|(one, _)| quote_name(&one.name))
            .collect();
        let values = written.map(|(one, value)| one.exact_literal(value.as_deref()));
        let values: Vec<String> = values.collect::<Result<_>>()?;
        Ok(format!(
            "INSERT INTO {} ({}) VALUES ({})",
            self.table,
            names.join(", "),
            values.join(", ")
        ))
    }

    fn is(&self, key: &[String]) -> Result<String> {
        if key.len() != self.key.len() {
            return Err(Error::failed("a key does not fit its table"));
        }
        let terms = self.key.iter().zip(key).map(|(column, value)| {
            let literal = column.exact_literal(Some(value))?;
            Ok(format!("{} = {literal}", quote_name(&column.name)))
        });
        Ok(terms.collect::<Result<Vec<_>>>()?.join(" AND "))
    }
}

fn senseless() -> Error {
    Error::failed("a server sends a row that makes no sense")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::catalog::tests::table;

    fn statements() -> RowStatements {
        let mut sum = Column::for_tests("sum", "int", None);
        (sum.computed, sum.stored) = (true, true);
        let columns = vec![
            Column::for_tests("a`b", "int", None),
            Column::for_tests("v", "varchar", Some("latin1")),
            sum,
        ];
        RowStatements::of(&table(columns, &[0])).unwrap()
    }

    #[test]
    fn a_row_is_read_deleted_and_inserted_by_its_key() {
        let statements = statements();
        let key = ["7".to_owned()];
        assert_eq!(
            statements.select(&key, true).unwrap(),
            "SELECT `a``b`, `a``b`, HEX(CAST(`v` AS BINARY)), `sum`, \
             (`v` IS NOT NULL AND HEX(CAST(`v` AS BINARY)) IS NULL) FROM `d`.`t` FORCE INDEX (`PRIMARY`) \
             WHERE `a``b` = 7 FOR UPDATE"
        );
        assert_eq!(
            statements.delete(&key).unwrap(),
            "DELETE FROM `d`.`t` WHERE `a``b` = 7"
        );
        let row = vec![Some("7".to_owned()), Some("27".to_owned()), None];
        assert_eq!(
            statements.insert(&row).unwrap(),
            "INSERT INTO `d`.`t` (`a``b`, `v`) VALUES (7, _latin1 X'27')"
        );
        assert!(statements.delete(&["7 OR 1".to_owned()]).is_err());
        assert!(statements.delete(&[]).is_err());
    }

    #[test]
    fn a_row_that_only_compares_as_equal_is_another() {
        let statements = statements();
        let row = |key: &str| {
            let mut row = vec![Some(key.to_owned()), Some(key.to_owned()), None, None];
            row.push(Some("0".to_owned()));
            row
        };
        let found = |key: &str| statements.found(&["7".to_owned()], vec![row(key)]).unwrap();
        assert_eq!(found("7"), Some(row("7")[1..4].to_vec()));
        assert_eq!(found("07"), None);
        assert!(
            statements
                .found(&["7".to_owned()], vec![row("7"), row("7")])
                .is_err()
        );
        let mut lost = row("7");
        lost[4] = Some("1".to_owned());
        assert!(statements.found(&["7".to_owned()], vec![lost]).is_err());
    }
}
