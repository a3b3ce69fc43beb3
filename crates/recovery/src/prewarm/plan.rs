//! What the server will read through the page cache, in the order in which it will.

use super::buffer_pool;
use super::job::{Job, jobs};
use super::redo::Redo;
use evenkeel_op::{Result, units};
use evenkeel_server::abilities::StartReads;
use evenkeel_server::files::{FileClass, FoundFile, ServerFiles};
use evenkeel_server::stopped::StoppedServer;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most that is read of one file of the dictionary, of undo logs, or of the system tablespace:
/// what a start needs of them lies near their beginning, and they may be large.
const SYSTEM_BYTES: u64 = 512 << 20;
/// The most that is read of a system table or of an engine's own log.
const SMALL_BYTES: u64 = 1 << 20;
/// The most that is read of the last binary log.
const BINLOG_BYTES: u64 = 2 << 30;

/// The step that most of the time is for.
pub(super) const HEADERS: &str = "tablespace headers";

/// Things of one kind that are read.
#[derive(Debug)]
pub(super) struct Step {
    /// A few words: "tablespace headers".
    pub(super) name: &'static str,
    /// How many files they are of.
    pub(super) files: usize,
    /// What to read.
    pub(super) jobs: Vec<Job>,
}

/// What to read, and what should be said about it.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// What will be of no use to this server and why, a sentence each.
    pub(super) useless: Vec<String>,
}

impl Plan {
    /// Decides from the server's version, its settings and how it ended.
    pub(super) fn of(server: &StoppedServer, found: &ServerFiles, redo: Redo) -> Self {
        let reads = habits(server);
        let direct = pages_bypass_cache(server, reads);
        let mut plan = Self::default();
        if !direct {
            plan.add("dictionary and undo", found, |file| {
                is_system(file).then_some(SYSTEM_BYTES)
            });
        }
        let header = match redo.needs_recovery() {
            true => reads.header_bytes_after_crash,
            false => reads.header_bytes_after_shutdown,
        };
        if header > 0 {
            plan.add(HEADERS, found, |file| is_table(file).then_some(header));
        } else {
            plan.useless.push(match redo {
                Redo::Clean => format!(
                    "the server was shut down cleanly, and then {} does not open every tablespace",
                    name_of(server)
                ),
                _ => format!(
                    "{} opens only the tablespaces that its redo log names",
                    name_of(server)
                ),
            });
        }
        plan.add("system tables", found, |file| {
            is_system_table(file).then_some(SMALL_BYTES)
        });
        if redo.needs_recovery() {
            let last = last_binlog(found);
            plan.add("binary log", found, |file| {
                (Some(&file.path) == last.as_ref()).then_some(BINLOG_BYTES)
            });
        }
        if direct {
            plan.useless.push(format!(
                "{} bypasses the page cache for pages ({}): prewarm reads only the rest",
                name_of(server),
                match server.settings.get("innodb_flush_method") {
                    Some(method) => format!("innodb_flush_method={method}"),
                    None => "innodb_flush_method is O_DIRECT unless it is set".to_owned(),
                }
            ));
        }
        plan
    }

    /// Adds the beginning of each file of which `wanted` says how many bytes at most.
    fn add(
        &mut self,
        name: &'static str,
        found: &ServerFiles,
        wanted: impl Fn(&FoundFile) -> Option<u64>,
    ) {
        let mut step = Step {
            name,
            files: 0,
            jobs: Vec::new(),
        };
        for file in &found.files {
            let Some(most) = wanted(file).filter(|most| most.min(&file.size) > &0) else {
                continue;
            };
            step.files += 1;
            let path = Arc::new(file.path.clone());
            step.jobs.extend(jobs(&path, 0, most.min(file.size)));
        }
        if step.files > 0 {
            self.steps.push(step);
        }
    }

