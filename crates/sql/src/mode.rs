//! What the session says about quotes.

use crate::Wide;

/// How quotes and backslashes are read: `sql_mode` and the character set decide.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode {
    /// Double quotes are around names (`ANSI_QUOTES`).
    pub ansi_quotes: bool,
    /// A backslash in a string is a backslash (`NO_BACKSLASH_ESCAPES`).
    pub no_backslash_escapes: bool,
    /// The character set of the text.
    pub wide: Wide,
}

impl Mode {
    /// Returns what a `sql_mode` means, for a character set in which ASCII is ASCII.
    #[must_use]
    pub fn of(sql_mode: &str) -> Self {
        const ANSI: [&str; 7] = [
            "ANSI",
            "ANSI_QUOTES",
            "DB2",
            "MAXDB",
            "MSSQL",
            "ORACLE",
            "POSTGRESQL",
        ];
        let has = |word: &str| {
            let mut modes = sql_mode.split(',');
            modes.any(|mode| mode.trim().eq_ignore_ascii_case(word))
        };
        Self {
            ansi_quotes: ANSI.into_iter().any(has),
            no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
            wide: Wide::No,
        }
    }

    /// Returns the modes in which a session whose backslashes and character set are not known may read a text.
    pub fn readings(self, sql: &[u8]) -> impl Iterator<Item = Self> {
        let escapes: &[bool] = match sql.contains(&b'\\') {
            true => &[false, true],
            false => &[false],
        };
        let wides: &[Wide] = match sql.is_ascii() {
            true => &[Wide::No],
            false => &[Wide::No, Wide::Gbk, Wide::Big5, Wide::Sjis],
        };
        let all = escapes
            .iter()
            .flat_map(move |escape| wides.iter().map(move |wide| (*escape, *wide)));
        all.map(move |(no_backslash_escapes, wide)| Self {
            no_backslash_escapes,
            wide,
            ..self
        })
    }

    /// Returns whether what stands between such quotes is a name.
    #[must_use]
    pub const fn is_name(self, quote: u8) -> bool {
        quote == b'`' || (quote == b'"' && self.ansi_quotes)
    }

    /// Returns whether a backslash takes the next character's meaning between such quotes.
    #[must_use]
    pub const fn escapes(self, quote: u8) -> bool {
        !self.no_backslash_escapes && !self.is_name(quote)
    }
}
