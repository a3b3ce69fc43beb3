//! `doctor`: looks without touching anything but what a killed run left behind.

mod repository;

use super::over_ssh;
use crate::args::{Doctor, Verb};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{Check, DoctorAnswer, LeftOut, ShownLayout, ShownMethod, ShownRoot};
use evenkeel_backup::backup::{assess_engine, layout_of, stands_still};
use evenkeel_backup::tables;
use evenkeel_op::{Error, Result, exit};
use evenkeel_server::abilities::{Abilities, Privilege, missing_privileges};
use evenkeel_server::connect::{Session, quote};
use evenkeel_server::files::{self, ServerFiles};
use evenkeel_server::tables::ServerTables;
use evenkeel_snapshot::{Assessment, Atomicity, Settings, assess};
use std::ffi::OsString;

/// What a backup's account needs; a server that does not know one never lacks it.
const NEEDED: [Privilege; 4] = [
    Privilege::Reload,
    Privilege::Process,
    Privilege::ReplicationClient,
    Privilege::BackupAdmin,
];

/// How long a question may wait for DDL that is under way.
const WAIT_S: u32 = 60;

/// Looks at server, account, files and filesystem, all of which are on this host; the repository may not be.
pub fn run(args: &Doctor, ui: &Ui) -> Result<u8> {
    let answer = look(args, ui)?;
    ui.answer(&answer);
    Ok(code(&answer))
}

/// Looks at them on the host that is meant, and at the repository on this one.
pub(super) fn run_here_or_there(
    args: &Doctor,
    verb: &Verb,
    words: &[OsString],
    ui: &Ui,
) -> Result<u8> {
    let mut answer: DoctorAnswer = match args.remote.ssh {
        Some(_) => over_ssh::run_for_answer(verb, &args.remote, words, ui)?,
        None => look(args, ui)?,
    };
    if let Some(path) = &args.repository {
        answer.checks.push(repository::check(path));
        answer.ready = answer.checks.iter().all(|check| check.ok);
    }
    ui.answer(&answer);
    Ok(code(&answer))
}

fn code(answer: &DoctorAnswer) -> u8 {
    match answer.ready {
        true => exit::DONE,
        false => exit::DIFFERS,
    }
}

fn look(args: &Doctor, ui: &Ui) -> Result<DoctorAnswer> {
    let options = settings::connect(&args.connection, "doctor", ui)?;
    super::resume::resume(&options, ui);
    let mut session = Session::open(&options)?;
    let abilities = Abilities::probe(&mut session)?;
    // Some questions wait for locks on tables, by default for a year.
    session.run(&format!("SET SESSION lock_wait_timeout = {WAIT_S}"))?;
    let mut checks = vec![privileges(&mut session, &abilities)?];
    let listed = ServerTables::read(&mut session, &abilities);
    let found = files::discover(&mut session, &abilities);
    checks.push(layout_check(&found));
    let mut methods = Vec::new();
    if let Ok(found) = &found {
        checks.push(tables_check(listed, found, &mut session, &abilities));
        checks.push(process_check(found));
        let settings = Settings {
            snapshot_dirs: args.snapshot_dir.clone(),
            ..Settings::default()
        };
        let assessed = assess(&layout_of(found, true), &settings);
        let engine = assess_engine(found, &abilities);
        checks.push(method_check(&assessed, &engine));
        let shown = |one| shown_method(one, &abilities, found);
        methods = assessed.into_iter().map(shown).collect();
        methods.push(shown_engine(engine));
    }
    Ok(DoctorAnswer {
        ready: checks.iter().all(|check| check.ok),
        server: abilities.version_text,
        checks,
        layout: found.ok().map(shown_layout),
        methods,
    })
}

fn fine(name: &'static str, found: impl Into<String>) -> Check {
    Check {
        name: name.to_owned(),
        ok: true,
        warning: false,
        found: found.into(),
        hints: Vec::new(),
    }
}

fn wrong(name: &'static str, error: &Error) -> Check {
    let hints = error.hints().into_iter().map(str::to_owned).collect();
    Check {
        name: name.to_owned(),
        ok: false,
        warning: false,
        found: error.chain(),
        hints,
    }
}

