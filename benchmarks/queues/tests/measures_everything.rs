//! Does `benchmarks/queue` measure what it says: each way and shape, waking, waiting, and a queue through a
//! crash and a compaction?

use evenkeel_cases::queues::{self, Host};
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::mariadb_10_11;
use serde_json::Value;
use std::process::Command;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// What the script says after a quick run.
fn reported() -> Value {
    let scratch = Scratch::new();
    let script = evenkeel_testkit::checkout().join("benchmarks/queue");
    let output = Command::new(script)
        .args(["--quick", "--json", "--client"])
        .arg(env!("CARGO_BIN_EXE_evenkeel-bench-queues"))
        .arg("--plugin")
        .arg(queues::plugin(Host::MariaDb10, &mariadb_10_11()))
        .arg("--dir")
        .arg(scratch.path())
        .output()
        .expect("the script runs");
    let reported = String::from_utf8_lossy(&output.stderr);
    println!("{reported}");
    assert!(output.status.success(), "{reported}");
    serde_json::from_slice(&output.stdout).expect("one document")
}

#[test]
fn in_a_few_seconds() {
    let all = reported();
    let list = |part: &str| {
        let runs = all[part].as_array();
        runs.unwrap_or_else(|| panic!("{part}: {all}")).clone()
    };

    // Two ways put messages in, two take them out again, five do so beside producers.
    assert_eq!(list("load").len(), 2 + 2 + 5, "{all}");
    // In a fifth of a second, a busy machine may get to nothing once.
    let load = list("load");
    let moved = load.iter().filter(|run| number(&run["per_s"]) > 0.0);
    assert!(moved.count() * 2 > load.len(), "{all}");
    for run in load {
        assert!(number(&run["per_s"]) >= 0.0, "{run}");
        assert!(
            run["command"]
                .as_str()
                .is_some_and(|words| words.contains(" load ")),
            "{run}"
        );
    }
    for run in list("wake") {
        assert!(number(&run["from_start"]["p50_ms"]) > 0.0, "{run}");
        assert!(
            number(&run["from_start"]["p50_ms"]) >= number(&run["from_return"]["p50_ms"]),
            "{run}"
        );
    }
    let [waiting, polling] = &list("idle")[..] else {
        panic!("{all}")
    };
    assert_eq!(waiting["queries"], 0, "{waiting}");
    assert!(number(&polling["queries"]) > 100.0, "{polling}");

    let big = &all["big"];
    let bytes = |when: &str| number(&big[when]["bytes"]);
    assert_eq!(big["full"]["rows"], big["messages"], "{big}");
    assert_eq!(
        number(&big["half"]["rows"]) * 2.0,
        number(&big["messages"]),
        "{big}"
    );
    assert!(
        bytes("after") < bytes("half") * 0.8,
        "it was compacted: {big}"
    );
    assert!(
        number(&big["stall"]["calm"]["inserts"]["count"]) > 0.0,
        "{big}"
    );
    assert!(number(&big["recovery"]["first_row_s"]) > 0.0, "{big}");
    assert_eq!(
        list("bars").len(),
        5,
        "those of 32 clients are left out: {all}"
    );
}
