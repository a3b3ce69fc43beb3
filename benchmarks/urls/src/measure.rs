//! Sizes and speeds. A hundred strings at a time are run through, and the best of several rounds
//! counts: on a machine that does other things as well, that is what comes nearest to its own speed.

use crate::codec::Codec;
use anyhow::Result;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const CHUNK: usize = 100;

pub(crate) fn measure(codec: &mut dyn Codec, texts: &[Vec<u8>], rounds: usize) -> Result<Value> {
    let texts = &texts[..texts.len().min(codec.most())];
    let mut codes = vec![Vec::new(); texts.len()];
    let mut back = Vec::new();
    let (mut changed, mut mean, mut bytes, mut packed) = (0, 0.0, 0, 0);
    for (text, code) in texts.iter().zip(&mut codes) {
        codec.pack(text, code)?;
        codec.unpack(code, &mut back)?;
        changed += usize::from(back != *text);
        bytes += text.len();
        packed += code.len();
        mean += code.len() as f64 / text.len() as f64 / texts.len() as f64;
    }
    let (mut pack, mut unpack) = (Duration::ZERO, Duration::ZERO);
    for (texts, codes) in texts.chunks(CHUNK).zip(codes.chunks(CHUNK)) {
        let (mut packs, mut unpacks) = (Duration::MAX, Duration::MAX);
        for _ in 0..rounds {
            let begun = Instant::now();
            for text in texts {
                codec.pack(text, &mut back)?;
                std::hint::black_box(&back);
            }
            packs = packs.min(begun.elapsed());
            let begun = Instant::now();
            for code in codes {
                codec.unpack(code, &mut back)?;
                std::hint::black_box(&back);
            }
            unpacks = unpacks.min(begun.elapsed());
        }
        pack += packs;
        unpack += unpacks;
    }
    let speed = |time: Duration| (texts.len() as f64 / time.as_secs_f64()).round();
    Ok(json!({
        "table_bytes": codec.table_bytes(), "urls": texts.len(), "changed": changed,
        "total": packed as f64 / bytes as f64, "mean": mean, "inversions": inversions(texts, &codes),
        "packed_per_s": speed(pack), "unpacked_per_s": speed(unpack),
    }))
}

/// Neighbours among the sorted strings whose codes do not rise.
fn inversions(texts: &[Vec<u8>], codes: &[Vec<u8>]) -> usize {
    let mut pairs: Vec<_> = texts.iter().zip(codes).collect();
    pairs.sort();
    pairs.dedup();
    pairs
        .windows(2)
        .filter(|pair| pair[0].1 >= pair[1].1)
        .count()
}
