//! Statements as a script for the `mariadb` and `mysql` clients.

use crate::objects::{
    Objects, Phase, Rendering, Settings, Statement, names_collation, utf8mb4_means,
};
use evenkeel_server::connect::quote_name;

/// What MySQL 5.7 has in every `sql_mode` and MySQL 8 knows no more; it only concerned GRANT.
const FORGOTTEN_MODE: &str = "NO_AUTO_CREATE_USER";
/// What `utf8mb4` alone means to servers whose texts leave the collation out.
const OLDER: &str = "utf8mb4_general_ci";
/// What it means to MySQL 8 and later.
const MYSQLS: &str = "utf8mb4_0900_ai_ci";
/// What may stand behind a statement that has semicolons in it.
const DELIMITERS: [&str; 6] = [";;", "$$", "//", "||", "@@", "~~"];

/// A script that grows. It says only what changes from one statement to the next.
#[derive(Debug, Default)]
pub(super) struct Script {
    database: Option<String>,
    settings: Option<Settings>,
    /// Texts leave out a collation that newer servers mean otherwise: the session says which it is.
    leaves_out: bool,
}

impl Script {
    /// Begins a script with what its texts are meant under, below a line of what it is.
    pub(super) fn begin(objects: &Objects, what: &str, out: &mut Vec<u8>) -> Self {
        comment(what.as_bytes(), out);
        comment(
            b"load it with: mariadb --binary-mode --comments --default-character-set=utf8mb4",
            out,
        );
        let leaves_out = objects.utf8mb4_collation == OLDER;
        if leaves_out {
            out.extend_from_slice(mysql_means(OLDER).as_bytes());
            out.extend_from_slice(
                format!(
                    "/*M!110201 SET SESSION character_set_collations = 'utf8mb4={OLDER}' */;\n"
                )
                .as_bytes(),
            );
        }
        Self {
            leaves_out,
            ..Self::default()
        }
    }

    /// Adds the statements of a phase.
    pub(super) fn phase(
        &mut self,
        objects: &Objects,
        phase: Phase,
        how: &Rendering,
        out: &mut Vec<u8>,
    ) {
        for statement in objects.statements(phase, how) {
            self.add(&statement, out);
        }
    }

    /// Adds one statement. A client ends at one that fails: what fails where it comes from too
    /// becomes a comment.
    pub(super) fn add(&mut self, statement: &Statement, out: &mut Vec<u8>) {
        if let Some(why) = &statement.broken {
            let head = format!("{} is broken where it comes from: {why}", statement.object);
            comment(head.as_bytes(), out);
            return comment(&statement.sql, out);
        }
        if let Some(database) = &statement.database {
            self.enter(database, out);
        }
        if self.settings.as_ref() != Some(&statement.settings) {
            for sql in statement.settings.statements() {
                out.extend_from_slice(tolerant(&sql).as_bytes());
                out.extend_from_slice(b";\n");
            }
            self.settings = Some(statement.settings.clone());
        }
        let has_body = matches!(
            statement.phase,
            Phase::Routines | Phase::Triggers | Phase::Events | Phase::Wake
        );
        if has_body {
            let delimiter = delimiter(&statement.sql);
            out.extend_from_slice(format!("DELIMITER {delimiter}\n").as_bytes());
            out.extend_from_slice(&statement.sql);
            // On a line of its own: the body may end in a comment.
            out.extend_from_slice(format!("\n{delimiter}\nDELIMITER ;\n").as_bytes());
            return;
        }
        // MySQL 8.0 takes its own default, where a column names it, for one that nobody named.
        let named = self.leaves_out && names_collation(&statement.sql, MYSQLS);
        if named {
            out.extend_from_slice(mysql_means(MYSQLS).as_bytes());
        }
        out.extend_from_slice(&statement.sql);
        out.extend_from_slice(b";\n");
        if named {
            out.extend_from_slice(mysql_means(OLDER).as_bytes());
        }
    }

    /// Makes a schema the default one.
    pub(super) fn enter(&mut self, database: &str, out: &mut Vec<u8>) {
        if self.database.as_deref() != Some(database) {
            out.extend_from_slice(format!("USE {};\n", quote_name(database)).as_bytes());
            self.database = Some(database.to_owned());
        }
    }

