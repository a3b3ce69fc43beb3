//! What a column's type means for comparing it: as bytes, never by a collation, a session's time zone or a rounding.

use evenkeel_op::{Error, Result};
use evenkeel_server::connect::quote_name;

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// `varchar`
    pub(crate) data_type: String,
    /// `varchar(20)`; without the display width of integers, which newer servers leave out.
    pub(crate) full_type: String,
    pub(crate) charset: Option<String>,
    pub(crate) collation: Option<String>,
    pub(crate) nullable: bool,
    /// Its values are computed; `stored` says that they are kept.
    pub(crate) computed: bool,
    pub(crate) stored: bool,
}

impl Column {
    pub(crate) fn is_integer(&self) -> bool {
        matches!(
            &*self.data_type,
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint"
        )
    }

    /// Whether its text has no more than one form for each value.
    fn is_plain(&self) -> bool {
        self.is_integer()
            || matches!(
                &*self.data_type,
                "decimal"
                    | "date"
                    | "datetime"
                    | "timestamp"
                    | "time"
                    | "year"
                    | "uuid"
                    | "inet6"
                    | "inet4"
            )
    }

    fn is_short_text(&self) -> bool {
        matches!(
            &*self.data_type,
            "char" | "varchar" | "binary" | "varbinary" | "tinytext" | "tinyblob"
        )
    }

    /// Returns whether it is compared: what is computed when it is read is not kept anywhere.
    pub(crate) fn counts(&self) -> bool {
        !self.computed || self.stored
    }

    /// Returns whether a literal of a value compares with the column as its index orders it. ENUM and SET do not: by
    /// number, not by text.
    pub(crate) fn compares(&self) -> bool {
        self.is_plain() || self.is_short_text() && self.is_with_charset_if_text()
    }

    fn is_with_charset_if_text(&self) -> bool {
        self.charset.is_some() || matches!(&*self.data_type, "binary" | "varbinary" | "tinyblob")
    }

    /// Returns what adds its value to a row's text, so that no two rows have the same one: NULLs are said elsewhere,
    /// and of what has any bytes, the length comes first.
    pub(crate) fn as_part(&self) -> String {
        let name = quote_name(&self.name);
        match &*self.data_type {
            _ if self.is_plain() => name,
            "float" | "double" | "bit" | "enum" | "set" => self.as_value(),
            _ if self.is_short_text() => {
                format!("LENGTH({name}), CAST({name} AS BINARY)")
            }
            // Of any length: the text of a row must stay short.
            _ => format!("SHA2({name}, 256)"),
        }
    }

    /// Returns what to select to get the value itself, as text without loss: bytes in hexadecimal.
    pub(crate) fn as_value(&self) -> String {
        let name = quote_name(&self.name);
        match &*self.data_type {
            _ if self.is_plain() => name,
            // The text of a FLOAT has six digits; as DOUBLE it has all that it needs. Times one, and not plus zero,
            // which would lose the sign of a negative zero.
            "float" | "double" => format!("{name} * 1e0"),
            "bit" | "enum" | "set" => format!("CAST({name} AS UNSIGNED)"),
            _ => format!("HEX(CAST({name} AS BINARY))"),
        }
    }

    /// Returns what to select to know whether [`Column::as_value`] is not the value itself, or would not be written back
    /// as it is; `None` where it always is. A text longer than the server's packets becomes NULL.
    pub(crate) fn is_lost(&self) -> Option<String> {
        let (name, value) = (quote_name(&self.name), self.as_value());
        if !value.starts_with("HEX") {
            return None;
        }
        if self.data_type != "json" {
            return Some(format!("({name} IS NOT NULL AND {value} IS NULL)"));
        }
        // Dates, decimals and bytes in it become other kinds of values. The text of both may be the same.
        let text = |json: &str| format!("CAST({json} AS CHAR CHARACTER SET utf8mb4)");
        let again = format!("CAST({} AS JSON)", text(&name));
        Some(format!(
            "({name} IS NOT NULL AND ({value} IS NULL OR {name} <> {again} OR {} <> {}))",
            text(&name),
            text(&again)
        ))
    }

    /// Whether a text can be a value of it, as [`Column::as_value`] gives it.
    pub(crate) fn could_be(&self, value: &str) -> bool {
        let is_of = |letters: &str| value.chars().all(|one| letters.contains(one));
        let is_some_of = |letters: &str| !value.is_empty() && is_of(letters);
        match &*self.data_type {
            _ if self.is_integer() => is_some_of("-0123456789"),
            "decimal" => is_some_of("-.0123456789"),
            "float" | "double" => is_some_of("-+.e0123456789"),
            "bit" | "enum" | "set" => is_some_of("0123456789"),
            "uuid" | "inet6" | "inet4" => is_of("-:.0123456789abcdef"),
            _ if self.is_plain() => is_of("-:. 0123456789"),
            _ => value.chars().all(|one| one.is_ascii_hexdigit()),
        }
    }

    /// Returns a value, as [`Column::as_value`] gives it, as a literal that compares as the column does.
    pub(crate) fn literal(&self, value: &str) -> String {
        match &self.charset {
            _ if self.is_integer() || self.data_type == "decimal" => value.to_owned(),
            _ if self.is_plain() => format!("'{value}'"),
            // The introducer gives the column's own character set: then the column's collation wins.
            Some(charset) => format!("_{charset} X'{value}'"),
            None => format!("X'{value}'"),
        }
    }

