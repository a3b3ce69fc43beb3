//! How a server writes and reads what `SHOW CREATE TABLE` prints, where the two flavours mean the same and write it
//! otherwise.

use super::Flavour;

/// How a server reads a table's definition, and what the other flavour writes in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableDialect {
    /// A column that `SELECT *` leaves out: MariaDB 10.3.3, MySQL 8.0.23.
    pub invisible_column: Mark,
    /// An index that the optimizer does not use: MariaDB 10.6.0, MySQL 8.0.0.
    pub invisible_index: Mark,
    /// A column is invisible only if a row that does not mention it gets a value: MariaDB
    /// (`ER_INVISIBLE_NOT_NULL_WITHOUT_DEFAULT`).
    pub hides_only_columns_with_values: bool,
    /// Expressions are kept as they were written, so a literal's character set in front of it would be read a second
    /// time: MariaDB. MySQL keeps what it understood.
    pub keeps_expressions_as_text: bool,
    /// A default that is an expression stands in parentheses: MySQL, since 8.0.13. MariaDB takes both.
    pub expression_defaults_in_parentheses: bool,
}

/// A word that marks a column or an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The word that the other flavour writes.
    pub other: &'static str,
    /// Whether the other flavour writes it in a comment that only newer servers execute.
    pub other_is_in_comment: bool,
    /// What to write instead.
    pub own: &'static str,
}

impl TableDialect {
    pub(super) const fn of(flavour: Flavour) -> Self {
        match flavour {
            Flavour::MariaDb => Self {
                invisible_column: Mark {
                    other: "INVISIBLE",
                    other_is_in_comment: true,
                    own: "/*M!100303 INVISIBLE */",
                },
                invisible_index: Mark {
                    other: "INVISIBLE",
                    other_is_in_comment: true,
                    own: "/*M!100600 IGNORED */",
                },
                hides_only_columns_with_values: true,
                keeps_expressions_as_text: true,
                expression_defaults_in_parentheses: false,
            },
            Flavour::MySql => Self {
                invisible_column: Mark {
                    other: "INVISIBLE",
                    other_is_in_comment: false,
                    own: "/*!80023 INVISIBLE */",
                },
                invisible_index: Mark {
                    other: "IGNORED",
                    other_is_in_comment: false,
                    own: "/*!80000 INVISIBLE */",
                },
                hides_only_columns_with_values: false,
                keeps_expressions_as_text: false,
                expression_defaults_in_parentheses: true,
            },
        }
    }
}
