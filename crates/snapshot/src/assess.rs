//! What each way of freezing can do for a server here, and which to take.

use crate::btrfs::{self, BtrfsProvider};
use crate::copy::{self, CopyProvider, VolumesInPlace};
use crate::filesystem::KnownFilesystem;
use crate::holding::{self, Holding, places};
use crate::hook::HookProvider;
use crate::lvm::{self, LvmProvider};
use crate::reflink::{self, ReflinkProvider};
use crate::{Atomicity, Layout, Opened, Settings};
use evenkeel_op::{Error, ErrorKind, Result};
use std::path::PathBuf;

/// A way of freezing files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// A read-only snapshot of a btrfs subvolume.
    Btrfs,
    /// File-by-file clones.
    Reflink,
    /// A snapshot of a logical volume.
    Lvm,
    /// A stopped server's files, in place.
    Copy,
    /// The user's own command.
    Hook,
}

impl Method {
    /// All of them, best first.
    pub const ALL: [Self; 5] = [
        Self::Btrfs,
        Self::Reflink,
        Self::Lvm,
        Self::Copy,
        Self::Hook,
    ];

    /// Returns its name, which is also its provider's.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Btrfs => "btrfs",
            Self::Reflink => "reflink",
            Self::Lvm => "lvm",
            Self::Copy => "copy",
            Self::Hook => "hook",
        }
    }

    /// Returns the method of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// What a method can do for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// The method's name.
    pub provider: &'static str,
    /// Whether it would work.
    pub usable: bool,
    /// Why it would not, or what it would do.
    pub reason: String,
    /// What a snapshot would be atomic over.
    pub atomicity: Atomicity,
    /// Whether later runs need to read changed ranges only.
    pub change_list: bool,
}

/// Returns what each method can do for the server, best first. Leaves nothing behind.
#[must_use]
pub fn assess(layout: &Layout, settings: &Settings) -> Vec<Assessment> {
    Method::ALL
        .into_iter()
        .map(|method| assess_one(method, layout, settings))
        .collect()
}

fn assess_one(method: Method, layout: &Layout, settings: &Settings) -> Assessment {
    let verdict = examine(method, layout, settings);
    let lists = verdict.as_ref().is_ok_and(|(_, lists)| *lists);
    let (atomicity, change_list) = match method {
        Method::Btrfs => (Atomicity::Synced, true),
        Method::Reflink => (Atomicity::PerFile, change_list(layout)),
        Method::Lvm => (Atomicity::Whole, lists),
        Method::Copy => (Atomicity::Stopped, false),
        Method::Hook => (Atomicity::Synced, false),
    };
    let (usable, reason) = match verdict {
        Ok((reason, _)) => (true, reason),
        Err(error) => (false, error.chain()),
    };
    Assessment {
        provider: method.name(),
        usable,
        reason,
        atomicity,
        change_list,
    }
}

/// Returns what a method would do, and whether a logical volume tells its changes; or why it would
/// not work.
fn examine(method: Method, layout: &Layout, settings: &Settings) -> Result<(String, bool)> {
    let reason = match method {
        Method::Btrfs => assess_btrfs(layout, settings),
        Method::Reflink => assess_reflink(layout, settings),
        Method::Lvm => return lvm::examine(layout, settings),
        Method::Copy if !layout.volumes.is_empty() => copy::volumes::examine(layout)
            .map(|()| "nothing writes to it: it can be read in place".to_owned()),
        Method::Copy => copy::refuse_if_used(layout)
            .map(|()| "no server is running: its files can be read in place".to_owned()),
        Method::Hook => assess_hook(layout, settings),
    };
    Ok((reason?, false))
}

fn assess_btrfs(layout: &Layout, settings: &Settings) -> Result<String> {
    let (subvolume, place) = btrfs::examine(layout, settings)?;
    Ok(format!(
        "snapshots of subvolume {} go to {}",
        subvolume.root().display(),
        place.holding.display()
    ))
}

fn assess_reflink(layout: &Layout, settings: &Settings) -> Result<String> {
    let places = places(layout, settings)?;
    places.iter().try_for_each(reflink::probe)?;
    let holdings: Vec<_> = places
        .iter()
        .map(|p| p.holding.display().to_string())
        .collect();
    Ok(format!("clones go to {}", holdings.join(" and ")))
}

fn assess_hook(layout: &Layout, settings: &Settings) -> Result<String> {
    let Some(command) = &settings.hook else {
        return Err(Error::refused("no snapshot command is given (--hook)"));
    };
    HookProvider::open(layout, command)?;
    Ok(format!("'{}' makes the snapshot", command.create))
}

fn change_list(layout: &Layout) -> bool {
    let mut directories = layout.dirs.iter().chain([&layout.datadir]);
    directories.all(|directory| {
        KnownFilesystem::of(directory).is_ok_and(KnownFilesystem::has_true_extents)
    })
}

