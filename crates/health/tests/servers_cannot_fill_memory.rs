//! Is what listens there and says too much, or nonsense, down each time it is asked, and costs no memory?

use evenkeel_health::probe::{Checks, Observed};
use evenkeel_health::reason::Cause;
use evenkeel_health::watch::{Target, Timing, Watch};
use evenkeel_server::options::{ConnectOptions, SslMode};
use evenkeel_testkit::until;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const TIMING: Timing = Timing {
    interval: Duration::from_secs(20),
    timeout: Duration::from_secs(20),
};

/// How a statement is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// One row that has no end.
    LongRow,
    /// Rows that have no end.
    ManyRows,
    /// The same, of so many columns.
    WideRows(u16),
    /// A result that says how many columns it has, and sends them without an end.
    Columns(u64),
    /// Columns whose names are long.
    LongNames,
    /// Results that have no end.
    ManyResults,
    /// A packet with nothing in it.
    Nothing,
}

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&length[..3], &[number], body].concat()
}

/// Protocol 10, no TLS, the oldest login. (MySQL's documentation, "Protocol::HandshakeV10".)
fn greeting() -> Vec<u8> {
    let (low, high) = (0xa203_u16.to_le_bytes(), 0x0008_u16.to_le_bytes());
    let head = [b"\x0a8.0.30\0\x07\0\0\0abcdefgh\0", &low[..]].concat();
    let tail = b"\x15\0\0\0\0\0\0\0\0\0\0abcdefghijkl\0mysql_native_password\0";
    [&head[..], b"\x21\x02\0", &high, tail].concat()
}

const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const END: &[u8] = b"\xfe\0\0\x02\0";
/// An end that announces another result.
const END_OF_MANY: &[u8] = b"\xfe\0\0\x0a\0";

const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0";

/// A number of columns as it is sent.
fn count(columns: u64) -> Vec<u8> {
    [&[0xfe], &columns.to_le_bytes()[..]].concat()
}

/// A result with many columns and no value, and rows without an end.
fn wide_rows(stream: &mut TcpStream, columns: u16) -> io::Result<()> {
    let mut number = 0_u8;
    let mut send = |body: &[u8]| {
        number = number.wrapping_add(1);
        stream.write_all(&packet(number, body))
    };
    send(&count(columns.into()))?;
    for _ in 0..columns {
        send(COLUMN)?;
    }
    send(END)?;
    loop {
        send(&vec![0xfb; usize::from(columns)])?;
    }
}

/// So many columns, it says; what comes has no end.
fn many_columns(stream: &mut TcpStream, columns: u64, name: &str) -> io::Result<()> {
    let mut number = 1_u8;
    stream.write_all(&packet(number, &count(columns)))?;
    let length = u16::try_from(name.len()).unwrap().to_le_bytes();
    let (begin, end) = (
        b"\x03def\0\0\0\xfc",
        b"\0\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0",
    );
    let column = [&begin[..], &length, name.as_bytes(), end].concat();
    loop {
        let mut many = Vec::new();
        for _ in 0..100 {
            number = number.wrapping_add(1);
            many.extend(packet(number, &column));
        }
        stream.write_all(&many)?;
    }
}

/// A result with one column, as far as its rows.
fn head(stream: &mut TcpStream, first: u8) -> io::Result<u8> {
    let mut number = first;
    for body in [&b"\x01"[..], COLUMN, END] {
        stream.write_all(&packet(number, body))?;
        number = number.wrapping_add(1);
    }
    Ok(number)
}

fn answer(stream: &mut TcpStream, how: Answers) -> io::Result<()> {
    match how {
        Answers::Nothing => return stream.write_all(&packet(1, b"")),
        Answers::WideRows(columns) => return wide_rows(stream, columns),
        Answers::Columns(columns) => return many_columns(stream, columns, "a"),
        Answers::LongNames => return many_columns(stream, 4000, &"a".repeat(60_000)),
        Answers::LongRow | Answers::ManyRows | Answers::ManyResults => {}
    }
    let mut number = head(stream, 1)?;
    let megabyte = vec![b'x'; 1 << 20];
    let value = [&b"\xfd\0\0\x01"[..], &vec![b'x'; 1 << 16]].concat();
    loop {
        match how {
            Answers::LongRow => {
                // As long as a packet can be, and another one that continues it.
                stream.write_all(&[0xff, 0xff, 0xff, number])?;
                for _ in 0..15 {
                    stream.write_all(&megabyte)?;
                }
                stream.write_all(&megabyte[1..])?;
            }
            Answers::ManyRows => stream.write_all(&packet(number, &value))?,
            Answers::ManyResults => {
                stream.write_all(&packet(number, END_OF_MANY))?;
                number = head(stream, number.wrapping_add(1))?.wrapping_sub(1);
            }
            _ => return Ok(()),
        }
        number = number.wrapping_add(1);
    }
}

