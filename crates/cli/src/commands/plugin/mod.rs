//! `plugin`.

mod queue;
mod queue_sql;

use crate::args::{
    self, PluginInstall, PluginName, PluginServer, PluginStatus, PluginUninstall, PluginVerb,
    SqlForm,
};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{PluginInstallAnswer, PluginStatusAnswer, PluginUninstallAnswer};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, Result, exit};
use evenkeel_plugins::PluginDirectory;
use evenkeel_server::connect::Session;
use evenkeel_url_install::Install;
use rustix::fs::OFlags;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What a library may be called beside the program.
const NAMES: [&str; 2] = ["evenkeel_url.so", "libevenkeel_url.so"];

/// No library is longer, in bytes.
const LIBRARY_MAX: u64 = 1 << 30;

/// Runs the command.
pub fn run(args: &args::Plugin, ui: &Ui) -> Result<u8> {
    match &args.verb {
        PluginVerb::Install(args) => match (args.plugin, is_sql(args.plugin, &args.form)?) {
            (PluginName::Url, _) => install(args, ui),
            (PluginName::Queue, false) => queue::install(args, ui),
            (PluginName::Queue, true) => queue_sql::install(args, ui),
        },
        PluginVerb::Uninstall(args) => match (args.plugin, is_sql(args.plugin, &args.form)?) {
            (PluginName::Url, _) => uninstall(args, ui),
            (PluginName::Queue, false) => queue::uninstall(args, ui),
            (PluginName::Queue, true) => queue_sql::uninstall(args, ui),
        },
        PluginVerb::Status(args) => match (args.plugin, is_sql(args.plugin, &args.form)?) {
            (PluginName::Url, _) => status(args, ui),
            (PluginName::Queue, false) => queue::status(args, ui),
            (PluginName::Queue, true) => queue_sql::status(args, ui),
        },
    }
}

/// Whether the form in SQL is meant.
fn is_sql(plugin: PluginName, form: &SqlForm) -> Result<bool> {
    match plugin {
        PluginName::Url if form.sql => Err(Error::usage("the plugin url has no SQL form")
            .hint("remove --sql: its functions come in a library")),
        _ => Ok(form.sql),
    }
}

fn install(args: &PluginInstall, ui: &Ui) -> Result<u8> {
    let install = Install {
        library: library(args.library.as_deref())?,
        table: super::url::table_at(args.table.as_deref(), ui)?,
        change_table: args.change_table,
    };
    let (mut session, place) = reached(&args.server, ui)?;
    let plan = evenkeel_url_install::plan_install(&mut session, install, place)?;
    let executed = args.execute || !plan.is_destructive();
    if executed {
        evenkeel_url_install::perform(&mut session, &plan)?;
    }
    ui.answer(&PluginInstallAnswer::new(&plan, executed));
    Ok(exit::DONE)
}

fn uninstall(args: &PluginUninstall, ui: &Ui) -> Result<u8> {
    let (mut session, place) = reached(&args.server, ui)?;
    let plan = evenkeel_url_install::plan_uninstall(&mut session, place)?;
    if args.execute {
        evenkeel_url_install::perform(&mut session, &plan)?;
    }
    ui.answer(&PluginUninstallAnswer::new(&plan, args.execute));
    Ok(exit::DONE)
}

fn status(args: &PluginStatus, ui: &Ui) -> Result<u8> {
    let mut session = Session::open(&settings::connect(&args.connection, "plugin", ui)?)?;
    let found = evenkeel_url_install::find(&mut session)?;
    let broken = !found.functions.is_empty() && !found.works();
    ui.answer(&PluginStatusAnswer::new(found));
    Ok(match broken {
        true => exit::DIFFERS,
        false => exit::DONE,
    })
}

/// Connects, and says where the server's files are: behind a socket they are on this host.
fn reached(server: &PluginServer, ui: &Ui) -> Result<(Session, PluginDirectory)> {
    let options = settings::connect(&server.connection, "plugin", ui)?;
    let place = match &server.plugin_dir {
        Some(directory) => PluginDirectory::At(directory.clone()),
        None if options.means_socket() => PluginDirectory::Here,
        None => PluginDirectory::Elsewhere,
    };
    Ok((Session::open(&options)?, place))
}

fn library(named: Option<&Path>) -> Result<Vec<u8>> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => beside_the_program()?,
    };
    elf(&path)
}

/// Reads a library.
fn elf(path: &Path) -> Result<Vec<u8>> {
    let failed = |error| {
        unreadable("library", path, error).hint("name the library of this release with --library")
    };
    let mut bytes = Vec::new();
    // A pipe would have it wait for somebody who writes.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path);
    let file = file.map_err(failed)?;
    if file.metadata().map_err(failed)?.is_file() {
        file.take(LIBRARY_MAX)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
    }
    if !bytes.starts_with(b"\x7fELF") {
        return Err(Error::usage(format!("{} is not a library", path.display()))
            .hint("name the library of this release with --library"));
    }
    Ok(bytes)
}

/// This program's file, and the directories where libraries lie.
fn places() -> Result<(PathBuf, [PathBuf; 2])> {
    let program = std::env::current_exe()
        .and_then(fs::canonicalize)
        .map_err(|error| Error::failed("failed to find this program's file").because(error))?;
    let beside = program.parent().unwrap_or_else(|| Path::new("/"));
    let places = [beside.to_owned(), beside.join("../lib/evenkeel")];
    Ok((program, places))
}

fn beside_the_program() -> Result<PathBuf> {
    let (program, places) = places()?;
    places
        .iter()
        .flat_map(|place| NAMES.map(|name| place.join(name)))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            Error::usage(format!(
                "there is no libevenkeel_url.so beside {}, nor in ../lib/evenkeel",
                program.display()
            ))
            .hint("install the package evenkeel-plugin-url, or name the library with --library")
            .hint("from source, 'make build' makes it")
        })
}
