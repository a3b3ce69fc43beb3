//! `health run`.

use super::told::Teller;
use crate::args::HealthRun;
use crate::settings::{self, ServerMeant};
use crate::show::Ui;
use evenkeel_health::action::{Action, Actor};
use evenkeel_health::board::Board;
use evenkeel_health::control::Control;
use evenkeel_health::daemon::Daemon;
use evenkeel_health::keep::{Keep, StateKey};
use evenkeel_health::machine::{HealthOrder, HealthState, Remembered};
use evenkeel_health::notify::Notify;
use evenkeel_health::saver::Saver;
use evenkeel_health::serve::{self, Weighing, place_heard};
use evenkeel_health::watch::{Target, Timing, Watch};
use evenkeel_op::paths::{absolute, unreadable};
use evenkeel_op::{Error, Result, exit, open_files};
use evenkeel_server::connect::USUAL_SOCKETS;
use rustix::process::geteuid;
use std::env;
use std::sync::Arc;
use std::time::Duration;

/// How often servers may be asked.
const INTERVALS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

/// What else is open: output, sockets, the state.
const OWN_FILES: usize = 40;

/// Whom root's action runs as, unless that is said.
const NOBODY: &str = "nobody";

/// Runs the command.
pub(super) fn run(args: &HealthRun, ui: &Ui) -> Result<u8> {
    let timing = timing(args)?;
    let servers = targets(args, ui)?;
    let mut teller = Teller::start(ui)?;
    let ended = checked(args, servers, timing, &mut teller, ui);
    let said = teller.finish(ui);
    let code = ended?;
    said?;
    Ok(code)
}

fn checked(
    args: &HealthRun,
    servers: Vec<(ServerMeant, Target)>,
    timing: Timing,
    teller: &mut Teller,
    ui: &Ui,
) -> Result<u8> {
    let action = action(args)?;
    let each: Vec<&Target> = servers.iter().map(|(_, target)| target).collect();
    let blocker = super::block::blocker(args, &each, ui)?;
    warn_of_few_files(servers.len(), open_files::raise(), teller);
    let keep = keep(args)?;
    let before = before(&servers, keep.as_deref(), teller)?;
    let rules = settings::health_rules(&args.rules, timing.interval);
    let board = Arc::new(Board::new(before, rules));
    // They answer at once: that nothing is proven yet.
    answers(args, &board, teller)?;
    let control = args.control.as_ref().map(|path| {
        let path = absolute(path);
        Control::obey(&path, board.clone(), keep.clone())
    });
    let _control = control.transpose()?;
    let saver = keep.map(|keep| Saver::start(keep, board.clone()));
    let targets = servers.into_iter().map(|(_, target)| target).collect();
    let mut daemon = Daemon {
        watch: Watch::new(targets, timing),
        actor: action.map(|action| Actor::new(action, board.len())),
        blocker,
        board: board.clone(),
        saver: saver.transpose()?,
        notify: notify(),
        count: args.watched.count,
    };
    let ended = daemon.run(ui.cancel(), &mut |told| teller.tell(&told));
    if let Some(blocker) = &mut daemon.blocker
        && let Some(said) = blocker.end(board.verdict(0).state)
    {
        teller.warn(said);
    }
    for (server, why) in daemon.actor.as_mut().map(Actor::end).unwrap_or_default() {
        teller.warn(format!("{}: {why}", board.name(server)));
    }
    ended?;
    let is_up = |server| board.verdict(server).state == HealthState::Up;
    Ok(match (0..board.len()).all(is_up) {
        true => exit::DONE,
        false => exit::DIFFERS,
    })
}

/// Each server is a connection or two, and each answer is one.
fn warn_of_few_files(servers: usize, limit: Option<u64>, teller: &mut Teller) {
    let wanted = (servers * 2 + serve::connections(servers) * 2 + OWN_FILES) as u64;
    if let Some(limit) = limit.filter(|limit| *limit < wanted) {
        teller.warn(format!(
            "this process may have {limit} files open, and may need {wanted}: when they run out, servers are 'stalled' \
             and nobody is answered; raise the limit (ulimit -n, LimitNOFILE= in a service)"
        ));
    }
}

/// Returns what an earlier process knew of each server, and says what it knew of others.
fn before(
    servers: &[(ServerMeant, Target)],
    keep: Option<&Keep>,
    teller: &mut Teller,
) -> Result<Vec<(String, Remembered)>> {
    if let Some(keep) = keep {
        keep.load()?;
    }
    let each = servers.iter().map(|(meant, target)| {
        let known = keep.map(|keep| keep.resume(&target.name, &key(meant)));
        (target.name.clone(), known.unwrap_or_default())
    });
    let before = each.collect();
    for other in keep.map(Keep::not_watched).unwrap_or_default() {
        let key = evenkeel_health::reason::plain(&other.key);
        let what = match other.order {
            Some(HealthOrder::Drain(_)) => "is drained",
            Some(HealthOrder::Maintenance(_)) => "is in maintenance",
            None => "failed too often",
        };
        teller.warn(format!(
            "'{key}' {what}, says the state directory, but no server of this name is checked here: that is kept, and \
             counts for no other server"
        ));
    }
    Ok(before)
}

