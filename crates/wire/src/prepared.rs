//! Prepared statements: sent once, run many times with values in binary. Rows are counted and dropped,
//! not decoded: this is for whoever loads a server, not for whoever reads it.

use crate::connection::{Answer, Connection};
use crate::decode::{Bytes, Malformed};
use evenkeel_op::Result;

const COM_STMT_PREPARE: u8 = 0x16;
pub(crate) const COM_STMT_EXECUTE: u8 = 0x17;
/// Values are sent as these types: BIGINT and VARCHAR.
const LONGLONG: [u8; 2] = [0x08, 0];
const VAR_STRING: [u8; 2] = [0xFD, 0];
/// Command, statement, flags, count of iterations.
const EXECUTE_HEAD: usize = 1 + 4 + 1 + 4;

/// A statement that the server knows. It is the connection's that prepared it.
#[derive(Debug)]
pub struct Prepared {
    id: u32,
    parameters: usize,
    /// Whether the types of its values were sent.
    is_typed: bool,
    sql: String,
    packet: Vec<u8>,
}

/// A value of a prepared statement. The same place takes the same kind each time.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// A whole number.
    Number(i64),
    /// A string, in the connection's character set.
    Text(&'a [u8]),
}

/// What a prepared statement came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Executed {
    /// Rows changed.
    pub affected: u64,
    /// Rows returned.
    pub rows: u64,
}

impl Prepared {
    /// Returns how many values it takes.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.parameters
    }

    /// Writes the packet that runs it.
    fn fill(&mut self, values: &[Value<'_>]) {
        let packet = &mut self.packet;
        packet.clear();
        packet.push(COM_STMT_EXECUTE);
        packet.extend_from_slice(&self.id.to_le_bytes());
        packet.push(0);
        packet.extend_from_slice(&1u32.to_le_bytes());
        debug_assert_eq!(packet.len(), EXECUTE_HEAD);
        if values.is_empty() {
            return;
        }
        // None is NULL.
        packet.resize(EXECUTE_HEAD + values.len().div_ceil(8), 0);
        packet.push(u8::from(!self.is_typed));
        if !self.is_typed {
            for value in values {
                packet.extend_from_slice(match value {
                    Value::Number(_) => &LONGLONG,
                    Value::Text(_) => &VAR_STRING,
                });
            }
        }
        for value in values {
            match value {
                Value::Number(number) => packet.extend_from_slice(&number.to_le_bytes()),
                Value::Text(text) => {
                    length(packet, text.len());
                    packet.extend_from_slice(text);
                }
            }
        }
    }
}

/// Writes a length before what is that long.
pub(crate) fn length(packet: &mut Vec<u8>, length: usize) {
    let wide = (length as u64).to_le_bytes();
    match length {
        0..=0xFA => packet.push(wide[0]),
        0xFB..=0xFFFF => {
            packet.push(0xFC);
            packet.extend_from_slice(&wide[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            packet.push(0xFD);
            packet.extend_from_slice(&wide[..3]);
        }
        _ => {
            packet.push(0xFE);
            packet.extend_from_slice(&wide);
        }
    }
}

impl Connection {
    /// Prepares a statement.
    ///
    /// Errors: as [`Connection::run`].
    pub fn prepare(&mut self, sql: &str) -> Result<Prepared> {
        let (id, parameters) = self.describe(sql.as_bytes(), sql)?;
        Ok(Prepared {
            id,
            parameters: usize::from(parameters),
            is_typed: false,
            sql: sql.to_owned(),
            packet: Vec::new(),
        })
    }

    /// Prepares a statement; returns its number, and how many parameters it has.
    pub(crate) fn describe(&mut self, statement: &[u8], sql: &str) -> Result<(u32, u16)> {
        self.command(&[COM_STMT_PREPARE], statement, sql)?;
        let read = match self.first_packet(sql)? {
            [0x00, rest @ ..] => described(rest),
            _ => Err(Malformed),
        };
        let (id, columns, parameters) = read.map_err(|error| self.malformed(error, sql))?;
        for count in [parameters, columns] {
            self.pass_over_definitions(usize::from(count), sql)?;
        }
        Ok((id, parameters))
    }

    /// Runs a prepared statement with as many values as it has parameters, and drops its rows.
    ///
    /// Errors: as [`Connection::run`]. `Usage` for another number of values.
    pub fn execute(&mut self, statement: &mut Prepared, values: &[Value<'_>]) -> Result<Executed> {
        if values.len() != statement.parameters {
            return Err(evenkeel_op::Error::usage(format!(
                "{} values for {} parameters, in: {}",
                values.len(),
                statement.parameters,
                statement.sql
            )));
        }
        statement.fill(values);
        let sql = statement.sql.as_str();
        self.command(&[], &statement.packet, sql)?;
        statement.is_typed = true;
        match self.answer(sql)? {
            Answer::Ended(ending) => {
                self.ended(ending, sql)?;
                Ok(Executed {
                    affected: ending.affected,
                    rows: 0,
                })
            }
            Answer::Columns(count) => {
                self.pass_over_definitions(count as usize, sql)?;
                self.rows_follow();
                let mut rows = 0;
                while self.row(sql)?.is_some() {
                    rows += 1;
                }
                Ok(Executed { affected: 0, rows })
            }
            Answer::WantsFile => Err(self.malformed(Malformed, sql)),
        }
    }

    /// Reads definitions that nobody asks for, and what ends them.
    pub(crate) fn pass_over_definitions(&mut self, count: usize, sql: &str) -> Result<()> {
        for _ in 0..count {
            self.packet(sql)?;
        }
        if count > 0 && self.has_eof() {
            self.packet(sql)?;
        }
        Ok(())
    }
}

/// Reads a prepared statement's number, its columns and its parameters.
fn described(rest: &[u8]) -> std::result::Result<(u32, u16, u16), Malformed> {
    let mut bytes = Bytes(rest);
    let id = bytes.number(4)? as u32;
    Ok((id, bytes.short()?, bytes.short()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_reported_once() {
        let mut statement = Prepared {
            id: 0x0102_0304,
            parameters: 2,
            is_typed: false,
            sql: String::new(),
            packet: Vec::new(),
        };
        let head = [0x17, 4, 3, 2, 1, 0, 1, 0, 0, 0, 0];
        statement.fill(&[Value::Number(-2), Value::Text(b"ab")]);
        let values = [
            0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2, b'a', b'b',
        ];
        let first = [&head[..], &[1, 0x08, 0, 0xFD, 0], &values].concat();
        assert_eq!(statement.packet, first);
        statement.is_typed = true;
        statement.fill(&[Value::Number(-2), Value::Text(b"ab")]);
        assert_eq!(statement.packet, [&head[..], &[0], &values].concat());
    }

    #[test]
    fn lengths_take_the_room_they_need() {
        for (value, bytes) in [
            (250, &[250][..]),
            (251, &[0xFC, 251, 0]),
            (65_536, &[0xFD, 0, 0, 1]),
            (16_777_216, &[0xFE, 0, 0, 0, 1, 0, 0, 0, 0]),
        ] {
            let mut packet = Vec::new();
            length(&mut packet, value);
            assert_eq!(packet, bytes);
        }
    }
}