fn talk(mut stream: TcpStream, how: Answers) -> io::Result<()> {
    stream.write_all(&packet(0, &greeting()))?;
    let mut is_in = false;
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let [a, b, c, number] = length;
        let mut body = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        stream.read_exact(&mut body)?;
        let is_asked = body.windows(9).any(|part| part == b"read_only");
        match is_in && is_asked {
            true => answer(&mut stream, how)?,
            false => stream.write_all(&packet(number.wrapping_add(1), OK))?,
        }
        is_in = true;
    }
}

/// Returns the port of something that answers like this.
fn listens(how: Answers) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || talk(stream, how));
        }
    });
    port
}

fn next(watch: &mut Watch) -> Observed {
    let mut found = None;
    until("a probe ends", || {
        found = watch.next(Duration::from_millis(100)).pop();
        found.is_some()
    });
    found.unwrap().1
}

/// The most memory that this process ever had, in bytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse::<u64>().unwrap() << 10
}

fn seen(how: Answers, cause: Cause, said: &str) {
    let options = ConnectOptions {
        ssl_mode: SslMode::Disabled,
        ..ConnectOptions::over_tcp("127.0.0.1", listens(how), "checker")
    };
    for _ in 0..4 {
        let target = Target {
            name: "theirs".to_owned(),
            options: options.clone(),
            checks: Arc::new(Checks::default()),
        };
        let mut watch = Watch::new(vec![target], TIMING);
        let found = next(&mut watch);
        assert_eq!(found.reasons.len(), 1, "{how:?}: {found:?}");
        assert_eq!(found.reasons[0].cause, cause, "{found:?}");
        assert!(found.reasons[0].text.contains(said), "{how:?}: {found:?}");
    }
    assert!(most_memory() < 96 << 20, "{how:?}: {}", most_memory());
}

#[test]
fn rows_and_answers_without_an_end_are_given_up() {
    seen(
        Answers::LongRow,
        Cause::Refused,
        "more than 4.0 MiB in one row",
    );
    seen(
        Answers::ManyRows,
        Cause::Refused,
        "more than 10000 rows or 4.0 MiB",
    );
    seen(Answers::ManyResults, Cause::Refused, "more than 10000 rows");
}

#[test]
fn no_number_of_columns_is_believed() {
    for columns in [1 << 40, 2_000_000_000, 20_000_000, 65_535] {
        let said = format!("sends {columns} columns, more than 4096");
        seen(Answers::Columns(columns), Cause::Refused, &said);
    }
}

#[test]
fn long_names_of_columns_are_given_up() {
    let said = "more than 10000 rows or 4.0 MiB";
    seen(Answers::LongNames, Cause::Refused, said);
}

#[test]
fn columns_of_answers_that_are_given_up_are_freed() {
    let said = "more than 10000 rows or 4.0 MiB";
    for _ in 0..40 {
        seen(Answers::WideRows(4000), Cause::Refused, said);
    }
}

#[test]
fn nonsense_ends_no_thread() {
    seen(Answers::Nothing, Cause::Refused, "sent an invalid packet");
    // Nor does it end the one that asks again.
    let options = ConnectOptions {
        ssl_mode: SslMode::Disabled,
        ..ConnectOptions::over_tcp("127.0.0.1", listens(Answers::Nothing), "checker")
    };
    let target = Target {
        name: "theirs".to_owned(),
        options,
        checks: Arc::new(Checks::default()),
    };
    let timing = Timing {
        interval: Duration::from_millis(500),
        timeout: Duration::from_millis(500),
    };
    let mut watch = Watch::new(vec![target], timing);
    let mut refused = 0;
    until("it was asked and answered four times", || {
        let found = next(&mut watch);
        refused += u32::from(found.reasons[0].text.contains("sent an invalid packet"));
        refused == 4
    });
}
