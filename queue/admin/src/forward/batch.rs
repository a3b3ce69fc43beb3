//! Rows as text that any server reads back, and what tells two batches apart.

use crate::name::QueueName;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::{Row, Session, quote, quote_name};
use std::fmt::Write;

/// How a column's cells are asked for, and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Text, in quotes.
    Text,
    /// Bytes, as hexadecimal digits.
    Bytes,
    /// A number, bare: bits.
    Bits,
    /// A number, bare: with all its digits.
    Float,
}

/// The columns of a queue that hold something of their own.
#[derive(Debug)]
pub(super) struct Columns {
    all: Vec<(String, Form)>,
}

impl Columns {
    /// Reads them. Errors: those of the session; `Refused` where there are none.
    pub(super) fn read(session: &mut Session, table: &QueueName) -> Result<Self> {
        let sql = format!(
            "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} \
             AND COALESCE(GENERATION_EXPRESSION, '') = '' ORDER BY ORDINAL_POSITION",
            quote(&table.database),
            quote(&table.table)
        );
        let column = |row: &Row| Some((row.at(0)?.to_owned(), form(row.at(1)?)));
        let all: Vec<_> = session.rows(&sql)?.iter().filter_map(column).collect();
        match all.is_empty() {
            true => Err(Error::refused(format!("{table} shows no columns"))
                .hint("the account needs SELECT and DELETE on it")),
            false => Ok(Self { all }),
        }
    }

    /// What to select of a table.
    pub(super) fn select(&self, table: &QueueName) -> String {
        let expression = |(name, form): &(String, Form)| match form {
            Form::Text => quote_name(name),
            Form::Bytes => format!("HEX({})", quote_name(name)),
            Form::Bits => format!("{} + 0", quote_name(name)),
            Form::Float => format!("{} + 0e0", quote_name(name)),
        };
        let list: Vec<String> = self.all.iter().map(expression).collect();
        format!("SELECT {} FROM {}", list.join(", "), table.sql())
    }

    /// Rows that were selected so as one statement for another table with columns of these names.
    ///
    /// Errors: the source said something else where a number or hexadecimal digits belong; it would be SQL there.
    pub(super) fn insert(&self, table: &QueueName, rows: &[Row]) -> Result<String> {
        let names: Vec<String> = self.all.iter().map(|(name, _)| quote_name(name)).collect();
        let mut sql = format!("INSERT INTO {} ({}) VALUES ", table.sql(), names.join(", "));
        for (number, row) in rows.iter().enumerate() {
            sql.push_str(if number == 0 { "(" } else { ", (" });
            for (at, (name, form)) in self.all.iter().enumerate() {
                sql.push_str(if at == 0 { "" } else { ", " });
                if row.at(at).is_some_and(|cell| !form.admits(cell)) {
                    let what = format!(
                        "the source gave an invalid value for column {}",
                        quote_name(name)
                    );
                    return Err(Error::failed(what));
                }
                // Writing into a string cannot fail.
                let _ = match (row.at(at), form) {
                    (None, _) => write!(sql, "NULL"),
                    (Some(cell), Form::Text) => write!(sql, "{}", quote(cell)),
                    (Some(cell), Form::Bytes) => write!(sql, "x'{cell}'"),
                    (Some(cell), Form::Bits | Form::Float) => write!(sql, "{cell}"),
                };
            }
            sql.push(')');
        }
        Ok(sql)
    }

    /// What tells these rows from others, as 64 hexadecimal digits.
    pub(super) fn digest(&self, rows: &[Row]) -> String {
        let mut hasher = blake3::Hasher::new();
        for row in rows {
            for at in 0..self.all.len() {
                let cell = row.at(at);
                let length = cell.map_or(u64::MAX, |cell| cell.len() as u64);
                hasher.update(&length.to_le_bytes());
                hasher.update(cell.unwrap_or_default().as_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Bytes of rows: at least what they take as text, and in a queue's files. An INSERT of more than those hold in one
    /// frame could arrive by half.
    pub(super) fn bytes(&self, rows: &[Row]) -> usize {
        let cells = |row: &Row| {
            let of = |at| row.at(at).map_or(1, |cell| cell.len() + LONGEST_NUMBER);
            (0..self.all.len()).map(of).sum::<usize>()
        };
        rows.iter().map(cells).sum()
    }
}

impl Form {
    /// Whether a cell can be written so.
    fn admits(self, cell: &str) -> bool {
        let all = |is: fn(u8) -> bool| cell.bytes().all(is);
        match self {
            Self::Text => true,
            Self::Bytes => all(|byte| byte.is_ascii_hexdigit()),
            Self::Bits => all(|byte| byte.is_ascii_digit()) && !cell.is_empty(),
            Self::Float => {
                all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
                    && cell.parse::<f64>().is_ok()
            }
        }
    }
}

/// What a number takes in a queue's files however few digits it has: a DECIMAL of 65 digits.
const LONGEST_NUMBER: usize = 32;

fn form(data_type: &str) -> Form {
    match data_type.to_ascii_lowercase().as_str() {
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" | "vector"
        | "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geometrycollection" | "geomcollection" => Form::Bytes,
        "bit" => Form::Bits,
        "float" => Form::Float,
        _ => Form::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_value_is_not_written() {
        for (form, cell) in [
            (Form::Bytes, "00'), ((SELECT 1"),
            (Form::Bits, "1), (2"),
            (Form::Bits, ""),
            (Form::Float, "1e0), (2"),
            (Form::Float, "nan"),
            (Form::Float, "1-1"),
        ] {
            assert!(!form.admits(cell), "{cell}");
        }
        for (form, cell) in [
            (Form::Text, "'), ("),
            (Form::Bytes, "00fF"),
            (Form::Bits, "4095"),
            (Form::Float, "-1.17549e-38"),
        ] {
            assert!(form.admits(cell), "{cell}");
        }
    }
}
