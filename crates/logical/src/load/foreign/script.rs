//! Files of definitions, read as objects: what servers print, and what dump programs put around it.

use super::settings::Under;
use crate::import::split::Splitter;
use crate::objects::text::{Token, TokenKind, all_tokens, name_of};
use crate::objects::{
    Column, Database, Generated, ObjectName, Program, SchemaObjectKind, Sequence, TableObject, View,
};
use evenkeel_op::{Context, Error, Result};

/// Where statements of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// At a semicolon with the end of the line behind it: within programs a blank is between them.
    Lines,
    /// As clients cut, who know DELIMITER.
    Clients,
}

/// The words that say what is made.
const MADE: [(&str, SchemaObjectKind); 10] = [
    ("DATABASE", SchemaObjectKind::Database),
    ("SCHEMA", SchemaObjectKind::Database),
    ("TABLE", SchemaObjectKind::Table),
    ("VIEW", SchemaObjectKind::View),
    ("SEQUENCE", SchemaObjectKind::Sequence),
    ("FUNCTION", SchemaObjectKind::Function),
    ("PROCEDURE", SchemaObjectKind::Procedure),
    ("PACKAGE", SchemaObjectKind::Package),
    ("TRIGGER", SchemaObjectKind::Trigger),
    ("EVENT", SchemaObjectKind::Event),
];

/// The databases so far.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    pub(super) databases: Vec<Database>,
}

impl Drafts {
    /// Returns a database; the first time, a new one.
    pub(super) fn database(&mut self, name: &str) -> &mut Database {
        let at = self.databases.iter().position(|one| one.name == name);
        let at = at.unwrap_or_else(|| {
            self.databases.push(Database {
                name: name.to_owned(),
                ..Database::default()
            });
            self.databases.len() - 1
        });
        &mut self.databases[at]
    }

    /// Takes in a file's statements, and returns what they make.
    ///
    /// Errors: `Refused` with the beginning of a statement that was not understood.
    pub(super) fn read(
        &mut self,
        text: &[u8],
        cut: Cut,
        database: Option<&str>,
    ) -> Result<Vec<ObjectName>> {
        let mut reader = Reader {
            drafts: self,
            database: database.map(str::to_owned),
            under: Under::default(),
            made: Vec::new(),
        };
        for statement in statements(text, cut)? {
            if reader.statement(&statement).is_none() {
                let shown = String::from_utf8_lossy(&statement[..statement.len().min(60)]);
                return Err(Error::refused(format!(
                    "a statement is not understood: {}",
                    shown.trim()
                )));
            }
        }
        Ok(reader.made)
    }
}

fn statements(text: &[u8], cut: Cut) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    if cut == Cut::Clients {
        let mut splitter = Splitter::new(text, text.len() + 1);
        splitter.set_binary(true);
        while let Some(one) = splitter.next_statement()? {
            all.push(one.text.to_vec());
        }
        return Ok(all);
    }
    let mut statement = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        statement.extend_from_slice(line);
        let ends = line.ends_with(b";\n");
        // A string or a comment may hold such a line.
        if ends && let Some(tokens) = all_tokens(&statement) {
            if tokens.len() > 1 {
                let end = tokens[tokens.len() - 1].start;
                all.push(statement[..end].to_vec());
            }
            statement.clear();
        }
    }
    let rest = all_tokens(&statement)
        .ok_or_else(|| Error::failed("it ends within a string or a comment"))?;
    if !rest.is_empty() {
        all.push(statement);
    }
    Ok(all)
}

/// Returns a statement without the marks of executed comments, if it begins with one, and without
/// what comes before its first word.
fn plain(text: &[u8]) -> Option<Vec<u8>> {
    let tokens = all_tokens(text)?;
    let first = tokens.first()?;
    if first.kind != TokenKind::Gate {
        return Some(text[first.start..].trim_ascii_end().to_vec());
    }
    let (mut out, mut copied) = (Vec::new(), first.start);
    for token in &tokens {
        if matches!(token.kind, TokenKind::Gate | TokenKind::GateEnd) {
            out.extend_from_slice(&text[copied..token.start]);
            copied = token.end;
        }
    }
    out.extend_from_slice(&text[copied..]);
    Some(out.trim_ascii().to_vec())
}

