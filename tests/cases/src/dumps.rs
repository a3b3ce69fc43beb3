//! Dumps: a schema that is hard to dump, and a loader that knows nothing but the manifest.

use crate::program::{Ended, Evenkeel};
use evenkeel_op::Cancel;
use evenkeel_server::abilities::Flavour;
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_wire::Connection;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The hard schema's name: it has to be quoted everywhere.
pub const HARD: &str = "hard `s%/ch";

/// Plans a dump of a running server.
#[must_use]
pub fn dump(program: &Evenkeel, running: &Running, output: &Path, flags: &[&str]) -> Command {
    let mut command = program.command(&["dump", "--no-defaults", "-u", "root", "-S"]);
    command.arg(running.socket()).arg("--output").arg(output);
    command.args(flags);
    command
}

/// Plans a load of a dump into a running server.
#[must_use]
pub fn load_into(program: &Evenkeel, running: &Running, dump: &Path, flags: &[&str]) -> Command {
    let mut command = program.command(&["load", "--no-defaults", "-u", "root", "-S"]);
    command.arg(running.socket()).args(flags).arg(dump);
    command
}

/// Passes on what ended well.
#[track_caller]
pub fn done(ended: Ended) -> Ended {
    assert_eq!(ended.code, Some(0), "{} {}", ended.message(), ended.answer);
    ended
}

/// Tables that every server can hold.
const TABLES: [&str; 9] = [
    "CREATE TABLE types (id INT PRIMARY KEY, f FLOAT, d DOUBLE, de DECIMAL(30,10), \
     b BIT(13), y YEAR, dt DATETIME(6), ts TIMESTAMP(3) NULL, da DATE, ti TIME(2), \
     u BIGINT UNSIGNED, z INT ZEROFILL, e ENUM('a','b''c','') , se SET('x','yz'), \
     vb VARBINARY(300), bl BLOB, tx TEXT, j JSON, g GEOMETRY)",
    "CREATE TABLE texts (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, \
     u VARCHAR(50) CHARACTER SET utf8mb4, l VARCHAR(300) CHARACTER SET latin1, \
     w VARCHAR(50) CHARACTER SET utf16, s VARCHAR(50) CHARACTER SET sjis, b VARCHAR(300) CHARACTER SET latin1 COLLATE latin1_bin)",
    "CREATE TABLE made (id INT PRIMARY KEY, a INT, v INT GENERATED ALWAYS AS (a * 2) VIRTUAL, \
     s VARCHAR(20) GENERATED ALWAYS AS (CONCAT('x', a)) STORED, z INT)",
    "CREATE TABLE `odd ``na\nme.` (`c o``l` INT PRIMARY KEY, `select` VARCHAR(10))",
    "CREATE TABLE no_key (a INT, b VARCHAR(10))",
    "CREATE TABLE empty_one (a INT PRIMARY KEY)",
    "CREATE TABLE strings (a VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, b VARBINARY(20), \
     c DATE, n INT NOT NULL, PRIMARY KEY (a, b, c))",
    "CREATE TABLE gaps (id BIGINT PRIMARY KEY, t VARCHAR(100))",
    "CREATE TABLE parts (id INT, t VARCHAR(60), PRIMARY KEY (id)) PARTITION BY HASH (id) PARTITIONS 3",
];

