//! Does an import of any SQL file make what the reference client makes of it, and say how to go on
//! where it stopped?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{HARD, checksums, make_hard, make_special};
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_logical::objects::{self, Closeness, Objects, Selection, differences};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::wait::until_within;
use evenkeel_testkit::{Proxy, Scratch, TestServer};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn start(server: &TestServer, scratch: &Scratch) -> Running {
    let launch = server.prepare(&scratch.join("data"), &SMALL);
    server.run(&launch.with_networking())
}

fn session(running: &Running) -> Session {
    running.session().expect("a session")
}

fn import(running: &Running, file: &Path, flags: &[&str]) -> Command {
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = program.command(&["import", "--no-defaults", "-u", "root", "-S"]);
    command.arg(running.socket()).arg(file).args(flags);
    command
}

#[track_caller]
fn done(ended: Ended) -> Ended {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

/// Has the reference client run a file.
#[track_caller]
fn refer(running: &Running, file: &Path) {
    let output = Command::new("mariadb")
        .args(["--no-defaults", "-u", "root", "--comments"])
        .arg("--default-character-set=utf8mb4")
        .arg("-S")
        .arg(running.socket())
        .stdin(std::fs::File::open(file).unwrap())
        .output()
        .expect("mariadb");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

fn names(session: &mut Session) -> Vec<String> {
    let sql = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN \
               ('mysql', 'information_schema', 'performance_schema', 'sys')";
    let rows = session.rows(sql).unwrap();
    rows.iter()
        .map(|row| row.at(0).unwrap().to_owned())
        .collect()
}

fn drop_all(running: &Running) {
    let mut session = session(running);
    session.run("SET SESSION foreign_key_checks = 0").unwrap();
    for name in names(&mut session) {
        session
            .run(&format!("DROP DATABASE {}", quote_name(&name)))
            .unwrap();
    }
}

/// Has the reference client run a file's text in one transaction, where one for each row would cost more, and
/// returns what that makes.
fn wanted(running: &Running, scratch: &Scratch, text: &str) -> Made {
    let text = format!("SET autocommit = 0;\n{text}COMMIT;\n");
    refer(running, &write(scratch, "wanted.sql", &text));
    made(running)
}

/// Everything that an import makes.
struct Made {
    objects: Objects,
    sums: Vec<(String, String, String)>,
}

fn made(running: &Running) -> Made {
    let mut asking = session(running);
    let objects = objects::read(&mut asking, &Selection::default()).unwrap();
    let mut asking = session(running);
    let mut sums = Vec::new();
    for database in names(&mut asking) {
        if database == HARD {
            sums.extend(checksums(&mut session(running)));
            continue;
        }
        let tables = format!(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' \
             AND TABLE_SCHEMA = '{database}' ORDER BY 1"
        );
        for row in asking.rows(&tables).unwrap() {
            let name = format!("{database}.{}", row.at(0).unwrap());
            let sum = asking
                .one(&format!("CHECKSUM TABLE {name}"))
                .unwrap()
                .unwrap();
            let count = asking
                .value(&format!("SELECT COUNT(*) FROM {name}"))
                .unwrap();
            let sum = sum.at(1).unwrap_or_default().to_owned();
            sums.push((name, sum, count.unwrap()));
        }
    }
    Made { objects, sums }
}

#[track_caller]
fn assert_same(one: &Made, other: &Made, what: &str) {
    assert!(!one.sums.is_empty(), "{what}: nothing was made");
    assert_eq!(one.sums, other.sums, "{what}");
    let found = differences(&one.objects, &other.objects, Closeness::Same);
    assert!(found.is_empty(), "{what}: {}", found.join("\n"));
}

/// What programs there can be, and tables that need one another.
const PROGRAMS: &str = "
CREATE DATABASE prog CHARACTER SET utf8mb4;
USE prog;
CREATE TABLE parent (id INT PRIMARY KEY, v INT, UNIQUE KEY v (v)) ENGINE=InnoDB;
CREATE TABLE child (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, p INT, t VARCHAR(50), KEY t (t), KEY p (p),
  CONSTRAINT fk FOREIGN KEY (p) REFERENCES parent (id)) ENGINE=InnoDB;
CREATE TABLE heap (a INT, b TEXT) ENGINE=MyISAM;
CREATE TABLE log (n INT) ENGINE=InnoDB;
CREATE TABLE counted (id INT PRIMARY KEY) ENGINE=InnoDB;
CREATE VIEW v2 AS SELECT 1 AS a;
CREATE VIEW v1 AS SELECT a, 'x;y' AS b FROM v2;
DELIMITER //
CREATE TRIGGER tr BEFORE INSERT ON counted FOR EACH ROW BEGIN
  -- a comment; with an it's
  INSERT INTO log VALUES (NEW.id); /* ; */
END//
CREATE PROCEDURE p () BEGIN SELECT ';'; SELECT \"//\"; # x
END //
CREATE FUNCTION f (a INT) RETURNS INT DETERMINISTIC RETURN a + 1//
CREATE EVENT e ON SCHEDULE EVERY 1 DAY DISABLE DO BEGIN DELETE FROM log; END//
DELIMITER ;
";

/// Some thousands of rows for the tables above, in statements of one row.
fn rows(many: u32) -> String {
    let mut text = String::new();
    for n in 0..many {
        text.push_str(&format!("INSERT INTO parent VALUES ({n},{});\n", many - n));
        text.push_str(&format!(
            "INSERT INTO `child` (`id`,`p`,`t`) VALUES ({},{n},'it''s; \\'{n}');\n",
            n * 2 + 1
        ));
        text.push_str(&format!("INSERT INTO heap VALUES ({n},'a\n;b');\n"));
    }
    text
}

fn write(scratch: &Scratch, name: &str, text: &str) -> PathBuf {
    let path = scratch.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn dump(running: &Running, to: &Path, flags: &[&str]) {
    let output = Command::new("mariadb-dump")
        .args(["--no-defaults", "-u", "root", "-S"])
        .arg(running.socket())
        .args(["--routines", "--events", "--triggers"])
        .args(flags)
        .args(["--databases", HARD, "prog"])
        .stdout(std::fs::File::create(to).unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

/// Each kind of dump with each way to import it, so that every second has all kinds and both ways.
const IMPORTS: [(&str, &[&str]); 6] = [
    ("plain", &PLAINLY),
    ("plain", &INDEXES_AFTER),
    ("single-rows", &INDEXES_AFTER),
    ("single-rows", &PLAINLY),
    ("other", &PLAINLY),
    ("other", &INDEXES_AFTER),
];
const PLAINLY: [&str; 1] = ["--threads=3"];
const INDEXES_AFTER: [&str; 2] = ["--threads=2", "--indexes=after"];

/// Dumps of many kinds, each imported by the reference client and by us.
fn dumps(server: &TestServer) {
    let scratch = Scratch::new();
    let running = start(server, &scratch);
    let mut source = session(&running);
    make_hard(&mut source);
    if server.binary.flavour == Flavour::MySql {
        // MariaDB's dump program does not know MySQL's generated columns.
        source.run("DROP TABLE made").unwrap();
    }
    make_special(&mut source, server.binary.flavour);
    let seed = format!("SET autocommit = 0;\n{PROGRAMS}{}COMMIT;\n", rows(2000));
    refer(&running, &write(&scratch, "seed.sql", &seed));
    for (name, flags) in [
        ("plain", &[][..]),
        (
            "single-rows",
            &[
                "--skip-extended-insert",
                "--complete-insert",
                "--no-autocommit",
            ],
        ),
        (
            "other",
            &[
                "--replace",
                "--hex-blob",
                "--skip-add-locks",
                "--skip-disable-keys",
                "--order-by-primary",
            ],
        ),
    ] {
        dump(&running, &scratch.join(format!("{name}.sql")), flags);
    }
    let imports = share("dumps imported", &IMPORTS, Part::new(0, 2));
    for name in ["plain", "single-rows", "other"] {
        let file = scratch.join(format!("{name}.sql"));
        drop_all(&running);
        refer(&running, &file);
        let wanted = made(&running);
        for (_, flags) in imports.iter().filter(|(of, _)| *of == name) {
            drop_all(&running);
            let ended = done(run(import(&running, &file, flags)));
            assert_same(
                &wanted,
                &made(&running),
                &format!("{} {name} {flags:?}", server.name),
            );
            assert_eq!(ended.answer["schema"], "evenkeel/import/1");
            let answer = |field: &str| ended.answer[field].as_u64().unwrap();
            assert_eq!(answer("bytes"), std::fs::metadata(&file).unwrap().len());
            assert!(answer("rows") > 20_000, "{}", ended.answer);
            if name == "single-rows" {
                assert!(
                    answer("inserts_sent") < answer("rows") / 5,
                    "{}",
                    ended.answer
                );
            }
        }
    }
}

// One of these three servers in each run.

#[test]
fn dumps_of_mariadb() {
    for server in share("dumps of MariaDB", &[mariadb_10_11()], Part::new(2, 3)) {
        dumps(&server);
    }
}

#[test]
fn dumps_of_mysql() {
    let servers = [mysql_8_0_15(), mysql_5_7_22()];
    for server in share("dumps of MySQL", &servers, Part::new(1, 3)) {
        dumps(&server);
    }
}

/// Files as people write them: what depends on order, on the session or on the server's counting.
const BY_HAND: &str = r#"
CREATE DATABASE h; USE h;
SET sql_mode = '';
SET AUTOCOMMIT=0;
SET autocommit = 0, unique_checks = 0;
CREATE TABLE m (a INT PRIMARY KEY) ENGINE=MyISAM;
INSERT INTO m VALUES (1); INSERT INTO m VALUES (2);
ALTER TABLE m ADD COLUMN b INT;
CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20), UNIQUE KEY v (v)) ENGINE=InnoDB;
CREATE TABLE z (id INT PRIMARY KEY, v INT NOT NULL, d DATE) ENGINE=InnoDB;
CREATE TABLE w (a INT, b VARCHAR(30)) ENGINE=InnoDB;
BEGIN;
INSERT INTO c (v) VALUES ('a'); INSERT INTO c (v) VALUES ('b'),('c');
INSERT INTO c VALUES (NULL,'d'); INSERT INTO c VALUES (0,'e'); INSERT INTO c VALUES (100,'f');
INSERT INTO c VALUES (DEFAULT,'g');
COMMIT;
REPLACE INTO c VALUES (1,'z'); REPLACE INTO c VALUES (2,'z');
INSERT IGNORE INTO c VALUES (7,'a'); INSERT IGNORE INTO c VALUES (8,'a');
INSERT INTO c VALUES (8,'q') ON DUPLICATE KEY UPDATE v = CONCAT(v, '!');
INSERT INTO w VALUES (LAST_INSERT_ID(), 'last');
SET @n = 5;
INSERT INTO w VALUES (@n, 'n'); SET @n = (SELECT MAX(id) FROM c);
INSERT INTO w VALUES (@n, 'm');
ALTER TABLE c ADD COLUMN x INT DEFAULT 3;
LOCK TABLES z WRITE;
INSERT INTO z VALUES (1, 5, '2024-02-31');
INSERT INTO z VALUES (2, 6, '0000-00-00');
ALTER TABLE z ADD KEY (v);
UNLOCK TABLES;
INSERT INTO z VALUES (3, '7x', 'no date');
SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES';
INSERT INTO "w" VALUES (9, 'a\'); INSERT INTO w VALUES (10, ';''\');
SET sql_mode = DEFAULT;
TRUNCATE TABLE z;
INSERT INTO z VALUES (4, 4, NULL);
INSERT INTO w SELECT id, v FROM c;
COMMIT;
"#;

#[test]
fn files_by_hand_come_out_as_with_the_client() {
    for server in draw("files by hand", &[mariadb_10_11(), mysql_8_0_15()], 1) {
        let scratch = Scratch::new();
        let running = start(&server, &scratch);
        let file = write(&scratch, "h.sql", BY_HAND);
        let look = || {
            let mut session = session(&running);
            let mut all = Vec::new();
            for table in ["c", "z", "w"] {
                let rows = session
                    .rows(&format!("SELECT * FROM h.{table} ORDER BY 1, 2"))
                    .unwrap();
                for row in rows {
                    all.push(
                        (0..4)
                            .map(|at| row.at(at).map(str::to_owned))
                            .collect::<Vec<_>>(),
                    );
                }
            }
            all
        };
        refer(&running, &file);
        let wanted = look();
        assert!(wanted.len() > 15);
        for threads in ["--threads=1", "--threads=4"] {
            drop_all(&running);
            let mut child = import(&running, &file, &[threads])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // A transaction left open by one connection would keep another's ALTER waiting for ever.
            let limit = Duration::from_secs(60);
            let mut ended = false;
            let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                until_within(limit, "the import has ended", || {
                    ended = child.try_wait().unwrap().is_some();
                    ended
                });
            }));
            if waited.is_err() {
                child.kill().unwrap();
            }
            let ended = Ended::of(&child.wait_with_output().unwrap());
            done(ended);
            assert_eq!(look(), wanted, "{} {threads}", server.name);
        }
    }
}

/// Returns the options that a message says to resume with.
#[track_caller]
fn to_resume(ended: &Ended) -> Vec<String> {
    let hints = ended.answer["hints"].as_array().expect("hints");
    let mut hints = hints.iter().filter_map(|hint| hint.as_str());
    let hint = hints.rfind(|hint| hint.contains("--from-line"));
    let hint = hint.unwrap_or_else(|| panic!("{ended:?}"));
    let from = hint.find("--from-line").unwrap();
    hint[from..].split_whitespace().map(str::to_owned).collect()
}

fn resume(running: &Running, file: &Path, flags: &[String]) -> Ended {
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    run(import(running, file, &flags))
}

fn table_file(many: u32) -> String {
    let head = PROGRAMS.split("DELIMITER //").next().unwrap();
    format!("SET foreign_key_checks = 0;\n{head}{}", rows(many))
}

/// The same without the table that has no key: of others it is known which rows are there.
fn keyed_file(many: u32) -> String {
    table_file(many)
        .split_inclusive(";\n")
        .filter(|statement| !statement.contains("heap"))
        .collect()
}

/// The statement that fails is named, and what was not run is run when the cause is fixed.
#[test]
fn a_failing_statement_is_named_and_the_rest_follows() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch);
    let good = table_file(1000);
    let good_file = write(&scratch, "good.sql", &good);
    let wanted = wanted(&running, &scratch, &good);
    let lines: Vec<&str> = good.lines().collect();
    let parent = |line: &&str| line.starts_with("INSERT INTO parent VALUES (500,");
    let at = lines.iter().position(parent).unwrap();
    for (instead, said) in [
        ("INSERT INTO parent VALUES (500,;", "1064"),
        ("INSERT INTO parent VALUES (7,77777);", "1062"),
        ("INSERT INTO parentless VALUES (1);", "1146"),
    ] {
        let mut bad = lines.clone();
        bad[at] = instead;
        let file = write(&scratch, "bad.sql", &(bad.join("\n") + "\n"));
        for flags in [&["--threads=4"][..], &["--threads=4", "--indexes=after"]] {
            drop_all(&running);
            let ended = run(import(&running, &file, flags));
            assert_eq!(ended.code, Some(3), "{ended:?}");
            let message = ended.message();
            assert!(message.contains(&format!("line {}", at + 1)), "{message}");
            assert!(message.contains(said), "{message}");
            let mut more = to_resume(&ended);
            more.extend(flags.iter().map(|flag| (*flag).to_owned()));
            done(resume(&running, &good_file, &more));
            assert_same(&wanted, &made(&running), instead);
        }
    }
}

