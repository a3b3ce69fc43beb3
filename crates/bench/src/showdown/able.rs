//! What of it can be done here.

use super::method::{Method, Needs};
use super::process;
use super::request::ShowdownRequest;
use super::run_directory::RunDirectory;
use evenkeel_op::{Context, Result, Run};
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The kernel's number for btrfs.
const BTRFS: i64 = 0x9123_683E;
/// How long a shell may look for a program.
const LOOKING: Duration = Duration::from_secs(30);

/// What there is.
pub(super) struct Able<'a> {
    request: &'a ShowdownRequest,
    run_directory: &'a RunDirectory,
    reflinks: bool,
    btrfs: bool,
    lvm: bool,
}

impl<'a> Able<'a> {
    /// Looks at the round's filesystem, which is there.
    pub(super) fn look(
        request: &'a ShowdownRequest,
        run_directory: &'a RunDirectory,
    ) -> Result<Self> {
        let place = run_directory.round("able");
        fs::create_dir_all(&place).context(|| format!("failed to create {}", place.display()))?;
        let kind = rustix::fs::statfs(&place).context(|| "failed to look at the filesystem")?;
        Ok(Self {
            request,
            run_directory,
            reflinks: shares_blocks(&place),
            btrfs: kind.f_type as i64 == BTRFS,
            lvm: is_logical_volume(&place),
        })
    }

    /// Says what a method lacks; `None` when it can be measured.
    pub(super) fn lacks(&self, method: &Method) -> Option<String> {
        let flavour = self.request.server.flavour;
        if let Some(other) = method.flavour.filter(|other| *other != flavour) {
            return Some(format!("only for {other}"));
        }
        let has = match method.filesystem {
            Needs::Any => true,
            Needs::Reflinks => self.reflinks,
            Needs::Btrfs => self.btrfs,
            Needs::Lvm => self.lvm,
        };
        if !has {
            let wanted = match method.filesystem {
                Needs::Reflinks => "files here cannot share blocks (see --filesystem xfs)",
                Needs::Btrfs => "not on btrfs (see --filesystem btrfs)",
                Needs::Lvm | Needs::Any => "not on a logical volume",
            };
            return Some(wanted.to_owned());
        }
        if method.from == super::From::Replica && !self.request.settings.binlog {
            return Some("a replica needs the binary log".to_owned());
        }
        let missing = method
            .programs
            .iter()
            .find(|program| !self.is_installed(program));
        missing.map(|program| format!("not installed: {program}"))
    }

    /// The shell looks where it will look when it should be run.
    fn is_installed(&self, program: &str) -> bool {
        let bin = self.request.server.path.parent().unwrap_or(Path::new("/"));
        let program = program.replace("{bin}", &bin.display().to_string());
        let log = self.run_directory.run_dir().join("look");
        let line = format!("command -v '{program}'");
        process::run(&line, &log, LOOKING, &mut || Ok(()))
            .is_ok_and(|ended| ended.failure.is_none())
    }
}

fn shares_blocks(place: &Path) -> bool {
    let (one, other) = (place.join("one"), place.join("other"));
    let tried = fs::write(&one, vec![1; 8192]).and_then(|()| {
        let (source, target) = (File::open(&one)?, File::create(&other)?);
        rustix::fs::ioctl_ficlone(&target, &source)?;
        Ok(())
    });
    tried.is_ok()
}

fn is_logical_volume(place: &Path) -> bool {
    let Ok(is) = fs::metadata(place) else {
        return false;
    };
    let (major, minor) = (rustix::fs::major(is.dev()), rustix::fs::minor(is.dev()));
    let uuid = format!("/sys/dev/block/{major}:{minor}/dm/uuid");
    fs::read_to_string(uuid).is_ok_and(|uuid| uuid.starts_with("LVM-"))
}

/// A run that tells nobody.
pub(super) fn quietly(run: Run<'_>) -> Run<'_> {
    Run {
        progress: &evenkeel_op::Silent,
        cancel: run.cancel,
    }
}