/// Rows that are easily lost or changed on the way.
const ROWS: [&str; 15] = [
    "INSERT INTO types (id) VALUES (0)",
    "INSERT INTO types VALUES (1, 16777217, 1.7976931348623157e308, -12345678901234567890.0123456789, \
     b'1010101010101', 1901, '0000-00-00 00:00:00', '1970-01-01 00:00:01.001', '0000-00-00', \
     '-838:59:59', 18446744073709551615, 7, 'b''c', 'x,yz', '', '', '', '{}', ST_GeomFromText('POINT(1 2)'))",
    "INSERT INTO types VALUES (2, 0.1, 0.1, 0.0000000001, b'0', 0, '9999-12-31 23:59:59.999999', \
     '2038-01-19 03:14:07.999', '2024-02-30', '00:00:00.01', 0, 0, '', '', X'000D0A1A5C09272260', \
     X'FFFE00', 'a\\tb\\nc\\\\d\\0e\\'f\\\"g', '{\"k\": [1, null, \"\\u00fc\"]}', \
     ST_GeomFromText('LINESTRING(0 0, 1e-300 1e300)'))",
    "INSERT INTO types (id, f, d, bl) VALUES (3, -0e0, 5e-324, REPEAT(X'00FF0A', 100000))",
    "INSERT INTO types (id, f, d, tx) VALUES (-5, 3.4e38, 2.2250738585072014e-308, '\\\\N')",
    "INSERT INTO types (id, f, vb) VALUES (6, 1.17549e-38, '\\\\N')",
    "INSERT INTO types (id, f) VALUES (7, 0.30000001), (8, 1e10), (9, 123456.789), (10, 33554430)",
    "INSERT INTO texts VALUES (0, _utf8mb4 X'F09F9880', X'E4F6FC80', _utf16 X'D83DDE000041', _sjis X'835C5C', X'FF')",
    "INSERT INTO texts VALUES (18446744073709551615, '', '', '', '', NULL), (5, NULL, NULL, NULL, NULL, '')",
    "INSERT INTO made (id, a, z) VALUES (1, 5, 1), (2, NULL, 2), (3, -7, NULL)",
    "INSERT INTO `odd ``na\nme.` VALUES (1, 'x'), (2, NULL)",
    "INSERT INTO no_key VALUES (1, 'x'), (1, 'x'), (NULL, NULL), (2, '')",
    "INSERT INTO strings VALUES ('', '', '0000-00-00', 0)",
    "INSERT INTO gaps VALUES (-9000000000000000000, 'first'), (9000000000000000000, 'last')",
    "INSERT INTO parts VALUES (2147483647, NULL)",
];

