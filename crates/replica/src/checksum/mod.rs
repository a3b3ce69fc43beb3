//! Compares a replica with its source, row by row, while both are in use.
//!
//! | file | what |
//! |---|---|
//! | `sides` | both servers; that one is the other's source; `filter`: what never gets there |
//! | `catalog`, `column` | tables, and what their types mean |
//! | `align` | views of both sides that are of one place in the source's binary log |
//! | `sql` | what both sides are asked |
//! | `work` | pieces of tables compared; `rows`: which rows of an unequal one are different |
//! | `state` | how far it is, for a later run |
//!
//! What is unequal at the first look is looked at again with other views, and counts only if it still is: a table that
//! was truncated under a view, or a definition that was on its way, is no difference.

pub(crate) mod align;
pub(crate) mod catalog;
pub(crate) mod column;
pub(crate) mod filter;
mod report;
mod request;
mod rows;
pub(crate) mod sides;
mod sql;
mod state;
mod work;

pub use report::{
    ChecksumReport, ComparedTable, KeyValue, RowDifference, RowDifferenceKind, TableVerdict,
};
pub use request::{ChecksumLimits, ChecksumRequest, ChecksumSelection, TableName};

use align::{Aligned, align};
use catalog::{Catalog, ComparableTable};
use evenkeel_op::{Error, Result, Run, Unit};
use evenkeel_server::throttle::{Limits, Throttle};
use sides::Sides;
use state::{Stage, StateFile, TableProgress, Tables};
use std::collections::BTreeSet;
use std::time::Instant;
use work::{Job, Shared, compare_all};

/// How often a table's definition may change from look to look.
const DEFINITIONS_MAX: u32 = 5;

/// Compares.
///
/// Errors: those of the sessions; `Refused` when the one server is not the other's source, a privilege is missing, or
/// replication does not run; `Usage` for names that neither server has; `LockTimeout` and `Busy` when the SQL thread
/// could not be had. Whatever happens, it runs again, or its watchdog starts it.
pub fn checksum(request: &ChecksumRequest, run: Run<'_>) -> Result<ChecksumReport> {
    let begun = Instant::now();
    let mut sides = Sides::meet(request, run)?;
    let file = StateFile::new(request, &mut sides)?;
    let mut tables = file.read()?;
    // What cannot be had is known before anything stands.
    if request.selection != ChecksumSelection::default() {
        let here = catalog::read(&mut sides.source.session, &request.selection)?;
        let there = catalog::read(&mut sides.replica.session, &request.selection)?;
        refuse_unknown(request, &here, &there)?;
    }
    file.write(tables.values().cloned().collect())?;
    if !tables.is_empty() {
        let done = tables.values().filter(|one| one.stage == Stage::Done);
        let (done, all) = (done.count(), tables.len());
        run.progress.note(format!(
            "continues an interrupted comparison: {done} of {all} tables are done"
        ));
    }
    let throttles = throttles(request, &sides)?;
    let mut report = ChecksumReport {
        replica: sides.replica.session.place().to_owned(),
        source: sides.source.session.place().to_owned(),
        channel: sides.channel.clone(),
        tables: Vec::new(),
        looks: 0,
        places: Vec::new(),
        applier_held_s: 0.0,
        applier_held_longest_s: 0.0,
        source_writes_paused_s: 0.0,
        rested_s: 0.0,
        seconds: 0.0,
    };
    loop {
        look(
            request,
            &mut sides,
            &file,
            &mut tables,
            &throttles,
            &mut report,
            run,
        )?;
        if tables.values().all(|one| one.stage == Stage::Done) {
            break;
        }
    }
    file.remove();
    report.rested_s = throttles[0]
        .rested()
        .max(throttles[1].rested())
        .as_secs_f64();
    report.seconds = begun.elapsed().as_secs_f64();
    report.tables = tables.into_values().map(|one| one.found).collect();
    Ok(report)
}

/// Makes those who wait for others: by the load of the source and the lag of replicas, and by the load of the replica.
fn throttles(request: &ChecksumRequest, sides: &Sides) -> Result<[Throttle; 2]> {
    let limits = &request.limits;
    let mut replicas = vec![request.replica.clone()];
    replicas.extend(limits.other_replicas.iter().cloned());
    let of_source = Limits {
        threads_running: limits.threads_running,
        lag: limits.lag,
        replicas,
    };
    let of_replica = Limits {
        threads_running: limits.threads_running,
        ..Limits::default()
    };
    Ok([
        Throttle::open(&sides.source.options, &of_source)?,
        Throttle::open(&request.replica, &of_replica)?,
    ])
}

/// Looks at both sides at one place, and compares until all is done that can be done with that.
fn look(
    request: &ChecksumRequest,
    sides: &mut Sides,
    file: &StateFile,
    tables: &mut Tables,
    throttles: &[Throttle; 2],
    report: &mut ChecksumReport,
    run: Run<'_>,
) -> Result<()> {
    // The source's before, the replica's after the place: so the replica's is never an older one.
    let here = catalog::read(&mut sides.source.session, &request.selection)?;
    run.progress
        .note("waiting for source and replica to be at one place".to_owned());
    let aligned = align(sides, request, run)?;
    account(report, &aligned);
    let there = catalog::read(&mut sides.replica.session, &request.selection)?;
    refuse_unknown(request, &here, &there)?;
    let jobs = judge(sides, &request.selection, &here, &there, tables);
    for table in jobs.iter().filter_map(|job| here.get(&job.name)) {
        if table.has_history && report.looks == 1 {
            let name = &table.name;
            run.progress.note(format!(
                "{name} keeps old rows: only its current rows are compared"
            ));
        }
    }
    let rows: u64 = jobs
        .iter()
        .filter_map(|job| Some(here.get(&job.name)?.rows))
        .sum();
    run.progress
        .phase("comparing rows", Some(rows), Unit::Items);
    let ended = {
        let note = || {
            let in_work: BTreeSet<&TableName> = jobs.iter().map(|job| &job.name).collect();
            let others = tables.iter().filter(|(name, _)| !in_work.contains(name));
            let others = others.map(|(_, one)| one.clone());
            file.write(others.chain(jobs.iter().map(Job::progress)).collect())
        };
        let shared = Shared {
            jobs: &jobs,
            limits: &request.limits,
            named_max: request.named_rows,
            throttles: [&throttles[0], &throttles[1]],
            since: aligned.since,
            note: &note,
            run,
        };
        compare_all(aligned.pairs, &shared)
    };
    run.progress.end();
    for job in jobs {
        tables.insert(job.name.clone(), job.progress());
    }
    // What was compared is not lost by what ended it.
    file.write(tables.values().cloned().collect())?;
    ended
}

