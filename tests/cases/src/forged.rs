//! Generations that say what no backup would have written.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Puts other facts into a generation, as if the backup had written them.
pub fn forge(repository: &Path, generation: u32, change: impl FnOnce(&mut Value)) {
    let seal = |text: String| format!("{text}blake3 {}\n", blake3::hash(text.as_bytes()));
    let body = |text: &str| {
        let (title, rest) = text.split_once('\n').expect("a generation");
        let (body, _) = rest.rsplit_once("blake3 ").expect("a generation");
        (title.to_owned(), body.to_owned())
    };
    let path = repository.join(format!("generations/{generation}/manifest"));
    let before = fs::read_to_string(&path).expect("a generation");
    let (title, text) = body(&before);
    let mut manifest: Value = serde_json::from_str(&text).expect("a generation");
    change(&mut manifest["facts"]);
    let after = seal(format!(
        "{title}\n{}\n",
        serde_json::to_string_pretty(&manifest).expect("a generation")
    ));
    fs::write(&path, &after).expect("a generation");
    let digest = |text: &str| blake3::hash(text.as_bytes()).to_string();
    let head = repository.join("head");
    let (title, text) = body(&fs::read_to_string(&head).expect("a generation"));
    assert!(text.contains(&digest(&before)));
    let text = text.replace(&digest(&before), &digest(&after));
    fs::write(&head, seal(format!("{title}\n{text}"))).expect("a generation");
}

/// Adds the table `kinds`.`phantom` to a generation's list.
pub fn one_table_more(facts: &mut Value) {
    let record = &mut facts["tables"];
    let digits = record["packed"].as_str().expect("a generation").as_bytes();
    let byte = |pair: &[u8]| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("a generation"), 16)
            .expect("a generation")
    };
    let packed: Vec<u8> = digits.chunks(2).map(byte).collect();
    let mut text = zstd::decode_all(packed.as_slice()).expect("a generation");
    text.extend_from_slice(b"kinds\0phantom\0");
    let packed = zstd::encode_all(text.as_slice(), 1).expect("a generation");
    let digits: String = packed.iter().map(|byte| format!("{byte:02x}")).collect();
    record["packed"] = json!(digits);
    record["tables"] = json!(record["tables"].as_u64().expect("a generation") + 1);
}
