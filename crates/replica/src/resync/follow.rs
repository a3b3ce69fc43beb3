//! The new server replicates, and is waited for until it is as far as its source.

use super::prepare::place_of;
use super::{Image, ResyncRequest};
use evenkeel_op::{Error, ErrorKind, Result, Run, Unit, units};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::files;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::{Channel, Position, ThreadState, of_channel, rejoining};
use std::path::Path;
use std::time::{Duration, Instant};

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// For so long both threads must have run: a receiver that has just begun may have fetched nothing yet.
const STEADY: Duration = Duration::from_secs(2);
/// So often in a row the receiver must have had nothing to fetch.
const IDLE: u32 = 3;
/// Errors of a server that cannot find its relay logs, which are called otherwise than on the private server.
const NO_RELAY_LOGS: [&str; 4] = ["1872", "1871", "1201", "1200"];

/// By what the new server is known.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) server_id: Option<u64>,
    pub(super) server_uuid: Option<String>,
}

/// Asks the server on a data directory who it is. Errors: `Failed` where another one answers.
pub(super) fn who(options: &ConnectOptions, datadir: &Path) -> Result<Identity> {
    let mut session = Session::open(options).map_err(|error| {
        error.hint("its accounts are the sibling's now: the same command again continues")
    })?;
    let abilities = Abilities::probe(&mut session)?;
    refuse_another(&mut session, &abilities, datadir)?;
    let id = session.value("SELECT @@GLOBAL.server_id")?;
    Ok(Identity {
        server_id: id.and_then(|id| id.parse().ok()),
        server_uuid: session.variable("server_uuid")?,
    })
}

/// Lets a server's threads run again that ran before it was stopped, if its options keep them from that.
pub(super) fn replicate_again(
    options: &ConnectOptions,
    receives: bool,
    applies: bool,
) -> Result<()> {
    if !receives && !applies {
        return Ok(());
    }
    let mut session = Session::open(options)?;
    let abilities = Abilities::probe(&mut session)?;
    for channel in Channel::all(&mut session, &abilities)? {
        for (wanted, thread, what) in [
            (receives, channel.receiver, "IO_THREAD"),
            (applies, channel.applier, "SQL_THREAD"),
        ] {
            if wanted && thread == ThreadState::Stopped {
                let name = Some(channel.name.as_str());
                session.run(&of_channel("START", what, name, &abilities))?;
            }
        }
    }
    Ok(())
}

/// How the new server replicates.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) executed: Option<Position>,
    pub(super) source: String,
}

/// Waits until it is as far as its source. Errors: with what it says when it does not get there; nothing is undone.
pub(super) fn follow(
    request: &ResyncRequest,
    options: &ConnectOptions,
    image: &Image,
    run: Run<'_>,
) -> Result<Followed> {
    run.progress
        .phase("waiting until it has caught up", None, Unit::Items);
    let mut session = Session::open(options)?;
    let abilities = Abilities::probe(&mut session)?;
    begin(&mut session, image, &abilities)?;
    let until = Instant::now() + request.catch_up_deadline;
    let mut steady = None;
    let mut idle = 0;
    loop {
        let channel = the_channel(&mut session, image, &abilities)?;
        refuse_failed(&channel)?;
        let runs =
            channel.receiver == ThreadState::Running && channel.applier == ThreadState::Running;
        idle = match has_nothing_to_fetch(&channel) {
            true => idle + 1,
            false => 0,
        };
        match (&steady, runs) {
            (_, false) => steady = None,
            (None, true) => steady = Some(Instant::now()),
            (Some(since), true)
                if since.elapsed() >= STEADY && idle >= IDLE && is_there(&channel) =>
            {
                run.progress.end();
                return Ok(Followed {
                    executed: channel.executed,
                    source: format!("{}:{}", channel.host, channel.port.unwrap_or(3306)),
                });
            }
            _ => {}
        }
        if Instant::now() >= until {
            return Err(late(request, &channel));
        }
        run.cancel.check()?;
        std::thread::sleep(LOOK);
    }
}

