//! Restores a generation: plan, write every block once, then let the directories appear whole.

mod apply;
pub(crate) mod dress;
pub(crate) mod entries;
pub(crate) mod names;
mod onto;
pub(crate) mod places;
mod plan;
mod request;
pub(crate) mod space;
pub(crate) mod staging;
mod start_options;
mod write;

pub use onto::{OntoPlan, OntoReport, OntoRequest, onto, plan_onto};
pub use request::{RestoreReport, RestoreRequest};

use crate::engine::{self, Copied, Tool, Wanted};
use crate::facts::{DATA_ROOT as DATA, Facts};
use crate::point::{self, Means, ReplayDirectories};
use crate::throwaway;
use entries::Where;
use evenkeel_op::paths::{absolute, resolved};
use evenkeel_op::{Context, Error, ErrorKind, Result, Run};
use evenkeel_repository::{FileMeta, Location, Repository};
use evenkeel_server::launch::Account;
use evenkeel_server::replication::seeding;
use plan::Plan;
use staging::Staging;
pub(crate) use start_options::{bound_to_their_place, leads_nowhere_else, start_options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Restores. On an error, or when the process dies, no target exists that a server would accept.
pub fn restore(request: &RestoreRequest, run: Run<'_>) -> Result<RestoreReport> {
    let begun = Instant::now();
    let plan = plan(request, run)?;
    let written = match write_all(&plan, request, run) {
        Ok(written) => written,
        Err(error) => {
            for staging in plan.roots.values() {
                // The next restore to this target removes what stays.
                let _ = staging.abandon();
            }
            return Err(error);
        }
    };
    fail::fail_point!("restore::applied");
    let Plan {
        reader,
        facts,
        roots,
        ..
    } = plan;
    let places: BTreeMap<String, PathBuf> = roots
        .iter()
        .map(|(id, staging)| (id.clone(), staging.target().to_owned()))
        .collect();
    let main = facts.main_root();
    let (data, others): (Vec<_>, Vec<_>) = roots.into_iter().partition(|(id, _)| id == main);
    let others: Vec<Staging> = others.into_iter().map(|(_, staging)| staging).collect();
    for (_, data) in &data {
        staging::publish(data, &others)?;
    }
    let manifest = reader.manifest();
    let host = manifest.source.split(':').next().unwrap_or_default();
    let own = crate::facts::report_of(manifest)?.coordinates;
    // The files are in place: a hint that cannot be given is no reason to fail.
    let replica = match &request.replay {
        None => seeding(&facts.source_coordinates, &own, &facts.settings, host).unwrap_or(None),
        Some(_) => None,
    };
    Ok(RestoreReport {
        replica,
        point: request
            .replay
            .as_ref()
            .map(|replay| replay.plan.report.clone()),
        generation: reader.generation(),
        source: reader.manifest().source.clone(),
        target: places[main].clone(),
        files: reader.manifest().files,
        bytes_logical: reader.manifest().bytes_logical,
        bytes_written: written,
        seconds: begun.elapsed().as_secs_f64(),
        start_options: start_options(&facts.settings, &facts.roots, &places)?,
        roots: places,
    })
}

/// Writes everything, in directories that are closed to everybody else.
fn write_all(plan: &Plan, request: &RestoreRequest, run: Run<'_>) -> Result<u64> {
    let of_volumes = plan.facts.is_of_volumes();
    for (id, staging) in &plan.roots {
        if let Some(top) = plan.tops.get(id).filter(|_| !of_volumes) {
            staging.dress_last(top.clone(), request.owner);
        }
        staging.create()?;
    }
    fail::fail_point!("restore::created");
    let written = apply::apply(plan, request, run)?;
    if !of_volumes {
        entries::relink(plan, Where::Source, Where::Target)?;
        prepare(plan, request, run)?;
        replay(plan, request, run)?;
    }
    Ok(written)
}

/// Refuses a target within the repository: what does not belong there counts as damage.
fn refuse_within(target: &Path, repository: &Location) -> Result<()> {
    let store = repository.store();
    let Some(directory) = store.directory() else {
        return Ok(());
    };
    match resolved(&absolute(target)).starts_with(resolved(&absolute(directory))) {
        false => Ok(()),
        true => {
            let (target, directory) = (target.display(), directory.display());
            Err(
                Error::usage(format!("{target} is within the repository {directory}"))
                    .hint("name a directory elsewhere"),
            )
        }
    }
}

/// Looks at all that can be looked at before the first byte is written.
fn plan(request: &RestoreRequest, run: Run<'_>) -> Result<Plan> {
    let repository = Repository::open(&request.repository)?;
    let generation = match request.generation {
        Some(generation) => generation,
        None => newest_whole(&repository)?,
    };
    let reader = repository.reader(generation)?;
    let facts = Facts::of(reader.manifest())?;
    if let Some(warning) = facts.corrupt_pages(generation) {
        run.progress.warn(warning);
    }
    if let Some(unknown) = request
        .map_roots
        .keys()
        .find(|id| !facts.roots.contains_key(*id))
    {
        let known: Vec<&str> = facts.roots.keys().map(String::as_str).collect();
        return Err(
            Error::usage(format!("generation {generation} has no root '{unknown}'"))
                .hint(format!("its roots are: {}", known.join(", "))),
        );
    }
    for place in request.map_roots.values().chain([&request.target]) {
        refuse_within(place, &request.repository)?;
    }
    let mut roots = BTreeMap::new();
    let main = facts.main_root();
    roots.insert(
        main.to_owned(),
        Staging::plan(&request.target, &request.target)?,
    );
    for id in facts.roots.keys().filter(|id| *id != main) {
        let place = request
            .map_roots
            .get(id)
            .map_or_else(|| beside(&request.target, id), |place| absolute(place));
        roots.insert(id.clone(), Staging::plan(&place, &request.target)?);
    }
    let tool = preparer(&facts, request.engine_tool.as_deref())?;
    refuse_moved_tables(&facts, &roots)?;
    let targets = roots.iter();
    let targets = targets.map(|(id, root)| (id.clone(), root.target().to_owned()));
    start_options(&facts.settings, &facts.roots, &targets.collect())?;
    let tops = apply::tops(&reader)?;
    let means = means(request, &facts, &roots, &tops, run)?;
    if let (Some(tool), Some(account)) = (&tool, tools_account(&tops, request.owner)) {
        for root in roots.values() {
            engine::reach(account, tool, root.target())?;
        }
    }
    space::check(&roots, &reader)?;
    Ok(Plan {
        reader,
        facts,
        roots,
        tops,
        tool,
        means,
    })
}

/// Finds what a replay needs besides the files; `None` where nothing needs to be applied.
fn means(
    request: &RestoreRequest,
    facts: &Facts,
    roots: &BTreeMap<String, Staging>,
    tops: &BTreeMap<String, FileMeta>,
    run: Run<'_>,
) -> Result<Option<Means>> {
    let (Some(replay), Some(top)) = (&request.replay, tops.get(DATA)) else {
        return Ok(None);
    };
    let places: Vec<&Path> = roots.values().map(Staging::target).collect();
    let owner = dress::owner_of(top, request.owner);
    point::means(replay, &facts.settings, owner, &places, run)
}

/// Finds the tool without which a generation is no data directory: the one that copied it. `None`
/// when none is needed.
pub(crate) fn preparer(facts: &Facts, given: Option<&Path>) -> Result<Option<Tool>> {
    let Some(name) = engine::tool_of(&facts.snapshot) else {
        return Ok(None);
    };
    let version = facts.server_version.as_deref().unwrap_or_default();
    let tool = Wanted::of(version).and_then(|wanted| wanted.find(given));
    tool.map(Some).context(|| {
        format!("{name} copied the files, and has to prepare them before a server starts")
    })
}

/// Lets the tool prepare what it copied, before any server can see it.
fn prepare(plan: &Plan, request: &RestoreRequest, run: Run<'_>) -> Result<()> {
    let (Some(tool), Some(data)) = (&plan.tool, plan.roots.get(DATA)) else {
        return Ok(());
    };
    let account = tools_account(&plan.tops, request.owner);
    data.unhold_all()?;
    fail::fail_point!("restore::preparing");
    let copied = Copied {
        dir: data.place(),
        lend: &|to| data.lend(to),
        take_back: &|| data.take_back(),
    };
    engine::prepare(tool, &copied, account, run)?;
    fail::fail_point!("restore::prepared");
    data.hold_all()?;
    match account {
        Some(_) => give_content(plan, request),
        None => Ok(()),
    }
}

/// What the tool runs as; none without root.
fn tools_account(tops: &BTreeMap<String, FileMeta>, owner: Option<(u32, u32)>) -> Option<Account> {
    let top = tops.get(DATA)?;
    throwaway::account_of(dress::owner_of(top, owner))
}

/// Gives what a server or a tool worked on to whom it belongs.
fn give_content(plan: &Plan, request: &RestoreRequest) -> Result<()> {
    for (id, root) in &plan.roots {
        let top = plan
            .tops
            .get(id)
            .map(|top| dress::owner_of(top, request.owner));
        top.map_or(Ok(()), |owner| root.give_content(owner))?;
    }
    apply::open_up_dirs(plan)
}

/// Brings the files to a point in time, before any server of the user's can see them.
fn replay(plan: &Plan, request: &RestoreRequest, run: Run<'_>) -> Result<()> {
    let (Some(replay), Some(means)) = (&request.replay, &plan.means) else {
        return Ok(());
    };
    let Some(data) = plan.roots.get(DATA) else {
        return Ok(());
    };
    let settings = &plan.facts.settings;
    let staged = |(id, root): (&String, &Staging)| (id.clone(), root.place().to_owned());
    let places: BTreeMap<String, PathBuf> = plan.roots.iter().map(staged).collect();
    let all = || plan.roots.values();
    // The server must find everything where it is until then, and nothing anywhere else.
    entries::relink(plan, Where::Target, Where::Staged)?;
    all().try_for_each(Staging::unhold_all)?;
    fail::fail_point!("point::unheld");
    let directories = ReplayDirectories {
        place: data.place(),
        dir: data.dir(),
        options: start_options(settings, &plan.facts.roots, &places)?,
        lend: &|to| all().try_for_each(|root| root.lend(to)),
        take_back: &|| all().try_for_each(Staging::take_back),
    };
    point::replay(replay, means, &directories, settings, run)?;
    fail::fail_point!("point::taken_back");
    all().try_for_each(Staging::hold_all)?;
    if means.account.is_some() {
        give_content(plan, request)?;
    }
    entries::relink(plan, Where::Staged, Where::Target)
}

/// Returns the newest generation's number.
pub(crate) fn newest(repository: &Repository) -> Result<u32> {
    let generations = repository.generations()?;
    generations
        .last()
        .map(|summary| summary.generation)
        .ok_or_else(|| {
            Error::new(
                ErrorKind::Failed,
                format!("{} has no generation yet", repository.place()),
            )
            .hint(format!(
                "'evenkeel backup {}' makes one",
                repository.place()
            ))
        })
}

/// Returns the newest generation's number. Where its manifest is damaged the error says which one can be
/// read: whoever wants an older state says so.
pub(crate) fn newest_whole(repository: &Repository) -> Result<u32> {
    let newest = newest(repository)?;
    let Err(error) = repository.manifest(newest) else {
        return Ok(newest);
    };
    let generations = repository.generations()?;
    let whole = generations.iter().rev().find(|one| one.damage.is_none());
    Err(match whole.map(|one| one.generation) {
        Some(number) => error.hint(format!(
            "the newest readable generation is {number}: --generation {number}"
        )),
        None => error,
    })
}

pub(crate) fn refuse_moved_tables(facts: &Facts, roots: &BTreeMap<String, Staging>) -> Result<()> {
    for (id, place) in bound_to_their_place(facts) {
        if roots.get(id).is_some_and(|root| root.target() != place) {
            let place = place.display();
            return Err(Error::refused(format!(
                "the tables in {place} must be restored to that path: crash recovery opens them there"
            ))
            .hint(format!("restore them there: --map-root {id}={place}"))
            .hint("if that path is in use, restore on another host"));
        }
    }
    Ok(())
}

pub(crate) fn beside(target: &Path, id: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push("-");
    name.push(id);
    PathBuf::from(name)
}
