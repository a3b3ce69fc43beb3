//! What a rollback would do, without doing it.

use super::find::Subject;
use super::journal::Journal;
use super::list::datadir_of;
use super::store::{Baseline, BaselineDirectory, check_name};
use super::{Method, RollbackRequest, swap};
use evenkeel_op::{Error, Result};
use evenkeel_server::service::Service;
use serde::Serialize;
use std::error::Error as StdError;
use std::path::PathBuf;

/// What a rollback does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RollbackPlan {
    /// Whether it was done, or only planned.
    pub executed: bool,
    /// The data directory.
    pub datadir: PathBuf,
    /// To which state.
    pub baseline: Baseline,
    /// How the server is stopped and started; none when it does not run.
    pub server: Option<String>,
    /// Whether it is started afterwards.
    pub starts: bool,
    /// The baseline that the state which is replaced becomes.
    pub keeps_replaced_as: Option<String>,
    /// A rollback that was interrupted, and is repaired before.
    pub interrupted: Option<String>,
    /// What it means beyond these files.
    pub notes: Vec<String>,
}

/// Says what a rollback would do; touches nothing.
pub fn plan_rollback(request: &RollbackRequest) -> Result<RollbackPlan> {
    planned(request).map_err(for_whom)
}

/// Says who may, where the system has refused.
fn for_whom(error: Error) -> Error {
    let is_refused = |cause: &(dyn StdError + 'static)| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    };
    let mut cause: Option<&(dyn StdError + 'static)> = Some(&error);
    let mut refused = false;
    while let Some(one) = cause {
        refused |= is_refused(one);
        cause = one.source();
    }
    match refused && error.hints().is_empty() {
        true => error.hint("run as root or as the server's own user"),
        false => error,
    }
}

fn planned(request: &RollbackRequest) -> Result<RollbackPlan> {
    let datadir = datadir_of(&request.whose)?;
    let place = BaselineDirectory::of(&datadir)?;
    let interrupted = Journal::read(&place)?.map(|journal| journal.describe());
    if interrupted.is_some() && swap::is_guarded(&datadir) {
        // Neither the one state nor the other: nothing more can be said before it is in order.
        let baseline = place.find(&request.name)?;
        return Ok(RollbackPlan {
            executed: false,
            datadir,
            baseline,
            server: None,
            starts: false,
            keeps_replaced_as: None,
            interrupted,
            notes: Vec::new(),
        });
    }
    let mut subject = Subject::find(&request.whose)?;
    let mut plan = prepare(request, &place, &mut subject)?.0;
    plan.interrupted = interrupted;
    Ok(plan)
}

/// Checks a request against what is there; returns the plan, and how the server is stopped.
pub(super) fn prepare(
    request: &RollbackRequest,
    place: &BaselineDirectory,
    subject: &mut Subject,
) -> Result<(RollbackPlan, Option<Service>)> {
    let baseline = place.find(&request.name)?;
    if let Some(name) = &request.keep_replaced {
        check_name(name)?;
        if place.kept(name).exists() {
            return Err(Error::refused(format!("there is a baseline '{name}'"))
                .hint("choose another name for --keep-replaced"));
        }
        if baseline.method == Method::Copy {
            return Err(Error::refused(
                "this filesystem cannot clone files: the replaced state is overwritten",
            )
            .hint("save it first: evenkeel baseline save NAME"));
        }
    }
    let service = match &subject.server {
        Some(server) => Some(Service::of(
            server.pid,
            &subject.files.datadir,
            request.commands.clone(),
        )?),
        None => None,
    };
    let plan = RollbackPlan {
        executed: false,
        datadir: subject.datadir().to_owned(),
        server: service.as_ref().map(Service::describe),
        starts: service.is_some() && request.start,
        keeps_replaced_as: request.keep_replaced.clone(),
        interrupted: None,
        notes: subject.notes()?,
        baseline,
    };
    Ok((plan, service))
}
