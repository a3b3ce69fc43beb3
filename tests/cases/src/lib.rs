//! End-to-end cases on real servers and real filesystems: what each needs to stand on.

pub mod archives;
pub mod baselines;
pub mod browser;
pub mod bucket;
pub mod checking;
pub mod dumps;
pub mod engines;
pub mod exact;
pub mod failpoints;
pub mod far;
pub mod faults;
pub mod forged;
pub mod generated;
pub mod house;
pub mod image;
pub mod kinds;
pub mod leftovers;
pub mod loads;
pub mod masked;
pub mod mounting;
pub mod packets;
pub mod pages;
pub mod partition;
pub mod played;
pub mod points;
pub mod program;
pub mod provoked;
pub mod queues;
pub mod rounds;
pub mod shell;
pub mod storm;
pub mod taps;
pub mod trio;
use evenkeel_backup::backup::{self, BackupRequest, Done, SnapshotChoice, Source};
use evenkeel_backup::restore::{self, RestoreReport, RestoreRequest};
use evenkeel_op::{Cancel, Result, Run, Silent};
use evenkeel_repository::Compression;
use evenkeel_server::abilities::RedoLayout;
use evenkeel_server::launch::{Launch, Running};
use evenkeel_testkit::{Bank, BankTraffic, LoopFs, Marks, TestServer};
use std::path::{Path, PathBuf};

/// Options of every server here: small and quick to start, with a binary log.
pub const SMALL: [&str; 6] = [
    "--log-bin=binlog",
    "--server-id=7",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M",
    "--innodb-flush-log-at-trx-commit=2",
    "--performance-schema=OFF",
];

/// GTIDs have to be asked for on MySQL.
const MYSQL_GTIDS: [&str; 2] = ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"];

/// A server with a bank on a filesystem of its own.
pub struct Site {
    /// The running server; `None` once killed.
    pub running: Option<Running>,
    /// How it was started.
    pub launch: Launch,
    /// Its bank.
    pub bank: Bank,
    /// The program.
    pub server: TestServer,
    // Dropped last: everything above lies on it.
    /// The filesystem.
    pub fs: LoopFs,
}

impl Site {
    /// Starts `server` on `fs` with `accounts` accounts and more server options.
    #[must_use]
    pub fn start(server: TestServer, fs: LoopFs, accounts: u32, more: &[&str]) -> Self {
        let launch = Self::launch(&server, &fs, more);
        Self::of(server, fs, launch, accounts)
    }

    /// Starts `server` as [`Site::start`] does, on a TCP port besides.
    #[must_use]
    pub fn start_with_networking(server: TestServer, fs: LoopFs, more: &[&str]) -> Self {
        let launch = Self::launch(&server, &fs, more).with_networking();
        Self::of(server, fs, launch, 1)
    }

    fn launch(server: &TestServer, fs: &LoopFs, more: &[&str]) -> Launch {
        let mut args = SMALL.to_vec();
        if server.name.starts_with("MySQL") {
            args.extend(MYSQL_GTIDS);
        }
        if RedoLayout::of(server.binary.flavour, server.binary.version) == RedoLayout::Directory {
            // The option of old is gone; a server has two files of its size.
            args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
            args.push("--innodb-redo-log-capacity=64M");
        }
        args.extend(more);
        server.prepare(&fs.join("data"), &args)
    }

    /// Starts a server whose data directory is there.
    #[must_use]
    pub fn of(server: TestServer, fs: LoopFs, launch: Launch, accounts: u32) -> Self {
        let running = server.run(&launch);
        let bank =
            Bank::load(&mut running.session().expect("a session"), accounts).expect("a bank");
        Self {
            running: Some(running),
            launch,
            bank,
            server,
            fs,
        }
    }

    /// Returns the running server.
    #[must_use]
    pub fn running(&self) -> &Running {
        self.running.as_ref().expect("the server runs")
    }

    /// Starts clients that move money between the bank's accounts until they are told to stop.
    #[must_use]
    pub fn traffic(&self, clients: u32) -> BankTraffic {
        let options = self.running().connect_options();
        self.bank.start(&options, clients).expect("traffic")
    }

    /// Starts clients that move money as fast as the server takes it.
    #[must_use]
    pub fn rush(&self, clients: u32) -> BankTraffic {
        let options = self.running().connect_options();
        self.bank.rush(&options, clients).expect("traffic")
    }

    /// Returns the repository's path.
    #[must_use]
    pub fn repository(&self) -> PathBuf {
        self.fs.join("repository")
    }

    /// Returns a request to back this server up, without regard for its traffic or for what else the host does:
    /// what they do to a run's length and size are other questions.
    #[must_use]
    pub fn request(&self, snapshot: SnapshotChoice) -> BackupRequest {
        let source = Source::Live(Box::new(self.running().connect_options()));
        let mut request = BackupRequest::new(self.repository(), source, snapshot);
        request.max_impact_percent = 100;
        request.compression = Compression::Level(1);
        request
    }

    /// Kills the server with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(running) = self.running.take() {
            running.kill();
        }
    }

    /// Restores a generation to `name` on the same filesystem.
    pub fn restore(&self, generation: Option<u32>, name: &str) -> Result<RestoreReport> {
        self.restore_to(generation, &self.fs.join(name))
    }

    /// Restores a generation to a path.
    pub fn restore_to(&self, generation: Option<u32>, to: &Path) -> Result<RestoreReport> {
        let request = RestoreRequest::new(self.repository(), generation, to);
        restore::restore(&request, quiet(&Cancel::new()))
    }

    /// Starts a server on `datadir`, checks its bank, and checks that it is one of an instant
    /// between two looks at the traffic. Returns its GTID position.
    pub fn check_bank_at(&self, datadir: &Path, before: &Marks, after: &Marks) -> Option<String> {
        let mut launch = self.launch.clone();
        launch.datadir = datadir.to_owned();
        let running = self.server.run(&launch);
        let mut session = running.session().expect("a session");
        let state = self.bank.check(&mut session).expect("the bank is in order");
        state
            .check_between(before, after)
            .expect("exactly what was committed");
        let variable = match self.server.name.starts_with("MySQL") {
            true => "@@global.gtid_executed",
            false => "@@gtid_binlog_pos",
        };
        let gtid = session
            .value(&format!("SELECT {variable}"))
            .expect("a GTID");
        running.kill();
        gtid.map(|text| text.split_whitespace().collect())
    }
}

/// Runs a backup, silently.
pub fn back_up(request: &BackupRequest) -> Result<Done> {
    backup::backup(request, quiet(&Cancel::new()))
}

/// A run that nobody watches.
#[must_use]
pub fn quiet(cancel: &Cancel) -> Run<'_> {
    Run {
        progress: &Silent,
        cancel,
    }
}
