//! `plugin … queue`.

use super::{elf, places, reached};
use crate::args::{PluginInstall, PluginStatus, PluginUninstall};
use crate::settings;
use crate::show::Face;
use crate::show::answers::{QueueInstallAnswer, QueuePluginAnswer, QueueUninstallAnswer};
use evenkeel_install::queue::{self, built_for, library_for};
use evenkeel_op::{Error, Result, exit};
use evenkeel_server::connect::Session;
use std::fs;
use std::path::{Path, PathBuf};

/// How to come by a library.
const BUILD: &str = "the package evenkeel-queue-mariadb may have it; `make queue-plugin` in a \
     clone builds it on a machine with exactly this server version; or name a library with \
     --library";

pub(super) fn install(args: &PluginInstall, face: &Face) -> Result<u8> {
    if args.table.is_some() || args.change_table {
        return Err(
            Error::usage("--table and --change-table are only for the plugin url")
                .hint("leave them out"),
        );
    }
    let (mut session, place) = reached(&args.server, face)?;
    let server = queue::find(&mut session)?.server;
    let path = match &args.library {
        Some(path) => fits(path, &server)?,
        None => beside_the_program(&server)?,
    };
    let plan = queue::plan_install(&mut session, elf(&path)?, place)?;
    let executed = args.execute || !plan.is_destructive();
    if executed {
        queue::perform(&mut session, &plan)?;
    }
    face.answer(&QueueInstallAnswer::new(&plan, executed));
    Ok(exit::DONE)
}

pub(super) fn uninstall(args: &PluginUninstall, face: &Face) -> Result<u8> {
    let (mut session, place) = reached(&args.server, face)?;
    let plan = queue::plan_uninstall(&mut session, place)?;
    if args.execute {
        queue::perform(&mut session, &plan)?;
    }
    let answer = QueueInstallAnswer::new(&plan, args.execute);
    face.answer(&QueueUninstallAnswer(answer));
    Ok(exit::DONE)
}

pub(super) fn status(args: &PluginStatus, face: &Face) -> Result<u8> {
    let mut session = Session::open(&settings::connect(&args.connection, "plugin", face)?)?;
    let answer = QueuePluginAnswer::new(queue::find(&mut session)?);
    let broken = answer.state == "broken";
    face.answer(&answer);
    Ok(match broken {
        true => exit::DIFFERS,
        false => exit::DONE,
    })
}

/// A library is bound to its server's version: its name says which, if it was not given another.
fn fits(path: &Path, server: &str) -> Result<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str());
    match name.and_then(built_for) {
        Some(other) if other != server => Err(Error::refused(format!(
            "{} was built for {other}, and the server is {server}",
            path.display()
        ))
        .hint(BUILD)),
        _ => Ok(path.to_owned()),
    }
}

fn beside_the_program(server: &str) -> Result<PathBuf> {
    let (program, places) = places()?;
    let name = library_for(server);
    let here = places.iter().map(|place| place.join(&name));
    if let Some(path) = here.into_iter().find(|path| path.is_file()) {
        return Ok(path);
    }
    let mut others: Vec<String> = places.iter().flat_map(|place| libraries(place)).collect();
    others.sort();
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

/// Libraries for whatever server.
fn libraries(place: &Path) -> Vec<String> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| built_for(name).is_some()).collect()
}
