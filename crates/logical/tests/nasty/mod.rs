//! A schema with everything in it that a server can do.

use evenkeel_server::abilities::Flavour;
use evenkeel_server::connect::Session;
use evenkeel_server::connect::mysql::prelude::Queryable;
use evenkeel_testkit::TestServer;

/// Makes the schemas `sh``op` and `other` as far as this server can.
pub(crate) fn make(session: &mut Session, server: &TestServer) {
    let mut all = vec![EVERYWHERE];
    match (server.binary.flavour, server.id) {
        (Flavour::MariaDb, _) => all.push(MARIADB),
        (_, "mysql-5.7.22") => {}
        _ => all.push(MYSQL_8),
    }
    all.push(PROGRAMS);
    for script in all {
        for sql in script.split("\n;;\n") {
            run(session, sql);
        }
    }
}

/// Drops what [`make`] made.
#[allow(dead_code)] // Not each test does.
pub(crate) fn drop_all(session: &mut Session) {
    run(session, "SET SESSION foreign_key_checks = 0");
    for name in ["`sh``op`", "other"] {
        run(session, &format!("DROP DATABASE {name}"));
    }
}

fn run(session: &mut Session, sql: &str) {
    let done = session.raw().query_drop(sql);
    done.unwrap_or_else(|e| panic!("{e} in: {sql}"));
}

/// What all servers of the matrix can do.
const EVERYWHERE: &str = r#"SET SESSION foreign_key_checks = 0, sql_mode = ''
;;
CREATE DATABASE `sh``op` CHARACTER SET latin1 COLLATE latin1_german1_ci
;;
CREATE DATABASE other CHARACTER SET utf8mb4
;;
USE `sh``op`
;;
CREATE TABLE `we
ird``'"name ü` (
  `id` bigint unsigned NOT NULL AUTO_INCREMENT COMMENT 'KEY `k` (`b`),\n) ENGINE=InnoDB -- /* \\ ''',
  `select` varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ')'',\\''(',
  `enum` enum('a,)','b''','ü') NOT NULL DEFAULT 'b''',
  `set` set('x','y') DEFAULT NULL,
  g int GENERATED ALWAYS AS (length(`select`) + 1) VIRTUAL,
  s varchar(50) CHARACTER SET utf8mb4 GENERATED ALWAYS AS (concat(`select`,'),''')) STORED,
  ts timestamp NOT NULL DEFAULT '0000-00-00 00:00:00',
  ts2 timestamp NULL DEFAULT '2001-02-03 04:05:06',
  ts3 datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  b bit(5) DEFAULT b'101', bin binary(3) DEFAULT 'ab', bl blob, j json, d decimal(30,10) unsigned zerofill,
  p point NOT NULL, t text CHARACTER SET utf8,
  PRIMARY KEY (`id`),
  UNIQUE KEY `u,` (`select`(3), `enum`) COMMENT 'x,)',
  KEY `k``2` (g), KEY `pre` (t(5), bl(7)), SPATIAL KEY sp (p), KEY after_spatial (s),
  FULLTEXT KEY f1 (t), FULLTEXT KEY f2 (s)
) ENGINE=InnoDB AUTO_INCREMENT=4711 ROW_FORMAT=DYNAMIC COMMENT='a) ENGINE=MyISAM; ''\\'
;;
CREATE TABLE parent (id int NOT NULL, up int, x int NOT NULL, PRIMARY KEY (id), UNIQUE KEY x (x),
  CONSTRAINT self FOREIGN KEY (up) REFERENCES parent (id) ON DELETE SET NULL,
  CONSTRAINT circle FOREIGN KEY (x) REFERENCES child (y)) ENGINE=InnoDB
;;
CREATE TABLE child (id int, y int NOT NULL, z int, UNIQUE KEY (y), KEY (z, y),
  CONSTRAINT `back``circle` FOREIGN KEY (id) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE NO ACTION,
  CONSTRAINT elsewhere FOREIGN KEY (z) REFERENCES other.far (a)) ENGINE=InnoDB
