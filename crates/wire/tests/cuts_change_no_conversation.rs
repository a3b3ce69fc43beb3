//! Is a conversation understood alike however it is cut, and does any damage end in a panic?

mod talk;

use evenkeel_wire::watch::{Side, Watch};
use proptest::prelude::*;
use talk::{COLUMN, DEPRECATE_EOF, EOF, OK, OK_EOF, Talk, USUAL, line};

/// A conversation of everything, with or without packets that end definitions.
fn conversation(capabilities: u32) -> Talk {
    let has_eof = capabilities & DEPRECATE_EOF == 0;
    let mut talk = Talk::default();
    talk.login(capabilities);
    for number in 0..4_u8 {
        let last = if has_eof { EOF } else { OK_EOF };
        let mut result = vec![&[1][..], COLUMN];
        let mut prepared = vec![&[0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0][..], COLUMN];
        if has_eof {
            result.push(EOF);
            prepared.push(EOF);
        }
        prepared.push(COLUMN);
        if has_eof {
            prepared.push(EOF);
        }
        result.extend([b"\x00\x00\x011".as_slice(), last]);
        talk.query(&format!("SELECT {number}"))
            .server(1, &result)
            .prepare("SELECT ?")
            .server(1, &prepared)
            .client(0, &[0x17, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, number])
            .server(1, &result)
            .query("LOAD DATA LOCAL INFILE 'f' INTO TABLE t")
            .server(1, &[b"\xfbf"])
            .client(2, b"\x03SELECT 'data'")
            .client(3, b"")
            .server(4, &[OK])
            .client(0, &[0x19, 1, 0, 0, 0])
            .query(&"x".repeat(2000))
            .server(1, &[b"\xff\x28\x04#42000No"]);
    }
    talk
}

fn whole(talk: &Talk) -> Vec<String> {
    talk::decoded(talk)
}

proptest! {
    #[test]
    fn cuts_change_nothing(
        cuts in proptest::collection::vec(1usize..60, 1..400),
        deprecates: bool,
    ) {
        let talk = conversation(USUAL | if deprecates { DEPRECATE_EOF } else { 0 });
        let (mut watch, mut lines) = (Watch::new(1000), Vec::new());
        let mut cuts = cuts.iter().cycle();
        for (side, bytes) in &talk.said {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let count = cuts.next().copied().unwrap_or(1).min(rest.len());
                let (piece, after) = rest.split_at(count);
                watch.bytes(*side, 0, piece, &mut |seen| lines.push(line(seen)));
                rest = after;
            }
        }
        prop_assert_eq!(lines, whole(&talk));
        prop_assert_eq!(watch.counts().undecodable, 0);
    }

    #[test]
    fn any_bytes_end_without_a_panic(
        pieces in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..300)), 0..60),
        is_joined: bool,
    ) {
        let mut watch = if is_joined { Watch::joined(200) } else { Watch::new(200) };
        for (is_client, bytes) in &pieces {
            let side = if *is_client { Side::Client } else { Side::Server };
            watch.bytes(side, 0, bytes, &mut |_| {});
        }
        watch.end(&mut |_| {});
    }

    #[test]
    fn damage_and_loss_end_without_a_panic(
        damage in proptest::collection::vec((0usize..100, 0usize..200, any::<u8>()), 0..12),
        gaps in proptest::collection::vec(0usize..100, 0..6),
        is_joined: bool,
        first in 0usize..40,
    ) {
        let mut talk = conversation(USUAL);
        for (which, at, byte) in damage {
            let count = talk.said.len();
            let bytes = &mut talk.said[which % count].1;
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        let mut watch = if is_joined { Watch::joined(300) } else { Watch::new(300) };
        for (at, (side, bytes)) in talk.said.iter().enumerate().skip(first) {
            match gaps.contains(&at) {
                true => watch.gap(*side, &mut |_| {}),
                false => watch.bytes(*side, 0, bytes, &mut |_| {}),
            }
        }
        watch.end(&mut |seen| assert!(seen.sql.len() <= 300 * 4));
    }
}