/// One file on its way.
struct Reader<'d> {
    drafts: &'d mut Drafts,
    database: Option<String>,
    under: Under,
    made: Vec<ObjectName>,
}

/// What a CREATE statement makes, and where its name is.
struct Made {
    kind: SchemaObjectKind,
    database: Option<String>,
    name: String,
    /// The first token behind the name.
    next: usize,
    /// The text without IF NOT EXISTS.
    text: Vec<u8>,
}

impl Reader<'_> {
    /// Takes in a statement; `None` for one that is not understood.
    fn statement(&mut self, text: &[u8]) -> Option<()> {
        let text = plain(text)?;
        let tokens = all_tokens(&text)?;
        let word = |at: usize, word: &str| {
            let token: Option<&Token> = tokens.get(at);
            token.is_some_and(|token| token.is_word(&text, word))
        };
        match () {
            () if word(0, "SET") => self.under.set(&text, &tokens[1..]),
            () if word(0, "USE") => self.database = Some(name_of(tokens.get(1)?.of(&text))),
            () if word(0, "DROP") => {}
            () if word(0, "ALTER") && (word(1, "DATABASE") || word(1, "SCHEMA")) => {
                self.under.database_collation = behind(&text, &tokens, "COLLATE");
            }
            () if word(1, "SETVAL") => self.set_sequence(&text, &tokens)?,
            () if word(0, "CREATE") => self.create(&text)?,
            () => return None,
        }
        Some(())
    }

    fn create(&mut self, text: &[u8]) -> Option<()> {
        let made = made(text)?;
        let tokens = all_tokens(&made.text)?;
        let home = match made.kind {
            SchemaObjectKind::Database => made.name.clone(),
            _ => made.database.clone().or_else(|| self.database.clone())?,
        };
        self.made.push(ObjectName {
            kind: made.kind,
            database: home.clone(),
            name: made.name.clone(),
        });
        let under = self.under.clone();
        let database = self.drafts.database(&home);
        let text = &made.text;
        match made.kind {
            SchemaObjectKind::Database => {
                let charset = behind(text, &tokens, "CHARSET");
                let set = tokens
                    .windows(3)
                    .find(|three| three[0].is_word(text, "CHARACTER"));
                let set = set.map(|three| name_of(three[2].of(text)));
                database.charset = charset.or(set)?;
                database.collation = behind(text, &tokens, "COLLATE").unwrap_or_default();
                database.comment = behind(text, &tokens, "COMMENT").unwrap_or_default();
                database.encrypted = behind(text, &tokens, "ENCRYPTION").as_deref() == Some("Y");
            }
            SchemaObjectKind::Table => database.tables.push(table(&made, &tokens)?),
            SchemaObjectKind::Sequence => database.sequences.push(Sequence {
                name: made.name,
                create: made.text,
                next_value: String::new(),
                cycle_count: "0".to_owned(),
            }),
            SchemaObjectKind::View => database.views.push(View {
                program: program(made, &tokens, under)?,
                columns: Vec::new(),
                broken: None,
            }),
            SchemaObjectKind::Trigger => database.triggers.push(program(made, &tokens, under)?),
            SchemaObjectKind::Event => database.events.push(program(made, &tokens, under)?),
            _ => database.routines.push(program(made, &tokens, under)?),
        }
        Some(())
    }

    /// `DO SETVAL(name, next, used, round)`.
    fn set_sequence(&mut self, text: &[u8], tokens: &[Token]) -> Option<()> {
        let open = tokens.iter().position(|token| token.is_sign(b'('))?;
        let parts: Vec<&[Token]> = tokens[open + 1..].split(|one| one.is_sign(b',')).collect();
        let name = name_of(parts.first()?.last()?.of(text));
        let number = |at: usize| {
            let words = parts.get(at)?.iter().take_while(|one| !one.is_sign(b')'));
            let words = words.map(|one| String::from_utf8_lossy(one.of(text)).into_owned());
            Some(words.collect::<String>())
        };
        let home = self.database.clone()?;
        let sequences = &mut self.drafts.database(&home).sequences;
        let one = sequences.iter_mut().find(|one| one.name == name)?;
        one.next_value = number(1)?;
        if let Some(round) = number(3) {
            one.cycle_count = round;
        }
        Some(())
    }
}

