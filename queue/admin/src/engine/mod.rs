//! The queue engine in a server: put in, changed, taken out.
//!
//! A library has a name of its own, made of what is in it, and is never written over.
//! The engine is more than functions: a server that has it loaded may have tables of it open, and
//! connections that own rows. So another version takes its place only when nobody waits and nobody owns.
//!
//! | file | what |
//! |---|---|
//! | `names` | functions, and what the files are called |
//! | `library` | for which server a library was built |
//! | `found` | what the server has |
//! | `plan` | what is to be done |
//! | `register` | engine and functions put in and taken out |
//! | `prove` | that rows go through a queue |

mod found;
mod library;
mod names;
mod plan;
mod prove;
mod register;

pub use found::{Engine, Found, QueueTable, find};
pub use library::built_for;
pub use names::{is_our_library, library_for};
pub use plan::{Plan, plan_install, plan_uninstall};

use evenkeel_op::Result;
use evenkeel_plugins::place;
use evenkeel_server::connect::Session;

/// Does what was planned: file in, the old out, the new in, proof, old files out.
///
/// Errors: `Refused` with what to do where the server or its host does not allow it, or where consumers
/// are at work; `Failed` where no row goes through a queue. Then the server is unchanged, or
/// the error says that it has not.
pub fn perform(session: &mut Session, plan: &Plan) -> Result<()> {
    if plan.uninstall.is_some() {
        register::refuse_busy(session, &plan.found)?;
    }
    if let (Some(here), Some(file)) = (&plan.here, plan.file())
        && !plan.write.is_empty()
    {
        place::put(here, &file)?;
    }
    let mut change = || {
        register::perform(session, plan)?;
        match &plan.library {
            Some(_) => prove::prove(session),
            None => Ok(()),
        }
    };
    if let Err(why) = change() {
        return Err(register::put_back(session, plan, why));
    }
    match &plan.here {
        Some(here) => place::remove(here, &plan.remove),
        None => Ok(()),
    }
}