/// Begins a run with a method. `base_token` names the generation whose snapshot `changed` is to
/// compare with; when the kept base is another one, everything counts as unknown.
pub fn open(
    method: Method,
    layout: &Layout,
    settings: &Settings,
    base_token: Option<&str>,
) -> Result<Opened> {
    Ok(match method {
        Method::Btrfs => Opened::new(BtrfsProvider::open(layout, settings, base_token)?),
        Method::Reflink => Opened::new(ReflinkProvider::open(layout, settings, base_token)?),
        Method::Lvm => Opened::new(LvmProvider::open(layout, settings, base_token)?),
        Method::Copy if !layout.volumes.is_empty() => Opened::new(VolumesInPlace::open(layout)?),
        Method::Copy => Opened::new(CopyProvider::open(layout)?),
        Method::Hook => match &settings.hook {
            Some(command) => Opened::new(HookProvider::open(layout, command)?),
            None => {
                return Err(Error::usage("no snapshot command is given")
                    .hint("give it with --hook COMMAND"));
            }
        },
    })
}

/// Returns the best method that needs no decision of the user: btrfs, else reflink, else LVM. `Refused`
/// with every reason when none can work here; `Failed` when files could be cloned, were the filesystem
/// not full.
pub fn choose(layout: &Layout, settings: &Settings) -> Result<Method> {
    let found = candidates(layout)
        .iter()
        .map(|method| (*method, examine(*method, layout, settings).map(drop)));
    best(
        &layout
            .volumes
            .first()
            .unwrap_or(&layout.datadir)
            .display()
            .to_string(),
        found,
    )
}

/// Returns the first that works. Where none does, one that lacks only space is why.
fn best(place: &str, found: impl Iterator<Item = (Method, Result<()>)>) -> Result<Method> {
    let mut refusal = Error::refused(format!(
        "neither btrfs nor reflink nor LVM can freeze {place}"
    ));
    let mut full = None;
    for (method, verdict) in found {
        match verdict {
            Ok(()) => return Ok(method),
            Err(error) => {
                refusal = refusal.hint(format!("{}: {}", method.name(), error.chain()));
                if method == Method::Reflink && error.kind() == ErrorKind::Failed {
                    full = Some(error);
                }
            }
        }
    }
    Err(full.unwrap_or_else(|| {
        refusal.hint(
            "stop the server and use --snapshot copy, or give your own snapshot command with --hook",
        )
    }))
}

/// Of single files, a clone keeps less than a snapshot of all that is beside them.
fn candidates(layout: &Layout) -> &'static [Method] {
    match layout.volumes.is_empty() {
        true => &[Method::Btrfs, Method::Reflink, Method::Lvm],
        false => &[Method::Reflink, Method::Lvm],
    }
}

/// Deletes what dead runs left in the holding directories of a layout and of its LVM volumes, and
/// returns those in which there was something: for LVM, the data directory.
pub fn heal(layout: &Layout, settings: &Settings) -> Result<Vec<PathBuf>> {
    let mut healed = Vec::new();
    if lvm::heal(layout)? {
        healed.push(layout.datadir.clone());
    }
    for place in places(layout, settings)? {
        if holding::heal(&place.holding)? {
            healed.push(place.holding);
        }
    }
    Ok(healed)
}

/// Deletes the kept bases of a layout: their space comes back, and the next run reads everything.
pub fn drop_base(layout: &Layout, settings: &Settings) -> Result<()> {
    lvm::drop_base(layout)?;
    for place in places(layout, settings)? {
        if holding::is_ours(&place.holding) {
            Holding::open(&place.holding, "")?.drop_bases()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cannot() -> Result<()> {
        Err(Error::refused("cannot"))
    }

    #[test]
    fn what_lacks_only_space_is_no_reason_for_another_way() {
        let full = || Err(Error::failed("full").hint("free some"));
        let found = [
            (Method::Btrfs, cannot()),
            (Method::Reflink, full()),
            (Method::Lvm, cannot()),
        ];
        let error = best("/d", found.into_iter()).unwrap_err();
        assert_eq!(
            (error.kind(), error.hints()),
            (ErrorKind::Failed, vec!["free some"])
        );
        // A snapshot of the volume beneath may have room.
        let found = [(Method::Reflink, full()), (Method::Lvm, Ok(()))];
        assert_eq!(best("/d", found.into_iter()).unwrap(), Method::Lvm);
    }

    #[test]
    fn where_nothing_works_each_says_why() {
        let found = [(Method::Btrfs, cannot()), (Method::Reflink, cannot())];
        let error = best("/d", found.into_iter()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert_eq!(error.hints()[..2], ["btrfs: cannot", "reflink: cannot"]);
    }
}
