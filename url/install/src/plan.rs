//! What is to be done, before anything is.

use crate::found::{Found, find};
use crate::names::{self, is_our_file, is_our_library};
use evenkeel_op::{Error, Result};
use evenkeel_plugins::{PluginDirectory, Registered, Wanted, place};
use evenkeel_server::connect::Session;
use evenkeel_urlcodec::CodeTable;
use std::path::{Path, PathBuf};

/// What is to be there.
#[derive(Debug)]
pub struct Install {
    /// The library's bytes.
    pub library: Vec<u8>,
    /// The table that it is to work with.
    pub table: CodeTable,
    /// Whether a server that works with another one may be changed.
    pub change_table: bool,
}

/// What is to be done.
#[derive(Debug)]
pub struct Plan {
    /// What the server has.
    pub found: Found,
    /// The server's plugin directory on this host; `None` when it is not on this host.
    pub here: Option<PathBuf>,
    /// What the library is called there, if one is to be there.
    pub library: Option<String>,
    /// What the table's file is called there, if one is to be there.
    pub table: Option<String>,
    /// Files to write into the plugin directory.
    pub write: Vec<String>,
    /// Functions to drop.
    pub drop: Vec<String>,
    /// Functions to make.
    pub create: Vec<String>,
    /// Files to remove from the plugin directory, when all else is done.
    pub remove: Vec<String>,
    pub(crate) install: Option<Install>,
}

impl Plan {
    /// Returns whether there is nothing to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.write.is_empty()
            && self.drop.is_empty()
            && self.create.is_empty()
            && self.remove.is_empty()
    }

    /// Returns whether something is lost or replaced, not only added.
    #[must_use]
    pub fn is_destructive(&self) -> bool {
        !self.drop.is_empty() || !self.remove.is_empty()
    }

    /// Returns the libraries that were written and that no function had before.
    pub(crate) fn unused_libraries(&self) -> Vec<String> {
        let had = |name: &String| self.found.functions.iter().any(|one| one.library == *name);
        let written = self.write.iter().filter(|name| name.ends_with(".so"));
        written.filter(|name| !had(name)).cloned().collect()
    }

    pub(crate) fn write_files<'a>(&'a self, install: &'a Install) -> Vec<Wanted<'a>> {
        self.wanted(install)
            .into_iter()
            .filter(|file| self.write.iter().any(|name| name == file.name))
            .collect()
    }

    fn wanted<'a>(&'a self, install: &'a Install) -> Vec<Wanted<'a>> {
        // The table first: a library that is there finds it.
        let table = self.table.iter().map(|name| Wanted {
            name,
            bytes: install.table.file(),
        });
        let library = self.library.iter().map(|name| Wanted {
            name,
            bytes: &install.library,
        });
        table.chain(library).collect()
    }
}

/// Plans that the functions are in a server.
///
/// Errors: `Refused` where functions of those names are somebody else's, or work with another table
/// and that may not change.
pub fn plan_install(
    session: &mut Session,
    install: Install,
    place: PluginDirectory,
) -> Result<Plan> {
    let found = find(session)?;
    let here = place.on_this_host(&found.plugin_dir);
    refuse_strangers(&found)?;
    refuse_another_table(&found, &install, here.as_deref())?;
    let library = names::library(&install.library, &install.table);
    let table = names::table_file(&install.table.id());
    let is_right = |one: &Registered| one.library == library;
    let wrong = found.functions.iter().filter(|one| !is_right(one));
    let drop: Vec<String> = wrong.map(|one| one.name.clone()).collect();
    let create = found.missing.iter().chain(&drop).cloned().collect();
    let mut plan = Plan {
        found,
        here,
        library: Some(library),
        table: Some(table),
        write: Vec::new(),
        drop,
        create,
        remove: Vec::new(),
        install: None,
    };
    if let Some(here) = &plan.here {
        let files = plan.wanted(&install);
        let missing = files.iter().filter(|file| !file.is_in(here));
        let write = missing.map(|file| file.name.to_owned()).collect();
        // Tables stay: there may be codes that no other one reads.
        let old = place::ours(here, is_our_file, plan.library.as_deref())?;
        let old = old.into_iter().filter(|name| name.ends_with(".so"));
        plan.remove = old.collect();
        plan.write = write;
    }
    plan.install = Some(install);
    Ok(plan)
}

/// Plans that nothing of them is left in a server.
///
/// Errors: `Refused` where functions of those names are somebody else's.
pub fn plan_uninstall(session: &mut Session, place: PluginDirectory) -> Result<Plan> {
    let found = find(session)?;
    let here = place.on_this_host(&found.plugin_dir);
    refuse_strangers(&found)?;
    let remove = match &here {
        Some(here) => place::ours(here, is_our_file, None)?,
        None => Vec::new(),
    };
    Ok(Plan {
        drop: found.functions.iter().map(|one| one.name.clone()).collect(),
        found,
        here,
        library: None,
        table: None,
        write: Vec::new(),
        create: Vec::new(),
        remove,
        install: None,
    })
}

fn refuse_strangers(found: &Found) -> Result<()> {
    let stranger = found
        .functions
        .iter()
        .find(|one| !is_our_library(&one.library));
    match stranger {
        None => Ok(()),
        Some(one) => Err(Error::refused(format!(
            "the server has a function {} from another library, {}",
            one.name, one.library
        ))
        .hint("drop it with DROP FUNCTION if nothing needs it, then run this again")),
    }
}

fn refuse_another_table(found: &Found, install: &Install, here: Option<&Path>) -> Result<()> {
    let id = install.table.id();
    if found.functions.is_empty() || install.change_table || found.table_id.as_ref() == Some(&id) {
        return Ok(());
    }
    let (old, keep) = match &found.table_id {
        Some(old) => {
            let directory = here.unwrap_or_else(|| Path::new(&found.plugin_dir));
            let file = directory.join(names::table_file(old));
            let keep = format!("to keep it, use --table {}", file.display());
            (format!("table {old}"), keep)
        }
        None => (
            "a table without a name".to_owned(),
            "see why with 'evenkeel plugin status url'".to_owned(),
        ),
    };
    Err(Error::refused(format!(
        "the server's functions use {old}, not {id}"
    ))
    .hint(keep)
    .hint(
        "codes made with one table cannot be read with the other, and look alike: decompress \
         them with the old table first, or make sure there are none, and add --change-table",
    ))
}
