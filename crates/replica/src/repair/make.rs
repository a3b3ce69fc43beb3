//! Compares, and makes a plan of what differs.

use super::identity::Identity;
use super::plan::{NotPlanned, PlannedRow, PlannedTable, RepairPlan, RowValues, SCHEMA, now};
use super::rows::RowStatements;
use super::writer::Change;
use super::{objections, plan_file};
use crate::checksum::align::{Pair, View, align};
use crate::checksum::catalog::{self, ComparableTable};
use crate::checksum::sides::Sides;
use crate::checksum::{
    ChecksumReport, ChecksumRequest, ChecksumSelection, ComparedTable, RowDifference,
    RowDifferenceKind, TableName, TableVerdict, checksum,
};
use evenkeel_op::{Error, ErrorKind, Result, Run};
use evenkeel_server::abilities::Privilege;
use evenkeel_server::replication::Position;
use std::path::PathBuf;

/// Statements must be so much shorter than the server takes.
const PACKET_MARGIN: u64 = 1024;

/// A plan that is wanted.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// What is compared.
    pub comparison: ChecksumRequest,
    /// More rows are not repaired one by one.
    pub rows_max: usize,
    /// Where the plan is written.
    pub output: PathBuf,
}

/// A plan, and what it was made of.
#[derive(Debug, Clone)]
pub struct Made {
    /// The plan; it was written if it has rows.
    pub plan: RepairPlan,
    /// The comparison.
    pub compared: ChecksumReport,
}

/// Compares, and writes a plan if there is something to repair.
///
/// Errors: those of [`checksum`]; `Refused` when too many rows differ; `Usage` when the file exists.
pub fn make_plan(request: &PlanRequest, run: Run<'_>) -> Result<Made> {
    plan_file::refuse_taken(&request.output)?;
    let mut comparison = request.comparison.clone();
    comparison.named_rows = request.rows_max;
    let compared = checksum(&comparison, run)?;
    let different: u64 = compared.tables.iter().map(ComparedTable::different).sum();
    if different > request.rows_max as u64 {
        return Err(Error::refused(format!(
            "{different} rows differ: that is more than {} and no accident of some rows",
            request.rows_max
        ))
        .hint(
            "find out what writes there, and rebuild the replica; or allow more with --max-rows",
        ));
    }
    let mut sides = Sides::meet(&comparison, run)?;
    sides.replica.require(&[Privilege::Trigger], "replica")?;
    let mut plan = RepairPlan {
        schema: SCHEMA.to_owned(),
        made: now(),
        replica: Identity::of(&mut sides.replica.session)?,
        source: Identity::of(&mut sides.source.session)?,
        channel: sides.channel.clone(),
        place: String::new(),
        why: vec![
            "every change of a replica's rows comes from its source: what only the replica has was written there"
                .to_owned(),
            "both sides were looked at three times, each time at one place of the source's binary log".to_owned(),
        ],
        tables: Vec::new(),
        not_planned: not_comparable(&compared),
        notes: objections::notes(&mut sides.replica)?,
        sql: Vec::new(),
        hash: String::new(),
    };
    let differing = compared.tables.iter().filter(|one| one.different() > 0);
    let differing: Vec<&ComparedTable> = differing.collect();
    if !differing.is_empty() {
        read_rows(&mut sides, &comparison, &differing, &mut plan, run)?;
    }
    plan.seal()?;
    if plan.rows() > 0 {
        plan_file::write(&request.output, &plan)?;
    }
    Ok(Made { plan, compared })
}

/// What nobody can say the rows of, or is different in another way.
fn not_comparable(compared: &ChecksumReport) -> Vec<NotPlanned> {
    let of = |one: &ComparedTable| {
        let is_one = matches!(
            one.verdict,
            TableVerdict::Differs | TableVerdict::NotCompared
        );
        one.why.clone().filter(|_| is_one).map(|why| NotPlanned {
            database: one.database.clone(),
            table: one.table.clone(),
            why,
        })
    };
    compared.tables.iter().filter_map(of).collect()
}

fn name_of(table: &ComparedTable) -> TableName {
    TableName {
        database: table.database.clone(),
        table: table.table.clone(),
    }
}

