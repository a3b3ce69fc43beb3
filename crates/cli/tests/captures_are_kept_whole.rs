//! Is a capture in a directory or a bucket complete, file by file, whatever ends it?

#[path = "../../traffic/tests/packets/mod.rs"]
#[allow(dead_code)] // Other tests ask for more of it.
mod packets;
#[path = "../../wire/tests/talk/mod.rs"]
#[allow(dead_code)] // As above.
mod talk;

use evenkeel_testkit::wait::until_within;
use evenkeel_testkit::{LoopFs, Scratch, Seaweed};
use packets::{PLAIN, framed, internet, parts};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use talk::{OK, Talk, USUAL};

/// Packets of so many statements; none is like another, so they take space.
fn packets(statements: u64) -> Vec<u8> {
    let mut talk = Talk::default();
    talk.login(USUAL);
    let mut random = 1_u64;
    for _ in 0..statements {
        let mut text = String::new();
        for _ in 0..40 {
            random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            text += &format!("{:08x}", random >> 32);
        }
        talk.query(&format!("SELECT '{text}'")).server(1, &[OK]);
    }
    let parts = parts(&talk, 1400);
    let packets: Vec<_> = parts
        .iter()
        .map(|part| framed(1, &internet(part, 50_000, false)))
        .collect();
    PLAIN.file(&packets)
}

fn evenkeel(room: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(words).current_dir(room).env("TZ", "UTC");
    command
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a digest says of its file, its exit code, and what it complains of.
fn digest(mut command: Command) -> (Value, Option<i32>, String) {
    let output = command.output().unwrap();
    let said = err(&output);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    (json, output.status.code(), said)
}

/// Has a capture of a pipe killed when some of its statements are complete.
fn killed(mut capture: Command, packets: &[u8], has_some: impl FnMut() -> bool) {
    let mut child = capture
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(packets).unwrap();
    until_within(Duration::from_secs(60), "a file is complete", has_some);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let all = fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> = all
        .map(|one| one.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

const SMALL: [&str; 4] = ["capture", "--pcap=-", "--file-size=64K", "--directory"];

#[test]
fn a_killed_capture_has_whole_files_and_can_be_added_to() {
    let room = Scratch::new();
    let packets = packets(2000);
    let capture = evenkeel(room.path(), &[&SMALL[..], &["d"]].concat());
    let directory = room.path().join("d");
    killed(capture, &packets, || {
        names(&directory)
            .iter()
            .any(|name| name.ends_with(".parquet"))
    });
    let (json, code, said) = digest(evenkeel(room.path(), &["digest", "d", "--json"]));
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("has no end"), "{said}");
    let entries = json["files"][0]["entries"].as_u64().unwrap();
    assert!(entries > 0 && entries < 2001, "{entries}");
    fs::write(room.path().join("all.pcap"), &packets).unwrap();
    let words = ["capture", "--pcap=all.pcap", "--directory=d", "--append"];
    let again = evenkeel(room.path(), &words).output().unwrap();
    assert_eq!(again.status.code(), Some(0), "{}", err(&again));
    assert!(!names(&directory).iter().any(|name| name.ends_with(".tmp")));
    let (json, _, _) = digest(evenkeel(room.path(), &["digest", "d", "--json"]));
    assert_eq!(json["files"][0]["entries"], entries + 2001);
}

#[test]
fn single_files_say_what_of_their_capture_was_not_named() {
    let room = Scratch::new();
    fs::write(room.path().join("all.pcap"), packets(2000)).unwrap();
    let words = [
        "capture",
        "--pcap=all.pcap",
        "--file-size=64K",
        "--directory=d",
    ];
    let kept = evenkeel(room.path(), &words).output().unwrap();
    assert_eq!(kept.status.code(), Some(0), "{}", err(&kept));
    let mut files = names(&room.path().join("d"));
    files.retain(|name| name.ends_with(".parquet"));
    let files: Vec<String> = files.iter().map(|name| format!("d/{name}")).collect();
    assert!(files.len() > 2, "{files:?}");
    let said = |named: &[String]| {
        let named = named.iter().map(String::as_str);
        let words: Vec<&str> = ["digest"].into_iter().chain(named).collect();
        let output = evenkeel(room.path(), &words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        err(&output)
    };
    let all = said(&files);
    assert!(!all.contains("were named"), "{all}");
    let first = said(&files[..1]);
    assert!(
        first.contains("were named: 1; what the capture missed is not known"),
        "{first}"
    );
    let last = said(&files[files.len() - 1..]);
    assert!(last.contains("before it were not named"), "{last}");
    assert!(!last.contains("is not known"), "{last}");
}

#[test]
fn a_full_disk_leaves_what_is_complete() {
    let room = Scratch::new();
    fs::write(room.path().join("shop.pcap"), packets(30_000)).unwrap();
    let disk = LoopFs::ext4(4 << 20);
    let directory = disk.join("d");
    let target = directory.to_str().unwrap();
    let words = [
        "capture",
        "--pcap=shop.pcap",
        "--file-size=256K",
        "--directory",
        target,
    ];
    let output = evenkeel(room.path(), &words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert!(err(&output).contains("No space left"), "{}", err(&output));
    assert!(!names(&directory).iter().any(|name| name.ends_with(".tmp")));
    let (json, code, said) = digest(evenkeel(room.path(), &["digest", target, "--json"]));
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("has no end"), "{said}");
    assert!(
        json["files"][0]["entries"].as_u64().unwrap() > 100,
        "{json}"
    );
}

#[test]
fn objects_appear_when_they_are_complete() {
    let room = Scratch::new();
    let store = Seaweed::start();
    let at_store = |words: &[&str]| {
        let mut command = evenkeel(room.path(), words);
        command.envs(Seaweed::environment(store.port()));
        command
    };
    let packets = packets(2000);
    let killed_url = format!("s3://{}/killed", Seaweed::BUCKET);
    let capture = at_store(&[&SMALL[..], &[&killed_url]].concat());
    let entries = || {
        let output = at_store(&["digest", &killed_url, "--json"])
            .output()
            .unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        json["files"][0]["entries"].as_u64().unwrap_or(0)
    };
    killed(capture, &packets, || entries() > 0);
    let (_, code, said) = digest(at_store(&["digest", &killed_url, "--json"]));
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("has no end"), "{said}");

    fs::write(room.path().join("all.pcap"), &packets).unwrap();
    let url = format!("s3://{}/whole", Seaweed::BUCKET);
    let words = [
        "capture",
        "--pcap=all.pcap",
        "--file-size=64K",
        "--directory",
        &url,
    ];
    let output = at_store(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let (kept, code, said) = digest(at_store(&["digest", &url, "--json"]));
    assert_eq!(code, Some(0), "{said}");
    let (direct, _, _) = digest(evenkeel(room.path(), &["digest", "all.pcap", "--json"]));
    assert_eq!(kept["classes"], direct["classes"]);
    assert_eq!(kept["files"][0]["entries"], direct["files"][0]["entries"]);
}
