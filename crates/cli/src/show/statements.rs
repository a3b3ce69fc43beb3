//! Statements of clients as they go by. What they say is theirs: nothing of it may drive a terminal.

use super::obeyed::{is_obeyed, numbered};
use evenkeel_op::{Error, Result};
use evenkeel_traffic::{Command, SourceKind, Statement};
use evenkeel_wire::watch::command;
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

/// How they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A line each, for people.
    Line,
    /// Text that a client can run.
    Sql,
    /// A document a line.
    Json,
    /// A slow log.
    SlowLog,
}

/// Whether what follows a text on its last line may be in a comment.
fn may_end_in_a_comment(text: &[u8]) -> bool {
    let last = text.rsplit(|byte| *byte == b'\n').next();
    let last = last.unwrap_or_default();
    last.contains(&b'#') || last.windows(2).any(|two| two == b"--")
}

/// Writes statements to standard output.
#[derive(Debug)]
pub struct Statements {
    form: Form,
    kind: SourceKind,
    out: BufWriter<Stdout>,
    /// Somebody looks on: each is shown at once.
    is_live: bool,
    is_terminal: bool,
    is_closed: bool,
    line: String,
}

impl Statements {
    /// Starts; `kind` is what they were seen by, and `is_live` says that they come as they happen.
    #[must_use]
    pub fn new(form: Form, kind: SourceKind, is_live: bool) -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        Self {
            form,
            kind,
            out: BufWriter::with_capacity(64 << 10, stdout),
            is_live: is_live || is_terminal,
            is_terminal,
            is_closed: false,
            line: String::new(),
        }
    }

    /// Returns whether the reader went away.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Shows a statement; returns whether it has a place in this form.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn show(&mut self, statement: &Statement<'_>) -> Result<bool> {
        self.line.clear();
        match self.form {
            Form::Line => line(statement, self.kind, &mut self.line),
            Form::Json => json(statement, &mut self.line),
            Form::SlowLog => slow_log_head(statement, &mut self.line),
            Form::Sql => {}
        }
        let has_text = matches!(statement.command, Command::Query | Command::Execute);
        let fits = match self.form {
            // What a client cannot run: text that is cut or was not seen.
            Form::Sql => has_text && !statement.is_cut() && !statement.is_unseen,
            // An entry has a time, and none is known of what was not answered.
            Form::SlowLog => statement.total_ns.is_some(),
            Form::Line | Form::Json => true,
        };
        if !fits {
            return Ok(false);
        }
        let written = self.write(statement, has_text);
        self.checked(written)?;
        Ok(true)
    }

    fn write(&mut self, statement: &Statement<'_>, has_text: bool) -> io::Result<()> {
        self.out.write_all(self.line.as_bytes())?;
        if matches!(self.form, Form::Sql | Form::SlowLog) && has_text {
            let text = statement.sql.trim_ascii_end();
            let text = text.strip_suffix(b";").unwrap_or(text);
            if self.is_terminal {
                let mut safe = String::new();
                escape(text, true, &mut safe);
                self.out.write_all(safe.as_bytes())?;
            } else if self.form == Form::SlowLog {
                self.out.write_all(&as_no_entry(text))?;
            } else {
                self.out.write_all(text)?;
            }
            let is_sql = self.form == Form::Sql;
            let ends_a_comment = is_sql && may_end_in_a_comment(text);
            self.out
                .write_all(if ends_a_comment { b"\n;\n" } else { b";\n" })?;
        }
        match self.is_live {
            true => self.out.flush(),
            false => Ok(()),
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        let flushed = if self.is_closed {
            Ok(())
        } else {
            self.out.flush()
        };
        match self.checked(flushed) {
            Err(_) if self.is_closed => Ok(()),
            other => other,
        }
    }

    fn checked(&mut self, result: io::Result<()>) -> Result<()> {
        result.map_err(|error| {
            self.is_closed |= error.kind() == io::ErrorKind::BrokenPipe;
            Error::failed("failed to write to standard output").because(error)
        })
    }
}

/// Appends text that a terminal shows and does not obey; with `keeps_lines`, line breaks and tabs stay.
fn escape(text: &[u8], keeps_lines: bool, out: &mut String) {
    for chunk in text.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\n' | '\t' if keeps_lines => out.push(letter),
                // One line, and as easy to read.
                '\n' | '\t' | '\r' => out.push(' '),
                _ if letter.is_control() => {
                    let _ = write!(out, "\\x{:02x}", u32::from(letter));
                }
                _ if is_obeyed(letter) => {
                    let _ = write!(out, "{}", letter.escape_unicode());
                }
                _ => out.push(letter),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

fn time(at_ns: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or_default()
}

/// Returns what the command is called, where its text does not say so.
fn name(of: Command) -> &'static str {
    match of {
        Command::Query => "Query",
        Command::Prepare => "Prepare",
        Command::Execute => "Execute",
        Command::Connect => "Connect",
        Command::Quit => "Quit",
        Command::Other(command::UNSEEN) => "Not seen",
        Command::Other(number) => command::name(number).unwrap_or("Unknown command"),
    }
}