fn key(meant: &ServerMeant) -> StateKey {
    match meant {
        ServerMeant::Named(name) => StateKey::named(name),
        ServerMeant::Socket(path) => StateKey::socket(&absolute(path), path),
        ServerMeant::Tcp(host, port) => StateKey::tcp(host, *port),
        ServerMeant::UsualSocket => StateKey::usual_socket(&USUAL_SOCKETS),
    }
}

fn timing(args: &HealthRun) -> Result<Timing> {
    let (interval, timeout) = (args.watched.interval, args.checks.timeout);
    if !INTERVALS.contains(&interval) {
        return Err(Error::usage("--interval is out of range").hint("give from 100ms to 1h"));
    }
    if timeout.is_zero() || timeout > interval {
        return Err(Error::usage("--timeout is not between 0 and --interval")
            .hint("a failure is then known within one interval plus the timeout"));
    }
    Ok(Timing { interval, timeout })
}

fn targets(args: &HealthRun, ui: &Ui) -> Result<Vec<(ServerMeant, Target)>> {
    let checks = Arc::new(settings::health_checks(&args.checks)?);
    let watched = settings::servers_meant(&args.watched.which, "health", ui)?;
    let is_path = |(_, target): &&(_, _)| is_another_path(target, watched.len());
    if let Some((_, target)) = watched.iter().find(is_path) {
        return Err(Error::usage(format!(
            "a server cannot be called '{}' here: over HTTP that is another path",
            target.name
        ))
        .hint("give it another name in a list, and name the list with --fleet"));
    }
    let targets = watched.into_iter().map(|(meant, target)| {
        settings::refuse_far_disk(&checks, &target.options)?;
        let name = match meant {
            // Which socket there is may be another one tomorrow.
            ServerMeant::UsualSocket => "localhost".to_owned(),
            _ => target.name,
        };
        let target = Target {
            name,
            options: target.options,
            checks: checks.clone(),
        };
        Ok((meant, target))
    });
    targets.collect()
}

/// What is not a server, behind the slash.
const OTHER_PATHS: [&str; 5] = ["metrics", "servers", "any", "primary", "replica"];

/// Whether a server's name is not a path of its own in HTTP requests.
fn is_another_path(target: &evenkeel_live::poll::Target, servers: usize) -> bool {
    let name = target.name.as_str();
    servers > 1 && (name.contains('/') || OTHER_PATHS.contains(&name))
}

fn action(args: &HealthRun) -> Result<Option<Action>> {
    let Some(program) = &args.action else {
        return Ok(None);
    };
    let found = std::fs::metadata(program);
    let found = found.map_err(|error| unreadable("program", program, error))?;
    if !found.is_file() {
        let shown = program.display();
        return Err(Error::usage(format!("{shown} is not a program")).hint("check --action"));
    }
    let account = match &args.action_user {
        Some(name) => Some(settings::owner(name)?),
        None if geteuid().is_root() => Some(settings::owner(NOBODY)?),
        None => None,
    };
    let is_roots = account.is_some_and(|(user, group)| user == 0 || group == 0);
    if is_roots {
        let hint = "give it to root in a directory of root's, or leave out --action-user root";
        super::refuse_program_of_others(program, hint)?;
    }
    Ok(Some(Action {
        program: absolute(program),
        account,
        timeout: args.action_timeout,
    }))
}

fn keep(args: &HealthRun) -> Result<Option<Arc<Keep>>> {
    let path = args.state_directory.clone();
    let path = path.or_else(settings::state_directory);
    let keep = path.map(|path| Keep::open(&absolute(&path)));
    Ok(keep.transpose()?.map(Arc::new))
}

fn notify() -> Notify {
    let socket = env::var("NOTIFY_SOCKET").ok();
    let watchdog = env::var("WATCHDOG_USEC").ok();
    Notify::to(socket.as_deref(), watchdog.and_then(|us| us.parse().ok()))
}

fn answers(args: &HealthRun, board: &Arc<Board>, teller: &mut Teller) -> Result<()> {
    if let Some(typed) = &args.http {
        let at = serve::http(typed, board.clone())?;
        teller.note(format!("answers HTTP at {}", place_heard(at, typed)));
    }
    if let Some(typed) = &args.agent {
        let weighing = Weighing {
            full_load: args.full_load,
        };
        let at = serve::agent(typed, board.clone(), weighing)?;
        teller.note(format!(
            "answers agent checks at {}",
            place_heard(at, typed)
        ));
    }
    Ok(())
}
