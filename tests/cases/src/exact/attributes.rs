//! What of a definition servers tell alike, and the words in which they tell it differently.

use evenkeel_server::connect::quote;
use evenkeel_server::launch::Running;

/// What is asked of `information_schema`.
#[derive(Debug)]
pub struct Query {
    /// What it is about; the first cells of a line name it.
    about: &'static str,
    /// How the cells behind are called.
    cells: &'static [&'static str],
    /// `{}` stands for the schema. What a server does not know is not asked.
    sql: &'static str,
    /// What has to be a table or a column of `information_schema`, with a condition for its name.
    needs: Option<(&'static str, &'static str)>,
}

/// All that is asked.
pub const QUERIES: [Query; 8] = [
    Query {
        about: "column",
        cells: &[
            "place",
            "type",
            "null",
            "charset",
            "collation",
            "default",
            "extra",
            "comment",
            "length",
            "digits",
            "scale",
            "fraction",
        ],
        sql: "SELECT TABLE_NAME, COLUMN_NAME, ORDINAL_POSITION, COLUMN_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME, \
              COLUMN_DEFAULT, EXTRA, COLUMN_COMMENT, CHARACTER_MAXIMUM_LENGTH, NUMERIC_PRECISION, NUMERIC_SCALE, DATETIME_PRECISION \
              FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {}",
        needs: None,
    },
    Query {
        about: "table",
        cells: &["engine", "format", "collation", "comment", "counter"],
        sql: "SELECT TABLE_NAME, '', ENGINE, IF(ENGINE = 'InnoDB', ROW_FORMAT, ''), TABLE_COLLATION, TABLE_COMMENT, AUTO_INCREMENT \
              FROM information_schema.TABLES WHERE TABLE_SCHEMA = {}",
        needs: None,
    },
    Query {
        about: "key",
        cells: &[
            "place",
            "column",
            "not unique",
            "prefix",
            "order",
            "kind",
            "comment",
        ],
        sql: "SELECT TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, NON_UNIQUE, IF(INDEX_TYPE = 'SPATIAL', '', SUB_PART), \
              IF(COLLATION = 'D', 'D', ''), INDEX_TYPE, INDEX_COMMENT FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {}",
        needs: None,
    },
    Query {
        about: "hidden key",
        cells: &[],
        sql: "SELECT DISTINCT TABLE_NAME, INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {} AND IGNORED = 'YES'",
        needs: Some((
            "COLUMNS",
            "TABLE_NAME = 'STATISTICS' AND COLUMN_NAME = 'IGNORED'",
        )),
    },
    Query {
        about: "hidden key",
        cells: &[],
        sql: "SELECT DISTINCT TABLE_NAME, INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {} AND IS_VISIBLE = 'NO'",
        needs: Some((
            "COLUMNS",
            "TABLE_NAME = 'STATISTICS' AND COLUMN_NAME = 'IS_VISIBLE'",
        )),
    },
    Query {
        about: "part",
        cells: &[
            "place",
            "sub",
            "method",
            "expression",
            "sub method",
            "sub expression",
            "values",
        ],
        sql: "SELECT TABLE_NAME, PARTITION_NAME, PARTITION_ORDINAL_POSITION, SUBPARTITION_NAME, PARTITION_METHOD, \
              PARTITION_EXPRESSION, SUBPARTITION_METHOD, SUBPARTITION_EXPRESSION, PARTITION_DESCRIPTION \
              FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = {} AND PARTITION_NAME IS NOT NULL",
        needs: None,
    },
    Query {
        about: "foreign key",
        cells: &[
            "column",
            "table there",
            "column there",
            "on update",
            "on delete",
        ],
        sql: "SELECT u.TABLE_NAME, u.CONSTRAINT_NAME, u.COLUMN_NAME, u.REFERENCED_TABLE_NAME, u.REFERENCED_COLUMN_NAME, \
              r.UPDATE_RULE, r.DELETE_RULE FROM information_schema.KEY_COLUMN_USAGE u JOIN information_schema.REFERENTIAL_CONSTRAINTS r \
              ON r.CONSTRAINT_SCHEMA = u.CONSTRAINT_SCHEMA AND r.CONSTRAINT_NAME = u.CONSTRAINT_NAME WHERE u.CONSTRAINT_SCHEMA = {}",
        needs: None,
    },
    Query {
        about: "check",
        cells: &["condition"],
        sql: "SELECT CONSTRAINT_NAME, '', CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS \
              WHERE CONSTRAINT_SCHEMA = {} AND CHECK_CLAUSE NOT LIKE '%json_valid%'",
        needs: Some(("TABLES", "TABLE_NAME = 'CHECK_CONSTRAINTS'")),
    },
];

