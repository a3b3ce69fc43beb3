//! What should be mounted, and what came of it.

use crate::facts::{DATA_ROOT, Facts};
use crate::restore::start_options;
use evenkeel_op::Result;
use evenkeel_op::paths::absolute;
use evenkeel_repository::Location;
use evenkeel_server::abilities::Recorded;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What to show, and where.
#[derive(Debug, Clone)]
pub struct MountRequest {
    /// The repository.
    pub repository: Location,
    /// Where its files should be seen: an empty directory.
    pub mountpoint: PathBuf,
    /// Only generations of this source: its name, its host, or the name of its directory.
    pub source: Option<String>,
    /// Only this generation.
    pub generation: Option<u32>,
    /// Only the newest generation.
    pub latest: bool,
    /// Makes one generation writable: the newest when none is named.
    pub scratch: Option<ScratchRequest>,
    /// Memory for what was decompressed.
    pub cache_bytes: usize,
}

/// How one generation becomes writable.
#[derive(Debug, Clone)]
pub struct ScratchRequest {
    /// Takes what is written and what was read.
    pub dir: PathBuf,
    /// Brings everything else too, until it is a full restore.
    pub fill: bool,
    /// Keeps it afterwards, to be mounted again.
    pub keep: bool,
    /// Owner and group of everything, instead of what they were.
    pub owner: Option<(u32, u32)>,
    /// How fast is filled, in bytes a second; 0 for as fast as goes.
    pub rate_bytes_per_s: u64,
    /// The hot-copy tool that prepares what it copied, where it is not one of the usual names.
    pub engine_tool: Option<PathBuf>,
}

impl MountRequest {
    /// Makes a request to show everything, with the usual settings.
    #[must_use]
    pub fn new(repository: impl Into<Location>, mountpoint: &Path) -> Self {
        Self {
            repository: repository.into(),
            mountpoint: absolute(mountpoint),
            source: None,
            generation: None,
            latest: false,
            scratch: None,
            cache_bytes: 128 << 20,
        }
    }
}

impl ScratchRequest {
    /// Makes a request for a scratch that is thrown away afterwards.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: absolute(dir),
            fill: false,
            keep: false,
            owner: None,
            rate_bytes_per_s: 0,
            engine_tool: None,
        }
    }
}

/// What is shown now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MountReport {
    /// `mounted`.
    pub state: &'static str,
    /// Where.
    pub mountpoint: PathBuf,
    /// The one generation; none when all are shown.
    pub generation: Option<u32>,
    /// How many are shown.
    pub generations: u64,
    /// Whether it can be written to.
    pub writable: bool,
    /// The directory that takes what is written.
    pub scratch: Option<PathBuf>,
    /// Whether that continues from an earlier mount.
    pub resumed: bool,
    /// Whether a dead mount was taken away first.
    pub healed: bool,
    /// Sum of the sizes of the files of one that can be written to.
    pub bytes_logical: u64,
    /// How much of that the scratch does not hold yet, at most.
    pub bytes_missing: u64,
    /// Where each root is shown, of one that can be written to.
    pub roots: BTreeMap<String, PathBuf>,
    /// Options that a server needs to start on it.
    pub start_options: Vec<String>,
    /// The command that starts one.
    pub start_command: Vec<String>,
    /// How long it took.
    pub seconds: f64,
}

/// Everything was brought: the repository is not needed any more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Filled {
    /// `filled`.
    pub state: &'static str,
    /// The generation.
    pub generation: Option<u32>,
    /// The directory that holds all of it now.
    pub scratch: PathBuf,
    /// Bytes that were brought in the background.
    pub bytes_filled: u64,
    /// How long that took.
    pub seconds: f64,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MountEnd {
    /// `ended`.
    pub state: &'static str,
    /// Where it was.
    pub mountpoint: PathBuf,
    /// The generation, of one.
    pub generation: Option<u32>,
    /// What became of the scratch: `removed`, `kept` or `restored`; none without one.
    pub scratch: Option<&'static str>,
    /// The data directory, when it is a full restore.
    pub target: Option<PathBuf>,
    /// Where each root is then.
    pub roots: BTreeMap<String, PathBuf>,
    /// Options that a server needs to start on it.
    pub start_options: Vec<String>,
    /// How much the scratch lacks, at most.
    pub bytes_missing: u64,
    /// Whether all that was asked for was done.
    pub complete: bool,
}

/// The longest path of a unix socket.
const SOCKET_PATH_MAX: usize = 107;

impl MountReport {
    pub(super) fn new(mountpoint: &Path, generation: Option<u32>) -> Self {
        Self {
            state: "mounted",
            mountpoint: mountpoint.to_owned(),
            generation,
            generations: 0,
            writable: false,
            scratch: None,
            resumed: false,
            healed: false,
            bytes_logical: 0,
            bytes_missing: 0,
            roots: BTreeMap::new(),
            start_options: Vec::new(),
            start_command: Vec::new(),
            seconds: 0.0,
        }
    }

    /// Says how a server is started on it, whose files belong to the user `uid`.
    pub(super) fn tell_start(&mut self, facts: &Facts, uid: Option<u32>) -> Result<()> {
        self.start_options = start_options(&facts.settings, &facts.roots, &self.roots)?;
        let Some(data) = self.roots.get(DATA_ROOT) else {
            return Ok(());
        };
        let server = Recorded::of(facts.server_version.as_deref());
        let usual = server.flavour.program();
        let program = facts.server_program.as_deref().unwrap_or(usual);
        let mut socket = data.join("mount.sock");
        if socket.as_os_str().len() > SOCKET_PATH_MAX {
            socket = PathBuf::from(format!("/tmp/mount-{}.sock", std::process::id()));
        }
        self.start_command = vec![
            program.to_owned(),
            "--no-defaults".to_owned(),
            format!("--datadir={}", data.display()),
            format!("--socket={}", socket.display()),
            // It has nothing of its option files: else a backup would answer on every interface of the host.
            "--skip-networking".to_owned(),
        ];
        if rustix::process::geteuid().is_root() {
            let user = match uid {
                None | Some(0) => "root".to_owned(),
                Some(uid) => uid.to_string(),
            };
            self.start_command.push(format!("--user={user}"));
        }
        self.start_command.extend(self.start_options.clone());
        Ok(())
    }
}
