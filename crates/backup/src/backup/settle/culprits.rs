//! Names the table and index that corrupt pages belong to, and what would repair them.

use crate::backup::read::pages::Suspect;
use crate::backup::request::Source;
use crate::report::CorruptPage;
use evenkeel_innodb::names::{self, IndexRow, Names};
use evenkeel_op::{Result, Run};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;

/// Turns suspects into reports. The server is only asked for the names of its indexes now, because
/// only now are they needed; without it, the file's name still tells the table.
pub(in crate::backup) fn name(
    suspects: Vec<Suspect>,
    source: &Source,
    run: Run<'_>,
) -> Vec<CorruptPage> {
    let names = match source {
        Source::Live(options) if !suspects.is_empty() => ask(options).unwrap_or_else(|error| {
            run.progress.warn(format!(
                "the server does not name its indexes: {}",
                error.chain()
            ));
            Names::default()
        }),
        _ => Names::default(),
    };
    suspects
        .into_iter()
        .map(|suspect| report(suspect, &names))
        .collect()
}

fn ask(options: &ConnectOptions) -> Result<Names> {
    let mut session = Session::open(options)?;
    let abilities = Abilities::probe(&mut session)?;
    let rows = session.rows(names::query(abilities.dictionary_in_innodb))?;
    let columns = rows.iter().map(|row| std::array::from_fn(|at| row.at(at)));
    Ok(Names::new(columns.filter_map(IndexRow::of_columns)))
}

fn report(suspect: Suspect, names: &Names) -> CorruptPage {
    let described = suspect
        .header
        .as_ref()
        .map(|header| names.describe(&suspect.file, suspect.space, header));
    let remedy = described.as_ref().and_then(|name| {
        let sql = name.rebuild_sql()?;
        Some(format!(
            "the page belongs to a secondary index, which can be rebuilt: {sql}"
        ))
    });
    CorruptPage {
        table: described
            .as_ref()
            .and_then(|name| Some(name.table.as_ref()?.to_string())),
        index: described.and_then(|name| name.index),
        remedy,
        ..suspect.report()
    }
}
