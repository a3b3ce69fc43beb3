//! Schemas that are called otherwise where they are made than where they come from.

use super::text::{About, Doubt, Names, renamed};
use super::{Database, ObjectName, Objects, Program, SchemaObjectKind};
use evenkeel_sql::Mode;
use std::collections::{BTreeMap, BTreeSet};

impl Objects {
    /// Gives schemas other names: theirs, and wherever texts name them. Returns what texts hold that may
    /// mean a schema by its old name and stays, a sentence for each object.
    pub(crate) fn rename(&mut self, new: &BTreeMap<String, String>) -> Vec<String> {
        let names = Names {
            new: new.clone(),
            all: self.databases.iter().map(|one| one.name.clone()).collect(),
        };
        let mut reported = Vec::new();
        for database in &mut self.databases {
            of_database(database, &names, &mut reported);
            if let Some(new) = names.new.get(&database.name) {
                database.name.clone_from(new);
            }
        }
        reported
    }
}

/// Returns a statement that loads rows with the new names of schemas.
pub(crate) fn in_statement(sql: &str, new: &BTreeMap<String, String>) -> String {
    let names = Names {
        new: new.clone(),
        all: BTreeSet::new(),
    };
    let about = About {
        kind: SchemaObjectKind::Table,
        name: "",
        mode: Mode::default(),
        qualifiers: &BTreeSet::new(),
    };
    let (text, _) = renamed(sql.as_bytes(), about, &names);
    String::from_utf8_lossy(&text).into_owned()
}

fn of_database(database: &mut Database, names: &Names, reported: &mut Vec<String>) {
    let home = database.name.clone();
    let called = names.new.get(&home).unwrap_or(&home).clone();
    let packages = database.routines.iter();
    let packages = packages.filter(|one| {
        matches!(
            one.kind,
            SchemaObjectKind::Package | SchemaObjectKind::PackageBody
        )
    });
    let sequences = database.sequences.iter().map(|one| one.name.clone());
    let qualifiers: BTreeSet<String> = packages
        .map(|one| one.name.clone())
        .chain(sequences)
        .collect();
    let mut exchange =
        |create: &mut Vec<u8>, kind: SchemaObjectKind, name: &str, sql_mode: &str| {
            let about = About {
                kind,
                name,
                mode: Mode::of(sql_mode),
                qualifiers: &qualifiers,
            };
            let (text, doubts) = renamed(create, about, names);
            *create = text;
            let object = ObjectName {
                kind,
                database: called.clone(),
                name: name.to_owned(),
            };
            reported.extend(doubts.iter().map(|doubt| sentence(&object, doubt)));
        };
    for one in &mut database.sequences {
        exchange(&mut one.create, SchemaObjectKind::Sequence, &one.name, "");
    }
    for one in &mut database.tables {
        exchange(&mut one.create, SchemaObjectKind::Table, &one.name, "");
    }
    let mut program = |one: &mut Program| {
        let mode = one.sql_mode.clone().unwrap_or_default();
        exchange(&mut one.create, one.kind, &one.name, &mode);
    };
    database
        .views
        .iter_mut()
        .for_each(|one| program(&mut one.program));
    database.routines.iter_mut().for_each(&mut program);
    database.triggers.iter_mut().for_each(&mut program);
    database.events.iter_mut().for_each(&mut program);
}

fn sentence(object: &ObjectName, doubt: &Doubt) -> String {
    let why = match doubt {
        Doubt::Qualifier(chain) => {
            format!("has {chain}, which may be a column of something with the database's name")
        }
        Doubt::Case(name) => {
            format!("names {name}, which is the database on servers that ignore the case of names")
        }
        Doubt::Literal(name) => format!("has {name} in a literal"),
        Doubt::Itself(name) => format!("has a statement about the database {name} itself"),
        Doubt::Unread => "is not understood".to_owned(),
    };
    format!("{object} {why}: it is unchanged; check whether it is correct")
}
