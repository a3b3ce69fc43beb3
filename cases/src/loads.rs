//! Loads: a schema where everything hangs together, a server with it and its dump, and whether another
//! server has the same.

use crate::SMALL;
use crate::dumps::{HARD, checksums, done, dump, make_hard, make_special};
use crate::program::{Evenkeel, run};
use evenkeel_logical::objects::{Closeness, Objects, Selection, differences, read};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_testkit::{Scratch, TestServer};
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
