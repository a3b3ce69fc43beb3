//! The files of what is not rows, for people: a dump is loaded from `objects.json.zst`.

use super::catalog::stem;
use super::manifest::SchemaEntry;
use super::output::{Output, file_name};
use crate::objects::{Objects, Phase, Rendering};
use evenkeel_op::Result;

/// Writes what makes schemas and tables, and returns the files by schema.
pub(super) fn write(objects: &Objects, output: &Output) -> Result<Vec<SchemaEntry>> {
    let mut entries = Vec::new();
    let how = Rendering::default();
    for statement in objects.statements(Phase::Databases, &how) {
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
    Ok(entries)
}

fn ended(sql: &[u8]) -> Vec<u8> {
    [sql, b";\n"].concat()
}
