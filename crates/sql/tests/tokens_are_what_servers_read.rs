//! Are tokens told apart as servers do?

use evenkeel_sql::{Lexeme, Lexemes, Mode, TokenKind, Tokens, unquoted};

/// The tokens without blanks, each with its kind's first letter, or `!` where the text ends in it.
fn reported(sql: &str, mode: &str) -> Vec<String> {
    let mut all = Vec::new();
    for token in Tokens::new(sql.as_bytes(), Mode::of(mode)) {
        let kind = match token.kind {
            TokenKind::Blank => continue,
            _ if token.is_cut => '!',
            TokenKind::Comment => 'c',
            TokenKind::Hint => 'h',
            TokenKind::Gate => 'g',
            TokenKind::GateEnd => 'e',
            TokenKind::Word => 'w',
            TokenKind::Name => 'n',
            TokenKind::Text => 't',
            TokenKind::Sign(_) => 's',
        };
        all.push(format!("{kind}{}", &sql[token.start..token.end]));
    }
    all
}

#[test]
fn quotes_hide_what_is_in_them() {
    assert_eq!(
        reported("a`b``,)`'c'',\\')'", ""),
        ["wa", "n`b``,)`", "t'c'',\\')'"]
    );
    assert_eq!(
        reported("\"x\"\"'\",é_1", ""),
        ["t\"x\"\"'\"", "s,", "wé_1"]
    );
    assert_eq!(
        reported("\"a\\\" 'b\\'", "STRICT_ALL_TABLES,ANSI_QUOTES"),
        ["n\"a\\\"", "!'b\\'"]
    );
    assert_eq!(
        reported("'a\\' \"b\\\"", "NO_BACKSLASH_ESCAPES"),
        ["t'a\\'", "t\"b\\\""]
    );
    assert_eq!(reported("\"a\\\"", "ORACLE"), ["n\"a\\\""]);
}

#[test]
fn comments_are_comments() {
    assert_eq!(
        reported("1 -- it's\n2 --x # y\n--\n/* 'a */ /*+ h */ --", ""),
        [
            "w1",
            "c-- it's",
            "w2",
            "s-",
            "s-",
            "wx",
            "c# y",
            "c--",
            "c/* 'a */",
            "h/*+ h */",
            "c--"
        ]
    );
    assert_eq!(reported("--\u{1} it's", ""), ["c--\u{1} it's"]);
    assert_eq!(reported("a*/b", ""), ["wa", "s*", "s/", "wb"]);
}

#[test]
fn executed_comments_are_read() {
    assert_eq!(
        reported("/*!80016 CHECK */ /*M!100108 X*/*/ /*!1a*/", ""),
        [
            "g/*!80016",
            "wCHECK",
            "e*/",
            "g/*M!100108",
            "wX",
            "e*/",
            "s*",
            "s/",
            "g/*!1",
            "wa",
            "e*/"
        ]
    );
    // The first end ends them all, and a comment within them ends nothing.
    assert_eq!(
        reported("/*! a /*! b /* c */ d */ e */", ""),
        [
            "g/*!", "wa", "g/*!", "wb", "c/* c */", "wd", "e*/", "we", "s*", "s/"
        ]
    );
}

#[test]
fn what_has_no_end_is_noticed() {
    for sql in ["'a", "`a``", "/* a", "/*+ a*", "'\\'", "\"\"\""] {
        assert_eq!(reported(sql, ""), [format!("!{sql}")]);
    }
    let mut tokens = Tokens::new(b"/*!50100 a", Mode::default());
    assert_eq!(tokens.by_ref().filter(|token| token.is_cut).count(), 0);
    assert!(tokens.in_gate());
}

#[test]
fn parsers_get_numbers_and_strings_whole() {
    let reported = |sql: &str, mode: &str| {
        let shown = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        Lexemes::new(sql.as_bytes(), Mode::of(mode))
            .map(|lexeme| match lexeme {
                Lexeme::Word(text) => format!("w{}", shown(text)),
                Lexeme::Name(text) => format!("n{}", shown(text)),
                Lexeme::Variable(text) => format!("v{}", shown(text)),
                Lexeme::Text(text) => format!("t{}", shown(text)),
                Lexeme::Number(text) => format!("#{}", shown(text)),
                Lexeme::Sign(text) => format!("s{}", shown(text)),
                Lexeme::Placeholder => "?".to_owned(),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(
        reported("1 .5 1.5e+3-2 0xFG 0xFF 0b12 1e5a t.5 1.", ""),
        [
            "#1", "#.5", "#1.5e+3", "s-", "#2", "w0xFG", "#0xFF", "w0b12", "w1e5a", "wt", "s.",
            "#5", "#1."
        ]
    );
    assert_eq!(
        reported("_utf8mb4'a' N'b' x'0F' a'c' _utf8 'd' _a\"e\"", ""),
        [
            "t_utf8mb4'a'",
            "tN'b'",
            "tx'0F'",
            "wa",
            "t'c'",
            "w_utf8",
            "t'd'",
            "t_a\"e\""
        ]
    );
    assert_eq!(reported("_a\"e\"", "ANSI"), ["w_a", "n\"e\""]);
    assert_eq!(
        reported("@@global.a:=@`b`<=>?", ""),
        ["v@@global.a", "s:=", "v@", "n`b`", "s<=>", "?"]
    );
    assert_eq!(reported("/*!1 a*//*M! b */`c", ""), ["wa", "wb", "t`c"]);
}

#[test]
fn strings_say_what_they_say() {
    let said = |text: &str| String::from_utf8(unquoted(text.as_bytes(), Mode::default())).unwrap();
    assert_eq!(said("_latin1'a''b\\'c\\n\\%\\\\'"), "a'b'c\n\\%\\");
    assert_eq!(
        (said("`a``\\n`"), said("bare")),
        ("a`\\n".into(), "bare".into())
    );
    assert_eq!((said("'a\\"), said("'a")), ("a".into(), "a".into()));
}