/// One of many rows may be what a single row may not: then each is sent by itself.
#[test]
fn rows_are_not_joined_where_that_would_change_them() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch);
    let text = "SET sql_mode = '';\nCREATE DATABASE d;\nUSE d;\n\
                CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL) ENGINE=InnoDB;\n\
                INSERT INTO t VALUES (1,1);\nINSERT INTO t VALUES (2,NULL);\nINSERT INTO t VALUES (3,3);\n";
    let file = write(&scratch, "null.sql", text);
    let ended = run(import(&running, &file, &[]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let message = ended.message();
    assert!(
        message.contains("line 6") && message.contains("1048"),
        "{message}"
    );
    let found = session(&running)
        .value("SELECT GROUP_CONCAT(a) FROM d.t")
        .unwrap();
    assert_eq!(found.as_deref(), Some("1"));
}

/// Killed anywhere, an import goes on from the line that it said last.
#[test]
fn a_killed_import_resumes_from_the_line_it_said() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch);
    // Rows that can be told apart: for others, going on is refused below.
    let keyed = keyed_file(20_000);
    let file = write(&scratch, "keyed.sql", &keyed);
    let wanted = wanted(&running, &scratch, &keyed);
    for point in [
        "import.before-commit#2",
        "import.committed#1",
        "import.committed#2",
    ] {
        drop_all(&running);
        let flags = ["--threads=3", "--tell-line-every=0s"];
        let ended = run(killed_at(import(&running, &file, &flags), point));
        assert_eq!(ended.signal, Some(9), "{point}: {ended:?}");
        let last = ended.said.rfind("--from-line ").expect("a line");
        let line = ended.said[last + 12..].split_whitespace().next().unwrap();
        let flags = ["--from-line".to_owned(), line.to_owned()];
        let ended = done(resume(&running, &file, &flags));
        assert_same(&wanted, &made(&running), point);
        if point == "import.committed#2" {
            assert!(
                ended.answer["already_there"].as_u64() > Some(0),
                "{}",
                ended.answer
            );
        }
    }
    // Nobody can tell which rows of a table without a unique key are there.
    drop_all(&running);
    let text = table_file(2000).replace("ENGINE=MyISAM", "ENGINE=InnoDB");
    let file = write(&scratch, "unkeyed.sql", &text);
    done(run(import(&running, &file, &[])));
    let ended = run(import(&running, &file, &["--from-line=5000"]));
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert!(ended.message().contains("prog.heap"), "{}", ended.message());
}

