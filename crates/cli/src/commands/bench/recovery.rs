//! `bench recovery`: `prewarm` is brought together here with the starts that are timed.

use super::parts::{any_number, create};
use crate::args::BenchRecovery;
use crate::commands::demo::PROGRAMS;
use crate::show::Ui;
use evenkeel_bench::recovery::{self, RecoveryReport, RecoveryRequest, Warmed, WorkLocation};
use evenkeel_op::{Cancel, Context, Error, Result, Run, Silent, exit};
use evenkeel_recovery::prewarm::{self, PrewarmRequest};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::launch::Binary;
use evenkeel_server::option_file::DefaultsSpec;
use evenkeel_server::stopped::{self, StoppedServer};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs the command.
pub(super) fn run(args: &BenchRecovery, ui: &Ui) -> Result<u8> {
    let request = request(args)?;
    // Rather now than after an hour.
    let mut plot = args.plot.as_deref().map(create).transpose()?;
    ui.progress()
        .note(format!("order of starts: --seed {}", request.seed));
    let before_start = |datadir: &Path| warm(datadir, args.iodepth, ui.cancel());
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let report: RecoveryReport = recovery::measure(&request, &before_start, run)?;
    ui.answer(&report);
    if let (Some(file), Some(path)) = (&mut plot, &args.plot) {
        file.write_all(recovery::plot(&report).to_svg().as_bytes())
            .context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(exit::DONE)
}

fn request(args: &BenchRecovery) -> Result<RecoveryRequest> {
    let servers = match args.servers.as_slice() {
        [] => vec![Binary::find(&PROGRAMS.map(PathBuf::from))?],
        named => named
            .iter()
            .map(|name| server(name))
            .collect::<Result<_>>()?,
    };
    let mut tables: Vec<usize> = args.tables.iter().map(|n| *n as usize).collect();
    tables.sort_unstable();
    tables.dedup();
    Ok(RecoveryRequest {
        servers,
        tables,
        changed_percent: f64::from(args.changed),
        latency: Duration::from_secs_f64(args.latency_ms / 1000.0),
        repeat: usize::from(args.repeat),
        seed: args.seed.unwrap_or_else(any_number),
        place: match &args.work {
            Some(directory) => WorkLocation::Kept(directory.clone()),
            None => WorkLocation::Below(std::env::temp_dir()),
        },
    })
}

/// Takes a program by its path, or the installed one by its maker's name.
pub(super) fn server(name: &Path) -> Result<Binary> {
    let Some(flavour) = name.to_str().and_then(|id| id.parse::<Flavour>().ok()) else {
        return Binary::inspect(name);
    };
    let places = PROGRAMS.map(|directory| Path::new(directory).join(flavour.program()));
    let found = Binary::find(&places)?;
    if !found.is_of(flavour) {
        return Err(Error::refused(format!(
            "{} is {}, not {flavour}",
            found.path.display(),
            found.flavour
        ))
        .hint("name the program by its path"));
    }
    Ok(found)
}

/// Warms what the server of a data directory will read.
fn warm(datadir: &Path, iodepth: Option<u16>, cancel: &Cancel) -> Result<Warmed> {
    let place = stopped::DatadirSpec {
        datadir: Some(datadir.to_owned()),
        // A private server reads none.
        defaults: DefaultsSpec {
            no_defaults: true,
            ..DefaultsSpec::default()
        },
    };
    let mut request = PrewarmRequest::new(StoppedServer::find(&place)?);
    request.limits.depth = iodepth.map(usize::from);
    let run = Run {
        progress: &Silent,
        cancel,
    };
    let report = prewarm::prewarm(&request, run)?;
    Ok(Warmed {
        bytes_read: report.bytes_read,
        depth: report.depth,
        reader: report.reader,
        is_complete: report.is_complete(),
    })
}
