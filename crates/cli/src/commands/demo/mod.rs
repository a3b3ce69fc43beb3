//! `evenkeel demo`: the main job on a throwaway server, with traffic on it throughout.
//!
//! start ─► load ─► transfers run ─► full + three incremental generations ─► SIGKILL ─► restore
//! ─► start ─► check every transfer ─► verify the repository ─► table and verdict

mod bank;
mod directory;
mod run;
mod verdict;

pub(crate) use run::PROGRAMS;
pub use run::run;
pub use verdict::{DemoGeneration, DemoReport};

use bank::{Client, Diary};
use directory::DemoDirectory;
use evenkeel_backup::backup::{self, BackupRequest, Done, SnapshotChoice, Source};
use evenkeel_backup::{restore, verify};
use evenkeel_drive::{Drive, Pace};
use evenkeel_op::{Error, Result, Run, Unit};
use evenkeel_server::launch::{Binary, Launch, Running};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Transfers run for this long before each generation, for the figure "before".
const CALM: Duration = Duration::from_secs(4);
/// Generations after the full one.
const INCREMENTS: u32 = 3;
/// How long the server may take to start, stop or recover.
const SERVER_DEADLINE: Duration = Duration::from_secs(60);

/// What the user can set.
#[derive(Debug, Clone)]
pub struct DemoRequest {
    /// Directory under which everything happens, and is removed afterwards.
    pub parent: PathBuf,
    /// The server program; found when not given.
    pub server: Binary,
    /// Sessions that transfer money.
    pub clients: u32,
    /// Rows of the part of the database that does not change (about 350 bytes each).
    pub archive_rows: u64,
}

/// Runs the demo.
pub fn demo(request: &DemoRequest, run: Run<'_>) -> Result<DemoReport> {
    let directory = DemoDirectory::prepare(&request.parent)?;
    run.progress
        .note(format!("directory: {}", directory.description));
    let stage = Stage::new(&directory, &request.server)?;
    let server = stage.start_server(run)?;
    run.progress.phase("loading the bank", None, Unit::Items);
    bank::load(&mut server.session()?, request.archive_rows)?;
    run.progress.end();

    let traffic = Traffic::start(&server, request.clients)?;
    let mut generations = Vec::new();
    let mut last = None;
    for _ in 0..=INCREMENTS {
        let before = traffic.calm(run)?;
        let mark = traffic.drive.mark();
        let done = stage.back_up(&server, run)?;
        let during = traffic.drive.since(&mark);
        generations.push(DemoGeneration::new(&done.report, before, during));
        last = Some(done);
    }
    // Some more transfers, which must not be in the restored bank.
    traffic.calm(run)?;
    let last = last.ok_or_else(|| Error::failed("the demo made no generation"))?;
    run.progress
        .note("killing the server with SIGKILL".to_owned());
    server.kill();
    let diaries = traffic.stop();

    let restored = stage.restore(&last, run)?;
    let holdings = bank::holdings(&mut restored.session()?)?;
    let coordinates = stage.gtid_of(&restored)?;
    restored.stop(SERVER_DEADLINE)?;
    let findings = stage.verify(run)?;
    Ok(verdict::judge(verdict::Evidence {
        directory: directory.description.clone(),
        server: request.server.version.to_string(),
        generations,
        last: &last,
        holdings: &holdings,
        restored_gtid: coordinates,
        diaries: &diaries,
        findings,
    }))
}

/// The places of one demo.
struct Stage {
    binary: Binary,
    datadir: PathBuf,
    restored: PathBuf,
    repository: PathBuf,
}

impl Stage {
    fn new(directory: &DemoDirectory, binary: &Binary) -> Result<Self> {
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("server"))
            .map_err(|e| Error::failed("failed to create the server's directory").because(e))?;
        Ok(Self {
            binary: binary.clone(),
            datadir: at("server").join("data"),
            restored: at("restored"),
            repository: at("repository"),
        })
    }

    fn launch(&self, datadir: &Path) -> Launch {
        let mut launch = Launch::new(self.binary.clone(), datadir);
        for option in [
            "--log-bin=binlog",
            "--server-id=1",
            "--innodb-buffer-pool-size=256M",
        ] {
            launch = launch.arg(option);
        }
        launch
            .arg("--innodb-log-file-size=96M")
            .arg("--innodb-flush-log-at-trx-commit=1")
    }

    fn start_server(&self, run: Run<'_>) -> Result<Running> {
        run.progress
            .phase("starting a private server", None, Unit::Items);
        let launch = self.launch(&self.datadir);
        launch.initialise(SERVER_DEADLINE, run.cancel)?;
        let server = launch.start(SERVER_DEADLINE, run.cancel)?;
        run.progress.end();
        Ok(server)
    }

    fn back_up(&self, server: &Running, run: Run<'_>) -> Result<Done> {
        let source = Source::Live(Box::new(server.connect_options()));
        let request = BackupRequest::new(&self.repository, source, SnapshotChoice::Auto);
        backup::backup(&request, run)
    }

    /// Restores the generation and starts a server on it.
    fn restore(&self, done: &Done, run: Run<'_>) -> Result<Running> {
        let request = restore::RestoreRequest::new(
            &self.repository,
            Some(done.report.generation),
            &self.restored,
        );
        restore::restore(&request, run)?;
        run.progress
            .phase("starting the restored server", None, Unit::Items);
        let restored = self
            .launch(&self.restored)
            .start(SERVER_DEADLINE, run.cancel)?;
        run.progress.end();
        Ok(restored)
    }

    fn gtid_of(&self, restored: &Running) -> Result<Option<String>> {
        restored.session()?.value("SELECT @@gtid_binlog_pos")
    }

    fn verify(&self, run: Run<'_>) -> Result<Vec<String>> {
        let request = verify::ReadRequest::new(&self.repository, verify::Generations::All);
        let report = verify::read(&request, run)?;
        Ok(report.findings.iter().map(verify::sentence).collect())
    }
}

/// The bank's customers.
struct Traffic {
    drive: Drive,
    diaries: Vec<Arc<Mutex<Diary>>>,
}

impl Traffic {
    fn start(server: &Running, clients: u32) -> Result<Self> {
        let clients: Vec<Client> = (0..clients)
            .map(|number| Client::open(&server.connect_options(), number))
            .collect::<Result<_>>()?;
        let diaries = clients.iter().map(Client::diary).collect();
        Ok(Self {
            drive: Drive::start(clients, 1, Pace::Closed)?,
            diaries,
        })
    }

    /// Lets transfers run undisturbed for a while; returns how many per second.
    fn calm(&self, run: Run<'_>) -> Result<f64> {
        run.progress
            .phase("transfers, undisturbed", None, Unit::Items);
        let mark = self.drive.mark();
        let until = std::time::Instant::now() + CALM;
        while std::time::Instant::now() < until {
            run.cancel.check()?;
            std::thread::sleep(Duration::from_millis(50));
        }
        run.progress.end();
        if self.drive.lost() > 0 {
            return Err(Error::failed("a client of the demo lost its session"));
        }
        Ok(self.drive.since(&mark).per_s())
    }

    fn stop(self) -> Vec<Diary> {
        self.drive.stop();
        let take = |diary: &Arc<Mutex<Diary>>| {
            std::mem::take(&mut *diary.lock().unwrap_or_else(|e| e.into_inner()))
        };
        self.diaries.iter().map(take).collect()
    }
}