/// A connection that breaks is exit code 13, and the import goes on over a new one.
#[test]
fn a_lost_connection_is_reported_and_the_rest_follows() {
    let scratch = Scratch::new();
    let running = start(&mysql_8_0_15(), &scratch);
    let keyed = keyed_file(10_000);
    let file = write(&scratch, "keyed.sql", &keyed);
    let wanted = wanted(&running, &scratch, &keyed);
    drop_all(&running);
    let mut session = session(&running);
    session
        .run("CREATE USER u@'%' IDENTIFIED WITH mysql_native_password BY ''")
        .unwrap();
    session.run("GRANT ALL ON *.* TO u@'%'").unwrap();
    let proxy = Proxy::to(running.port().expect("a port"));
    // The connections for rows come first.
    proxy.cut_after(&[30_000, 30_000]);
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = program.command(&["import", "--no-defaults", "-u", "u", "-h", "127.0.0.1"]);
    command.args(["--ssl-mode=DISABLED", "--threads=2", "-P"]);
    command.arg(proxy.port().to_string()).arg(&file);
    let ended = run(command);
    assert_eq!(ended.code, Some(13), "{ended:?}");
    done(resume(&running, &file, &to_resume(&ended)));
    session.run("DROP USER u@'%'").unwrap();
    // Views belong to who made them, which is another account here.
    assert_eq!(wanted.sums, made(&running).sums);
}

