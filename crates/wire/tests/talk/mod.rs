//! Conversations between clients and servers, byte by byte, and what they come to.

use evenkeel_wire::watch::{Seen, Side, Watch, command};

/// What both sides say, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Talk {
    pub(crate) said: Vec<(Side, Vec<u8>)>,
}

/// Returns a payload as a packet.
pub(crate) fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let [a, b, c, _] = (payload.len() as u32).to_le_bytes();
    [&[a, b, c, sequence], payload].concat()
}

/// Capabilities of a usual client: protocol 4.1, secure connection, a schema, plugins.
pub(crate) const USUAL: u32 = 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19;
pub(crate) const DEPRECATE_EOF: u32 = 1 << 24;

pub(crate) const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
pub(crate) const EOF: &[u8] = &[0xFE, 0, 0, 2, 0];
pub(crate) const OK_EOF: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];
/// A definition: of what, nobody reads.
pub(crate) const COLUMN: &[u8] =
    b"\x03def\x00\x00\x00\x011\x00\x0c\x3f\x00\x01\x00\x00\x00\x08\x81\x00\x00\x00\x00";

impl Talk {
    pub(crate) fn client(&mut self, sequence: u8, payload: &[u8]) -> &mut Self {
        self.said.push((Side::Client, packet(sequence, payload)));
        self
    }

    /// The server's packets, the first of this number.
    pub(crate) fn server(&mut self, first: u8, payloads: &[&[u8]]) -> &mut Self {
        let numbers = (0..=u8::MAX).cycle().skip(usize::from(first));
        let packets = payloads.iter().zip(numbers);
        let bytes = packets.flat_map(|(payload, number)| packet(number, payload));
        self.said.push((Side::Server, bytes.collect()));
        self
    }

    /// A session begins; both sides can do this.
    pub(crate) fn login(&mut self, capabilities: u32) -> &mut Self {
        self.greeting(capabilities);
        let mut answer = capabilities.to_le_bytes().to_vec();
        answer.extend_from_slice(&[0, 0, 0, 1, 45]);
        answer.extend_from_slice(&[0; 23]);
        answer.extend_from_slice(b"app\0\x14SecretSecretSecret12shop\0mysql_native_password\0");
        self.client(1, &answer);
        self.server(2, &[b"\xfemysql_native_password\0abcdefghijklmnopqrst\0"]);
        self.client(3, b"SecretSecretSecret12");
        self.server(4, &[OK])
    }

    pub(crate) fn greeting(&mut self, capabilities: u32) -> &mut Self {
        let [a, b, c, d] = capabilities.to_le_bytes();
        let mut greeting = b"\x0a8.0.30\0\x2a\0\0\0abcdefgh\0".to_vec();
        greeting.extend_from_slice(&[a, b, 45, 2, 0, c, d, 21]);
        greeting.extend_from_slice(&[0; 10]);
        greeting.extend_from_slice(b"ijklmnopqrst\0mysql_native_password\0");
        self.server(0, &[&greeting])
    }

    pub(crate) fn query(&mut self, sql: &str) -> &mut Self {
        self.client(0, &[&[3], sql.as_bytes()].concat())
    }

    pub(crate) fn prepare(&mut self, sql: &str) -> &mut Self {
        self.client(0, &[&[0x16], sql.as_bytes()].concat())
    }
}

/// A line about a command.
pub(crate) fn line(seen: &Seen<'_>) -> String {
    let name = command::name(seen.command).unwrap_or("Unseen");
    let mut line = format!("{name}: {}", String::from_utf8_lossy(seen.sql));
    if (seen.sql.len() as u64) < seen.sql_bytes {
        line += &format!("… of {}", seen.sql_bytes);
    }
    for (what, count) in [
        ("rows", seen.rows),
        ("affected", seen.affected),
        ("warnings", seen.warnings),
        ("error", u64::from(seen.error.unwrap_or(0))),
    ] {
        if count > 0 {
            line += &format!(" {what}={count}");
        }
    }
    if seen.is_unseen {
        line += " unseen";
    }
    if seen.last_ns.is_none() && !matches!(seen.command, 1 | 0x18 | 0x19) {
        line += " unanswered";
    }
    line
}

/// Decodes a conversation from its beginning.
pub(crate) fn decoded(talk: &Talk) -> Vec<String> {
    run(&mut Watch::new(1000), talk)
}

/// Decodes a conversation.
pub(crate) fn run(watch: &mut Watch, talk: &Talk) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, (side, bytes)) in talk.said.iter().enumerate() {
        watch.bytes(*side, at as i64, bytes, &mut |seen| lines.push(line(seen)));
    }
    watch.end(&mut |seen| lines.push(line(seen)));
    lines
}
