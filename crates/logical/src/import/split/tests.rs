use super::*;
use proptest::prelude::*;

/// A stream that gives what it has in pieces of these sizes, over and over.
struct Pieces<'a> {
    rest: &'a [u8],
    sizes: &'a [usize],
    next: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.next % self.sizes.len()];
        self.next += 1;
        let count = into.len().min(size).min(self.rest.len());
        into[..count].copy_from_slice(&self.rest[..count]);
        self.rest = &self.rest[count..];
        Ok(count)
    }
}

type Found = (Vec<(u64, Vec<u8>)>, Option<String>);

/// What is found in a file without commands of the clients.
fn split(text: &[u8], sizes: &[usize], mode: Mode) -> Found {
    let pieces = Pieces {
        rest: text,
        sizes,
        next: 0,
    };
    let mut splitter = Splitter::new(pieces, 1 << 20);
    splitter.set_mode(mode);
    splitter.set_binary(true);
    let mut found = Vec::new();
    loop {
        match splitter.next_statement() {
            Ok(Some(one)) => found.push((one.line, one.text.to_vec())),
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error.chain())),
        }
    }
}

fn whole(text: &str) -> Vec<(u64, String)> {
    let (found, error) = split(text.as_bytes(), &[usize::MAX], Mode::default());
    assert_eq!(error, None, "{text}");
    let found = found.into_iter();
    found
        .map(|(line, text)| (line, String::from_utf8(text).unwrap()))
        .collect()
}

fn texts(text: &str) -> Vec<String> {
    whole(text).into_iter().map(|(_, text)| text).collect()
}

#[test]
fn strings_names_and_comments_hide_delimiters() {
    assert_eq!(
        texts("a ';' \";\" `;` 1; b 'it''s;' '\\';' ; c /* ; */ 2; d -- ;\n3; e # ;\n4; `\\`;f"),
        [
            "a ';' \";\" `;` 1",
            "b 'it''s;' '\\';'",
            "c /* ; */ 2",
            "d -- ;\n3",
            "e # ;\n4",
            "`\\`",
            "f"
        ]
    );
    assert_eq!(texts("a--1;b - - 2;c/1;"), ["a--1", "b - - 2", "c/1"]);
}

#[test]
fn what_stands_in_front_is_left_out() {
    let text =
        "/*M!999999\\- enable the sandbox mode */ \n-- x\n--\n#y;\n/* ; */ ;;\n/*!40101 SET x */;";
    assert_eq!(whole(text), [(6, "/*!40101 SET x */".to_owned())]);
}

#[test]
fn delimiters_change() {
    let text = "a;\nDELIMITER ;;\nb; c ;;\ndelimiter //  \r\nd;; //\nDelimiter \"$$\"\ne//$$\nDELIMITER ;\n\n f;";
    let wanted = [(1, "a"), (3, "b; c"), (5, "d;;"), (7, "e//"), (10, "f")];
    let found = whole(text);
    let found: Vec<(u64, &str)> = found.iter().map(|(l, t)| (*l, t.as_str())).collect();
    assert_eq!(found, wanted);
    // Inside a statement it is a word like any other.
    assert_eq!(texts("a\ndelimiter x; b"), ["a\ndelimiter x", "b"]);
}

#[test]
fn modes_decide_what_a_backslash_is() {
    let (found, error) = split(
        b"a '\\'; b \"x\\\";",
        &[1],
        Mode {
            no_backslash_escapes: true,
            ..Mode::default()
        },
    );
    assert_eq!((found.len(), error), (2, None));
    let ansi = Mode {
        ansi_quotes: true,
        ..Mode::default()
    };
    let (found, error) = split(b"a '\\';'; b \"x\\\";", &[1], ansi);
    assert_eq!((found.len(), error), (2, None));
}

