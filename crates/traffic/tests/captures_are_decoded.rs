//! Does a capture give what both sides said, whatever its form, and whatever the network did to its packets?

mod packets;
#[allow(dead_code)] // The decoder's own tests ask for more of it.
#[path = "../../wire/tests/talk/mod.rs"]
mod talk;

use evenkeel_op::Cancel;
use evenkeel_testkit::effort::{rounds, seed};
use evenkeel_traffic::capture::{Capture, Options};
use evenkeel_traffic::{Command, Coverage, Source, Statement};
use packets::{Form, PLAIN, Part, framed, internet, parts};
use proptest::prelude::*;
use talk::{COLUMN, EOF, OK, Talk, USUAL};

fn conversation(statements: usize) -> Talk {
    let mut talk = Talk::default();
    talk.login(USUAL);
    let long = "x".repeat(300);
    for number in 0..statements {
        talk.query(&format!("SELECT {number}, '{long}'"))
            .server(1, &[&[1], COLUMN, EOF, long.as_bytes(), b"\x011", EOF])
            .query(&format!("UPDATE t SET a = {number}"))
            .server(1, &[OK]);
    }
    talk.client(0, &[1]);
    talk
}

fn text(statement: &Statement<'_>) -> String {
    format!(
        "{:?} {} {:?}",
        statement.command,
        String::from_utf8_lossy(statement.sql),
        statement.rows_sent.unwrap_or(0)
    )
}

fn decoded(file: &[u8]) -> (Vec<String>, Coverage) {
    let mut capture = Capture::new(file, Options::default()).unwrap();
    let mut lines = Vec::new();
    let mut each = |statement: &Statement<'_>| {
        lines.push(text(statement));
        Ok(())
    };
    let coverage = capture.read(&mut each, &Cancel::new()).unwrap();
    (lines, coverage)
}

fn ethernet(parts: &[Part]) -> Vec<Vec<u8>> {
    let packet = |part| framed(1, &internet(part, 50_000, false));
    parts.iter().map(packet).collect()
}

fn expected(statements: usize) -> Vec<String> {
    let mut lines = vec!["Connect  0".to_owned()];
    for number in 0..statements {
        lines.push(format!("Query SELECT {number}, '{}' 2", "x".repeat(300)));
        lines.push(format!("Query UPDATE t SET a = {number} 0"));
    }
    lines.push("Quit  0".to_owned());
    lines
}

#[test]
fn all_forms_of_files_and_frames() {
    let parts = parts(&conversation(5), 1400);
    for link in [0, 1, 101, 113, 276] {
        for bits in 0..16 {
            let form = Form {
                link,
                is_big: bits & 1 != 0,
                is_nano: bits & 2 != 0,
                is_ng: bits & 4 != 0,
            };
            let packet = |part| framed(link, &internet(part, 50_000, bits & 8 != 0));
            let packets: Vec<_> = parts.iter().map(packet).collect();
            let (lines, coverage) = decoded(&form.file(&packets));
            assert_eq!(lines, expected(5), "{form:?}");
            assert_eq!(coverage.packets, packets.len() as u64);
            assert_eq!((coverage.unseen, coverage.undecodable), (0, 0));
        }
    }
}

#[test]
fn what_is_known_of_a_statement() {
    let file = PLAIN.file(&ethernet(&parts(&conversation(1), 100)));
    let mut capture = Capture::new(&file[..], Options::default()).unwrap();
    let mut count = 0;
    let mut each = |statement: &Statement<'_>| {
        count += 1;
        if count == 2 {
            assert_eq!(statement.command, Command::Query);
            assert_eq!(statement.host, Some("10.0.0.1"));
            assert_eq!(
                (statement.user, statement.schema),
                (Some("app"), Some("shop"))
            );
            assert_eq!(statement.session, Some(42));
            // A packet comes each millisecond; the request takes four, the answer five.
            assert_eq!(statement.first_ns, Some(1_000_000));
            assert_eq!(statement.total_ns, Some(4_000_000));
            assert_eq!(statement.bytes_in, Some(5 + 12 + 300));
        }
        Ok(())
    };
    capture.read(&mut each, &Cancel::new()).unwrap();
    assert_eq!(count, 4);
}

#[test]
fn a_capture_may_end_anywhere() {
    let file = PLAIN.file(&ethernet(&parts(&conversation(1), 1400)));
    for length in 24..file.len() {
        let mut capture = Capture::new(&file[..length], Options::default()).unwrap();
        capture.read(&mut |_| Ok(()), &Cancel::new()).unwrap();
    }
    assert!(Capture::new(&b"not a capture"[..], Options::default()).is_err());
}

