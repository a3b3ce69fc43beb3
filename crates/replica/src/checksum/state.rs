//! How far a comparison is: in memory, and in a file from which a later run continues.

use super::report::{ComparedTable, TableVerdict};
use super::request::{ChecksumRequest, TableName};
use super::sides::Sides;
use super::sql::Range;
use evenkeel_op::{Context, Error, Result};
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

const SCHEMA: &str = "evenkeel/replica-checksum-state/1";

/// How often a table's rows are looked at: what is different at the first look counts only if it still is at another,
/// with other views.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    First,
    Second,
    Done,
}

/// How far a table is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TableProgress {
    pub(super) stage: Stage,
    /// What is left to do at this stage.
    pub(super) todo: Vec<Range>,
    /// What the first look found unequal.
    pub(super) suspects: Vec<Range>,
    /// How the definition was different at the first look.
    pub(super) definition: Option<String>,
    /// Columns and key of the ranges.
    #[serde(default)]
    pub(super) shape: Option<String>,
    /// How often it began again.
    pub(super) restarts: u32,
    pub(super) found: ComparedTable,
}

impl TableProgress {
    pub(super) fn new(name: &TableName) -> Self {
        Self {
            stage: Stage::First,
            todo: vec![Range::default()],
            suspects: Vec::new(),
            definition: None,
            shape: None,
            restarts: 0,
            found: ComparedTable::new(name, TableVerdict::Equal, None),
        }
    }

    /// Ends it with a verdict.
    pub(super) fn end(&mut self, verdict: TableVerdict, why: Option<String>) {
        self.stage = Stage::Done;
        self.todo.clear();
        self.suspects.clear();
        (self.found.verdict, self.found.why) = (verdict, why);
    }

    /// Begins again: what was seen was of another table.
    pub(super) fn restart(&mut self, name: &TableName) {
        *self = Self {
            restarts: self.restarts + 1,
            definition: self.definition.take(),
            ..Self::new(name)
        };
    }

    /// Remembers an unequal piece. Neighbours are made one.
    pub(super) fn suspect(&mut self, range: Range) {
        match self.suspects.last_mut() {
            Some(last) if last.up_to.is_some() && last.up_to == range.after => {
                last.up_to = range.up_to;
            }
            _ => self.suspects.push(range),
        }
    }

    /// Goes on to the next stage when nothing is left at this one.
    pub(super) fn advance(&mut self) {
        match self.stage {
            Stage::First if self.suspects.is_empty() => self.end(TableVerdict::Equal, None),
            Stage::First => {
                self.stage = Stage::Second;
                self.todo = std::mem::take(&mut self.suspects);
            }
            Stage::Second if self.found.different() > 0 => self.end(TableVerdict::Differs, None),
            Stage::Second => self.end(TableVerdict::Equal, None),
            Stage::Done => {}
        }
    }
}

/// All tables, by name.
pub(super) type Tables = BTreeMap<TableName, TableProgress>;

/// The file.
#[derive(Debug, Serialize, Deserialize)]
struct StateDocument {
    schema: String,
    /// What is compared with what: of another comparison, nothing counts.
    of: String,
    tables: Vec<TableProgress>,
}

/// Where the state is kept, if anywhere.
#[derive(Debug)]
pub(super) struct StateFile {
    path: Option<PathBuf>,
    of: String,
}

impl StateFile {
    /// Names what is compared.
    pub(super) fn new(request: &ChecksumRequest, sides: &mut Sides) -> Result<Self> {
        let mut of = vec![sides.channel.clone()];
        for side in [&mut sides.source, &mut sides.replica] {
            let sql = "SELECT CONCAT_WS(' ', @@hostname, @@port, @@server_id, @@datadir)";
            of.push(side.session.value(sql)?.unwrap_or_default());
        }
        of.push(format!("{:?}", request.selection));
        Ok(Self {
            path: request.state.clone(),
            of: of.join(", "),
        })
    }

    /// Reads how far an earlier run came; nothing where there was none.
    ///
    /// Errors: `Usage` for a file that is of another comparison, or not ours.
    pub(super) fn read(&self) -> Result<Tables> {
        let Some(path) = &self.path else {
            return Ok(Tables::new());
        };
        let Some(text) = read_own(path)? else {
            return Ok(Tables::new());
        };
        let refused = |why: &str| Error::usage(format!("{} {why}", path.display()));
        let document: StateDocument = serde_json::from_str(&text)
            .map_err(|error| refused("is no state of a comparison").because(error))?;
        if document.schema != SCHEMA || document.of != self.of {
            return Err(refused("is the state of another comparison")
                .hint("name another file with --state, or remove this one"));
        }
        let named = document.tables.into_iter().map(|one| {
            let name = TableName {
                database: one.found.database.clone(),
                table: one.found.table.clone(),
            };
            (name, one)
        });
        Ok(named.collect())
    }

    /// Replaces the file, whole.
    pub(super) fn write(&self, tables: Vec<TableProgress>) -> Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let document = StateDocument {
            schema: SCHEMA.to_owned(),
            of: self.of.clone(),
            tables,
        };
        let failed = || format!("failed to write {}", path.display());
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        // Only its owner may read it: it has keys of rows.
        let mut file = NamedTempFile::new_in(parent.unwrap_or(Path::new("."))).context(failed)?;
        let text = serde_json::to_string(&document).context(failed)?;
        file.write_all(text.as_bytes()).context(failed)?;
        file.as_file().sync_data().context(failed)?;
        file.persist(path)
            .map_err(|error| error.error)
            .context(failed)?;
        Ok(())
    }

    /// Removes it: the next run is a new one.
    pub(super) fn remove(&self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Reads a file of this user that nobody else may write: it says what is asked of servers.
fn read_own(path: &Path) -> Result<Option<String>> {
    let failed = || format!("failed to read {}", path.display());
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(std::io::Error::from(error)).context(failed),
    };
    let facts = file.metadata().context(failed)?;
    if !facts.is_file() || facts.uid() != geteuid().as_raw() || facts.mode() & 0o022 != 0 {
        return Err(Error::usage(format!(
            "{} is not a file that only this user may write",
            path.display()
        )));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).context(failed)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(after: Option<&str>, up_to: Option<&str>) -> Range {
        let bound = |value: &str| vec![value.to_owned()];
        Range {
            after: after.map(bound),
            up_to: up_to.map(bound),
        }
    }

    #[test]
    fn what_is_suspect_is_looked_at_again_and_only_that() {
        let name: TableName = "d.t".parse().unwrap();
        let mut progress = TableProgress::new(&name);
        progress.suspect(range(Some("1"), Some("2")));
        progress.suspect(range(Some("2"), Some("3")));
        progress.suspect(range(Some("7"), None));
        progress.todo.clear();
        progress.advance();
        assert_eq!(progress.stage, Stage::Second);
        assert_eq!(
            progress.todo,
            [range(Some("1"), Some("3")), range(Some("7"), None)]
        );
        progress.advance();
        assert_eq!(progress.found.verdict, TableVerdict::Equal);
        assert_eq!(progress.stage, Stage::Done);
    }

    #[test]
    fn what_is_equal_is_done_at_once() {
        let mut progress = TableProgress::new(&"d.t".parse().unwrap());
        progress.advance();
        assert_eq!(
            (progress.stage, progress.found.verdict),
            (Stage::Done, TableVerdict::Equal)
        );
    }
}