    /// Takes note that something else has set the session.
    pub(super) fn is_set_otherwise(&mut self) {
        self.settings = None;
    }
}

/// Has `utf8mb4` alone mean a collation on MySQL 8 and later.
fn mysql_means(collation: &str) -> String {
    format!("/*!80011 {} */;\n", utf8mb4_means(collation))
}

/// Adds text as comments.
pub(super) fn comment(text: &[u8], out: &mut Vec<u8>) {
    for line in text.split(|byte| matches!(byte, b'\n' | b'\r')) {
        out.extend_from_slice(b"-- ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
}

/// Returns a statement that sets a session without the mode that MySQL 8 has forgotten, there.
fn tolerant(sql: &str) -> String {
    let Some((head, rest)) = sql
        .split_once("sql_mode = '")
        .filter(|(_, rest)| rest.contains(FORGOTTEN_MODE))
    else {
        return sql.to_owned();
    };
    let (mode, tail) = rest.split_once('\'').unwrap_or((rest, ""));
    format!(
        "{head}sql_mode = /*!80011 REPLACE( */ '{mode}' /*!80011 , '{FORGOTTEN_MODE}', '') */{tail}"
    )
}

fn delimiter(sql: &[u8]) -> String {
    let is_free = |one: &str| !sql.windows(one.len()).any(|part| part == one.as_bytes());
    let mut known = DELIMITERS.iter().map(|one| (*one).to_owned());
    let free = known.find(|one| is_free(one));
    let numbered = || (1..=sql.len() + 1).map(|number| format!("$end{number}$"));
    // There are more numbers than places in the text.
    free.or_else(|| numbered().find(|one| is_free(one)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{ObjectName, SchemaObjectKind};

    fn statement(phase: Phase, sql: &str, sql_mode: &str) -> Statement {
        Statement {
            phase,
            object: ObjectName {
                kind: SchemaObjectKind::Procedure,
                database: "d".to_owned(),
                name: "p".to_owned(),
            },
            database: Some("d".to_owned()),
            settings: Settings {
                sql_mode: sql_mode.to_owned(),
                ..Settings::default()
            },
            sql: sql.into(),
            broken: None,
        }
    }

    fn script(statements: &[Statement]) -> String {
        let (mut script, mut out) = (Script::default(), Vec::new());
        for one in statements {
            script.add(one, &mut out);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_what_changes_is_said() {
        let one = statement(Phase::Tables, "CREATE 1", "ANSI");
        let text = script(&[one.clone(), one]);
        let set = "SET NAMES utf8mb4;\nSET SESSION sql_mode = 'ANSI', time_zone = '+00:00', \
                   foreign_key_checks = 0;\n";
        assert_eq!(text, format!("USE `d`;\n{set}CREATE 1;\nCREATE 1;\n"));
    }

    #[test]
    fn bodies_end_where_nothing_in_them_does() {
        let text = script(&[statement(Phase::Routines, "BEGIN ;; END", "")]);
        assert!(
            text.ends_with("DELIMITER $$\nBEGIN ;; END\n$$\nDELIMITER ;\n"),
            "{text}"
        );
        assert_eq!(delimiter(DELIMITERS.join(" ").as_bytes()), "$end1$");
    }

    #[test]
    fn what_is_broken_is_a_comment() {
        let mut one = statement(Phase::Views, "CREATE\nVIEW", "");
        one.broken = Some("no `t`".to_owned());
        let text = script(&[one]);
        assert!(text.lines().all(|line| line.starts_with("-- ")), "{text}");
        assert!(text.contains("no `t`") && text.ends_with("-- VIEW\n"));
    }

    #[test]
    fn a_mode_that_is_forgotten_goes_only_where_it_is() {
        let text = script(&[statement(Phase::Tables, "X", "A,NO_AUTO_CREATE_USER")]);
        let set = "SET SESSION sql_mode = /*!80011 REPLACE( */ 'A,NO_AUTO_CREATE_USER' /*!80011 , \
                   'NO_AUTO_CREATE_USER', '') */, time_zone = '+00:00', foreign_key_checks = 0;";
        assert!(text.contains(set), "{text}");
    }
}
