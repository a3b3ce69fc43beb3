//! `plugin … queue`.

use super::{elf, places, reached};
use crate::args::{PluginInstall, PluginStatus, PluginUninstall};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{QueueInstallAnswer, QueuePluginAnswer, QueueUninstallAnswer};
use evenkeel_op::{Error, Result, exit};
use evenkeel_queue_admin::engine::{self, built_for, is_our_library, library_for};
use evenkeel_server::connect::Session;
use std::fs;
use std::path::{Path, PathBuf};

/// How to come by a library.
const BUILD: &str = "the package evenkeel-queue-mariadb may have it; `make queue-plugin` in a \
     clone (for MySQL with MYSQLD=/usr/sbin/mysqld) builds it on a machine with exactly this server \
     version; or name a library with --library";

pub(super) fn install(args: &PluginInstall, ui: &Ui) -> Result<u8> {
    if args.table.is_some() || args.change_table {
        return Err(
            Error::usage("--table and --change-table are only for the plugin url")
                .hint("leave them out"),
        );
    }
    let (mut session, place) = reached(&args.server, ui)?;
    let server = engine::find(&mut session)?.server;
    let library = match &args.library {
        Some(path) => fitting(path, &server)?,
        None => beside_the_program(&server)?,
    };
    let plan = engine::plan_install(&mut session, library, place)?;
    let executed = args.execute || !plan.is_destructive();
    if executed {
        engine::perform(&mut session, &plan)?;
    }
    ui.answer(&QueueInstallAnswer::new(&plan, executed));
    Ok(exit::DONE)
}

pub(super) fn uninstall(args: &PluginUninstall, ui: &Ui) -> Result<u8> {
    let (mut session, place) = reached(&args.server, ui)?;
    let plan = engine::plan_uninstall(&mut session, place)?;
    if args.execute {
        engine::perform(&mut session, &plan)?;
    }
    let answer = QueueInstallAnswer::new(&plan, args.execute);
    ui.answer(&QueueUninstallAnswer(answer));
    Ok(exit::DONE)
}

pub(super) fn status(args: &PluginStatus, ui: &Ui) -> Result<u8> {
    let mut session = Session::open(&settings::connect(&args.connection, "plugin", ui)?)?;
    let answer = QueuePluginAnswer::new(engine::find(&mut session)?);
    let broken = answer.state == "broken";
    ui.answer(&answer);
    Ok(match broken {
        true => exit::DIFFERS,
        false => exit::DONE,
    })
}

/// Reads a library, which is bound to its server's version, whatever its file is called.
fn fitting(path: &Path, server: &str) -> Result<Vec<u8>> {
    let bytes = elf(path)?;
    match built_for(&bytes) {
        Some(built) if built == server => Ok(bytes),
        Some(other) => Err(Error::refused(format!(
            "{} was built for {other}, and the server is {server}",
            path.display()
        ))
        .hint(BUILD)),
        None => Err(Error::usage(format!(
            "{} is not a library of the queue engine",
            path.display()
        ))
        .hint(BUILD)),
    }
}

fn beside_the_program(server: &str) -> Result<Vec<u8>> {
    let (program, places) = places()?;
    let name = library_for(server);
    let mut others = Vec::new();
    for place in &places {
        for path in libraries(place, &name) {
            // One that cannot be read is not the one.
            let built = elf(&path).ok();
            match built.as_deref().and_then(built_for) {
                Some(built_for) if built_for == server => return Ok(built.unwrap_or_default()),
                Some(other) => others.push(format!("{} for {other}", path.display())),
                None => {}
            }
        }
    }
    let there_are = match others.is_empty() {
        true => String::new(),
        false => format!(", only {}", others.join(", ")),
    };
    Err(Error::usage(format!(
        "there is no {name} beside {}, nor in ../lib/evenkeel{there_are}",
        program.display()
    ))
    .hint(BUILD))
}

/// Libraries of the engine in a directory, for whatever server: first the one of this name.
fn libraries(place: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| is_our_library(name)).collect();
    names.sort_by_key(|one| (one != name, one.clone()));
    names.into_iter().map(|name| place.join(name)).collect()
}
