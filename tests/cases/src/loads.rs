//! Loads: a schema where everything hangs together, a server with it and its dump, and whether another
//! server has the same.

use crate::SMALL;
use crate::dumps::{HARD, checksums, done, dump, make_hard, make_special};
use crate::program::{Evenkeel, run};
use evenkeel_logical::objects::{Closeness, Objects, Selection, differences, read};
use evenkeel_server::connect::{Session, quote, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_testkit::{Scratch, TestServer};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Beside the hard schema: what is not rows, and hangs together.
const OBJECTS: [&str; 13] = [
    "CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT, code CHAR(3) NOT NULL, UNIQUE KEY (code))",
    "CREATE TABLE child (id INT PRIMARY KEY, parent INT, note VARCHAR(30), KEY note_key (note), \
     FULLTEXT KEY words (note), CONSTRAINT up FOREIGN KEY (parent) REFERENCES parent (id))",
    "INSERT INTO parent VALUES (0, 'nil'), (5, 'abc')",
    "INSERT INTO child VALUES (1, 5, 'one'), (2, NULL, NULL), (3, 0, 'three')",
    "CREATE TABLE my_isam (a INT, b VARCHAR(20), KEY (a)) ENGINE=MyISAM",
    "INSERT INTO my_isam VALUES (1, 'x'), (1, 'x'), (NULL, '')",
    "CREATE TABLE log (n INT)",
    "CREATE VIEW a_view AS SELECT b.note FROM z_view b",
    "CREATE OR REPLACE VIEW z_view AS SELECT note FROM child",
    "CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC NO SQL RETURN n * 2",
    "CREATE PROCEDURE fill() BEGIN INSERT INTO log VALUES (twice(4)); END",
    "CREATE TRIGGER loud AFTER INSERT ON child FOR EACH ROW INSERT INTO log VALUES (NEW.id)",
    "CREATE EVENT later ON SCHEDULE EVERY 1 DAY STARTS '2036-01-01 00:00:00' DO INSERT INTO log VALUES (1)",
];

/// Makes the objects above in a schema.
pub fn make_objects(session: &mut Session, schema: &str) {
    let mut run = |sql: &str| session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    run(&format!("USE {}", quote_name(schema)));
    run("CREATE VIEW z_view AS SELECT 'early' AS note");
    OBJECTS.iter().for_each(|sql| run(sql));
}

/// Reads all objects of a server.
#[must_use]
pub fn objects(running: &Running) -> Objects {
    let mut session = running.session().expect("a session");
    read(&mut session, &Selection::default()).unwrap_or_else(|e| panic!("{}", e.chain()))
}

/// Returns what the server's `local_infile` is.
#[must_use]
pub fn local_infile(running: &Running) -> Option<String> {
    let mut session = running.session().expect("a session");
    session.variable("local_infile").expect("a variable")
}

/// A server with the hard schema, and its dump.
pub struct Source {
    /// The program.
    pub server: TestServer,
    /// It runs.
    pub running: Running,
    /// The dump's directory.
    pub dump: PathBuf,
}

impl Source {
    /// Makes one; `special` adds what only its flavour has, `flags` are the dump's.
    #[must_use]
    pub fn make(
        program: &Evenkeel,
        server: TestServer,
        scratch: &Scratch,
        special: bool,
        flags: &[&str],
    ) -> Self {
        let running = server.start(&scratch.join("source"), &SMALL);
        let mut session = running.session().expect("a session");
        make_hard(&mut session);
        if special {
            make_special(&mut session, server.binary.flavour);
        }
        make_objects(&mut session, HARD);
        let dump_dir = scratch.join("dump");
        done(run(dump(program, &running, &dump_dir, flags)));
        Self {
            server,
            running,
            dump: dump_dir,
        }
    }

    /// Fails unless another server has the same rows and objects, and nothing of the load itself.
    #[track_caller]
    pub fn assert_same(&self, target: &Running, name: &str, closeness: Closeness) {
        let (mut one, mut other) = (
            self.running.session().expect("a session"),
            target.session().expect("a session"),
        );
        assert_eq!(checksums(&mut other), checksums(&mut one), "{name}");
        let found = differences(&objects(&self.running), &objects(target), closeness);
        assert!(found.is_empty(), "{name}: {}", found.join("\n\n"));
        let left =
            "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE 'evenkeel%'";
        let left = other.value(left).expect("a number");
        assert_eq!(left.as_deref(), Some("0"), "{name}");
    }
}

/// Returns a column's value as bytes, or N for none, which is none of the values. MariaDB has no negative zero.
fn as_bytes(column: &str, data_type: &str) -> String {
    let name = quote_name(column);
    match data_type {
        "geometry" => format!("COALESCE(HEX(ST_AsWKB({name})), 'N')"),
        "float" | "double" => format!("COALESCE(IF({name} = 0, 0, {name} * 1e0), 'N')"),
        "decimal" => format!("COALESCE({name}, 'N')"),
        "json" => format!("COALESCE(HEX(CAST({name} AS CHAR)), 'N')"),
        _ => format!("COALESCE(HEX({name}), 'N')"),
    }
}

/// Fails unless every row of a schema is in both servers, byte by byte: CHECKSUM TABLE is another on each
/// flavour. Returns how many tables there are.
#[track_caller]
pub fn assert_same_rows(both: (&mut Session, &mut Session), schema: &str, name: &str) -> usize {
    let (one, other) = both;
    for session in [&mut *one, &mut *other] {
        session
            .run(
                "SET SESSION group_concat_max_len = 100000000, sql_mode = '', time_zone = '+00:00'",
            )
            .expect("settings");
    }
    let columns = one
        .rows(&format!(
            "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS \
             JOIN information_schema.TABLES USING (TABLE_SCHEMA, TABLE_NAME) \
             WHERE TABLE_SCHEMA = {} AND TABLE_TYPE = 'BASE TABLE' ORDER BY TABLE_NAME, ORDINAL_POSITION",
            quote(schema)
        ))
        .expect("columns");
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in &columns {
        let cell = |at| row.at(at).expect("a cell");
        let own = tables.entry(cell(0).to_owned()).or_default();
        own.push(as_bytes(cell(1), cell(2)));
    }
    for (table, columns) in &tables {
        let full = format!("{}.{}", quote_name(schema), quote_name(table));
        let mut ask = |sql: &str| {
            [&mut *one, &mut *other].map(|session| {
                let row = session.one(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
                let row = row.expect("a row");
                format!("{:?} {:?}", row.at(0), row.at(1))
            })
        };
        let sum = "SUM(CAST(CONV(LEFT(SHA1(CONCAT_WS('|', ";
        let end = ")), 12), 16, 10) AS UNSIGNED))";
        let all = ask(&format!(
            "SELECT COUNT(*), {sum}{}{end} FROM {full}",
            columns.join(",")
        ));
        if all[0] != all[1] {
            for column in columns {
                let [here, there] = ask(&format!(
                    "SELECT COUNT(*), GROUP_CONCAT(LEFT({column}, 60) ORDER BY 1) FROM {full}"
                ));
                assert_eq!(here, there, "{name}: {table}, {column}");
            }
        }
        assert_eq!(all[0], all[1], "{name}: {table}");
    }
    tables.len()
}
