//! All names that the rules about files know: whoever makes a schema or a table may call it like any of them.

use super::{class, leave_out, redo_names, redo_shape, refuse};

/// The parts of names of which a rule about files depends.
#[derive(Debug, Clone)]
pub struct SpecialNames {
    /// Names that are known as a whole.
    pub stems: Vec<&'static str>,
    /// What a number, or anything, follows.
    pub prefixes: Vec<&'static str>,
    /// What anything may stand before.
    pub suffixes: Vec<String>,
}

/// Returns them all, from the rules themselves: a test of names cannot forget one.
#[must_use]
pub fn special_names() -> SpecialNames {
    let first = |(name, _): &(&'static str, &'static str)| *name;
    let stems = leave_out::DIRECTORIES
        .iter()
        .chain(&leave_out::TOP_FILES)
        .map(first)
        .chain(class::WHOLE.iter().map(|(name, _)| *name))
        .chain(refuse::whole_names())
        .chain([redo_names::DIRECTORY]);
    let prefixes = leave_out::TOP_NUMBERED
        .iter()
        .chain([&leave_out::HELD_OPEN, &leave_out::OURS])
        .map(first)
        .chain(class::NUMBERED.iter().map(|(name, _)| *name))
        .chain([
            class::ARIA_LOG,
            redo_shape::FIXED,
            redo_shape::ARCHIVED.0,
            redo_names::STEM,
        ]);
    let suffixes = leave_out::TOP_ENDS
        .iter()
        .chain(&leave_out::SCHEMA_ENDS)
        .chain(&leave_out::ENDS)
        .map(first)
        .chain(class::ENDS.iter().map(|(end, _)| *end))
        .chain(refuse::ends())
        .chain([redo_names::SPARE, redo_shape::ARCHIVED.1])
        .map(str::to_owned);
    let extensions = class::EXTENSIONS.iter().flat_map(|(_, ends)| ends.iter());
    let extensions = extensions.map(|extension| format!(".{extension}"));
    SpecialNames {
        stems: sorted(stems.collect()),
        prefixes: sorted(prefixes.collect()),
        suffixes: sorted(suffixes.chain(extensions).collect()),
    }
}

fn sorted<T: Ord>(mut names: Vec<T>) -> Vec<T> {
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_rule_gives_its_names() {
        let names = special_names();
        for stem in ["core", "lost+found", "tc.log", "#innodb_redo", "#rocksdb"] {
            assert!(names.stems.contains(&stem), "{stem}");
        }
        for prefix in ["core.", ".nfs", "undo_", "ib_logfile", "#ib_redo"] {
            assert!(names.prefixes.contains(&prefix), "{prefix}");
        }
        for suffix in [".pid", ".CSN", ".~rec~", ".dblwr", ".isl", ".tokudb"] {
            assert!(names.suffixes.iter().any(|own| own == suffix), "{suffix}");
        }
    }
}
