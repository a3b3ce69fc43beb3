//! The fingerprints of pt-query-digest, rule by rule, with what they get wrong: only so are its identifiers ours.

use md5::{Digest as _, Md5};
use regex::bytes::{Regex, Replacer};
use std::borrow::Cow;
use std::sync::LazyLock;

/// What is replaced, in this order, and by what.
static RULES: LazyLock<Vec<(Regex, &'static [u8])>> = LazyLock::new(|| {
    let rules: [(&str, &[u8]); 11] = [
        // Comments of several lines, and of one.
        (r"(?s)/\*[^!].*?\*/", b""),
        (r#"(?:--|#)[^'"\r\n]*(?P<end>[\r\n]|\z)"#, b"${end}"),
        // Quotes that are part of a string, then strings.
        (r#"\\["']"#, b""),
        (r#"(?s)".*?""#, b"?"),
        (r"(?s)'.*?'", b"?"),
        (r"(?i)\bfalse\b|\btrue\b", b"?"),
        // Anything that resembles a number, and what is left of it.
        (r"[0-9+-][0-9a-f.xb+-]*", b"?"),
        (r"[xb.+-]\?", b"?"),
        (r"\A\s+", b""),
        (r"\n\z", b""),
        (r"[ \n\t\r\f]+", b" "),
    ];
    rules
        .into_iter()
        .filter_map(|(rule, by)| Some((compiled(rule)?, by)))
        .collect()
});

/// The same after letters are small.
static SMALL: LazyLock<Vec<(Regex, &'static [u8])>> = LazyLock::new(|| {
    let rules: [(&str, &[u8]); 2] = [
        (r"\bnull\b", b"?"),
        (
            r"\b(?P<list>in|values?)(?:[\s,]*\([\s?,]*\))+",
            b"${list}(?+)",
        ),
    ];
    rules
        .into_iter()
        .filter_map(|(rule, by)| Some((compiled(rule)?, by)))
        .collect()
});

static SHORT: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let rules = [
        r"\ASELECT /\*!40001 SQL_NO_CACHE \*/ \* FROM `",
        r"/\*\w+\.\w+:[0-9]/[0-9]\*/",
        r"(?i)\A\s*(call\s+\S+)\(",
        r"(?is)\A((?:INSERT|REPLACE)(?: IGNORE)?\s+INTO.+?VALUES\s*\(.*?\))\s*,\s*\(",
        r"(?i)\Ause \S+\n?\z",
        r"\blimit \?(?:, ?\?| offset \?)?",
        r"\bselect\s",
    ];
    rules.into_iter().filter_map(compiled).collect()
});

/// The rules are constants: a test compiles them all.
fn compiled(rule: &str) -> Option<Regex> {
    regex::bytes::RegexBuilder::new(rule)
        .unicode(false)
        .build()
        .ok()
}

/// Returns the fingerprint that pt-query-digest gives a statement.
#[must_use]
pub fn percona(sql: &[u8]) -> Vec<u8> {
    let [mysqldump, toolkit, call, rows, used, limit, _] = &SHORT[..] else {
        return sql.to_vec();
    };
    if mysqldump.is_match(sql) {
        return b"mysqldump".to_vec();
    }
    if toolkit.is_match(sql) {
        return b"percona-toolkit".to_vec();
    }
    if sql.starts_with(b"administrator command: ") {
        return sql.to_vec();
    }
    let group = |rule: &Regex| {
        let found = rule.captures(sql)?.get(1)?;
        Some(found.as_bytes())
    };
    if let Some(call) = group(call) {
        return call.to_ascii_lowercase();
    }
    let mut text = Cow::Borrowed(group(rows).unwrap_or(sql));
    for (number, (rule, by)) in RULES.iter().enumerate() {
        if number == 2 && used.is_match(&text) {
            return b"use ?".to_vec();
        }
        text = replaced(rule, text, *by);
    }
    let mut text = Cow::Owned(text.to_ascii_lowercase());
    for (rule, by) in SMALL.iter() {
        text = replaced(rule, text, *by);
    }
    let text = repeated(&text);
    let text = limit.replace(&text, &b"limit ?"[..]);
    without_ascending(&text)
}

fn replaced<'a>(rule: &Regex, text: Cow<'a, [u8]>, by: impl Replacer) -> Cow<'a, [u8]> {
    let new = match rule.replace_all(&text, by) {
        Cow::Borrowed(_) => return text,
        Cow::Owned(new) => new,
    };
    Cow::Owned(new)
}

/// `select … union select …` of the same becomes `select … /*repeat union*/`.
fn repeated(text: &[u8]) -> Vec<u8> {
    let Some(select) = SHORT.last() else {
        return text.to_vec();
    };
    let mut new = Vec::with_capacity(text.len());
    let mut from = 0;
    while let Some(found) = select.find_at(text, from) {
        let begin = found.start();
        let Some((arm, union, end)) = arms(text, begin, found.end()) else {
            new.extend_from_slice(&text[from..found.end()]);
            from = found.end();
            continue;
        };
        new.extend_from_slice(&text[from..begin]);
        new.extend_from_slice(arm);
        new.extend_from_slice(b" /*repeat");
        new.extend_from_slice(union);
        new.extend_from_slice(b"*/");
        from = end;
    }
    new.extend_from_slice(&text[from..]);
    new
}

/// Finds the shortest arm from `begin` that is repeated; returns it, the last union and where the last arm ends.
fn arms(text: &[u8], begin: usize, after: usize) -> Option<(&[u8], &[u8], usize)> {
    for found in memchr::memmem::find_iter(&text[after - 1..], b" union") {
        let arm = &text[begin..after - 1 + found];
        let mut end = begin + arm.len();
        let mut union: Option<&[u8]> = None;
        while let Some((reported, next)) = arm_follows(&text[end..], arm) {
            union = Some(reported);
            end += next;
        }
        if let Some(union) = union {
            return Some((arm, union, end));
        }
    }
    None
}

fn arm_follows<'a>(text: &'a [u8], arm: &[u8]) -> Option<(&'a [u8], usize)> {
    [&b" union all"[..], b" union"]
        .into_iter()
        .find_map(|union| {
            let rest = text.strip_prefix(union)?.strip_prefix(b" ")?;
            rest.starts_with(arm)
                .then(|| (&text[..union.len()], union.len() + 1 + arm.len()))
        })
}

/// Leaves out `ASC` after `ORDER BY`.
fn without_ascending(text: &[u8]) -> Vec<u8> {
    const ORDER: &[u8] = b"order by ";
    let Some(at) = memchr::memmem::find(text, ORDER) else {
        return text.to_vec();
    };
    let (before, rest) = text.split_at(at + ORDER.len());
    let mut new = before.to_vec();
    let mut from = 0;
    while let Some(found) = memchr::memmem::find(&rest[from..], b" asc") {
        // Something stands between the two.
        if found == 0 {
            break;
        }
        new.extend_from_slice(&rest[from..from + found]);
        from += found + 4;
    }
    new.extend_from_slice(&rest[from..]);
    new
}

/// Returns the identifier that pt-query-digest gives a fingerprint.
pub(super) fn id(fingerprint: &[u8]) -> String {
    let sum = Md5::digest(fingerprint);
    sum.iter().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rules_are_rules() {
        assert_eq!((RULES.len(), SMALL.len(), SHORT.len()), (11, 2, 7));
    }
}
