//! The prepared statements of a session, and the text of one that runs with its values.

use super::sent::Sent;
use super::values::{Text, Type, render};
use crate::decode::{Bytes, Malformed};
use crate::sums::TokenKind;
use evenkeel_sql::{Mode, code};
use foldhash::fast::RandomState;
use std::collections::HashMap;

/// Statements that are remembered: a server's own limit for all its sessions.
const MOST: usize = 16_382;
/// Bytes of text and values that are remembered for a session.
const MOST_BYTES: usize = 8 << 20;
/// The number that means the last statement that was prepared: MariaDB's.
const LAST: u32 = u32::MAX;
/// Execution brings the number of its parameters: query attributes may be among them.
const COUNT_FOLLOWS: u8 = 0x08;

#[derive(Debug, Default)]
struct Prepared {
    sql: Vec<u8>,
    /// Bytes of the text that were not kept.
    cut: u64,
    parameters: usize,
    places: Vec<u32>,
    /// Told with the first execution only.
    types: Vec<Type>,
    /// What was sent ahead, by the parameter's number.
    ahead: HashMap<u16, Vec<u8>, RandomState>,
    /// Of its result, as they were told last: MariaDB does not repeat them.
    columns: Vec<TokenKind>,
}

/// What is known of the statements.
#[derive(Debug, Default)]
pub(super) struct Statements {
    known: HashMap<u32, Prepared, RandomState>,
    last: Option<u32>,
    bytes: usize,
}

/// How the text of an execution came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rendered {
    /// The text with all its values, of this length.
    Whole(u64),
    /// The text, but not all its values.
    Part(u64),
    /// Not even the text: it was prepared before it could be seen.
    Unknown,
}

impl Statements {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Remembers a statement that the server has accepted.
    pub(super) fn add(&mut self, id: u32, parameters: u16, sql: &[u8], length: u64, mode: Mode) {
        self.remove(id);
        self.last = Some(id);
        if self.known.len() >= MOST || self.bytes + sql.len() > MOST_BYTES {
            return;
        }
        self.bytes += sql.len();
        let prepared = Prepared {
            sql: sql.to_vec(),
            cut: length - sql.len() as u64,
            parameters: usize::from(parameters),
            places: placeholders(sql, mode),
            ..Prepared::default()
        };
        self.known.insert(id, prepared);
    }

    pub(super) fn remove(&mut self, id: u32) {
        if let Some(gone) = self.known.remove(&id) {
            let ahead: usize = gone.ahead.values().map(Vec::len).sum();
            let columns = size_of_val(&*gone.columns);
            self.bytes = self.bytes.saturating_sub(gone.sql.len() + ahead + columns);
        }
    }

    /// Returns the columns of a statement's result.
    pub(super) fn columns(&self, id: u32) -> &[TokenKind] {
        self.known.get(&id).map_or(&[], |known| &known.columns)
    }

    /// Takes note of the columns of a statement's result.
    pub(super) fn set_columns(&mut self, id: u32, columns: &[TokenKind]) {
        let Some(statement) = self.known.get_mut(&id) else {
            return;
        };
        if statement.columns != columns {
            self.bytes -= size_of_val(&*statement.columns);
            statement.columns.clear();
            if self.bytes + size_of_val(columns) <= MOST_BYTES {
                statement.columns.extend_from_slice(columns);
                self.bytes += size_of_val(columns);
            }
        }
    }

    /// Forgets the values that were sent ahead.
    pub(super) fn reset(&mut self, id: u32) {
        if let Some(statement) = self.known.get_mut(&id) {
            for (_, gone) in statement.ahead.drain() {
                self.bytes = self.bytes.saturating_sub(gone.len());
            }
        }
    }

    /// Keeps a piece of a value that is sent ahead of the execution.
    pub(super) fn send_ahead(&mut self, payload: &[u8]) -> Result<u32, Malformed> {
        let mut bytes = Bytes(payload);
        let id = bytes.number(4)? as u32;
        let parameter = bytes.short()?;
        if let Some(statement) = self.known.get_mut(&id)
            && usize::from(parameter) < statement.parameters
            && self.bytes + bytes.0.len() <= MOST_BYTES
        {
            self.bytes += bytes.0.len();
            let value = statement.ahead.entry(parameter).or_default();
            value.extend_from_slice(bytes.0);
        }
        Ok(id)
    }

    /// Returns the statement that is meant.
    pub(super) fn meant(&self, id: u32) -> u32 {
        match id {
            LAST => self.last.unwrap_or(LAST),
            _ => id,
        }
    }

    /// Returns whether a statement was remembered.
    pub(super) fn knows(&self, id: u32) -> bool {
        self.known.contains_key(&self.meant(id))
    }

