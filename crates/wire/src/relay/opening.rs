//! How a relayed connection opens. The server's greeting says whether it has TLS, and the client asks for it with a
//! packet that counts: if one side has TLS and the other has not, packets of the login have other numbers on each side.

use super::Endpoint;
use super::refusal;
use super::terms::{ForClients, ForServer, Terms};
use crate::greeting::can;
use evenkeel_server::options::SslMode;
use std::io;

const HEADER: usize = 4;
/// The length of a request for TLS: the beginning of a login.
const REQUEST: usize = 32;
/// Longer ones are none that a server would take.
const LONGEST: usize = 1 << 20;
/// The server's number for errors that have none: clients take no number of their own from a server.
const UNREACHABLE: u16 = 1105;

/// What has to be done next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// This goes to the client, and is what it sees.
    ToClient(Vec<u8>),
    /// This goes to the server; the client said it, or the same with other numbers.
    ToServer(Vec<u8>),
    /// This goes to the server, and no client said it.
    AskServer(Vec<u8>),
    /// TLS begins with the client; these bytes belong to it.
    ClientTls(Vec<u8>),
    /// TLS begins with the server.
    ServerTls,
    /// This is the last that the client hears.
    Refuse(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpeningState {
    /// The server speaks first.
    Greeting,
    /// The client asks for TLS or logs in.
    Answer,
    /// The client logs in.
    Login,
    /// They prove it to each other, in numbers that differ.
    Proof,
    Done,
}

/// A connection until both sides are in it.
#[derive(Debug)]
pub struct Opening {
    terms: Terms,
    state: OpeningState,
    server_has_tls: bool,
    client_has_tls: bool,
    /// How much higher the client's numbers are.
    shift: u8,
    /// What came of a packet, by client and server.
    parts: [Vec<u8>; 2],
    numbers: [Numbers; 2],
}

/// Where a direction is within its packets, while their numbers are changed.
#[derive(Debug, Default)]
struct Numbers {
    header: Vec<u8>,
    left: usize,
    /// The next byte is a payload's first.
    is_first: bool,
    /// The packet is the server's verdict.
    ends: bool,
}

impl Opening {
    /// Starts before anything was said.
    #[must_use]
    pub fn new(terms: &Terms) -> Self {
        Self {
            terms: terms.clone(),
            state: match terms {
                Terms::Pass => OpeningState::Done,
                Terms::Own { .. } => OpeningState::Greeting,
            },
            server_has_tls: false,
            client_has_tls: false,
            shift: 0,
            parts: [Vec::new(), Vec::new()],
            numbers: [Numbers::default(), Numbers::default()],
        }
    }

    /// Returns whether all passes as it is from now on.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == OpeningState::Done
    }

    /// Returns whether the server has TLS and the client was not offered it.
    #[must_use]
    pub fn hides_tls(&self) -> bool {
        self.server_has_tls && self.clients().is_none()
    }

    /// Begins TLS with the client.
    ///
    /// # Errors
    ///
    /// When it cannot be set up.
    pub fn begin_client_tls(&self, client: &mut Endpoint, early: Vec<u8>) -> io::Result<()> {
        if let Some(clients) = self.clients() {
            client.begin_tls(clients.begin()?, early);
        }
        Ok(())
    }

    /// Begins TLS with the server.
    ///
    /// # Errors
    ///
    /// When it cannot be set up.
    pub fn begin_server_tls(&self, server: &mut Endpoint) -> io::Result<()> {
        if let Some(wanted) = self.server() {
            server.begin_tls(wanted.begin()?, Vec::new());
        }
        Ok(())
    }

    /// Takes note that TLS with the server came to nothing: where it is only preferred, the next connections do without.
    pub fn server_tls_failed(&self) {
        if let Some(server) = self.server() {
            server.fails();
        }
    }

    fn clients(&self) -> Option<&ForClients> {
        match &self.terms {
            Terms::Own { clients, .. } => clients.as_ref(),
            Terms::Pass => None,
        }
    }

    fn server(&self) -> Option<&ForServer> {
        match &self.terms {
            Terms::Own { server, .. } => Some(server),
            Terms::Pass => None,
        }
    }

    fn insists_on_tls(&self) -> bool {
        self.server()
            .is_some_and(|server| server.mode > SslMode::Preferred)
    }

    /// Takes bytes of the server.
    pub fn server_says(&mut self, bytes: &[u8]) -> Vec<Step> {
        match self.state {
            OpeningState::Greeting => self.greeting(bytes),
            OpeningState::Proof => {
                let mut bytes = bytes.to_vec();
                self.proof(&mut bytes);
                vec![Step::ToClient(bytes)]
            }
            OpeningState::Answer | OpeningState::Login if self.insists_on_tls() => {
                Self::spoke_too_early()
            }
            _ => vec![Step::ToClient(bytes.to_vec())],
        }
    }

    /// Takes bytes of the client.
    pub fn client_says(&mut self, bytes: &[u8]) -> Vec<Step> {
        match self.state {
            OpeningState::Answer | OpeningState::Login => self.answer(bytes),
            OpeningState::Proof => {
                let mut bytes = bytes.to_vec();
                let shift = self.shift;
                self.numbers[0].change(&mut bytes, false, |number| match number {
                    // A command that did not wait for the login's end.
                    0 => 0,
                    _ => number.wrapping_sub(shift),
                });
                vec![Step::ToServer(bytes)]
            }
            // Before the greeting: a proxy's line about the client.
            _ => vec![Step::ToServer(bytes.to_vec())],
        }
    }

    /// Ends a connection in which somebody spoke for the server before TLS began.
    fn spoke_too_early() -> Vec<Step> {
        let text = "the server said more than its greeting before TLS began";
        vec![Step::Refuse(refusal(0, UNREACHABLE, text))]
    }

    fn greeting(&mut self, bytes: &[u8]) -> Vec<Step> {
        let Some((mut packet, rest)) = whole(&mut self.parts[1], bytes) else {
            return Vec::new();
        };
        let Some(flags) = tls_flags(&packet) else {
            // Not a greeting: a refusal, or another protocol.
            self.state = OpeningState::Done;
            packet.extend(rest);
            return vec![Step::ToClient(packet)];
        };
        self.server_has_tls = packet[flags] & TLS != 0;
        if self.insists_on_tls() && !self.server_has_tls {
            let text = "the tap was told to use TLS to the server, which has none";
            return vec![Step::Refuse(refusal(0, UNREACHABLE, text))];
        }
        if self.insists_on_tls() && !rest.is_empty() {
            return Self::spoke_too_early();
        }
        match self.clients() {
            Some(_) => packet[flags] |= TLS,
            None => packet[flags] &= !TLS,
        }
        self.state = match self.clients().is_some() || self.insists_on_tls() {
            true => OpeningState::Answer,
            false => OpeningState::Done,
        };
        packet.extend(rest);
        vec![Step::ToClient(packet)]
    }

    fn answer(&mut self, bytes: &[u8]) -> Vec<Step> {
        let Some((packet, rest)) = whole(&mut self.parts[0], bytes) else {
            return Vec::new();
        };
        let asks = packet.len() == HEADER + REQUEST && packet[HEADER + 1] & TLS != 0;
        if self.state == OpeningState::Answer && asks {
            self.client_has_tls = true;
            self.state = OpeningState::Login;
            return vec![Step::ClientTls(rest)];
        }
        if packet.len() < HEADER + REQUEST {
            // No login that could carry what we would change.
            self.state = OpeningState::Done;
            return vec![Step::ToServer([packet, rest].concat())];
        }
        self.login(packet, rest)
    }

    fn login(&mut self, mut packet: Vec<u8>, rest: Vec<u8>) -> Vec<Step> {
        let wants = self.server().is_some_and(|server| match server.mode {
            SslMode::Disabled => false,
            SslMode::Preferred => self.client_has_tls && !server.has_failed(),
            _ => true,
        });
        let uses = wants && self.server_has_tls;
        let mut steps = Vec::new();
        if uses {
            packet[HEADER + 1] |= TLS;
            let mut request = vec![REQUEST as u8, 0, 0, 1];
            request.extend_from_slice(&packet[HEADER..HEADER + REQUEST]);
            steps.extend([Step::AskServer(request), Step::ServerTls]);
        } else {
            packet[HEADER + 1] &= !TLS;
        }
        packet[3] = 1 + u8::from(uses);
        self.shift = u8::from(self.client_has_tls).wrapping_sub(u8::from(uses));
        self.state = match self.shift {
            0 => OpeningState::Done,
            _ => OpeningState::Proof,
        };
        steps.push(Step::ToServer(packet));
        if !rest.is_empty() {
            steps.extend(self.client_says(&rest));
        }
        steps
    }

    /// Changes the server's numbers until it has agreed or refused.
    fn proof(&mut self, bytes: &mut [u8]) {
        let shift = self.shift;
        let is_over = self.numbers[1].change(bytes, true, |number| number.wrapping_add(shift));
        if is_over {
            self.state = OpeningState::Done;
        }
    }
}

