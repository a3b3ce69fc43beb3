//! A text that stands for every value of a column, as the server would give it back: who verifies a load
//! compares bytes.

use super::code::Code;
use super::fits::{length, span};
use crate::dump::members::members;
use crate::objects::Column;
use jiff::civil::{Date, DateTime};
use regex::Regex;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Why a text does not fit, in words that follow `it`.
pub(super) type Reason = String;

/// Returns the bytes of `text` in a column.
pub(super) fn of(text: &str, column: &Column) -> Result<Vec<u8>, Reason> {
    let value = match &*column.data_type {
        _ if column.is_text() => return in_text(text, column),
        _ if column.is_binary() => return in_bytes(text, column),
        _ if column.is_integer() => integer(text, column),
        "decimal" => decimal(text, column),
        "float" | "double" => float(text, &column.data_type),
        "date" => text.parse::<Date>().ok().map(|date| date.to_string()),
        "datetime" | "timestamp" => time(text, column),
        "time" => part_of_day(text, column),
        "year" => text
            .parse::<u16>()
            .ok()
            .filter(|year| (1901..=2155).contains(year))
            .map(|_| text.to_owned()),
        "enum" | "set" if !column.is_by_number() => member(text, column),
        "json" => json(text),
        "inet4" => text
            .parse::<Ipv4Addr>()
            .ok()
            .map(|address| address.to_string()),
        "inet6" => text
            .parse::<Ipv6Addr>()
            .ok()
            .map(|address| address.to_string()),
        "uuid" => uuid(text),
        _ => {
            return Err(format!(
                "has the type {}, for which only null fits",
                column.column_type
            ));
        }
    };
    value.map(String::into_bytes).ok_or_else(|| {
        format!(
            "has the type {}, which has no value '{text}'",
            column.column_type
        )
    })
}

fn in_text(text: &str, column: &Column) -> Result<Vec<u8>, Reason> {
    let charset = column.charset.as_deref().unwrap_or_default();
    let narrow = charset != "utf8mb4" && text.chars().any(|letter| letter > '\u{FFFF}');
    if !text.is_ascii() && (Code::of(charset) != Code::Utf8 || narrow) {
        return Err(format!(
            "is in the character set {charset}: use a text in ASCII"
        ));
    }
    let text = match &*column.data_type {
        "char" => text.trim_end_matches(' '),
        _ => text,
    };
    let bytes = super::fits::Width::of(column).text(text.as_bytes());
    let is_short = match &*column.data_type {
        "char" | "varchar" => text.chars().count() <= length(column),
        _ => bytes.len() <= length(column),
    };
    match is_short {
        true => Ok(bytes),
        false => Err(format!(
            "has the type {}, and the text is longer",
            column.column_type
        )),
    }
}

fn in_bytes(text: &str, column: &Column) -> Result<Vec<u8>, Reason> {
    let mut bytes = text.as_bytes().to_vec();
    if bytes.len() > length(column) {
        return Err(format!(
            "has the type {}, and the text is longer",
            column.column_type
        ));
    }
    if column.data_type == "binary" {
        bytes.resize(length(column), 0);
    }
    Ok(bytes)
}

fn integer(text: &str, column: &Column) -> Option<String> {
    let value: i128 = text.parse().ok()?;
    let span = span(column);
    let fits = (-i128::from(span.below_zero)..=i128::from(span.above)).contains(&value);
    let width = match column.column_type.contains("zerofill") {
        true => length(column),
        false => 0,
    };
    fits.then(|| format!("{value:0width$}"))
}

fn decimal(text: &str, column: &Column) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (precision, scale) = numbers(column)?;
    let whole = match whole.trim_start_matches('0') {
        "" if !whole.is_empty() => "0",
        "" => return None,
        rest => rest,
    };
    let wholes = precision - scale.min(precision);
    let fits = are_digits(whole)
        && are_digits(part)
        && part.len() <= scale
        && (whole == "0" || whole.len() <= wholes);
    let is_zero = whole == "0" && part.bytes().all(|byte| byte == b'0');
    // As many zeros in front as ZEROFILL has is nobody's to know.
    if !fits || column.column_type.contains("zerofill") || is_zero && !sign.is_empty() {
        return None;
    }
    Some(match scale {
        0 => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{part:0<scale$}"),
    })
}

/// Returns both numbers of `decimal(10,2)`.
fn numbers(column: &Column) -> Option<(usize, usize)> {
    let inside = column.column_type.split_once('(')?.1.split_once(')')?.0;
    let (precision, scale) = inside.split_once(',')?;
    Some((precision.trim().parse().ok()?, scale.trim().parse().ok()?))
}

/// Only what every server prints alike.
fn float(text: &str, data_type: &str) -> Option<String> {
    let value: f64 = text.parse().ok()?;
    let is_exact = data_type == "double" || f64::from(value as f32) == value;
    (is_exact && value.abs() < 1e15 && value.to_string() == text && text != "-0")
        .then(|| text.to_owned())
}

fn fraction(column: &Column) -> usize {
    match column.column_type.contains('(') {
        true => length(column),
        false => 0,
    }
}

fn time(text: &str, column: &Column) -> Option<String> {
    // A day alone is its beginning.
    let value: DateTime = text.parse().ok()?;
    let is_stored = column.data_type != "timestamp" || (1971..=2037).contains(&value.year());
    let digits = fraction(column);
    let shown = format!("{value:.digits$}").replace('T', " ");
    let back: DateTime = shown.parse().ok()?;
    (is_stored && back == value && text.is_ascii()).then_some(shown)
}

