//! Where in which file something stands.
//!
//! A file may have others run in the middle of it. Lines are counted through all of them, as they are read, so
//! that a single number says how far an import has come; messages name the file and its own line.

use evenkeel_op::{Error, Result};

/// How many files may be run, counted each time: their names are kept.
const FILES: usize = 100_000;

/// Where a statement begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    /// The line, counted through all files, from 1.
    pub(super) line: u64,
    /// The character of the line, from 1; 0 where it is not known.
    pub(super) column: u32,
}

/// Which lines are whose.
#[derive(Debug)]
pub(super) struct Places {
    names: Vec<String>,
    /// From which line on lines are those of which file, and which of its own is the first.
    parts: Vec<(u64, usize, u64)>,
}

impl Places {
    pub(super) fn new(name: &str) -> Self {
        Self {
            names: vec![name.to_owned()],
            parts: vec![(1, 0, 1)],
        }
    }

    /// Notes that line `from` is the first of another file. Returns the number of the one that names it.
    ///
    /// Errors: `Refused` when there are too many.
    pub(super) fn enter(&mut self, from: u64, name: String) -> Result<usize> {
        if self.names.len() >= FILES {
            return Err(Error::refused(format!(
                "the file runs more than {FILES} files"
            )));
        }
        let above = self.parts.last().map_or(0, |(_, file, _)| *file);
        self.names.push(name);
        self.parts.push((from, self.names.len() - 1, 1));
        Ok(above)
    }

    /// Notes that line `from` is line `own` of a file that is read on, by its number.
    pub(super) fn resume(&mut self, from: u64, file: usize, own: u64) {
        self.parts.push((from, file, own));
    }

    /// Returns the name of a line's file, and the number that the line has there.
    pub(super) fn of(&self, line: u64) -> (&str, u64) {
        let part = self.parts.iter().rfind(|(from, ..)| *from <= line);
        let (from, name, own) = part.copied().unwrap_or((1, 0, 1));
        (&self.names[name], own + line.saturating_sub(from))
    }

    /// Returns the words for a place.
    pub(super) fn shown(&self, at: At) -> String {
        let (name, line) = self.of(at.line);
        match at.column {
            0 => format!("line {line} of {name}"),
            column => format!("line {line}, column {column} of {name}"),
        }
    }

    /// Returns whether there is more than one file.
    pub(super) fn are_several(&self) -> bool {
        self.names.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_their_files() {
        let mut places = Places::new("a.sql");
        // Line 3 of a.sql has b.sql run, which has two lines.
        let above = places.enter(4, "b.sql".to_owned()).unwrap();
        places.resume(6, above, 3);
        let shown = |line| places.shown(At { line, column: 2 });
        assert_eq!(shown(3), "line 3, column 2 of a.sql");
        assert_eq!(shown(5), "line 2, column 2 of b.sql");
        assert_eq!(shown(6), "line 3, column 2 of a.sql");
        assert_eq!(shown(9), "line 6, column 2 of a.sql");
    }
}
