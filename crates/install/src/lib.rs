//! Functions in a server: put in, changed, taken out.
//!
//! A library is never written over while a server may have it loaded: each has a name of its own,
//! made of what is in it and of the table that it works with. So the server's own list of functions
//! says all that there is to know, and an interrupted run is resumed.
//!
//! | file | what |
//! |---|---|
//! | `names` | what the files are called, and which are ours |
//! | `found` | what the server has |
//! | `plan` | what is to be done |
//! | `place` | files into the server's plugin directory |
//! | `register` | functions made and dropped |
//! | `prove` | that they do what they should |
//! | `refusal` | what the server's errors mean here |
//! | `queue` | the same for the queue engine |
//! | `queue_sql` | the same for a queue's verbs, which are made of SQL |

mod found;
mod names;
mod place;
mod plan;
mod prove;
pub mod queue;
pub mod queue_sql;
mod refusal;
mod register;

pub use found::{Found, Registered, find};
pub use names::{FUNCTIONS, table_in_name};
pub use plan::{Install, Place, Plan, plan_install, plan_uninstall};
pub use prove::prove;

use evenkeel_op::Result;
use evenkeel_server::connect::Session;

/// Does what was planned: files in, functions out and in, proof, files out.
///
/// Errors: `Refused` with what to do where the server or its host does not allow it, or where the
/// server's files are not on this host and have to be copied there; `Failed` where the functions do not
/// do what they should. Then the server has the functions that it had before.
pub fn perform(session: &mut Session, plan: &Plan) -> Result<()> {
    if let (Some(here), Some(install)) = (&plan.here, &plan.install) {
        for file in plan.write_files(install) {
            place::put(here, &file)?;
        }
    }
    let mut change = || {
        register::perform(session, plan)?;
        match &plan.install {
            Some(install) => prove::prove(session, &install.table),
            None => Ok(()),
        }
    };
    if let Err(why) = change() {
        let why = register::put_back(session, plan, why);
        if let Some(here) = &plan.here {
            // What could not be used is not to be found by the next run.
            place::remove(here, &plan.unused_libraries())?;
        }
        return Err(why);
    }
    match &plan.here {
        Some(here) => place::remove(here, &plan.remove),
        None => Ok(()),
    }
}