#[test]
fn ports_are_used_again() {
    let first = parts(&conversation(2), 1400);
    // The second begins without a word about the end of the first, or about its own beginning.
    let mut second = first.clone();
    for part in &mut second {
        part.sequence = part.sequence.wrapping_add(900_000_000);
        part.acknowledged = part.acknowledged.wrapping_add(900_000_000);
    }
    let with_syn = [&first[..first.len() - 4], &second[..]].concat();
    let (lines, _) = decoded(&PLAIN.file(&ethernet(&with_syn)));
    assert_eq!(lines.len(), 5 + 6);
    let without = [&first[..first.len() - 4], &second[8..]].concat();
    let (lines, coverage) = decoded(&PLAIN.file(&ethernet(&without)));
    assert_eq!(lines.len(), 5 + 5);
    assert_eq!(coverage.bytes_missing, 0);
}

#[test]
fn who_sends_a_syn_in_between_hides_nothing() {
    let mut all = parts(&conversation(4), 1400);
    let expected = decoded(&PLAIN.file(&ethernet(&all)));
    let mut syn = all[0].clone();
    syn.sequence = all[8].sequence.wrapping_add(5);
    all.insert(8, syn);
    let (lines, coverage) = decoded(&PLAIN.file(&ethernet(&all)));
    assert_eq!(lines, expected.0);
    assert_eq!(coverage.statements, expected.1.statements);
}

#[test]
fn lost_packets_cost_what_they_held() {
    let pairs = 5000;
    let statements = 2 * pairs as u64;
    let parts = parts(&conversation(pairs), 1400);
    for round in 0..u64::from(rounds("lossy captures", 3, 50)) {
        let seed = seed().wrapping_add(round);
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut lost = 0;
        let kept: Vec<Part> = parts
            .iter()
            .enumerate()
            .filter(|(at, part)| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let is_lost =
                    *at > 10 && random >> 33 < (1 << 31) / 100 && !part.payload.is_empty();
                lost += if is_lost { part.payload.len() } else { 0 };
                !is_lost
            })
            .map(|(_, part)| part.clone())
            .collect();
        let (lines, coverage) = decoded(&PLAIN.file(&ethernet(&kept)));
        let seen = lines
            .iter()
            .filter(|line| line.starts_with("Query"))
            .count() as u64;
        println!("EVENKEEL_SEED={seed}: {seen} of {statements}, {coverage:?}");
        assert!(seen * 100 >= statements * 98, "{seen}");
        assert!(seen < statements);
        // The last packet of a connection is not missed by anybody.
        assert!(coverage.bytes_missing.abs_diff(lost as u64) <= 400);
        // Of several in a row that are missing, one is counted.
        assert!((coverage.unseen + seen).abs_diff(statements) <= statements / 1000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_packets_changes_nothing(
        most in 1usize..700,
        swaps in proptest::collection::vec((3usize..2000, 1usize..5), 0..40),
        repeats in proptest::collection::vec((3usize..2000, 1usize..6), 0..20),
    ) {
        let mut parts = parts(&conversation(3), most);
        let end = parts.len() - 3;
        for (at, far) in swaps {
            let at = 3 + at % (end - 3);
            parts.swap(at, (at + far).min(end - 1));
        }
        for (at, far) in repeats {
            let mut again = parts[at % end].clone();
            // Sent again together with what follows it, as far as that is known.
            if let Some(next) = parts.iter().find(|part| {
                part.side == again.side
                    && part.acknowledged == again.acknowledged
                    && part.sequence == again.sequence.wrapping_add(again.payload.len() as u32)
                    && !again.payload.is_empty()
            }) {
                again.payload.extend_from_slice(&next.payload.clone());
            }
            parts.insert((at % end + far).min(parts.len()), again);
        }
        let (lines, coverage) = decoded(&PLAIN.file(&ethernet(&parts)));
        prop_assert_eq!(lines, expected(3));
        prop_assert_eq!(coverage.bytes_missing, 0);
    }

    #[test]
    fn damage_ends_without_a_panic(
        damage in proptest::collection::vec((24usize..100_000, any::<u8>()), 0..40),
        is_ng: bool,
    ) {
        let form = Form { is_ng, ..PLAIN };
        let mut file = form.file(&ethernet(&parts(&conversation(3), 500)));
        let length = file.len();
        for (at, byte) in damage {
            file[at % length] = byte;
        }
        if let Ok(mut capture) = Capture::new(&file[..], Options::default()) {
            let _ = capture.read(&mut |_| Ok(()), &Cancel::new());
        }
    }

    #[test]
    fn any_bytes_end_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000), is_ng: bool) {
        let head = Form { is_ng, ..PLAIN }.file(&[]);
        let file = [head, bytes].concat();
        let mut capture = Capture::new(&file[..], Options::default()).unwrap();
        let _ = capture.read(&mut |_| Ok(()), &Cancel::new());
    }
}
