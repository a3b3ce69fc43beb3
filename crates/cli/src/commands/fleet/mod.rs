//! `fleet`: a command for each of many servers, some at a time, each in a process of its own.

mod processes;

use crate::args::Fleet;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{FleetAnswer, Member};
use evenkeel_op::{Context, Error, Result};
use processes::{Processes, Reported};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Lines that wait to be said.
const LINES: usize = 64;
/// How often a request to stop is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Runs the command.
pub(super) fn run(args: &Fleet, ui: &Ui) -> Result<u8> {
    let members = settings::fleet(args, ui.cancel())?;
    let program = std::env::current_exe().context(|| "failed to find this program")?;
    let processes = Processes::of(program, ui);
    let mut ended: Vec<Option<Member>> = members.iter().map(|_| None).collect();
    let waiting = Mutex::new(members.iter().enumerate());
    let asked = Arc::new(AtomicBool::new(false));
    let is_asked = asked.clone();
    ui.signals()
        .when_asked(move || is_asked.store(true, Ordering::Relaxed));
    std::thread::scope(|scope| {
        let (tell, reported) = sync_channel(LINES);
        for _ in 0..usize::from(args.jobs).min(members.len()) {
            let tell = tell.clone();
            let (waiting, processes) = (&waiting, &processes);
            scope.spawn(move || {
                let next = || waiting.lock().unwrap_or_else(|e| e.into_inner()).next();
                while let Some((index, member)) = next() {
                    work(index, member, processes, &tell);
                }
            });
        }
        drop(tell);
        loop {
            match reported.recv_timeout(LOOK) {
                Ok(Reported::Line { index, line }) => {
                    // Who says it is known by then.
                    let line = line.strip_prefix("evenkeel: ").unwrap_or(&line);
                    ui.note(&format!("{}: {line}", members[index].name));
                }
                Ok(Reported::Ended { index, member }) => {
                    ui.note(&format!("{}: {}", member.name, member.outcome()));
                    ended[index] = Some(member);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if asked.swap(false, Ordering::Relaxed) {
                let over = ended.iter().flatten().count();
                ui.note(&format!("{over} of {} have ended", members.len()));
                processes.ask();
            }
            if let Err(stopped) = ui.cancel().check() {
                processes.stop(stopped.kind());
            }
        }
    });
    let servers = members.iter().zip(ended).map(|(member, ended)| {
        ended.unwrap_or_else(|| Member {
            name: member.name.clone(),
            exit_code: None,
            seconds: None,
            answer: Value::Null,
        })
    });
    let answer = FleetAnswer::new(servers.collect());
    ui.answer(&answer);
    Ok(match ui.cancel().check() {
        Ok(()) => answer.exit_code(),
        Err(stopped) => stopped.kind().exit_code(),
    })
}

/// Does what should be done for one server. Nothing that goes wrong with it concerns the others.
fn work(
    index: usize,
    member: &settings::FleetMember,
    processes: &Processes,
    tell: &SyncSender<Reported>,
) {
    let line = |line: String| {
        // There is always somebody who listens until the last of us has ended.
        let _ = tell.send(Reported::Line { index, line });
    };
    let ended = match processes.run(member, line) {
        Ok(None) => return,
        Ok(Some(ended)) => ended,
        Err(error) => failed(member, &error),
    };
    let _ = tell.send(Reported::Ended {
        index,
        member: ended,
    });
}

fn failed(member: &settings::FleetMember, error: &Error) -> Member {
    let failure = crate::show::answers::Failure::of(error);
    Member {
        name: member.name.clone(),
        exit_code: Some(error.kind().exit_code()),
        seconds: Some(0.0),
        // A plain struct: it cannot fail to serialise.
        answer: serde_json::to_value(failure).unwrap_or_default(),
    }
}
