//! What is done when all files are there: their paths, owners and modes, and then they appear.

use super::CloneTarget;
use super::listed::Listed;
use crate::clone::list::ImageEnd;
use crate::clone::report::CloneReport;
use crate::facts::{DATA_ROOT, Facts};
use crate::restore::places::Places;
use crate::restore::staging::publish;
use crate::restore::{dress, entries, names, start_options};
use evenkeel_op::{Result, Run};
use evenkeel_server::replication::{Seeding, seeding};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// Lets the directories appear.
pub(super) fn finish(
    listed: &Listed,
    end: &ImageEnd,
    wanted: &CloneTarget,
    run: Run<'_>,
) -> Result<CloneReport> {
    run.cancel.check()?;
    relink(listed)?;
    // Writing into a file or a directory changes its time, and needs what its mode may forbid.
    for file in &listed.files {
        // Once more only what was closed before: to open a file sizes it, and `relink` has changed some.
        let open = file.open(None)?;
        dress::dress(open.as_fd(), &file.path, &file.meta, wanted.owner)?;
        // There may be more of them than a process may have open.
        file.close();
    }
    for meta in &listed.list.dirs {
        let (root, relative) = names::place(&listed.roots, &meta.name)?;
        if !relative.as_os_str().is_empty() {
            dress::dress_dir(&root.dir().join(relative), meta, wanted.owner)?;
        }
    }
    run.cancel.check()?;
    fail::fail_point!("clone::dressed");
    let others = listed.roots.iter().filter(|(id, _)| *id != DATA_ROOT);
    let others: Vec<_> = others.map(|(_, root)| root).collect();
    publish(listed.data(), others.iter().copied())?;
    report(listed, end)
}

/// Points `.isl` files, indexes of logs and links of schemas at where the roots are now.
fn relink(listed: &Listed) -> Result<()> {
    let targets = targets(listed);
    let roots = listed.facts.roots.iter();
    let moved = roots.map(|(id, old)| (id.clone(), PathBuf::from(old), targets[id].clone()));
    let mut places = Places::new(moved);
    for file in &listed.files {
        let (id, _) = names::split(&file.meta.name)?;
        if id != DATA_ROOT {
            places.know(&file.meta.name, &targets[id])?;
        }
    }
    for file in &listed.files {
        if entries::names_places(&file.meta.name, &listed.facts)? {
            drop(file.open(None)?);
            places.repoint(&file.path)?;
        }
    }
    // Those of an interrupted run were swept away.
    let targets = targets
        .iter()
        .map(|(id, place)| (id.as_str(), place.as_path()));
    entries::link_schemas(listed.data().dir(), targets, false)
}

fn targets(listed: &Listed) -> BTreeMap<String, PathBuf> {
    let roots = listed.roots.iter();
    roots
        .map(|(id, root)| (id.clone(), root.target().to_owned()))
        .collect()
}

fn report(listed: &Listed, end: &ImageEnd) -> Result<CloneReport> {
    let places = targets(listed);
    let Facts {
        settings, roots, ..
    } = &listed.facts;
    let list = &listed.list;
    let host = list.source.split(':').next().unwrap_or_default();
    // The files are in place: a hint that cannot be given is no reason to fail.
    let replica = seeding(&end.source_coordinates, &end.coordinates, settings, host);
    Ok(CloneReport {
        source: list.source.clone(),
        server_version: list.version.clone(),
        target: listed.data().target().to_owned(),
        files: list.files.len() as u64,
        bytes_logical: list.files.iter().map(|meta| meta.size).sum(),
        bytes_sent: listed.bytes_sent.load(Ordering::Relaxed),
        blocks_sent: listed.blocks_sent.load(Ordering::Relaxed),
        blocks_reused: listed.blocks_reused.load(Ordering::Relaxed),
        taken_up: listed.taken_up,
        pages_checked: end.pages_checked,
        pages_torn: end.pages_torn,
        seconds: 0.0,
        applier_ms: end.applier_ms,
        coordinates: end.coordinates.clone(),
        source_coordinates: end.source_coordinates.clone(),
        start_options: start_options(settings, roots, &places)?,
        roots: places,
        replica: replica.unwrap_or(None).map(of_a_clone),
    })
}

/// The old server's name did not come along, and nothing was backed up.
fn of_a_clone(mut seeding: Seeding) -> Seeding {
    seeding.remove.retain(|name| name != "auto.cnf");
    seeding.notes.retain(|note| !note.starts_with("auto.cnf "));
    for note in &mut seeding.notes {
        *note = note
            .replace("that was backed up", "that was cloned")
            .replace("back up with", "clone with");
    }
    seeding
}