/// Starts replication if it does not run by itself.
fn begin(session: &mut Session, image: &Image, abilities: &Abilities) -> Result<()> {
    let channel = the_channel(session, image, abilities)?;
    let stands = |thread: ThreadState| thread == ThreadState::Stopped;
    if !stands(channel.applier) && !stands(channel.receiver) {
        return Ok(());
    }
    if !lacks_relay_logs(&channel) {
        refuse_failed(&channel)?;
    }
    let start = of_channel("START", "", Some(&channel.name), abilities);
    let begun = session.run(&start);
    let Err(error) = begun else {
        return Ok(());
    };
    let place = place_of(image)?;
    let moved = channel.executed.as_ref().is_some_and(|at| {
        Some(&at.file) != place.binlog_file.as_ref() || Some(at.position) != place.binlog_position
    });
    let says = error.chain();
    let is_lacking = NO_RELAY_LOGS.iter().any(|number| says.contains(number));
    // What it has applied since must not be applied again.
    if !is_lacking || moved && !place.goes_by_gtid() {
        return Err(error);
    }
    let statements = rejoining(place, abilities);
    // Where it is by GTIDs, it knows by itself.
    for statement in statements.iter().filter(|sql| !sql.starts_with("SET ")) {
        session.run(statement)?;
    }
    session.run(&start)
}

fn lacks_relay_logs(channel: &Channel) -> bool {
    let number = channel
        .applier_error
        .as_ref()
        .map(|(number, _)| number.to_string());
    number.is_some_and(|number| NO_RELAY_LOGS.contains(&number.as_str()))
}

fn the_channel(session: &mut Session, image: &Image, abilities: &Abilities) -> Result<Channel> {
    let name = &place_of(image)?.channel;
    let all = Channel::all(session, abilities)?;
    all.into_iter().find(|one| one.name == *name).ok_or_else(|| {
        Error::failed("the new server does not replicate from anybody")
            .hint("its own options may name other files for that than the sibling's: see its error log")
    })
}

/// Whether the receiver waits for the source to send something. One that is behind hardly ever does: the delay that
/// servers show is of what was fetched.
fn has_nothing_to_fetch(channel: &Channel) -> bool {
    channel.receiver_does.starts_with("Waiting for")
}

/// Refuses a server that answers in the new one's place.
fn refuse_another(session: &mut Session, abilities: &Abilities, datadir: &Path) -> Result<()> {
    let found = files::discover(session, abilities)?;
    if found.pid.is_some() && found.pid == files::process_in(datadir) {
        return Ok(());
    }
    Err(Error::failed(format!(
        "the server that answers is not the one on {}: its data directory is {}",
        datadir.display(),
        found.datadir.display()
    ))
    .hint("the new files are in place, and the old ones beside them")
    .hint("name the socket of the server on the new files with --broken-socket, and run the same command again"))
}

/// Whether all that was fetched is applied, but for what waits on purpose.
fn is_there(channel: &Channel) -> bool {
    channel.received.is_some() && channel.lag_s.is_some_and(|lag| lag <= channel.delay_s)
}

fn refuse_failed(channel: &Channel) -> Result<()> {
    let stopped = |thread: ThreadState, error: &Option<(u32, String)>| {
        let error = error.as_ref().filter(|_| thread == ThreadState::Stopped);
        error.map(|(number, text)| format!("error {number}: {text}"))
    };
    let applier = stopped(channel.applier, &channel.applier_error).map(|why| ("SQL", why));
    let receiver = stopped(channel.receiver, &channel.receiver_error).map(|why| ("IO", why));
    match applier.or(receiver) {
        None => Ok(()),
        Some((thread, why)) => Err(Error::failed(format!(
            "the new server does not replicate: {thread} thread, {why}"
        ))
        .hint("the new files are in place, and the old ones beside them")
        .hint("when it is repaired, the same command again does the rest")),
    }
}

fn late(request: &ResyncRequest, channel: &Channel) -> Error {
    let place = channel.executed.as_ref().map_or_else(
        || "at no known position".to_owned(),
        |at| format!("at {}:{}", at.file, at.position),
    );
    let behind = channel
        .lag_s
        .map_or_else(String::new, |lag| format!(", {lag} s behind"));
    Error::new(
        ErrorKind::LockTimeout,
        format!(
            "the new server did not catch up within {}: it is {place}{behind}",
            units::duration(request.catch_up_deadline)
        ),
    )
    .hint("it goes on by itself; the same command again waits, and removes the old files")
}