#[test]
fn what_has_no_end_is_named_with_its_line() {
    for (text, said) in [
        ("a;\nb '", "a string that begins on line 2"),
        ("\n\n/* x", "a comment that begins on line 3"),
        ("`x\n", "a name in backticks that begins on line 1"),
        ("a 'x\\", "a string that begins on line 1"),
    ] {
        let error = split(text.as_bytes(), &[3], Mode::default()).1;
        assert!(error.clone().unwrap().contains(said), "{text}: {error:?}");
    }
}

#[test]
fn a_statement_beyond_the_limit_is_named_and_not_held() {
    let endless = io::repeat(b'x');
    let mut splitter = Splitter::new(io::Cursor::new(b"a;\n").chain(endless), 1 << 20);
    assert_eq!(splitter.next_statement().unwrap().unwrap().line, 1);
    let error = splitter.next_statement().unwrap_err().chain();
    assert!(
        error.contains("line 2") && error.contains("max_allowed_packet"),
        "{error}"
    );
    assert!(splitter.buffer.len() < 4 << 20);
}

/// What a file that may have commands is made of.
fn items(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for sizes in [&[usize::MAX][..], &[1], &[3, 7]] {
        let pieces = Pieces {
            rest: text.as_bytes(),
            sizes,
            next: 0,
        };
        let mut splitter = Splitter::new(pieces, 1 << 20);
        let mut items = Vec::new();
        while let Some(item) = splitter.next_item().unwrap() {
            items.push(match item {
                Item::Statement(one) => {
                    let text = String::from_utf8_lossy(one.text);
                    format!("{}:{} {text}", one.line, one.column)
                }
                Item::Command(command) => format!("{command:?}"),
            });
        }
        assert!(found.is_empty() || found == items, "{found:?} {items:?}");
        found = items;
    }
    found
}

#[test]
fn lines_of_their_own_are_commands() {
    let named = |name: &str, word: &str| format!("{name}({:?})", word.as_bytes());
    assert_eq!(
        items("use a\nSELECT 1;\\u b\n SELECT\nuse c;use `d`;-- x\n  source e f.sql  \n\\. g\n"),
        [
            named("Use", "a"),
            "2:1 SELECT 1".to_owned(),
            named("Use", "b"),
            "3:2 SELECT\nuse c".to_owned(),
            named("Use", "d"),
            named("Source", "e f.sql"),
            named("Source", "g"),
        ]
    );
    assert_eq!(
        items(
            "\\d //\nS //\n\\d ;\n\u{e9}; T\\G U\\g v \\c w \\N;\nstatus\npager less\n/* x */ use\n;"
        ),
        [
            "2:1 S",
            "4:1 \u{e9}",
            "4:4 T",
            "4:8 U",
            "4:17 w \\N",
            "Refused(\"use needs a name of a database\")",
        ]
    );
    assert_eq!(items("\\d ;;\na;b;;"), ["2:1 a;b"]);
    assert_eq!(items("a;\nquit\nb"), ["1:1 a", "Quit", "3:1 b"]);
    assert_eq!(items("a \\q b"), ["1:1 a", "Quit", "1:6 b"]);
    assert_eq!(items("/*M!999999\\- enable */ \nb"), ["Sandbox", "2:1 b"]);
    for refused in [
        "system ls",
        "\\! ls",
        "a \\! ls;",
        "edit",
        "\\y",
        "a \\u b",
        "connect x",
    ] {
        let found = items(refused);
        assert!(found[0].starts_with("Refused"), "{refused}: {found:?}");
    }
}

#[test]
fn a_backslash_at_a_lines_end_is_dropped() {
    assert_eq!(items("a \\\nb;\n\\\nc;\\\n"), ["1:1 a  \nb", "4:1 c"]);
    assert_eq!(items("a;\n\\"), ["1:1 a"]);
    assert_eq!(items("a;\nb\\"), ["1:1 a", "2:1 b"]);
}

