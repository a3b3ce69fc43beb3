//! What each round begins with: data directories that were shut down in order.
//!
//! They are copied byte by byte. Were blocks shared with the copy, as a reflink would, each first write
//! of a round would cost what it costs behind a snapshot, and hide what a snapshot costs.

use super::able::quietly;
use super::account::Account;
use super::request::{DATABASE, ShowdownRequest};
use super::run_directory::{RunDirectory, SERVER};
use crate::tpcc::{self, LoadRequest};
use evenkeel_op::{Cancel, Context, Result, Run, Unit};
use evenkeel_server::launch::Launch;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Bytes that a warehouse takes, with some of its growth, and a data directory without any.
const WAREHOUSE_BYTES: u64 = 130 << 20;
const EMPTY_BYTES: u64 = 300 << 20;
/// Written when it is complete: with what it was made.
const COMPLETE: &str = "made";
/// A server's identity, which a copy must not have.
const IDENTITY: &str = "auto.cnf";
/// Options of a server whose work is thrown away if the machine crashes.
const CARELESS: [&str; 3] = [
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-fast-shutdown=0",
];

/// Them.
#[derive(Debug)]
pub(super) struct Baseline {
    top: PathBuf,
}

impl Baseline {
    /// Makes it, unless an earlier run did with the same options.
    pub(super) fn made(
        run_directory: &RunDirectory,
        request: &ShowdownRequest,
        run: Run<'_>,
    ) -> Result<Self> {
        let (server, scale) = (&request.server, request.scale);
        let name = format!(
            "{}-{}-{}-{}-{}",
            server.flavour, server.version, scale.warehouses, scale.items, scale.customers
        );
        let baseline = Self {
            top: run_directory.baseline(&name.to_lowercase()),
        };
        let (complete, with) = (
            baseline.top.join(COMPLETE),
            request.settings.options.join(" "),
        );
        let bytes = EMPTY_BYTES + u64::from(scale.warehouses) * WAREHOUSE_BYTES;
        if fs::read_to_string(&complete).is_ok_and(|made| made == with) {
            run.progress
                .note("the tables are reused from an earlier run".to_owned());
            run_directory.refuse_too_small(3 * bytes)?;
            return Ok(baseline);
        }
        run_directory.refuse_too_small(5 * bytes)?;
        evenkeel_op::disk::remove_any(&baseline.top)?;
        fs::create_dir_all(&baseline.top)
            .context(|| format!("failed to create {}", baseline.top.display()))?;
        baseline.make(run_directory, request, run)?;
        fs::write(&complete, with).context(|| format!("failed to write {}", complete.display()))?;
        Ok(baseline)
    }

    fn make(
        &self,
        run_directory: &RunDirectory,
        request: &ShowdownRequest,
        run: Run<'_>,
    ) -> Result<()> {
        let scale = request.scale;
        run.progress.phase("loading the tables", None, Unit::Items);
        let mut launch = Launch::new(request.server.clone(), self.top.join("empty"));
        launch.run_parent = run_directory.run_dir();
        launch.extra_args = request.settings.options.clone();
        launch.initialise(SERVER, run.cancel)?;
        launch.extra_args.extend(CARELESS.map(str::to_owned));
        launch.extra_args.push(format!(
            "--innodb-buffer-pool-size={}",
            request.settings.buffer_pool
        ));
        // Once before anything is copied: MariaDB writes some of its files only then.
        let server = launch.start(SERVER, run.cancel)?;
        Account::make(&mut server.session()?)?;
        server.stop(SERVER)?;
        launch.datadir = self.top.join("data");
        copy(&self.top.join("empty"), &launch.datadir, run.cancel)?;
        let server = launch.start(SERVER, run.cancel)?;
        let load = LoadRequest {
            database: DATABASE.to_owned(),
            scale,
            threads: 4,
            // The same rows for all runs: a later one may have another seed.
            seed: 1,
        };
        tpcc::load(&server.connect_options(), &load, quietly(run))?;
        server.stop(SERVER)?;
        run.progress.end();
        Ok(())
    }

    /// Copies the loaded data directory.
    pub(super) fn loaded(&self, to: &Path, cancel: &Cancel) -> Result<()> {
        copy(&self.top.join("data"), to, cancel)
    }

    /// Copies one without the tables.
    pub(super) fn empty(&self, to: &Path, cancel: &Cancel) -> Result<()> {
        copy(&self.top.join("empty"), to, cancel)
    }
}

/// Copies all files to a new directory, and waits until they are on disk: nothing of it must be written
/// while something is measured.
fn copy(from: &Path, to: &Path, cancel: &Cancel) -> Result<()> {
    let mut buffer = vec![0; 1 << 20];
    copy_all(from, to, &mut buffer, cancel)?;
    File::open(to)
        .and_then(|directory| Ok(rustix::fs::syncfs(directory)?))
        .context(|| format!("failed to write {}", to.display()))
}

fn copy_all(from: &Path, to: &Path, buffer: &mut [u8], cancel: &Cancel) -> Result<()> {
    cancel.check()?;
    let copying = || format!("failed to copy {} to {}", from.display(), to.display());
    fs::create_dir_all(to).context(copying)?;
    for entry in fs::read_dir(from).context(copying)? {
        let entry = entry.context(copying)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().context(copying)?;
        if kind.is_dir() {
            copy_all(&source, &target, buffer, cancel)?;
        } else if kind.is_file() && entry.file_name() != IDENTITY {
            copy_file(&source, &target, buffer)
                .context(|| format!("failed to copy {}", source.display()))?;
        }
    }
    let mode = fs::metadata(from).context(copying)?.permissions();
    fs::set_permissions(to, mode).context(copying)
}

fn copy_file(from: &Path, to: &Path, buffer: &mut [u8]) -> std::io::Result<()> {
    let (mut source, mut target) = (File::open(from)?, File::create(to)?);
    loop {
        match source.read(buffer)? {
            0 => break,
            read => target.write_all(&buffer[..read])?,
        }
    }
    target.set_permissions(source.metadata()?.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_every_byte_and_no_identity() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("shop/empty")).unwrap();
        let bytes: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
        fs::write(from.join("shop/t.ibd"), &bytes).unwrap();
        fs::write(from.join(IDENTITY), "uuid").unwrap();
        copy(&from, &to, &Cancel::new()).unwrap();
        assert_eq!(fs::read(to.join("shop/t.ibd")).unwrap(), bytes);
        assert!(to.join("shop/empty").is_dir() && !to.join(IDENTITY).exists());
    }
}
