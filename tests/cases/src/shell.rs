//! The directory of a dump of MySQL Shell, written as its documentation and dumps that people published
//! have it, from the rows of a server.

use evenkeel_op::Cancel;
use evenkeel_server::connect::{Session, quote, quote_name};
use evenkeel_server::launch::Running;
use evenkeel_wire::Connection;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;

/// How the bytes of a type are written, and read back.
const ENCODED: [(&str, &str, &str); 4] = [
    ("bit", "HEX", "UNHEX"),
    ("geometry", "HEX", "UNHEX"),
    ("varbinary", "TO_BASE64", "FROM_BASE64"),
    ("blob", "TO_BASE64", "FROM_BASE64"),
];

/// A directory on its way.
struct Writer<'a> {
    dir: &'a Path,
    schema: &'a str,
    session: Session,
    connection: Connection,
    rows: Map<String, Value>,
    bytes: Map<String, Value>,
}

/// Writes a dump of a schema: rows packed with zstd, `gaps` in three files, `parts` by partition,
/// `made` in one file that is not packed.
pub fn write(running: &Running, schema: &str, dir: &Path) {
    fs::create_dir(dir).expect("a directory");
    let mut connection =
        Connection::open(&running.connect_options(), &Cancel::new()).expect("a connection");
    connection
        .run("SET NAMES utf8mb4")
        .and_then(|_| connection.run("SET SESSION time_zone = '+00:00'"))
        .expect("a setting");
    let mut writer = Writer {
        dir,
        schema,
        session: running.session().expect("a session"),
        connection,
        rows: Map::new(),
        bytes: Map::new(),
    };
    writer.all();
}

