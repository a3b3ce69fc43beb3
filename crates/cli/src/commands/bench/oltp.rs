//! `bench oltp`.

use super::about;
use super::parts::{any_number, create, middle, whom};
use crate::args::{BenchOltp, OltpCompat, OltpDistribution, OltpLoad, OltpMode, OltpRun, OltpVerb};
use crate::settings;
use crate::show::Ui;
use evenkeel_bench::oltp::{self, Compat, Distribution, Mode, OltpLoadRequest, OltpRequest, Shape};
use evenkeel_bench::repeated::Repeated;
use evenkeel_op::{Context, Result, exit};
use std::io::Write;

/// Runs the command.
pub(super) fn run(args: &BenchOltp, ui: &Ui) -> Result<u8> {
    match &args.verb {
        OltpVerb::Load(args) => load(args, ui),
        OltpVerb::Run(args) => measure(args, ui),
    }
}

fn load(args: &OltpLoad, ui: &Ui) -> Result<u8> {
    let options = settings::connect(&args.connection, "bench", ui)?;
    let request = OltpLoadRequest {
        database: args.database.clone(),
        shape: Shape {
            tables: args.tables,
            table_size: args.table_size,
        },
        engine: args.engine.clone(),
        threads: args.threads.into(),
        seed: args.seed,
    };
    ui.answer(&oltp::load(&options, &request, whom(ui))?);
    Ok(exit::DONE)
}

fn measure(args: &OltpRun, ui: &Ui) -> Result<u8> {
    let options = settings::connect(&args.connection, "bench", ui)?;
    let request = OltpRequest {
        database: args.database.clone(),
        mode: match args.mode {
            OltpMode::PointSelect => Mode::PointSelect,
            OltpMode::ReadOnly => Mode::ReadOnly,
            OltpMode::ReadWrite => Mode::ReadWrite,
            OltpMode::WriteOnly => Mode::WriteOnly,
        },
        compat: match args.compat {
            OltpCompat::Now => Compat::Now,
            OltpCompat::Old => Compat::Old,
        },
        tables: args.tables,
        table_size: args.table_size,
        threads: args.threads.into(),
        rate: args.rate,
        distribution: match args.distribution {
            OltpDistribution::Special => Distribution::Special,
            OltpDistribution::Uniform => Distribution::Uniform,
            OltpDistribution::Gaussian => Distribution::Gaussian,
            OltpDistribution::Pareto => Distribution::Pareto,
            OltpDistribution::Zipfian => Distribution::Zipfian,
        },
        prepared: !args.text,
        ramp_up: args.ramp_up,
        measure: args.time,
        interval: args.interval,
        failures_allowed: args.max_failures,
        seed: args.seed.unwrap_or_else(any_number),
    };
    // Rather now than after the run.
    let mut plot = args.plot.as_deref().map(create).transpose()?;
    let page = about::Draft::begin(args.report.as_deref(), &options)?;
    let runs = Repeated::of(args.repeat.into(), whom(ui), |number| {
        let request = OltpRequest {
            seed: request.seed.wrapping_add(number as u64),
            ..request.clone()
        };
        oltp::measure(&options, &request, whom(ui))
    })?;
    let report = middle(&runs)?;
    match args.repeat {
        1 => ui.answer(report),
        _ => ui.answer(&runs),
    }
    if let Some(page) = page {
        page.write(Some(request.seed), |about| {
            runs.onto(oltp::page(report, about))
        })?;
    }
    if let (Some(file), Some(path)) = (&mut plot, &args.plot) {
        file.write_all(oltp::plot(report).to_svg().as_bytes())
            .context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(match runs.counts() {
        true => exit::DONE,
        false => exit::DIFFERS,
    })
}