;;
CREATE TABLE other.far (a int NOT NULL, b int NOT NULL AUTO_INCREMENT, PRIMARY KEY (a), KEY before_it (a), KEY counter (b), KEY behind_it (a, b)) ENGINE=InnoDB
;;
CREATE TABLE parts (a int NOT NULL, b int, c timestamp NOT NULL, PRIMARY KEY (a, c), KEY (b)) ENGINE=InnoDB
PARTITION BY RANGE (unix_timestamp(c)) SUBPARTITION BY HASH (a) SUBPARTITIONS 2
(PARTITION `p,)` VALUES LESS THAN (unix_timestamp('2020-01-01 00:00:00')) COMMENT ')', PARTITION pm VALUES LESS THAN MAXVALUE)
;;
CREATE TABLE my (a int, b text, KEY (a), FULLTEXT KEY (b)) ENGINE=MyISAM DEFAULT CHARSET=utf8 MIN_ROWS=5 PACK_KEYS=1
;;
CREATE TABLE merged (a int, KEY (a)) ENGINE=MRG_MYISAM UNION=(m1, m2) INSERT_METHOD=LAST
;;
CREATE TABLE m1 (a int, KEY (a)) ENGINE=MyISAM
;;
CREATE TABLE m2 (a int, KEY (a)) ENGINE=MyISAM
;;
CREATE TABLE nokey (a int, b int) ENGINE=InnoDB ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8
;;
CREATE TABLE hard (a int NOT NULL, b int NOT NULL, c int, UNIQUE KEY c (c), UNIQUE KEY ab (a, b), UNIQUE KEY b (b)) ENGINE=InnoDB
;;
CREATE TEMPORARY TABLE gone_soon (a int)
;;
CREATE TABLE log (n int) ENGINE=InnoDB
"#;

/// MariaDB only.
const MARIADB: &str = r#"CREATE SEQUENCE counter START WITH 5 INCREMENT BY 3 MAXVALUE 500 CACHE 7 CYCLE
;;
SELECT NEXTVAL(counter), NEXTVAL(counter)
;;
CREATE SEQUENCE `down``` START WITH -1 INCREMENT BY -1
;;
CREATE TABLE maria (id int NOT NULL DEFAULT nextval(`sh``op`.counter), hidden int INVISIBLE DEFAULT 3,
  squeezed text COMPRESSED, e varchar(10) DEFAULT concat('a','),', uuid()), i inet6, u uuid,
  PRIMARY KEY (id), KEY ignored (hidden) IGNORED, KEY down (hidden DESC),
  long_text text, UNIQUE KEY long_one (long_text) USING HASH, CONSTRAINT `c)` CHECK (hidden < 10 and e <> '),''')) ENGINE=InnoDB
;;
CREATE TABLE aria (a int, KEY (a)) ENGINE=Aria TRANSACTIONAL=1 PAGE_CHECKSUM=1
;;
CREATE TABLE history (a int, KEY (a), b int WITHOUT SYSTEM VERSIONING) ENGINE=InnoDB WITH SYSTEM VERSIONING
;;
CREATE TABLE explicit_history (a int PRIMARY KEY, s timestamp(6) GENERATED ALWAYS AS ROW START INVISIBLE,
  e timestamp(6) GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME (s, e)) ENGINE=InnoDB WITH SYSTEM VERSIONING
  PARTITION BY SYSTEM_TIME (PARTITION h HISTORY, PARTITION c CURRENT)
;;
CREATE TABLE lives (a int, f date, t date, PERIOD FOR p (f, t), UNIQUE (a, p WITHOUT OVERLAPS)) ENGINE=InnoDB
;;
ALTER DATABASE other COMMENT 'it''s \\ other'
;;
SET SESSION sql_mode = 'ORACLE'
;;
CREATE PACKAGE pack AS FUNCTION f RETURN INT; PROCEDURE p; END
;;
CREATE PACKAGE BODY pack AS FUNCTION f RETURN INT AS BEGIN RETURN 1; END; PROCEDURE p AS BEGIN SELECT 'DEFINER=`x`@`y`'; END; END
;;
SET SESSION sql_mode = ''
"#;

/// MySQL 8 only.
const MYSQL_8: &str = r#"CREATE TABLE eight (id int NOT NULL, a int, v varchar(20), j json,
  d int DEFAULT (id + 1), PRIMARY KEY (id DESC), KEY unseen (a) INVISIBLE, KEY `down` (a DESC, v),
  KEY func ((a + 1), v), UNIQUE KEY func2 ((concat(v, '),'))), FULLTEXT KEY n (v) WITH PARSER ngram) ENGINE=InnoDB
;;
INSERT INTO eight (id, a, v) VALUES (1, 1, 'x'), (2, 2, 'y')
;;
ANALYZE TABLE eight UPDATE HISTOGRAM ON a, v WITH 17 BUCKETS
;;
CREATE TABLE geo (a geometry NOT NULL SRID 4326, SPATIAL KEY (a)) ENGINE=InnoDB
"#;

