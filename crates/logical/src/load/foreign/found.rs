//! What a directory of another program holds.

use crate::load::source::SourceTable;
use crate::objects::Objects;
use evenkeel_server::abilities::Recorded;
use evenkeel_server::coordinates::Coordinates;

/// What a directory of another program holds.
pub(in crate::load) struct Found {
    pub(in crate::load) objects: Objects,
    pub(in crate::load) tables: Vec<SourceTable>,
    pub(in crate::load) coordinates: Coordinates,
    /// What this dump is, in bytes to be hashed.
    pub(in crate::load) identity: Vec<u8>,
    /// What is worth telling.
    pub(in crate::load) notes: Vec<String>,
}

/// Returns objects of which only the databases are known.
pub(super) fn objects(databases: Vec<crate::objects::Database>, version_text: String) -> Objects {
    let says = |text: &[u8], word: &[u8]| text.windows(word.len()).any(|part| part == word);
    let word = "utf8mb4_0900_ai_ci";
    // Texts of MySQL 8 name their collation; those of servers with the older default do not.
    let newer = databases.iter().any(|one| {
        let mut tables = one.tables.iter();
        one.collation == word || tables.any(|table| says(&table.create, word.as_bytes()))
    });
    Objects {
        flavour: Recorded::of(Some(&version_text)).flavour,
        version_text,
        utf8mb4_collation: if newer { word } else { "utf8mb4_general_ci" }.to_owned(),
        databases,
        accounts: Vec::new(),
        gone: Vec::new(),
    }
}