#[test]
fn zero_bytes_are_named_unless_the_file_is_binary() {
    let mut splitter = Splitter::new(&b"a;\nb\0;"[..], 100);
    assert!(splitter.next_item().unwrap().is_some());
    let error = splitter.next_item().unwrap_err().chain();
    assert!(error.contains("zero byte"), "{error}");
    assert_eq!(splitter.first(), (2, 1));
}

#[test]
fn half_a_character_is_no_quote() {
    let gbk = Mode {
        wide: Wide::Gbk,
        ..Mode::default()
    };
    let (found, error) = split(b"a '\x81\\', \x81`;b;", &[1], gbk);
    assert_eq!((found.len(), error), (2, None));
    let (_, error) = split(b"a '\x81\\', \x81`;b;", &[1], Mode::default());
    assert!(error.is_some());
}

#[test]
fn comments_of_any_length_need_no_memory() {
    let long = io::repeat(b'-').take(8 << 20);
    let mut splitter = Splitter::new(long.chain(io::Cursor::new(b"\na;")), 1 << 20);
    assert_eq!(splitter.next_statement().unwrap().unwrap().line, 2);
    assert!(splitter.buffer.len() < 2 << 20);
}

/// What is found in a file with commands of the clients, as it is printed, and the error at its end.
fn all_items(text: &[u8], sizes: &[usize], mode: Mode) -> Vec<String> {
    let pieces = Pieces {
        rest: text,
        sizes,
        next: 0,
    };
    let mut splitter = Splitter::new(pieces, 1 << 20);
    splitter.set_mode(mode);
    let mut found = Vec::new();
    loop {
        match splitter.next_item() {
            Ok(Some(item)) => found.push(format!("{item:?}")),
            Ok(None) => return found,
            Err(error) => {
                found.push(error.chain());
                return found;
            }
        }
    }
}

/// Splits with the whole text at hand, byte by byte, by the rules as they are written down.
fn reference(text: &[u8], mode: Mode) -> Option<Vec<Vec<u8>>> {
    let (mut found, mut current, mut at) = (Vec::new(), Vec::<u8>::new(), 0);
    let mut delimiter = b";".to_vec();
    while at < text.len() {
        let rest = &text[at..];
        let leading = current.is_empty();
        let second = rest.get(1).copied();
        let dashes = rest[0] == b'-'
            && second == Some(b'-')
            && (leading || rest.get(2).is_none_or(u8::is_ascii_whitespace));
        let gate = rest.starts_with(b"/*!") || rest.starts_with(b"/*M!");
        let length;
        let mut keep = true;
        if leading && rest[0].is_ascii_whitespace() {
            (length, keep) = (1, false);
        } else if rest.starts_with(&delimiter) && !(leading && is_delimiter(rest)) {
            found.push(std::mem::take(&mut current));
            (length, keep) = (delimiter.len(), false);
        } else if rest[0] == b'#' || dashes {
            let line = rest.iter().position(|b| *b == b'\n');
            (length, keep) = (line.map_or(rest.len(), |l| l + 1), !leading);
        } else if rest.starts_with(b"/*") && (!gate || (leading && rest.starts_with(SANDBOX))) {
            let end = rest[2..].windows(2).position(|two| two == b"*/")?;
            (length, keep) = (end + 4, !leading);
        } else if leading && is_delimiter(rest) {
            let line = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
            let word = rest[9..line].trim_ascii();
            let word = word.split(u8::is_ascii_whitespace).next()?;
            let word = match word {
                [a @ (b'\'' | b'"'), inner @ .., b] if a == b => inner,
                other => other,
            };
            if word.is_empty() || word.contains(&b'\\') {
                return None;
            }
            delimiter = word.to_vec();
            (length, keep) = (line, false);
        } else if let quote @ (b'\'' | b'"' | b'`') = rest[0] {
            let escapes =
                quote != b'`' && !mode.no_backslash_escapes && !(mode.ansi_quotes && quote == b'"');
            let mut end = 1;
            while *rest.get(end)? != quote {
                let pair = mode.wide.is_pair(&rest[end..]);
                let two = pair || (rest[end] == b'\\' && escapes);
                end += if two { 2 } else { 1 };
            }
            length = end + 1;
        } else {
            length = 1 + usize::from(mode.wide.is_pair(rest));
        }
        if keep {
            current.extend_from_slice(&rest[..length]);
        }
        at += length;
    }
    found.push(current);
    let trimmed = found.iter().map(|one| one.trim_ascii_end().to_vec());
    Some(trimmed.filter(|one| !one.is_empty()).collect())
}