fn part_of_day(text: &str, column: &Column) -> Option<String> {
    let pattern = Regex::new(r"^(0\d|[1-9]\d|[1-7]\d\d):[0-5]\d:[0-5]\d$").ok()?;
    let digits = fraction(column);
    let point = if digits > 0 { "." } else { "" };
    pattern
        .is_match(text)
        .then(|| format!("{text}{point}{}", "0".repeat(digits)))
}

fn member(text: &str, column: &Column) -> Option<String> {
    let all = members(&column.column_type);
    let is_one = |text: &str| all.iter().any(|one| one == text);
    let fits = match &*column.data_type {
        "enum" => is_one(text),
        _ if text.is_empty() => true,
        _ => {
            // In the order of the type, as the server prints them.
            let places = text
                .split(',')
                .map(|one| all.iter().position(|member| member == one));
            let places: Option<Vec<usize>> = places.collect();
            places.is_some_and(|places| places.windows(2).all(|two| two[0] < two[1]))
        }
    };
    (fits && text.is_ascii()).then(|| text.to_owned())
}

/// Only what MySQL prints as it was given.
fn json(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let is_plain = match &value {
        serde_json::Value::Array(all) => all.is_empty(),
        serde_json::Value::Object(all) => all.is_empty(),
        serde_json::Value::Number(number) => number.is_i64(),
        _ => true,
    };
    let printed = value.to_string();
    (is_plain && printed == text).then_some(printed)
}

fn uuid(text: &str) -> Option<String> {
    let pattern = Regex::new("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$").ok()?;
    pattern.is_match(text).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(full_type: &str, charset: Option<&str>) -> Column {
        Column::for_tests("c", full_type, charset)
    }

    #[test]
    fn texts_become_what_the_server_prints() {
        for (full_type, text, wanted) in [
            ("int(11)", "-5", "-5"),
            ("int(5) unsigned zerofill", "7", "00007"),
            ("decimal(10,2)", "5", "5.00"),
            ("decimal(10,2)", "-00.5", "-0.50"),
            ("decimal(2,2)", "0.5", "0.50"),
            ("decimal(3,0)", "12", "12"),
            ("double", "0.5", "0.5"),
            ("date", "2020-02-29", "2020-02-29"),
            ("datetime", "2020-01-02", "2020-01-02 00:00:00"),
            (
                "datetime(3)",
                "2020-01-02 03:04:05",
                "2020-01-02 03:04:05.000",
            ),
            ("timestamp", "2020-01-02 03:04:05", "2020-01-02 03:04:05"),
            ("time(2)", "12:00:00", "12:00:00.00"),
            ("year(4)", "2020", "2020"),
            ("enum('a','it''s')", "it's", "it's"),
            ("set('a','b','c')", "a,c", "a,c"),
            ("json", "{}", "{}"),
            ("inet6", "0:0::1", "::1"),
            ("binary(3)", "a", "a\0\0"),
            ("blob", "a", "a"),
        ] {
            let found = of(text, &column(full_type, None));
            assert_eq!(
                found.as_deref(),
                Ok(wanted.as_bytes()),
                "{full_type} {text}"
            );
        }
        for (full_type, charset, text, wanted) in [
            ("varchar(3)", "utf8mb4", "äöü", "äöü".as_bytes()),
            ("char(3)", "latin1", "a  ", b"a"),
            ("varchar(3)", "utf16", "a", b"\0a"),
            ("varchar(3)", "utf16le", "a", b"a\0"),
            ("varchar(3)", "utf32", "a", b"\0\0\0a"),
        ] {
            let found = of(text, &column(full_type, Some(charset)));
            assert_eq!(found.as_deref(), Ok(wanted), "{full_type} {charset}");
        }
    }

    #[test]
    fn what_is_no_value_of_the_type_is_refused() {
        for (full_type, text) in [
            ("tinyint(4)", "128"),
            ("int(11) unsigned", "-1"),
            ("int(11)", "x"),
            ("decimal(4,2)", "100"),
            ("decimal(4,2)", "1.234"),
            ("decimal(4,2)", "-0"),
            ("float", "0.1"),
            ("double", "1e30"),
            ("date", "2020-02-30"),
            ("date", "x"),
            ("datetime", "2020-01-02 03:04:05.5"),
            ("timestamp", "1950-01-01"),
            ("time", "900:00:00"),
            ("year(4)", "1900"),
            ("enum('a','b')", "c"),
            ("enum('a','')", "a"),
            ("set('a','b')", "b,a"),
            ("json", "{\"a\":1}"),
            ("bit(3)", "1"),
            ("point", "x"),
            ("varbinary(2)", "abc"),
            ("uuid", "1"),
        ] {
            assert!(
                of(text, &column(full_type, None)).is_err(),
                "{full_type} {text}"
            );
        }
        for (full_type, charset, text) in [
            ("varchar(2)", "utf8mb4", "abc"),
            ("varchar(2)", "utf8mb3", "😀"),
            ("varchar(2)", "latin1", "ä"),
            ("tinytext", "utf8mb4", &"a".repeat(256)),
        ] {
            assert!(
                of(text, &column(full_type, Some(charset))).is_err(),
                "{full_type} {charset}"
            );
        }
    }
}
