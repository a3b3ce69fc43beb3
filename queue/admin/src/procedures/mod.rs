//! The queue's verbs as SQL over InnoDB, for servers that load no plugin: put into a database, changed,
//! taken out.
//!
//! The statements are files in `queue/sql/`, one for each routine. Each has a comment with a stamp, made of what is
//! in all of them: so the server's own list of routines says what there is, and an interrupted run is
//! resumed. How the verbs work is in docs/src/design/queue-sql.md.
//!
//! | file | what |
//! |---|---|
//! | `routines` | the statements, filled in for a server and a database |
//! | `found` | what a database has |
//! | `plan` | what is to be done |
//! | `change` | routines and tables made and dropped |
//! | `prove` | that they do what they should |
//! | `refusal` | what the server's errors mean here |

mod change;
mod found;
mod plan;
mod prove;
mod refusal;
mod routines;

pub use found::{Found, find};
pub use plan::{Plan, plan_install, plan_uninstall};
pub use prove::prove;
pub use routines::RoutineKind;

use evenkeel_op::Result;
use evenkeel_server::connect::Session;

/// Does what was planned, and where something was put in, proves it.
///
/// The session is one of [`Session::open`], outside of any transaction.
///
/// Errors: `Refused` with what to do where the server does not allow it; `Failed` where the verbs do not do what
/// they should. What was put in until then stays: a later run resumes it.
pub fn perform(session: &mut Session, plan: &Plan) -> Result<()> {
    change::perform(session, plan)?;
    match plan.create.is_empty() {
        true => Ok(()),
        false => prove::prove(session, &plan.found.database),
    }
}