/// Texts of what makes a difference.
fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(&b"'"[..]),
        Just(&b"\""[..]),
        Just(&b"`"[..]),
        Just(&b"\\"[..]),
        Just(&b";"[..]),
        Just(&b";;"[..]),
        Just(&b"--"[..]),
        Just(&b"-- "[..]),
        Just(&b"#"[..]),
        Just(&b"/*"[..]),
        Just(&b"/*!40101 "[..]),
        Just(&b"/*M!100100 "[..]),
        Just(&b"/*M!999999\\- x"[..]),
        Just(&b"*/"[..]),
        Just(&b"*"[..]),
        Just(&b"/"[..]),
        Just(&b"\n"[..]),
        Just(&b"\r\n"[..]),
        Just(&b" "[..]),
        Just(&b"\nDELIMITER ;;\n"[..]),
        Just(&b"\ndelimiter //\n"[..]),
        Just(&b"\nDELIMITER ;\n"[..]),
        Just(&b"//"[..]),
        Just(&b"INSERT INTO t VALUES (1)"[..]),
        Just(&b"\xff\x00"[..]),
        Just(&b"\nuse x"[..]),
        Just(&b"\nsource y"[..]),
        Just(&b"\\u z"[..]),
        Just(&b"\x81"[..]),
        Just(&b"\xe3\x81\x82"[..]),
    ];
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

fn any_mode() -> impl Strategy<Value = Mode> {
    let wide = prop_oneof![Just(Wide::No), Just(Wide::Gbk), Just(Wide::Sjis)];
    (any::<bool>(), any::<bool>(), wide).prop_map(|(no_backslash_escapes, ansi_quotes, wide)| {
        Mode {
            no_backslash_escapes,
            ansi_quotes,
            wide,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_cut_gives_the_same_statements(
        text in any_text(),
        sizes in proptest::collection::vec(1usize..20, 1..8),
        mode in any_mode(),
    ) {
        let one = split(&text, &[usize::MAX], mode);
        let other = split(&text, &sizes, mode);
        prop_assert_eq!(&one, &other);
        for (line, statement) in &one.0 {
            let lines = text.split(|byte| *byte == b'\n').nth(*line as usize - 1);
            let first = statement.split(|byte| *byte == b'\n').next().unwrap();
            let lines = lines.unwrap();
            let first = first.trim_ascii_end();
            prop_assert!(lines.windows(first.len().max(1)).any(|part| part == first), "line {}", line);
        }
    }

    #[test]
    fn any_cut_gives_the_same_commands(
        text in any_text(),
        sizes in proptest::collection::vec(1usize..20, 1..8),
        mode in any_mode(),
    ) {
        let one = all_items(&text, &[usize::MAX], mode);
        prop_assert_eq!(one, all_items(&text, &sizes, mode));
    }

    #[test]
    fn a_naive_reader_finds_the_same(text in any_text(), mode in any_mode()) {
        let (found, error) = split(&text, &[usize::MAX], mode);
        let found: Vec<Vec<u8>> = found.into_iter().map(|(_, text)| text).collect();
        match reference(&text, mode) {
            Some(wanted) => prop_assert_eq!((found, error), (wanted, None)),
            None => prop_assert!(error.is_some()),
        }
    }
}
