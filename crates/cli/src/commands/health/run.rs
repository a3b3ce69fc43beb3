//! `health run`.

use crate::args::HealthRun;
use crate::settings;
use crate::show::answers::HealthChange;
use crate::show::{Stream, Ui};
use evenkeel_health::action::{Action, Actor};
use evenkeel_health::block::Blocker;
use evenkeel_health::board::Board;
use evenkeel_health::control::Control;
use evenkeel_health::daemon::{Daemon, Told};
use evenkeel_health::keep::Keep;
use evenkeel_health::machine::HealthState;
use evenkeel_health::notify::Notify;
use evenkeel_health::serve::{self, Weighing};
use evenkeel_health::watch::{Target, Timing, Watch};
use evenkeel_op::paths::{absolute, unreadable};
use evenkeel_op::{Error, Result, exit, open_files};
use evenkeel_server::launch::Binary;
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::env;
use std::sync::Arc;
use std::time::Duration;

/// How often servers may be asked.
const INTERVALS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(3600);

/// Whom root's action runs as, unless that is said.
const NOBODY: &str = "nobody";

/// Runs the command.
pub(super) fn run(args: &HealthRun, ui: &Ui) -> Result<u8> {
    let timing = timing(args)?;
    let targets = targets(args, ui)?;
    let action = action(args)?;
    let blocker = super::block::blocker(args, targets.len(), ui)?;
    // Each server is a connection or two.
    open_files::raise();
    let keep = keep(args)?;
    let mut before = match &keep {
        Some(keep) => keep.load()?,
        None => BTreeMap::new(),
    };
    let servers: Vec<_> = targets
        .iter()
        .map(|target| {
            let known = before.remove(&target.name).unwrap_or_default();
            (target.name.clone(), known)
        })
        .collect();
    let rules = settings::health_rules(&args.rules, timing.interval);
    let board = Arc::new(Board::new(servers, rules));
    // They answer at once: that nothing is proven yet.
    answers(args, &board, ui)?;
    let control = args.control.as_ref().map(|path| {
        let path = absolute(path);
        Control::obey(&path, board.clone(), keep.clone())
    });
    let _control = control.transpose()?;
    let mut daemon = Daemon {
        watch: Watch::new(targets, timing),
        actor: action.map(|action| Actor::new(action, board.len())),
        blocker,
        board: board.clone(),
        keep,
        notify: notify(),
        count: args.watched.count,
    };
    let mut is_read = true;
    let ended = daemon.run(ui.cancel(), &mut |told| {
        // Warnings go to standard error, also when nobody reads the changes.
        if is_read || !matches!(told, Told::Changed(_)) {
            is_read &= tell(&told, ui);
        }
    });
    if let Some(Err(why)) = daemon.blocker.as_mut().map(Blocker::end) {
        ui.warn(&why);
    }
    ended?;
    let is_up = |server| board.verdict(server).state == HealthState::Up;
    Ok(match (0..board.len()).all(is_up) {
        true => exit::DONE,
        false => exit::DIFFERS,
    })
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

fn targets(args: &HealthRun, ui: &Ui) -> Result<Vec<Target>> {
    let checks = Arc::new(settings::health_checks(&args.checks)?);
    let watched = settings::watched(&args.watched, "health", ui)?;
    let is_path = |target: &&_| is_another_path(target, watched.len());
    if let Some(target) = watched.iter().find(is_path) {
        return Err(Error::usage(format!(
            "a server cannot be called '{}' here: over HTTP that is another path",
            target.name
        ))
        .hint("give it another name in a list, and name the list with --fleet"));
    }
    let targets = watched.into_iter().map(|target| {
        settings::refuse_far_disk(&checks, &target.options)?;
        Ok(Target {
            name: target.name,
            options: target.options,
            checks: checks.clone(),
        })
    });
    targets.collect()
}

/// Whether a server's name is not a path of its own in HTTP requests.
fn is_another_path(target: &evenkeel_live::poll::Target, servers: usize) -> bool {
    let name = target.name.as_str();
    servers > 1 && (name.contains('/') || matches!(name, "metrics" | "servers"))
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
    let is_roots = account.is_some_and(|(user, _)| user == 0);
    if is_roots && !Binary::is_roots_alone(program) {
        let shown = program.display();
        return Err(Error::refused(format!(
            "{shown} is run as root, and another user can change it or a directory above it"
        ))
        .hint("give it to root in a directory of root's, or leave out --action-user root"));
    }
    Ok(Some(Action {
        program: absolute(program),
        account,
        timeout: args.action_timeout,
    }))
}

fn keep(args: &HealthRun) -> Result<Option<Arc<Keep>>> {
    let of_service = || env::var_os("STATE_DIRECTORY").filter(|value| !value.is_empty());
    let path = args.state_directory.clone();
    let path = path.or_else(|| of_service().map(Into::into));
    let keep = path.map(|path| Keep::open(&absolute(&path)));
    Ok(keep.transpose()?.map(Arc::new))
}

fn notify() -> Notify {
    let socket = env::var("NOTIFY_SOCKET").ok();
    let watchdog = env::var("WATCHDOG_USEC").ok();
    Notify::to(socket.as_deref(), watchdog.and_then(|us| us.parse().ok()))
}

fn answers(args: &HealthRun, board: &Arc<Board>, ui: &Ui) -> Result<()> {
    let address = |typed: &str| match typed.strip_prefix(':') {
        Some(port) => format!("[::]:{port}"),
        None => typed.to_owned(),
    };
    if let Some(typed) = &args.http {
        let at = serve::http(&address(typed), board.clone())?;
        ui.note(&format!("answers HTTP at {at}"));
    }
    if let Some(typed) = &args.agent {
        let weighing = Weighing {
            full_load: args.full_load,
        };
        let at = serve::agent(&address(typed), board.clone(), weighing)?;
        ui.note(&format!("answers agent checks at {at}"));
    }
    Ok(())
}

/// Returns whether somebody still reads.
fn tell(told: &Told<'_>, ui: &Ui) -> bool {
    match told {
        // Before anything is proven there is nothing to tell.
        Told::Changed(shown) if shown.state == HealthState::Starting => {}
        Told::Changed(shown) => {
            let change = HealthChange::new(shown);
            return match ui.is_json() {
                true => Stream.show(&change.json_line()).unwrap_or(false),
                false if ui.is_quiet() => true,
                false => Stream.show(&change.text_line()).unwrap_or(false),
            };
        }
        Told::ActionFailed(server, why) => ui.warn(&format!("{server}: {why}")),
        Told::NotKept(error) => ui.warn_of("", error),
        Told::Ready => ui.note("every server has been checked"),
    }
    true
}
