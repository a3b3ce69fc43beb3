//! Starts and stops private servers: for `evenkeel demo`, for `verify --boot`, and for tests.
//!
//! A private server never reads an option file, has its own data directory, and keeps its socket,
//! pid file and error log in a short directory of its own, because a unix socket's path may have no
//! more than 107 bytes. It dies with the process that started it, even when that process is killed:
//! a forgotten server would hold a scratch directory's files open forever.

mod binary;
pub mod hand_over;
mod run_dir;
mod running;
mod spawn;

pub use binary::{Binary, Install};
pub use hand_over::Account;
pub use run_dir::log_below;
pub use running::Running;
pub use spawn::{kill_group, spawn, spawn_detached};

use crate::abilities::{Flavour, Version};
use evenkeel_op::paths::absolute;
use evenkeel_op::{Cancel, Context, Error, Result};
use run_dir::RunDir;
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest path a unix socket can have, in bytes, without the closing NUL.
pub const SOCKET_PATH_MAX: usize = 107;

/// MySQL's list of components to load, beside its program.
const COMPONENTS: &str = "mysqld.my";

/// How many free ports are tried when another process takes the one that was found.
const PORT_TRIES: usize = 3;

/// How a private server should be started. Make it with [`Launch::new`], then set what differs.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub binary: Binary,
    /// Its data directory.
    pub datadir: PathBuf,
    /// Options after evenkeel's own, so they win: `--innodb-page-size=4k`. They are also given
    /// when the data directory is initialised, because some must agree.
    pub extra_args: Vec<String>,
    /// Whether it listens on a free port of the loopback address; else on its socket only.
    pub networking: bool,
    /// The account that [`Running::session`] uses, without a password.
    pub user: String,
    /// Where the short-lived directory for socket, pid file and log is made: `/tmp`.
    pub run_parent: PathBuf,
    /// Whom the server's process belongs to, when this one is root's. Without it, to root.
    pub account: Option<Account>,
    /// Whether its files come from a repository: statements may read and write no files of this host beside the
    /// server's own, no library is loaded, and no setting is taken from the data directory.
    pub is_sealed: bool,
    /// The time zone it lives in (`TZ`), when not this host's.
    pub time_zone: Option<String>,
}

impl Launch {
    /// Plans a server of `binary` on `datadir`, without networking.
    pub fn new(binary: Binary, datadir: impl Into<PathBuf>) -> Self {
        Self {
            binary,
            datadir: absolute(&datadir.into()),
            extra_args: Vec::new(),
            networking: false,
            user: "root".to_owned(),
            run_parent: PathBuf::from("/tmp"),
            account: None,
            is_sealed: false,
            time_zone: None,
        }
    }

