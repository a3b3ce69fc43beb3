//! `bench tpcc`.

use super::about;
use super::parts::{any_number, create, middle, whom};
use crate::args::{BenchTpcc, TpccCheck, TpccLoad, TpccRun, TpccVerb};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::TpccConditions;
use evenkeel_bench::repeated::Repeated;
use evenkeel_bench::tpcc::{self, Keying, LoadRequest, Scale, TpccRequest};
use evenkeel_op::{Context, Error, Result, exit};
use evenkeel_server::connect::Session;
use std::io::Write;

/// Runs the command.
pub(super) fn run(args: &BenchTpcc, ui: &Ui) -> Result<u8> {
    match &args.verb {
        TpccVerb::Load(args) => load(args, ui),
        TpccVerb::Run(args) => measure(args, ui),
        TpccVerb::Check(args) => check(args, ui),
    }
}

fn load(args: &TpccLoad, ui: &Ui) -> Result<u8> {
    let options = settings::connect(&args.connection, "bench", ui)?;
    let whole = Scale::of(args.warehouses.into());
    let request = LoadRequest {
        database: args.database.clone(),
        scale: match args.tiny {
            true => Scale {
                items: tpcc::ITEMS / 100,
                customers: tpcc::CUSTOMERS / 100,
                ..whole
            },
            false => whole,
        },
        threads: args.threads.into(),
        seed: args.seed,
    };
    ui.answer(&tpcc::load(&options, &request, whom(ui))?);
    Ok(exit::DONE)
}

fn measure(args: &TpccRun, ui: &Ui) -> Result<u8> {
    refuse_files(args)?;
    let options = settings::connect(&args.connection, "bench", ui)?;
    let request = TpccRequest {
        database: args.database.clone(),
        warehouses: args.warehouses.map(u32::from),
        connections: args.connections.into(),
        keying: match (args.keyed, args.rate) {
            (true, _) => Keying::Specified,
            (false, Some(per_s)) => Keying::Rate(per_s),
            (false, None) => Keying::None,
        },
        ramp_up: args.ramp_up,
        measure: args.measure,
        interval: args.interval,
        failures_allowed: args.max_failures,
        check: !args.no_check,
        is_checked: false,
        like_tpcc_mysql: args.like_tpcc_mysql,
        seed: args.seed.unwrap_or_else(any_number),
    };
    // Rather now than after the run.
    let mut plot = args.plot.as_deref().map(create).transpose()?;
    let page = about::Draft::begin(args.report.as_deref(), &options)?;
    let runs = Repeated::of(args.repeat.into(), whom(ui), |number| {
        let request = TpccRequest {
            is_checked: number > 0,
            seed: request.seed.wrapping_add(number as u64),
            ..request.clone()
        };
        tpcc::measure(&options, &request, whom(ui))
    })?;
    let report = middle(&runs)?;
    match args.repeat {
        1 => ui.answer(report),
        _ => ui.answer(&runs),
    }
    if let Some(page) = page {
        page.write(Some(request.seed), |about| {
            runs.onto(tpcc::page(report, about))
        })?;
    }
    if let (Some(file), Some(path)) = (&mut plot, &args.plot) {
        file.write_all(tpcc::plot(report).to_svg().as_bytes())
            .context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(match runs.counts() {
        true => exit::DONE,
        false => exit::DIFFERS,
    })
}

/// The two options of tpcc_start that are not for use here.
fn refuse_files(args: &TpccRun) -> Result<()> {
    let (option, what) = match (&args.report_file, &args.trx_file) {
        (Some(_), _) => ("-f", "how long each New-Order took"),
        (None, Some(_)) => ("-t", "when each New-Order began and ended"),
        (None, None) => return Ok(()),
    };
    let reported = format!("{option} FILE makes tpcc_start log {what}; evenkeel does not do that");
    let json = "--json has percentiles of each interval; -i 1 makes the intervals one second long";
    Err(Error::usage(reported)
        .hint(json)
        .hint("--report FILE.html draws them"))
}

fn check(args: &TpccCheck, ui: &Ui) -> Result<u8> {
    let options = settings::connect(&args.connection, "bench", ui)?;
    let mut session = Session::open(&options)?;
    let conditions = tpcc::check(&mut session, &args.database, whom(ui))?;
    let sound = !conditions.iter().any(tpcc::Condition::is_broken);
    ui.answer(&TpccConditions { sound, conditions });
    Ok(if sound { exit::DONE } else { exit::DIFFERS })
}
