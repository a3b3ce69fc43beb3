//! Is a capture in a directory as good as its packets: for replay, for DuckDB and for Spark?

use evenkeel_cases::played::Played;
use evenkeel_cases::program::run;
use evenkeel_cases::taps::Tap;
use evenkeel_server::connect::Session;
use evenkeel_server::connect::mysql::prelude::Queryable;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{cache, mariadb_10_11};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// What runs the shipped SQL, and prints each row as a document.
const PRINT: &str = "
import json, sys
def show(names, rows):
    for row in rows:
        print(json.dumps({n: v if v is None or isinstance(v, str) else int(v) for n, v in zip(names, row)}))
";

/// All questions to Spark in one session: its start is dear.
const SPARK: &str = "
from pyspark.sql import SparkSession
session = (SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false')
           .config('spark.sql.shuffle.partitions', '1').getOrCreate())
session.sparkContext.setLogLevel('ERROR')
# As a directory, too: what is no Parquet in it is passed over.
assert session.read.parquet(sys.argv[1]).count() > 0
session.read.parquet(sys.argv[1] + '/*.parquet').createOrReplaceTempView('statements')
answer = session.sql(open(sys.argv[2]).read())
show(answer.columns, [list(row) for row in answer.collect()])
session.stop()
";

const DUCKDB: &str = "
import duckdb
session = duckdb.connect()
session.execute(f\"CREATE VIEW statements AS SELECT * FROM read_parquet('{sys.argv[1]}/*.parquet')\")
answer = session.execute(open(sys.argv[2]).read())
show([column[0] for column in answer.description], answer.fetchall())
";

/// Engines, and where their libraries are.
const ENGINES: [(&str, &str); 2] = [(DUCKDB, "duckdb-2.0.1"), (SPARK, "spark-4.3.0")];

/// The rows of a class, by its identifier.
type Classes = BTreeMap<String, Value>;

fn by_class(rows: impl Iterator<Item = Value>, id: &str) -> Classes {
    rows.map(|row| (row[id].as_str().expect("an id").to_owned(), row))
        .collect()
}

/// Runs the shipped digest in an engine.
fn digest_by(engine: &str, library: &str, capture: &Path) -> Classes {
    let sql = evenkeel_testkit::checkout().join("dist/sql/digest.sql");
    let output = Command::new("python3")
        .args(["-c", &format!("{PRINT}{engine}")])
        .arg(capture)
        .arg(sql)
        .env("PYTHONPATH", cache().join(library))
        // Spark asks for a few rows: what the second compiler would gain, it costs.
        .env(
            "JAVA_TOOL_OPTIONS",
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        )
        .output()
        .expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{library}: {said}");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows = out.lines().filter(|line| line.starts_with('{'));
    by_class(
        rows.map(|line| serde_json::from_str(line).expect(line)),
        "class",
    )
}

/// Nanoseconds out of what JSON has in microseconds.
fn ns(value: &Value) -> u64 {
    (value.as_f64().expect("a number") * 1000.0).round() as u64
}

/// A digest's percentile is whole microseconds, the end of an interval that is at most a 128th wide.
fn assert_percentile(digest: &Value, exact: &Value, id: &str) {
    let digest = digest.as_u64().expect("microseconds");
    let exact = exact.as_u64().expect("nanoseconds") / 1000;
    assert!(
        (exact..=exact + exact / 128).contains(&digest),
        "{id}: {digest} for {exact}"
    );
}

fn assert_as_ours(ours: &Classes, theirs: &Classes) {
    assert_eq!(
        ours.keys().collect::<Vec<_>>(),
        theirs.keys().collect::<Vec<_>>()
    );
    for (id, row) in theirs {
        let class = &ours[id];
        let latency = &class["latency_us"];
        for (mine, other) in [
            (&class["fingerprint"], "fingerprint"),
            (&class["count"], "executions"),
            (&class["prepares"], "prepares"),
            (&class["errors"], "errors"),
            (&class["rows_sent"], "rows_sent"),
            (&class["rows_affected"], "rows_affected"),
            (&latency["count"], "timed"),
        ] {
            assert_eq!(mine, &row[other], "{id} {other}");
        }
        for (mine, other) in [
            ("sum", "sum_ns"),
            ("min", "min_ns"),
            ("avg", "avg_ns"),
            ("max", "max_ns"),
        ] {
            assert_eq!(
                ns(&latency[mine]),
                row[other].as_u64().unwrap(),
                "{id} {other}"
            );
        }
        assert_percentile(&latency["p95"], &row["p95_ns"], id);
        assert_percentile(&latency["p99"], &row["p99_ns"], id);
    }
}

/// Keeps the packets in a directory.
fn kept(played: &Played) -> PathBuf {
    let directory = played.rolled.site.fs.join("shop.capture");
    let mut command = played.rolled.evenkeel.command(&["capture", "--pcap"]);
    command
        .arg(&played.capture)
        .arg("--directory")
        .arg(&directory);
    command.arg(format!("--port={}", played.port()));
    // More than one file.
    command.arg("--file-size=64K");
    let ended = run(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    directory
}

/// What a replay says of its plan, and of what came back.
fn planned(played: &Played, capture: &str) -> BTreeMap<&'static str, Value> {
    let words = [
        "--read-only",
        "--speed=max",
        "--no-defaults",
        "-u",
        "root",
        "-S",
    ];
    let mut command = played.rolled.evenkeel.command(&["replay", capture]);
    command
        .args(words)
        .arg(played.rolled.site.running().socket());
    command.arg(format!("--captured-port={}", played.port()));
    command.current_dir(played.rolled.site.fs.path());
    let ended = run(command);
    let names = [
        "sessions",
        "sessions_at_a_time",
        "statements",
        "prepared",
        "captured_seconds",
        "left_out",
        "waits",
        "lost",
    ];
    assert!(ended.answer["statements"].as_u64() > Some(0), "{ended:?}");
    let mut plan: BTreeMap<_, _> = names.map(|name| (name, ended.answer[name].clone())).into();
    plan.insert("compared", ended.answer["results"]["compared"].clone());
    plan
}

#[test]
fn for_replay_and_for_sql() {
    let played = Played::new(mariadb_10_11(), PROGRAM);
    let directory = kept(&played);
    assert_eq!(
        planned(&played, "shop.capture"),
        planned(&played, "shop.pcap")
    );
    let mut digest = played.rolled.evenkeel.command(&["digest"]);
    digest.arg(&directory);
    let digest = run(digest);
    assert_eq!(digest.code, Some(0), "{digest:?}");
    let classes = digest.answer["classes"]
        .as_array()
        .expect("classes")
        .clone();
    assert!(classes.len() >= 4, "{digest:?}");
    let ours = by_class(classes.into_iter(), "id");
    // To start Spark takes longer than all the rest.
    let theirs: Vec<Classes> = draw("engines", &ENGINES, 1)
        .into_iter()
        .map(|(engine, library)| digest_by(engine, library, &directory))
        .collect();
    for one in &theirs {
        assert_as_ours(&ours, one);
        assert_eq!(*one, theirs[0]);
    }
}

#[test]
fn the_page_shows_what_is_shipped() {
    let root = evenkeel_testkit::checkout();
    let page = fs::read_to_string(root.join("docs/src/tasks/query.md")).expect("the page");
    let sql = fs::read_to_string(root.join("dist/sql/digest.sql")).expect("the SQL");
    assert!(
        page.contains(&sql),
        "docs/src/tasks/query.md shows another SQL"
    );
}

#[test]
fn also_through_a_tap() {
    let scratch = Scratch::new();
    let server = mariadb_10_11();
    let running = server.run(&server.prepare(&scratch.join("data"), &[]).with_networking());
    let mut session = running.session().unwrap();
    session.run("CREATE USER app@'127.0.0.1'").unwrap();
    session.run("CREATE USER app@localhost").unwrap();
    let to = format!("127.0.0.1:{}", running.port().unwrap());
    let kept = ["--directory", "kept"];
    let mut tap = Tap::begin(PROGRAM, scratch.path(), "127.0.0.1:0", &to, &kept);
    let through = ConnectOptions::over_tcp("127.0.0.1", tap.port(), "app");
    let mut client = Session::open(&through).unwrap();
    let rows: Vec<(i64, String)> = client.raw().exec("SELECT ? + 1, ?", (1, "one")).unwrap();
    assert_eq!(rows, [(2, "one".to_owned())]);
    drop(client);
    tap.end();
    let mut replay = Command::new(PROGRAM);
    replay
        .current_dir(scratch.path())
        .args(["--json", "replay"]);
    replay.args(["kept", "--read-only", "--speed=max", "--no-defaults"]);
    replay.args(["-u", "root", "-S"]).arg(running.socket());
    let ended = run(replay);
    assert_eq!(ended.answer["prepared"], 1, "{ended:?}");
    assert_eq!(ended.answer["prepared_as_text"], 0, "{ended:?}");
    let compared = ended.answer["results"]["compared"].as_u64();
    assert!(compared > Some(0), "{ended:?}");
}