/// Returns the word or literal behind a word, with or without an equals sign.
fn behind(text: &[u8], tokens: &[Token], word: &str) -> Option<String> {
    let at = tokens.iter().position(|token| token.is_word(text, word))?;
    let value = tokens[at + 1..].iter().find(|token| !token.is_sign(b'='))?;
    Some(name_of(value.of(text)))
}

fn made(text: &[u8]) -> Option<Made> {
    let tokens = all_tokens(text)?;
    let kind_of = |token: &Token| MADE.iter().find(|(word, _)| token.is_word(text, word));
    let at = tokens.iter().position(|token| kind_of(token).is_some())?;
    let (mut kind, mut next) = (kind_of(&tokens[at])?.1, at + 1);
    if kind == SchemaObjectKind::Package && tokens.get(next)?.is_word(text, "BODY") {
        (kind, next) = (SchemaObjectKind::PackageBody, next + 1);
    }
    // Of databases it may stand in a comment of its own.
    let gated = tokens
        .get(next)
        .is_some_and(|one| one.kind == TokenKind::Gate);
    if gated && kind == SchemaObjectKind::Database {
        next += 1 + tokens[next..]
            .iter()
            .position(|one| one.kind == TokenKind::GateEnd)?;
    }
    let clause = ["IF", "NOT", "EXISTS"];
    let is_clause = |(offset, word): (usize, &&str)| {
        let token: Option<&Token> = tokens.get(next + offset);
        token.is_some_and(|token| token.is_word(text, word))
    };
    let has_clause = clause.iter().enumerate().all(is_clause);
    let name_at = if has_clause { next + 3 } else { next };
    let named = |at: usize| {
        let token: &Token = tokens.get(at)?;
        let is_name = matches!(token.kind, TokenKind::Name | TokenKind::Word);
        is_name.then(|| name_of(token.of(text)))
    };
    let first = named(name_at)?;
    let qualified = tokens.get(name_at + 1).is_some_and(|one| one.is_sign(b'.'));
    let (database, name, last) = match qualified {
        true => (Some(first), named(name_at + 2)?, name_at + 2),
        false => (None, first, name_at),
    };
    let text = match has_clause {
        true => [&text[..tokens[next].start], &text[tokens[name_at].start..]].concat(),
        false => text.to_vec(),
    };
    let next = if has_clause { last + 1 - 3 } else { last + 1 };
    Some(Made {
        kind,
        database,
        name,
        next,
        text,
    })
}

fn program(made: Made, tokens: &[Token], under: Under) -> Option<Program> {
    let text = &made.text;
    let table = match made.kind {
        SchemaObjectKind::Trigger => {
            let on = tokens[made.next..]
                .iter()
                .position(|one| one.is_word(text, "ON"))?;
            let mut at = made.next + on + 1;
            if tokens.get(at + 1).is_some_and(|one| one.is_sign(b'.')) {
                at += 2;
            }
            Some(name_of(tokens.get(at)?.of(text)))
        }
        _ => None,
    };
    let client = under
        .character_set_client
        .filter(|set| set != "binary")
        .unwrap_or_else(|| "utf8mb4".to_owned());
    let views = made.kind == SchemaObjectKind::View;
    let connection = under.collation_connection;
    Some(Program {
        kind: made.kind,
        name: made.name,
        table,
        sql_mode: under.sql_mode.filter(|_| !views),
        collation_connection: connection.unwrap_or_else(|| match client.as_str() {
            "utf8mb4" => "utf8mb4_general_ci".to_owned(),
            other => format!("{other}_general_ci"),
        }),
        character_set_client: client,
        database_collation: under.database_collation.filter(|_| !views),
        time_zone: under
            .time_zone
            .filter(|_| made.kind == SchemaObjectKind::Event),
        create: made.text,
    })
}

