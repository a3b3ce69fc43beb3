//! A session that is asked without waiting: whoever asks many servers hears by its descriptor that an answer is here.

use crate::bounded::BoundedSession;
use crate::connection::server_error;
use crate::decode::{Bytes, Column, Ending, Malformed, ServerError};
use crate::packet::broken;
use crate::rows::Row as Packet;
use evenkeel_op::Error;
use evenkeel_server::connect::{Row, query_error};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// No answer is longer, in bytes: these are for short ones.
const ANSWER: usize = 64 << 10;
/// Length of a packet's header.
const HEADER: usize = 4;
const PIECE: usize = 4096;
const COM_QUERY: u8 = 3;

/// What has been heard.
#[derive(Debug)]
pub enum Heard {
    /// The answer is not all here yet.
    NotYet,
    /// All rows.
    Rows(Vec<Row>),
    /// Why the statement was refused.
    Refused(Error),
}

/// A session, asked without waiting. After an error it is of no use.
#[derive(Debug)]
pub struct StandingSession {
    session: BoundedSession,
    has_eof: bool,
    /// What has come of an answer and was not read: `buffer[at..]`.
    buffer: Vec<u8>,
    at: usize,
    answer: Option<Answering>,
    names: Arc<[String]>,
}

/// An answer that is on its way.
#[derive(Debug)]
struct Answering {
    sql: String,
    /// The number of its next packet.
    number: u8,
    next: Expected,
    columns: u64,
    rows: Vec<Row>,
}

/// Which packet comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    First,
    /// So many definitions of columns.
    Columns(u64),
    EndOfColumns,
    Rows,
}

impl StandingSession {
    /// Takes a session that nothing is to come of.
    ///
    /// Errors: those of the operating system.
    pub fn of(mut session: BoundedSession) -> io::Result<Self> {
        session.connection().stop_waiting()?;
        Ok(Self {
            has_eof: session.connection().has_eof(),
            session,
            buffer: Vec::new(),
            at: 0,
            answer: None,
            names: Vec::new().into(),
        })
    }

    /// Sends a statement.
    ///
    /// Errors: the connection is lost, or what was sent before has not left this host.
    pub fn ask(&mut self, sql: &str) -> io::Result<()> {
        if self.answer.is_some() || !self.buffer.is_empty() {
            return Err(broken("an answer is on its way"));
        }
        let length = u32::try_from(sql.len() + 1).map_err(io::Error::other)?;
        let [low, middle, high, _] = length.to_le_bytes();
        let mut packet = Vec::with_capacity(HEADER + 1 + sql.len());
        packet.extend_from_slice(&[low, middle, high, 0, COM_QUERY]);
        packet.extend_from_slice(sql.as_bytes());
        let stream = self.session.connection().stream();
        stream.write_all(&packet)?;
        stream.flush()?;
        self.answer = Some(Answering {
            sql: sql.to_owned(),
            number: 1,
            next: Expected::First,
            columns: 0,
            rows: Vec::new(),
        });
        Ok(())
    }

    /// Reads what is there.
    ///
    /// Errors: the connection is lost, or what came is no answer, or too long.
    pub fn hear(&mut self) -> io::Result<Heard> {
        let mut piece = [0; PIECE];
        loop {
            let read = match self.session.connection().stream().read(&mut piece) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Heard::NotYet),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if self.buffer.len() + read > ANSWER {
                return Err(broken("the answer is too long"));
            }
            self.buffer.extend_from_slice(&piece[..read]);
            let Some(mut answer) = self.answer.take() else {
                return Err(broken("the server sent data out of turn"));
            };
            match self.read(&mut answer)? {
                Heard::NotYet => self.answer = Some(answer),
                whole if self.at == self.buffer.len() => {
                    self.buffer.clear();
                    self.at = 0;
                    return Ok(whole);
                }
                _ => return Err(broken("the server sent data out of turn")),
            }
        }
    }

    /// Takes the packets that are here.
    fn read(&mut self, answer: &mut Answering) -> io::Result<Heard> {
        while let Some(length) = self.length(answer.number)? {
            let packet = &self.buffer[self.at + HEADER..self.at + HEADER + length];
            let read = answer.take(packet, self.has_eof, &self.names);
            self.at += HEADER + length;
            answer.number = answer.number.wrapping_add(1);
            match read {
                Ok(Heard::NotYet) => {}
                Ok(whole) => return Ok(whole),
                Err(Malformed) => return Err(io::Error::new(ErrorKind::InvalidData, Malformed)),
            }
        }
        Ok(Heard::NotYet)
    }

    /// Returns the length of the next packet, if it is all here.
    fn length(&self, number: u8) -> io::Result<Option<usize>> {
        let Some([low, middle, high, counted]) = self.buffer[self.at..].first_chunk() else {
            return Ok(None);
        };
        if *counted != number {
            return Err(broken("packets out of order"));
        }
        let length = u32::from_le_bytes([*low, *middle, *high, 0]) as usize;
        if length > ANSWER {
            return Err(broken("the answer is too long"));
        }
        Ok((self.buffer.len() - self.at >= HEADER + length).then_some(length))
    }
}

impl Answering {
    /// Takes the next packet.
    fn take(
        &mut self,
        packet: &[u8],
        has_eof: bool,
        names: &Arc<[String]>,
    ) -> Result<Heard, Malformed> {
        if packet.first() == Some(&0xFF) {
            let error = server_error(ServerError::of(packet)?);
            return Ok(Heard::Refused(query_error(&error, &self.sql)));
        }
        match self.next {
            Expected::First => {
                self.columns = Bytes(packet).length()?.ok_or(Malformed)?;
                match self.columns {
                    // A statement without rows; more columns than bytes that may come.
                    0 | 4097.. => return Err(Malformed),
                    columns => self.next = Expected::Columns(columns),
                }
            }
            Expected::Columns(left) => {
                Column::of(packet)?;
                self.next = match left {
                    2.. => Expected::Columns(left - 1),
                    _ if has_eof => Expected::EndOfColumns,
                    _ => Expected::Rows,
                };
            }
            Expected::EndOfColumns => {
                Ending::of_eof(packet)?;
                self.next = Expected::Rows;
            }
            Expected::Rows if packet.first() == Some(&0xFE) => {
                let ending = match has_eof {
                    true => Ending::of_eof(packet)?,
                    false => Ending::of_ok(packet)?,
                };
                return match ending.more {
                    true => Err(Malformed),
                    false => Ok(Heard::Rows(std::mem::take(&mut self.rows))),
                };
            }
            Expected::Rows => self.rows.push(row(packet, self.columns, names)?),
        }
        Ok(Heard::NotYet)
    }
}

/// Reads a row, whose values are found by their places.
fn row(packet: &[u8], columns: u64, names: &Arc<[String]>) -> Result<Row, Malformed> {
    let mut cells = Packet::of(packet).cells();
    let mut values = Vec::new();
    for _ in 0..columns {
        let cell = cells.next()?;
        values.push(cell.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
    }
    match cells.is_empty() {
        true => Ok(Row::new(names.clone(), values)),
        false => Err(Malformed),
    }
}

impl AsFd for StandingSession {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.session.as_fd()
    }
}
