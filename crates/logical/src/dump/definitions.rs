//! The files of what is not rows, for people: a dump is loaded from `objects.json.zst`.

use super::catalog::stem;
use super::manifest::SchemaEntry;
use super::output::{Output, file_name};
use super::script::{Script, opening};
use crate::objects::{Objects, Phase, Rendering};
use evenkeel_op::Result;
use std::collections::BTreeMap;

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
        let name = statement.object.name;
        output.make_dir(&file_name(&name))?;
        let file = format!("{}/schema.sql", file_name(&name));
        output.write(&file, &ended(&statement.sql))?;
        entries.push(SchemaEntry { name, file });
    }
    for database in &objects.databases {
        for table in &database.tables {
            let file = format!("{}.table.sql", stem(&database.name, &table.name));
            output.write(&file, &ended(&table.create))?;
        }
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
            let (script, out) = files
                .entry(file)
                .or_insert_with(|| (Script::default(), opening(objects, "by evenkeel dump")));
            script.add(&statement, out);
        }
    }
    for (file, (_, text)) in files {
        output.write(&file, &text)?;
    }
    Ok(())
}

fn ended(sql: &[u8]) -> Vec<u8> {
    [sql, b";\n"].concat()
}
