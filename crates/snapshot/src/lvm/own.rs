//! Our own snapshots: made, found, kept and removed; never anybody else's.
//!
//! A snapshot is ours if its name is one that we give, it carries our tags, and it is of the very
//! volume that is being backed up, by UUID. None of the three alone is enough: names are reused and
//! tags copied. Removing says the UUID once more, so that a volume that took the name meanwhile is
//! safe too.

use super::name;
use super::report::{self, Lv};
use super::tool;
use crate::failpoints::fail_point;
use crate::kept;
use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::fs::FlockOperation;
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Where locks are: gone after a restart, like whoever held them.
const LOCKS: &str = "/run/evenkeel";
/// How often a volume that is still in use is tried to be removed, and how long to wait in between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// A lock that is held as long as this lives.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock of a name, or returns `None` when somebody else has it.
    pub(super) fn try_take(name: &str) -> Result<Option<Self>> {
        let file = Self::open(name)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error).context(|| format!("failed to lock {LOCKS}/{name}")),
        }
    }

    /// Waits for the lock of a name, which nobody holds for longer than a program runs.
    pub(super) fn wait_for(name: &str) -> Result<Self> {
        for _ in 0..TRIES * 100 {
            if let Some(lock) = Self::try_take(name)? {
                return Ok(lock);
            }
            thread::sleep(PAUSE);
        }
        Err(Error::new(
            ErrorKind::Busy,
            format!("another run has held {LOCKS}/{name} for too long"),
        ))
    }

    fn open(name: &str) -> Result<File> {
        let path = Path::new(LOCKS).join(name);
        let failed = || format!("failed to create {}", path.display());
        match DirBuilder::new().mode(0o700).create(LOCKS) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(error).context(failed);
            }
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        options.open(&path).context(failed)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Said aloud: closing is not enough while a child that is just being started has a copy.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Returns our snapshots of `origin` among all volumes, those of the holding `id`.
pub(super) fn among<'a>(all: &'a [Lv], id: &str, origin: &Lv) -> Vec<&'a Lv> {
    let of = name::tag_of(id);
    all.iter()
        .filter(|lv| {
            name::is_ours(&lv.name)
                && lv.has_tag(name::TAG)
                && lv.has_tag(&of)
                && lv.vg == origin.vg
                && !origin.uuid.is_empty()
                && lv.origin_uuid == origin.uuid
        })
        .collect()
}

/// What is found of our snapshots of one volume.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    /// The one that was kept last for the run's repository.
    pub(super) base: Option<Lv>,
    /// Those that are kept for others.
    pub(super) others: Vec<Lv>,
    /// Those of dead runs, and former bases.
    pub(super) leftovers: Vec<Lv>,
}

/// Tells kept bases from what dead runs left, and those of the repository with the tag `own` from others'.
/// The caller has the lock of the holding.
pub(super) fn sort(ours: Vec<&Lv>, own: &str, now_unix_s: u64) -> Found {
    let mut found = Found::default();
    let (mut kept, lost): (Vec<&Lv>, Vec<&Lv>) = ours
        .into_iter()
        .partition(|lv| name::token(&lv.tags).is_some() && !lv.has_tag(name::TAG_RUN));
    // The newest first: what comes after one for the same repository is a former base.
    kept.sort_by_key(|lv| std::cmp::Reverse(name::kept_at(&lv.tags)));
    let mut seen = BTreeSet::new();
    let mut others: Vec<(u64, &Lv)> = Vec::new();
    for lv in kept {
        let whose = name::kept_for(&lv.tags);
        if !seen.insert(whose) {
            found.leftovers.push(lv.clone());
        } else if whose == Some(own) {
            found.base = Some(lv.clone());
        } else {
            others.push((name::kept_at(&lv.tags) / 1000, lv));
        }
    }
    let surplus = kept::surplus(others.clone(), now_unix_s);
    let stays = |lv: &Lv| surplus.iter().all(|gone| gone.uuid != lv.uuid);
    let (others, gone): (Vec<&Lv>, Vec<&Lv>) = others
        .into_iter()
        .map(|(_, lv)| lv)
        .partition(|lv| stays(lv));
    found.others = others.into_iter().cloned().collect();
    found
        .leftovers
        .extend(gone.into_iter().chain(lost).cloned());
    found
}

/// Makes a snapshot of `origin` for the holding `id`, and returns its name. `bytes` is the size of a
/// thick one; a thin one has none.
pub(super) fn make(origin: &Lv, id: &str, bytes: Option<u64>) -> Result<String> {
    let snapshot = name::unique();
    let (of, path) = (name::tag_of(id), origin.path());
    let size = bytes.map(|bytes| format!("{bytes}b"));
    let mut args = vec!["-y", "-qq", "-s", "-n", &snapshot];
    for tag in [name::TAG, &of, name::TAG_RUN] {
        args.extend(["--addtag", tag]);
    }
    match &size {
        Some(size) => args.extend(["-L", size]),
        // A thin one would not be activated by itself.
        None => args.extend(["-kn", "-ay"]),
    }
    args.push(&path);
    fail_point!("snapshot::lvm::making");
    tool::run("lvcreate", &args)?;
    fail_point!("snapshot::lvm::made");
    Ok(snapshot)
}

