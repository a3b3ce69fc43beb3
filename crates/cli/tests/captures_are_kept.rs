//! Does a capture that is kept in a directory tell the same as its packets, and only to whom it should?

#[path = "../../traffic/tests/packets/mod.rs"]
#[allow(dead_code)] // Other tests ask for more of it.
mod packets;
#[path = "../../wire/tests/talk/mod.rs"]
#[allow(dead_code)] // As above.
mod talk;

use evenkeel_testkit::Scratch;
use packets::{PLAIN, framed, internet, parts};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::{chown, lchown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use talk::{COLUMN, EOF, OK, Talk, USUAL};

/// Text, prepared statements with values, errors, a secret, and one whose text went by before.
fn conversation() -> Talk {
    let mut talk = Talk::default();
    talk.login(USUAL);
    for number in 0..20 {
        talk.query(&format!(
            "SELECT name FROM users WHERE id = {number} /* hush */"
        ))
        .server(1, &[&[1], COLUMN, EOF, b"\x03Ann", EOF])
        .query(&format!("INSERT INTO notes VALUES ({number}, 'hush')"))
        .server(1, &[&[0, 1, 0, 2, 0, 0, 0]]);
    }
    talk.query("PREPARE p FROM 'SELECT ''hush'' FROM users'")
        .server(1, &[OK])
        .query("ALTER USER a IDENTIFIED BY 'Secret'")
        .server(1, &[b"\xff\x28\x04#42000No"])
        .client(0, &[0x17, 9, 0, 0, 0, 0, 1, 0, 0, 0])
        .server(1, &[OK])
        .client(0, &[1]);
    talk
}

struct Room(Scratch);

impl Room {
    fn new() -> Self {
        let room = Scratch::new();
        let parts = parts(&conversation(), 1400);
        let packets: Vec<_> = parts
            .iter()
            .map(|part| framed(1, &internet(part, 50_000, false)))
            .collect();
        fs::write(room.path().join("shop.pcap"), PLAIN.file(&packets)).unwrap();
        Self(room)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(words)
            .current_dir(self.0.path())
            .env("TZ", "UTC")
            .output()
            .unwrap()
    }

    /// Keeps the packets in `d`. One statement's text went by before: the exit code says so.
    fn keep(&self, words: &[&str]) -> Output {
        let all = [&["capture", "--pcap=shop.pcap", "--directory=d"], words].concat();
        let output = self.run(&all);
        assert_eq!(output.status.code(), Some(3), "{}", err(&output));
        output
    }

    fn digest(&self, words: &[&str]) -> (Value, Option<i32>) {
        let output = self.run(&[&["digest", "--json"], words].concat());
        let said = err(&output);
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
        (json, output.status.code())
    }

    fn files(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.path("d")).unwrap();
        let mut files: Vec<PathBuf> = all.map(|one| one.unwrap().path()).collect();
        files.sort();
        files
    }
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a digest says, but for the names and kinds of its files.
fn without_names(mut digest: Value) -> Value {
    for file in digest["files"].as_array_mut().unwrap() {
        file["file"] = Value::Null;
        file["source"] = Value::Null;
    }
    digest
}

#[test]
fn a_digest_of_the_directory_is_that_of_the_packets() {
    let room = Room::new();
    let said = err(&room.keep(&["--file-size=64K"]));
    assert!(
        said.contains("43 statements and 2 other commands") && said.contains("45 kept in 1 file"),
        "{said}"
    );
    let (direct, code) = room.digest(&["shop.pcap"]);
    assert_eq!(code, Some(3));
    assert!(direct["classes"].as_array().unwrap().len() >= 5, "{direct}");
    let (kept, code) = room.digest(&["d"]);
    assert_eq!(code, Some(3));
    assert_eq!(without_names(kept), without_names(direct.clone()));
    // One file of it is as good, and so is another order of words.
    let parquet = room
        .files()
        .into_iter()
        .find(|path| path.extension().is_some_and(|it| it == "parquet"));
    let parquet = parquet.unwrap();
    let (one, _) = room.digest(&[parquet.to_str().unwrap()]);
    assert_eq!(without_names(one), without_names(direct.clone()));
    let pt = ["--fingerprint=pt", "--classes=2"];
    let (direct, _) = room.digest(&[&pt[..], &["shop.pcap"]].concat());
    let (kept, _) = room.digest(&[&pt[..], &["d"]].concat());
    assert_eq!(without_names(kept), without_names(direct));
}

#[test]
fn nobody_else_reads_it_and_no_secret_is_in_it() {
    let room = Room::new();
    room.keep(&[]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&room.path("d")), 0o700);
    for file in room.files() {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let (kept, _) = room.digest(&["d"]);
    let text = kept.to_string();
    assert!(text.contains("hush") && !text.contains("Secret"), "{text}");
}

#[test]
fn nobody_else_owns_the_directory() {
    let room = Room::new();
    for (name, owner, mode) in [("theirs", 12_345, 0o700), ("shared", 0, 0o777)] {
        fs::create_dir(room.path(name)).unwrap();
        chown(room.path(name), Some(owner), None).unwrap();
        fs::set_permissions(room.path(name), Permissions::from_mode(mode)).unwrap();
        let directory = format!("--directory={name}");
        let refused = room.run(&["capture", "--pcap=shop.pcap", &directory]);
        assert_eq!(refused.status.code(), Some(14), "{}", err(&refused));
        assert_eq!(fs::read_dir(room.path(name)).unwrap().count(), 0);
    }
    // Who makes a link chooses which directory of ours it is.
    fs::create_dir(room.path("ours")).unwrap();
    std::os::unix::fs::symlink("ours", room.path("link")).unwrap();
    lchown(room.path("link"), Some(12_345), None).unwrap();
    for directory in ["--directory=link", "--directory=link/"] {
        let refused = room.run(&["capture", "--pcap=shop.pcap", directory]);
        assert_eq!(refused.status.code(), Some(14), "{}", err(&refused));
        assert_eq!(fs::read_dir(room.path("ours")).unwrap().count(), 0);
    }
}

/// A log that breaks off: what was read of it before is kept, and the failure is the program's.
#[test]
fn a_source_that_fails_costs_nothing_that_was_captured() {
    let room = Room::new();
    let mut log = String::new();
    for number in 0..2000 {
        log.push_str(&format!(
            "# Time: 2026-11-24T10:00:00.000000Z\n# User@Host: app[app] @  [10.0.0.7]\n\
             # Query_time: 0.000100  Lock_time: 0.000000 Rows_sent: 1  Rows_examined: 1\n\
             SET timestamp=1795514400;\nSELECT {number};\n"
        ));
    }
    fs::write(room.path("slow.log"), log).unwrap();
    let zipped = Command::new("gzip").arg(room.path("slow.log")).status();
    assert!(zipped.unwrap().success());
    let whole = fs::read(room.path("slow.log.gz")).unwrap();
    fs::write(room.path("cut.gz"), &whole[..whole.len() / 2]).unwrap();
    let failed = room.run(&["capture", "--log=cut.gz", "--directory=kept"]);
    assert_eq!(failed.status.code(), Some(1), "{}", err(&failed));
    assert!(
        err(&failed).contains("is kept, and can be read"),
        "{}",
        err(&failed)
    );
    let (digest, _) = room.digest(&["kept"]);
    let count = digest["total"]["count"].as_u64().unwrap();
    assert!((100..2000).contains(&count), "{count}");
}

#[test]
fn a_file_counts_once() {
    let room = Room::new();
    room.keep(&[]);
    let files = room.files();
    let file = files
        .iter()
        .find(|path| path.extension().is_some_and(|it| it == "parquet"));
    fs::copy(file.unwrap(), room.path("d").join("copy.parquet")).unwrap();
    let refused = room.run(&["digest", "d"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("twice"), "{}", err(&refused));
}

#[test]
fn what_filters_left_out_is_said() {
    let room = Room::new();
    room.keep(&[]);
    let said = |place: &str| err(&room.run(&["digest", place]));
    assert!(!said("d").contains("had filters"), "{}", said("d"));
    let filtered = ["capture", "--pcap=shop.pcap", "--directory=few"];
    room.run(&[&filtered[..], &["--user=nobody"]].concat());
    let said = said("few");
    assert!(said.contains("had filters, which left out"), "{said}");
}

#[test]
fn without_values_there_are_classes_and_no_replay() {
    let room = Room::new();
    room.keep(&["--redact"]);
    let (direct, _) = room.digest(&["shop.pcap"]);
    let (kept, _) = room.digest(&["d"]);
    assert!(!kept.to_string().contains("hush"), "{kept}");
    let numbers = |digest: &Value| {
        let mut classes = digest["classes"].clone();
        for class in classes.as_array_mut().unwrap() {
            class["sample"] = Value::Null;
        }
        classes
    };
    assert_eq!(numbers(&kept), numbers(&direct));
    let replay = room.run(&[
        "replay",
        "d",
        "--read-only",
        "--no-defaults",
        "-h",
        "127.0.0.1",
        "-P",
        "1",
    ]);
    assert_eq!(replay.status.code(), Some(2));
    assert!(err(&replay).contains("--redact"), "{}", err(&replay));
}

#[test]
fn directories_are_not_mixed_up() {
    let room = Room::new();
    room.keep(&[]);
    let again = ["capture", "--pcap=shop.pcap", "--directory=d"];
    let refused = room.run(&again);
    assert_eq!(refused.status.code(), Some(2));
    assert!(err(&refused).contains("--append"), "{}", err(&refused));
    room.keep(&["--append"]);
    let (kept, _) = room.digest(&["d"]);
    assert_eq!(kept["files"][0]["entries"], 90, "{kept}");
    fs::create_dir(room.path("other")).unwrap();
    fs::write(room.path("other/letter"), "Dear").unwrap();
    let foreign = [
        "capture",
        "--pcap=shop.pcap",
        "--directory=other",
        "--append",
    ];
    let refused = room.run(&foreign);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(fs::read_dir(room.path("other")).unwrap().count(), 1);
    let digest = room.run(&["digest", "other"]);
    assert_eq!(digest.status.code(), Some(2), "{}", err(&digest));
    assert!(
        err(&digest).contains("holds no capture"),
        "{}",
        err(&digest)
    );
}

#[test]
fn encrypted_files_need_the_identity() {
    let room = Room::new();
    let made = room.run(&["keys", "generate", "--output=own.key"]);
    assert!(made.status.success(), "{}", err(&made));
    let key = fs::read_to_string(room.path("own.key")).unwrap();
    let recipient = key
        .split("public key: ")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    room.keep(&["--encrypt-to", recipient]);
    let refused = room.run(&["digest", "d"]);
    assert_eq!(refused.status.code(), Some(12), "{}", err(&refused));
    assert!(err(&refused).contains("--identity"), "{}", err(&refused));
    let (direct, _) = room.digest(&["shop.pcap"]);
    let (kept, _) = room.digest(&["d", "--identity=own.key"]);
    assert_eq!(without_names(kept), without_names(direct));
}

#[test]
fn single_files_say_what_they_are_part_of() {
    let room = Room::new();
    room.keep(&["--file-size=64K"]);
    let mut files: Vec<String> = fs::read_dir(room.path("d"))
        .unwrap()
        .map(|entry| entry.unwrap().path().display().to_string())
        .filter(|name| name.ends_with(".parquet"))
        .collect();
    files.sort();
    // One file is all of it: its end is there.
    let [only] = &files[..] else {
        panic!("{files:?}")
    };
    let said = err(&room.run(&["digest", only]));
    assert!(!said.contains("were named"), "{said}");
    let copy = room.path("copy.parquet").display().to_string();
    fs::copy(only, &copy).unwrap();
    for words in [[only, &copy], [only, &room.path("d").display().to_string()]] {
        let output = room.run(&["digest", words[0], words[1]]);
        let said = err(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("its statements would count twice"), "{said}");
    }
}