    /// Writes the text of a statement as it was prepared.
    pub(super) fn text(&self, id: u32, limit: usize, into: &mut Vec<u8>) -> Rendered {
        let mut out = Text::new(into, limit);
        match self.known.get(&self.meant(id)) {
            Some(statement) => {
                out.push(&statement.sql);
                Rendered::Part(out.length + statement.cut)
            }
            None => Rendered::Unknown,
        }
    }

    /// Writes the text that an execution comes to. `payload` is what follows the command; `has_names` says
    /// whether parameters come with names where that is known. Into `sent` go the values in binary, complete as a first
    /// execution has them.
    pub(super) fn execute(
        &mut self,
        payload: &[u8],
        has_names: Option<bool>,
        mode: Mode,
        limit: usize,
        into: &mut Vec<u8>,
        sent: Option<&mut Vec<u8>>,
    ) -> Rendered {
        let mut bytes = Bytes(payload);
        let id = self.meant(bytes.number(4).unwrap_or(0) as u32);
        let Some(statement) = self.known.get_mut(&id) else {
            into.clear();
            return Rendered::Unknown;
        };
        let mut out = Text::new(into, limit);
        let result = fill(statement, &mut bytes, has_names, mode, &mut out, sent);
        let length = out.length + statement.cut;
        let fits = statement.cut > 0 || statement.places.len() == statement.parameters;
        let rendered = match result {
            Ok(()) if fits => Rendered::Whole(length),
            _ => {
                let mut out = Text::new(into, limit);
                out.push(&statement.sql);
                Rendered::Part(out.length + statement.cut)
            }
        };
        // Servers forget them with each execution.
        self.reset(id);
        rendered
    }
}

/// Writes a statement with its values in the place of its placeholders.
fn fill(
    statement: &mut Prepared,
    bytes: &mut Bytes<'_>,
    has_names: Option<bool>,
    mode: Mode,
    out: &mut Text<'_>,
    sent: Option<&mut Vec<u8>>,
) -> Result<(), Malformed> {
    let mut sent = sent.map(|into| Sent::new(into, statement.parameters));
    let flags = bytes.byte()?;
    bytes.number(4)?;
    let tells_count = flags & COUNT_FOLLOWS != 0;
    let mut count = statement.parameters;
    if tells_count {
        count = usize::try_from(bytes.length()?.ok_or(Malformed)?).map_err(|_| Malformed)?;
    }
    if count == 0 {
        out.push(&statement.sql);
        return Ok(());
    }
    if count < statement.parameters || count > usize::from(u16::MAX) {
        return Err(Malformed);
    }
    let nulls = bytes.take(count.div_ceil(8))?;
    if bytes.byte()? == 1 {
        statement.types.clear();
        for _ in 0..count {
            statement.types.push(Type::of(bytes.short()?));
            if has_names.unwrap_or(tells_count) {
                bytes.string()?;
            }
        }
    }
    if statement.types.len() < statement.parameters {
        // They were sent before the capture began.
        return Err(Malformed);
    }
    let mut copied = 0;
    for (number, place) in (0..statement.parameters).zip(&statement.places) {
        let place = *place as usize;
        out.push(&statement.sql[copied..place]);
        copied = place + 1;
        if let Some(ahead) = statement.ahead.get(&(number as u16)) {
            out.bytes(ahead, mode);
            if let Some(sent) = &mut sent {
                sent.ahead(number, statement.types[number], ahead);
            }
        } else if nulls[number / 8] >> (number % 8) & 1 == 1 {
            out.push(b"NULL");
            if let Some(sent) = &mut sent {
                sent.null(number, statement.types[number]);
            }
        } else {
            let before = bytes.0;
            render(bytes, statement.types[number], mode, out)?;
            if let Some(sent) = &mut sent {
                let value = &before[..before.len() - bytes.0.len()];
                sent.value(number, statement.types[number], value);
            }
        }
    }
    out.push(&statement.sql[copied..]);
    Ok(())
}

/// Returns how many bytes the attributes before a statement's text take.
pub(super) fn attributes(payload: &[u8]) -> Result<usize, Malformed> {
    let mut bytes = Bytes(payload);
    let count = bytes.length()?.ok_or(Malformed)?;
    bytes.length()?.ok_or(Malformed)?;
    let count = usize::try_from(count).map_err(|_| Malformed)?;
    if count > usize::from(u16::MAX) {
        return Err(Malformed);
    }
    if count > 0 {
        let nulls = bytes.take(count.div_ceil(8))?;
        if bytes.byte()? != 1 {
            return Err(Malformed);
        }
        let mut types = Vec::new();
        for _ in 0..count {
            types.push(Type::of(bytes.short()?));
            bytes.string()?;
        }
        let (mut dropped, mode) = (Vec::new(), Mode::default());
        for (number, kind) in types.into_iter().enumerate() {
            if nulls[number / 8] >> (number % 8) & 1 == 0 {
                render(&mut bytes, kind, mode, &mut Text::new(&mut dropped, 0))?;
            }
        }
    }
    Ok(payload.len() - bytes.0.len())
}