/// Removes one of our snapshots; one that is gone already is fine.
pub(super) fn remove(lv: &Lv) -> Result<()> {
    let path = lv.path();
    let same = format!("lv_uuid=\"{}\"", lv.uuid);
    let mut tries = 0;
    loop {
        fail_point!("snapshot::lvm::removing");
        // `-S`: whatever else may be called that by now stays.
        let removed = tool::run("lvremove", &["-qq", "-f", "-S", &same, &path]);
        let Err(error) = removed else {
            return Ok(());
        };
        if !report::volumes()?.iter().any(|other| other.uuid == lv.uuid) {
            return Ok(());
        }
        tries += 1;
        if tries == TRIES {
            return Err(error)
                .context(|| format!("failed to remove our snapshot {path}"))
                .map_err(|error| error.hint("the next run tries again"));
        }
        // Others look at new volumes for a moment: udev, monitoring.
        thread::sleep(PAUSE);
    }
}

/// Adds and removes tags in one step.
pub(super) fn retag(lv: &Lv, add: &[&str], remove: &[&str]) -> Result<()> {
    let path = lv.path();
    let mut args = vec!["-qq"];
    for tag in add {
        args.extend(["--addtag", tag]);
    }
    for tag in remove {
        args.extend(["--deltag", tag]);
    }
    args.push(&path);
    tool::run("lvchange", &args).map(|_| ())
}

/// Activates a snapshot, or deactivates it.
pub(super) fn activate(lv: &Lv, active: bool) -> Result<()> {
    let path = lv.path();
    let how = if active { "-ay" } else { "-an" };
    tool::run("lvchange", &["-qq", "-y", "-K", how, &path]).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lv(name: &str, tags: &[&str], origin: &str) -> Lv {
        Lv {
            vg: "vg".into(),
            name: name.into(),
            uuid: format!("uuid of {name}"),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            origin_uuid: origin.into(),
            ..Lv::default()
        }
    }

    const OURS: &str = "evenkeel-7-0123456789abcdef";

    #[test]
    fn only_what_is_ours_by_name_and_tag_and_origin_is_touched() {
        let origin = Lv {
            uuid: "o".into(),
            ..lv("data", &[], "")
        };
        let tags = ["evenkeel", "evenkeel.of.1"];
        let all = [
            lv(OURS, &tags, "o"),
            lv("lvm_dump", &tags, "o"),
            lv("evenkeel-8-0123456789abcdef", &["evenkeel"], "o"),
            lv("evenkeel-9-0123456789abcdef", &["evenkeel.of.1"], "o"),
            lv(
                "evenkeel-10-0123456789abcdef",
                &["evenkeel", "evenkeel.of.2"],
                "o",
            ),
            lv("evenkeel-11-0123456789abcdef", &tags, "another"),
            lv("evenkeel-12-0123456789abcdef", &tags, ""),
        ];
        let ours: Vec<&str> = among(&all, "1", &origin)
            .into_iter()
            .map(|lv| lv.name.as_str())
            .collect();
        assert_eq!(ours, [OURS]);
        let nobody = Lv {
            uuid: String::new(),
            ..origin
        };
        assert!(among(&all, "1", &nobody).is_empty());
    }

    #[test]
    fn the_base_is_what_was_kept_last() {
        let (own, other) = (name::tag_for("one"), name::tag_for("two"));
        let older = lv("a", &[&own, "evenkeel.token.x", "evenkeel.at.10000"], "o");
        let newer = lv("b", &[&own, "evenkeel.token.y", "evenkeel.at.11000"], "o");
        let theirs = lv("e", &[&other, "evenkeel.token.v", "evenkeel.at.13000"], "o");
        let former = lv("f", &[&other, "evenkeel.token.u", "evenkeel.at.9000"], "o");
        let run = lv("c", &["evenkeel.run"], "o");
        // Killed between two steps of being kept: not whole.
        let half = lv(
            "d",
            &[
                "evenkeel.run",
                &own,
                "evenkeel.token.z",
                "evenkeel.at.12000",
            ],
            "o",
        );
        let all = vec![&former, &newer, &run, &older, &half, &theirs];
        let found = sort(all.clone(), &own, 14);
        assert_eq!(found.base, Some(newer.clone()));
        assert_eq!(found.others, std::slice::from_ref(&theirs));
        assert_eq!(
            found.leftovers,
            [older.clone(), former.clone(), run.clone(), half.clone()]
        );
        // One that nobody used for long goes; the own one stays.
        let found = sort(all, &own, 100 * 24 * 60 * 60);
        assert_eq!((found.base, found.others), (Some(newer), vec![]));
        assert_eq!(found.leftovers, [older, former, theirs, run, half]);
    }
}
