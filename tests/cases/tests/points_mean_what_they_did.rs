//! Does a restore to a point give the values that the source has, where an event leaves something to the
//! server that applies it: the time zone, the default engine, limits, who may write functions?

use evenkeel_cases::points::{archive, mark, restore_to};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_server::connect::{Row, Session};
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer};
use fastrand::Rng;

/// A zone that is far from any that a test runs in, and has no summer time.
const ZONE: &str = "Asia/Tokyo";

/// What the source is set to, other than by default.
const SETTINGS: [&str; 7] = [
    "--default-storage-engine=MyISAM",
    "--character-set-server=latin1",
    "--collation-server=latin1_general_ci",
    "--innodb-strict-mode=OFF",
    "--group-concat-max-len=7",
    "--div-precision-increment=9",
    "--loose-log-bin-trust-function-creators=ON",
];

/// In every format of the log: data, and definitions that fill in data.
const ROUND: [&str; 9] = [
    "CREATE DATABASE IF NOT EXISTS of_the_server",
    "CREATE TABLE m_FORMAT (id INT PRIMARY KEY, at DATETIME, stamp TIMESTAMP NULL, what VARCHAR(60))",
    "INSERT INTO m_FORMAT VALUES (1, NOW(), NOW(), 'now')",
    "INSERT INTO m_FORMAT SELECT 2, FROM_UNIXTIME(86400 * 365), '2001-02-03 04:05:06', \
     UNIX_TIMESTAMP('2001-02-03 04:05:06')",
    "INSERT INTO m_FORMAT SELECT 3, NULL, NULL, GROUP_CONCAT(id) FROM m_FORMAT",
    "INSERT INTO m_FORMAT SELECT 4, NULL, NULL, 1 / 3",
    "INSERT INTO m_FORMAT SELECT 5, CURDATE(), NULL, @@session.time_zone",
    "ALTER TABLE m_FORMAT ADD COLUMN added DATETIME DEFAULT CURRENT_TIMESTAMP",
    "ALTER TABLE m_FORMAT ADD COLUMN added_stamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP",
];

const FORMATS: [&str; 3] = ["STATEMENT", "MIXED", "ROW"];

/// Makes one round in a format, with a function whose author has to be trusted.
fn round(session: &mut Session, format: &str) {
    let mut run = |sql: &str| {
        let done = session.run(sql);
        done.unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
    };
    run(&format!("SET SESSION binlog_format = {format}"));
    for sql in ROUND {
        run(&sql.replace("FORMAT", format));
    }
    run(&format!(
        "CREATE FUNCTION f_{format}() RETURNS INT RETURN 1 + UNIX_TIMESTAMP()"
    ));
}

/// Returns all that could differ, as one text.
fn content(session: &mut Session) -> String {
    session.run("SET SESSION time_zone = '+00:00'").unwrap();
    session
        .run("SET SESSION group_concat_max_len = 1000")
        .unwrap();
    session.run("USE points").unwrap();
    let mut all = Vec::new();
    for format in FORMATS {
        let rows = session.rows(&format!("SELECT * FROM m_{format} ORDER BY id"));
        for row in rows.unwrap() {
            let cells: Vec<&str> = (0..6).map(|n| row.at(n).unwrap_or("NULL")).collect();
            all.push(format!("{format}: {}", cells.join(" ")));
        }
    }
    for sql in [
        "SELECT CONCAT(table_name, ' ', engine, ' ', table_collation) FROM \
         information_schema.tables WHERE table_schema = 'points' ORDER BY 1",
        "SELECT CONCAT(schema_name, ' ', default_collation_name) FROM information_schema.schemata \
         WHERE schema_name = 'of_the_server'",
        "SELECT CONCAT(routine_name, ' ', routine_definition) FROM information_schema.routines \
         WHERE routine_schema = 'points' ORDER BY 1",
    ] {
        let rows = session.rows(sql).unwrap();
        all.extend(
            rows.iter()
                .map(|row| row.at(0).unwrap_or("NULL").to_owned()),
        );
    }
    all.join("\n")
}

