//! Functions that compress URLs in a server: put in, changed, taken out.
//!
//! A library's name says what is in it and which table it works with.
//!
//! | file | what |
//! |---|---|
//! | `names` | what the files are called, and which are ours |
//! | `found` | what the server has |
//! | `plan` | what is to be done |
//! | `register` | functions made and dropped |
//! | `prove` | that they do what they should |

mod found;
mod names;
mod plan;
mod prove;
mod register;

pub use found::{Found, find};
pub use names::table_in_name;
pub use plan::{Install, Plan, plan_install, plan_uninstall};
pub use prove::prove;

use evenkeel_op::Result;
use evenkeel_plugins::place;
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
