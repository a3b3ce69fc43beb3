//! A data directory with many tables, as SIGKILL left it.

use super::request::RecoveryRequest;
use super::run_directory::RunDirectory;
use evenkeel_op::workers::all_joined;
use evenkeel_op::{Context, Result, Run, Unit};
use evenkeel_server::abilities::StartReads;
use evenkeel_server::connect::Session;
use evenkeel_server::launch::{Binary, Launch, Running};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a server may take to be made, started or stopped, beside what its tables take.
const SERVER: Duration = Duration::from_secs(180);
/// What a table's opening, making or flushing may take at most.
const TABLE: Duration = Duration::from_millis(40);
/// Tables of one schema: a directory with very many files is slow of itself.
const SCHEMA_TABLES: usize = 1000;
/// Sessions that make tables.
const SESSIONS: usize = 4;
/// What a table takes on disk, and a data directory without any, generously.
const TABLE_BYTES: u64 = 120 << 10;
const EMPTY_BYTES: u64 = 400 << 20;
/// Written beside a data directory that is complete.
const COMPLETE: &str = "made";

/// Options of every start: nothing that is not asked about takes time or changes files.
const PLAIN: [&str; 4] = [
    "--skip-log-bin",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--innodb-buffer-pool-load-at-startup=OFF",
];
/// Options of starts that are thrown away if the machine crashes.
const CARELESS: [&str; 5] = [
    // What is left to be purged would be purged after the next start: in some tables or in all.
    "--innodb-fast-shutdown=0",
    "--innodb-flush-method=nosync",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
    "--innodb-stats-persistent=OFF",
];

/// It, and its server.
#[derive(Debug)]
pub(super) struct Crashed {
    top: PathBuf,
    pub(super) binary: Binary,
    pub(super) tables: usize,
    /// How many have changes in the redo log only.
    pub(super) changed: usize,
}

impl Crashed {
    /// Makes it, unless an earlier run did.
    pub(super) fn made(
        run_directory: &RunDirectory,
        binary: &Binary,
        tables: usize,
        request: &RecoveryRequest,
        run: Run<'_>,
    ) -> Result<Self> {
        let share = request.changed_percent / 100.0;
        let changed = ((tables as f64 * share).round() as usize).clamp(1, tables.max(1));
        let name = format!("{}-{}-{tables}-{changed}", binary.flavour, binary.version);
        let crashed = Self {
            top: run_directory.crashed(&name.to_lowercase()),
            binary: binary.clone(),
            tables,
            changed,
        };
        let complete = crashed.top.join(COMPLETE);
        if complete.exists() {
            run.progress.note(format!(
                "{}, {tables} tables: reused from an earlier run",
                crashed.name()
            ));
            return Ok(crashed);
        }
        let _ = fs::remove_dir_all(&crashed.top);
        // Itself, and the copy that is started on.
        let bytes = 2 * (tables as u64 * TABLE_BYTES + EMPTY_BYTES);
        run_directory.refuse_too_small(bytes, 2 * (2 * tables as u64 + 1000))?;
        fs::create_dir_all(&crashed.top)
            .context(|| format!("failed to create {}", crashed.top.display()))?;
        crashed.make(run_directory, run)?;
        fs::write(&complete, "").context(|| format!("failed to write {}", complete.display()))?;
        Ok(crashed)
    }

