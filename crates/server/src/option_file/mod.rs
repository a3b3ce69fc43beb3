//! Option files, by the server's own rules: which files, in which order, what a line means.
//!
//! The judge is `my_print_defaults`: `tests/option_files_like_the_server.rs` compares with it. Where
//! that program does something odd (it cuts lines into pieces of 4094 bytes, and loses the last
//! byte of an `!include` that ends the file without a newline), so does this module: a password or
//! a data directory that differs from the server's own reading would be worse than the oddity.

mod line;
mod read;

use evenkeel_op::Result;
use std::path::{Path, PathBuf};

/// The files that every MySQL and MariaDB program reads first.
pub const USUAL_FILES: [&str; 2] = ["/etc/my.cnf", "/etc/mysql/my.cnf"];

/// Which option files to read. This module never looks at the environment: `home` and `mysql_home`
/// are `$HOME` and `$MYSQL_HOME` as the caller found them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefaultsSpec {
    /// `--no-defaults`: read none.
    pub no_defaults: bool,
    /// `--defaults-file`: read this one only. It has to exist.
    pub defaults_file: Option<PathBuf>,
    /// `--defaults-extra-file`: read this one after the global files. It has to exist.
    pub extra_file: Option<PathBuf>,
    /// `--defaults-group-suffix`: with each group, read the one with this at its end too.
    pub group_suffix: Option<String>,
    /// Home directory: `.my.cnf` in it is read last, and `~/` means it.
    pub home: Option<PathBuf>,
    /// `$MYSQL_HOME`: `my.cnf` in it is read after the global files.
    pub mysql_home: Option<PathBuf>,
    /// The global files, first to last.
    pub default_files: Vec<PathBuf>,
}

impl DefaultsSpec {
    /// Makes the specification that a MySQL client without flags follows.
    #[must_use]
    pub fn usual(home: Option<PathBuf>) -> Self {
        Self {
            home,
            default_files: USUAL_FILES.iter().map(PathBuf::from).collect(),
            ..Self::default()
        }
    }

    /// Returns the files to read, in order, and whether each has to exist.
    #[must_use]
    pub fn files(&self) -> Vec<(PathBuf, bool)> {
        if self.no_defaults {
            return Vec::new();
        }
        if let Some(file) = &self.defaults_file {
            return vec![(self.expanded(file), true)];
        }
        let mut global: Vec<PathBuf> = Vec::new();
        let home_of_server = self.mysql_home.as_ref().map(|home| home.join("my.cnf"));
        for file in self.default_files.iter().chain(&home_of_server) {
            // A file named twice is read once, at its later place.
            global.retain(|earlier| earlier != file);
            global.push(file.clone());
        }
        let mut files: Vec<_> = global.into_iter().map(|file| (file, false)).collect();
        files.extend(self.extra_file.iter().map(|f| (self.expanded(f), true)));
        files.extend(self.home.iter().map(|home| (home.join(".my.cnf"), false)));
        files
    }

    /// Replaces a leading `~/` by the home directory.
    fn expanded(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_owned(),
        }
    }
}

/// One option, where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionLine {
    /// The group as the file writes it, without brackets.
    pub group: String,
    /// The name as the file writes it.
    pub name: String,
    /// The value without quotes and escapes; `None` when there is no `=`.
    pub value: Option<String>,
    /// The file.
    pub file: PathBuf,
    /// The line in it, from 1.
    pub line: u32,
}

impl OptionLine {
    /// Returns the name for looking up: `-` and `_` are the same to the server.
    #[must_use]
    pub fn key(&self) -> String {
        key(&self.name)
    }
}

/// Returns an option name for looking up: `ssl-ca` and `ssl_ca` are the same.
#[must_use]
pub fn key(name: &str) -> String {
    name.replace('-', "_")
}

/// What the files say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionFileResult {
    /// The options of the groups asked for, in the order the server would apply them.
    pub options: Vec<OptionLine>,
    /// What was passed over and why, one sentence each.
    pub warnings: Vec<String>,
}

/// Reads the options of some groups. Group names match without regard to ASCII case.
///
/// Errors: `Usage`, with file and line, for what makes the MySQL programs give up: a required file
/// that cannot be read, an option before the first group, a group or `!include` cut short. The same
/// faults in an included file end that file only, with a warning.
pub fn read(spec: &DefaultsSpec, groups: &[&str]) -> Result<OptionFileResult> {
    let mut wanted: Vec<Vec<u8>> = Vec::new();
    for suffix in std::iter::once("").chain(spec.group_suffix.as_deref()) {
        wanted.extend(groups.iter().map(|group| format!("{group}{suffix}").into()));
    }
    let mut reader = read::Reader::new(wanted, spec.home.clone());
    for (path, required) in spec.files() {
        reader.top_level(&path, required)?;
    }
    Ok(reader.finish())
}

/// Reads a text as if it were an option file: for files that are not text on disk.
pub(crate) fn read_text(path: &Path, text: &[u8], groups: &[&str]) -> Result<OptionFileResult> {
    let wanted = groups.iter().map(|g| g.as_bytes().to_vec()).collect();
    let mut reader = read::Reader::new(wanted, None);
    reader.text(path, text)?;
    Ok(reader.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(spec: &DefaultsSpec) -> Vec<String> {
        let files = spec.files().into_iter();
        files.map(|(path, _)| path.display().to_string()).collect()
    }

    #[test]
    fn files_come_in_the_programs_order() {
        let mut spec = DefaultsSpec::usual(Some("/h".into()));
        spec.extra_file = Some("~/x.cnf".into());
        spec.mysql_home = Some("/srv".into());
        let usual = ["/etc/my.cnf", "/etc/mysql/my.cnf"];
        let rest = ["/srv/my.cnf", "/h/x.cnf", "/h/.my.cnf"];
        assert_eq!(names(&spec), [&usual[..], &rest[..]].concat());
        spec.mysql_home = Some("/etc".into());
        assert_eq!(names(&spec)[..2], ["/etc/mysql/my.cnf", "/etc/my.cnf"]);
        spec.defaults_file = Some("/only".into());
        assert_eq!(names(&spec), ["/only"]);
        spec.no_defaults = true;
        assert!(names(&spec).is_empty());
    }
}