fn table(made: &Made, tokens: &[Token]) -> Option<TableObject> {
    let text = &made.text;
    let close = tokens.iter().rposition(|one| one.is_sign(b')'))?;
    let versioned = tokens
        .windows(2)
        .any(|two| two[0].is_word(text, "SYSTEM") && two[1].is_word(text, "VERSIONING"));
    let mut engines = tokens[..].windows(3);
    let engine = engines.rfind(|three| three[0].is_word(text, "ENGINE") && three[1].is_sign(b'='));
    let engine = engine.map(|three| name_of(three[2].of(text)));
    Some(TableObject {
        name: made.name.clone(),
        engine: engine?,
        columns: columns(text, tokens.get(made.next..=close)?),
        create: text.clone(),
        key: None,
        rows_estimate: 0,
        data_bytes: 0,
        index_bytes: 0,
        versioned,
        histograms: Vec::new(),
    })
}

/// Reads the columns as far as making the table depends on them: their types, and whether they take
/// NULL.
fn columns(text: &[u8], tokens: &[Token]) -> Vec<Column> {
    let mut all = Vec::new();
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::Sign(b'(') => depth += 1,
            TokenKind::Sign(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let begins = depth == 1 && (token.is_sign(b'(') || token.is_sign(b','));
        let [name, kind, ..] = tokens.get(at + 1..).unwrap_or_default() else {
            break;
        };
        if !begins || name.kind != TokenKind::Name || kind.kind != TokenKind::Word {
            continue;
        }
        let rest = tokens[at + 3..].iter();
        let mut rest = rest.take_while(|one| !one.is_sign(b',')).peekable();
        let mut nullable = true;
        while let Some(one) = rest.next() {
            let next = rest.peek();
            nullable &=
                !(one.is_word(text, "NOT") && next.is_some_and(|next| next.is_word(text, "NULL")));
        }
        let word = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_lowercase();
        all.push(Column {
            name: name_of(name.of(text)),
            column_type: word(full_type(text, &tokens[at + 2..])),
            data_type: word(kind.of(text)),
            charset: None,
            collation: None,
            nullable,
            generated: Generated::No,
            invisible: false,
            auto_increment: false,
        });
    }
    all
}

/// Returns the type that `tokens` begin with, and what stands in parentheses behind it.
fn full_type<'a>(text: &'a [u8], tokens: &[Token]) -> &'a [u8] {
    let has_more = tokens.get(1).is_some_and(|one| one.is_sign(b'('));
    let end = match has_more {
        true => tokens.iter().find(|one| one.is_sign(b')')),
        false => tokens.first(),
    };
    match (tokens.first(), end) {
        (Some(first), Some(end)) => &text[first.start..end.end],
        _ => b"",
    }
}

