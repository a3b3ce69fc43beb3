//! Does every string come back from its code, and do codes sort and begin as the strings do?

mod made;

use evenkeel_urlcodec::{CodeTable, Mode, longest_code};
use made::{bytes, random, table, urls};

/// Strings that are near each other, and strange ones.
fn strings(rng: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = vec![
        vec![],
        vec![0],
        vec![0, 0],
        vec![0, 1],
        vec![1],
        vec![1, 0],
        vec![255],
        vec![255; 2],
        vec![255; 300],
        vec![0; 300],
        vec![254, 255],
        b"http://flipbook.in".to_vec(),
        b"http://flipbook.in/".to_vec(),
        b"https://ja.wikipedia.org/wiki/%e3%81%82%E3".to_vec(),
        "https://ja.wikipedia.org/wiki/\u{3042}\u{3044}".into(),
        b"x".repeat(4_000),
        bytes(rng, 4_000),
        bytes(rng, 65_536),
    ];
    all.extend(urls(rng, 150));
    all.extend((0..100).map(|_| {
        let len = rng.usize(..40);
        bytes(rng, len)
    }));
    for at in 0..all.len() {
        let string = all[at].clone();
        let cut = rng.usize(..=string.len());
        all.push(string[..cut].to_vec());
        for end in [0, 1, b'/', 0xFF] {
            let mut longer = string[..cut].to_vec();
            longer.push(end);
            all.push(longer);
        }
    }
    all.sort();
    all.dedup();
    all
}

fn holds(table: &CodeTable) {
    let mut rng = random();
    let all = strings(&mut rng);
    let codes: Vec<Vec<u8>> = all.iter().map(|s| table.compress(s).unwrap()).collect();
    for (string, code) in all.iter().zip(&codes) {
        assert_eq!(table.decompress(code, usize::MAX).as_ref(), Ok(string));
        assert!(code.len() <= longest_code(string.len()));
        assert_ne!(code.last(), Some(&0));
        let padded = [code.as_slice(), &[0; 3]].concat();
        assert_eq!(table.decompress(&padded, usize::MAX).as_ref(), Ok(string));
    }
    for (at, pair) in codes.windows(2).enumerate() {
        assert!(pair[0] < pair[1], "{:?} and {:?}", all[at], all[at + 1]);
    }
    for number in 0..300 {
        let string = &all[rng.usize(..all.len())];
        // Every third is a whole string.
        let cut = if number % 3 == 0 {
            string.len()
        } else {
            rng.usize(..=string.len())
        };
        let prefix = &string[..cut];
        let (low, high) = table.prefix(prefix);
        for (string, code) in all.iter().zip(&codes) {
            let within = low <= *code && *code < high;
            assert_eq!(
                within,
                string.starts_with(prefix),
                "{prefix:?} of {string:?}"
            );
        }
    }
}

#[test]
fn dense_tables_keep_order() {
    holds(&table(Mode::Dense));
}

#[test]
fn fast_tables_keep_order() {
    holds(&table(Mode::Fast));
}

#[test]
fn the_shipped_table_keeps_order() {
    holds(&CodeTable::shipped().unwrap());
}

#[test]
fn what_is_longer_than_wanted_is_not_made() {
    for mode in [Mode::Dense, Mode::Fast] {
        let table = table(mode);
        let code = table.compress(&b"a".repeat(5_000)).unwrap();
        assert!(table.decompress(&code, 4_999).is_err());
        assert!(table.decompress(&code, 5_000).is_ok());
        assert!(
            table
                .compress(&vec![b'a'; evenkeel_urlcodec::MAX_LEN + 1])
                .is_none()
        );
    }
}
