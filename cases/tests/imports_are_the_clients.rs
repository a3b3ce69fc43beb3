//! Does an import make of a hostile file what the reference client makes of it?

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer, effort};
use std::process::{Command, Output};

/// Each side has two databases, which files call `{1}` and `{2}`.
const OURS: [&str; 2] = ["ours_1", "ours_2"];
const THEIRS: [&str; 2] = ["thrs_1", "thrs_2"];
/// What both databases have at first.
const TABLES: &str = "CREATE TABLE t (i INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(200) CHARACTER SET utf8mb4, b VARBINARY(200)) ENGINE=InnoDB; \
     CREATE TABLE k (v VARCHAR(200) CHARACTER SET utf8mb4) ENGINE=InnoDB";

struct Room {
    scratch: Scratch,
    running: Running,
}

impl Room {
    fn new(server: &TestServer) -> Self {
        let scratch = Scratch::new();
        let launch = server.prepare(&scratch.join("data"), &SMALL);
        let running = server.run(&launch);
        Self { scratch, running }
    }

    fn client(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.args(["--no-defaults", "-u", "root", "-S"]);
        command.arg(self.running.socket());
        command
    }

    fn fresh(&self) {
        let mut session = self.running.session().unwrap();
        for name in OURS.iter().chain(&THEIRS) {
            session
                .run(&format!("DROP DATABASE IF EXISTS {name}"))
                .unwrap();
            session.run(&format!("CREATE DATABASE {name}")).unwrap();
            session.run(&format!("USE {name}")).unwrap();
            for table in TABLES.split("; ") {
                session.run(table).unwrap();
            }
        }
    }

    /// Writes a side's file.
    fn file(&self, text: &[u8], databases: [&str; 2]) -> std::path::PathBuf {
        let path = self.scratch.join(format!("{}.sql", databases[0]));
        std::fs::write(&path, named(text, databases)).unwrap();
        path
    }

    fn theirs(&self, text: &[u8], flags: &[&str]) -> Output {
        let file = self.file(text, THEIRS);
        let mut command = self.client("mariadb");
        command.args(["--default-character-set=utf8mb4"]);
        command.args(flags).arg(THEIRS[0]);
        command.stdin(std::fs::File::open(file).unwrap());
        command.output().expect("mariadb")
    }

    fn ours(&self, text: &[u8], flags: &[&str]) -> Ended {
        let file = self.file(text, OURS);
        let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let mut command = program.command(&["import", "--no-defaults", "-u", "root", "-S"]);
        command.arg(self.running.socket()).arg(file);
        command.args(flags).args(["--database", OURS[0]]);
        run(command)
    }

    /// All that a side has, as another program prints it.
    fn made(&self, databases: [&str; 2]) -> String {
        let mut all = String::new();
        for name in databases {
            let mut command = self.client("mariadb-dump");
            command.args(["--routines", "--triggers", "--events", "--hex-blob"]);
            let output = command
                .args(["--compact", "--skip-extended-insert", name])
                .output();
            let output = output.expect("mariadb-dump");
            assert!(output.status.success(), "{output:?}");
            all.push_str(&String::from_utf8_lossy(&output.stdout));
        }
        all.replace(databases[0], "{1}")
            .replace(databases[1], "{2}")
    }

    /// Has both run a file, and says what differs.
    fn compare(&self, text: &[u8], ours: &[&str], theirs: &[&str]) -> Option<String> {
        self.fresh();
        let wanted = self.theirs(text, theirs);
        let ended = self.ours(text, ours);
        let said = String::from_utf8_lossy(&wanted.stderr);
        let (code, message) = (ended.code, &ended.said);
        if (code == Some(0)) != wanted.status.success() {
            return Some(format!("exit code {code:?}: {message}\nthe client: {said}"));
        }
        let (one, other) = (self.made(OURS), self.made(THEIRS));
        let odd = one
            .lines()
            .zip(other.lines())
            .find(|(one, other)| one != other);
        (one != other).then(|| format!("{odd:?}\n{one}\nthe client:\n{other}"))
    }
}

/// Puts the names of a side's databases in.
fn named(text: &[u8], databases: [&str; 2]) -> Vec<u8> {
    let mut all = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let number = match rest {
            [b'{', b'1', b'}', ..] => Some(0),
            [b'{', b'2', b'}', ..] => Some(1),
            _ => None,
        };
        if let Some(number) = number {
            all.extend_from_slice(databases[number].as_bytes());
            rest = &rest[3..];
        } else {
            all.push(*first);
            rest = behind;
        }
    }
    all
}

