//! A verb on another host: the words go there, the repository stays here.

use crate::args::{BinlogArchive, BinlogVerb, Keys, Remote, Verb};
use crate::settings;
use crate::show::Ui;
use evenkeel_op::{Context, Error, Event, Result, exit, units};
use evenkeel_repository::secrecy::ExposeSecret;
use evenkeel_repository::store::Store;
use evenkeel_repository::{Access as KeyAccess, Repository};
use evenkeel_transport::{Access, LinkTimeouts, Near, Order, Ssh, Traffic, Word};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A connection that is silent for this part of the patience is given up, so that there is time for
/// another.
const STALL_SHARE: u32 = 3;

/// Runs the verb on the other host and returns its exit code. Where answers are kept, the document comes
/// over too.
pub(super) fn run(verb: &Verb, remote: &Remote, words: &[OsString], ui: &Ui) -> Result<u8> {
    if !ui.keeps_answers() {
        let mut print = |text: String| ui.print(text.as_bytes());
        return run_telling(verb, remote, words, ui, &mut print);
    }
    let asked: &[&str] = match ui.is_json() {
        true => &[],
        false => &["--json", "--with-text"],
    };
    let mut words = words.to_vec();
    let first = 1.min(words.len());
    words.splice(first..first, asked.iter().map(OsString::from));
    let mut print = |reported: String| {
        let document: Value = serde_json::from_str(&reported).unwrap_or_default();
        match document["as_text"].as_str().filter(|_| !ui.is_json()) {
            Some(_) if ui.is_quiet() => {}
            Some(text) => ui.print(text.as_bytes()),
            None => ui.print(reported.as_bytes()),
        }
        ui.keep(document);
    };
    run_telling(verb, remote, &words, ui, &mut print)
}

/// Does the same, and hands the other host's answer to `tell`.
fn run_telling(
    verb: &Verb,
    remote: &Remote,
    words: &[OsString],
    ui: &Ui,
    tell: &mut dyn FnMut(String),
) -> Result<u8> {
    let repository = match repository(verb) {
        Some((path, access)) => {
            let place = ui.location(path, storage_class(verb))?;
            Some((place.store(), access, path.display().to_string()))
        }
        None => None,
    };
    run_with(verb, remote, words, repository, (ui, tell))
}

/// Runs a verb that sends into `store` of this host, which is no repository; nothing is answered.
pub(super) fn run_into(
    verb: &Verb,
    remote: &Remote,
    words: &[OsString],
    store: Arc<dyn Store>,
    ui: &Ui,
) -> Result<()> {
    let place = store.place();
    let ended = run_with(
        verb,
        remote,
        words,
        Some((store, Access::Image, place)),
        (ui, &mut |_| ()),
    )?;
    match ended {
        exit::DONE => Ok(()),
        code => Err(Error::failed(format!(
            "the program on the other host ended with {code}"
        ))),
    }
}

/// Objects of this host, what may be done to them, and what they are called in messages.
type Given = (Arc<dyn Store>, Access, String);

fn run_with(
    verb: &Verb,
    remote: &Remote,
    words: &[OsString],
    repository: Option<Given>,
    (ui, tell): (&Ui, &mut dyn FnMut(String)),
) -> Result<u8> {
    let ssh = ssh(remote)?;
    let (repository, place) = match repository {
        Some((store, access, place)) => (Some((store, access)), place),
        None => (None, String::new()),
    };
    let order = Order::Run {
        words: with_keys(verb, settings::with_password(verb, words)?, ui)?
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect(),
        repository: place,
    };
    let near = Near {
        ssh: &ssh,
        timeouts: timeouts(remote.ssh_timeout),
        repository,
        cancel: ui.cancel(),
    };
    let mut hear = |word| match word {
        Word::Progress(event) => ui.progress().event(plain(event)),
        Word::Answer { text } => tell(text),
        Word::Done { .. } => {}
    };
    let outcome = near.run(&order, &mut hear, &|text| ui.note(&text))?;
    ui.note(&reported(&ssh, outcome.traffic, outcome.questions));
    outcome.result
}

/// Leaves nothing in what another host says that a terminal would obey, or that looks like a line of ours.
fn plain(event: Event) -> Event {
    let plain = |text: String| text.replace(char::is_control, " ");
    match event {
        Event::Note(text) => Event::Note(plain(text)),
        Event::Warning(text) => Event::Warning(plain(text)),
        Event::PhaseStarted { name, total, unit } => Event::PhaseStarted {
            name: plain(name),
            total,
            unit,
        },
        other => other,
    }
}

/// More than this an answer does not have, in bytes, whatever another host sends.
const ANSWER_MAX: usize = 16 << 20;

/// Does the same for an answer that is processed here: it comes as JSON, whatever is shown to the user.
pub(super) fn run_for_answer<A: DeserializeOwned>(
    verb: &Verb,
    remote: &Remote,
    words: &[OsString],
    ui: &Ui,
) -> Result<A> {
    let mut words = words.to_vec();
    if !ui.is_json() {
        words.insert(1.min(words.len()), "--json".into());
    }
    let mut reported = String::new();
    let mut hear = |text: String| {
        if reported.len() < ANSWER_MAX {
            reported += &text;
        }
    };
    run_telling(verb, remote, &words, ui, &mut hear)?;
    serde_json::from_str(&reported)
        .context(|| "the program on the other host gave an invalid answer")
}