fn case(server: TestServer) {
    let fs = LoopFs::xfs(3 << 30);
    let mut args = SMALL.to_vec();
    args.extend(SETTINGS);
    let mysql_8 = server.id == "mysql-8.0.15" || server.id == "mysql-9";
    if server.id == "mysql-9" {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
        args.push("--innodb-redo-log-capacity=64M");
    }
    if mysql_8 {
        args.push("--explicit-defaults-for-timestamp=OFF");
    }
    let mut launch = server.prepare(&fs.join("data"), &args);
    launch.time_zone = Some(ZONE.to_owned());
    let mut site = Site::of(server, fs, launch, 10);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    session.run("CREATE DATABASE points").unwrap();
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    session.run("USE points").unwrap();
    FORMATS
        .iter()
        .for_each(|format| round(&mut session, format));
    let end = mark(&mut session);
    let expected = content(&mut session);
    assert!(expected.contains("MyISAM"), "{expected}");
    let archived = archive(&evenkeel, &site, &[]);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    site.kill();
    let target = site.fs.join("restored");
    let ended = restore_to(&evenkeel, &site, &target, &end.moved(0));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let mut launch = site.launch.clone();
    launch.datadir = target;
    let restored = site.server.run(&launch);
    assert_eq!(content(&mut restored.session().unwrap()), expected);
}

/// A setting of the source that is drawn, and statements whose outcome depends on it. `NEW` is a
/// name for anything new; what is no statement is an expression to be kept in a row.
struct Drawn {
    /// With which servers' ids those that know it begin.
    knows: &'static [&'static str],
    option: &'static str,
    values: &'static [&'static str],
    shows: &'static [&'static str],
}

const ALL: &[&str] = &["m"];
const MARIADB: &[&str] = &["mariadb"];
const MYSQL_8: &[&str] = &["mysql-8", "mysql-9"];
const MYSQL: &[&str] = &["mysql"];

const fn drawn(
    knows: &'static [&'static str],
    option: &'static str,
    values: &'static [&'static str],
    shows: &'static [&'static str],
) -> Drawn {
    Drawn {
        knows,
        option,
        values,
        shows,
    }
}