fn line(it: &Statement<'_>, kind: SourceKind, out: &mut String) {
    let zoned = time(it.at_ns).to_zoned(jiff::tz::TimeZone::system());
    let _ = write!(
        out,
        "{} #{} ",
        zoned.strftime("%H:%M:%S%.6f"),
        it.connection
    );
    escape(it.user.unwrap_or("?").as_bytes(), false, out);
    out.push('@');
    escape(it.host.unwrap_or("?").as_bytes(), false, out);
    out.push(' ');
    escape(it.schema.unwrap_or("-").as_bytes(), false, out);
    match it.total_ns {
        Some(ns) => {
            let ms = ns as f64 / 1e6;
            let _ = write!(out, " {ms:.3} ms");
        }
        None if matches!(it.command, Command::Quit) || !kind.knows_latency() => {}
        None => out.push_str(" no answer"),
    }
    match (it.rows_sent, it.rows_affected) {
        (Some(rows), _) if rows > 0 => {
            let _ = write!(out, " {rows} rows");
        }
        (_, Some(rows)) if rows > 0 => {
            let _ = write!(out, " {rows} changed");
        }
        _ => {}
    }
    if let Some(error) = it.error {
        let _ = write!(out, " error {error}");
    }
    if !matches!(it.command, Command::Query | Command::Execute) {
        let _ = write!(out, " {}", name(it.command));
    }
    if !it.sql.is_empty() {
        out.push(' ');
        escape(it.sql, false, out);
    }
    if it.is_cut() {
        let _ = write!(out, "… ({} bytes)", it.sql_bytes);
    }
    out.push('\n');
}

/// A statement as a document.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    time: String,
    connection: u64,
    session: Option<u32>,
    user: Option<&'a str>,
    host: Option<&'a str>,
    database: Option<&'a str>,
    command: &'static str,
    sql: std::borrow::Cow<'a, str>,
    sql_bytes: u64,
    first_us: Option<f64>,
    latency_us: Option<f64>,
    rows_sent: Option<u64>,
    rows_affected: Option<u64>,
    warnings: Option<u64>,
    error: Option<u16>,
    bytes_in: Option<u64>,
    bytes_out: Option<u64>,
}

fn json(it: &Statement<'_>, out: &mut String) {
    let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1000.0);
    let document = Document {
        schema: "evenkeel/statement/1",
        time: time(it.at_ns).to_string(),
        connection: it.connection,
        session: it.session,
        user: it.user,
        host: it.host,
        database: it.schema,
        command: name(it.command),
        sql: String::from_utf8_lossy(it.sql),
        sql_bytes: it.sql_bytes,
        first_us: us(it.first_ns),
        latency_us: us(it.total_ns),
        rows_sent: it.rows_sent,
        rows_affected: it.rows_affected,
        warnings: it.warnings,
        error: it.error,
        bytes_in: it.bytes_in,
        bytes_out: it.bytes_out,
    };
    // A plain struct: it cannot fail to serialise.
    let line = serde_json::to_string(&document).unwrap_or_default();
    out.push_str(&numbered(&line));
    out.push('\n');
}

/// Returns a text of which no line begins like one that begins an entry of a slow log.
fn as_no_entry(text: &[u8]) -> Vec<u8> {
    let mut safe = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b"#") {
            safe.push(b' ');
        }
        safe.extend_from_slice(line);
    }
    safe
}

/// Appends what comes before the text in a slow log.
fn slow_log_head(it: &Statement<'_>, out: &mut String) {
    let mut user = String::new();
    escape(it.user.unwrap_or("").as_bytes(), false, &mut user);
    // The head of an entry is made of these.
    let user = user.replace(['[', ']', '@', ' '], "_");
    let at = time(it.at_ns);
    let _ = writeln!(out, "# Time: {}", at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"));
    let _ = writeln!(
        out,
        "# User@Host: {user}[{user}] @  [{}]  Id: {:5}",
        it.host.unwrap_or(""),
        it.session.map_or(it.connection, u64::from)
    );
    let _ = writeln!(
        out,
        "# Query_time: {:.6}  Lock_time: {:.6} Rows_sent: {}  Rows_examined: {}",
        it.total_ns.unwrap_or(0) as f64 / 1e9,
        it.lock_ns.unwrap_or(0) as f64 / 1e9,
        it.rows_sent.unwrap_or(0),
        it.rows_examined.unwrap_or(0)
    );
    if let Some(changed) = it.rows_affected {
        let _ = writeln!(
            out,
            "# Rows_affected: {changed}  Bytes_sent: {}",
            it.bytes_out.unwrap_or(0)
        );
    }
    if let Some(schema) = it.schema {
        let mut name = String::new();
        escape(schema.as_bytes(), false, &mut name);
        let _ = writeln!(out, "use {name};");
    }
    let _ = writeln!(out, "SET timestamp={};", at.as_second());
    if !matches!(it.command, Command::Query | Command::Execute) {
        let _ = writeln!(out, "# administrator command: {};", name(it.command));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_at_the_end_is_seen() {
        assert!(may_end_in_a_comment(b"SELECT 1 -- one"));
        assert!(may_end_in_a_comment(b"SELECT 1\n# one"));
        assert!(!may_end_in_a_comment(b"-- one\nSELECT 1"));
        assert!(!may_end_in_a_comment(b""));
    }
}
