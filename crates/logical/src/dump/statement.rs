//! Which tables a logged statement may have written to: all whose names stand in it, whatever they
//! stand there for. That is too many rather than too few; where a statement may reach tables that it
//! does not name, it is given up.

use super::catalog::Look;
use super::shapes::key;
use evenkeel_op::Result;
use evenkeel_server::connect::Session;
use std::collections::BTreeSet;

/// What statements begin with that name what they write to.
const NAMING: [&str; 10] = [
    "insert", "replace", "update", "delete", "create", "drop", "alter", "truncate", "rename",
    "optimize",
];
/// Next to CREATE, ALTER and DROP: what changes what other statements do, or more than one table.
const FAR_REACHING: [&str; 8] = [
    "database",
    "schema",
    "trigger",
    "function",
    "procedure",
    "view",
    "package",
    "event",
];
/// How much of a statement is shown.
const TOLD: usize = 40;

/// What names mean on a server.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Each table's name in small letters, and as it is known.
    tables: Vec<(String, String)>,
    /// Tables with triggers, views and routines: statements that name them reach others.
    doors: BTreeSet<String>,
}

impl Names {
    /// Asks what there is.
    pub(super) fn read(session: &mut Session, look: &Look) -> Result<Self> {
        let mut names = Self::default();
        for database in &look.objects.databases {
            for table in &database.tables {
                let known = key(&database.name, &table.name);
                names.tables.push((table.name.to_lowercase(), known));
            }
        }
        for sql in [
            "SELECT DISTINCT EVENT_OBJECT_TABLE FROM information_schema.TRIGGERS",
            "SELECT DISTINCT ROUTINE_NAME FROM information_schema.ROUTINES",
            "SELECT DISTINCT TABLE_NAME FROM information_schema.VIEWS",
        ] {
            let rows = session.rows(sql)?;
            let found = rows.iter().filter_map(|row| row.at(0));
            names.doors.extend(found.map(str::to_lowercase));
        }
        Ok(names)
    }

    /// Returns the tables that a statement may have written to; an error says in words that it may be
    /// others too.
    pub(super) fn touched(&self, text: &[u8]) -> Result<Vec<&str>, String> {
        let shown = String::from_utf8_lossy(text).to_lowercase();
        let words: BTreeSet<&str> = shown
            .split(|letter: char| !is_plain(letter))
            .filter(|word| !word.is_empty())
            .collect();
        let first = shown
            .split(|letter: char| !is_plain(letter))
            .next()
            .unwrap_or_default();
        let defines = ["create", "drop", "alter"].contains(&first);
        let reaches = defines && FAR_REACHING.into_iter().any(|word| words.contains(word));
        let is_ascii = text.is_ascii();
        let stands = |name: &str| match name {
            // In which character set it was written nobody says.
            _ if !name.is_ascii() => !is_ascii,
            _ if name.chars().all(is_plain) => words.contains(name),
            // A quote in a name is doubled, or not.
            _ if name.contains(['`', '"']) => true,
            _ => shown.contains(name),
        };
        if !NAMING.contains(&first) || reaches || self.doors.iter().any(|door| stands(door)) {
            let reported: String = shown.chars().take(TOLD).collect();
            let reported: Vec<&str> = reported.split_ascii_whitespace().collect();
            return Err(format!("'{}…'", reported.join(" ")));
        }
        let tables = self.tables.iter();
        let tables = tables.filter(|(name, _)| stands(name));
        Ok(tables.map(|(_, known)| known.as_str()).collect())
    }
}

fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(text: &str) -> Result<Vec<String>, String> {
        let table = |name: &str| (name.to_owned(), format!("d.{name}"));
        let names = Names {
            tables: ["a", "b_1", "ü", "odd name", "ti`ck"].map(table).into(),
            doors: ["triggering", "twice"].map(str::to_owned).into(),
        };
        let found = names.touched(text.as_bytes())?;
        // The one with a quote is always among them.
        let found = found.into_iter().filter(|one| *one != "d.ti`ck");
        Ok(found.map(str::to_owned).collect())
    }

    #[test]
    fn all_that_are_named_count() {
        for (text, tables) in [
            ("INSERT INTO `A` VALUES ('b_2')", &["d.a"][..]),
            ("update d.b_1, x set b_1.v = a.v", &["d.a", "d.b_1"]),
            ("DELETE FROM `odd name`", &["d.odd name"]),
            ("DELETE FROM Ü", &["d.ü"]),
            ("DELETE FROM c WHERE t = 'é'", &["d.ü"]),
            ("DROP TABLE c /* generated */", &[]),
            ("CREATE TABLE ab (abc INT)", &[]),
            ("TRUNCATE a", &["d.a"]),
        ] {
            assert_eq!(touched(text).unwrap(), tables, "{text}");
        }
    }

    #[test]
    fn what_reaches_further_is_given_up() {
        for text in [
            "UPDATE triggering SET v = 1",
            "INSERT INTO a VALUES (twice(2))",
            "SELECT something()",
            "XA COMMIT X'31'",
            "DROP DATABASE d",
            "CREATE DEFINER=`u`@`%` TRIGGER t BEFORE INSERT ON a FOR EACH ROW SET @a = 1",
            "",
        ] {
            assert!(touched(text).is_err(), "{text}");
        }
        let reported =
            touched("SELECT\n f(1) -- and much more that nobody wants to read").unwrap_err();
        assert!(
            reported.starts_with("'select f(1) -- and") && reported.len() < 50,
            "{reported}"
        );
    }
}