/// Makes the tables above in a schema of another name, for programs that cannot take the hard one's:
/// without backticks in names, and with floats that any printing keeps.
pub fn make_softer(session: &mut Session, schema: &str) {
    let name = quote_name(schema);
    let mut run = |sql: &str| session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    run(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"));
    run(&format!("USE {name}"));
    run("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone = '+00:00'");
    let all = TABLES.iter().chain(&ROWS);
    all.for_each(|sql| run(&sql.replace("``", "")));
    run("UPDATE types SET f = 0.5 WHERE f IS NOT NULL");
    for from in (0..4000u32).step_by(1000) {
        let row = |n: u32| format!("({n}, REPEAT('g', {}))", n % 90);
        let rows: Vec<String> = (from..from + 1000).map(row).collect();
        run(&format!("INSERT INTO gaps VALUES {}", rows.join(",")));
    }
    run("ANALYZE TABLE gaps");
}

/// Makes the hard schema; the larger tables have some thousands of rows each.
pub fn make_hard(session: &mut Session) {
    let name = quote_name(HARD);
    let mut run = |sql: &str| session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    run(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"));
    run(&format!("USE {name}"));
    run("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone = '+00:00'");
    TABLES.iter().chain(&ROWS).for_each(|sql| run(sql));
    for from in (0..8000u32).step_by(1000) {
        let rows = |row: &dyn Fn(u32) -> String| {
            let rows: Vec<String> = (from..from + 1000).map(row).collect();
            rows.join(",")
        };
        // Names in capitals and small letters fall together; rows of a name lie close.
        let strings = rows(&|n| {
            let letter = if n % 2 == 0 { 'k' } else { 'K' };
            let day = 1 + n % 28;
            format!(
                "('{letter}ey{}', X'{:08X}', '2026-01-{day:02}', {n})",
                n / 97,
                n * 7919
            )
        });
        run(&format!("INSERT INTO strings VALUES {strings}"));
        // Dense, with holes of many magnitudes.
        let gaps = rows(&|n| {
            let id = i64::from(n) + 1000 * 10i64.pow(n / 500);
            format!("({id}, REPEAT('g', {}))", n % 90)
        });
        run(&format!("INSERT INTO gaps VALUES {gaps}"));
        let parts = rows(&|n| format!("({n}, REPEAT('p', {}))", n % 60));
        run(&format!("INSERT INTO parts VALUES {parts}"));
        let no_key = rows(&|n| format!("({}, 'row')", n % 100));
        run(&format!("INSERT INTO no_key VALUES {no_key}"));
    }
    // What is large is cut, and the server's guess says what is large.
    run("ANALYZE TABLE strings, gaps, parts, no_key");
}

/// Reads a dump's manifest.
#[must_use]
pub fn manifest(dump: &Path) -> Value {
    let text = std::fs::read(dump.join("manifest.json")).expect("a manifest");
    serde_json::from_slice(&text).expect("JSON")
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("{field} in {value}"))
}

/// Reads a chunk's rows, and checks that they are what the manifest says.
fn rows_of(dump: &Path, chunk: &Value) -> Vec<u8> {
    let file = dump.join(text(chunk, "file"));
    let mut rows = std::fs::read(&file).expect("a chunk");
    assert_eq!(chunk["bytes_stored"], rows.len(), "{chunk}");
    if file.extension().is_some_and(|end| end == "zst") {
        rows = zstd::decode_all(&rows[..]).expect("zstd");
    }
    assert_eq!(chunk["bytes"], rows.len(), "{chunk}");
    assert_eq!(chunk["blake3"], *blake3::hash(&rows).to_hex(), "{chunk}");
    rows
}

/// Returns the rows of each table of a dump, in order, and checks that files are what the manifest says.
#[must_use]
pub fn contents(dump: &Path) -> BTreeMap<String, Vec<u8>> {
    let manifest = manifest(dump);
    // The rows of each of its files are the other way round.
    let is_backwards = manifest["server"]["version"]
        .as_str()
        .is_some_and(|version| version.starts_with("5.7."));
    let tables = manifest["tables"].as_array().expect("tables");
    let rows = |table: &Value| {
        let chunks = table["chunks"].as_array().expect("chunks");
        let has_key = table["key"].as_array().is_some_and(|key| !key.is_empty());
        chunks
            .iter()
            .flat_map(|chunk| match is_backwards && has_key {
                true => turned(&rows_of(dump, chunk)),
                false => rows_of(dump, chunk),
            })
            .collect()
    };
    tables
        .iter()
        .map(|table| {
            (
                format!("{}.{}", table["schema"], table["name"]),
                rows(table),
            )
        })
        .collect()
}

/// Returns lines in the reverse order.
fn turned(lines: &[u8]) -> Vec<u8> {
    let each: Vec<&[u8]> = lines.split_inclusive(|byte| *byte == b'\n').collect();
    each.into_iter().rev().flatten().copied().collect()
}

/// Loads a dump into a server that has none of its schemas, as the format's description says.
pub fn load(dump: &Path, running: &Running) {
    let manifest = manifest(dump);
    let mut connection =
        Connection::open(&running.connect_options(), &Cancel::new()).expect("a connection");
    let mut run = |sql: &str| {
        let done = connection.run(sql);
        done.unwrap_or_else(|e| panic!("{}", e.chain()));
    };
    run("SET GLOBAL local_infile = 1");
    run("SET NAMES utf8mb4");
    run(
        "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', \
         time_zone = '+00:00', foreign_key_checks = 0",
    );
    for schema in manifest["schemas"].as_array().expect("schemas") {
        let file = std::fs::read(dump.join(text(schema, "file"))).expect("a schema");
        load_sql(&mut connection, &file);
    }
    for table in manifest["tables"].as_array().expect("tables") {
        let schema = quote_name(text(table, "schema"));
        connection.run(&format!("USE {schema}")).expect("a schema");
        let file = std::fs::read(dump.join(text(table, "file"))).expect("a table");
        load_sql(&mut connection, &file);
        for chunk in table["chunks"].as_array().expect("chunks") {
            let rows = rows_of(dump, chunk);
            if manifest["format"] == "sql" {
                load_sql(&mut connection, &rows);
                connection.run("SET NAMES utf8mb4").expect("names");
            } else {
                let sql = load_statement(table, &manifest["format"]);
                let done = connection.load(&sql, &mut &rows[..]);
                let done = done.unwrap_or_else(|e| panic!("{}: {}", table["name"], e.chain()));
                assert_eq!(chunk["rows"], done.affected, "{chunk}");
            }
        }
    }
}

fn load_statement(table: &Value, format: &Value) -> String {
    let csv = *format != "tab";
    let (mut targets, mut sets) = (Vec::new(), Vec::new());
    for column in table["columns"].as_array().expect("columns") {
        let name = quote_name(text(column, "name"));
        if ["json", "uuid", "inet4", "inet6"].contains(&text(column, "type")) {
            // These take text, and bytes have no character set.
            targets.push(format!("@v{}", sets.len()));
            sets.push(format!("{name} = CONVERT(@v{} USING utf8mb4)", sets.len()));
        } else if csv && is_bytes(text(column, "type")) {
            targets.push(format!("@v{}", sets.len()));
            sets.push(format!("{name} = UNHEX(@v{})", sets.len()));
        } else {
            targets.push(name);
        }
    }
    let lines = match format.as_str() {
        Some("csv") => r#"FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY ''"#,
        Some("csv-header") => {
            r#"FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '' IGNORE 1 LINES"#
        }
        _ => "",
    };
    let mut sql = format!(
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE {} CHARACTER SET binary {lines} ({})",
        quote_name(text(table, "name")),
        targets.join(", ")
    );
    if !sets.is_empty() {
        sql.push_str(&format!(" SET {}", sets.join(", ")));
    }
    sql
}

/// Whether a type's values are hexadecimal in comma-separated files.
fn is_bytes(full_type: &str) -> bool {
    ["bit", "varbinary", "binary", "blob", "geometry"]
        .iter()
        .any(|word| full_type.starts_with(word))
}

/// Runs statements that end in a semicolon and a newline, which in values are escaped.
fn load_sql(connection: &mut Connection, rows: &[u8]) {
    let mut rest = rows;
    while let Some(end) = rest.windows(2).position(|two| two == b";\n") {
        let done = connection.run_bytes(&rest[..end]);
        done.unwrap_or_else(|e| panic!("{}", e.chain()));
        rest = &rest[end + 2..];
    }
    assert!(rest.is_empty());
}

/// Everything about the rows of `types`: MySQL 5.7's CHECKSUM TABLE takes in where in memory a JSON
/// value is.
const TYPES: &str = "SELECT 0, SHA2(GROUP_CONCAT(CONCAT_WS('|', id, COALESCE(f * 1e0, 'N'), \
    COALESCE(d, 'N'), COALESCE(de, 'N'), COALESCE(HEX(b), 'N'), COALESCE(y, 'N'), COALESCE(dt, 'N'), \
    COALESCE(ts, 'N'), COALESCE(da, 'N'), COALESCE(ti, 'N'), COALESCE(u, 'N'), COALESCE(z, 'N'), \
    COALESCE(e + 0, 'N'), COALESCE(se + 0, 'N'), COALESCE(HEX(vb), 'N'), COALESCE(HEX(bl), 'N'), \
    COALESCE(HEX(tx), 'N'), COALESCE(HEX(CAST(j AS CHAR)), 'N'), COALESCE(HEX(ST_AsWKB(g)), 'N')) \
    ORDER BY id SEPARATOR '#'), 256) FROM";

/// Returns the checksum and the number of rows of each table of the hard schema, by name.
#[must_use]
pub fn checksums(session: &mut Session) -> Vec<(String, String, String)> {
    checksums_of(session, HARD)
}

/// Returns the checksum and the number of rows of each table of a schema, by name.
#[must_use]
pub fn checksums_of(session: &mut Session, schema: &str) -> Vec<(String, String, String)> {
    let schema = quote_name(schema);
    session
        .run("SET SESSION group_concat_max_len = 100000000, sql_mode = '', time_zone = '+00:00'")
        .expect("a setting");
    let tables = session
        .rows(&format!(
            "SHOW FULL TABLES FROM {schema} WHERE Table_type <> 'VIEW'"
        ))
        .expect("tables");
    let mut all = Vec::new();
    for table in tables.iter().filter_map(|row| row.at(0)) {
        let full = format!("{schema}.{}", quote_name(table));
        let sql = match table {
            "types" => format!("{TYPES} {full}"),
            // Its rows say when they came, which is another time in the copy.
            "times" => format!("SELECT 0, SUM(id) FROM {full}"),
            _ => format!("CHECKSUM TABLE {full}"),
        };
        let checksum = session.one(&sql).expect("a checksum");
        let checksum = checksum.and_then(|row| row.at(1).map(str::to_owned));
        let count = session
            .value(&format!("SELECT COUNT(*) FROM {full}"))
            .expect("a count");
        all.push((
            table.to_owned(),
            checksum.expect("a checksum"),
            count.expect("a count"),
        ));
    }
    all
}

/// Adds what only one flavour has.
pub fn make_special(session: &mut Session, flavour: Flavour) {
    session
        .run(&format!("USE {}", quote_name(HARD)))
        .expect("use");
    let statements: &[&str] = match flavour {
        Flavour::MariaDb => &[
            "CREATE TABLE unseen (id INT PRIMARY KEY, a INT INVISIBLE, b INET6, c UUID)",
            "INSERT INTO unseen (id, a, b, c) VALUES (1, 7, '::1', '123e4567-e89b-12d3-a456-426614174000'), (2, NULL, NULL, NULL)",
            "CREATE TABLE times (id INT PRIMARY KEY) WITH SYSTEM VERSIONING",
            "INSERT INTO times VALUES (1), (2)",
        ],
        Flavour::MySql => &[],
    };
    for sql in statements {
        session.run(sql).unwrap_or_else(|e| panic!("{}", e.chain()));
    }
}
