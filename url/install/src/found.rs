//! What a server has.

use crate::names;
use evenkeel_op::Result;
use evenkeel_plugins::{Registered, functions};
use evenkeel_server::connect::Session;
use serde::Serialize;

/// What a server has of the functions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The server's plugin directory, as it calls it.
    pub plugin_dir: String,
    /// The functions that it knows.
    pub functions: Vec<Registered>,
    /// Those that it does not know.
    pub missing: Vec<String>,
    /// The table that they say they use, or that the library's name tells.
    pub table_id: Option<String>,
    /// Why they do not say it.
    pub problem: Option<String>,
}

/// Asks a server what it has.
///
/// Errors: those of the session; `Refused` where the account may not read `mysql.func`.
pub fn find(session: &mut Session) -> Result<Found> {
    let plugin_dir = functions::plugin_dir(session)?;
    let (functions, missing) = functions::find(session, &names::FUNCTIONS)?;
    let mut found = Found {
        plugin_dir,
        functions,
        missing,
        table_id: None,
        problem: None,
    };
    found.ask_for_table(session);
    Ok(found)
}

impl Found {
    fn ask_for_table(&mut self, session: &mut Session) {
        let Some(first) = self.functions.first() else {
            return;
        };
        let in_name = names::table_in_name(&first.library).map(str::to_owned);
        match session.value("SELECT url_table_id()") {
            Ok(id) => self.table_id = id,
            Err(error) => {
                self.problem = Some(error.to_string());
                self.table_id = in_name;
            }
        }
    }

    /// Returns whether every function is there, and the table answers.
    #[must_use]
    pub fn works(&self) -> bool {
        self.missing.is_empty() && self.problem.is_none() && self.table_id.is_some()
    }
}
