//! What is to be done, before anything is.

use super::found::{Found, find};
use super::names::{self, is_our_file};
use evenkeel_op::{Error, Result};
use evenkeel_plugins::place::ours;
use evenkeel_plugins::{PluginDirectory, Registered, Wanted};
use evenkeel_server::connect::Session;
use std::path::PathBuf;

/// Tables that a message names.
const NAMED: usize = 5;

/// What is to be done.
#[derive(Debug)]
pub struct Plan {
    /// What the server has.
    pub found: Found,
    /// The server's plugin directory on this host; `None` when it is not on this host.
    pub here: Option<PathBuf>,
    /// What the library is called there, if one is to be there.
    pub library: Option<String>,
    /// Files to write into the plugin directory.
    pub write: Vec<String>,
    /// The library whose engine is to be taken out.
    pub uninstall: Option<String>,
    /// The library whose engine is to be put in.
    pub install: Option<String>,
    /// Functions to drop.
    pub drop: Vec<String>,
    /// Functions to make.
    pub create: Vec<String>,
    /// Files to remove from the plugin directory, when all else is done.
    pub remove: Vec<String>,
    bytes: Vec<u8>,
}

impl Plan {
    /// Returns whether something is lost or replaced, not only added.
    #[must_use]
    pub fn is_destructive(&self) -> bool {
        self.uninstall.is_some() || !self.drop.is_empty() || !self.remove.is_empty()
    }

    pub(super) fn file(&self) -> Option<Wanted<'_>> {
        self.library.as_deref().map(|name| Wanted {
            name,
            bytes: &self.bytes,
        })
    }
}

/// Plans that a server has queues, by the library of these bytes.
///
/// Errors: `Refused` where engine or functions of those names are somebody else's, or the server loads
/// nothing that is not mature.
pub fn plan_install(session: &mut Session, bytes: Vec<u8>, place: PluginDirectory) -> Result<Plan> {
    let found = find(session)?;
    found.refuse_strangers()?;
    refuse_leaving(&found)?;
    let library = names::library(&bytes);
    let engine = found.engine.as_ref();
    let is_there = engine.is_some_and(|engine| engine.active && engine.library == library);
    if !is_there {
        refuse_maturity(&found)?;
    }
    let is_wrong = |one: &&Registered| one.library != library || !found.can_call;
    let wrong = found.functions.iter().filter(is_wrong);
    let drop: Vec<String> = wrong.map(|one| one.name.clone()).collect();
    let create = found.missing.iter().chain(&drop).cloned().collect();
    let uninstall = engine.filter(|_| !is_there);
    let mut plan = Plan {
        here: place.on_this_host(&found.plugin_dir),
        uninstall: uninstall.map(|engine| engine.library.clone()),
        install: (!is_there).then(|| library.clone()),
        library: Some(library),
        write: Vec::new(),
        drop,
        create,
        remove: Vec::new(),
        bytes,
        found,
    };
    if let Some(here) = &plan.here {
        let file = plan.file().filter(|file| !file.is_in(here));
        let write = file.map(|file| file.name.to_owned());
        plan.write = write.into_iter().collect();
        plan.remove = ours(here, is_our_file, plan.library.as_deref())?;
    }
    Ok(plan)
}

/// Plans that a server has no queues.
///
/// Errors: `Refused` where there are tables of the engine, or engine or functions are somebody else's.
pub fn plan_uninstall(session: &mut Session, place: PluginDirectory) -> Result<Plan> {
    let found = find(session)?;
    found.refuse_strangers()?;
    if !found.queues.is_empty() {
        let named = found.queues.iter().take(NAMED).map(ToString::to_string);
        let mut names = named.collect::<Vec<_>>().join(", ");
        if found.queues.len() > NAMED {
            names.push_str(&format!(" and {} more", found.queues.len() - NAMED));
        }
        return Err(Error::refused(format!("there are queues: {names}"))
            .hint("let consumers empty them, drop them, then run this again"));
    }
    let here = place.on_this_host(&found.plugin_dir);
    Ok(Plan {
        library: None,
        write: Vec::new(),
        uninstall: found.engine.as_ref().map(|engine| engine.library.clone()),
        install: None,
        drop: found.functions.iter().map(|one| one.name.clone()).collect(),
        create: Vec::new(),
        remove: match &here {
            Some(here) => ours(here, is_our_file, None)?,
            None => Vec::new(),
        },
        bytes: Vec::new(),
        here,
        found,
    })
}

fn refuse_leaving(found: &Found) -> Result<()> {
    match found.engine.as_ref().filter(|engine| engine.leaving) {
        None => Ok(()),
        Some(engine) => Err(still_used(&engine.library)),
    }
}

/// The server lets a library go when the last connection ends that used it.
pub(super) fn still_used(library: &str) -> Error {
    Error::refused(format!(
        "the server still uses {library}: connections that used queues are open"
    ))
    .hint("end them (SHOW PROCESSLIST, KILL) and run FLUSH TABLES, or restart the server; then run this again")
}

fn refuse_maturity(found: &Found) -> Result<()> {
    match found.maturity.as_deref() {
        None | Some("unknown" | "experimental") => Ok(()),
        Some(least) => Err(Error::refused(format!(
            "the server loads only plugins of maturity {least} or better, and this one is experimental"
        ))
        .hint(
            "put plugin_maturity=experimental below [mariadb] in its option file, restart it, then run \
             this again",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(maturity: Option<&str>) -> Found {
        Found {
            server: "mariadb-10.11.19".into(),
            plugin_dir: "/p/".into(),
            engine: None,
            functions: Vec::new(),
            can_call: true,
            missing: Vec::new(),
            queues: Vec::new(),
            installs_sonames: true,
            maturity: maturity.map(str::to_owned),
        }
    }

    #[test]
    fn what_is_too_young_for_the_server_is_refused_before_anything_is_done() {
        for least in ["gamma", "stable", "beta", "alpha"] {
            let why = refuse_maturity(&found(Some(least))).unwrap_err();
            assert!(why.hints()[0].contains("plugin_maturity"), "{why}");
        }
        for least in [None, Some("unknown"), Some("experimental")] {
            refuse_maturity(&found(least)).unwrap();
        }
    }

    #[test]
    fn another_ones_engine_is_left_alone() {
        let mut found = found(None);
        found.engine = Some(super::super::Engine {
            library: "libqueue_engine.so".into(),
            active: true,
            leaving: false,
        });
        let why = found.refuse_strangers().unwrap_err();
        assert!(why.to_string().contains("libqueue_engine.so"), "{why}");
    }
}