/// Returns where the placeholders of a statement are.
pub(super) fn placeholders(sql: &[u8], mode: Mode) -> Vec<u32> {
    code(sql, mode)
        .filter(|token| token.is_sign(b'?'))
        .map(|token| token.start as u32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_placeholders_are_placeholders() {
        for (sql, expected) in [
            (&b"SELECT ?, '?', \"?\", `?`, ?"[..], 2),
            (b"SELECT 'it''s ?', 'a\\'?', ? -- ?\n, ?", 2),
            (b"SELECT /* ? */ ? /*! , ? */ /*M!100100 , ? */ # ?", 3),
            (b"SELECT 1--?", 1),
            (b"SELECT 'open ?", 0),
            (b"", 0),
        ] {
            let found = placeholders(sql, Mode::default());
            assert_eq!(found.len(), expected, "{}", String::from_utf8_lossy(sql));
        }
    }

    fn run(statements: &mut Statements, payload: &[u8]) -> (Rendered, String) {
        let mut into = Vec::new();
        let how = statements.execute(payload, None, Mode::default(), 100, &mut into, None);
        (how, String::from_utf8(into).unwrap())
    }

    #[test]
    fn types_are_remembered_and_values_sent_ahead_come_in() {
        let mut all = Statements::default();
        all.add(7, 2, b"SELECT ?, '?', ?", 16, Mode::default());
        let first = [7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0xFD, 0, 5, 1, b'x'];
        assert_eq!(run(&mut all, &first).1, "SELECT 5, '?', 'x'");
        // NULL, and types as before; the last prepared by MariaDB's number.
        let second = [0xFF, 0xFF, 0xFF, 0xFF, 0, 1, 0, 0, 0, 2, 0, 6];
        assert_eq!(run(&mut all, &second).1, "SELECT 6, '?', NULL");
        all.send_ahead(&[7, 0, 0, 0, 1, 0, b'l', b'o']).unwrap();
        all.send_ahead(&[7, 0, 0, 0, 1, 0, b'n', b'g']).unwrap();
        let third = [7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 6];
        assert_eq!(run(&mut all, &third).1, "SELECT 6, '?', 'long'");
        assert_eq!(all.bytes, 16);
        assert!(all.known[&7].ahead.is_empty());
    }

    #[test]
    fn values_are_sent_again_complete() {
        let mut all = Statements::default();
        all.add(7, 2, b"SELECT ?, ?", 11, Mode::default());
        let mut sent = |payload: &[u8], ahead: &[u8]| {
            if !ahead.is_empty() {
                all.send_ahead(&[&[7, 0, 0, 0, 1, 0], ahead].concat())
                    .unwrap();
            }
            let (mut into, mut sent) = (Vec::new(), Vec::new());
            let mode = Mode::default();
            all.execute(payload, None, mode, 100, &mut into, Some(&mut sent));
            sent
        };
        let first = [
            7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0x80, 0xFD, 0, 5, 1, b'x',
        ];
        let types = [1, 1, 0x80, 0xFD, 0];
        assert_eq!(sent(&first, b""), [&[0], &types[..], b"\x05\x01x"].concat());
        // Types as before: a NULL, then a value that was sent ahead.
        let second = [7, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 6];
        assert_eq!(sent(&second, b""), [&[2], &types[..], &[6]].concat());
        let third = [7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 6];
        let long = [&[0], &types[..], b"\x06\x04long"].concat();
        assert_eq!(sent(&third, b"long"), long);
    }

    #[test]
    fn attributes_are_passed_over() {
        let mut all = Statements::default();
        all.add(1, 1, b"SELECT ?", 8, Mode::default());
        let payload = [
            1, 0, 0, 0, 8, 1, 0, 0, 0, 2, 0, 1, 1, 0, 0, 0xFD, 0, 1, b'a', 9, 1, b'v',
        ];
        let (how, text) = run(&mut all, &payload);
        assert_eq!((how, &*text), (Rendered::Whole(8), "SELECT 9"));
    }

    #[test]
    fn what_is_not_known_is_said() {
        let mut all = Statements::default();
        assert_eq!(run(&mut all, &[1, 0, 0, 0]).0, Rendered::Unknown);
        all.add(1, 1, b"SELECT ?", 8, Mode::default());
        // The types were sent before.
        let payload = [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 9];
        let (how, text) = run(&mut all, &payload);
        assert_eq!((how, &*text), (Rendered::Part(8), "SELECT ?"));
    }
}
