//! Texts and modes of what makes a difference.

use evenkeel_sql::{Mode, Wide};
use proptest::prelude::*;

const PARTS: [&[u8]; 52] = [
    b"'",
    b"'",
    b"\"",
    b"`",
    b"\\",
    b";",
    b"--",
    b"-- ",
    b"--\x01",
    b"#",
    b"/*",
    b"/*!",
    b"/*!40101 ",
    b"/*M!100100 ",
    b"/*+",
    b"*/",
    b"*",
    b"/",
    b"\n",
    b"\r\n",
    b" ",
    b"\x0b",
    b"\0",
    b"select",
    b"_utf8mb4",
    b"N",
    b"0x1F",
    b"1",
    b"1e",
    b"12.5",
    b".",
    b".5",
    b"1e-3",
    b"+",
    b"@",
    b"@@",
    b"b$",
    b"\xff",
    b"\x81",
    b"\xe0",
    b"\xe3\x81\x82",
    b"?",
    b"(",
    b")",
    b",",
    b":=",
    b"<=>",
    b"->",
    b"'it''s'",
    b"'a\\'b'",
    b"`c``d`",
    b"\\N",
];

/// Any bytes, and what looks like SQL.
pub(crate) fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let parts = proptest::collection::vec(proptest::sample::select(&PARTS[..]), 0..30);
    prop_oneof![
        4 => parts.prop_map(|parts| parts.concat()),
        1 => proptest::collection::vec(any::<u8>(), 0..60),
    ]
}

pub(crate) fn any_mode() -> impl Strategy<Value = Mode> {
    let wide = proptest::sample::select(vec![Wide::No, Wide::Gbk, Wide::Big5, Wide::Sjis]);
    (any::<bool>(), any::<bool>(), wide).prop_map(|(ansi_quotes, no_backslash_escapes, wide)| {
        Mode {
            ansi_quotes,
            no_backslash_escapes,
            wide,
        }
    })
}
