//! What a column's type means for reading it.

use super::members::has_empty_member;
use crate::objects::{Column, Generated};
use evenkeel_server::connect::quote_name;

impl Column {
    /// Returns whether a literal of a value compares with the column as its index orders it. ENUM
    /// and SET do not (by number, not by text), BIT and FLOAT are not worth the care.
    pub(super) fn compares(&self) -> bool {
        self.is_integer()
            || self.is_text()
            || self.is_binary()
            || matches!(
                &*self.data_type,
                "decimal" | "date" | "datetime" | "timestamp" | "time" | "year"
            )
    }

    pub(super) fn is_integer(&self) -> bool {
        matches!(
            &*self.data_type,
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint"
        )
    }

    pub(super) fn is_text(&self) -> bool {
        self.charset.is_some()
            && matches!(
                &*self.data_type,
                "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext"
            )
    }

    pub(super) fn is_binary(&self) -> bool {
        matches!(
            &*self.data_type,
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob"
        )
    }

    /// Returns whether its values are digits and punctuation that no format has to escape.
    pub(super) fn is_plain(&self) -> bool {
        self.is_integer()
            || matches!(
                &*self.data_type,
                "decimal"
                    | "float"
                    | "double"
                    | "date"
                    | "datetime"
                    | "timestamp"
                    | "time"
                    | "year"
            )
    }

    /// Returns whether the server computes its values: files show them, and nobody can store them.
    pub(super) fn is_computed(&self) -> bool {
        self.generated != Generated::No
    }

    /// Returns whether files have the numbers of its members and not their text, because an empty text
    /// would be one of two values: of ENUM that of the empty member or the error value, of SET that of
    /// the empty member or of none.
    pub(super) fn is_by_number(&self) -> bool {
        matches!(&*self.data_type, "enum" | "set") && has_empty_member(&self.column_type)
    }

    /// Returns what to select, so that the value comes out exactly, for files that have members by number
    /// or by text.
    pub(super) fn selected_as(&self, by_number: bool) -> String {
        let name = quote_name(&self.name);
        // Plus zero would go through floating point, which has not enough digits for a SET of 64.
        if by_number {
            return format!("CAST({name} AS UNSIGNED)");
        }
        // The text of a FLOAT has six digits; as DOUBLE it has all that it needs. Times one, and
        // not plus zero, which would lose the sign of a negative zero.
        match &*self.data_type {
            "float" => format!("{name} * 1e0"),
            _ => name,
        }
    }
}

#[cfg(test)]
impl Column {
    /// Makes a column that nothing else is known of.
    pub(super) fn for_tests(name: &str, full_type: &str, charset: Option<&str>) -> Self {
        let end = full_type.find(['(', ' ']).unwrap_or(full_type.len());
        Self {
            name: name.to_owned(),
            data_type: full_type[..end].to_owned(),
            column_type: full_type.to_owned(),
            charset: charset.map(str::to_owned),
            collation: None,
            nullable: true,
            generated: crate::objects::Generated::No,
            invisible: false,
            auto_increment: false,
        }
    }
}
