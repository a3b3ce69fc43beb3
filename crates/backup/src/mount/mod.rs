//! Shows generations as files, without restoring them; on one of them a server can be started.
//!
//! ```text
//! plan ─► lay out (names and attributes, as restore makes them) ─► show ─► serve ─► end
//!                                                         fill ───────┘
//! ```

mod contents;
mod lay_out;
mod listing;
mod request;
mod serve;
mod view;

pub use request::{Filled, MountEnd, MountReport, MountRequest, ScratchRequest};

use crate::engine::{self, Copied, Tool};
use crate::facts::{DATA_ROOT, Facts};
use crate::restore::{self, bound_to_their_place};
use crate::throwaway;
use contents::{Contents, OneGeneration};
use crossbeam_channel::Receiver;
use evenkeel_mount::{Claim, Mounted, Overlay, Owner, Scratch, heal};
use evenkeel_op::open_directory::OpenDirectory;
use evenkeel_op::paths::{absent, resolved};
use evenkeel_op::{Context, Error, Result, Run};
use evenkeel_repository::{Reader, Repository, Summary};
use evenkeel_server::launch::{Account, hand_over};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use view::View;

/// Generations that are shown. Dropped without [`Mount::serve`] or [`Mount::end`], it is unmounted as
/// far as nobody uses it.
pub struct Mount {
    mounted: Mounted,
    report: MountReport,
    writable: Option<Writable>,
    complaints: Receiver<String>,
}

/// What belongs to one that can be written to.
struct Writable {
    overlay: Arc<Overlay>,
    scratch: Scratch,
    request: ScratchRequest,
    facts: Facts,
}

/// Shows generations. Nothing is forgotten or pruned while they are shown.
pub fn mount(request: &MountRequest, run: Run<'_>) -> Result<Mount> {
    let begun = Instant::now();
    let healed = heal(&request.mountpoint)?;
    refuse_bad_place(&request.mountpoint)?;
    let repository = Repository::open(&request.repository)?;
    let generations = of_source(repository.generations()?, request.source.as_deref())?;
    let newest = newest(&generations, &repository)?;
    let one = match (request.generation, &request.scratch) {
        (Some(number), _) => Some(known(number, &generations, &repository)?),
        (None, Some(_)) => Some(newest),
        (None, None) if request.latest => Some(newest),
        (None, None) => None,
    };
    // Where all are shown, any that can be read will do to begin with.
    let whole = generations.iter().rev().find(|one| one.damage.is_none());
    let base = one.or(whole.map(|whole| whole.generation));
    let base = repository.reader(base.unwrap_or(newest))?;
    let base = base.with_cache(request.cache_bytes);
    let mut mount = match (&request.scratch, one) {
        (Some(scratch), Some(_)) => writable(request, scratch, base, &repository, run)?,
        _ => browsable(request, base, one, &generations, run)?,
    };
    mount.report.healed = healed;
    mount.report.seconds = begun.elapsed().as_secs_f64();
    Ok(mount)
}

fn browsable(
    request: &MountRequest,
    base: Reader,
    one: Option<u32>,
    generations: &[Summary],
    run: Run<'_>,
) -> Result<Mount> {
    for summary in generations {
        if let Some(damage) = &summary.damage {
            let number = summary.generation;
            run.progress
                .warn(format!("generation {number} is not shown: {damage}"));
        }
    }
    let mut report = MountReport::new(&request.mountpoint, one);
    report.generations = match one {
        Some(_) => 1,
        None => generations
            .iter()
            .filter(|one| one.damage.is_none())
            .count() as u64,
    };
    let (contents, complaints) = Contents::new(base)?;
    let view = match one {
        Some(generation) => View::one(contents, generation),
        None => View::all(contents, generations),
    };
    Ok(Mount {
        mounted: Mounted::tree(view, &request.mountpoint)?,
        report,
        writable: None,
        complaints,
    })
}

fn writable(
    request: &MountRequest,
    scratch: &ScratchRequest,
    base: Reader,
    repository: &Repository,
    run: Run<'_>,
) -> Result<Mount> {
    let generation = base.generation();
    let facts = Facts::of(base.manifest())?;
    refuse_bound(&facts, generation)?;
    restore::leads_nowhere_else(&facts)?;
    let tool = restore::preparer(&facts, scratch.engine_tool.as_deref())?;
    let owner = Owner {
        of: format!("generation {generation} of {}", repository.id()),
        kept: scratch.keep || scratch.fill,
    };
    refuse_one_in_the_other(&scratch.dir, &request.mountpoint)?;
    let mut report = MountReport::new(&request.mountpoint, Some(generation));
    report.roots = places(&facts, &request.mountpoint);
    (report.generations, report.writable) = (1, true);
    let (contents, complaints) = Contents::new(base)?;
    let opened = contents.generation(generation)?;
    report.bytes_logical = opened.reader.manifest().bytes_logical;
    let (claimed, resumed) = match Scratch::claim(&scratch.dir, owner)? {
        Claim::Resumed(claimed) => (claimed, true),
        Claim::Fresh(mut claimed) => {
            lay_out::lay_out(&mut claimed, &opened, &facts, &report.roots, scratch, run)?;
            (claimed, false)
        }
    };
    let owner = scratch.owner.or_else(|| lay_out::owner_of(&opened));
    drop(opened);
    let origin = OneGeneration {
        contents,
        generation,
    };
    let overlay = Overlay::open(&claimed, Arc::new(origin))?;
    report.scratch = Some(claimed.dir().to_owned());
    (report.resumed, report.bytes_missing) = (resumed, overlay.missing());
    if !facts.is_of_volumes() {
        report.tell_start(&facts, owner.map(|(uid, _)| uid))?;
    }
    let mount = Mount {
        mounted: Mounted::overlay(Arc::clone(&overlay), &request.mountpoint)?,
        report,
        writable: Some(Writable {
            overlay,
            scratch: claimed,
            request: scratch.clone(),
            facts,
        }),
        complaints,
    };
    let Some(writable) = &mount.writable else {
        return Ok(mount);
    };
    if !resumed {
        if let (Some(tool), Some(data)) = (&tool, mount.report.roots.get(DATA_ROOT)) {
            // Before its existence is reported.
            if let Err(error) = prepare(tool, data, run) {
                let _ = mount.end();
                return Err(error);
            }
        }
        writable.scratch.ready()?;
    }
    Ok(mount)
}

