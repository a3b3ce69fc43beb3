//! What has to hold before a version goes out, and what goes out then.

mod checks;
mod licences;

use crate::workspace::Workspace;
use crate::{cargo, git};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package whose version is the product's.
const PRODUCT: &str = "evenkeel-cli";

/// What no program can say; the last is done when all else holds.
const BY_HAND: [&str; 4] = [
    "`.ci/run` passed on this commit, in a clean clone",
    "`make soak` and `cargo xtask sabotage` have records of this version, and every surprise in them has a cause",
    "`make test-packages` passed on the packages that are published",
    "somebody who did not write it has read CHANGELOG.md: what changed for whoever upgrades",
];

/// What is asked of a release.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Lay out what is to be published although a check is open, in a directory whose name says so.
    #[arg(long)]
    pub draft: bool,
    /// Only write the licences of what the program is built of into this file.
    #[arg(long, value_name = "FILE")]
    pub licences: Option<PathBuf>,
}

/// Checks this commit, and lays out what is to be published; `false` when a check is open.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    if let Some(file) = &options.licences {
        let text = licences::of(root, PRODUCT)?;
        return fs::write(file, text)
            .map(|()| true)
            .with_context(|| format!("failed to write {}", file.display()));
    }
    let target = Workspace::read(root)?.target_directory;
    let version = version(root)?;
    let packages = target.join("packages");
    let open = checks::open(&checks::Facts {
        version: &version,
        changelog: &fs::read_to_string(root.join("CHANGELOG.md"))?,
        is_clean: git::commit(root)? == git::head(root)?,
        tags: &git::tags(root)?,
        packages: &names(&packages),
    });
    println!("evenkeel {version}");
    for line in &open {
        println!("  OPEN     {line}");
    }
    for line in BY_HAND {
        println!("  by hand  {line}");
    }
    if open.is_empty() || options.draft {
        let draft = if open.is_empty() { "" } else { "-draft" };
        let out = target.join(format!("release-{version}{draft}"));
        lay_out(root, &packages, &out)?;
        println!("{}: publish what is in it", out.display());
    }
    Ok(open.is_empty())
}

fn version(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join("Cargo.toml"))?;
    let manifest: toml::Table = text.parse()?;
    let version = manifest
        .get("workspace")
        .and_then(|one| one.get("package"))
        .and_then(|one| one.get("version"))
        .and_then(toml::Value::as_str);
    version
        .map(str::to_owned)
        .context("Cargo.toml has no version")
}

/// The names of the files in a directory; none when there is no such directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Packages, the licences and the parts of what is in them, and checksums of all.
fn lay_out(root: &Path, packages: &Path, out: &Path) -> Result<()> {
    let checked = Command::new("sha256sum")
        .args(["--check", "--quiet", "SHA256SUMS"])
        .current_dir(packages)
        .status()
        .with_context(|| {
            format!(
                "{} is missing: `make packages` makes it",
                packages.display()
            )
        })?;
    ensure!(
        checked.success(),
        "{}: build them again",
        packages.display()
    );
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    fs::create_dir_all(out)?;
    for name in names(packages).iter().filter(|name| *name != "SHA256SUMS") {
        fs::copy(packages.join(name), out.join(name))?;
    }
    fs::write(out.join("LICENCES.txt"), licences::of(root, PRODUCT)?)?;
    fs::write(out.join("evenkeel.cdx.json"), parts(root)?)?;
    let mut all = names(out);
    all.sort();
    let sums = Command::new("sha256sum")
        .arg("--")
        .args(all)
        .current_dir(out)
        .output()?;
    ensure!(sums.status.success(), "sha256sum failed");
    fs::write(out.join("SHA256SUMS"), sums.stdout)?;
    Ok(())
}

/// What the program is built of, as CycloneDX tells it.
fn parts(root: &Path) -> Result<Vec<u8>> {
    let reported = cargo()
        .args(["sbom", "--cargo-package", PRODUCT])
        .args(["--output-format", "cyclone_dx_json_1_6"])
        .current_dir(root)
        .output()?;
    let why = String::from_utf8_lossy(&reported.stderr);
    ensure!(
        reported.status.success(),
        "cargo sbom failed (`make release` installs it): {why}"
    );
    Ok(reported.stdout)
}