/// A server that dies is exit code 13; when it is up again, the import goes on.
#[test]
fn a_server_that_dies_is_reported_and_the_rest_follows() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let launch = server.prepare(&scratch.join("data"), &SMALL);
    let running = server.run(&launch);
    let keyed = keyed_file(30_000);
    let file = write(&scratch, "keyed.sql", &keyed);
    let wanted = wanted(&running, &scratch, &keyed);
    drop_all(&running);
    let mut command = import(&running, &file, &["--threads=2"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut looking = session(&running);
    until_within(Duration::from_secs(60), "rows are in", || {
        let rows = looking.value("SELECT COUNT(*) > 1000 FROM prog.parent");
        matches!(rows, Ok(Some(yes)) if yes == "1")
    });
    drop(looking);
    running.kill();
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(13), "{ended:?}");
    let running = server.run(&launch);
    done(resume(&running, &file, &to_resume(&ended)));
    assert_same(&wanted, &made(&running), "after a crash");
}

fn packed(program: &str, args: &[&str], text: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{program}: {e}"));
    let mut to = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || to.write_all(text).unwrap());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        output.stdout
    })
}

/// Packed files are unpacked, whatever they are called; those cut off fail, and say so.
#[test]
fn compressed_files_are_read_and_cut_ones_named() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch);
    let text = table_file(2000);
    let plain = write(&scratch, "plain.sql", &text);
    let wanted = wanted(&running, &scratch, &text);
    for (program, args) in [
        ("gzip", &["-c"][..]),
        ("xz", &["-c", "-1"]),
        ("zstd", &["-q", "-c"]),
    ] {
        let bytes = match program {
            "zstd" => zstd::encode_all(text.as_bytes(), 1).unwrap(),
            _ => packed(program, args, text.as_bytes()),
        };
        let file = scratch.join("packed");
        std::fs::write(&file, &bytes).unwrap();
        drop_all(&running);
        done(run(import(&running, &file, &[])));
        assert_same(&wanted, &made(&running), program);
        drop_all(&running);
        let mut command = import(&running, Path::new("-"), &[]);
        command.stdin(std::fs::File::open(&file).unwrap());
        done(run(command));
        assert_same(&wanted, &made(&running), "standard input");
        std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        drop_all(&running);
        let ended = run(import(&running, &file, &[]));
        assert!(matches!(ended.code, Some(1 | 3)), "{program}: {ended:?}");
        let message = ended.message();
        assert!(
            message.contains("failed to read the file after line"),
            "{program}: {message}"
        );
        // What had been read and not run yet counts as not run.
        done(resume(&running, &plain, &to_resume(&ended)));
        assert_same(&wanted, &made(&running), "the rest of a cut file");
    }
    // Plain, but cut off in the middle of a string.
    let cut = text.rfind("a\n;b").unwrap();
    let file = write(&scratch, "cut.sql", &text[..cut]);
    drop_all(&running);
    let ended = run(import(&running, &file, &[]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(
        ended.message().contains("ends inside a string"),
        "{}",
        ended.message()
    );
    done(resume(&running, &plain, &to_resume(&ended)));
    assert_same(&wanted, &made(&running), "the rest of a cut file");
}

/// What the server would not take is named before it is sent, and memory stays what it was.
#[test]
fn statements_too_long_for_the_server_are_named() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch);
    session(&running)
        .run("SET GLOBAL max_allowed_packet = 1048576")
        .unwrap();
    let long = "x".repeat(3 << 20);
    let text = format!(
        "CREATE DATABASE d;\nUSE d;\nCREATE TABLE t (a INT PRIMARY KEY, b LONGTEXT);\nINSERT INTO t VALUES (1,'y');\nINSERT INTO t VALUES (2,'{long}');\n"
    );
    let file = write(&scratch, "long.sql", &text);
    let ended = run(import(&running, &file, &[]));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let message = ended.message();
    assert!(
        message.contains("line 5") && message.contains("max_allowed_packet"),
        "{message}"
    );
    session(&running)
        .run("SET GLOBAL max_allowed_packet = 16777216")
        .unwrap();
    done(resume(&running, &file, &to_resume(&ended)));
    let sum = session(&running)
        .value("SELECT SUM(LENGTH(b)) FROM d.t")
        .unwrap();
    assert_eq!(sum.as_deref(), Some("3145729"));
}