    /// Returns a value, as [`Column::as_value`] gives it, as a literal that is that value exactly, for writing it and for
    /// finding it by a key.
    ///
    /// Errors: `Failed` for a text that is no value of the column: it would become part of a statement.
    pub(crate) fn exact_literal(&self, value: Option<&str>) -> Result<String> {
        let Some(value) = value else {
            return Ok("NULL".to_owned());
        };
        if !self.could_be(value) {
            return Err(Error::failed(format!(
                "a value of column '{}' makes no sense",
                self.name
            )));
        }
        Ok(match &*self.data_type {
            // As a DOUBLE: the integer -0 has no sign.
            "float" | "double" if !value.contains('e') => format!("{value}e0"),
            "float" | "double" | "bit" | "enum" | "set" => value.to_owned(),
            // No JSON is made of bytes without a character set.
            "json" if self.charset.is_none() => format!("_utf8mb4 X'{value}'"),
            _ => self.literal(value),
        })
    }

    /// Returns a value, as [`Column::as_value`] gives it, for people.
    pub(crate) fn shown(&self, value: &str) -> String {
        let is_bytes = !self.is_plain()
            && !matches!(
                &*self.data_type,
                "float" | "double" | "bit" | "enum" | "set"
            );
        if !is_bytes {
            return value.to_owned();
        }
        let text = match self.charset.as_deref() {
            Some(charset) if charset.starts_with("utf8") || charset == "ascii" => text_of(value),
            Some(_) => text_of(value).filter(|text| text.is_ascii()),
            None => None,
        };
        text.unwrap_or_else(|| format!("0x{value}"))
    }
}

/// Returns the text that hexadecimal digits stand for, if it is one without control characters.
fn text_of(hex: &str) -> Option<String> {
    let bytes: Option<Vec<u8>> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect();
    let text = String::from_utf8(bytes?).ok()?;
    (!text.chars().any(char::is_control)).then_some(text)
}

#[cfg(test)]
impl Column {
    pub(crate) fn for_tests(name: &str, data_type: &str, charset: Option<&str>) -> Self {
        Self {
            name: name.to_owned(),
            data_type: data_type.to_owned(),
            full_type: data_type.to_owned(),
            charset: charset.map(str::to_owned),
            collation: None,
            nullable: false,
            computed: false,
            stored: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_compare_as_their_columns() {
        for (data_type, charset, value, literal) in [
            ("bigint", None, "-5", "-5"),
            ("decimal", None, "1.50", "1.50"),
            ("datetime", None, "2026-01-02", "'2026-01-02'"),
            ("varchar", Some("latin1"), "612762", "_latin1 X'612762'"),
            ("varbinary", None, "61", "X'61'"),
            ("char", Some("utf8mb4"), "", "_utf8mb4 X''"),
        ] {
            let column = Column::for_tests("c", data_type, charset);
            assert!(column.compares(), "{data_type}");
            assert_eq!(column.literal(value), literal);
        }
        for data_type in ["enum", "set", "bit", "double", "json", "text", "geometry"] {
            assert!(
                !Column::for_tests("c", data_type, None).compares(),
                "{data_type}"
            );
        }
    }

    #[test]
    fn exact_literals_are_values_and_nothing_else() {
        let exact = |data_type: &str, charset, value| {
            let column = Column::for_tests("c", data_type, charset);
            column.exact_literal(Some(value))
        };
        for (data_type, charset, value, literal) in [
            ("float", None, "-0", "-0e0"),
            ("double", None, "1.5e-300", "1.5e-300"),
            ("enum", Some("latin1"), "0", "0"),
            ("bit", None, "18446744073709551615", "18446744073709551615"),
            ("json", None, "7B7D", "_utf8mb4 X'7B7D'"),
            ("uuid", None, "123e4567-e89b", "'123e4567-e89b'"),
            ("geometry", None, "00", "X'00'"),
        ] {
            assert_eq!(exact(data_type, charset, value).unwrap(), literal);
        }
        for data_type in [
            "int", "decimal", "double", "enum", "uuid", "date", "text", "json",
        ] {
            for hostile in ["1' OR '1", "1) --", "1;", "0x'", "\n"] {
                assert!(
                    exact(data_type, None, hostile).is_err(),
                    "{data_type} {hostile}"
                );
            }
        }
        let column = Column::for_tests("c", "int", None);
        assert_eq!(column.exact_literal(None).unwrap(), "NULL");
    }

    #[test]
    fn values_are_shown_as_text_where_they_are_text() {
        let shown =
            |data_type, charset, value| Column::for_tests("c", data_type, charset).shown(value);
        assert_eq!(shown("varchar", Some("utf8mb4"), "C3A4"), "ä");
        assert_eq!(shown("varchar", Some("latin1"), "E4"), "0xE4");
        assert_eq!(shown("varchar", Some("latin1"), "61"), "a");
        assert_eq!(shown("binary", None, "61"), "0x61");
        assert_eq!(shown("varchar", Some("utf8mb4"), "0A"), "0x0A");
        assert_eq!(shown("int", None, "7"), "7");
    }
}
