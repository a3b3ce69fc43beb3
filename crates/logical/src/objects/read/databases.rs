//! The schemas.

use super::super::Database;
use super::ask;
use super::reader::Reader;
use evenkeel_op::{Error, Result};

/// Returns the wanted schemas by name, still empty.
///
/// Errors: `Usage` for a schema that was asked for by name and is not there.
pub(super) fn list(reader: &mut Reader<'_>) -> Result<Vec<Database>> {
    let rows = ask::rows(
        reader.session,
        "SELECT * FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME",
    )?;
    let has_cluster = has_cluster(reader)?;
    let mut found = Vec::new();
    for row in rows {
        let name = row.text("SCHEMA_NAME");
        let is_clusters = name == "ndbinfo" && has_cluster && reader.selection.databases.is_empty();
        // `#mysql50#…` and `lost+found` are directories that are no schemas.
        if !reader.selection.wants_database(&name) || is_clusters || name.starts_with("#mysql50#") {
            continue;
        }
        found.push(Database {
            name,
            charset: row.text("DEFAULT_CHARACTER_SET_NAME"),
            collation: row.text("DEFAULT_COLLATION_NAME"),
            comment: row.text("SCHEMA_COMMENT"),
            encrypted: row.is("DEFAULT_ENCRYPTION", "YES"),
            ..Database::default()
        });
    }
    let there = |name: &&String| found.iter().all(|one| one.name != **name);
    if let Some(missing) = reader.selection.databases.iter().find(there) {
        return Err(Error::usage(format!("there is no database '{missing}'"))
            .hint("SHOW DATABASES lists those that this account may see"));
    }
    Ok(found)
}

/// Returns whether the schema `ndbinfo` is the server's: only NDB Cluster has one of its own.
fn has_cluster(reader: &mut Reader<'_>) -> Result<bool> {
    let sql = "SELECT ENGINE FROM information_schema.ENGINES \
               WHERE ENGINE = 'ndbinfo' AND SUPPORT IN ('YES', 'DEFAULT')";
    Ok(!ask::rows(reader.session, sql)?.is_empty())
}
