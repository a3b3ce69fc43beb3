//! One entry: break, build, test, look.

use super::{Entry, tree::Tree};
use crate::stop::Stop;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

/// What `cargo nextest` exits with.
const TESTS_FAILED: i32 = 100;
const BUILD_FAILED: i32 = 101;
/// What `cargo xtask machine` exits with when tests failed.
const MACHINE_FAILED: i32 = 4;

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(super) enum Outcome {
    /// The test failed, saying this.
    Killed { said: String },
    /// The test passed: it guards nothing.
    Survived,
    /// The broken code does not compile, so nothing is proven.
    DidNotCompile,
    /// The test did not run.
    NoTest { code: Option<i32> },
}

impl Outcome {
    pub(super) fn is_killed(&self) -> bool {
        matches!(self, Self::Killed { .. })
    }

    pub(super) fn is_invalid(&self) -> bool {
        matches!(self, Self::DidNotCompile | Self::NoTest { .. })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Killed { said } => write!(out, "killed: {said}"),
            Self::Survived => out.write_str("SURVIVED"),
            Self::DidNotCompile => out.write_str("did not compile"),
            Self::NoTest { code } => write!(out, "no test ran: exit code {code:?}"),
        }
    }
}

/// Tries one entry. What cargo and the test printed is kept as `<name>.log`.
pub(super) fn run(entry: &Entry, tree: &Tree, target: &Path, stop: &Stop) -> Result<Outcome> {
    let log = target.join("sabotage.logs");
    fs::create_dir_all(&log)?;
    let log = log.join(format!("{}.log", entry.name));
    let out = File::create(&log).with_context(|| format!("failed to create {}", log.display()))?;
    let once = |effort: &str| {
        let mut command = command(entry, tree.path(), target);
        command.env("EVENKEEL_EFFORT", effort);
        command.stdout(out.try_clone()?).stderr(out.try_clone()?);
        stop.wait(command)
    };
    let code = tree.broken(entry, || match once("sample")? {
        // What the sample left out may be what would have noticed.
        Some(0) if !entry.is_in_machine() => once("full"),
        code => Ok(code),
    })?;
    forget_plugins(target)?;
    Ok(match code {
        Some(0) => Outcome::Survived,
        Some(TESTS_FAILED | MACHINE_FAILED) => Outcome::Killed {
            said: said(&fs::read_to_string(&log)?),
        },
        Some(BUILD_FAILED) => Outcome::DidNotCompile,
        code => Outcome::NoTest { code },
    })
}

/// Removes the libraries for servers that were built. Cargo puts no hash into their names: that of the
/// broken tree lies where the whole one's is looked for, and one that is missing is built again.
fn forget_plugins(target: &Path) -> Result<()> {
    let built = target.join("debug/deps");
    for entry in fs::read_dir(&built).into_iter().flatten() {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let ours = name.is_some_and(|name| name.starts_with("libevenkeel_"));
        if ours && path.extension().is_some_and(|end| end == "so") {
            fs::remove_file(&path)
                .with_context(|| format!("failed to remove {}", path.display()))?;
        }
    }
    Ok(())
}

fn command(entry: &Entry, tree: &Path, target: &Path) -> Command {
    let mut command = crate::cargo();
    if entry.is_in_machine() {
        let only = entry.only.as_deref().unwrap_or_default();
        command.args(["xtask", "machine"]);
        command.arg(format!("{}::{only}", entry.test));
    } else {
        command.args(["nextest", "run", "--offline", "--fail-fast", "--package"]);
        command.arg(&entry.package);
        match entry.test.as_str() {
            "lib" => command.arg("--lib"),
            test => command.args(["--test", test]),
        };
        command.args(&entry.only).envs(&entry.env);
    }
    command
        .current_dir(tree)
        .env("CARGO_TARGET_DIR", target)
        // One changed line: seconds instead of a minute, whatever whole builds are set to.
        .env("CARGO_INCREMENTAL", "1")
        .env("CARGO_TERM_COLOR", "never");
    command
}

/// Returns the beginning of what the first panic said.
fn said(log: &str) -> String {
    let mut lines = log.lines().map(str::trim);
    if !lines.any(|line| line.contains("panicked at ")) {
        return "without a panic".to_owned();
    }
    let mut said = String::new();
    for line in lines {
        said.push_str(line);
        // What follows a colon is what it is about.
        if !line.ends_with(':') {
            break;
        }
        said.push(' ');
    }
    let one_cell = said.replace('|', "/");
    one_cell.chars().take(160).collect()
}
