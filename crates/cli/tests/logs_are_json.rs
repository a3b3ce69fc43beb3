//! Is all that is said on standard error one JSON object a line where that was asked for, and stamped where that was?

use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(args).output().unwrap()
}

/// Each line as an object, which must have what every line has.
fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let parse = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let time = value["time"].as_str().unwrap();
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{line}");
        assert!(value["message"].is_string(), "{line}");
        value
    };
    text.lines().map(parse).collect()
}

#[test]
fn progress_and_failures() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("disk"), vec![1; 1 << 20]).unwrap();
    let volume = format!("--volume={}", dir.path().join("disk").display());
    let place = dir.path().join("r").display().to_string();
    let args = ["backup", &place, &volume, "--snapshot=copy"];
    let done = run(&[&args[..], &["--log-format=json"]].concat());
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    let said = lines(&done);
    assert!(
        said.iter()
            .any(|line| line["message"] == "reading, 1.0 MiB"),
        "{said:?}"
    );
    assert!(said.iter().all(|line| line["level"] == "info"), "{said:?}");

    let failed = run(&[
        "generations",
        "/nonexistent/r",
        "--log-format",
        "json",
        "--json",
    ]);
    let said = lines(&failed);
    let last = said.last().unwrap();
    assert_eq!(last["level"], "error");
    assert_eq!(last["kind"], "no-repository");
    assert_eq!(last["exit_code"], 10);
    let answer: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!(answer["message"], last["message"]);

    // A command line that cannot be read is no exception.
    let wrong = run(&["--log-format=json", "bakcup"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(lines(&wrong)[0]["level"], "error");
}

#[test]
fn text_with_the_time() {
    let failed = run(&["generations", "/nonexistent/r", "--log-timestamps"]);
    let text = String::from_utf8(failed.stderr).unwrap();
    assert!(text.lines().count() > 0);
    for line in text.lines() {
        let (stamp, rest) = line.split_once("] ").unwrap_or_else(|| panic!("{text}"));
        assert!(stamp.starts_with("[20"), "{text}");
        assert!(
            rest.starts_with("evenkeel: ") || rest.starts_with("hint: "),
            "{text}"
        );
    }
}