    /// Adds an option for the server.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.extra_args.push(arg.into());
        self
    }

    /// Makes it listen on a free loopback port as well.
    #[must_use]
    pub fn with_networking(mut self) -> Self {
        self.networking = true;
        self
    }

    /// Creates the system tables in `datadir`, which must be missing or empty: root without a
    /// password, nothing else. Fails with the last lines of what the server said.
    pub fn initialise(&self, deadline: Duration, cancel: &Cancel) -> Result<()> {
        let until = Instant::now() + deadline;
        self.make_empty_datadir()?;
        let run_dir = RunDir::create(&self.run_parent)?;
        let output = run_dir.path().join("initialise.log");
        let mut command = match &self.binary.install {
            Install::InitializeInsecure => {
                let mut command = self.binary.command();
                command.args(self.common_args(run_dir.path()));
                command.arg("--initialize-insecure");
                command
            }
            Install::Script(Some(script)) => {
                let mut command = Command::new(script);
                command
                    .args(self.common_args(run_dir.path()))
                    .args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
                command
            }
            Install::Script(None) => {
                return Err(Error::refused(format!(
                    "{} has no mariadb-install-db beside it",
                    self.binary.path.display()
                ))
                .hint("install the package that holds mariadb-install-db (mariadb-server)"));
            }
        };
        command.args(&self.extra_args);
        redirect(&mut command, &output)?;
        self.hand_over(run_dir.path())?;
        self.become_account(&mut command);
        let mut child = spawn::spawn(command)
            .context(|| format!("failed to run {}", self.binary.path.display()))?;
        let ended = spawn::wait(&mut child, until, cancel);
        if !matches!(ended, Ok(Some(_))) {
            spawn::kill_group(&mut child);
        }
        let said = || complaints(&output, 12);
        match ended? {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(Error::failed(format!(
                "failed to initialize {} ({status}):\n{}",
                self.datadir.display(),
                said()
            ))),
            None => Err(Error::failed(format!(
                "initializing {} took longer than {}",
                self.datadir.display(),
                evenkeel_op::units::duration(deadline)
            ))),
        }
    }

    fn make_empty_datadir(&self) -> Result<()> {
        let place = self.datadir.display();
        std::fs::create_dir_all(&self.datadir).context(|| format!("failed to create {place}"))?;
        let mut entries =
            std::fs::read_dir(&self.datadir).context(|| format!("failed to list {place}"))?;
        if entries.next().is_some() {
            // mariadb-install-db would go ahead, among whatever is there.
            return Err(Error::usage(format!("{place} is not empty"))
                .hint("name a directory that is empty or does not exist"));
        }
        self.hand_over(&self.datadir)
    }

    /// The account, when there is one to become.
    fn other_account(&self) -> Option<Account> {
        self.account
            .filter(|_| rustix::process::geteuid().is_root())
    }

    /// Gives a directory that was just made to the server's account.
    fn hand_over(&self, dir: &Path) -> Result<()> {
        let Some(account) = self.other_account() else {
            return Ok(());
        };
        hand_over::give_directory(dir, account)
            .context(|| format!("failed to set the owner of {}", dir.display()))
    }

    /// The child leaves root's rights and groups behind before it runs the program. A server that is told
    /// `--user` does so itself, but would then outlive us: the kernel forgets whose death kills it.
    fn become_account(&self, command: &mut Command) {
        if let Some(Account { uid, gid }) = self.other_account() {
            command.uid(uid).gid(gid);
        }
    }

    /// Starts the server and waits until it greets a client on its socket. When it exits first,
    /// or `deadline` passes, the error holds the last lines of its log, and nothing is left.
    pub fn start(&self, deadline: Duration, cancel: &Cancel) -> Result<Running> {
        let until = Instant::now() + deadline;
        for _ in 1..PORT_TRIES {
            match self.start_once(until, cancel) {
                Err(error)
                    if self.networking && error.to_string().contains("Bind on TCP/IP port") => {}
                other => return other,
            }
        }
        self.start_once(until, cancel)
    }

    fn start_once(&self, until: Instant, cancel: &Cancel) -> Result<Running> {
        let run_dir = RunDir::create(&self.run_parent)?;
        let socket = run_dir.path().join("s");
        if socket.as_os_str().len() > SOCKET_PATH_MAX {
            return Err(Error::usage(format!(
                "{} is too long for the path of a unix socket",
                socket.display()
            ))
            .hint("choose a shorter directory for temporary files"));
        }
        let port = if self.networking {
            Some(free_port()?)
        } else {
            None
        };
        let log_path = run_dir.log();
        let mut command = self.binary.command();
        command
            .args(self.common_args(run_dir.path()))
            .arg(joined("--socket=", &socket))
            .arg(joined("--pid-file=", &run_dir.path().join("pid")));
        match port {
            Some(port) => command.args(["--bind-address=127.0.0.1", &format!("--port={port}")]),
            None => command.arg("--skip-networking"),
        };
        let binary = &self.binary;
        if binary.flavour == Flavour::MySql && binary.version >= Version::new(8, 0, 0) {
            // The X plugin would open a second socket at a fixed path and port.
            command.arg("--mysqlx=OFF");
        }
        if binary.flavour == Flavour::MySql {
            // Built with a directory for LOAD DATA, it would not start where that is missing.
            command.arg("--secure-file-priv=NULL");
        }
        if self.is_sealed {
            command.args(self.seals(run_dir.path())?);
        }
        command.args(&self.extra_args);
        if let Some(zone) = &self.time_zone {
            command.env("TZ", zone);
        }
        // No --log-error: MySQL 8.0 that fails early then says nothing at all, anywhere.
        redirect(&mut command, &log_path)?;
        // From now on all names in it are the account's.
        self.hand_over(run_dir.path())?;
        self.become_account(&mut command);
        let child = spawn::spawn(command)
            .context(|| format!("failed to run {}", self.binary.path.display()))?;
        let mut running = Running::new(child, run_dir, socket, port, log_path, self.user.clone());
        running.wait_until_it_greets(until, cancel)?;
        Ok(running)
    }

    /// The options that keep what comes from a repository from reaching further than its own files.
    fn seals(&self, run_dir: &Path) -> Result<Vec<OsString>> {
        let empty = |name: &str| -> Result<PathBuf> {
            let dir = run_dir.join(name);
            rustix::fs::mkdir(&dir, Mode::RWXU)
                .context(|| format!("failed to create {}", dir.display()))?;
            Ok(dir)
        };
        let mut args = vec![OsString::from("--local-infile=OFF")];
        // Tables and logs may name libraries. Where root put a list of components beside the program, these
        // are loaded from there too: they are this host's, and may open what is encrypted.
        if !self.binary.path.with_file_name(COMPONENTS).exists() {
            args.push(joined("--plugin-dir=", &empty("plugins")?));
        }
        if self.binary.flavour == Flavour::MariaDb {
            // It knows no NULL: an empty directory, which goes with the server.
            args.push(joined("--secure-file-priv=", &empty("files")?));
        }
        Ok(args)
    }

    /// The options that initialising and running share. `--no-defaults` must come first; with it MySQL 8.0.15 and 9.7
    /// do not obey `mysqld-auto.cnf` in the data directory either, which they do with an empty option file.
    fn common_args(&self, run_dir: &Path) -> Vec<OsString> {
        let mut args = vec![
            OsString::from("--no-defaults"),
            joined("--datadir=", &self.datadir),
            joined("--tmpdir=", run_dir),
        ];
        if let Some(base) = self.binary.base_dir() {
            args.push(joined("--basedir=", base));
        }
        if let Some(share) = &self.binary.share_dir {
            args.push(joined("--lc-messages-dir=", share));
            args.push(joined("--character-sets-dir=", &share.join("charsets")));
        }
        if rustix::process::geteuid().is_root() && self.account.is_none() {
            args.push(OsString::from("--user=root"));
        }
        args
    }
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut whole = OsString::from(option);
    whole.push(path);
    whole
}