/// Returns what `read` says with the file's name in front.
pub(super) fn of_file<T>(result: Result<T>, path: &std::path::Path) -> Result<T> {
    result.context(|| format!("failed to understand {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, cut: Cut, database: Option<&str>) -> Vec<Database> {
        let mut drafts = Drafts::default();
        drafts.read(text.as_bytes(), cut, database).unwrap();
        drafts.databases
    }

    #[test]
    fn what_mydumper_writes_is_understood() {
        let text = "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `a b` /*!40100 DEFAULT CHARACTER SET \
                    latin1 COLLATE latin1_bin */ /*!80016 DEFAULT ENCRYPTION='N' */;\n\
                    SET character_set_client = utf8;\nSET collation_connection = utf8_bin;\n\
                    DROP PROCEDURE IF EXISTS `p`;\nCREATE DEFINER=`r`@`%` PROCEDURE `p`()\n\
                    BEGIN SELECT 'x;\n'; \nSELECT 2; \nEND;\n\
                    SET character_set_client = @PREV;\nSET collation_connection = @PREV;\n\
                    CREATE TRIGGER loud AFTER INSERT ON child FOR EACH ROW SET @on = 1;\n";
        let all = read(text, Cut::Lines, Some("a b"));
        assert_eq!(all.len(), 1);
        let one = &all[0];
        assert_eq!((&*one.charset, &*one.collation), ("latin1", "latin1_bin"));
        assert!(!one.encrypted);
        let procedure = &one.routines[0];
        assert_eq!(
            (procedure.kind, &*procedure.name),
            (SchemaObjectKind::Procedure, "p")
        );
        assert!(procedure.create.ends_with(b"SELECT 2; \nEND"));
        assert_eq!(procedure.character_set_client, "utf8");
        assert_eq!(procedure.sql_mode, None);
        let trigger = &one.triggers[0];
        assert_eq!(trigger.table.as_deref(), Some("child"));
        assert_eq!(trigger.character_set_client, "utf8mb4");
    }

    #[test]
    fn what_the_shell_writes_is_understood() {
        let text = "-- a comment\nCREATE TABLE IF NOT EXISTS `t` (\n  `a` int NOT NULL,\n  \
                    `w` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,\n  `e` enum('a,b','NOT NULL') DEFAULT NULL\n\
                    ) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\n\
                    /*!50003 SET sql_mode = 'ANSI' */ ;\nDELIMITER ;;\n\
                    /*!50003 CREATE*/ /*!50017 DEFINER=`r`@`%`*/ /*!50003 TRIGGER `s`.`w` BEFORE UPDATE ON \
                    `s`.`t` FOR EACH ROW BEGIN SET @a = 1; END */;;\nDELIMITER ;\n\
                    /*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013 DEFINER=`r`@`%` SQL SECURITY DEFINER */\n\
                    /*!50001 VIEW `v` AS select 1 AS `1` */;\n\
                    /*!50106 CREATE DEFINER=`r`@`%` EVENT IF NOT EXISTS `e` ON SCHEDULE EVERY 1 DAY DO SELECT 1 */;\n";
        let all = read(text, Cut::Clients, Some("s"));
        let one = &all[0];
        let table = &one.tables[0];
        assert!(table.create.starts_with(b"CREATE TABLE `t` (\n"));
        assert_eq!(table.engine, "InnoDB");
        let columns: Vec<(&str, &str, bool)> = table
            .columns
            .iter()
            .map(|it| (&*it.name, &*it.data_type, it.nullable))
            .collect();
        assert_eq!(
            columns,
            [
                ("a", "int", false),
                ("w", "timestamp", false),
                ("e", "enum", true)
            ]
        );
        assert_eq!(one.triggers[0].table.as_deref(), Some("t"));
        assert_eq!(one.triggers[0].sql_mode.as_deref(), Some("ANSI"));
        let view = &one.views[0].program;
        let text = String::from_utf8_lossy(&view.create);
        assert!(text.starts_with("CREATE ALGORITHM=UNDEFINED"), "{text}");
        assert!(text.ends_with("select 1 AS `1`"), "{text}");
        assert_eq!(view.name, "v");
        let event = String::from_utf8_lossy(&one.events[0].create);
        assert!(event.contains("EVENT `e` ON"), "{event}");
    }

    #[test]
    fn sequences_have_their_value() {
        let text = "CREATE SEQUENCE `q` start with 1 increment by 2 ENGINE=InnoDB;\n\
                    DO SETVAL(`q`, -7, 0, 3);\n";
        let all = read(text, Cut::Lines, Some("s"));
        let one = &all[0].sequences[0];
        assert_eq!((&*one.next_value, &*one.cycle_count), ("-7", "3"));
    }

    #[test]
    fn what_is_not_understood_is_said() {
        let read = |text: &str| Drafts::default().read(text.as_bytes(), Cut::Lines, Some("s"));
        let error = read("GRANT ALL ON *.* TO x;\n").unwrap_err();
        assert!(error.to_string().contains("GRANT ALL"), "{error}");
        assert!(read("CREATE TABLE `t` (`a` char(1) DEFAULT 'x\n").is_err());
        assert!(read("CREATE SERVER s;\n").is_err());
        assert!(read("-- nothing\n\n").unwrap().is_empty());
    }
}
