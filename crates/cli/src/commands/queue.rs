//! `queue`.

use super::metrics;
use crate::args::{
    Connection, Queue, QueueCheck, QueueCompact, QueuePeek, QueueSalvage, QueueStatus, QueueVerb,
};
use crate::settings;
use crate::show::Face;
use crate::show::answers::{QueueCheckAnswer, QueueSalvageAnswer, queue_metrics};
use evenkeel_op::{Result, exit};
use evenkeel_queues::{QueueName, Salvage};
use evenkeel_server::connect::Session;

/// Runs the command.
pub fn run(args: &Queue, face: &Face) -> Result<u8> {
    match &args.verb {
        QueueVerb::Status(args) => status(args, face),
        QueueVerb::Peek(args) => peek(args, face),
        QueueVerb::Compact(args) => compact(args, face),
        QueueVerb::Check(args) => check(args, face),
        QueueVerb::Salvage(args) => salvage(args, face),
    }
}

fn session(connection: &Connection, face: &Face) -> Result<Session> {
    Session::open(&settings::connect(connection, "queue", face)?)
}

fn status(args: &QueueStatus, face: &Face) -> Result<u8> {
    let names = args.tables.iter().map(|name| name.parse::<QueueName>());
    let names: Vec<QueueName> = names.collect::<Result<_>>()?;
    let report = evenkeel_queues::status(&mut session(&args.connection, face)?, &names)?;
    if let Some(path) = &args.metrics {
        metrics::put(path, &queue_metrics(&report))?;
    }
    face.answer(&report);
    Ok(exit::DONE)
}

fn peek(args: &QueuePeek, face: &Face) -> Result<u8> {
    let name: QueueName = args.table.parse()?;
    let mut session = session(&args.connection, face)?;
    face.answer(&evenkeel_queues::peek(&mut session, &name, args.limit)?);
    Ok(exit::DONE)
}

fn compact(args: &QueueCompact, face: &Face) -> Result<u8> {
    let name: QueueName = args.table.parse()?;
    let mut session = session(&args.connection, face)?;
    face.answer(&evenkeel_queues::compact(&mut session, &name)?);
    Ok(exit::DONE)
}

fn check(args: &QueueCheck, face: &Face) -> Result<u8> {
    let report = evenkeel_queues::check(&args.path)?;
    let code = match report.sound {
        true => exit::DONE,
        false => exit::DIFFERS,
    };
    face.answer(&QueueCheckAnswer(report));
    Ok(code)
}

fn salvage(args: &QueueSalvage, face: &Face) -> Result<u8> {
    let report = evenkeel_queues::salvage(&Salvage {
        path: args.path.clone(),
        into: args.into.clone(),
    })?;
    let code = match report.sound {
        true => exit::DONE,
        false => exit::PARTIAL,
    };
    face.answer(&QueueSalvageAnswer(report));
    Ok(code)
}
