//! Does every answer of a server that may be anyone's come to an end, within the memory that was allowed?

use evenkeel_server::connect::{Ask, RowLimit};
use evenkeel_server::options::{ConnectOptions, SslMode};
use evenkeel_wire::BoundedSession;
use proptest::prelude::*;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

const LIMIT: RowLimit = RowLimit {
    rows: 50,
    bytes: 64 << 10,
};
/// No packet is longer, in bytes.
const PACKET: usize = 16 << 10;
/// What the statement is that is answered.
const ASKED: &str = "SELECT 'asked'";

const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0";

/// A packet of an answer.
#[derive(Debug, Clone)]
enum Part {
    Count(u64),
    Column,
    End(bool),
    Ok(bool),
    Row(Vec<u8>),
    Bytes(Vec<u8>),
    /// A header that says so, and nothing.
    Header([u8; 4]),
}

fn part() -> impl Strategy<Value = Part> {
    let bytes = |most| proptest::collection::vec(any::<u8>(), 0..most);
    prop_oneof![
        4 => (0u64..4).prop_map(Part::Count),
        1 => any::<u64>().prop_map(Part::Count),
        6 => Just(Part::Column),
        4 => any::<bool>().prop_map(Part::End),
        2 => any::<bool>().prop_map(Part::Ok),
        8 => bytes(200).prop_map(Part::Row),
        1 => bytes(20_000).prop_map(Part::Row),
        2 => bytes(60).prop_map(Part::Bytes),
        1 => any::<[u8; 4]>().prop_map(Part::Header),
    ]
}

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&length[..3], &[number], body].concat()
}

fn sent(part: &Part, number: u8) -> Vec<u8> {
    let more = |more: &bool| if *more { 0x0a } else { 2 };
    let body = match part {
        Part::Count(count @ 0..=250) => vec![*count as u8],
        Part::Count(count) => [&[0xfe], &count.to_le_bytes()[..]].concat(),
        Part::Column => COLUMN.to_vec(),
        Part::End(is_more) => vec![0xfe, 0, 0, more(is_more), 0],
        Part::Ok(is_more) => vec![0, 0, 0, more(is_more), 0, 0, 0],
        Part::Row(value) => {
            let length = u16::try_from(value.len()).unwrap().to_le_bytes();
            [&[0xfc], &length[..], value].concat()
        }
        Part::Bytes(bytes) => bytes.clone(),
        Part::Header(header) => return header.to_vec(),
    };
    packet(number, &body)
}

fn greeting() -> Vec<u8> {
    let (low, high) = (0xa203_u16.to_le_bytes(), 0x0008_u16.to_le_bytes());
    let head = [b"\x0a8.0.30\0\x07\0\0\0abcdefgh\0", &low[..]].concat();
    let tail = b"\x15\0\0\0\0\0\0\0\0\0\0abcdefghijkl\0mysql_native_password\0";
    [&head[..], b"\x21\x02\0", &high, tail].concat()
}

/// Lets a client in, and answers what it asks.
fn talk(mut stream: TcpStream, answer: &[Part]) -> io::Result<()> {
    stream.write_all(&packet(0, &greeting()))?;
    loop {
        let mut head = [0; 4];
        stream.read_exact(&mut head)?;
        let [a, b, c, number] = head;
        let mut body = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
        stream.read_exact(&mut body)?;
        if body.ends_with(ASKED.as_bytes()) {
            let numbers = (1..=u8::MAX).chain(0..=0).cycle();
            for (part, number) in answer.iter().zip(numbers) {
                stream.write_all(&sent(part, number))?;
            }
            return Ok(());
        }
        stream.write_all(&packet(number.wrapping_add(1), OK))?;
    }
}

/// The most memory that this process ever had, in bytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse::<u64>().unwrap() << 10
}

/// Asks what answers so. Returns how many rows came, and their bytes.
fn ask(answer: Vec<Part>) -> (usize, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = ConnectOptions {
        ssl_mode: SslMode::Disabled,
        packet_max: Some(PACKET),
        ..ConnectOptions::over_tcp(
            "127.0.0.1",
            listener.local_addr().unwrap().port(),
            "checker",
        )
    };
    let server = std::thread::spawn(move || talk(listener.accept().unwrap().0, &answer));
    let mut session = BoundedSession::open(&options, LIMIT).unwrap();
    let (mut rows, mut bytes) = (0, 0);
    let _ = session.each(ASKED, &mut |row| {
        rows += 1;
        bytes += row.at(0).map_or(0, str::len);
    });
    drop(session);
    let _ = server.join().unwrap();
    (rows, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_answer_ends(answer in proptest::collection::vec(part(), 0..120)) {
        let (rows, bytes) = ask(answer);
        prop_assert!(rows <= LIMIT.rows);
        // A letter that stands for a byte that is none has three.
        prop_assert!(bytes <= LIMIT.bytes * 3);
        prop_assert!(most_memory() < 64 << 20);
    }
}

#[test]
fn an_answer_within_its_bounds_is_read() {
    let answer = vec![
        Part::Count(1),
        Part::Column,
        Part::End(false),
        Part::Row(b"x".to_vec()),
        Part::Row(b"yz".to_vec()),
        Part::End(false),
    ];
    assert_eq!(ask(answer), (2, 3));
}
