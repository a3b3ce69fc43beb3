//! Proves that a generation starts: restore into a scratch directory or mount with one, start the
//! server's own program on it without networking, wait for recovery, check every table.

use super::report::BootReport;
use super::scratch::{MOUNTPOINT, Scratch};
use super::{check, queues};
use crate::facts::{DATA_ROOT, Facts};
use crate::mount::{self, Mount, MountRequest, ScratchRequest};
use crate::restore::{self, RestoreRequest};
use crate::tables;
use crate::throwaway;
use evenkeel_op::paths::absolute;
use evenkeel_op::{Context, Error, Result, Run, Unit, units};
use evenkeel_repository::{Location, Proof, Repository};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::quote_name;
use evenkeel_server::launch::{Account, Binary, Launch, Running};
use evenkeel_server::tables::ServerTables;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to prove.
#[derive(Debug, Clone)]
pub struct BootRequest {
    /// The repository.
    pub repository: Location,
    /// The generation; the newest when not given.
    pub generation: Option<u32>,
    /// The server program; must be able to run what was backed up.
    pub binary: Binary,
    /// A directory that does not exist or is empty; removed afterwards.
    pub scratch: PathBuf,
    /// Threads that restore.
    pub workers: usize,
    /// Whether to mount it in place of restoring it: only what the server reads is fetched.
    pub mounted: bool,
    /// How long crash recovery may take.
    pub deadline: Duration,
    /// The hot-copy tool that prepares what it copied, where it is not one of the usual names.
    pub engine_tool: Option<PathBuf>,
    /// How the files of queues are checked: the server that is started loads no library, and knows none.
    pub check_queues: queues::CheckQueues,
}

/// Refuses a generation whose tables a server would look for where the originals are: it must not
/// find, and write to, those. Also one that a tool has to prepare which is not here. Reads the
/// manifest only.
fn bootable(repository: &Repository, generation: u32, engine_tool: Option<&Path>) -> Result<()> {
    let facts = Facts::of(&repository.manifest(generation)?)?;
    if facts.is_of_volumes() {
        return Err(Error::refused(format!(
            "generation {generation} holds volumes, not a server's files: there is nothing to start"
        ))
        .hint("without --boot, verify still checks every byte"));
    }
    restore::preparer(&facts, engine_tool)?;
    restore::leads_nowhere_else(&facts)?;
    let Some((id, place)) = restore::bound_to_their_place(&facts).next() else {
        return Ok(());
    };
    let place = place.display();
    Err(Error::refused(format!(
        "generation {generation} has tables in {place}, and crash recovery opens them at that \
         path: a server started on a scratch copy would write to the originals"
    ))
    .hint("without --boot, verify still checks every byte")
    .hint(format!(
        "to prove it, restore and start a server on a host where that path is free: evenkeel \
         restore --map-root {id}={place}"
    )))
}

/// Looks at all that a proof needs besides the files, so that it is not found missing when everything was
/// read or restored: that the generation can be started here, and that the server's account reaches its
/// program and the scratch directory.
///
/// Errors: `Refused`, with what to do.
pub fn ready(request: &BootRequest) -> Result<()> {
    let repository = Repository::open(&request.repository)?;
    let generation = match request.generation {
        Some(generation) => generation,
        None => restore::newest(&repository)?,
    };
    bootable(&repository, generation, request.engine_tool.as_deref())?;
    let scratch = absolute(&request.scratch);
    let account = throwaway::nobodys_account();
    account.map_or(Ok(()), |account| {
        throwaway::reach(account, &request.binary, &[&scratch])
    })
}

/// Restores, starts and checks. Refuses what [`ready`] does.
pub fn boot(request: &BootRequest, run: Run<'_>) -> Result<BootReport> {
    let repository = Repository::open(&request.repository)?;
    let generation = match request.generation {
        Some(generation) => generation,
        None => restore::newest(&repository)?,
    };
    bootable(&repository, generation, request.engine_tool.as_deref())?;
    let facts = Facts::of(&repository.manifest(generation)?)?;
    let scratch = Scratch::claim(&request.scratch)?;
    let account = throwaway::nobodys_account();
    if let Some(account) = account {
        scratch.open_up()?;
        throwaway::reach(account, &request.binary, &[&scratch.path().join("data")])?;
    }
    let files = BootFiles::make(request, generation, scratch.path(), account, run)?;
    let mut launch = Launch::new(request.binary.clone(), &files.datadir);
    launch.account = account;
    launch.is_sealed = true;
    launch.extra_args.extend(files.start_options.clone());
    launch.extra_args.extend(QUIET_OPTIONS.map(str::to_owned));
    run.progress
        .phase("starting a server on the restored files", None, Unit::Items);
    let begun = Instant::now();
    let mut report = BootReport::of(generation, request.binary.version.to_string());
    // What is mounted must not stay so.
    let queues = match queues::check(request.check_queues, &files.datadir, &mut report) {
        Ok(queues) => queues,
        Err(error) => return files.end().and(Err(error)),
    };
    let tried = match launch.start(request.deadline, run.cancel) {
        Ok(server) => {
            fail::fail_point!("verify::started");
            report.recovery_seconds = Some(begun.elapsed().as_secs_f64());
            run.progress.end();
            let checked = missing_tables(&server, &facts, &mut report)
                .and_then(|()| check::tables(&server, queues, &mut report, run));
            if let Err(error) = server.stop(request.deadline) {
                report.problems.push(error.chain());
            }
            checked
        }
        Err(error) => run.cancel.check().map(|()| {
            report.problems.push(error.chain());
        }),
    };
    // Whatever came of it: nothing may stay mounted.
    let ended = files.end();
    tried?;
    ended?;
    report.proven = report.problems.is_empty();
    if report.proven
        && let Err(error) = record(request, &report)
    {
        // Who may only read has proved it all the same.
        run.progress.warn(format!(
            "failed to record in the repository that generation {} starts: {}",
            report.generation,
            error.chain()
        ));
    }
    Ok(report)
}

