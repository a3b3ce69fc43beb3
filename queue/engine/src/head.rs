//! What a table's anchor says before its columns: how many bytes with bits of NULL a row begins with, of what the
//! table is a copy, and what a statement is about to do to its name.
//!
//! Words with a space between them, and a zero behind the last: `2`, then `000…4d` in 32 digits for a copy of that
//! table, then `make:31`, `move:31` or `drop:31` while a statement is under way; 31 is the table's number in the
//! server's dictionary, and 0 that of one that is not in it yet.

/// What a statement does to a table's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Make,
    Move,
    Drop,
}

impl Verb {
    const ALL: [Self; 3] = [Self::Make, Self::Move, Self::Drop];

    fn name(self) -> &'static str {
        match self {
            Self::Make => "make",
            Self::Move => "move",
            Self::Drop => "drop",
        }
    }
}

/// What is under way with a table's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Note {
    pub verb: Verb,
    /// Its number in the server's dictionary; 0 before it has one.
    pub table: u64,
}

/// What stands before the columns, beside the bytes of NULLs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Head {
    /// Of which table this one is a copy.
    pub origin: Option<u128>,
    pub note: Option<Note>,
}

/// The bytes of NULLs, and all other words.
pub(crate) fn words(layout: &[u8]) -> (&[u8], impl Iterator<Item = &[u8]>) {
    let end = layout.iter().position(|byte| *byte == 0);
    let begin = &layout[..end.unwrap_or(layout.len())];
    let mut words = begin.split(|byte| *byte == b' ');
    (words.next().unwrap_or_default(), words)
}

impl Head {
    /// What a layout says. Words that are not known are passed over.
    pub(crate) fn of(layout: &[u8]) -> Self {
        let mut head = Self::default();
        for word in words(layout).1 {
            let word = String::from_utf8_lossy(word);
            match word.split_once(':') {
                Some((verb, table)) => {
                    let verb = Verb::ALL.into_iter().find(|one| one.name() == verb);
                    let note = verb.zip(table.parse().ok());
                    head.note = note.map(|(verb, table)| Note { verb, table });
                }
                None => head.origin = u128::from_str_radix(&word, 16).ok(),
            }
        }
        head
    }

    /// The same columns behind this head.
    pub(crate) fn before(self, layout: &[u8]) -> Vec<u8> {
        let end = layout.iter().position(|byte| *byte == 0);
        let mut new = words(layout).0.to_vec();
        if let Some(origin) = self.origin {
            new.extend(format!(" {origin:032x}").into_bytes());
        }
        if let Some(Note { verb, table }) = self.note {
            new.extend(format!(" {}:{table}", verb.name()).into_bytes());
        }
        new.extend(&layout[end.unwrap_or(layout.len())..]);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::Columns;

    #[test]
    fn a_head_is_read_back_and_changes_no_column() {
        const LAYOUT: &[u8] = b"1\0i 4 0 1 id\0";
        assert_eq!(Head::of(LAYOUT), Head::default());
        for origin in [None, Some(77)] {
            let verbs = Verb::ALL.map(|verb| Some(Note { verb, table: 31 }));
            for note in verbs.into_iter().chain([None]) {
                let head = Head { origin, note };
                let layout = head.before(LAYOUT);
                assert_eq!(Head::of(&layout), head);
                assert_eq!(Columns::read(&layout), Columns::read(LAYOUT));
                assert!(Columns::read(&layout).is_some());
                assert_eq!(Head::default().before(&layout), LAYOUT);
            }
        }
    }
}