impl Query {
    /// Returns the statement for a server.
    pub(super) fn sql(&self, running: &Running, schema: &str) -> String {
        if let Some((list, name)) = self.needs {
            let asked = format!(
                "SELECT COUNT(*) FROM information_schema.{list} WHERE TABLE_SCHEMA = 'information_schema' AND {name};"
            );
            if super::client(running, &asked) == ["0"] {
                return String::new();
            }
        }
        format!("{};", self.sql.replace("{}", &quote(schema)))
    }
}

/// Returns what a line says, in words that are the same for all servers.
pub(super) fn attribute(query: &Query, line: &str) -> Vec<String> {
    let cells: Vec<&str> = line.split('\t').collect();
    let [table, name, rest @ ..] = &cells[..] else {
        panic!("{line}");
    };
    let reported =
        |word: &str, value: String| format!("{} {table}.{name}: {word} {value}", query.about);
    if query.cells.is_empty() {
        return vec![reported("", String::new())];
    }
    let is_json = query.about == "column" && rest[1] == "json";
    let place = query
        .cells
        .iter()
        .position(|word| *word == "place")
        .map(|at| rest[at]);
    let mut all = Vec::new();
    for (word, value) in query.cells.iter().zip(rest) {
        let value = match *word {
            // MariaDB's JSON is a text with a CHECK, and some servers say nothing of the text that theirs is.
            // Versions count another number of them.
            "digits" if rest[1].starts_with("mediumint") => continue,
            // Some count where there is nothing to count.
            "counter" if *value == "1" || *value == "NULL" => continue,
            "type" if is_json => "longtext".to_owned(),
            "charset" | "collation" | "length" if is_json || rest[1] == "longtext" => continue,
            _ => alike(word, value),
        };
        let word = match place {
            Some(place) if query.about != "column" => format!("{place} {word}"),
            _ => (*word).to_owned(),
        };
        all.push(reported(&word, value));
    }
    all
}

/// Returns a value in the words that servers share.
fn alike(word: &str, value: &str) -> String {
    match word {
        "type" => plain_type(value),
        "charset" if value == "utf8" => "utf8mb3".to_owned(),
        "collation" => match value.strip_prefix("utf8_") {
            Some(rest) => format!("utf8mb3_{rest}"),
            None => value.to_owned(),
        },
        "default" => plain_default(value),
        "extra" => {
            let lower = value
                .to_lowercase()
                .replace("default_generated", "")
                .replace("()", "");
            lower
                .split_whitespace()
                .filter(|one| *one != ",")
                .collect::<Vec<_>>()
                .join(" ")
                .replace(" ,", "")
                .replace(',', "")
        }
        "expression" | "sub expression" | "condition" => {
            let kept = |letter: &char| !matches!(letter, '`' | ' ' | '(' | ')');
            value
                .chars()
                .filter(kept)
                .collect::<String>()
                .to_lowercase()
        }
        "on update" | "on delete" if value == "RESTRICT" => "NO ACTION".to_owned(),
        _ => value.to_owned(),
    }
}

/// Returns a type without the width that only some versions show.
fn plain_type(value: &str) -> String {
    let value = value.replace("geomcollection", "geometrycollection");
    let word: String = value.chars().take_while(char::is_ascii_lowercase).collect();
    let is_whole =
        ["tinyint", "smallint", "mediumint", "int", "bigint", "year"].contains(&word.as_str());
    match value.split_once(')') {
        Some((_, rest)) if is_whole && !value.contains("zerofill") => format!("{word}{rest}"),
        _ => value,
    }
}

/// Returns a default as a value: MariaDB shows the expression.
fn plain_default(value: &str) -> String {
    let text = match value
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''))
    {
        Some(inside) => inside
            .replace("''", "'")
            .replace("\\'", "'")
            .replace("\\\\\\\\", "\\\\"),
        None => value.to_owned(),
    };
    let lower = text.to_lowercase();
    match lower.starts_with("current_timestamp") || lower.contains("uuid") || lower.contains('+') {
        true => lower.replace(['(', ')', ' '], ""),
        false => text,
    }
}
