//! What a server has.

use super::names::{FUNCTIONS, is_our_library};
use evenkeel_op::{Error, Result};
use evenkeel_plugins::refusal::explain;
use evenkeel_plugins::{Registered, functions};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::{Row, ServerNumber, Session};
use serde::{Serialize, Serializer};
use std::fmt;

/// The storage engine as a server knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Engine {
    /// The file in the plugin directory that it comes from.
    pub library: String,
    /// Whether the server has it loaded and uses it. Else it stands in the server's list of plugins,
    /// and could not be loaded when the server started; or it is on its way out.
    pub active: bool,
    /// Whether the server still has it in hand, though it is on its way out.
    pub leaving: bool,
}

/// A table of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueTable {
    /// Its database.
    pub database: String,
    /// Its name.
    pub table: String,
}

impl fmt::Display for QueueTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.table)
    }
}

impl Serialize for QueueTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a server has of queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// What a library has to be built for: `mariadb-10.11.19`.
    pub server: String,
    /// The server's plugin directory, as it calls it.
    pub plugin_dir: String,
    /// The engine, if there is one.
    pub engine: Option<Engine>,
    /// The functions that it knows.
    pub functions: Vec<Registered>,
    /// Those that it does not know.
    pub missing: Vec<String>,
    /// The tables of the engine that the account may see.
    pub queues: Vec<QueueTable>,
    /// Whether the server can call those that it knows: it loads them when it starts, if their library is there.
    #[serde(skip)]
    pub(super) can_call: bool,
    /// Statements for libraries as a whole are understood.
    #[serde(skip)]
    pub(super) installs_sonames: bool,
    /// The least mature that the server loads, if it asks.
    #[serde(skip)]
    pub(super) maturity: Option<String>,
}

/// Asks a server what it has.
///
/// Errors: those of the session; `Refused` where the account may not read the database mysql.
pub fn find(session: &mut Session) -> Result<Found> {
    let abilities = Abilities::probe(session)?;
    let version = abilities.version;
    let server = format!("{}-{version}", abilities.flavour.id());
    let plugin_dir = functions::plugin_dir(session)?;
    let (functions, missing) = functions::find(session, &FUNCTIONS)?;
    Ok(Found {
        server,
        plugin_dir,
        engine: engine(session)?,
        missing,
        can_call: can_call(session, &functions)?,
        functions,
        queues: queues(session)?,
        installs_sonames: abilities.install_soname,
        maturity: session.variable("plugin_maturity")?,
    })
}

/// Calls one as it cannot be called, so that the session uses no queue: that would keep the engine. Somebody else's is left alone.
fn can_call(session: &mut Session, functions: &[Registered]) -> Result<bool> {
    let is_ours = |one: &Registered| one.name == "queue_rowid" && is_our_library(&one.library);
    if !functions.iter().any(is_ours) {
        return Ok(true);
    }
    match session.value("SELECT queue_rowid(1, 2, 3)") {
        // With no database chosen, MySQL asks for one.
        Err(error) if matches!(ServerNumber::of(&error), Some(1305 | 1046)) => Ok(false),
        // Not the server said that.
        Err(error) if ServerNumber::of(&error).is_none() => Err(error),
        // One that is loaded says what it takes.
        _ => Ok(true),
    }
}

fn engine(session: &mut Session) -> Result<Option<Engine>> {
    let loaded = session.one(
        "SELECT COALESCE(PLUGIN_LIBRARY, ''), PLUGIN_STATUS FROM information_schema.PLUGINS \
         WHERE PLUGIN_NAME = 'QUEUE'",
    )?;
    if let Some(row) = loaded {
        let status = row.at(1).unwrap_or_default();
        return Ok(Some(Engine {
            library: row.at(0).unwrap_or_default().to_owned(),
            active: status == "ACTIVE",
            leaving: status == "DELETED",
        }));
    }
    let listed = session.value("SELECT dl FROM mysql.plugin WHERE name = 'QUEUE'");
    Ok(listed.map_err(explain)?.map(|library| Engine {
        library,
        active: false,
        leaving: false,
    }))
}

/// Tables of an engine that is not loaded only say in their comment which it would be.
fn queues(session: &mut Session) -> Result<Vec<QueueTable>> {
    let rows = session.rows(
        "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES \
         WHERE ENGINE = 'QUEUE' OR ENGINE IS NULL AND TABLE_COMMENT LIKE '%engine ''QUEUE''%' \
         ORDER BY TABLE_SCHEMA, TABLE_NAME",
    )?;
    let name = |row: &Row| {
        Some(QueueTable {
            database: row.at(0)?.to_owned(),
            table: row.at(1)?.to_owned(),
        })
    };
    Ok(rows.iter().filter_map(name).collect())
}

impl Found {
    /// Returns whether engine and functions are there, of one library.
    #[must_use]
    pub fn works(&self) -> bool {
        let Some(engine) = self.engine.as_ref().filter(|engine| engine.active) else {
            return false;
        };
        let is_same = |one: &Registered| one.library == engine.library;
        self.can_call && self.missing.is_empty() && self.functions.iter().all(is_same)
    }

    /// Returns whether nothing of it is there.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        self.engine.is_none() && self.functions.is_empty()
    }

    /// Says why it does not work, if it does not and something of it is there.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if self.is_absent() || self.works() {
            return None;
        }
        Some(match &self.engine {
            None => "the functions are installed, but not the engine".to_owned(),
            Some(engine) if engine.leaving => {
                "the engine is being uninstalled: connections that used queues are still open"
                    .to_owned()
            }
            Some(engine) if !engine.active => format!(
                "the server could not load {} when it started: see its error log; after an \
                 upgrade it needs a library built for {}",
                engine.library, self.server
            ),
            Some(_) if !self.can_call => {
                "the server could not load the functions when it started: their library was missing"
                    .to_owned()
            }
            Some(_) if !self.missing.is_empty() => {
                format!("functions are missing: {}", self.missing.join(", "))
            }
            Some(_) => "the engine and the functions come from different libraries".to_owned(),
        })
    }

    /// Fails where engine or functions are somebody else's.
    pub(super) fn refuse_strangers(&self) -> Result<()> {
        let engine = self
            .engine
            .iter()
            .map(|engine| ("the engine QUEUE", &engine.library));
        let functions = self.functions.iter().map(|one| (&*one.name, &one.library));
        let mut all = engine.chain(functions);
        match all.find(|(_, library)| !is_our_library(library)) {
            None => Ok(()),
            Some((what, library)) => Err(Error::refused(format!(
                "the server has {what} from another library, {library}"
            ))
            .hint(
                "remove it with UNINSTALL and DROP FUNCTION if nothing needs it, then run this \
                 again",
            )),
        }
    }
}
