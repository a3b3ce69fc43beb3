//! Runs the tests of `tests/vm/` inside a virtual machine, whose kernel has what theirs needs: Debian's
//! user-mode Linux, the host's own root under a layer of the machine's.

mod built;
mod uml;
mod verdict;

use anyhow::{Context, Result, bail, ensure};
use built::Built;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long one test may take, in seconds: ten times what it takes on a quiet machine.
const TEST_SECONDS: u64 = 600;
/// How long the machine may take to start and to end.
const BOOT: Duration = Duration::from_secs(240);
/// The same of a test whose loop is run in full, as soaks outside the machine have it.
const FULL_SECONDS: u64 = 3 * 60 * 60;
/// How long all tests may take together, beside others that come first; in full they may take what each may.
const ALL: Duration = Duration::from_secs(60 * 60);
/// What tests ask how long to go on, and what for chance: handed on to those in the machine.
const EFFORT: [&str; 3] = ["EVENKEEL_EFFORT", "EVENKEEL_SEED", "EVENKEEL_ROUNDS"];
/// The disk that takes what tests write, and the spare ones: sparse files.
const SCRATCH_BYTES: u64 = 8 << 30;
const SPARE_BYTES: u64 = 4 << 30;
const SCRATCH_DISK: &str = "ubda";
const SPARE_DISKS: [&str; 3] = ["ubdb", "ubdc", "ubdd"];

/// Builds and runs the tests whose names contain one of `filters`, or all. Returns whether every one
/// of them passed. An error when there is none, or no machine to be had.
pub fn run(root: &Path, filters: &[String], list: bool) -> Result<bool> {
    let target = crate::target_directory(root)?;
    let built = Built::make(root)?;
    let wanted = built.tests(filters)?;
    ensure!(!wanted.is_empty(), "no test is called like {filters:?}");
    if list {
        wanted.iter().for_each(|test| println!("{test}"));
        return Ok(true);
    }
    let kernel = set_up(root)?;
    let room = Room::make(&target.join("machine"))?;
    let is_full = std::env::var(EFFORT[0]).is_ok_and(|effort| effort == "full");
    let test_seconds = if is_full { FULL_SECONDS } else { TEST_SECONDS };
    let plan = wanted.iter().fold(String::new(), |mut plan, test| {
        let program = test.program.display();
        let _ = writeln!(plan, "{test_seconds}\t{program}\t{}", test.name);
        plan
    });
    let disks = SPARE_DISKS.map(|disk| format!("/dev/{disk}")).join(" ");
    let mut environment = format!(
        "EVENKEEL_SPARE_DISKS='{disks}'\nEVENKEEL_UNDER_TEST='{}'\nHOME='{}'\n",
        built.under_test.display(),
        std::env::var("HOME").context("HOME is not set")?,
    );
    for name in EFFORT {
        if let Ok(value) = std::env::var(name).or_else(|_| chosen(name)) {
            let _ = writeln!(environment, "{name}='{value}'");
        }
    }
    room.write("plan", &plan)?;
    room.write("environment", &environment)?;
    room.write("modules", &kernel.display().to_string())?;
    let each = Duration::from_secs(test_seconds * wanted.len() as u64);
    let deadline = BOOT + if is_full { each } else { ALL.min(each) };
    let seconds = uml::run(root, &kernel, &room, deadline)?;
    verdict::judge(&wanted, &room.read("verdict")?, seconds)
}

/// Returns a seed, if that is what is asked for: in the machine there is no nextest that would give its tests one.
fn chosen(name: &str) -> Result<String, std::env::VarError> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    match (name, now) {
        ("EVENKEEL_SEED", Ok(now)) => Ok((now.as_secs() % 1_000_000).to_string()),
        _ => Err(std::env::VarError::NotPresent),
    }
}

/// Installs what is missing and returns the directory of the machine's kernel.
fn set_up(root: &Path) -> Result<PathBuf> {
    let output = Command::new(root.join("tests/vm/setup"))
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("failed to run tests/vm/setup")?;
    ensure!(output.status.success(), "tests/vm/setup failed");
    Ok(String::from_utf8(output.stdout)?.trim().into())
}

/// A directory for one run, and for one run at a time; removed when dropped.
struct Room {
    path: PathBuf,
    _lock: File,
}

impl Room {
    fn make(path: &Path) -> Result<Self> {
        let lock = File::create(path.with_extension("lock"))?;
        if lock.try_lock().is_err() {
            bail!("a machine runs already: {} is taken", path.display());
        }
        // A run that was killed left it.
        if path.exists() {
            fs::remove_dir_all(path)?;
        }
        fs::create_dir_all(path)?;
        let room = Self {
            path: path.to_owned(),
            _lock: lock,
        };
        let scratch = room.disk(SCRATCH_DISK, SCRATCH_BYTES)?;
        let made = Command::new("/sbin/mke2fs")
            .args(["-q", "-F", "-t", "ext4", "-m", "0"])
            .arg(scratch)
            .status();
        ensure!(made.context("mke2fs")?.success(), "mke2fs failed");
        for spare in SPARE_DISKS {
            room.disk(spare, SPARE_BYTES)?;
        }
        Ok(room)
    }

    fn disk(&self, name: &str, bytes: u64) -> Result<PathBuf> {
        let path = self.path.join(name);
        File::create(&path)?.set_len(bytes)?;
        Ok(path)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.path.join(name), text).with_context(|| format!("failed to write {name}"))
    }

    fn read(&self, name: &str) -> Result<String> {
        fs::read_to_string(self.path.join(name)).with_context(|| format!("failed to read {name}"))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
