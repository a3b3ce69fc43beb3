//! Which ways suit which types, and what is made of a value.

use super::code::Code;
use super::constant::{self, Reason};
use super::fold::Fold;
use super::integers::Span;
use super::way::Way;
use crate::objects::Column;

/// Digits of a hash in hexadecimal: 128 bits.
const HASH_DIGITS: usize = 32;
/// Digits of a hash in an address.
const EMAIL_DIGITS: usize = 24;
/// The fewest of them.
const EMAIL_DIGITS_MIN: usize = 8;
/// So many digits, and no two rows of the largest table have the same.
const UNIQUE_DIGITS: usize = 24;
/// What stands in front of an address's hash, and behind it.
pub(super) const EMAIL: (&str, &str) = ("user-", "@example.com");

/// How many bytes an ASCII character has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    One,
    Two,
    TwoTurned,
    Four,
}

impl Width {
    pub(super) fn of(column: &Column) -> Self {
        match column.charset.as_deref() {
            Some("ucs2" | "utf16") => Self::Two,
            Some("utf16le") => Self::TwoTurned,
            Some("utf32") => Self::Four,
            _ => Self::One,
        }
    }

    /// Returns a text; only ASCII may have other than one byte.
    pub(super) fn text(self, text: &[u8]) -> Vec<u8> {
        let wide = |make: fn(u8) -> Vec<u8>| text.iter().copied().flat_map(make).collect();
        match self {
            Self::One => text.to_vec(),
            Self::Two => wide(|byte| vec![0, byte]),
            Self::TwoTurned => wide(|byte| vec![byte, 0]),
            Self::Four => wide(|byte| vec![0, 0, 0, byte]),
        }
    }
}

/// What is made of a value that is not NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum How {
    Null,
    Constant(Vec<u8>),
    /// So many digits in hexadecimal.
    Hash {
        digits: usize,
        fold: Fold,
        width: Width,
    },
    /// So many bytes of the hash, and zeros up to the second number.
    Bytes(usize, usize),
    Uuid,
    Email {
        digits: usize,
        fold: Fold,
        width: Width,
    },
    Text {
        code: Code,
        fold: Fold,
    },
    Integer(Span),
    Decimal,
    Year {
        is_timestamp: bool,
    },
}

impl How {
    /// Returns how a way masks the values of a column, or why it does not suit.
    pub(super) fn of(way: &Way, column: &Column) -> Result<Self, Reason> {
        match way {
            Way::Null if column.nullable => Ok(Self::Null),
            Way::Null => Err("is NOT NULL".to_owned()),
            Way::Empty if column.is_text() || column.is_binary() => {
                constant::of("", column).map(Self::Constant)
            }
            Way::Empty => Err(typed(column, "only texts and bytes can be empty")),
            Way::Fixed(text) => constant::of(text, column).map(Self::Constant),
            Way::Hash => hash(column),
            Way::Email => email(column),
            Way::Shape => shape(column),
            Way::Year => match &*column.data_type {
                "date" | "datetime" | "timestamp" => Ok(Self::Year {
                    is_timestamp: column.data_type == "timestamp",
                }),
                _ => Err(typed(column, "only dates keep their year")),
            },
        }
    }

    /// Returns whether two rows of other values have other values here too, of which a key holds so many
    /// characters or bytes.
    pub(super) fn stays_unique(&self, prefix: usize) -> bool {
        match self {
            Self::Null | Self::Uuid | Self::Integer(_) => true,
            Self::Hash { digits, .. } => (*digits).min(prefix) >= UNIQUE_DIGITS,
            Self::Bytes(count, _) => (*count).min(prefix) * 2 >= UNIQUE_DIGITS,
            Self::Email { digits, .. } => {
                (*digits).min(prefix.saturating_sub(EMAIL.0.len())) >= UNIQUE_DIGITS
            }
            _ => false,
        }
    }

    /// Returns whether another key makes other masks.
    pub(super) fn is_keyed(&self) -> bool {
        self.keeps_joins() || *self == Self::Decimal
    }

    /// Returns whether equal values stay equal and others stay others, wherever they stand.
    pub(super) fn keeps_joins(&self) -> bool {
        matches!(
            self,
            Self::Hash { .. }
                | Self::Bytes(..)
                | Self::Uuid
                | Self::Email { .. }
                | Self::Text { .. }
                | Self::Integer(_)
        )
    }
}

fn typed(column: &Column, why: &str) -> Reason {
    format!("has the type {}, and {why}", column.column_type)
}

fn hash(column: &Column) -> Result<How, Reason> {
    match &*column.data_type {
        _ if column.is_text() => Ok(How::Hash {
            digits: HASH_DIGITS.min(length(column)),
            fold: Fold::of(column),
            width: Width::of(column),
        }),
        "binary" | "varbinary" => {
            let length = length(column);
            let count = (HASH_DIGITS / 2).min(length);
            Ok(How::Bytes(
                count,
                if column.data_type == "binary" {
                    length
                } else {
                    count
                },
            ))
        }
        "uuid" => Ok(How::Uuid),
        _ => Err(typed(column, "a hash is a text")),
    }
}