/// Files that a server can be started on.
struct BootFiles {
    datadir: PathBuf,
    start_options: Vec<String>,
    mount: Option<Mount>,
}

impl BootFiles {
    fn make(
        request: &BootRequest,
        generation: u32,
        top: &Path,
        account: Option<Account>,
        run: Run<'_>,
    ) -> Result<Self> {
        let owner = account.map(|account| (account.uid, account.gid));
        if request.mounted {
            return Self::mounted(request, generation, top, owner, run);
        }
        let datadir = top.join("data");
        let mut restore = RestoreRequest::new(&request.repository, Some(generation), &datadir);
        restore.workers = request.workers;
        restore.owner = owner;
        restore.engine_tool.clone_from(&request.engine_tool);
        let restored = restore::restore(&restore, run)?;
        Ok(Self {
            datadir,
            start_options: restored.start_options,
            mount: None,
        })
    }

    fn mounted(
        request: &BootRequest,
        generation: u32,
        top: &Path,
        owner: Option<(u32, u32)>,
        run: Run<'_>,
    ) -> Result<Self> {
        let mountpoint = top.join(MOUNTPOINT);
        std::fs::create_dir(&mountpoint)
            .context(|| format!("failed to create {}", mountpoint.display()))?;
        let mut scratch = ScratchRequest::new(&top.join("written"));
        scratch.engine_tool.clone_from(&request.engine_tool);
        scratch.owner = owner;
        let mut wanted = MountRequest::new(&request.repository, &mountpoint);
        wanted.generation = Some(generation);
        wanted.scratch = Some(scratch);
        let mount = mount::mount(&wanted, run)?;
        Ok(Self {
            datadir: mountpoint.join(DATA_ROOT),
            start_options: mount.report().start_options.clone(),
            mount: Some(mount),
        })
    }

    fn end(self) -> Result<()> {
        self.mount.map_or(Ok(()), |mount| mount.end().map(drop))
    }
}

/// Notes in the repository that the generation was proved restorable, when, and by which server.
fn record(request: &BootRequest, report: &BootReport) -> Result<()> {
    let how = serde_json::to_value(report)
        .map_err(|error| Error::failed("failed to write the proof").because(error))?;
    let proof = Proof {
        at: jiff::Timestamp::now(),
        how,
    };
    Repository::open(&request.repository)?.record_proof(report.generation, proof, PROOF_WAIT)
}

/// How long to wait for a backup that runs meanwhile, to note the proof.
const PROOF_WAIT: Duration = Duration::from_secs(60);

/// Nothing may run by itself on a server that only proves a backup, and nobody's password is known.
const QUIET_OPTIONS: [&str; 6] = [
    "--skip-grant-tables",
    "--skip-slave-start",
    "--event-scheduler=DISABLED",
    "--read-only=ON",
    // Nobody reads it, and without it MySQL starts in half the processor time.
    "--performance-schema=OFF",
    // MySQL 5.7 ends at once when this meets a damaged page; CHECK TABLE must find it.
    "--innodb-buffer-pool-load-at-startup=OFF",
];

/// Looks for what the generation says that it has. Another version of the server may have other tables of
/// its own.
fn missing_tables(server: &Running, facts: &Facts, report: &mut BootReport) -> Result<()> {
    let Some(record) = &facts.tables else {
        return Ok(());
    };
    let (schemas, tables) = record.names()?;
    let mut session = server.session()?;
    let abilities = Abilities::probe(&mut session)?;
    let found = ServerTables::read(&mut session, &abilities)?;
    let is_same = facts.server_version.as_ref() == Some(&abilities.version_text);
    let counts = |schema: &str| is_same || !matches!(schema, "mysql" | "sys");
    report.tables_recorded = Some(record.tables);
    let there = tables::names(&found);
    let schemas = schemas
        .difference(&found.schemas)
        .filter(|schema| counts(schema));
    let schemas = schemas.map(|schema| format!("schema {}", quote_name(schema)));
    let tables = tables
        .difference(&there)
        .filter(|table| counts(&table.schema));
    let missing: Vec<String> = schemas.chain(tables.map(ToString::to_string)).collect();
    let more = missing.len().saturating_sub(MISSING_NAMED);
    for name in missing.iter().take(MISSING_NAMED) {
        let problem = format!("{name} existed when the generation was made, and is missing now");
        report.problems.push(problem);
    }
    if more > 0 {
        report
            .problems
            .push(format!("missing: {}", units::count(more, "more table")));
    }
    Ok(())
}

/// Missing tables that are named.
const MISSING_NAMED: usize = 50;
