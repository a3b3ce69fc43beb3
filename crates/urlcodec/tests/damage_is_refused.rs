//! Are tables and codes that are damaged refused, and is training the same every time?

mod made;

use evenkeel_urlcodec::{MAX_LEN, Mode, Table};
use made::{bytes, random, table, trained};

#[test]
fn changed_and_cut_tables_are_refused() {
    let mut rng = random();
    for mode in [Mode::Dense, Mode::Fast] {
        let file = table(mode).file().to_vec();
        for _ in 0..100 {
            let mut changed = file.clone();
            let at = rng.usize(..file.len());
            changed[at] ^= 1 << rng.u8(..8);
            assert!(Table::read(changed).is_err(), "bit of byte {at}");
        }
        for _ in 0..20 {
            assert!(Table::read(file[..rng.usize(..file.len())].to_vec()).is_err());
        }
        assert!(Table::read([file.as_slice(), b"x"].concat()).is_err());
        assert_eq!(Table::read(file).unwrap().mode(), mode);
    }
}

/// A table with a right checksum and no sense in it: refused or, if it is one, it codes.
#[test]
fn made_up_tables_do_no_harm() {
    let mut rng = random();
    for mode in [Mode::Dense, Mode::Fast] {
        let file = table(mode).file().to_vec();
        let rounds = if cfg!(debug_assertions) { 60 } else { 2_000 };
        for _ in 0..rounds {
            let mut made_up = file.clone();
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(48..made_up.len());
                made_up[at] = rng.u8(..);
            }
            let mut hasher = blake3::Hasher::new();
            hasher.update(&made_up[..16]).update(&made_up[48..]);
            let sum = *hasher.finalize().as_bytes();
            made_up[16..48].copy_from_slice(&sum);
            let Ok(table) = Table::read(made_up) else {
                continue;
            };
            let text = b"http://news.example.com/\x00\xFFshop";
            let code = table.compress(text).unwrap();
            assert_eq!(table.decompress(&code, 1_000).unwrap(), text);
            let _ = table.decompress(&bytes(&mut rng, 20), 1_000);
        }
    }
}

/// Random codes: an error, or the one code of what they stand for.
#[test]
fn random_codes_end() {
    let mut rng = random();
    let rounds = if cfg!(debug_assertions) {
        4_000
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