impl Numbers {
    /// Changes the numbers of packets; with `is_server`, stops after one that ends a login, and returns whether there
    /// was one.
    fn change(&mut self, bytes: &mut [u8], is_server: bool, new: impl Fn(u8) -> u8) -> bool {
        let mut at = 0;
        while at < bytes.len() {
            if self.left == 0 && self.header.len() < HEADER {
                self.header.push(bytes[at]);
                if self.header.len() == HEADER {
                    bytes[at] = new(self.header[3]);
                    (self.left, self.is_first) = (length(&self.header), true);
                    if self.left == 0 {
                        self.header.clear();
                    }
                }
                at += 1;
                continue;
            }
            if self.is_first {
                self.ends = is_server && matches!(bytes[at], 0x00 | 0xFF);
                self.is_first = false;
            }
            let count = self.left.min(bytes.len() - at);
            (self.left, at) = (self.left - count, at + count);
            if self.left == 0 {
                self.header.clear();
                if self.ends {
                    return true;
                }
            }
        }
        false
    }
}

/// The bit that says TLS, in the second byte of the capabilities.
const TLS: u8 = (can::TLS >> 8) as u8;

/// Returns where a greeting has the byte that says whether there is TLS.
fn tls_flags(packet: &[u8]) -> Option<usize> {
    let payload = packet.get(HEADER..)?;
    if payload.first() != Some(&10) {
        return None;
    }
    let version = payload.iter().position(|byte| *byte == 0)?;
    // The connection's number, half of the nonce, a zero, the first byte of the capabilities.
    let at = HEADER + version + 1 + 4 + 8 + 1 + 1;
    (at < packet.len()).then_some(at)
}

