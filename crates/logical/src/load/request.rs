//! What to load, and how.

use crate::dump::DumpLocation;
use crate::objects::{self, Definer, SchemaObjectKind};
use evenkeel_repository::store::Store;
use regex::Regex;
use std::path::PathBuf;
use std::sync::Arc;

/// How rows get into the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    /// LOAD DATA LOCAL if the server allows it or lets load enable it, otherwise INSERT.
    #[default]
    Auto,
    /// LOAD DATA LOCAL or not at all.
    LoadData,
    /// INSERT.
    Insert,
}

/// What to load, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// The dump's directory.
    pub input: PathBuf,
    /// The store that it is in, if it is no directory.
    pub store: Option<Arc<dyn Store>>,
    /// How many connections work at once; at least 1.
    pub threads: usize,
    /// Only these schemas; all when empty.
    pub databases: Vec<String>,
    /// Only those of which one of these matches `schema.object`; all when empty.
    pub include: Vec<Regex>,
    /// Not those of which one of these matches `schema.object`.
    pub exclude: Vec<Regex>,
    /// Not these kinds; routines are [`SchemaObjectKind::Procedure`].
    pub skip: Vec<SchemaObjectKind>,
    /// Users and roles too.
    pub accounts: bool,
    /// Schemas with the names that they get.
    pub into: Vec<(String, String)>,
    /// What becomes of definers.
    pub definer: Definer,
    /// Collations with those that take their place.
    pub collations: Vec<(String, String)>,
    /// Drop what is in the way.
    pub replace: bool,
    /// How rows get in.
    pub method: Method,
    /// Secondary indexes come after the rows.
    pub indexes_after: bool,
    /// What is done goes into the binary log.
    pub binlog: bool,
    /// Compare the rows that are in with those of the files.
    pub verify: bool,
}

impl Request {
    /// Makes the usual request.
    #[must_use]
    pub fn new(input: impl Into<PathBuf>) -> Self {
        Self {
            input: input.into(),
            store: None,
            threads: 4,
            databases: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            skip: Vec::new(),
            accounts: false,
            into: Vec::new(),
            definer: Definer::Keep,
            collations: Vec::new(),
            replace: false,
            method: Method::Auto,
            indexes_after: true,
            binlog: true,
            verify: false,
        }
    }
}

impl Request {
    /// Returns where the dump is.
    pub(super) fn place(&self) -> DumpLocation {
        match &self.store {
            Some(store) => DumpLocation::Store(store.clone()),
            None => DumpLocation::Directory(self.input.clone()),
        }
    }

    /// Returns what decides the outcome, as the options that say it.
    pub(super) fn choices(&self) -> String {
        let typed = |pattern: &Regex| objects::typed(pattern.as_str()).to_owned();
        let mut all: Vec<(&str, String)> = Vec::new();
        all.extend(self.databases.iter().map(|one| ("--database", one.clone())));
        all.extend(self.include.iter().map(|one| ("--table", typed(one))));
        all.extend(self.exclude.iter().map(|one| ("--exclude", typed(one))));
        let collations = self.collations.iter();
        all.extend(collations.map(|(old, new)| ("--collation", format!("{old}={new}"))));
        let into = self.into.iter();
        all.extend(into.map(|(old, new)| ("--into", format!("{old}={new}"))));
        if self.definer != Definer::Keep {
            all.push(("--definer", self.definer.to_string()));
        }
        if !self.indexes_after {
            all.push(("--indexes", "with".to_owned()));
        }
        let valued = all.iter().map(|(flag, value)| format!("{flag} '{value}'"));
        let skipped = self.skip.iter().map(|kind| match kind {
            SchemaObjectKind::Procedure => "--no-routines".to_owned(),
            other => format!("--no-{}s", other.sql().to_lowercase()),
        });
        let users = self.accounts.then(|| "--users".to_owned());
        let all: Vec<String> = valued.chain(skipped).chain(users).collect();
        match all.is_empty() {
            true => "none".to_owned(),
            false => all.join(" "),
        }
    }
}
