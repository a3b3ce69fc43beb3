//! `queue`.

use super::metrics;
use crate::args::{
    Connection, Queue, QueueCheck, QueueCompact, QueueForward, QueuePeek, QueueSalvage,
    QueueStatus, QueueTarget, QueueVerb,
};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{QueueCheckAnswer, QueueSalvageAnswer, forward_metrics, queue_metrics};
use evenkeel_op::{Result, exit};
use evenkeel_queue_admin::{Forward, Forwarded, QueueName, Salvage};
use evenkeel_server::connect::Session;
use std::time::{Duration, Instant};

/// Runs the command.
pub fn run(args: &Queue, ui: &Ui) -> Result<u8> {
    match &args.verb {
        QueueVerb::Status(args) => status(args, ui),
        QueueVerb::Peek(args) => peek(args, ui),
        QueueVerb::Compact(args) => compact(args, ui),
        QueueVerb::Forward(args) => forward(args, ui),
        QueueVerb::Check(args) => check(args, ui),
        QueueVerb::Salvage(args) => salvage(args, ui),
    }
}

fn session(connection: &Connection, ui: &Ui) -> Result<Session> {
    Session::open(&settings::connect(connection, "queue", ui)?)
}

fn status(args: &QueueStatus, ui: &Ui) -> Result<u8> {
    let names = args.tables.iter().map(|name| name.parse::<QueueName>());
    let names: Vec<QueueName> = names.collect::<Result<_>>()?;
    let report = evenkeel_queue_admin::status(&mut session(&args.connection, ui)?, &names)?;
    if let Some(path) = &args.metrics {
        metrics::put(path, &queue_metrics(&report))?;
    }
    let unread = report.queues.iter().filter_map(|one| {
        let problem = one.problem.as_ref()?;
        Some(format!("{}.{}: {problem}", one.database, one.table))
    });
    if ui.is_quiet() {
        unread.for_each(|problem| ui.warn(&problem));
    }
    ui.answer(&report);
    Ok(match report.is_whole() {
        true => exit::DONE,
        false => exit::PARTIAL,
    })
}

fn peek(args: &QueuePeek, ui: &Ui) -> Result<u8> {
    let name: QueueName = args.table.parse()?;
    let mut session = session(&args.connection, ui)?;
    ui.answer(&evenkeel_queue_admin::peek(
        &mut session,
        &name,
        args.limit,
    )?);
    Ok(exit::DONE)
}

fn compact(args: &QueueCompact, ui: &Ui) -> Result<u8> {
    let name: QueueName = args.table.parse()?;
    let mut session = session(&args.connection, ui)?;
    ui.answer(&evenkeel_queue_admin::compact(&mut session, &name)?);
    Ok(exit::DONE)
}

/// How often the file of metrics is written.
const EVERY: Duration = Duration::from_secs(10);

fn forward(args: &QueueForward, ui: &Ui) -> Result<u8> {
    let plan = Forward {
        source: settings::connect(&args.connection, "queue", ui)?,
        target: settings::connect(&of_target(&args.target, &args.connection), "queue", ui)?,
        from: args.from.parse()?,
        to: args.to.parse()?,
        batch: args.batch,
        slot: args.slot,
        once: args.once,
        reset: args.reset,
    };
    let mut written: Option<Instant> = None;
    let mut tell = |done: &Forwarded| {
        let Some(path) = &args.metrics else { return };
        if written.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        written = Some(Instant::now());
        if let Err(error) = metrics::put(path, &forward_metrics(done)) {
            ui.warn_of("", &error);
        }
    };
    let done = evenkeel_queue_admin::forward(&plan, ui.cancel(), ui.progress(), &mut tell)?;
    if let Some(path) = &args.metrics {
        metrics::put(path, &forward_metrics(&done))?;
    }
    ui.answer(&done);
    Ok(exit::DONE)
}

/// The other connection: an option file of its own, or those of the source.
fn of_target(target: &QueueTarget, source: &Connection) -> Connection {
    Connection {
        host: target.target_host.clone(),
        port: target.target_port,
        user: target.target_user.clone(),
        password: target.target_password.clone(),
        socket: target.target_socket.clone(),
        defaults_file: target.target_defaults_file.clone(),
        no_defaults: source.no_defaults && target.target_defaults_file.is_none(),
        connect_timeout: source.connect_timeout,
        ..Connection::default()
    }
}

fn check(args: &QueueCheck, ui: &Ui) -> Result<u8> {
    let report = evenkeel_queue_admin::check(&args.path)?;
    let code = match report.sound {
        true => exit::DONE,
        false => exit::DIFFERS,
    };
    ui.answer(&QueueCheckAnswer(report));
    Ok(code)
}

fn salvage(args: &QueueSalvage, ui: &Ui) -> Result<u8> {
    let report = evenkeel_queue_admin::salvage(&Salvage {
        path: args.path.clone(),
        into: args.into.clone(),
    })?;
    let code = match report.sound {
        true => exit::DONE,
        false => exit::PARTIAL,
    };
    ui.answer(&QueueSalvageAnswer(report));
    Ok(code)
}
