//! `replica resync`: a clone and what makes it the replica's, composed here.

use super::asked;
use crate::args::{AskedServers, CloneServer, ReplicaResync, Servers, Verb};
use crate::commands::{clone, over_ssh};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::ReplicaStatusAnswer;
use clap::ArgAction;
use clap::parser::ValueSource;
use evenkeel_backup::clone::{CloneReport, CloneTarget, Receiver};
use evenkeel_op::paths::absolute;
use evenkeel_op::{Context, Error, Result, Run, exit, open_files};
use evenkeel_replica::resync::{
    CloneInto, Image, ResyncRequest, Sibling, known_sibling, plan_resync, resync,
};
use evenkeel_replica::survey::{Questions, survey};
use evenkeel_server::options::ConnectOptions;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// How long the sibling may take to say how it is.
const ANSWER: Duration = Duration::from_secs(10);
/// What a seeding leaves to be filled in.
const OPEN: char = '<';

/// Runs the command. `words` are the command line.
pub(super) fn run_here(args: &ReplicaResync, words: &[OsString], ui: &Ui) -> Result<u8> {
    let target = beside(&args.datadir);
    let words = forwarded(words, "clone", &target)?;
    let verb = parsed(words.clone())?;
    // A password is asked for once.
    let words = settings::with_password(&verb, &words)?;
    let verb = parsed(words.clone())?;
    let Verb::Clone(clone_args) = &verb else {
        return Err(Error::failed("these are not the words of a clone"));
    };
    let request = request(args, clone_args, &words, ui)?;
    if !args.execute {
        ui.answer(&plan_resync(&request)?);
        return Ok(exit::DONE);
    }
    // Stretches of many small files are under way together.
    open_files::raise();
    let mut send = |into: CloneInto<'_>, run: Run<'_>| clone_into(into, &verb, &words, run, ui);
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    ui.answer(&resync(&request, &mut send, run)?);
    Ok(exit::DONE)
}

/// What the clone is called in words; where it goes is said when it is made.
fn beside(datadir: &Path) -> OsString {
    let mut option = OsString::from("--target=");
    option.push(datadir);
    option.push(".evenkeel-resync");
    option
}

fn request(
    args: &ReplicaResync,
    clone: &CloneServer,
    words: &[OsString],
    ui: &Ui,
) -> Result<ResyncRequest> {
    let settings = match evenkeel_server::files::process_in(&args.datadir) {
        Some(_) => Default::default(),
        None => settings::stopped_server_at(&args.datadir, &args.connection, ui)?.settings,
    };
    Ok(ResyncRequest {
        datadir: args.datadir.clone(),
        options: broken(clone, ui)?,
        socket: args.broken_socket.as_deref().map(absolute),
        settings,
        stop_with: args.stop_with.clone(),
        start_with: args.start_with.clone(),
        program: args.server_binary.as_deref().map(absolute),
        sibling: match known_sibling(&args.datadir)? {
            Some(known) => known,
            None => sibling(clone, words, ui)?,
        },
        other_source: args.other_source,
        keep_old: args.keep_old,
        stop_deadline: args.stop_deadline,
        start_deadline: args.start_deadline,
        catch_up_deadline: args.catch_up_deadline,
    })
}

/// The account that was typed, or that the option files here name, at a socket that is found later.
fn broken(clone: &CloneServer, ui: &Ui) -> Result<ConnectOptions> {
    let mut connection = clone.connection.clone();
    connection.host = Some("localhost".to_owned());
    (connection.port, connection.socket, connection.ssl_mode) = (None, None, None);
    settings::connect(&connection, "replica", ui)
}

/// Asks the sibling how it is.
fn sibling(clone: &CloneServer, words: &[OsString], ui: &Ui) -> Result<Sibling> {
    let status: Value = match clone.remote.ssh {
        Some(_) => {
            let mut words = status_words(words)?;
            if ui.is_json() {
                words.insert(1, "--json".into());
            }
            let verb = parsed(words.clone())?;
            over_ssh::run_for_answer(&verb, &clone.remote, &words, ui)?
        }
        None => {
            let asked = AskedServers {
                which: Servers {
                    servers: Vec::new(),
                    fleet: None,
                    connection: clone.connection.clone(),
                },
                timeout: ANSWER,
            };
            let targets = asked::meant(&asked, ui)?;
            let servers = survey(
                &targets,
                &Questions { heartbeat: None },
                ANSWER,
                ui.cancel(),
            )?;
            asked::say_silent(&servers, ui)?;
            serde_json::to_value(ReplicaStatusAnswer::new(&servers))
                .context(|| "failed to read the sibling's answer")?
        }
    };
    let mut sibling: Sibling = serde_json::from_value(status["servers"][0].clone())
        .context(|| "the sibling did not say what it replicates")?;
    // By its own host it is only `localhost`.
    if let Some(host) = &clone.remote.ssh {
        sibling.server.clone_from(host);
    }
    Ok(sibling)
}

