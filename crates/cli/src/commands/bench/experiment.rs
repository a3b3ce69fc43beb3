//! `bench inserts`, `bench compression`, `bench cache`.

use super::about;
use super::parts::{any_number, whom};
use crate::args::{BenchCache, BenchCompression, BenchInserts, Experiment};
use crate::settings;
use crate::show::Ui;
use evenkeel_bench::experiment::{
    self, CacheRequest, CompressionRequest, ExperimentReport, InsertsRequest,
};
use evenkeel_op::{Context, Result, exit};
use evenkeel_server::options::ConnectOptions;

pub(super) fn inserts(args: &BenchInserts, ui: &Ui) -> Result<u8> {
    let engines = match args.engines.as_slice() {
        [] => ["MyISAM", "Aria", "InnoDB"].map(str::to_owned).to_vec(),
        named => named.to_vec(),
    };
    measured(&args.common, ui, |options, seed| {
        let request = InsertsRequest {
            database: args.common.database.clone(),
            rows: args.rows,
            rows_per_statement: args.rows_per_statement,
            engines,
            repeat: args.common.repeat.into(),
            seed,
        };
        experiment::inserts(options, &request, whom(ui))
    })
}

pub(super) fn compression(args: &BenchCompression, ui: &Ui) -> Result<u8> {
    measured(&args.common, ui, |options, seed| {
        let request = CompressionRequest {
            database: args.common.database.clone(),
            rows: args.rows,
            text_bytes: args.text_bytes,
            repeat: args.common.repeat.into(),
            seed,
        };
        experiment::compression(options, &request, whom(ui))
    })
}

pub(super) fn cache(args: &BenchCache, ui: &Ui) -> Result<u8> {
    let directory = tempfile::tempdir().context(|| "failed to create a temporary directory")?;
    measured(&args.common, ui, |options, seed| {
        let request = CacheRequest {
            database: args.common.database.clone(),
            rows: args.rows,
            writes_percent: args.writes,
            threads: args.threads.into(),
            measure: args.time,
            memcached: args.memcached.clone(),
            directory: directory.path().to_owned(),
            repeat: args.common.repeat.into(),
            seed,
        };
        experiment::cache(options, &request, whom(ui))
    })
}

fn measured(
    args: &Experiment,
    ui: &Ui,
    measure: impl FnOnce(&ConnectOptions, u64) -> Result<ExperimentReport>,
) -> Result<u8> {
    let options = settings::connect(&args.connection, "bench", ui)?;
    let seed = args.seed.unwrap_or_else(any_number);
    let page = about::Draft::begin(args.report.as_deref(), &options)?;
    let report = measure(&options, seed)?;
    ui.answer(&report);
    if let Some(page) = page {
        page.write(Some(seed), |about| experiment::page(&report, about))?;
    }
    Ok(exit::DONE)
}