/// Views, routines, triggers, events.
const PROGRAMS: &str = r#"CREATE USER IF NOT EXISTS 'a b'@'%', 'x`y'@'localhost'
;;
CREATE VIEW `z_first` AS SELECT 1 AS n, 2 AS m
;;
CREATE OR REPLACE DEFINER=`x``y`@localhost SQL SECURITY INVOKER VIEW `a_last` AS SELECT z.n, z.m AS `we``ird` FROM `z_first` z
;;
CREATE VIEW other.across AS SELECT * FROM `sh``op`.a_last
;;
CREATE ALGORITHM=MERGE VIEW checked AS SELECT n FROM log WHERE n < 5 WITH LOCAL CHECK OPTION
;;
CREATE DEFINER='a b'@'%' FUNCTION peeks() RETURNS INT DETERMINISTIC READS SQL DATA RETURN (SELECT COUNT(*) FROM reads_last)
;;
CREATE VIEW reads_last AS SELECT n FROM log
;;
GRANT SELECT, EXECUTE ON `sh``op`.* TO 'a b'@'%' WITH GRANT OPTION
;;
GRANT SELECT (n) ON `sh``op`.reads_last TO 'x`y'@'localhost'
;;
CREATE VIEW calls AS SELECT peeks() AS p, 'DEFINER=`a`@`b`' AS d
;;
CREATE VIEW called_by_z AS SELECT p FROM calls
;;
CREATE TABLE doomed (a int)
;;
CREATE VIEW broken AS SELECT a FROM doomed
;;
DROP TABLE doomed
;;
SET SESSION sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT,STRICT_ALL_TABLES'
;;
CREATE PROCEDURE "pro""c`edure"(IN "a;" varchar(10), OUT b int) COMMENT 'it''s'
BEGIN
  -- DEFINER=`no`@`no`; it's
  DECLARE c varchar(5);
  SELECT "a;" || ' ; ' INTO c; /* ` */
END
;;
CREATE TRIGGER zz BEFORE INSERT ON log FOR EACH ROW SET NEW.n = NEW.n + 1
;;
SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES'
;;
CREATE DEFINER='a b'@'%' TRIGGER aa BEFORE INSERT ON log FOR EACH ROW FOLLOWS zz SET NEW.n = NEW.n * 2 + length('\')
;;
CREATE TRIGGER mm BEFORE INSERT ON log FOR EACH ROW PRECEDES aa SET NEW.n = NEW.n - 1
;;
CREATE TRIGGER bb AFTER DELETE ON parent FOR EACH ROW BEGIN INSERT INTO log VALUES (OLD.id); END
;;
SET NAMES latin1
;;
CREATE FUNCTION old_times(a varchar(10)) RETURNS varchar(20) DETERMINISTIC NO SQL RETURN concat(a, 'ü')
;;
SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci
;;
ALTER DATABASE `sh``op` CHARACTER SET utf8
;;
CREATE FUNCTION other_default(a varchar(10)) RETURNS varchar(20) DETERMINISTIC NO SQL RETURN concat(a, 'ü')
;;
ALTER DATABASE `sh``op` CHARACTER SET latin1 COLLATE latin1_german1_ci
;;
SET SESSION time_zone = '+03:00', sql_mode = 'ANSI'
;;
CREATE DEFINER='a b'@'%' EVENT "ev;ent" ON SCHEDULE EVERY '1:30' HOUR_MINUTE STARTS '2036-01-01 00:00:00' ENDS '2037-01-01 00:00:00' ON COMPLETION PRESERVE ENABLE COMMENT 'DISABLE' DO DELETE FROM "log" WHERE n = 'DO'
;;
CREATE EVENT asleep ON SCHEDULE AT '2036-01-01 00:00:00' DISABLE DO SELECT 'ENABLE'
;;
CREATE EVENT past ON SCHEDULE AT '2020-01-01 00:00:00' ON COMPLETION PRESERVE DISABLE DO SELECT 1
;;
ALTER EVENT past ON COMPLETION NOT PRESERVE
;;
CREATE EVENT slave ON SCHEDULE EVERY 1 DAY STARTS '2020-01-01 00:00:00' DISABLE ON SLAVE DO SELECT 1
;;
SET SESSION time_zone = DEFAULT, sql_mode = ''
"#;
