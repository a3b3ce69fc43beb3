//! Does an import make of a hostile file what the reference client makes of it?

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{self, Part, share};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};
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

    /// All that each side has, as another program prints it.
    fn made(&self) -> [String; 2] {
        let mut command = self.client("mariadb-dump");
        command.args(["--routines", "--triggers", "--events", "--hex-blob"]);
        command.args(["--compact", "--skip-extended-insert"]);
        command.args(["--no-create-db", "--databases"]);
        let output = command.args(OURS).args(THEIRS).output();
        let output = output.expect("mariadb-dump");
        assert!(output.status.success(), "{output:?}");
        // Each part begins with the name of its database. What comes before all of them is of no database.
        let mut sides = [String::new(), String::new()];
        let mut side = None;
        for line in String::from_utf8_lossy(&output.stdout).split('\n') {
            let begins =
                |names: [&str; 2]| names.iter().any(|name| *line == format!("USE `{name}`;"));
            side = match () {
                () if begins(OURS) => Some(0),
                () if begins(THEIRS) => Some(1),
                () => side,
            };
            if let Some(side) = side {
                let text: &mut String = &mut sides[side];
                text.push_str(line);
                text.push('\n');
            }
        }
        let [ours, theirs] = sides;
        [(ours, OURS), (theirs, THEIRS)].map(|(text, [one, other])| {
            let text = text.trim().replace(one, "{1}");
            text.replace(other, "{2}")
        })
    }

    /// Has both run a file, and says what differs.
    fn compare(&self, text: &[u8], ours: &[&str], theirs: &[&str]) -> Option<String> {
        self.fresh();
        let wanted = self.theirs(text, theirs);
        let ended = self.ours(text, ours);
        let said = String::from_utf8_lossy(&wanted.stderr);
        let (code, message) = (ended.code, &ended.said);
        if (code == Some(0)) != wanted.status.success() {
            let message = format!("{message} {}", ended.answer);
            return Some(format!("exit code {code:?}: {message}\nthe client: {said}"));
        }
        let [one, other] = self.made();
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
const FILES: [(&str, &[u8]); 39] = [
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
    ("sjis", b"/*!40101 SET NAMES sjis */;\nINSERT INTO t (v) VALUES ('\x83\\');\nINSERT INTO t (b) VALUES (_binary '\x83\\');\nSET NAMES utf8mb4;\nINSERT INTO t (v) VALUES ('\xc3\xa9\\'');\n"),
    ("cp932", b"SET NAMES cp932;\nINSERT INTO t (b) VALUES (_binary '\x95\\;');\nINSERT INTO t (b) VALUES ('a');\n"),
    ("big5", b"SET NAMES big5;\nINSERT INTO t (v) VALUES ('\xa5\\');\nINSERT INTO t (v) VALUES ('\xa6`;');\n"),
    ("not quite gbk", b"SET NAMES gbk;\nINSERT INTO t (b) VALUES (_binary '\x81');\nINSERT INTO t (b) VALUES (_binary '\xff\\'');\n"),
    ("taken back", b"START TRANSACTION;\nINSERT INTO t (v) VALUES ('a');\nSAVEPOINT s;\nINSERT INTO t (v) VALUES ('b');\nROLLBACK TO s;\nCOMMIT;\nBEGIN;\nINSERT INTO t (v) VALUES ('c');\nROLLBACK;\nINSERT INTO t (v) VALUES ('d');\nROLLBACK;\n"),
    ("taken back without autocommit", b"SET autocommit = 0;\nINSERT INTO t (v) VALUES ('a');\nCOMMIT;\nINSERT INTO t (v) VALUES ('b');\nROLLBACK;\nINSERT INTO t (v) VALUES ('c');\nCREATE TABLE u (a INT);\nINSERT INTO u VALUES (1);\nROLLBACK WORK;\nSET autocommit = 1;\nINSERT INTO t (v) VALUES ('d');\n"),
    ("left open", b"START TRANSACTION; INSERT INTO t (v) VALUES ('a'); COMMIT; START TRANSACTION; INSERT INTO t (v) VALUES ('rollback');\n"),
    ("locks within", b"BEGIN; INSERT INTO t (v) VALUES ('a'); LOCK TABLES t WRITE; INSERT INTO t (v) VALUES ('b'); UNLOCK TABLES; ROLLBACK;\n"),
    ("no database", b"DROP DATABASE {1}; CREATE DATABASE {1}; CREATE TABLE u (a INT);\n"),
    ("executed comments", b"/*!40000 INSERT INTO t (v) VALUES ('a;') */;\n/*!99999 nothing; */;\nINSERT INTO t (v) /* ; ' */ VALUES ('b') -- ; '\n;\n--nothing;\n#;\nINSERT /*+ x; */ INTO t (v) VALUES ('/* c');\n"),
    ("names with backslashes", b"CREATE TABLE `a\\` (i INT); INSERT INTO `a\\` VALUES (1);\nCREATE TABLE `b;``c` (i INT);\n"),
    ("unlocked", b"SET autocommit = 0;\nLOCK TABLES t WRITE;\nINSERT INTO t (v) VALUES ('a');\nUNLOCK TABLES;\nINSERT INTO t (v) VALUES ('b');\nUNLOCK TABLES;\nROLLBACK;\n"),
    ("settings and rows", b"INSERT INTO k (v) VALUES ('a');\nINSERT INTO k (v) VALUES ('b');\nSET autocommit = 0, unique_checks = 0;\nINSERT INTO k (v) VALUES ('c');\nROLLBACK;\n"),
    ("backslashes at ends", b"INSERT INTO t (v) VALUES ('a') \\\n;\n\\\nINSERT INTO t (v) VALUES ('b');\n\\"),
    ("a database among several", b"delimiter //\nCREATE TABLE u (a INT); USE {2}; SET sql_mode = 'NO_BACKSLASH_ESCAPES'//\nINSERT INTO t (v) VALUES ('x\\n')//\nINSERT INTO t (v) VALUES ('y\\n')//\n"),
    ("a long delimiter", b"delimiter abcdefghijklmno\nINSERT INTO t (v) VALUES ('x')abcdefghijklmno\nINSERT INTO t (v) VALUES ('y')abcdefghijklmno\n"),
    ("rows limited", b"SET sql_select_limit = 0;\nSET sql_mode = 'NO_BACKSLASH_ESCAPES';\nINSERT INTO t (v) VALUES ('\\');\nINSERT INTO t (v) VALUES (';\\');\n"),
];

/// The client reads a file by its own character set, whatever SET NAMES says; an import, as the server does.
fn client_reads(what: &str) -> String {
    let sets = ["gbk", "sjis", "cp932", "big5"];
    let set = sets.iter().find(|set| what.ends_with(**set));
    format!("--default-character-set={}", set.unwrap_or(&"utf8mb4"))
}

#[test]
fn files_that_came_out_otherwise() {
    // MySQL takes the longest, and has some of a third in each run.
    let third: Vec<_> = FILES.into_iter().step_by(3).collect();
    let some = share("hostile files", &third, Part::new(0, 3));
    for (server, files) in [(mariadb_10_11(), FILES.to_vec()), (mysql_8_0_15(), some)] {
        let room = Room::new(&server);
        let mut odd = Vec::new();
        for (what, text) in files {
            let theirs = ["--comments", &client_reads(what)];
            let found = room.compare(text, &["--threads=3"], &theirs);
            odd.extend(found.map(|found| format!("{what}: {found}")));
        }
        assert!(odd.is_empty(), "{}: {}", server.name, odd.join("\n---\n"));
    }
}

/// Numbers that a seed decides.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// A file that is written with what stands in it known so far.
struct Writer {
    chance: Chance,
    text: String,
    delimiter: &'static str,
    escapes: bool,
    ansi: bool,
    made: usize,
    /// No comment stands in front of a command: one that is kept is a statement for the client, which then does
    /// not see the command.
    keeps: bool,
}

impl Writer {
    fn new(seed: u64, keeps: bool) -> Self {
        Self {
            chance: Chance(seed),
            text: String::new(),
            delimiter: ";",
            escapes: true,
            ansi: false,
            made: 0,
            keeps,
        }
    }

    /// Text in quotes, of what a reader may stumble over.
    fn literal(&mut self) -> String {
        let parts = [
            "'",
            "\"",
            "`",
            "\\",
            ";",
            "//",
            "$$",
            "--",
            "-- ",
            "#",
            "/*",
            "*/",
            "\n",
            " use {2}\n",
            "\ndelimiter ;;\n",
            "\u{e9}",
            "\u{3042}",
            "a",
            "xdelimiter",
            "\\N",
            "/*!40101 ",
            "ROLLBACK",
        ];
        let quote = if self.ansi || self.chance.below(3) > 0 {
            '\''
        } else {
            '"'
        };
        let mut text = String::from(quote);
        for _ in 0..self.chance.below(6) {
            match self.chance.of(&parts) {
                "\\" if self.escapes => text.push_str("\\\\"),
                "\\N" if self.escapes => text.push_str("\\N"),
                part if part.starts_with(quote) => {
                    text.push_str(part);
                    text.push(quote);
                }
                part => text.push_str(part),
            }
        }
        text.push(quote);
        text
    }

    fn end(&mut self) {
        let end = match self.chance.below(8) {
            0 => "\\G".to_owned(),
            1 => format!(" {}", self.delimiter),
            2 => format!(
                " -- it's {}\n{}",
                self.delimiter.replace('-', ""),
                self.delimiter
            ),
            _ => self.delimiter.to_owned(),
        };
        self.text.push_str(&end);
        self.text
            .push_str(self.chance.of(&["\n", "\n", "\n\n", "\r\n"]));
    }

    fn rows(&mut self) {
        let table = self.chance.of(&["t", "k", "`t`", "{1}.k", "t "]);
        let gap = self.chance.of(&[" ", "\n", " /* ' */ ", "\t"]);
        self.text
            .push_str(&format!("INSERT INTO {table}{gap}(v) VALUES"));
        for row in 0..=self.chance.below(3) {
            let value = self.literal();
            let comma = if row > 0 { "," } else { " " };
            self.text.push_str(&format!("{comma}({value})"));
        }
        self.end();
    }

    fn mode(&mut self) {
        let (sql, escapes, ansi) = match self.chance.below(5) {
            0 => (
                "SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')",
                false,
                self.ansi,
            ),
            1 => ("SET @m = 'ANSI_QUOTES'; SET sql_mode = @m", true, true),
            2 => (
                "SET SESSION sql_mode = REPLACE(@@sql_mode, 'ANSI_QUOTES', '')",
                self.escapes,
                false,
            ),
            3 => (
                "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'",
                false,
                true,
            ),
            _ => ("SET sql_mode = ''", true, false),
        };
        for part in sql.split("; ") {
            self.text.push_str(part);
            self.end();
        }
        (self.escapes, self.ansi) = (escapes, ansi);
    }

    fn program(&mut self) {
        if self.delimiter == ";" {
            self.change_delimiter();
        }
        if self.delimiter == ";" {
            return;
        }
        self.made += 1;
        let literal = self.literal();
        let text = format!(
            "CREATE PROCEDURE p{} ()\nBEGIN -- it's\n  /* a; \n b */ SELECT {literal};\r\n # \"\n\n  SELECT 2; END",
            self.made
        );
        self.text.push_str(&text);
        self.end();
    }

    fn change_delimiter(&mut self) {
        self.delimiter = ["//", ";;", "$$", ";", "|"][self.chance.below(5)];
        let begin = self.chance.of(&["\ndelimiter ", "\nDELIMITER  ", "\n\\d "]);
        self.text.push_str(&format!("{begin}{}\n", self.delimiter));
    }

    fn transaction(&mut self) {
        let begin = self
            .chance
            .of(&["BEGIN", "START TRANSACTION", "SET autocommit = 0"]);
        self.text.push_str(begin);
        self.end();
        for _ in 0..self.chance.below(3) {
            self.rows();
        }
        if self.chance.below(2) == 0 {
            self.text.push_str("SAVEPOINT s");
            self.end();
            self.rows();
            self.text.push_str("ROLLBACK TO s");
            self.end();
        }
        self.text
            .push_str(self.chance.of(&["COMMIT", "ROLLBACK", "rollback work"]));
        self.end();
        self.text.push_str("SET autocommit = 1");
        self.end();
    }

    fn piece(&mut self) {
        match self.chance.below(12) {
            0 => self.mode(),
            1 => self.program(),
            2 => self.change_delimiter(),
            3 => self.transaction(),
            4 if !self.keeps => {
                let line = self.chance.of(&[
                    "\n-- it's; \"\n",
                    "\n--x;\n",
                    "\n# `\n",
                    "\n/* ; ' \n */\n",
                    "\nstatus\n",
                    "\n\n",
                ]);
                self.text.push_str(line);
            }
            5 => {
                let line = self
                    .chance
                    .of(&["\nuse {2}\n", "\nUSE `{1}`\n", "\n\\u {1}\n"]);
                self.text.push_str(line);
            }
            6 => {
                self.text
                    .push_str("/*!40000 INSERT INTO k VALUES ('x;') */");
                self.end();
            }
            _ => self.rows(),
        }
    }
}

fn generated(seed: u64, keeps: bool) -> String {
    let mut writer = Writer::new(seed, keeps);
    if writer.chance.below(3) == 0 {
        writer.text.push('\u{feff}');
    }
    for _ in 0..40 {
        writer.piece();
    }
    match writer.chance.below(3) {
        0 => writer.text.replace("\r\n", "\n").replace('\n', "\r\n"),
        _ => writer.text,
    }
}

fn generated_into(server: &TestServer) {
    let room = Room::new(server);
    let seed = effort::seed();
    for round in 0..effort::rounds("generated files", 4, 400) {
        let seed = seed.wrapping_add(u64::from(round));
        let text = generated(seed, round % 2 == 0);
        // As either client has it: comments kept or left out.
        let (ours, theirs): (&[&str], &str) = match round % 2 {
            0 => (&["--threads=3"], "--comments"),
            _ => (&["--threads=2", "--skip-comments"], "--skip-comments"),
        };
        let theirs = ["--default-character-set=utf8mb4", theirs];
        let found = room.compare(text.as_bytes(), ours, &theirs);
        assert!(
            found.is_none(),
            "{} seed {seed}: {}\n{text}",
            server.name,
            found.unwrap()
        );
    }
}

// One of the two in each run.

#[test]
fn generated_files_into_mariadb() {
    for server in share("generated files", &[mariadb_10_11()], Part::new(0, 2)) {
        generated_into(&server);
    }
}

#[test]
fn generated_files_into_mysql() {
    for server in share("generated files", &[mysql_8_0_15()], Part::new(1, 2)) {
        generated_into(&server);
    }
}
