use super::*;
use crate::frame::{self, FrameKind, Header};
use std::os::unix::net::UnixStream;

const SEED: u64 = 0x5eed_0001;

fn carrier(stream: UnixStream) -> Carrier {
    Carrier {
        reader: Box::new(stream.try_clone().unwrap()),
        writer: Box::new(stream.try_clone().unwrap()),
        pushed: 0,
        cut: Box::new(move || drop(stream.shutdown(std::net::Shutdown::Both))),
    }
}

/// A generator of numbers, the same ones for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Copies at most `left` bytes, then breaks the connection.
fn leaky(mut from: UnixStream, mut to: UnixStream, mut left: u64) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length) = from.read(&mut buffer)
            && length > 0
            && left > 0
        {
            let length = length.min(left as usize);
            left -= length as u64;
            if to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(std::net::Shutdown::Both);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

/// Keeps two sides connected by connections that break after a random number of bytes.
fn connect_leakily(one: &Link, other: &Link, mut numbers: Numbers) {
    let (one, other) = (one.clone(), other.clone());
    std::thread::spawn(move || {
        while one.wait_for_loss() {
            let (a, proxy_a) = UnixStream::pair().unwrap();
            let (b, proxy_b) = UnixStream::pair().unwrap();
            let (there, back) = (numbers.below(300_000), numbers.below(300_000));
            leaky(
                proxy_a.try_clone().unwrap(),
                proxy_b.try_clone().unwrap(),
                there,
            );
            leaky(proxy_b, proxy_a, back);
            one.attach(carrier(a));
            other.attach(carrier(b));
        }
    });
}

fn message(numbers: &mut Numbers) -> Vec<u8> {
    let length = numbers.below(20_000);
    (0..length).map(|_| numbers.below(256) as u8).collect()
}

#[test]
fn every_message_arrives_once_and_in_order_over_connections_that_break() {
    eprintln!("seed {SEED}");
    let timeouts = LinkTimeouts {
        stall: Duration::from_secs(60),
        loss: Duration::from_secs(60),
    };
    let (one, other) = (Link::new([7; 16], timeouts), Link::new([7; 16], timeouts));
    connect_leakily(&one, &other, Numbers(SEED));
    let talk = |link: Link, mine: u64, theirs: u64| {
        std::thread::spawn(move || {
            let sender = link.clone();
            let sending = std::thread::spawn(move || {
                let mut numbers = Numbers(mine);
                (0..400).for_each(|_| sender.send(message(&mut numbers)).unwrap());
            });
            let mut numbers = Numbers(theirs);
            for number in 0..400 {
                assert!(
                    link.receive().unwrap() == Some(message(&mut numbers)),
                    "message {number}"
                );
            }
            sending.join().unwrap();
        })
    };
    let talks = [talk(one.clone(), 1, 2), talk(other.clone(), 2, 1)];
    for talk in talks {
        talk.join().unwrap();
    }
    let traffic = one.traffic();
    assert!(traffic.connections > 5, "{traffic:?}");
    // What was on its way when a connection broke is all that goes twice.
    assert!(
        traffic.resent < u64::from(traffic.connections) * 300_000,
        "{traffic:?}"
    );
}

#[test]
fn bye_comes_after_everything_else() {
    let timeouts = LinkTimeouts::default();
    let (one, other) = (Link::new([7; 16], timeouts), Link::new([7; 16], timeouts));
    let (a, b) = UnixStream::pair().unwrap();
    one.attach(carrier(a));
    other.attach(carrier(b));
    one.send(vec![1; 10]).unwrap();
    let closing = std::thread::spawn(move || one.close());
    assert_eq!(other.receive().unwrap(), Some(vec![1; 10]));
    assert_eq!(other.receive().unwrap(), None);
    closing.join().unwrap();
    assert!(other.send(vec![2]).is_err());
}

#[test]
fn a_link_without_a_connection_is_lost() {
    let timeouts = LinkTimeouts {
        stall: Duration::from_secs(60),
        loss: Duration::from_millis(50),
    };
    let link = Link::new([7; 16], timeouts);
    assert_eq!(link.receive().unwrap_err().kind(), ErrorKind::Unreachable);
    assert!(link.send(vec![1]).is_err());
}

#[test]
fn a_silent_connection_is_given_up() {
    let timeouts = LinkTimeouts {
        stall: Duration::from_millis(50),
        loss: Duration::from_secs(60),
    };
    let link = Link::new([7; 16], timeouts);
    let (a, _silent) = UnixStream::pair().unwrap();
    link.attach(carrier(a));
    // Returns once the connection was cut.
    assert!(link.wait_for_loss());
}

#[test]
fn another_session_is_not_listened_to() {
    let timeouts = LinkTimeouts {
        stall: Duration::from_secs(60),
        loss: Duration::from_millis(300),
    };
    let (one, other) = (Link::new([7; 16], timeouts), Link::new([8; 16], timeouts));
    let (a, b) = UnixStream::pair().unwrap();
    one.attach(carrier(a));
    other.attach(carrier(b));
    one.send(vec![1]).unwrap();
    assert!(other.receive().is_err());
}

#[test]
fn who_sends_more_than_is_taken_waits() {
    let timeouts = LinkTimeouts::default();
    let (one, other) = (Link::new([7; 16], timeouts), Link::new([7; 16], timeouts));
    let (a, b) = UnixStream::pair().unwrap();
    one.attach(carrier(a));
    other.attach(carrier(b));
    let sender = one.clone();
    let sending =
        std::thread::spawn(move || (0..20).for_each(|_| sender.send(vec![0; 1 << 20]).unwrap()));
    while one.shared.state().unacked_bytes <= WINDOW {
        std::thread::yield_now();
    }
    assert!(one.shared.state().unacked_bytes <= WINDOW + (1 << 20) + 64);
    assert!(!sending.is_finished());
    (0..20).for_each(|_| drop(other.receive().unwrap()));
    sending.join().unwrap();
}

/// As a host that was taken over: it reads nothing, and waits for nothing.
#[test]
fn who_sends_without_waiting_is_cut_off() {
    for length in [0, 1 << 20] {
        let link = Link::new([7; 16], LinkTimeouts::default());
        let (a, mut hostile) = UnixStream::pair().unwrap();
        link.attach(carrier(a));
        let mut write = |kind, number, payload: &[u8]| {
            let header = Header {
                kind,
                number,
                taken: 0,
            };
            frame::write(&mut hostile, header, payload)
        };
        write(FrameKind::Hello, 0, &[7; 16]).unwrap();
        let payload = vec![0; length];
        let all = (1..1_000_000).try_for_each(|number| write(FrameKind::Data, number, &payload));
        assert!(all.is_err());
        let kept = link.shared.state().inbox_len();
        assert!(
            kept <= (WINDOW + crate::frame::PAYLOAD_MAX) / 64 + 1,
            "{kept}"
        );
        (0..kept).for_each(|_| drop(link.receive().unwrap().unwrap()));
        let error = link.receive().unwrap_err();
        assert!(error.to_string().contains("without waiting"), "{error}");
    }
}