fn privileges(session: &mut Session, abilities: &Abilities) -> Result<Check> {
    let missing = missing_privileges(session, &NEEDED)?;
    let account = session.value("SELECT CURRENT_USER()")?.unwrap_or_default();
    if missing.is_empty() {
        return Ok(fine(
            "privileges",
            format!("{account} has the privileges that a backup needs"),
        ));
    }
    let names: Vec<&str> = missing
        .iter()
        .map(|privilege| privilege.grant_name(abilities.flavour, abilities.version))
        .collect();
    let names = names.join(", ");
    let (user, host) = account.rsplit_once('@').unwrap_or((&account, "%"));
    let error = Error::refused(format!("{account} lacks {names}")).hint(format!(
        "GRANT {names} ON *.* TO {}@{};",
        quote(user),
        quote(host)
    ));
    Ok(wrong("privileges", &error))
}

fn layout_check(found: &Result<ServerFiles>) -> Check {
    match found {
        Ok(found) => {
            let engines = if found.has_nontransactional_user_tables() {
                "some tables have no transactions: writes are paused while they are read"
            } else {
                "all tables have transactions"
            };
            fine("files", format!("all found; {engines}"))
        }
        Err(error) => wrong("files", error),
    }
}

/// Whether a backup would have all tables. What was there before and after the files were looked for counts.
fn tables_check(
    listed: Result<ServerTables>,
    found: &ServerFiles,
    session: &mut Session,
    abilities: &Abilities,
) -> Check {
    let assessed = listed.and_then(|mut listed| {
        listed.keep_common(&ServerTables::read(session, abilities)?);
        tables::assess(&listed, found)
    });
    match assessed {
        Ok(reported) => fine("tables", reported),
        Err(error) => wrong("tables", &error),
    }
}

fn process_check(found: &ServerFiles) -> Check {
    match found.pid {
        Some(pid) => fine(
            "process",
            format!("the server is process {pid} of this host"),
        ),
        None => {
            let error = Error::refused("the server's process cannot be seen")
                .hint("run evenkeel on the server's own host, as root or as the server's user");
            wrong("process", &error)
        }
    }
}

fn method_check(assessed: &[Assessment], engine: &Result<String>) -> Check {
    // These two need neither a decision of the user nor a stopped server.
    let usable = assessed
        .iter()
        .find(|method| method.usable && method.atomicity != Atomicity::Stopped);
    match usable {
        Some(method) => fine("snapshot", format!("{} works", method.provider)),
        None if engine.is_ok() => fine("snapshot", "none, but engine works"),
        None => {
            let error = Error::refused("no snapshot method works by itself")
                .hint("move the data directory to XFS or btrfs, or onto an LVM volume")
                .hint("or install the server's hot-copy tool: mariadb-backup or Percona XtraBackup")
                .hint("or use your own snapshot command: --snapshot hook --hook COMMAND");
            wrong("snapshot", &error)
        }
    }
}

fn shown_layout(found: ServerFiles) -> ShownLayout {
    ShownLayout {
        roots: found
            .roots
            .into_iter()
            .map(|root| ShownRoot {
                id: root.id,
                path: root.path,
            })
            .collect(),
        files: found.files.len(),
        bytes: found.files.iter().map(|file| file.size).sum(),
        page_size: found.page_size,
        left_out: found
            .excluded
            .into_iter()
            .map(|(path, why)| LeftOut {
                path,
                why: why.to_owned(),
            })
            .collect(),
    }
}

fn shown_engine(assessed: Result<String>) -> ShownMethod {
    ShownMethod {
        method: "engine".to_owned(),
        usable: assessed.is_ok(),
        instant_over: "everything".to_owned(),
        reads_changed_only: false,
        reason: assessed.unwrap_or_else(|error| error.chain()),
    }
}

fn shown_method(assessment: Assessment, abilities: &Abilities, found: &ServerFiles) -> ShownMethod {
    let still = stands_still(abilities, found, assessment.atomicity);
    let still = still.filter(|_| assessment.usable);
    ShownMethod {
        method: assessment.provider.to_owned(),
        usable: assessment.usable,
        instant_over: match assessment.atomicity {
            Atomicity::Whole | Atomicity::Synced => "everything",
            Atomicity::PerFile => "one file",
            Atomicity::Stopped => "stopped",
        }
        .to_owned(),
        reads_changed_only: assessment.change_list,
        reason: match still {
            Some(still) => format!("{}; {still}", assessment.reason),
            None => assessment.reason,
        },
    }
}