/// Clones the sibling, from here or there.
fn clone_into(
    into: CloneInto<'_>,
    verb: &Verb,
    words: &[OsString],
    run: Run<'_>,
    ui: &Ui,
) -> Result<Image> {
    let Verb::Clone(args) = verb else {
        return Err(Error::failed("these are not the words of a clone"));
    };
    let mut target = CloneTarget::new(into.target);
    target.like = Some(into.like.to_owned());
    target.owner = Some(into.owner);
    target.is_one_directory = true;
    let receiver = Receiver::begin(&target)?;
    let sent = match args.remote.ssh {
        Some(_) => over_ssh::run_into(verb, &args.remote, words, receiver.store(), ui),
        None => clone::send(args, receiver.location(), false, ui),
    };
    let report = sent.and_then(|()| receiver.finish(run));
    let report = report.map_err(|error| receiver.give_up(error))?;
    Ok(image(report))
}

fn image(report: CloneReport) -> Image {
    let mut start_options = report.start_options;
    let more = report.replica.into_iter().flat_map(|one| one.start_options);
    start_options.extend(more.filter(|option| !option.contains(OPEN)));
    Image {
        version: report.server_version,
        start_options,
        source_coordinates: report.source_coordinates,
        gtid: report.coordinates.gtid,
        bytes_sent: report.bytes_sent,
        blocks_reused: report.blocks_reused,
        applier_ms: report.applier_ms,
    }
}

fn parsed(words: Vec<OsString>) -> Result<Verb> {
    let cli = crate::parse(words).map_err(|error| {
        Error::usage("the options do not fit a clone of the sibling")
            .because(crate::wrong_use::failure(&error))
    })?;
    Ok(cli.verb)
}

/// Returns the words of a clone with the options that were typed for this verb.
fn forwarded(words: &[OsString], to: &str, target: &OsString) -> Result<Vec<OsString>> {
    let mut all: Vec<OsString> = vec!["evenkeel".into(), to.into(), target.clone()];
    all.push("--stop-applier".into());
    all.extend(typed(words, &["replica", "resync"], &[to])?);
    Ok(all)
}

/// Returns the words that ask the server of a clone's words how it is.
fn status_words(words: &[OsString]) -> Result<Vec<OsString>> {
    let mut all: Vec<OsString> = ["evenkeel", "replica", "status"].map(OsString::from).into();
    all.extend(typed(words, &["clone"], &["replica", "status"])?);
    Ok(all)
}

/// Spells out the options that were typed for one verb and that another verb has, too.
fn typed(words: &[OsString], from: &[&str], to: &[&str]) -> Result<Vec<OsString>> {
    let whole = crate::command();
    let strange = || Error::failed("the command line cannot be read twice");
    let find = |path: &[&str]| {
        let mut names = path.iter();
        names.try_fold(&whole, |at, name| at.find_subcommand(name))
    };
    let (from_command, to_command) = (
        find(from).ok_or_else(strange)?,
        find(to).ok_or_else(strange)?,
    );
    let known: Vec<&str> = to_command
        .get_arguments()
        .filter_map(|arg| arg.get_long())
        .collect();
    let matches = whole
        .clone()
        .try_get_matches_from(words)
        .map_err(|_| strange())?;
    let mut names = from.iter();
    let matches = names.try_fold(&matches, |at, name| at.subcommand_matches(name));
    let matches = matches.ok_or_else(strange)?;
    let mut all = Vec::new();
    for arg in from_command.get_arguments() {
        let Some(long) = arg.get_long().filter(|long| known.contains(long)) else {
            continue;
        };
        let id = arg.get_id().as_str();
        let is_typed = matches.value_source(id) == Some(ValueSource::CommandLine);
        if !is_typed || GIVEN.contains(&long) {
            continue;
        }
        let values: Vec<OsString> = match arg.get_action() {
            ArgAction::SetTrue => Vec::new(),
            _ => matches
                .get_raw(id)
                .into_iter()
                .flatten()
                .map(OsString::from)
                .collect(),
        };
        if values.is_empty() {
            all.push(format!("--{long}").into());
        }
        for value in values {
            let mut word = OsString::from(format!("--{long}="));
            word.push(value);
            all.push(word);
        }
    }
    Ok(all)
}

/// Options that mean something else there.
const GIVEN: [&str; 2] = ["target", "timeout"];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_clone_gets_the_options_that_were_typed() {
        let line = "evenkeel --json replica resync --datadir /d --execute -u root --password --ssh db2 -S a.sock \
                    --no-defaults --snapshot-dir x --snapshot-dir y --keep-old";
        let clone = forwarded(&words(line), "clone", &beside(Path::new("/d"))).unwrap();
        let expected = "evenkeel clone --target=/d.evenkeel-resync --stop-applier";
        assert_eq!(clone[..4], words(expected)[..]);
        for word in [
            "--user=root",
            "--password",
            "--ssh=db2",
            "--socket=a.sock",
            "--no-defaults",
            "--snapshot-dir=x",
            "--snapshot-dir=y",
        ] {
            assert!(clone.contains(&OsString::from(word)), "{word}: {clone:?}");
        }
        assert_eq!(clone.len(), 11, "{clone:?}");
        assert!(matches!(parsed(clone.clone()), Ok(Verb::Clone(_))));
        let status = status_words(&clone).unwrap();
        assert_eq!(status.len(), 7, "{status:?}");
        assert!(matches!(parsed(status), Ok(Verb::Replica(_))));
    }
}
