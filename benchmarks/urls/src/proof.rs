//! What must hold for every string: it comes back, codes sort as strings, and the codes between a
//! prefix's bounds are those of the strings with that prefix.

use anyhow::{Context, Result};
use evenkeel_urlcodec::{CodeTable, MAX_LEN, NotACode, longest_code};
use serde_json::{Value, json};

/// Tries all strings, all neighbours and all different prefixes, whole strings among them.
pub(crate) fn corpus(table: &CodeTable, mut texts: Vec<Vec<u8>>) -> Result<Value> {
    texts.sort();
    texts.dedup();
    let mut codes = Vec::with_capacity(texts.len());
    let mut changed = 0;
    for text in &texts {
        let code = table.compress(text).context("a string is too long")?;
        let back = table.decompress(&code, text.len());
        changed += u64::from(back.as_ref() != Ok(text) || code.len() > longest_code(text.len()));
        codes.push(code);
    }
    let inversions = codes.windows(2).filter(|pair| pair[0] >= pair[1]).count();
    let (mut prefixes, mut wrong) = (0_u64, 0_u64);
    for (at, text) in texts.iter().enumerate() {
        // Shorter ones were prefixes of the string before as well.
        let known = match at {
            0 => 0,
            _ => 1 + common(text, &texts[at - 1]),
        };
        for len in known..=text.len() {
            let prefix = &text[..len];
            let with = texts[at..].partition_point(|text| text.starts_with(prefix));
            let (low, high) = table.prefix(prefix);
            let from = codes.partition_point(|code| *code < low);
            let to = codes.partition_point(|code| *code < high);
            prefixes += 1;
            wrong += u64::from((from, to) != (at, at + with));
        }
    }
    Ok(json!({
        "strings": texts.len(), "changed": changed, "inversions": inversions,
        "prefixes": prefixes, "wrong_prefixes": wrong,
    }))
}

fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Any bytes as codes: an error, or the one code of a string that is not longer than allowed.
pub(crate) fn random_codes(table: &CodeTable, count: usize, seed: u64) -> Result<Value> {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut good, mut wrong, mut longest) = (0_u64, 0_u64, 0);
    for number in 0..count {
        // Mostly of a URL's length; now and then far more.
        let len = random.usize(..if number % 1_000 == 0 { 10_000 } else { 40 });
        let mut code: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
        let limit = if number % 2 == 0 { 4_000 } else { MAX_LEN };
        match table.decompress(&code, limit) {
            Ok(text) => {
                while code.last() == Some(&0) {
                    code.pop();
                }
                good += 1;
                longest = longest.max(text.len());
                wrong += u64::from(text.len() > limit || table.compress(&text) != Some(code));
            }
            Err(NotACode::Nothing | NotACode::TooLong) => {}
        }
    }
    Ok(json!({"tried": count, "were_codes": good, "wrong": wrong, "longest_string": longest}))
}
