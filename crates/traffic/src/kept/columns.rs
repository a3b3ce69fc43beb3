//! What a row has: one list, for who writes, who reads and who documents.

use crate::digest::Counted;
use crate::{Command, Statement};
use evenkeel_wire::Checksum;
use parquet::basic::Type as Physical;

/// What is in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// A time, in microseconds since 1970, UTC.
    Time,
    /// A number with a sign.
    Signed,
    /// Numbers without one, of so many bits.
    Unsigned(u8),
    /// Yes or no.
    Flag,
    /// Text in UTF-8.
    Text,
    /// Bytes.
    Binary,
}

/// A column.
#[derive(Debug)]
pub(super) struct ColumnOf {
    pub(super) name: &'static str,
    pub(super) kind: ColumnKind,
    /// A row may have nothing there.
    pub(super) may_lack: bool,
}

/// A value of a row. Numbers without a sign are kept by their bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    Nothing,
    Number(i64),
    Flag(bool),
    Bytes(&'a [u8]),
}

macro_rules! columns {
    ($($id:ident $name:literal $kind:expr, $lack:literal;)*) => {
        /// The place of a column.
        #[derive(Debug, Clone, Copy)]
        #[repr(usize)]
        #[expect(dead_code, reason = "some columns are for other programs, and never read back")]
        pub(super) enum Column { $($id),* }

        /// All columns, in their order.
        pub(super) const COLUMNS: &[ColumnOf] = &[
            $(ColumnOf { name: $name, kind: $kind, may_lack: $lack }),*
        ];
    };
}

use ColumnKind::{Binary, Flag, Signed, Text, Time, Unsigned};

columns! {
    Capture "capture" Text, false;
    At "time" Time, false;
    AtNs "time_ns" Signed, false;
    Connection "connection" Unsigned(64), false;
    Session "session" Unsigned(32), true;
    Account "account" Text, true;
    Host "host" Text, true;
    Database "database" Text, true;
    Command "command" Text, false;
    CommandNumber "command_number" Unsigned(8), true;
    Sql "sql" Text, false;
    SqlRaw "sql_raw" Binary, true;
    SqlBytes "sql_bytes" Unsigned(64), false;
    IsCut "is_cut" Flag, false;
    IsUnseen "is_unseen" Flag, false;
    Class "class" Text, true;
    Fingerprint "fingerprint" Text, true;
    IsPrepare "is_prepare" Flag, false;
    FirstNs "first_byte_ns" Unsigned(64), true;
    TotalNs "latency_ns" Unsigned(64), true;
    LockNs "lock_ns" Unsigned(64), true;
    RowsSent "rows_sent" Unsigned(64), true;
    RowsExamined "rows_examined" Unsigned(64), true;
    RowsAffected "rows_affected" Unsigned(64), true;
    BytesIn "bytes_in" Unsigned(64), true;
    BytesOut "bytes_out" Unsigned(64), true;
    Warnings "warnings" Unsigned(64), true;
    Failure "error" Unsigned(16), true;
    ChecksumInOrder "checksum_in_order" Unsigned(64), true;
    ChecksumAnyOrder "checksum_any_order" Unsigned(64), true;
    PreparedId "prepared_id" Unsigned(32), true;
    PreparedValues "prepared_values" Binary, true;
}

impl ColumnKind {
    /// Returns how it is stored.
    pub(super) fn physical(self) -> Physical {
        match self {
            Self::Time | Self::Signed | Self::Unsigned(64) => Physical::INT64,
            Self::Unsigned(_) => Physical::INT32,
            Self::Flag => Physical::BOOLEAN,
            Self::Text | Self::Binary => Physical::BYTE_ARRAY,
        }
    }

    fn annotation(self) -> String {
        match self {
            Self::Time => " (TIMESTAMP(MICROS,true))".to_owned(),
            Self::Unsigned(bits) => format!(" (INTEGER({bits},false))"),
            Self::Text => " (STRING)".to_owned(),
            Self::Signed | Self::Flag | Self::Binary => String::new(),
        }
    }
}

/// Returns the schema in Parquet's own words.
pub(super) fn message() -> String {
    let mut text = "message statement {\n".to_owned();
    for column in COLUMNS {
        let need = if column.may_lack {
            "OPTIONAL"
        } else {
            "REQUIRED"
        };
        let kind = column.kind;
        let (physical, name) = (kind.physical(), column.name);
        text.push_str(&format!(
            "  {need} {physical} {name}{};\n",
            kind.annotation()
        ));
    }
    text.push('}');
    text
}

/// What is kept of a statement beside what it has itself.
#[derive(Debug)]
pub(super) struct Beside<'a> {
    /// The capture's name.
    pub(super) capture: &'a str,
    /// Its text in UTF-8; the text itself is kept as well where that is another one.
    pub(super) text: &'a str,
    /// What it counts as.
    pub(super) counted: Option<&'a Counted>,
    /// It is the beginning of a text only.
    pub(super) is_cut: bool,
}

