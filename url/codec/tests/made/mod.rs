//! Strings and tables for tests.
#![allow(dead_code, reason = "each test uses some of it")]

use evenkeel_op::{Cancel, Silent};
use evenkeel_urlcodec::{CodeTable, Mode, Training, train};

/// A source of numbers whose seed is printed; `EVENKEEL_SEED` sets it.
pub(crate) fn random() -> fastrand::Rng {
    let given = std::env::var("EVENKEEL_SEED").ok();
    let seed = given
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("EVENKEEL_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// Any bytes.
pub(crate) fn bytes(rng: &mut fastrand::Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.u8(..)).collect()
}

/// URLs of a few sites.
pub(crate) fn urls(rng: &mut fastrand::Rng, count: usize) -> Vec<Vec<u8>> {
    let words = [
        "news", "shop", "item", "user", "blog", "archive", "photo", "index", "search", "2011",
    ];
    let word = |rng: &mut fastrand::Rng| words[rng.usize(..words.len())];
    let url = |rng: &mut fastrand::Rng| {
        let mut url = format!(
            "http://{}.example.{}/",
            word(rng),
            ["com", "org", "jp"][rng.usize(..3)]
        );
        for _ in 0..rng.usize(..4) {
            url += &format!("{}/", word(rng));
        }
        if rng.bool() {
            url += &format!(
                "{}.html?id={}&q=%E3%81%{:02X}",
                word(rng),
                rng.u32(..100_000),
                rng.u8(..)
            );
        }
        url.into_bytes()
    };
    (0..count).map(|_| url(rng)).collect()
}

/// A small table, always the same.
pub(crate) fn table(mode: Mode) -> CodeTable {
    trained(mode, 1, false)
}

/// A small table of the URLs that a seed makes, forwards or backwards.
pub(crate) fn trained(mode: Mode, seed: u64, backwards: bool) -> CodeTable {
    let made = urls(&mut fastrand::Rng::with_seed(seed), 400);
    let mut texts: Vec<&[u8]> = made.iter().map(Vec::as_slice).collect();
    if backwards {
        texts.reverse();
    }
    let training = Training {
        mode,
        bytes: 100_000,
    };
    train(&texts, training, &Silent, &Cancel::new()).unwrap()
}