fn email(column: &Column) -> Result<How, Reason> {
    let around = EMAIL.0.len() + EMAIL.1.len();
    let digits = EMAIL_DIGITS.min(length(column).saturating_sub(around));
    // Its character set has another letter in the place of @.
    if !column.is_text() || column.charset.as_deref() == Some("swe7") {
        return Err(typed(column, "an address is a text in ASCII"));
    }
    if digits < EMAIL_DIGITS_MIN {
        let shortest = around + EMAIL_DIGITS_MIN;
        return Err(typed(
            column,
            &format!("an address has {shortest} characters at least"),
        ));
    }
    Ok(How::Email {
        digits,
        fold: Fold::of(column),
        width: Width::of(column),
    })
}

fn shape(column: &Column) -> Result<How, Reason> {
    let charset = column.charset.as_deref().unwrap_or_default();
    let code = Code::of(charset);
    match &*column.data_type {
        _ if column.is_integer() => Ok(How::Integer(span(column))),
        "decimal" => Ok(How::Decimal),
        "mediumtext" | "longtext" => {
            Err(typed(column, "such values are too long to keep in memory"))
        }
        _ if !column.is_text() => Err(typed(column, "only texts and numbers have a shape")),
        // Others write no ASCII, or hold bytes that look like it.
        _ if !matches!(code, Code::Utf8 | Code::OneByte(_)) => Err(format!(
            "is in the character set {charset}, whose letters are not known"
        )),
        _ => Ok(How::Text {
            code,
            fold: Fold::of(column),
        }),
    }
}

/// Returns how many characters (of texts without a limit, bytes) a column holds.
pub(super) fn length(column: &Column) -> usize {
    let given = || {
        let inside = column.column_type.split_once('(')?.1.split_once(')')?.0;
        inside.parse().ok()
    };
    match &*column.data_type {
        "tinytext" | "tinyblob" => 255,
        "text" | "blob" => 65_535,
        "mediumtext" | "mediumblob" => 16_777_215,
        "longtext" | "longblob" => 4_294_967_295,
        _ => given().unwrap_or(1),
    }
}

/// Returns the largest amounts that an integer column holds.
pub(super) fn span(column: &Column) -> Span {
    let bits: u32 = match &*column.data_type {
        "tinyint" => 8,
        "smallint" => 16,
        "mediumint" => 24,
        "int" => 32,
        _ => 64,
    };
    match column.column_type.contains("unsigned") || column.column_type.contains("zerofill") {
        true => Span {
            below_zero: 0,
            above: u64::MAX >> (64 - bits),
        },
        false => Span {
            below_zero: 1 << (bits - 1),
            above: (1 << (bits - 1)) - 1,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(full_type: &str, charset: Option<&str>) -> Column {
        Column::for_tests("c", full_type, charset)
    }

    #[test]
    fn ways_suit_types() {
        let utf8 = Some("utf8mb4");
        for (full_type, charset, suits) in [
            ("varchar(100)", utf8, "null empty hash email shape"),
            ("varchar(20)", utf8, "null empty hash shape"),
            ("varchar(100)", Some("sjis"), "null empty hash email"),
            ("text", utf8, "null empty hash email shape"),
            ("longtext", utf8, "null empty hash email"),
            ("varbinary(30)", None, "null empty hash"),
            ("blob", None, "null empty"),
            ("int(11)", None, "null shape"),
            ("decimal(5,2)", None, "null shape"),
            ("double", None, "null"),
            ("date", None, "null year"),
            ("timestamp(3)", None, "null year"),
            ("time", None, "null"),
            ("enum('a')", utf8, "null"),
            ("json", None, "null"),
            ("bit(1)", None, "null"),
            ("geometry", None, "null"),
            ("uuid", None, "null hash"),
        ] {
            let all = [
                Way::Null,
                Way::Empty,
                Way::Hash,
                Way::Email,
                Way::Shape,
                Way::Year,
            ];
            let fitting = all
                .iter()
                .filter(|way| How::of(way, &column(full_type, charset)).is_ok());
            let names: Vec<&str> = fitting.map(Way::name).collect();
            assert_eq!(names.join(" "), suits, "{full_type}");
        }
        let mut certain = column("varchar(9)", utf8);
        certain.nullable = false;
        assert!(How::of(&Way::Null, &certain).is_err());
    }

    #[test]
    fn long_hashes_are_unique() {
        let hash = |full_type| How::of(&Way::Hash, &column(full_type, Some("ascii"))).unwrap();
        assert!(hash("char(24)").stays_unique(usize::MAX));
        assert!(!hash("char(23)").stays_unique(usize::MAX));
        assert!(!hash("varchar(99)").stays_unique(10));
        let bytes = How::of(&Way::Hash, &column("binary(16)", None)).unwrap();
        assert!(bytes.stays_unique(16) && !bytes.stays_unique(8));
        let email = How::of(&Way::Email, &column("varchar(41)", Some("ascii"))).unwrap();
        assert!(email.stays_unique(29) && !email.stays_unique(28));
        assert!(!How::Decimal.stays_unique(usize::MAX));
    }
}