/// Rows that wait too long for somebody else's lock are tried again.
#[test]
fn rows_that_others_lock_are_tried_again() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch);
    let mut holder = session(&running);
    for sql in [
        "SET GLOBAL innodb_lock_wait_timeout = 1",
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY)",
        "BEGIN",
        "INSERT INTO d.t VALUES (5)",
    ] {
        holder.run(sql).unwrap();
    }
    let file = write(
        &scratch,
        "locked.sql",
        "USE d;\nINSERT INTO t VALUES (4),(5),(6);\n",
    );
    let mut command = import(&running, &file, &[]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    until_within(Duration::from_secs(60), "it was tried twice more", || {
        let sql = "SHOW GLOBAL STATUS LIKE 'Com_rollback'";
        let row = holder.one(sql).unwrap().unwrap();
        let tries: Option<u64> = row.at(1).and_then(|text| text.parse().ok());
        tries >= Some(2) || child.try_wait().unwrap().is_some()
    });
    holder.run("ROLLBACK").unwrap();
    let ended = done(Ended::of(&child.wait_with_output().unwrap()));
    assert_eq!(ended.answer["rows"], 3, "{}", ended.answer);
    let rows = holder.value("SELECT GROUP_CONCAT(a ORDER BY a) FROM d.t");
    assert_eq!(rows.unwrap().as_deref(), Some("4,5,6"));
}