const DRAWN: [Drawn; 28] = [
    drawn(
        ALL,
        "default-week-format",
        &["1", "3", "6"],
        &["WEEK('2023-01-01')"],
    ),
    drawn(
        ALL,
        "div-precision-increment",
        &["0", "9", "17"],
        &["1 / 7"],
    ),
    drawn(
        ALL,
        "group-concat-max-len",
        &["5", "23", "70"],
        &[
            "SET SESSION sql_mode = ''",
            "(SELECT GROUP_CONCAT(b) FROM T)",
        ],
    ),
    drawn(
        ALL,
        "max-sort-length",
        &["64", "70"],
        &["(SELECT id FROM T WHERE id < 3 ORDER BY b LIMIT 1)"],
    ),
    drawn(
        ALL,
        "lc-time-names",
        &["de_DE", "ja_JP"],
        &["MONTHNAME('2024-03-01')"],
    ),
    drawn(
        &["mysql", "mariadb-11"],
        "block-encryption-mode",
        &["aes-256-ecb", "aes-192-ecb"],
        &["HEX(AES_ENCRYPT('text', 'key'))"],
    ),
    drawn(ALL, "sysdate-is-now", &["ON"], &["SYSDATE()"]),
    drawn(
        ALL,
        "explicit-defaults-for-timestamp",
        &["ON", "OFF"],
        &["CREATE TABLE NEW (a TIMESTAMP, b INT)"],
    ),
    drawn(
        ALL,
        "default-storage-engine",
        &["MyISAM", "InnoDB"],
        &["CREATE TABLE NEW (a INT)"],
    ),
    drawn(
        ALL,
        "innodb-strict-mode",
        &["OFF"],
        &["CREATE TABLE NEW (a INT) ENGINE=InnoDB ROW_FORMAT=DYNAMIC KEY_BLOCK_SIZE=3"],
    ),
    drawn(
        ALL,
        "innodb-default-row-format",
        &["compact", "redundant"],
        &["CREATE TABLE NEW (a INT) ENGINE=InnoDB"],
    ),
    drawn(
        ALL,
        "character-set-server",
        &["latin1", "utf8mb4"],
        &["CREATE DATABASE NEW"],
    ),
    drawn(
        ALL,
        "ft-min-word-len",
        &["2"],
        &["(SELECT COUNT(*) FROM T WHERE MATCH (b) AGAINST ('ox'))"],
    ),
    drawn(
        ALL,
        "ft-boolean-syntax",
        &["- +><()~*:\"\"&|"],
        &[
            "(SELECT GROUP_CONCAT(id) FROM T WHERE MATCH (b) AGAINST ('-alphabet +elephant' IN BOOLEAN MODE))",
        ],
    ),
    drawn(
        ALL,
        "innodb-ft-min-token-size",
        &["1", "2"],
        &["(SELECT COUNT(*) FROM i WHERE MATCH (b) AGAINST ('ox'))"],
    ),
    drawn(
        ALL,
        "innodb-ft-enable-stopword",
        &["OFF"],
        &["(SELECT COUNT(*) FROM i WHERE MATCH (b) AGAINST ('about'))"],
    ),
    drawn(ALL, "max-sp-recursion-depth", &["9", "20"], &["depth(5)"]),
    drawn(
        MARIADB,
        "default-regex-flags",
        &["DOTALL", "DOTALL,EXTENDED"],
        &["'a\nb' REGEXP 'a. b'", "'a\nb' REGEXP 'a.b'"],
    ),
    drawn(
        MARIADB,
        "max-recursive-iterations",
        &["3", "12"],
        &[
            "SET SESSION sql_mode = ''",
            "(WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 50) SELECT COUNT(*) FROM n)",
        ],
    ),
    drawn(
        MARIADB,
        "standard-compliant-cte",
        &["OFF"],
        &[
            "(WITH RECURSIVE n AS (SELECT 1 AS i UNION SELECT MAX(i) + 1 FROM n WHERE i < 3) SELECT COUNT(*) FROM n)",
        ],
    ),
    drawn(
        MARIADB,
        "old-mode",
        &["", "ZERO_DATE_TIME_CAST"],
        &[
            "CAST(TIME '10:20:30' AS DATETIME)",
            "CREATE TABLE NEW (a VARCHAR(9) CHARACTER SET utf8)",
        ],
    ),
    drawn(MARIADB, "old-passwords", &["1"], &["PASSWORD('secret')"]),
    drawn(
        MARIADB,
        "system-versioning-alter-history",
        &["KEEP"],
        &[
            "CREATE TABLE NEW (a INT) WITH SYSTEM VERSIONING",
            "ALTER TABLE NEW ADD COLUMN c INT",
        ],
    ),
    drawn(
        MYSQL,
        "ngram-token-size",
        &["3"],
        &[
            "CREATE TABLE NEW (a VARCHAR(50), FULLTEXT (a) WITH PARSER ngram) ENGINE=InnoDB",
            "INSERT INTO NEW VALUES ('elephant')",
            "(SELECT COUNT(*) FROM NEW WHERE MATCH (a) AGAINST ('el'))",
        ],
    ),
    drawn(
        MYSQL_8,
        "cte-max-recursion-depth",
        &["1500", "4000"],
        &[
            "(WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1200) SELECT COUNT(*) FROM n)",
        ],
    ),
    drawn(
        MYSQL_8,
        "windowing-use-high-precision",
        &["OFF"],
        &[
            "(SELECT SUM(s) FROM (SELECT SUM(f) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s, id FROM T) AS o WHERE id = 3)",
        ],
    ),
    drawn(
        MYSQL_8,
        "password-history",
        &["4"],
        &["CREATE USER NEW IDENTIFIED BY 'a'"],
    ),
    drawn(
        &["mysql-9"],
        "restrict-fk-on-non-standard-key",
        &["OFF"],
        &["CREATE TABLE NEW (a INT, FOREIGN KEY (a) REFERENCES k (a)) ENGINE=InnoDB"],
    ),
];

/// What a session may have set, which events carry.
const CARRIED: [&str; 8] = [
    "time_zone = '+03:30'",
    "sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'",
    "sql_mode = ''",
    "auto_increment_increment = 7",
    "auto_increment_offset = 3",
    "collation_connection = 'latin1_german2_ci'",
    "foreign_key_checks = 0",
    "character_set_client = latin1",
];

