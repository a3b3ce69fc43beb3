//! `bench showdown`: every method is a command, and those of evenkeel are commands of this program.

use super::about::about;
use super::parts::{any_number, create};
use super::recovery::server;
use crate::args::{BenchShowdown, FilesystemKind};
use crate::commands::demo::PROGRAMS;
use crate::show::Ui;
use evenkeel_bench::showdown::{
    self, Filesystem, Method, NONE, ServerSettings, ShowdownRequest, WorkLocation,
};
use evenkeel_bench::tpcc::{self, Scale};
use evenkeel_op::{Context, Error, Result, Run, exit};
use evenkeel_report::Fact;
use evenkeel_server::launch::Binary;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// A warehouse, and what else there is, with room for a restore beside it.
const WAREHOUSE_BYTES: u64 = 500 << 20;
const OTHER_BYTES: u64 = 3 << 30;

/// Runs the command.
pub(super) fn run(args: &BenchShowdown, ui: &Ui) -> Result<u8> {
    let request = request(args)?;
    // Rather now than after hours.
    let mut plot = args.plot.as_deref().map(create).transpose()?;
    let mut page = args.report.as_deref().map(create).transpose()?;
    ui.progress()
        .note(format!("order of rounds: --seed {}", request.seed));
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let report = showdown::measure(&request, run)?;
    ui.answer(&report);
    if let (Some(file), Some(path)) = (&mut plot, &args.plot) {
        file.write_all(showdown::throughput(&report).to_svg().as_bytes())
            .context(|| format!("failed to write {}", path.display()))?;
    }
    if let (Some(file), Some(path)) = (&mut page, &args.report) {
        let settings = report.settings.iter();
        let server = settings
            .map(|setting| Fact::new(&setting.name, &setting.value))
            .collect();
        let place = match &request.place {
            WorkLocation::Kept(place) | WorkLocation::Below(place) => place.as_path(),
        };
        // What was made for it says more than what it was made on.
        let is_here = request.filesystem == Filesystem::Here;
        let mut about = about(Some(request.seed), Some(place).filter(|_| is_here), server);
        if !is_here {
            let files = Fact::new("the server's files", &report.filesystem);
            about.machine.retain(|fact| fact.name != files.name);
            about.machine.push(files);
        }
        let html = showdown::page(&report, about).to_html();
        file.write_all(html.as_bytes())
            .context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(match (report.is_sound(), report.is_whole()) {
        (false, _) => exit::DIFFERS,
        (true, false) => exit::PARTIAL,
        (true, true) => exit::DONE,
    })
}

fn request(args: &BenchShowdown) -> Result<ShowdownRequest> {
    let binary = match &args.server {
        None => Binary::find(&PROGRAMS.map(PathBuf::from))?,
        Some(name) => server(name)?,
    };
    let quick = |quick: u64, usual: u64| if args.quick { quick } else { usual };
    let warehouses = args.warehouses.map_or(quick(1, 10) as u32, u32::from);
    let whole = Scale::of(warehouses);
    let seconds = |given: Option<Duration>, usual| given.unwrap_or(Duration::from_secs(usual));
    let size = OTHER_BYTES + u64::from(warehouses) * WAREHOUSE_BYTES;
    Ok(ShowdownRequest {
        server: binary,
        settings: ServerSettings {
            buffer_pool: args.buffer_pool.unwrap_or(quick(256 << 20, 1 << 30)),
            flush_log: args.flush_log,
            binlog: !args.no_binlog,
            options: args.server_option.clone(),
        },
        methods: methods(args)?,
        evenkeel: std::env::current_exe().context(|| "failed to find this program")?,
        threads: args.threads.into(),
        scale: match args.tiny {
            true => Scale {
                items: tpcc::ITEMS / 100,
                customers: tpcc::CUSTOMERS / 100,
                ..whole
            },
            false => whole,
        },
        connections: args.connections.map_or(quick(4, 16) as usize, usize::from),
        ramp_up: seconds(args.ramp_up, quick(3, 60)),
        measure: seconds(args.measure, quick(10, 300)),
        every: args.every,
        repeat: args.repeat.map_or(quick(1, 4) as usize, usize::from),
        seed: args.seed.unwrap_or_else(any_number),
        place: match &args.work {
            Some(directory) => WorkLocation::Kept(directory.clone()),
            None => WorkLocation::Below(std::env::temp_dir()),
        },
        filesystem: match args.filesystem {
            FilesystemKind::Here => Filesystem::Here,
            FilesystemKind::Xfs => Filesystem::Xfs,
            FilesystemKind::Btrfs => Filesystem::Btrfs,
            FilesystemKind::Ext4 => Filesystem::Ext4,
        },
        image_bytes: args.filesystem_size.unwrap_or(size),
        restore: !args.no_restore,
    })
}

/// Those that are known or the chosen ones of them, and the user's own.
fn methods(args: &BenchShowdown) -> Result<Vec<Method>> {
    let known = Method::known();
    let mut own = Vec::new();
    for (name, command) in &args.method {
        if known
            .iter()
            .chain(&own)
            .any(|method: &Method| method.name == *name)
        {
            return Err(
                Error::usage(format!("there is already a method called {name}"))
                    .hint("choose another name"),
            );
        }
        own.push(Method::new(name, command));
    }
    for (name, command) in &args.restore {
        let Some(place) = own.iter().position(|method| method.name == *name) else {
            return Err(Error::usage(format!(
                "--restore names {name}, but no --method does"
            )));
        };
        let method = own.swap_remove(place).restored_by(command)?;
        own.push(method);
    }
    for name in &args.only {
        if !known.iter().any(|method| method.name == *name) {
            let names: Vec<&str> = known.iter().map(|method| method.name.as_str()).collect();
            return Err(Error::usage(format!("there is no method called {name}"))
                .hint(format!("there are {}", names.join(", "))));
        }
    }
    let is_wanted = |method: &Method| {
        args.only.is_empty() || method.name == NONE || args.only.contains(&method.name)
    };
    Ok(known.into_iter().filter(is_wanted).chain(own).collect())
}