fn account(report: &mut ChecksumReport, aligned: &Aligned) {
    report.looks += 1;
    let places = aligned.places.iter();
    report
        .places
        .extend(places.map(|place| format!("{} {}", place.file, place.position)));
    let held = aligned.applier_held.as_secs_f64();
    report.applier_held_s += held;
    report.applier_held_longest_s = report.applier_held_longest_s.max(held);
    report.source_writes_paused_s += aligned.writes_paused.as_secs_f64();
}

/// Refuses names that neither side has.
fn refuse_unknown(request: &ChecksumRequest, here: &Catalog, there: &Catalog) -> Result<()> {
    let known = |name: &&TableName| here.contains_key(*name) || there.contains_key(*name);
    if let Some(name) = request.selection.tables.iter().find(|name| !known(name)) {
        return Err(Error::usage(format!("neither server has a table {name}")));
    }
    let has = |database: &&String| {
        here.keys()
            .chain(there.keys())
            .any(|name| name.database == **database)
    };
    if let Some(name) = request.selection.databases.iter().find(|name| !has(name)) {
        return Err(Error::usage(format!(
            "neither server has tables in a database {name}"
        )));
    }
    Ok(())
}

/// Settles what can be told without rows, and returns the rest.
fn judge(
    sides: &Sides,
    selection: &ChecksumSelection,
    here: &Catalog,
    there: &Catalog,
    tables: &mut Tables,
) -> Vec<Job> {
    let names: BTreeSet<&TableName> = here.keys().chain(there.keys()).collect();
    // What was seen in an earlier look is gone on both sides.
    tables.retain(|name, _| names.contains(name));
    let mut jobs = Vec::new();
    let of = [&sides.source, &sides.replica];
    let backwards = of.iter().any(|side| side.abilities.sticky_range_ends);
    for name in names {
        let progress = tables
            .entry(name.clone())
            .or_insert_with(|| TableProgress::new(name));
        if progress.stage == Stage::Done {
            continue;
        }
        match opinion(sides, name, here.get(name), there.get(name)) {
            Opinion::Compare(table) => {
                let shape = Some(table.shape());
                if progress.shape.is_some() && progress.shape != shape {
                    // What was compared is of another key, or without some columns.
                    progress.restart(name);
                }
                progress.shape = shape;
                progress.definition = None;
                jobs.push(Job::new(table, backwards, progress.clone()));
            }
            // Who asks for a table is told that it was not compared.
            Opinion::Settled(TableVerdict::LeftOut, why) if selection.tables.contains(name) => {
                progress.end(TableVerdict::NotCompared, Some(why));
            }
            Opinion::Settled(verdict, why) => progress.end(verdict, Some(why)),
            Opinion::Unlike(why) if progress.definition.as_ref() == Some(&why) => {
                progress.end(TableVerdict::Differs, Some(why));
            }
            Opinion::Unlike(why) => {
                // It counts only if the next look says the same: it may be on its way.
                progress.restart(name);
                match progress.restarts > DEFINITIONS_MAX {
                    true => progress.end(
                        TableVerdict::NotCompared,
                        Some("its definition changed again and again meanwhile".to_owned()),
                    ),
                    false => progress.definition = Some(why),
                }
            }
        }
    }
    // The largest first: the last ones are done by several readers then.
    jobs.sort_by_key(|job| std::cmp::Reverse(here.get(&job.name).map_or(0, |table| table.rows)));
    jobs
}

enum Opinion<'a> {
    /// Its rows are to be compared.
    Compare(&'a ComparableTable),
    /// Its definition differs.
    Unlike(String),
    /// There is nothing to compare.
    Settled(TableVerdict, String),
}

fn opinion<'a>(
    sides: &Sides,
    name: &TableName,
    here: Option<&'a ComparableTable>,
    there: Option<&ComparableTable>,
) -> Opinion<'a> {
    if let Some((verdict, why)) = sides.filter.refusal(name) {
        return Opinion::Settled(verdict, why);
    }
    let (here, there) = match (here, there) {
        (Some(here), Some(there)) => (here, there),
        (Some(_), None) => return Opinion::Unlike("it is only on the source".to_owned()),
        (None, _) if sides.has_other_sources => {
            let why = "it is only on the replica, which has other sources, too";
            return Opinion::Settled(TableVerdict::LeftOut, why.to_owned());
        }
        (None, _) => return Opinion::Unlike("it is only on the replica".to_owned()),
    };
    if let Some(why) = here.difference(there) {
        return Opinion::Unlike(why);
    }
    for (table, side) in [(here, "source"), (there, "replica")] {
        if let Some(why) = table.refusal() {
            return Opinion::Settled(TableVerdict::NotCompared, format!("on the {side}: {why}"));
        }
    }
    Opinion::Compare(here)
}
