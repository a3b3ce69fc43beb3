//! What a server has.

use crate::names;
use crate::refusal::told;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::{Session, quote};
use serde::Serialize;

/// One function that the server knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Registered {
    /// Its name.
    pub name: String,
    /// The file in the plugin directory that it comes from.
    pub library: String,
}

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
    let plugin_dir = session
        .variable("plugin_dir")?
        .filter(|dir| !dir.is_empty())
        .ok_or_else(|| {
            Error::refused("the server has no plugin directory")
                .hint("start it with --plugin-dir=DIR")
        })?;
    let names: Vec<String> = names::FUNCTIONS.iter().map(|name| quote(name)).collect();
    let sql = format!(
        "SELECT name, dl FROM mysql.func WHERE name IN ({}) ORDER BY name",
        names.join(", ")
    );
    let functions: Vec<Registered> = session
        .rows(&sql)
        .map_err(told)?
        .iter()
        .filter_map(|row| {
            Some(Registered {
                name: row.at(0)?.to_owned(),
                library: row.at(1)?.to_owned(),
            })
        })
        .collect();
    let missing = names::FUNCTIONS
        .iter()
        .filter(|name| !functions.iter().any(|one| one.name == **name))
        .map(|name| (*name).to_owned())
        .collect();
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