/// Returns the name of a command, and its number where it has no name of its own.
fn command(of: Command) -> (&'static str, Option<u8>) {
    match of {
        Command::Query => ("query", None),
        Command::Prepare => ("prepare", None),
        Command::Execute => ("execute", None),
        Command::Connect => ("connect", None),
        Command::Quit => ("quit", None),
        Command::Other(number) => ("other", Some(number)),
    }
}

/// Returns a statement's row.
pub(super) fn row<'a>(it: &Statement<'a>, beside: &Beside<'a>) -> [Cell<'a>; COLUMNS.len()] {
    let text = |text: Option<&'a str>| text.map_or(Cell::Nothing, |it| Cell::Bytes(it.as_bytes()));
    let number = |it: Option<u64>| it.map_or(Cell::Nothing, |it| Cell::Number(it.cast_signed()));
    let (command, command_number) = command(it.command);
    let is_raw = beside.text.as_bytes() != it.sql;
    let sum = |of: fn(Checksum) -> u64| number(it.checksum.map(of));
    let print = beside.counted.map(|counted| &counted.fingerprint);
    [
        Cell::Bytes(beside.capture.as_bytes()),
        Cell::Number(it.at_ns.div_euclid(1000)),
        Cell::Number(it.at_ns),
        number(Some(it.connection)),
        number(it.session.map(u64::from)),
        text(it.user),
        text(it.host),
        text(it.schema),
        Cell::Bytes(command.as_bytes()),
        number(command_number.map(u64::from)),
        Cell::Bytes(beside.text.as_bytes()),
        if is_raw {
            Cell::Bytes(it.sql)
        } else {
            Cell::Nothing
        },
        number(Some(it.sql_bytes)),
        Cell::Flag(beside.is_cut),
        Cell::Flag(it.is_unseen),
        text(print.map(|print| print.id.as_str())),
        text(print.map(|print| print.text.as_str())),
        Cell::Flag(beside.counted.is_some_and(|counted| counted.is_prepare)),
        number(it.first_ns),
        number(it.total_ns),
        number(it.lock_ns),
        number(it.rows_sent),
        number(it.rows_examined),
        number(it.rows_affected),
        number(it.bytes_in),
        number(it.bytes_out),
        number(it.warnings),
        number(it.error.map(u64::from)),
        sum(|sum| sum.in_order),
        sum(|sum| sum.any_order),
        number(it.statement.map(u64::from)),
        it.values.map_or(Cell::Nothing, Cell::Bytes),
    ]
}

/// Returns the statement of a row; `cell` returns a column's value. `None` where the row is none of a statement.
pub(super) fn statement<'a>(cell: impl Fn(Column) -> Cell<'a>) -> Option<Statement<'a>> {
    let signed = |column| match cell(column) {
        Cell::Number(number) => Some(number),
        _ => None,
    };
    let number = |column| signed(column).map(i64::cast_unsigned);
    let bytes = |column| match cell(column) {
        Cell::Bytes(bytes) => Some(bytes),
        _ => None,
    };
    let text = |column| bytes(column).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let flag = |column| cell(column) == Cell::Flag(true);
    let command = match text(Column::Command)? {
        "query" => Command::Query,
        "prepare" => Command::Prepare,
        "execute" => Command::Execute,
        "connect" => Command::Connect,
        "quit" => Command::Quit,
        _ => Command::Other(u8::try_from(number(Column::CommandNumber)?).ok()?),
    };
    let sql = bytes(Column::SqlRaw).or_else(|| bytes(Column::Sql))?;
    let checksum = number(Column::ChecksumInOrder).zip(number(Column::ChecksumAnyOrder));
    let whole = sql.len() as u64;
    Some(Statement {
        at_ns: signed(Column::AtNs)?,
        connection: number(Column::Connection)?,
        session: number(Column::Session).and_then(|it| u32::try_from(it).ok()),
        user: text(Column::Account),
        host: text(Column::Host),
        schema: text(Column::Database),
        command,
        sql,
        // A text without its values is shorter, and yet whole.
        sql_bytes: match flag(Column::IsCut) {
            true => number(Column::SqlBytes)?.max(whole + 1),
            false => whole,
        },
        is_unseen: flag(Column::IsUnseen),
        first_ns: number(Column::FirstNs),
        total_ns: number(Column::TotalNs),
        lock_ns: number(Column::LockNs),
        rows_sent: number(Column::RowsSent),
        rows_examined: number(Column::RowsExamined),
        rows_affected: number(Column::RowsAffected),
        bytes_in: number(Column::BytesIn),
        bytes_out: number(Column::BytesOut),
        warnings: number(Column::Warnings),
        error: number(Column::Failure).and_then(|it| u16::try_from(it).ok()),
        checksum: checksum.map(|(in_order, any_order)| Checksum {
            in_order,
            any_order,
        }),
        statement: number(Column::PreparedId).and_then(|it| u32::try_from(it).ok()),
        values: bytes(Column::PreparedValues),
    })
}