    /// Returns the server's name: `MySQL 5.7.22`.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.binary.flavour, self.binary.version)
    }

    pub(super) fn top(&self) -> &Path {
        &self.top
    }

    /// Returns the data directory.
    pub(super) fn datadir(&self) -> PathBuf {
        self.top.join("data")
    }

    /// Whether a path below the data directory is that of a table made here.
    pub(super) fn is_table(path: &Path) -> bool {
        let schema = path.parent().and_then(Path::file_name);
        path.extension().is_some_and(|ending| ending == "ibd")
            && schema.is_some_and(|name| name.to_string_lossy().starts_with("many"))
    }

    /// Whether this server is known to look into every table's file after a crash.
    pub(super) fn reads_every_table(&self) -> bool {
        let known = (self.binary.flavour, self.binary.version);
        StartReads::of(Some(known)).header_bytes_after_crash > 0
    }

    /// Plans a server.
    pub(super) fn launch(&self, datadir: &Path, run_directory: &RunDirectory) -> Launch {
        let mut launch = Launch::new(self.binary.clone(), datadir);
        launch.run_parent = run_directory.run_dir();
        launch.extra_args = PLAIN.map(str::to_owned).to_vec();
        if self.binary.abilities().log_error_verbosity {
            // Its steps are reported as notes.
            launch = launch.arg("--log-error-verbosity=3");
        }
        launch
    }

    /// Returns how long a start may take when each read takes so long.
    pub(super) fn deadline(&self, latency: Duration) -> Duration {
        let tables = u32::try_from(self.tables).unwrap_or(u32::MAX);
        SERVER + (TABLE + 10 * latency).saturating_mul(tables)
    }

    fn make(&self, run_directory: &RunDirectory, run: Run<'_>) -> Result<()> {
        let until = self.deadline(Duration::ZERO);
        let mut launch = self.launch(&self.datadir(), run_directory);
        launch.initialise(SERVER, run.cancel)?;
        launch.extra_args.extend(CARELESS.map(str::to_owned));
        let server = launch.start(until, run.cancel)?;
        let what = format!("{}, {} tables: making them", self.name(), self.tables);
        run.progress
            .phase(&what, Some(self.tables as u64), Unit::Items);
        self.create(&server, run)?;
        run.progress.end();
        // The checkpoint is past all of that after a shutdown.
        server.stop(until)?;
        launch = self.launch(&self.datadir(), run_directory);
        let server = launch
            .arg("--innodb-flush-log-at-trx-commit=1")
            .arg("--innodb-io-capacity=100")
            .start(until, run.cancel)?;
        self.change(&mut server.session()?, run)?;
        server.kill();
        Ok(())
    }

    fn schemas(&self) -> usize {
        self.tables.div_ceil(SCHEMA_TABLES)
    }

    fn create(&self, server: &Running, run: Run<'_>) -> Result<()> {
        let mut session = server.session()?;
        for number in 0..self.schemas() {
            session.run(&format!("CREATE DATABASE many{number}"))?;
        }
        let share = self.tables.div_ceil(SESSIONS).max(1);
        let shares: Vec<Range<usize>> = (0..self.tables)
            .step_by(share)
            .map(|first| first..(first + share).min(self.tables))
            .collect();
        std::thread::scope(|scope| {
            let makers: Vec<_> = shares
                .into_iter()
                .map(|share| scope.spawn(|| create_share(server, share, run)))
                .collect();
            let ended = all_joined(makers, "a thread that makes tables").into_iter();
            ended.collect::<Result<()>>()
        })
    }

    /// Changes rows in some tables, evenly spread.
    fn change(&self, session: &mut Session, run: Run<'_>) -> Result<()> {
        for number in 0..self.changed {
            run.cancel.check()?;
            let table = table(number * self.tables / self.changed);
            session.run(&format!("UPDATE {table} SET note = 'changed' WHERE id = 1"))?;
        }
        Ok(())
    }
}

fn table(number: usize) -> String {
    format!("many{}.t{number}", number / SCHEMA_TABLES)
}

fn create_share(server: &Running, share: Range<usize>, run: Run<'_>) -> Result<()> {
    let mut session = server.session()?;
    for number in share {
        run.cancel.check()?;
        let table = table(number);
        session.run(&format!(
            "CREATE TABLE {table} (id INT UNSIGNED PRIMARY KEY, note VARCHAR(100) NOT NULL) \
             ENGINE=InnoDB"
        ))?;
        session.run(&format!(
            "INSERT INTO {table} VALUES (1, 'first'), (2, 'second'), (3, 'third')"
        ))?;
        run.progress.advance(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_told_from_other_files() {
        let is_table = |path: &str| Crashed::is_table(Path::new(path));
        assert_eq!(table(2999), "many2.t2999");
        assert!(is_table("many2/t2999.ibd"));
        for other in [
            "many2/t2999.frm",
            "mysql/plugin.ibd",
            "mysql.ibd",
            "ibdata1",
        ] {
            assert!(!is_table(other), "{other}");
        }
    }
}
