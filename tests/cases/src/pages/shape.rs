//! Whether two lines differ in nothing but what differs from run to run: numbers with their units, times, hashes.

/// Units of what is measured; they change with the number.
const UNITS: [&str; 15] = [
    "B", "KiB", "MiB", "GiB", "TiB", "µs", "us", "ms", "s", "m", "min", "h", "KB", "MB", "GB",
];

/// Stands for anything on a page.
const ANYTHING: char = '…';
/// Stands for a number here.
const NUMBER: &str = "#";

/// Compares the lines that a page shows with those that were printed. A line of `…` alone stands for any number of
/// lines.
pub(super) fn compare(shown: &[&str], printed: &[&str]) -> Result<(), String> {
    let Some((first, rest)) = shown.split_first() else {
        return match printed.first() {
            Some(line) => Err(format!("the page does not show: {line}")),
            None => Ok(()),
        };
    };
    if first.trim() == ANYTHING.to_string() {
        let fits = (0..=printed.len()).any(|at| compare(rest, &printed[at..]).is_ok());
        let why = || format!("nothing printed fits what stands below {first}: {rest:?}");
        return if fits { Ok(()) } else { Err(why()) };
    }
    match printed.split_first() {
        Some((line, others)) if is_like(first, line) => compare(rest, others),
        Some((line, _)) => Err(format!("the page shows   {first}\nit printed       {line}")),
        None => Err(format!("the page shows, and it did not print: {first}")),
    }
}

/// Returns whether a line that was printed is one that a page shows.
pub(super) fn is_like(shown: &str, printed: &str) -> bool {
    let parts: Vec<String> = shown.split(ANYTHING).map(shape).collect();
    let (first, others) = parts.split_first().expect("a part");
    let printed = shape(printed);
    let Some(last) = others.last() else {
        return *first == printed;
    };
    let Some(mut left) = printed.strip_prefix(first.as_str()) else {
        return false;
    };
    for part in &others[..others.len() - 1] {
        match left.find(part.as_str()) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last.as_str())
}

/// Returns a line with `#` for each number, time or hash; runs of blanks are one.
fn shape(line: &str) -> String {
    let mut pieces: Vec<String> = Vec::new();
    for piece in pieces_of(line) {
        if is_number(&piece) {
            // 12:30, 2.5, 0-1-42, 2026-11-20 10:41:07.
            let joined = pieces.len() > 1
                && pieces[pieces.len() - 2] == NUMBER
                && [".", ":", "-", ","].contains(&pieces[pieces.len() - 1].as_str());
            if joined {
                pieces.pop();
            } else {
                pieces.push(NUMBER.to_owned());
            }
        } else if UNITS.contains(&piece.as_str()) && pieces.ends_with(&[NUMBER.into(), " ".into()])
        {
            pieces.pop();
        } else {
            pieces.push(without_hashes(&piece));
        }
    }
    // 1 m 4 s stands for a time as 9.8 s does; so several numbers in a row are one.
    let mut shape = pieces.concat();
    while shape.contains("# #") {
        shape = shape.replace("# #", "#");
    }
    shape
}

/// Cuts a line into words, runs of blanks as one, and single other characters.
fn pieces_of(line: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut in_word = false;
    for letter in line.trim_end().chars() {
        let is_word = letter.is_alphanumeric() || letter == '_';
        match pieces.last_mut() {
            Some(last) if is_word && in_word => last.push(letter),
            Some(last) if letter == ' ' && last == " " => {}
            _ => pieces.push(letter.to_string()),
        }
        in_word = is_word;
    }
    pieces
}

/// Returns a word with `#` for each part that is a hash, as names of files have them.
fn without_hashes(word: &str) -> String {
    let parts = word.split('_');
    let parts = parts.map(|part| if is_hash(part) { NUMBER } else { part });
    parts.collect::<Vec<_>>().join("_")
}

fn is_hash(word: &str) -> bool {
    let hash = word.strip_prefix("0x").unwrap_or(word);
    let is_hex = hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex && hash.len() >= 8 && hash.bytes().any(|byte| byte.is_ascii_digit())
}

/// Digits, perhaps with a unit, a hash, or the time in a file's name.
fn is_number(word: &str) -> bool {
    let digits = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_stamp = || {
        digits
            .strip_prefix('T')
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let has_digits = digits.len() < word.len();
    (has_digits && (digits.is_empty() || UNITS.contains(&digits) || is_stamp())) || is_hash(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_times_and_units_are_alike() {
        for (shown, printed) in [
            (
                "207 files, 112.8 MiB; read 45.7 KiB",
                "9 files, 3 B; read 1.0 GiB",
            ),
            ("writes paused for 6.0 ms", "writes paused for 1.2 s"),
            (
                "binlog.000001:776, GTID 0-1-3",
                "binlog.000002:3, GTID 0-1-4711",
            ),
            (
                "2026-11-20 22:41:07 to …",
                "2025-01-02 03:04:05 to 2025-01-02",
            ),
            ("0x8f1c22d0 is stored", "0x01020304 is stored"),
            ("a_5aa182e86978004f.so", "a_0123456789abcdef.so"),
            (
                "1  full  10.2 s  155.2 MiB  53.7 MiB  4.8 ms  3883  3295",
                "1  full  1 m 4 s  151.1 MiB  52.7 MiB  27 ms  586  496",
            ),
            ("a   b", "a b"),
            ("x … y … z", "x 1 y 2 z"),
        ] {
            assert!(
                is_like(shown, printed),
                "{} and {}",
                shape(shown),
                shape(printed)
            );
        }
    }

    #[test]
    fn words_are_not() {
        for (shown, printed) in [
            ("1 file", "2 files"),
            ("read 3 B", "stored 3 B"),
            ("/srv/a", "/srv/b"),
            ("a … b", "a"),
            ("a", "a b"),
            ("a_5aa182e86978004f.so", "b_5aa182e86978004f.so"),
        ] {
            assert!(!is_like(shown, printed), "{shown} and {printed}");
        }
    }

    #[test]
    fn lines_come_in_order_and_none_is_left_out() {
        assert!(compare(&["a 1", "b"], &["a 2", "b"]).is_ok());
        assert!(compare(&["a"], &["a", "b"]).is_err());
        assert!(compare(&["a", "b"], &["b", "a"]).is_err());
        assert!(compare(&["a", "…", "d"], &["a", "b", "c", "d"]).is_ok());
        assert!(compare(&["…", "d"], &["a"]).is_err());
    }
}
