//! The files of what is not rows, for people: a dump is loaded from `objects.json.zst`.

use super::file_names::{file_name, stem};
use super::manifest::SchemaEntry;
use super::output::Output;
use super::script::Script;
use crate::objects::{Objects, Phase, Rendering, Statement};
use evenkeel_op::Result;
use std::collections::BTreeMap;

/// What each file begins with.
const TITLE: &str = "by evenkeel dump";
/// What routines, views, triggers and events take.
const PROGRAMS: [Phase; 6] = [
    Phase::Routines,
    Phase::ViewPlaceholders,
    Phase::Views,
    Phase::Triggers,
    Phase::Events,
    Phase::Wake,
];

/// Writes what makes everything but rows, and returns the files by schema.
pub(super) fn write(objects: &Objects, output: &Output) -> Result<Vec<SchemaEntry>> {
    let mut entries = Vec::new();
    for statement in objects.statements(Phase::Databases, &Rendering::default()) {
        let name = statement.object.name.clone();
        output.make_dir(&file_name(&name))?;
        let file = format!("{}/schema.sql", file_name(&name));
        output.write(&file, &alone(objects, statement))?;
        entries.push(SchemaEntry { name, file });
    }
    let whole = Rendering {
        split_tables: false,
        ..Rendering::default()
    };
    for statement in objects.statements(Phase::Tables, &whole) {
        let of = &statement.object;
        let file = format!("{}.table.sql", stem(&of.database, &of.name));
        output.write(&file, &alone(objects, statement))?;
    }
    scripts(objects, &[Phase::Sequences], "sequences.sql", output)?;
    scripts(objects, &PROGRAMS, "programs.sql", output)?;
    scripts(
        objects,
        &[Phase::Accounts, Phase::Grants],
        "users.sql",
        output,
    )?;
    Ok(entries)
}

/// Writes the statements of some phases, those of each schema into a file of its own.
fn scripts(objects: &Objects, phases: &[Phase], name: &str, output: &Output) -> Result<()> {
    let mut files: BTreeMap<String, (Script, Vec<u8>)> = BTreeMap::new();
    for phase in phases {
        for statement in objects.statements(*phase, &Rendering::default()) {
            let file = match statement.object.database.as_str() {
                "" => name.to_owned(),
                database => format!("{}/{name}", file_name(database)),
            };
            let (script, out) = files.entry(file).or_insert_with(|| {
                let mut out = Vec::new();
                (Script::begin(objects, TITLE, &mut out), out)
            });
            script.add(&statement, out);
        }
    }
    for (file, (_, text)) in files {
        output.write(&file, &text)?;
    }
    Ok(())
}

/// Returns a script of one statement, for the schema that the client is in.
fn alone(objects: &Objects, statement: Statement) -> Vec<u8> {
    let mut out = Vec::new();
    let mut script = Script::begin(objects, TITLE, &mut out);
    let statement = Statement {
        database: None,
        ..statement
    };
    script.add(&statement, &mut out);
    out
}