fn storage_class(verb: &Verb) -> Option<&str> {
    match verb {
        Verb::Backup(args) => args.storage_class.as_deref(),
        _ => None,
    }
}

/// Opens an encrypted repository here, where its keys are, and adds what the work on the other host
/// needs of them to the words. They go over the link, as a password does: no command line shows
/// them.
fn with_keys(verb: &Verb, mut words: Vec<OsString>, ui: &Ui) -> Result<Vec<OsString>> {
    let (repository, reads) = match verb {
        Verb::Backup(args) => {
            let place = ui.location(&args.repository, storage_class(verb))?;
            let place = settings::unlock_or_encrypt(
                place,
                &args.keys,
                &args.encrypt,
                "backup",
                ui.cancel(),
            )?;
            let asked = !place.encrypt().is_empty() || !place.credentials().is_empty();
            if !asked {
                return Ok(words);
            }
            let repository = Repository::open_or_create(&place)?;
            // It cannot be done from the other host: nobody replaces keys across a link.
            repository.finish_key_change()?;
            (repository, false)
        }
        Verb::Binlog(_) => {
            let Some(args) = archive(verb) else {
                return Ok(words);
            };
            let place = ui.location(&args.repository, None)?;
            // Over there it could not be made.
            let place = settings::unlock_archive(place, args, ui.cancel())?;
            (Repository::open_or_create(&place)?, false)
        }
        Verb::Restore(args) => (open(&args.repository, &args.keys, "restore", ui)?, true),
        Verb::Verify(args) => (open(&args.repository, &args.keys, "verify", ui)?, true),
        Verb::Repository(care) => match care.copy() {
            Some(args) => (open(&args.from, &args.keys, "repository", ui)?, true),
            None => return Ok(words),
        },
        _ => return Ok(words),
    };
    if matches!(repository.access(), KeyAccess::Writer | KeyAccess::Reader) {
        let keys = repository.session_keys(reads)?;
        words.push(format!("--session-keys={}", keys.expose_secret()).into());
    }
    Ok(words)
}

fn archive(verb: &Verb) -> Option<&BinlogArchive> {
    match verb {
        Verb::Binlog(args) => match &args.verb {
            BinlogVerb::Archive(args) => Some(args),
            BinlogVerb::List(_) | BinlogVerb::Extract(_) => None,
        },
        _ => None,
    }
}

fn open(path: &Path, keys: &Keys, verb: &str, ui: &Ui) -> Result<Repository> {
    Repository::open(settings::unlock(
        ui.location(path, None)?,
        keys,
        verb,
        ui.cancel(),
    )?)
}

fn timeouts(loss: Duration) -> LinkTimeouts {
    LinkTimeouts {
        stall: loss / STALL_SHARE,
        loss,
    }
}

/// The repository of a verb, and what may be done to it from the other host.
fn repository(verb: &Verb) -> Option<(&Path, Access)> {
    match verb {
        Verb::Backup(args) => Some((&args.repository, Access::Append)),
        Verb::Restore(args) => Some((&args.repository, Access::Read)),
        Verb::Verify(args) => Some((&args.repository, Access::Read)),
        Verb::Binlog(_) => archive(verb).map(|args| (args.repository.as_path(), Access::Logs)),
        Verb::Repository(care) => Some((&care.copy()?.from, Access::Read)),
        _ => None,
    }
}

fn ssh(remote: &Remote) -> Result<Ssh> {
    let destination = remote.ssh.clone().unwrap_or_default();
    // ssh itself would take it for an option.
    if destination.is_empty() || destination.starts_with('-') {
        return Err(Error::usage(format!("'{destination}' is not a host"))
            .hint("name it as ssh does: --ssh root@db1"));
    }
    let command = shell_words::split(&remote.ssh_command)
        .map_err(|error| Error::usage("--ssh-command is not a valid command").because(error))?;
    let program = match &remote.ssh_program {
        Some(program) => program.clone(),
        None => std::env::current_exe().context(|| "failed to find this program")?,
    };
    Ok(Ssh {
        command,
        destination,
        program,
        sudo: remote.ssh_sudo,
        keep: !remote.no_ssh_keep_program,
    })
}

fn reported(ssh: &Ssh, traffic: Traffic, questions: u64) -> String {
    let mut text = format!(
        "link to {}: {} sent, {} received",
        ssh.destination,
        units::bytes(traffic.sent),
        units::bytes(traffic.received)
    );
    if questions > 0 {
        let questions = units::count(questions, "question");
        text.push_str(&format!(", {questions} to the repository"));
    }
    if traffic.connections > 1 {
        text.push_str(&format!(
            ", {} connections, {} sent twice from here",
            traffic.connections,
            units::bytes(traffic.resent)
        ));
    }
    text
}