/// Lets the tool prepare what it copied, through the mount.
fn prepare(tool: &Tool, data: &Path, run: Run<'_>) -> Result<()> {
    let failed = || format!("failed to set owners in {}", data.display());
    let top = OpenDirectory::open(data).context(failed)?;
    let found = top.stat().context(failed)?;
    let owner = Account {
        uid: found.st_uid,
        gid: found.st_gid,
    };
    let account = throwaway::account_of(owner);
    if let Some(account) = account {
        engine::reach(account, tool, data)?;
    }
    let give = |to| hand_over::give(&top, to).context(failed);
    let copied = Copied {
        dir: data,
        lend: &give,
        // Only names at the top are removed after this, and no link is followed by that.
        take_back: &|| Ok(()),
    };
    engine::prepare(tool, &copied, account, run)?;
    account.map_or(Ok(()), |_| give(owner))
}

/// Returns where each root is shown.
fn places(facts: &Facts, top: &Path) -> BTreeMap<String, PathBuf> {
    let mut ids: Vec<&str> = facts.roots.keys().map(String::as_str).collect();
    ids.push(facts.main_root());
    let place = |id: &str| (id.to_owned(), top.join(id));
    ids.into_iter().map(place).collect()
}

fn refuse_bad_place(mountpoint: &Path) -> Result<()> {
    let place = mountpoint.display();
    match std::fs::read_dir(mountpoint) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Error::usage(format!("{place} is not empty"))
                .hint("the mount would hide its contents: give an empty directory")),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(absent("directory", mountpoint).hint(format!("create it: mkdir {place}")))
        }
        Err(error) => Err(error).context(|| format!("failed to read {place}")),
    }
}

fn refuse_one_in_the_other(scratch: &Path, mountpoint: &Path) -> Result<()> {
    let (scratch, mountpoint) = (resolved(scratch), resolved(mountpoint));
    if scratch.starts_with(&mountpoint) || mountpoint.starts_with(&scratch) {
        return Err(Error::usage(
            "the scratch directory and the mount point must not contain each other",
        )
        .hint("name two directories side by side"));
    }
    Ok(())
}

fn refuse_bound(facts: &Facts, generation: u32) -> Result<()> {
    let Some((_, place)) = bound_to_their_place(facts).next() else {
        return Ok(());
    };
    Err(Error::refused(format!(
        "generation {generation} has tables in {}, and crash recovery opens them at that path: a \
         server started on the mount would write to the originals",
        place.display()
    ))
    .hint("without --writable-scratch you can still read its files"))
}

/// Returns the generations of a source, or all.
fn of_source(mut generations: Vec<Summary>, source: Option<&str>) -> Result<Vec<Summary>> {
    let Some(wanted) = source else {
        return Ok(generations);
    };
    let sources: std::collections::BTreeSet<String> = generations
        .iter()
        .filter_map(|summary| Some(summary.about.as_ref()?.source.clone()))
        .collect();
    generations.retain(|summary| {
        let about = summary.about.as_ref();
        about.is_some_and(|about| {
            let host = about.source.split(':').next().unwrap_or_default();
            [about.source.as_str(), host].contains(&wanted)
                || view::directory_name(&about.source) == wanted
        })
    });
    if generations.is_empty() {
        let all: Vec<String> = sources.into_iter().collect();
        return Err(
            Error::usage(format!("no generation has the source '{wanted}'"))
                .hint(format!("the sources are: {}", all.join(", "))),
        );
    }
    Ok(generations)
}

fn newest(generations: &[Summary], repository: &Repository) -> Result<u32> {
    match generations.last() {
        Some(summary) => Ok(summary.generation),
        None => restore::newest(repository),
    }
}

fn known(number: u32, generations: &[Summary], repository: &Repository) -> Result<u32> {
    match generations.iter().any(|one| one.generation == number) {
        true => Ok(number),
        false => Err(
            Error::usage(format!("there is no generation {number} to mount")).hint(format!(
                "'evenkeel generations {}' lists them",
                repository.place()
            )),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_scratch_in_the_mount_point_is_refused_by_a_link_too() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("mnt");
        std::fs::create_dir(&place).unwrap();
        symlink(&place, dir.path().join("link")).unwrap();
        let refuse = |scratch: &str| refuse_one_in_the_other(&dir.path().join(scratch), &place);
        assert!(refuse("mnt/scratch").is_err());
        assert!(refuse("link/scratch").is_err());
        refuse("scratch").unwrap();
    }
}
