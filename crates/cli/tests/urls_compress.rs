//! Do URLs come back from `url`'s lines, sorted and found as before, and are mistakes told?

use evenkeel_testkit::Scratch;
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

fn url(words: &[&str], input: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.arg("url").args(words);
    command.stdin(File::open(input).unwrap()).output().unwrap()
}

/// The answer of a command that has to work.
fn good(words: &[&str], input: &Path) -> Vec<u8> {
    let output = url(words, input);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

fn sorted(lines: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    lines
}

/// URLs in no order, and lines that are none.
fn urls() -> Vec<u8> {
    let mut text = Vec::new();
    for number in 0..400_u32 {
        let mixed = number.wrapping_mul(2_654_435_761) >> 7;
        let host = ["shop", "news", "www"][mixed as usize % 3];
        text.extend(format!("https://{host}.example.com/item/{mixed}?q=%e3%81\n").bytes());
    }
    text.extend(b"\n\x00\x01\xFF\nhttps://shop.example.com\n\xE3\x81\x82\n");
    text
}

/// Checks what `stats` tells against what `train` and `compress` did.
fn counts_are_right(table: &[&str], trained: &Value, (text, made): (&[u8], &[u8]), file: &Path) {
    let stats = good(&[&["stats", "--json"], table].concat(), file);
    let stats: Value = serde_json::from_slice(&stats).unwrap();
    assert_eq!(stats["table_id"], trained["table_id"]);
    assert_eq!(stats["urls"], 403);
    assert_eq!(stats["bytes_in"].as_u64().unwrap(), text.len() as u64 - 404);
    assert_eq!(
        stats["bytes_out"].as_u64().unwrap(),
        (made.len() as u64 - 404) / 2
    );
    assert!(stats["ratio"].as_f64().unwrap() < 0.4, "{stats}");
    assert!(stats["ratio_mean"].as_f64().unwrap() > 0.0, "{stats}");
}

#[test]
fn lines_come_back_sort_and_are_found() {
    let scratch = Scratch::new();
    let (file, codes, table) = (
        scratch.join("urls"),
        scratch.join("codes"),
        scratch.join("table"),
    );
    let text = urls();
    fs::write(&file, &text).unwrap();
    let name = table.to_str().unwrap();
    for mode in ["dense", "fast"] {
        let size = [
            "train",
            "-",
            "--table-size",
            "100K",
            "--mode",
            mode,
            "--output",
            name,
            "--json",
        ];
        let trained: Value = serde_json::from_slice(&good(&size, &file)).unwrap();
        assert!(
            trained["table_bytes"].as_u64().unwrap() <= 100 << 10,
            "{trained}"
        );
        assert!(trained["held_out_ratio"].as_f64().is_some(), "{trained}");
        // Nothing is written over: codes may depend on it.
        assert_eq!(url(&size, &file).status.code(), Some(2));

        let table = ["--table", name];
        let made = good(&[&["compress"], &table[..]].concat(), &file);
        fs::write(&codes, &made).unwrap();
        assert_eq!(good(&[&["decompress"], &table[..]].concat(), &codes), text);

        fs::write(&codes, sorted(&made).concat()).unwrap();
        let back = good(&[&["decompress"], &table[..]].concat(), &codes);
        // Lines sort as strings without their ends.
        let mut wanted: Vec<&[u8]> = text
            .strip_suffix(b"\n")
            .unwrap()
            .split(|b| *b == b'\n')
            .collect();
        wanted.sort_unstable();
        assert_eq!(back.strip_suffix(b"\n").unwrap(), wanted.join(&b'\n'));

        let prefix = b"https://shop.example.com";
        let found = good(
            &[&["grep", "https://shop.example.com"], &table[..]].concat(),
            &codes,
        );
        fs::write(&codes, found).unwrap();
        let found = good(&[&["decompress"], &table[..]].concat(), &codes);
        let wanted: Vec<&[u8]> = wanted
            .into_iter()
            .filter(|line| line.starts_with(prefix))
            .collect();
        assert_eq!(found.strip_suffix(b"\n").unwrap(), wanted.join(&b'\n'));

        counts_are_right(&table, &trained, (&text, &made), &file);
        fs::remove_file(name).unwrap();
    }
}

#[test]
fn what_is_no_code_or_table_is_reported() {
    let scratch = Scratch::new();
    let input = scratch.join("input");
    for (line, exit) in [("zz\n", 1), ("abc\n", 1), ("ffffffff\n", 1), ("\n", 0)] {
        fs::write(&input, line).unwrap();
        let output = url(&["decompress"], &input);
        assert_eq!(output.status.code(), Some(exit), "{line}");
    }
    // Cut where a copy stopped.
    let whole = scratch.join("table");
    fs::write(&input, urls()).unwrap();
    let name = whole.to_str().unwrap();
    good(
        &[
            "train",
            "-",
            "--table-size",
            "100K",
            "--mode",
            "fast",
            "--output",
            name,
            "--no-held-out",
        ],
        &input,
    );
    let file = fs::read(&whole).unwrap();
    fs::write(&whole, &file[..file.len() - 1]).unwrap();
    let output = url(&["compress", "--table", name], &input);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert_eq!(
        url(&["stats", "nothing-there"], &input).status.code(),
        Some(2)
    );
}