fn free_port() -> Result<u16> {
    std::net::TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .context(|| "failed to find a free port")
}

/// Sends what the program prints to a file: a pipe that nobody empties would block it.
fn redirect(command: &mut Command, output: &Path) -> Result<()> {
    let file = std::fs::File::create_new(output)
        .context(|| format!("failed to create {}", output.display()))?;
    let second = file.try_clone().context(|| "failed to copy a descriptor")?;
    command.stdin(Stdio::null()).stdout(file).stderr(second);
    Ok(())
}

/// Returns the last `lines` lines of a log, with any byte that is no UTF-8 replaced.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    last(&read_lossy(path).lines().collect::<Vec<_>>(), lines)
}

/// Returns the last `lines` lines that say what went wrong. A server that fails says so once and
/// then continues for a page about how it shuts down.
pub(crate) fn complaints(path: &Path, lines: usize) -> String {
    let text = read_lossy(path);
    let all: Vec<&str> = text.lines().collect();
    let errors: Vec<&str> = all
        .iter()
        .copied()
        .filter(|line| line.contains("[ERROR]") || line.contains("[FATAL]"))
        .collect();
    last(if errors.is_empty() { &all } else { &errors }, lines)
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&read_file(path).unwrap_or_default()).into_owned()
}

/// Reads what is a file. The directory may be another account's, which could lay anything there.
fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = std::fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    if file.metadata()?.is_file() {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn last(all: &[&str], lines: usize) -> String {
    all[all.len().saturating_sub(lines)..].join("\n")
}
