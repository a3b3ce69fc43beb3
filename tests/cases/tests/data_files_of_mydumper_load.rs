//! Do the directories that mydumper 1.0 writes with `--format=LOAD_DATA` load with every byte, though its
//! statements do not say in which character set their files are?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, load_into};
use evenkeel_cases::exact::Reading;
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_server::launch::Running;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::mariadb_10_11;
use std::path::Path;

/// What each of its files begins with.
const OPENING: &str = "/*!40101 SET NAMES binary*/;\n/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n\
    /*!40101 SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION'*/;\n\
    /*!40103 SET TIME_ZONE='+00:00' */;\n";
/// A schema in latin1, which is not what most of its columns have.
const SCHEMA: &str = "CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET latin1 COLLATE latin1_swedish_ci */;\n";
const TABLE: &str = "CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n  \
    `u` varchar(30) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT NULL,\n  `l` varchar(30) DEFAULT NULL,\n  \
    `b` varbinary(60) DEFAULT NULL,\n  \
    `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`)),\n  \
    `w` varchar(20) CHARACTER SET utf16 COLLATE utf16_general_ci DEFAULT NULL,\n  `bi` bit(10) DEFAULT NULL,\n  \
    `e` enum('a','b') DEFAULT NULL,\n  `d` datetime DEFAULT NULL,\n  `a` inet6 DEFAULT NULL,\n  `k` uuid DEFAULT NULL,\n  \
    PRIMARY KEY (`id`)\n) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;\n";
const LOAD: &str = "LOAD DATA LOCAL INFILE 'shop.t.00000.dat' INTO TABLE `t` FIELDS TERMINATED BY '\\t' ENCLOSED BY '' \
    ESCAPED BY '\\\\' LINES STARTING BY '' TERMINATED BY '\\n' (`id`,`u`,`l`,`b`,`j`,`w`,`bi`,`e`,`d`,`a`,`k`);\n";
/// The rows as it wrote them: the address has sixteen letters, as many as an address has bytes.
const ROWS: &[u8] = b"1\t\xC3\xA9\\t\\n\\\\\\\"\\'\t\xE9\t\\0\\r\\n\\\\\\\"\\',\\Z\t{\\\"a\\\":\\\"b\\\"}\t\\0x\x88h\t\x02\xAA\ta\t0000-00-00 00:00:00\t\
    ffff:1111::12:34\t123e4567-e89b-42d3-a456-426614174000\n\
    2\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N\n\
    3\t\t\t\t[]\t\t\\0\\0\t\t2024-02-30 00:00:00\t::\t\\N\n\
    4\t\\\\N\tNULL\t\\\\N\t\\N\t\\0\\\\\t\\0\\\\\tb\t\\N\t\\N\t\\N\n";
/// The same rows, as they were made.
const MADE: [&str; 4] = [
    "INSERT INTO t VALUES (1, X'C3A9090A5C2227', X'E9', X'000D0A5C22272C1A', '{\"a\":\"b\"}', X'00788868', b'1010101010', 'a', \
     '0000-00-00', 'ffff:1111::12:34', '123e4567-e89b-42d3-a456-426614174000')",
    "INSERT INTO t (id) VALUES (2)",
    "INSERT IGNORE INTO t VALUES (3, '', '', '', '[]', '', 0, '', '2024-02-30', '::', NULL)",
    "INSERT INTO t VALUES (4, '\\\\N', 'NULL', '\\\\N', NULL, '\\\\', 92, 'b', NULL, NULL, NULL)",
];
const METADATA: &str = "# Started dump at: 2026-11-28 00:12:29\n[config]\nquote-character = BACKTICK\nlocal-infile = 1\n\n\
    [myloader_session_variables]\nSQL_MODE='NO_AUTO_VALUE_ON_ZERO' /*!40101\n\n[source]\n\
    # Channel_Name = '' # It can be use to setup replication FOR CHANNEL\n# executed_gtid_set = \"0-3-9\"\n\
    # SOURCE_LOG_FILE = \"b.000001\"\n# SOURCE_LOG_POS = 2586\n\n[`shop`.`t`]\nreal_table_name=t\nrows = 4\n\
    schema_checksum = 72c80ca1\nindexes_checksum = 1f09d0e1\n\n[`shop`]\nschema_checksum = FDF2173B\n[config]\n\
    max-statement-size = 287\nnum-sequences = 0\n# Finished dump at: 2026-11-28 00:12:29\n";

/// Writes the directory as mydumper 1.0.1 did of such a table.
fn directory(dir: &Path, load: &str) {
    std::fs::create_dir_all(dir).unwrap();
    let file = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    file("metadata", METADATA);
    file("shop-schema-create.sql", &format!("{OPENING}{SCHEMA}"));
    file("shop-schema-triggers.sql", OPENING);
    file("shop.t-schema.sql", &format!("{OPENING}{TABLE}"));
    file("shop.t.00000.sql", load);
    std::fs::write(dir.join("shop.t.00000.dat"), ROWS).unwrap();
}

fn made(running: &Running) -> Reading {
    let mut session = running.session().unwrap();
    let mut run = |sql: &str| session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    run("SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'");
    run("CREATE DATABASE shop CHARACTER SET latin1 COLLATE latin1_swedish_ci");
    run("USE shop");
    run(TABLE.trim_end().trim_end_matches(';'));
    MADE.iter().for_each(|sql| run(sql));
    let read = Reading::of(running, "shop");
    run("DROP DATABASE shop");
    read
}

#[test]
fn with_every_byte() {
    let scratch = Scratch::new();
    let running = mariadb_10_11().start(&scratch.join("data"), &SMALL);
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let before = made(&running);
    let dir = scratch.join("dump");
    directory(&dir, &format!("{OPENING}{LOAD}"));
    let ended = done(run(load_into(&program, &running, &dir, &["--verify"])));
    assert_eq!(ended.answer["rows"], 4, "{}", ended.answer);
    let place = &ended.answer["coordinates"];
    assert_eq!(place["binlog_file"], "b.000001", "{place}");
    assert_eq!(place["binlog_position"], 2586, "{place}");
    let found = before.differences(&Reading::of(&running, "shop"));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Nothing says what the bytes mean: then nothing is loaded.
#[test]
fn or_not_at_all() {
    let scratch = Scratch::new();
    let running = mariadb_10_11().start(&scratch.join("data"), &SMALL);
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    for (name, load, said) in [
        ("silent", LOAD.to_owned(), "is not understood"),
        (
            "local",
            format!("{}{LOAD}", OPENING.replace("+00:00", "+02:00")),
            "settings that load does not support",
        ),
    ] {
        let dir = scratch.join(name);
        directory(&dir, &load);
        let ended = run(load_into(&program, &running, &dir, &[]));
        assert_eq!(ended.code, Some(14), "{name}: {ended:?}");
        assert!(
            ended.message().contains(said),
            "{name}: {}",
            ended.message()
        );
    }
}