/// Returns a name as files have it.
fn file_name(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    name.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

impl Writer<'_> {
    fn list(&mut self, sql: &str) -> Vec<String> {
        let rows = self.session.rows(sql).expect("rows");
        rows.iter()
            .filter_map(|row| row.at(0).map(str::to_owned))
            .collect()
    }

    /// What SHOW CREATE prints.
    fn create(&mut self, what: &str, name: &str, cell: usize) -> String {
        let sql = format!(
            "SHOW CREATE {what} {}.{}",
            quote_name(self.schema),
            quote_name(name)
        );
        let row = self.session.one(&sql).expect("a row").expect("a row");
        row.at(cell).expect("a text").to_owned()
    }

    fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.dir.join(name), text).expect("a file");
    }

    fn json(&self, name: &str, value: &Value) {
        self.put(name, serde_json::to_vec_pretty(value).expect("JSON"));
    }

    fn all(&mut self) {
        let schema = self.schema.to_owned();
        let base = file_name(&schema);
        let of = |sort: &str| {
            format!(
                "SELECT TABLE_NAME FROM information_schema.TABLES \
                 WHERE TABLE_SCHEMA = {} AND TABLE_TYPE = '{sort}'",
                quote(&schema)
            )
        };
        let (tables, views) = (self.list(&of("BASE TABLE")), self.list(&of("VIEW")));
        let mut bases = Map::new();
        for name in tables.iter().chain(&views) {
            let file = format!("{base}@{}", file_name(name));
            bases.insert(name.clone(), json!(file));
        }
        for view in &views {
            let text = self.create("VIEW", view, 1);
            let file = format!("{base}@{}", file_name(view));
            let name = quote_name(view);
            let pre = format!("/*!50001 CREATE VIEW {name} AS SELECT 1 AS `x`*/;\n");
            self.put(&format!("{file}.pre.sql"), pre);
            let made = text.replace("CREATE ALGORITHM", "/*!50001 CREATE ALGORITHM");
            let sql = format!(
                "/*!50001 DROP VIEW IF EXISTS {name}*/;\n/*!50001 SET @saved_cs_client = \
                 @@character_set_client */;\n/*!50001 SET character_set_client = utf8mb4 */;\n\
                 /*!50001 SET collation_connection = utf8mb4_0900_ai_ci */;\n{made} */;\n\
                 /*!50001 SET character_set_client = @saved_cs_client */;\n"
            );
            self.put(&format!("{file}.sql"), sql);
        }
        tables.iter().for_each(|table| self.table(table));
        self.programs(&base);
        self.json(
            &format!("{base}.json"),
            &json!({"schema": schema, "includesDdl": true, "includesViewsDdl": true,
                "includesData": true, "tables": tables, "views": views, "basenames": bases}),
        );
        self.put("@.sql", "-- MySQLShell dump 2.0.1\n");
        self.put("@.post.sql", "-- MySQLShell dump 2.0.1\n");
        self.json(
            "@.done.json",
            &json!({"end": "2026-01-01 00:00:01", "tableRows": {schema.as_str(): self.rows},
                "chunkFileBytes": self.bytes}),
        );
        self.json(
            "@.json",
            &json!({"dumper": "mysqlsh", "version": "2.0.1", "origin": "dumpSchemas",
                "schemas": [schema], "basenames": {schema.as_str(): base},
                "defaultCharacterSet": "utf8mb4", "tzUtc": true, "serverVersion": "8.0.15",
                "binlogFile": "b.000004", "binlogPosition": 157, "gtidExecuted": ""}),
        );
    }

    fn programs(&mut self, base: &str) {
        let mut sql = self.create_database();
        for (what, name, cell) in [
            ("FUNCTION", "twice", 2),
            ("PROCEDURE", "fill", 2),
            ("EVENT", "later", 3),
        ] {
            let text = self.create(what, name, cell);
            sql.push_str(&self.program(&text));
        }
        self.put(&format!("{base}.sql"), sql);
    }

    fn create_database(&mut self) -> String {
        let sql = format!("SHOW CREATE DATABASE {}", quote_name(self.schema));
        let row = self.session.one(&sql).expect("a row").expect("a row");
        let made = row.at(1).expect("a text");
        let made = made.replacen("DATABASE", "DATABASE /*!32312 IF NOT EXISTS*/", 1);
        format!("{made};\n\nUSE {};\n", quote_name(self.schema))
    }

    /// A program with the settings of this server's sessions around it.
    fn program(&mut self, text: &str) -> String {
        let mode = self.session.value("SELECT @@GLOBAL.sql_mode");
        let mode = mode.expect("a mode").expect("a mode");
        let zone = "/*!50106 SET time_zone = 'SYSTEM' */ ;\n";
        format!(
            "/*!50003 SET @saved_sql_mode = @@sql_mode */ ;\n/*!50003 SET sql_mode = '{mode}' */ ;\n\
             /*!50003 SET character_set_client = utf8mb4 */ ;\n{zone}\
             /*!50003 SET collation_connection = utf8mb4_0900_ai_ci */ ;\nDELIMITER ;;\n{text} ;;\n\
             DELIMITER ;\n/*!50003 SET sql_mode = @saved_sql_mode */ ;\n"
        )
    }

    fn table(&mut self, table: &str) {
        let base = format!("{}@{}", file_name(self.schema), file_name(table));
        let create = self.create("TABLE", table, 1);
        let create = create.replacen("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1);
        self.put(
            &format!("{base}.sql"),
            format!("-- A table\n\n/*!50503 SET character_set_client = utf8mb4 */;\n{create};\n"),
        );
        let triggers = match table {
            "child" => {
                let text = self.create("TRIGGER", "loud", 2);
                let text = self.program(&text);
                self.put(&format!("{base}.triggers.sql"), text);
                vec!["loud"]
            }
            _ => Vec::new(),
        };
        let columns = self.session.rows(&format!(
            "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND GENERATION_EXPRESSION = '' \
             ORDER BY ORDINAL_POSITION",
            quote(self.schema),
            quote(table)
        ));
        let (mut names, mut cells, mut decoders) = (Vec::new(), Vec::new(), Map::new());
        for row in columns.expect("columns") {
            let (name, kind) = (row.at(0).expect("a name"), row.at(1).expect("a type"));
            let quoted = quote_name(name);
            names.push(name.to_owned());
            match ENCODED.iter().find(|one| one.0 == kind) {
                Some((_, encode, decode)) => {
                    cells.push(format!("{encode}({quoted})"));
                    decoders.insert(name.to_owned(), json!(decode));
                }
                None => cells.push(quoted),
            }
        }
        let (chunking, extension, partitions) =
            self.files(table, &base, (names.len(), &cells.join(", ")));
        let parts: Vec<&String> = partitions.keys().collect();
        self.json(
            &format!("{base}.json"),
            &json!({"options": {"schema": self.schema, "table": table, "columns": names,
                "decodeColumns": decoders, "defaultCharacterSet": "utf8mb4",
                "fieldsTerminatedBy": "\t", "fieldsEnclosedBy": "",
                "fieldsOptionallyEnclosed": false, "fieldsEscapedBy": "\\",
                "linesTerminatedBy": "\n"}, "triggers": triggers, "includesData": true,
                "includesDdl": true, "extension": extension, "chunking": chunking,
                "partitions": parts, "basenames": partitions}),
        );
    }

    /// Writes the rows of a table. Returns whether its files are numbered, how they end, and what
    /// those of partitions are called.
    fn files(
        &mut self,
        table: &str,
        base: &str,
        (columns, cells): (usize, &str),
    ) -> (bool, &'static str, Map<String, Value>) {
        let mut partitions = Map::new();
        let (mut chunking, mut extension) = (true, "tsv.zst");
        let from = format!("{}.{}", quote_name(self.schema), quote_name(table));
        match table {
            "gaps" => {
                for (number, range) in ["id < 100", "id BETWEEN 100 AND 2500", "id > 2500"]
                    .iter()
                    .enumerate()
                {
                    let sign = if number == 2 { "@@" } else { "@" };
                    let file = format!("{base}{sign}{number}.tsv.zst");
                    let sql = format!("SELECT {cells} FROM {from} WHERE {range} ORDER BY id");
                    self.rows(table, &file, (columns, &sql));
                }
            }
            "parts" => {
                for part in ["p0", "p1", "p2"] {
                    let stem = format!("{base}@{part}");
                    let sql = format!("SELECT {cells} FROM {from} PARTITION ({part})");
                    self.rows(table, &format!("{stem}@@0.tsv.zst"), (columns, &sql));
                    partitions.insert(part.to_owned(), json!(stem));
                }
            }
            _ => {
                let mut file = format!("{base}@@0.tsv.zst");
                if table == "made" {
                    (chunking, extension) = (false, "tsv");
                    file = format!("{base}.tsv");
                }
                let sql = format!("SELECT {cells} FROM {from}");
                self.rows(table, &file, (columns, &sql));
            }
        }
        (chunking, extension, partitions)
    }

    /// Writes the rows of a query as a file.
    fn rows(&mut self, table: &str, file: &str, (columns, sql): (usize, &str)) {
        let mut text = Vec::new();
        let mut count = 0;
        let mut rows = self.connection.query(sql).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            count += 1;
            let mut cells = row.cells();
            for at in 0..columns {
                text.extend_from_slice(if at > 0 { b"\t" } else { b"" });
                let Some(bytes) = cells.next().expect("a cell") else {
                    text.extend_from_slice(b"\\N");
                    continue;
                };
                for byte in bytes {
                    match byte {
                        b'\t' => text.extend_from_slice(b"\\t"),
                        b'\n' => text.extend_from_slice(b"\\n"),
                        b'\\' => text.extend_from_slice(b"\\\\"),
                        0 => text.extend_from_slice(b"\\0"),
                        other => text.push(*other),
                    }
                }
            }
            text.push(b'\n');
        }
        drop(rows);
        let before = self.rows.get(table).and_then(Value::as_u64).unwrap_or(0);
        self.rows.insert(table.to_owned(), json!(before + count));
        self.bytes.insert(file.to_owned(), json!(text.len()));
        if file.ends_with(".zst") {
            self.put(&format!("{file}.idx"), (text.len() as u64).to_be_bytes());
            text = zstd::encode_all(&text[..], 1).expect("zstd");
        }
        self.put(file, text);
    }
}