/// What there is before the first round.
const GROUND: [&str; 8] = [
    "CREATE TABLE kept (id INT AUTO_INCREMENT PRIMARY KEY, what TEXT, at DATETIME, INDEX (id)) ENGINE=InnoDB",
    "CREATE TABLE i (id INT PRIMARY KEY, b VARCHAR(200), FULLTEXT (b)) ENGINE=InnoDB",
    "INSERT INTO i VALUES (1, 'ox and elephant'), (2, 'about alphabets')",
    "CREATE TABLE k (a INT, KEY (a)) ENGINE=InnoDB",
    "CREATE PROCEDURE down(IN n INT, INOUT total INT) BEGIN SET total = total + n; \
     IF n > 0 THEN CALL down(n - 1, total); END IF; END",
    "CREATE FUNCTION depth(n INT) RETURNS INT DETERMINISTIC \
     BEGIN DECLARE total INT DEFAULT 0; CALL down(n, total); RETURN total; END",
    "CREATE TABLE T (id INT PRIMARY KEY, b TEXT, f DOUBLE, FULLTEXT (b)) ENGINE=MyISAM",
    "INSERT INTO T SELECT 1, CONCAT(REPEAT('alphabet ', 9), 'ox'), 1e20 UNION SELECT 2, \
     CONCAT(REPEAT('alphabet ', 9), 'cow elephant'), 1 UNION SELECT 3, 'elephant', 3.5",
];

/// Makes what a statement or an expression makes. What the source itself refuses leaves nothing.
fn attempt(session: &mut Session, text: &str, name: &str) -> bool {
    let is_statement = ["CREATE", "INSERT", "ALTER", "SET"]
        .iter()
        .any(|word| text.starts_with(word));
    let text = text.replace("NEW", name);
    let sql = match is_statement {
        true => text,
        false => format!("INSERT INTO kept (what, at) SELECT {text}, NOW()"),
    };
    match session.run(&sql) {
        Ok(()) => true,
        Err(why) => {
            println!("{sql}: {}", why.chain());
            false
        }
    }
}

/// Every table of the schema, how it is made and its rows; and what else could differ.
fn everything(session: &mut Session) -> Vec<String> {
    for sql in [
        "SET SESSION sql_mode = '', time_zone = '+00:00', character_set_results = utf8mb4",
        "SET SESSION group_concat_max_len = 1000000, max_sort_length = 8388608",
        "USE points",
    ] {
        session.run(sql).unwrap();
    }
    let names =
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'points' ORDER BY 1";
    let names = session.rows(names).unwrap();
    let mut all = Vec::new();
    for name in names.iter().filter_map(|row| row.at(0)) {
        for sql in [
            format!("SHOW CREATE TABLE `{name}`"),
            format!("SELECT * FROM `{name}` ORDER BY 1"),
            format!("CHECKSUM TABLE `{name}`"),
        ] {
            let found = texts(session, &sql);
            all.extend(found.into_iter().map(without_counter));
        }
    }
    for sql in [
        "SELECT table_name, row_format, engine, table_collation FROM information_schema.tables \
         WHERE table_schema = 'points' ORDER BY 1",
        "SELECT schema_name, default_character_set_name, default_collation_name \
         FROM information_schema.schemata ORDER BY 1",
        "SELECT user, host FROM mysql.user ORDER BY 1, 2",
    ] {
        all.extend(texts(session, sql));
    }
    // Only MySQL from version 8 has it.
    if let Ok(rows) =
        session.rows("SELECT user, COUNT(*) FROM mysql.password_history GROUP BY 1 ORDER BY 1")
    {
        all.extend(
            rows.iter()
                .map(|row| format!("password of {:?}: {:?}", row.at(0), row.at(1))),
        );
    }
    all
}

/// The next number of a table is no value of a row: of rows that are logged, an applier takes the highest and one
/// more, whatever a session's increment was.
fn without_counter(text: String) -> String {
    match text.split_once(" AUTO_INCREMENT=") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
            format!("{before}{rest}")
        }
        None => text,
    }
}

fn texts(session: &mut Session, sql: &str) -> Vec<String> {
    let rows = session.rows(sql);
    let rows = rows.unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
    let cells = |row: &Row| {
        let cells = 0..row.names().len();
        let cells: Vec<&str> = cells.map(|at| row.at(at).unwrap_or("NULL")).collect();
        cells.join(" | ")
    };
    rows.iter().map(cells).collect()
}

/// Draws the source's settings: each setting that it knows, so that every round tries every statement.
fn settings_of(server: &TestServer, random: &mut Rng) -> Vec<(&'static Drawn, String)> {
    let known = |drawn: &&Drawn| drawn.knows.iter().any(|id| server.id.starts_with(id));
    let known = DRAWN.iter().filter(known);
    known
        .map(|drawn| {
            let value = drawn.values[random.usize(..drawn.values.len())];
            (drawn, format!("--{}={value}", drawn.option))
        })
        .collect()
}