fn length(header: &[u8]) -> usize {
    usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16
}

/// Gathers a packet; returns it with what came behind it. What is too long to be one is returned as it is.
fn whole(part: &mut Vec<u8>, bytes: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    part.extend_from_slice(bytes);
    if part.len() < HEADER {
        return None;
    }
    let end = HEADER + length(part);
    if end > LONGEST {
        return Some((std::mem::take(part), Vec::new()));
    }
    if part.len() < end {
        return None;
    }
    let rest = part.split_off(end);
    Some((std::mem::take(part), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_server::options::ConnectOptions;
    use proptest::prelude::*;

    fn opening(ssl_mode: SslMode) -> Opening {
        let options = ConnectOptions {
            host: Some("db1".to_owned()),
            ssl_mode,
            ..ConnectOptions::default()
        };
        let server = ForServer::new(&options).unwrap();
        Opening::new(&Terms::Own {
            clients: None,
            server,
        })
    }

    fn packet(number: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![payload.len() as u8, 0, 0, number];
        packet.extend_from_slice(payload);
        packet
    }

    fn greeting(flags: u8) -> Vec<u8> {
        let mut payload = b"\x0a8.0.15\0\x07\0\0\0abcdefgh\0\xff".to_vec();
        payload.push(flags);
        payload.extend_from_slice(&[0; 30]);
        packet(0, &payload)
    }

    /// What both sides say in a login with a change of plugin, with the numbers that they count.
    fn talk(server_first: u8) -> Vec<(bool, Vec<u8>)> {
        let login = [&[0xff, 0xf7, 0, 0][..], &[0; 28], b"app\0\x01xnative\0"].concat();
        let next = |ahead: u8| server_first + ahead;
        vec![
            (true, greeting(0xff)),
            (false, packet(1, &login)),
            (true, packet(next(0), b"\xfeplugin\0nonce")),
            (false, packet(3, b"\0proof")),
            (
                true,
                [
                    packet(next(2), b"\x01\x03"),
                    packet(next(3), b"\0\0\0\x02\0\0\0"),
                ]
                .concat(),
            ),
            (false, packet(0, b"\x03SELECT 1")),
            (true, packet(1, b"\0\0\0\x02\0\0\0")),
        ]
    }

    /// Plays a talk in pieces; returns what the client and the server get.
    fn played(mut opening: Opening, talk: &[(bool, Vec<u8>)], piece: usize) -> [Vec<u8>; 2] {
        let mut got = [Vec::new(), Vec::new()];
        for (is_server, bytes) in talk {
            for bytes in bytes.chunks(piece) {
                let steps = match is_server {
                    true => opening.server_says(bytes),
                    false => opening.client_says(bytes),
                };
                for step in steps {
                    match step {
                        Step::ToClient(bytes) => got[0].extend(bytes),
                        Step::ToServer(bytes) | Step::AskServer(bytes) => got[1].extend(bytes),
                        Step::ServerTls => got[1].extend(b"TLS"),
                        Step::ClientTls(_) | Step::Refuse(_) => panic!("{step:?}"),
                    }
                }
            }
        }
        assert!(opening.is_done());
        got
    }

    fn said(talk: &[(bool, Vec<u8>)], by_server: bool) -> Vec<u8> {
        let own = talk.iter().filter(|(is_server, _)| *is_server == by_server);
        own.flat_map(|(_, bytes)| bytes.clone()).collect()
    }

    #[test]
    fn an_offer_of_tls_is_taken_back_and_nothing_else_is_changed() {
        for piece in 1..200 {
            let talk = talk(2);
            let [client, server] = played(opening(SslMode::Preferred), &talk, piece);
            let mut expected = greeting(0xf7);
            let rest = said(&talk, true).split_off(expected.len());
            expected.extend(rest);
            assert_eq!(client, expected);
            assert_eq!(server, said(&talk, false));
        }
    }

    #[test]
    fn numbers_fit_where_the_server_alone_has_tls() {
        for piece in 1..200 {
            let [client, server] = played(opening(SslMode::Required), &talk(3), piece);
            let mut plain = said(&talk(2), true);
            plain.splice(..greeting(0).len(), greeting(0xf7));
            assert_eq!(client, plain);
            let mut expected = talk(3).swap_remove(1).1;
            (expected[3], expected[5]) = (2, 0xff);
            let asks = packet(1, &expected[4..36]);
            let expected = [
                asks,
                b"TLS".to_vec(),
                expected,
                packet(4, b"\0proof"),
                packet(0, b"\x03SELECT 1"),
            ];
            assert_eq!(server, expected.concat());
        }
    }

    #[test]
    fn nothing_passes_before_tls_that_must_be_there() {
        let mut opening = opening(SslMode::Required);
        let behind = [greeting(0xff), packet(1, b"\xfemysql_clear_password\0")].concat();
        let steps = opening.server_says(&behind);
        assert!(matches!(&steps[..], [Step::Refuse(_)]), "{steps:?}");
        let mut opening = self::opening(SslMode::Required);
        opening.server_says(&greeting(0xff));
        let steps = opening.server_says(&packet(1, b"\xfemysql_clear_password\0"));
        assert!(matches!(&steps[..], [Step::Refuse(_)]), "{steps:?}");
    }

    #[test]
    fn a_server_that_refuses_is_heard() {
        let mut opening = opening(SslMode::Required);
        let refused = packet(0, b"\xff\x10\x04Too many connections");
        assert_eq!(opening.server_says(&refused), [Step::ToClient(refused)]);
        assert!(opening.is_done());
    }

    proptest! {
        #[test]
        fn any_bytes_pass_without_a_panic(
            said in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..20),
            begins in any::<bool>(),
        ) {
            let mut opening = opening(SslMode::Required);
            if begins {
                opening.server_says(&greeting(0xff));
            }
            for (is_server, bytes) in said {
                match is_server {
                    true => opening.server_says(&bytes),
                    false => opening.client_says(&bytes),
                };
            }
        }
    }
}
