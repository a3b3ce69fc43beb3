//! Names that the functions of SQL cannot be told, as they take `[database.]table[:condition]`.

use super::Tables;
use crate::fault::{Code, Fault};
use std::path::Path;

/// What a name must not have, as servers write it in the name of a file, and as it stands there when nobody has written it
/// otherwise.
const COLON: [&str; 2] = ["@003a", ":"];
const DOT: [&str; 2] = ["@002e", "."];

/// Whether the functions can be told of the table at a path. A name for the moment nobody is told.
fn is_sayable(path: &Path) -> bool {
    let text =
        |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let table = text(path.file_name());
    let database = text(path.parent().and_then(Path::file_name));
    let has = |name: &str, what: [&str; 2]| what.iter().any(|what| name.contains(what));
    table.starts_with("#sql")
        || !(has(&table, COLON) || has(&database, COLON) || has(&database, DOT))
}

impl Tables {
    /// Makes sure that a table may get this name: one that the functions can be told, or one that a table has lost since
    /// the engine was started, as a server that takes back what it did to a queue of an earlier version gives it back.
    ///
    /// # Errors
    ///
    /// `Misuse` for another one.
    pub(crate) fn must_be_sayable(&self, path: &Path) -> Result<(), Fault> {
        if is_sayable(path) || self.known().unsayable.contains(path) {
            return Ok(());
        }
        Err(Fault {
            code: Code::Misuse,
            text: "queue_wait() takes database.table:condition, so a queue has no colon in its name, and neither dot nor \
                   colon in that of its database: choose another name"
                .to_owned(),
        })
    }

    /// Remembers that a table is about to lose a name that nobody else may get.
    pub(super) fn remember_unsayable(&self, path: &Path) {
        if !is_sayable(path) {
            self.known().unsayable.insert(path.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colons_and_dots_are_for_the_functions() {
        for (path, expected) in [
            ("./shop/mails", true),
            ("./shop/a@002eb", true),
            ("./shop/a@003ab", false),
            ("./shop/#sql-alter-1", true),
            ("./a@002eb/mails", false),
            ("./a@003ab/mails", false),
            ("./a:b/mails", false),
            ("./shop/a@0040b", true),
        ] {
            assert_eq!(is_sayable(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_queue_of_before_is_renamed_and_gets_its_name_back() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("shop")).unwrap();
        let (old, new) = (dir.path().join("shop/a@003ab"), dir.path().join("shop/b"));
        let tables = Tables::start(dir.path()).unwrap();
        tables.create(&old, b"0\0").unwrap();
        assert_eq!(tables.must_be_sayable(&old).unwrap_err().code, Code::Misuse);
        tables.rename(&old, &new).unwrap();
        tables.must_be_sayable(&old).unwrap();
        tables.rename(&new, &old).unwrap();
        assert!(tables.is_there(&old));
    }
}