/// Files that came out otherwise once, or may.
const FILES: [(&str, &[u8]); 34] = [
    ("mark", b"\xef\xbb\xbfINSERT INTO t (v) VALUES ('a');\n"),
    ("use", b"use {2}\nINSERT INTO t (v) VALUES ('a');\nUSE `{1}`;INSERT INTO t (v) VALUES ('b');use {2};\nINSERT INTO t (v) VALUES ('c')"),
    ("use in quotes", b"use '{2}';\nINSERT INTO t (v) VALUES ('a');\n  USE \"{1}\" and more\nINSERT INTO t (v) VALUES ('b');\n"),
    ("use by letter", b"\\u {2}\nINSERT INTO t (v) VALUES ('a');\n\\u{1}\nINSERT INTO t (v) VALUES ('b');\n"),
    ("use of nothing", b"INSERT INTO t (v) VALUES ('a');\nuse nowhere\nINSERT INTO t (v) VALUES ('b');\n"),
    ("delimiters", b"delimiter //\nINSERT INTO t (v) VALUES (';')//\n\\d $$\nINSERT INTO t (v) VALUES ('//') $$\ndelimiter ';'\nINSERT INTO t (v) VALUES ('$$');\n"),
    ("comments as delimiters", b"delimiter #\nINSERT INTO t (v) VALUES ('a')#\ndelimiter --\nINSERT INTO t (v) VALUES ('b')--\n"),
    ("several", b"delimiter //\nINSERT INTO t (v) VALUES ('a'); INSERT INTO t (v) VALUES ('b');\n//\nUSE {2}; INSERT INTO t (v) VALUES ('c'); CREATE TABLE u (a INT)//\nINSERT INTO u VALUES (1)//\n"),
    ("several, one wrong", b"delimiter //\nINSERT INTO t (v) VALUES ('a'); SELECT nothing; INSERT INTO t (v) VALUES ('b')//\nINSERT INTO t (v) VALUES ('c')//"),
    ("lines of Windows", b"INSERT INTO t (v) VALUES ('a\r\nb\rc');\r\nDELIMITER //\r\nCREATE PROCEDURE p ()\r\nBEGIN\r\n  SELECT 1;\r\nEND//\r\nDELIMITER ;\r\nINSERT INTO t (v) VALUES ('d');\r\n"),
    ("zero byte", b"INSERT INTO t (v) VALUES ('a');\nINSERT INTO t (v) VALUES ('b\0c');\n"),
    ("letters", b"INSERT INTO t (v) VALUES ('a')\\G\nINSERT INTO t (v) VALUES ('b')\\g INSERT INTO t (v) VALUES (\\N); INSERT INTO t (v) VALUES ('x') \\c\nINSERT INTO t (v) VALUES ('c') \\q\nINSERT INTO t (v) VALUES ('d');"),
    ("quit", b"INSERT INTO t (v) VALUES ('a');\nquit\nINSERT INTO t (v) VALUES ('b');\n"),
    ("what only shows", b"status\nhelp\nprint\nrehash\nwarnings\nnowarning\nnotee\nnopager\nprompt x\npager cat\n?\ngo\nego\nclear\n\\p \\s\nINSERT INTO t (v) VALUES ('a');\n"),
    ("no such command", b"INSERT INTO t (v) VALUES ('a');\n\\y\nINSERT INTO t (v) VALUES ('b');\n"),
    ("computed mode", b"SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES');\nINSERT INTO t (v) VALUES ('a\\');\nINSERT INTO t (v) VALUES ('b\\');\n"),
    ("mode of a variable", b"SET @old = @@sql_mode;\nSET @new = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES');\nSET @@session.sql_mode = @new;\nINSERT INTO t (v) VALUES ('a\\');\nSET sql_mode = @old;\nINSERT INTO t (v) VALUES ('\\'b');\n"),
    ("mode of a query", b"SELECT CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES') INTO @m;\nSET SESSION sql_mode = @m;\nINSERT INTO t (v) VALUES ('a\\'), (';\\');\n"),
    ("prepared mode", b"PREPARE s FROM 'SET sql_mode = ''NO_BACKSLASH_ESCAPES''';\nEXECUTE s;\nINSERT INTO t (v) VALUES ('a\\');\nINSERT INTO t (v) VALUES (';\\');\n"),
    ("names in double quotes", b"SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES');\nCREATE TABLE \"a\\\" (i INT);\nINSERT INTO \"a\\\" VALUES (1);\nINSERT INTO \"t\" (\"v\") VALUES ('b;');\n"),
    ("gbk", b"SET NAMES gbk;\nINSERT INTO t (v) VALUES ('\x81\\');\nINSERT INTO t (v) VALUES ('\x81\\\\'');\nSET NAMES utf8mb4;\nINSERT INTO t (v) VALUES ('\xc3\xa9\\'');\n"),
    ("gbk by letter", b"\\C gbk\nINSERT INTO t (v) VALUES ('\x81\\'), ('\x81`');\ncharset utf8mb4\nINSERT INTO t (v) VALUES ('\xc3\xa9\\'');\n"),
    ("sjis", b"/*!40101 SET NAMES sjis */;\nINSERT INTO t (v) VALUES ('\x83\\');\nINSERT INTO t (b) VALUES (_binary '\x83\\');\nSET NAMES latin1;\nINSERT INTO t (v) VALUES ('\x83\\'');\n"),
    ("cp932", b"SET character_set_client = cp932;\nINSERT INTO t (b) VALUES ('\x95\\;');\nINSERT INTO t (b) VALUES ('a');\n"),
    ("big5", b"SET NAMES big5;\nINSERT INTO t (v) VALUES ('\xa5\\');\nINSERT INTO t (v) VALUES ('\xa6`;');\n"),
    ("not quite gbk", b"SET NAMES gbk;\nINSERT INTO t (b) VALUES (_binary '\x81');\nINSERT INTO t (b) VALUES (_binary '\xff\\'');\n"),
    ("taken back", b"START TRANSACTION;\nINSERT INTO t (v) VALUES ('a');\nSAVEPOINT s;\nINSERT INTO t (v) VALUES ('b');\nROLLBACK TO s;\nCOMMIT;\nBEGIN;\nINSERT INTO t (v) VALUES ('c');\nROLLBACK;\nINSERT INTO t (v) VALUES ('d');\nROLLBACK;\n"),
    ("taken back without autocommit", b"SET autocommit = 0;\nINSERT INTO t (v) VALUES ('a');\nCOMMIT;\nINSERT INTO t (v) VALUES ('b');\nROLLBACK;\nINSERT INTO t (v) VALUES ('c');\nCREATE TABLE u (a INT);\nINSERT INTO u VALUES (1);\nROLLBACK WORK;\nSET autocommit = 1;\nINSERT INTO t (v) VALUES ('d');\n"),
    ("left open", b"START TRANSACTION; INSERT INTO t (v) VALUES ('a'); COMMIT; START TRANSACTION; INSERT INTO t (v) VALUES ('rollback');\n"),
    ("locks within", b"BEGIN; INSERT INTO t (v) VALUES ('a'); LOCK TABLES t WRITE; INSERT INTO t (v) VALUES ('b'); UNLOCK TABLES; ROLLBACK;\n"),
    ("no database", b"DROP DATABASE {1}; CREATE DATABASE {1}; CREATE TABLE u (a INT);\n"),
    ("executed comments", b"/*!40000 INSERT INTO t (v) VALUES ('a;') */;\n/*!99999 nothing; */;\nINSERT INTO t (v) /* ; ' */ VALUES ('b') -- ; '\n;\n--nothing;\n#;\nINSERT /*+ x; */ INTO t (v) VALUES ('/* c');\n"),
    ("names with backslashes", b"CREATE TABLE `a\\` (i INT); INSERT INTO `a\\` VALUES (1);\nCREATE TABLE `b;``c` (i INT);\n"),
    ("rows limited", b"SET sql_select_limit = 0;\nSET sql_mode = 'NO_BACKSLASH_ESCAPES';\nINSERT INTO t (v) VALUES ('\\');\nINSERT INTO t (v) VALUES (';\\');\n"),
];

#[test]
fn files_that_came_out_otherwise() {
    for (server, every) in [(mariadb_10_11(), 1), (mysql_8_0_15(), 3)] {
        let room = Room::new(&server);
        let mut odd = Vec::new();
        for (what, text) in FILES.iter().step_by(every) {
            let found = room.compare(text, &["--threads=3"], &["--comments"]);
            odd.extend(found.map(|found| format!("{what}: {found}")));
        }
        assert!(odd.is_empty(), "{}: {}", server.name, odd.join("\n---\n"));
    }
}