/// Looks at both sides once more, and reads the rows.
fn read_rows(
    sides: &mut Sides,
    comparison: &ChecksumRequest,
    differing: &[&ComparedTable],
    plan: &mut RepairPlan,
    run: Run<'_>,
) -> Result<()> {
    let selection = ChecksumSelection {
        databases: Vec::new(),
        tables: differing.iter().map(|one| name_of(one)).collect(),
    };
    // The source's before, the replica's after the place: so the replica's is never an older one.
    let here = catalog::read(&mut sides.source.session, &selection)?;
    let mut comparison = comparison.clone();
    comparison.limits.threads = 1;
    let mut aligned = align(sides, &comparison, run)?;
    let there = catalog::read(&mut sides.replica.session, &selection)?;
    let (Some(mut pair), Some(place)) = (aligned.pairs.pop(), aligned.places.pop()) else {
        return Err(Error::failed("no side shows anything"));
    };
    plan.place = words_of(&place);
    let most = sides.replica.session.variable("max_allowed_packet")?;
    let most = most.and_then(|most| most.parse().ok()).unwrap_or(u64::MAX);
    let (mut deletes, mut inserts) = (Vec::new(), Vec::new());
    for table in differing {
        let name = name_of(table);
        let planned = match (here.get(&name), there.get(&name)) {
            (Some(here), Some(there)) => planned(sides, &mut pair, table, here, there)?,
            _ => Err("it is not on both sides any more".to_owned()),
        };
        let left = match planned {
            Ok(planned) => {
                let changes = Change::all(std::slice::from_ref(&planned), &there)?;
                let Some(change) = changes.first() else {
                    continue;
                };
                let (gone, new) = change.sql()?;
                // To take it back, the rows as they are now must fit, too.
                let back = change.back()?;
                let longest = gone.iter().chain(&new).chain(&back).map(String::len).max();
                let fits = longest.is_none_or(|most_of| most_of as u64 + PACKET_MARGIN < most);
                if fits {
                    deletes.extend(gone);
                    inserts.extend(new);
                    // It may have become equal meanwhile.
                    plan.tables
                        .extend((!planned.rows.is_empty()).then_some(planned));
                    continue;
                }
                "one of its rows is longer than the replica's max_allowed_packet".to_owned()
            }
            Err(why) => why,
        };
        plan.not_planned.push(NotPlanned {
            database: name.database,
            table: name.table,
            why: left,
        });
    }
    plan.sql.extend(deletes);
    plan.sql.extend(inserts);
    Ok(())
}

/// Reads a table's rows that differ on both sides; or says why they are left as they are.
fn planned(
    sides: &mut Sides,
    pair: &mut Pair,
    compared: &ComparedTable,
    here: &ComparableTable,
    there: &ComparableTable,
) -> Result<std::result::Result<PlannedTable, String>> {
    if let Some(why) = here.difference(there) {
        return Ok(Err(why));
    }
    if let Some(why) = objections::to_table(&mut sides.replica, there)? {
        return Ok(Err(why));
    }
    let Some(statements) = RowStatements::of(there) else {
        return Ok(Err("it has no key".to_owned()));
    };
    let mut rows = Vec::new();
    for difference in &compared.differences {
        match row_of(pair, &statements, difference) {
            Ok(row) => rows.extend(row),
            Err(error) if error.kind() == ErrorKind::Refused => return Ok(Err(error.chain())),
            Err(error) => return Err(error),
        }
    }
    let is_extra = |row: &PlannedRow| row.kind == RowDifferenceKind::Extra;
    if sides.has_other_sources && rows.iter().any(is_extra) {
        let why =
            "the replica has other sources, too: a row that only it has may be from one of them";
        return Ok(Err(why.to_owned()));
    }
    let planned = PlannedTable {
        database: compared.database.clone(),
        table: compared.table.clone(),
        columns: statements.columns(),
        definition: there.definition(),
        rows,
    };
    Ok(match objections::to_rows(&mut sides.replica, &planned)? {
        Some(why) => Err(why),
        None => Ok(planned),
    })
}

/// Reads a row on both sides; `None` if it is the same by now.
///
/// Errors: `Refused` for a row that is not found again.
fn row_of(
    pair: &mut Pair,
    statements: &RowStatements,
    difference: &RowDifference,
) -> Result<Option<PlannedRow>> {
    let key: Vec<String> = difference.key.iter().map(|part| part.raw.clone()).collect();
    let source = seen(&mut pair.source, statements, &key)?;
    let replica = seen(&mut pair.replica, statements, &key)?;
    let kind = match (&replica, &source) {
        // It may be gone on both sides. Or its key does not find it, and then nobody may call it equal.
        (None, None) => {
            let why = "one of its rows differed, and is not found by its key now: compare again";
            return Err(Error::refused(why));
        }
        (None, Some(_)) => RowDifferenceKind::Missing,
        (Some(_), None) => RowDifferenceKind::Extra,
        (before, after) if before == after => return Ok(None),
        _ => RowDifferenceKind::Changed,
    };
    let shown = difference.key.iter();
    let shown: Vec<String> = shown
        .map(|part| format!("{}={}", part.column, part.value))
        .collect();
    Ok(Some(PlannedRow {
        kind,
        row: shown.join(", "),
        key,
        replica,
        source,
    }))
}

/// Reads a row as a view sees it.
pub(super) fn seen(
    view: &mut View,
    statements: &RowStatements,
    key: &[String],
) -> Result<Option<RowValues>> {
    let mut rows = Vec::new();
    view.each_row(&statements.select(key, false)?, &mut |cells| {
        rows.push(cells.iter().map(|cell| cell.map(str::to_owned)).collect());
        Ok(())
    })?;
    statements.found(key, rows)
}

pub(super) fn words_of(place: &Position) -> String {
    format!("{} {}", place.file, place.position)
}
