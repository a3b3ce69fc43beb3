//! Does the table that comes with the program make the codes that columns hold already?

use evenkeel_urlcodec::CodeTable;

/// BLAKE3 of the codes of [`strings`], each with its length before it.
const CODES: &str = "71aab1facc47cd2b6f39a2c0a283ab9f0cfda77f33018ea9ded8af67cfbbdcfa";

/// Strings that depend on nothing but this function.
fn strings() -> Vec<Vec<u8>> {
    let parts: [&[u8]; 12] = [
        b"http://",
        b"https://",
        b"www.",
        b"github.com/",
        b"example.co.jp/",
        b"wiki/",
        b"%E3%81%82",
        b"index.html",
        b"?q=",
        b"&id=1234",
        b"\x00\x01\xFF\xFE",
        b"A-Z_~.",
    ];
    let mut all = vec![Vec::new(), vec![0; 70], vec![255; 70]];
    for number in 0..4_000_u32 {
        let picks = blake3::hash(&number.to_le_bytes());
        let mut text = Vec::new();
        for pick in &picks.as_bytes()[..1 + number as usize % 12] {
            match usize::from(*pick) % 16 {
                part @ 0..12 => text.extend_from_slice(parts[part]),
                _ => text.push(*pick),
            }
        }
        all.push(text);
    }
    all
}

#[test]
fn the_shipped_table_makes_the_codes_it_always_made() {
    let table = CodeTable::shipped().unwrap();
    assert_eq!(table.id(), "640631a8aef8d5ef");
    let mut hasher = blake3::Hasher::new();
    for text in strings() {
        let code = table.compress(&text).unwrap();
        assert_eq!(table.decompress(&code, text.len()).as_ref(), Ok(&text));
        let (low, high) = table.prefix(&text);
        for bytes in [code, low, high] {
            hasher
                .update(&(bytes.len() as u32).to_le_bytes())
                .update(&bytes);
        }
    }
    assert_eq!(hasher.finalize().to_string(), CODES);
}
