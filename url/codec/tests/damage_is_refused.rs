//! Are tables and codes that are damaged refused, and is training the same every time?

mod made;

use evenkeel_urlcodec::{CodeTable, MAX_LEN, Mode, longest_code};
use made::{bytes, random, table, trained};

/// Bytes of a table's head.
const HEAD: usize = 48;

#[test]
fn changed_and_cut_tables_are_refused() {
    let mut rng = random();
    for mode in [Mode::Dense, Mode::Fast] {
        let file = table(mode).file().to_vec();
        // Every bit of the head, some of the rest.
        let bits = (0..8 * HEAD).chain((0..100).map(|_| rng.usize(..8 * file.len())));
        for bit in bits.collect::<Vec<_>>() {
            let mut changed = file.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(CodeTable::read(changed).is_err(), "bit {bit}");
        }
        for len in (0..=HEAD).chain((0..20).map(|_| rng.usize(..file.len()))) {
            assert!(
                CodeTable::read(file[..len].to_vec()).is_err(),
                "{len} bytes"
            );
        }
        assert!(CodeTable::read([file.as_slice(), b"x"].concat()).is_err());
        assert_eq!(CodeTable::read(file).unwrap().mode(), mode);
    }
}

/// The payload behind a head that fits it.
fn sealed(mode: Mode, payload: &[u8]) -> Vec<u8> {
    let mut file = b"EKURLTBL\x01\x00".to_vec();
    file.extend_from_slice(&[mode as u8, 0]);
    file.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    let sum = *blake3::Hasher::new()
        .update(&file)
        .update(payload)
        .finalize()
        .as_bytes();
    [&file, &sum[..], payload].concat()
}

/// A table that may have no sense in it: refused or, if it is one, it codes.
fn is_refused_or_codes(mode: Mode, payload: &[u8], rng: &mut fastrand::Rng) -> bool {
    let Ok(table) = CodeTable::read(sealed(mode, payload)) else {
        return true;
    };
    for text in [
        b"http://news.example.com/\x00\xFFshop".as_slice(),
        b"",
        b"\xFF\xFF",
    ] {
        let code = table.compress(text).unwrap();
        assert!(code.len() <= longest_code(text.len()));
        assert_eq!(table.decompress(&code, 1_000).unwrap(), text);
        let (low, high) = table.prefix(text);
        assert!(low <= code && code < high);
    }
    let _ = table.decompress(&bytes(rng, 20), 1_000);
    false
}

#[test]
fn made_up_tables_do_no_harm() {
    let mut rng = random();
    for mode in [Mode::Dense, Mode::Fast] {
        let payload = table(mode).file()[HEAD..].to_vec();
        assert!(!is_refused_or_codes(mode, &payload, &mut rng));
        let rounds = if cfg!(debug_assertions) { 60 } else { 2_000 };
        for _ in 0..rounds {
            let mut made_up = payload.clone();
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(..made_up.len());
                made_up[at] = rng.u8(..);
            }
            is_refused_or_codes(mode, &made_up, &mut rng);
        }
        // Numbers as large as they get, wherever they stand: none may be believed.
        for _ in 0..rounds {
            let mut made_up = payload.clone();
            let at = rng.usize(..made_up.len() - 4);
            made_up[at..at + 4].fill(255);
            is_refused_or_codes(mode, &made_up, &mut rng);
        }
        for len in [0, 1, 3, 4, 5, 100, 600, 5_000] {
            let cut = &payload[..len.min(payload.len())];
            assert!(is_refused_or_codes(mode, cut, &mut rng), "{len} bytes");
            let made_up = bytes(&mut rng, len);
            assert!(is_refused_or_codes(mode, &made_up, &mut rng));
        }
    }
}

/// The dense table's numbers of buckets and of bytes of records, each with what may be said too much.
#[test]
fn no_memory_is_asked_for_that_a_table_does_not_fill() {
    let mut rng = random();
    let payload = table(Mode::Dense).file()[HEAD..].to_vec();
    let kinds = usize::from(payload[0]);
    let numbers = 1 + kinds + 2 * 256 + 2 * kinds * (361 + 256 * 5 + 7 * 128);
    for at in [numbers, numbers + 4] {
        for number in [0, 1, 1 << 20, 1 << 30, u32::MAX / 4, u32::MAX] {
            let mut made_up = payload.clone();
            made_up[at..at + 4].copy_from_slice(&number.to_le_bytes());
            assert!(
                is_refused_or_codes(Mode::Dense, &made_up, &mut rng),
                "{number}"
            );
        }
    }
    for states in [0, 1 << 16, 1 << 17, u32::MAX] {
        let mut made_up = table(Mode::Fast).file()[HEAD..].to_vec();
        made_up[..4].copy_from_slice(&states.to_le_bytes());
        assert!(
            is_refused_or_codes(Mode::Fast, &made_up, &mut rng),
            "{states}"
        );
    }
}

/// Random codes: an error, or the one code of what they stand for.
#[test]
fn random_codes_end() {
    let mut rng = random();
    let rounds = if cfg!(debug_assertions) {
        20_000
    } else {
        500_000
    };
    for table in [table(Mode::Dense), table(Mode::Fast)] {
        let mut good = 0;
        for _ in 0..rounds {
            let len = rng.usize(..24);
            let mut code = bytes(&mut rng, len);
            if let Ok(text) = table.decompress(&code, MAX_LEN) {
                while code.last() == Some(&0) {
                    code.pop();
                }
                assert_eq!(table.compress(&text), Some(code));
                good += 1;
            }
        }
        println!("{good} of {rounds} were codes");
        assert!(good > 0);
        let long = bytes(&mut rng, 100_000);
        let _ = table.decompress(&long, MAX_LEN);
    }
}

/// Codes with a changed byte, one more or one less: an error, or the one code of another string.
#[test]
fn changed_codes_are_errors_or_other_strings() {
    let mut rng = random();
    for table in [table(Mode::Dense), table(Mode::Fast)] {
        for url in made::urls(&mut rng, 1_000) {
            let mut code = table.compress(&url).unwrap();
            let at = rng.usize(..code.len());
            match rng.u8(..3) {
                0 => code[at] ^= 1 << rng.u8(..8),
                1 => code.insert(at, rng.u8(..)),
                _ => drop(code.remove(at)),
            }
            while code.last() == Some(&0) {
                code.pop();
            }
            let limit = rng.usize(..200);
            if let Ok(text) = table.decompress(&code, limit) {
                assert!(text.len() <= limit);
                assert_eq!(table.compress(&text), Some(code));
            }
        }
    }
}

#[test]
fn cut_codes_are_errors_or_other_strings() {
    let mut rng = random();
    for table in [table(Mode::Dense), table(Mode::Fast)] {
        for url in made::urls(&mut rng, 200) {
            let code = table.compress(&url).unwrap();
            for cut in 0..code.len() {
                assert_ne!(table.decompress(&code[..cut], MAX_LEN).as_ref(), Ok(&url));
            }
        }
    }
}

#[test]
fn the_same_strings_make_the_same_table() {
    for mode in [Mode::Dense, Mode::Fast] {
        let id = trained(mode, 5, false).id();
        assert_eq!(id, trained(mode, 5, true).id());
        assert_ne!(id, trained(mode, 6, false).id());
    }
}