    /// Adds the pages that a server had in memory; says why not where that is of no use. The first
    /// page of each tablespace tells which it is, so they are read before.
    pub(super) fn add_buffer_pool(
        &mut self,
        server: &StoppedServer,
        found: &ServerFiles,
    ) -> Result<()> {
        if pages_bypass_cache(server, habits(server)) {
            return Ok(());
        }
        let list = list_of(server);
        let text = match std::fs::read_to_string(&list) {
            Ok(text) => text,
            Err(error) => {
                let list = list.display();
                self.useless.push(format!(
                    "no pages of the buffer pool are warmed: {list}: {error}"
                ));
                return Ok(());
            }
        };
        let (pages, strange) = buffer_pool::parse(&text);
        if strange > 0 {
            let list = list.display();
            self.useless.push(format!(
                "not a page: {} of {list}",
                units::count(strange, "line")
            ));
        }
        let files: Vec<(Arc<PathBuf>, u64)> = found
            .files
            .iter()
            .filter(|file| file.class == FileClass::InnodbData)
            .map(|file| (Arc::new(file.path.clone()), file.size))
            .collect();
        let spaces = buffer_pool::spaces(&files);
        let mut step = Step {
            name: "buffer pool",
            files: 0,
            jobs: Vec::new(),
        };
        for (space, pages) in &pages {
            let Some(space) = spaces.get(space) else {
                continue;
            };
            step.files += 1;
            for (path, range) in space.ranges(pages) {
                let length = range.end - range.start;
                step.jobs.extend(jobs(&path, range.start, length));
            }
        }
        self.steps.push(step);
        Ok(())
    }
}

/// Whether the server looks into the files of tables, however it ended.
pub(super) fn may_read_tables(server: &StoppedServer) -> bool {
    let reads = habits(server);
    reads.header_bytes_after_crash > 0 || reads.header_bytes_after_shutdown > 0
}

/// How a server of this kind reads; one of an unknown version is taken to read all it might.
fn habits(server: &StoppedServer) -> StartReads {
    let maker = server.maker.as_ref();
    StartReads::of(maker.and_then(|maker| Some((maker.flavour, maker.version?))))
}

/// Whether the server reads InnoDB pages so that the page cache is of no use.
fn pages_bypass_cache(server: &StoppedServer, reads: StartReads) -> bool {
    match server.settings.get("innodb_flush_method") {
        Some(method) => {
            let method = method.to_ascii_uppercase();
            // Numbers, as SHOW VARIABLES of some versions has them, mean the same.
            method.starts_with("O_DIRECT") || matches!(method.as_str(), "4" | "5")
        }
        None => reads.pages_direct_by_default,
    }
}

fn name_of(server: &StoppedServer) -> String {
    let maker = server.maker.as_ref();
    maker.map_or_else(
        || "this server".to_owned(),
        |maker| match maker.version {
            Some(version) => format!("{} {version}", maker.flavour),
            None => maker.flavour.to_string(),
        },
    )
}

fn list_of(server: &StoppedServer) -> PathBuf {
    let set = |name| server.settings.get(name).filter(|value| !value.is_empty());
    let name = set("innodb_buffer_pool_filename");
    let home = server.directory("innodb_data_home_dir");
    home.join(name.map_or("ib_buffer_pool", String::as_str))
}

fn file_name(file: &FoundFile) -> &str {
    file.name.rsplit('/').next().unwrap_or(&file.name)
}

fn is_table(file: &FoundFile) -> bool {
    let name = file_name(file);
    file.class == FileClass::InnodbData && (name.ends_with(".ibd") || name.ends_with(".ibu"))
}

/// The system tablespace, undo tablespaces, and MySQL's dictionary.
fn is_system(file: &FoundFile) -> bool {
    let is_dictionary = file_name(file) == "mysql.ibd";
    file.class == FileClass::InnodbDoublewrite
        || file.class == FileClass::InnodbData && (is_dictionary || !is_table(file))
}

/// What the SQL layer reads of the schema `mysql` and of its own logs.
fn is_system_table(file: &FoundFile) -> bool {
    let of_mysql = Path::new(&file.name)
        .parent()
        .is_some_and(|dir| dir.file_name().is_some_and(|name| name == "mysql"));
    let table = matches!(file.class, FileClass::EngineTable | FileClass::Definition);
    table && of_mysql || matches!(file.class, FileClass::EngineLog | FileClass::ServerState)
}

fn last_binlog(found: &ServerFiles) -> Option<PathBuf> {
    let logs = found.files.iter();
    let last = logs
        .filter(|file| file.class == FileClass::Binlog)
        .max_by(|a, b| {
            let key = |file: &FoundFile| (file.name.len(), file.name.clone());
            key(a).cmp(&key(b))
        });
    last.map(|file| file.path.clone())
}