/// One round in a format: the statements in an order that is drawn, some under settings that events carry.
fn generated_round(
    session: &mut Session,
    random: &mut Rng,
    format: &str,
    settings: &[(&Drawn, String)],
) -> usize {
    let checked = format!("CREATE TABLE checked_{format} (a INT CHECK (a > 5))");
    session.run(&checked).unwrap();
    // MySQL 8 from 8.0.16 on checks.
    let _ = session.run(&format!("INSERT INTO checked_{format} VALUES (1)"));
    let mut order: Vec<usize> = (0..settings.len()).collect();
    random.shuffle(&mut order);
    let mut done = 0;
    for at in order {
        let own = format!(
            "SET SESSION binlog_format = {format}, timestamp = {}",
            1_700_000_000 + at
        );
        session.run(&own).unwrap();
        if random.bool() {
            let carried = CARRIED[random.usize(..CARRIED.len())];
            session.run(&format!("SET SESSION {carried}")).unwrap();
        }
        let name = format!("n_{format}_{at}");
        for text in settings[at].0.shows {
            done += usize::from(attempt(session, text, &name));
        }
        for back in CARRIED {
            let variable = back.split(' ').next().unwrap();
            session
                .run(&format!("SET SESSION {variable} = DEFAULT"))
                .unwrap();
        }
    }
    done
}

/// Settings and statements that are drawn: the source and what is restored have the same tables, rows and sums.
fn generated(server: TestServer) {
    let seed = evenkeel_testkit::effort::seed();
    println!("{}: seed {seed}", server.id);
    let mut random = Rng::with_seed(seed);
    let settings = settings_of(&server, &mut random);
    let fs = LoopFs::xfs(3 << 30);
    let mut args = SMALL.to_vec();
    if server.id == "mysql-9" {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
        args.push("--innodb-redo-log-capacity=64M");
    }
    args.push("--log-bin-trust-function-creators=ON");
    args.extend(settings.iter().map(|(_, option)| option.as_str()));
    println!("{args:?}");
    let launch = server.prepare(&fs.join("data"), &args);
    let mut site = Site::of(server, fs, launch, 10);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    session.run("CREATE DATABASE points").unwrap();
    session.run("USE points").unwrap();
    // It has no option.
    let _ = session.run("SET GLOBAL check_constraint_checks = OFF");
    let _ = session.run("SET SESSION check_constraint_checks = OFF");
    for sql in GROUND {
        let done = session.run(sql);
        done.unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
    }
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    for format in FORMATS {
        let done = generated_round(&mut session, &mut random, format, &settings);
        assert!(
            done >= settings.len() * 2 / 3,
            "{format}: only {done} statements were taken"
        );
    }
    let end = mark(&mut session);
    let expected = everything(&mut session);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    site.kill();
    let target = site.fs.join("restored");
    let ended = restore_to(&evenkeel, &site, &target, &end.moved(0));
    assert_eq!(ended.code, Some(0), "seed {seed}: {ended:?}");
    let mut launch = site.launch.clone();
    launch.datadir = target;
    let restored = site.server.run(&launch);
    let found = everything(&mut restored.session().unwrap());
    let differ = expected
        .iter()
        .zip(&found)
        .filter(|(one, other)| one != other);
    let differ: Vec<_> = differ.collect();
    assert!(
        differ.is_empty() && expected.len() == found.len(),
        "seed {seed}: {differ:#?}"
    );
}

#[test]
fn under_known_settings() {
    let servers = [
        mariadb_10_11(),
        mysql_8_0_15(),
        mariadb_11_8(),
        mysql_5_7_22(),
        mysql_9(),
    ];
    for server in draw("servers with known settings", &servers, 2) {
        case(server);
    }
}

#[test]
fn generated_on_mariadb() {
    for server in draw("servers of MariaDB", &[mariadb_10_11(), mariadb_11_8()], 1) {
        generated(server);
    }
}

#[test]
fn generated_on_mysql() {
    for server in draw("servers of MySQL", &[mysql_9(), mysql_8_0_15()], 1) {
        generated(server);
    }
}

/// It has no setting of its own: a sample has it in every other run.
#[test]
fn generated_on_mysql_5_7_22() {
    for server in share("more servers", &[mysql_5_7_22()], Part::new(0, 2)) {
        generated(server);
    }
}
