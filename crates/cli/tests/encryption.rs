//! Does the command line encrypt, open and refuse as it says, with exit code 12 for a wrong key?

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with a volume to back up.
struct Desk {
    dir: tempfile::TempDir,
}

struct Ended {
    code: Option<i32>,
    answer: Value,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let desk = Self { dir };
        desk.change(1);
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Gives the volume other content.
    fn change(&self, seed: u8) {
        let bytes: Vec<u8> = (0..100_000u32).map(|i| (i / 9) as u8 ^ seed).collect();
        fs::write(self.path("volume"), bytes).unwrap();
    }

    fn run(&self, words: &[&str]) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .env("HOME", self.dir.path())
            .arg("--json")
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let answer = serde_json::from_slice(&output.stdout);
        Ended {
            code: output.status.code(),
            answer: answer.unwrap_or_else(|_| json!({ "said": said })),
        }
    }

    fn back_up(&self, more: &[&str]) -> Ended {
        let (repository, volume) = (self.text("r"), self.text("volume"));
        let words = ["backup", "--no-defaults", &repository, "--volume", &volume];
        self.run(&[&words[..], &["--snapshot", "copy"], more].concat())
    }

    /// Makes an identity and returns its recipient.
    fn key(&self, name: &str) -> String {
        let ended = self.run(&["keys", "generate", "--output", &self.text(name)]);
        ended.is(0);
        let mode = fs::metadata(self.path(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        ended.answer["recipient"].as_str().unwrap().to_owned()
    }

    fn restore(&self, name: &str, more: &[&str]) -> Ended {
        let (repository, target) = (self.text("r"), self.text(name));
        let words = ["restore", &repository, "--target", &target];
        self.run(&[&words[..], more].concat())
    }

    fn verify(&self, more: &[&str]) -> Ended {
        self.run(&[&["verify", &self.text("r")], more].concat())
    }

    #[track_caller]
    fn assert_restored(&self, name: &str) {
        let volume = fs::read(self.path("volume")).unwrap();
        let restored = all_files(&self.path(name));
        assert!(
            restored
                .iter()
                .any(|file| fs::read(file).unwrap() == volume)
        );
    }
}

fn all_files(top: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(top).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(all_files(&path)),
            false => all.push(path),
        }
    }
    all
}

impl Ended {
    #[track_caller]
    fn is(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{:#}", self.answer);
    }

    /// Refused with exit code 12, saying this, and what to do.
    #[track_caller]
    fn is_wrong_key(&self, says: &str) {
        self.is(12);
        assert_eq!(self.answer["kind"], "wrong-key");
        let message = self.answer["message"].as_str().unwrap();
        assert!(message.contains(says), "{message}");
        assert!(
            self.answer["hints"]
                .as_array()
                .is_some_and(|all| !all.is_empty())
        );
    }
}

#[test]
fn a_writer_adds_and_a_reader_restores() {
    let desk = Desk::new();
    let (reader, _host) = (desk.key("admin.key"), desk.key("host.key"));
    let (admin, host) = (desk.text("admin.key"), desk.text("host.key"));
    desk.back_up(&["--encrypt-to", &reader, "--identity", &host])
        .is(0);
    desk.change(2);
    let ended = desk.back_up(&["--identity", &host]);
    ended.is(0);
    assert_eq!(ended.answer["kind"], "incremental");
    // The same words every night.
    desk.back_up(&["--encrypt-to", &reader, "--identity", &host])
        .is(0);
    desk.restore("a", &["--identity", &host])
        .is_wrong_key("this identity can write backups, not read them");
    desk.restore("b", &[]).is_wrong_key("no key was given");
    let stranger = desk.text("stranger.key");
    desk.key("stranger.key");
    desk.restore("c", &["--identity", &stranger])
        .is_wrong_key("none of the identities given opens this repository");
    desk.restore("d", &["--identity", &stranger, "--identity", &admin])
        .is(0);
    desk.assert_restored("d");
    desk.verify(&["--identity", &admin]).is(0);
    let ended = desk.verify(&["--identity", &host]);
    ended.is(3);
    assert_eq!(ended.answer["unchecked"].as_array().map(Vec::len), Some(1));
    desk.verify(&[]).is(3);
    let ended = desk.run(&["generations", &desk.text("r")]);
    ended.is(0);
    assert_eq!(
        ended.answer["generations"].as_array().map(Vec::len),
        Some(3)
    );
    assert_eq!(ended.answer["generations"][0]["source"], "");
}

#[test]
fn keys_come_and_go() {
    let desk = Desk::new();
    let (first, second) = (desk.key("1.key"), desk.key("2.key"));
    let (one, two) = (desk.text("1.key"), desk.text("2.key"));
    let repository = desk.text("r");
    desk.back_up(&["--encrypt-to", &first, "--identity", &one])
        .is(0);
    desk.run(&["keys", "add", &repository, "--recipient", &second])
        .is_wrong_key("no key was given");
    let add = [
        "keys",
        "add",
        &repository,
        "--identity",
        &one,
        "--recipient",
        &second,
    ];
    desk.run(&add).is(0);
    desk.restore("a", &["--identity", &two]).is(0);
    let remove = [
        "keys",
        "remove",
        &repository,
        "--identity",
        &two,
        "--recipient",
        &first,
    ];
    let ended = desk.run(&remove);
    ended.is(0);
    assert_eq!(
        (&ended.answer["executed"], &ended.answer["rotated"]),
        (&json!(false), &json!(true))
    );
    desk.restore("b", &["--identity", &one]).is(0);
    desk.run(&[&remove[..], &["--execute"]].concat()).is(0);
    desk.restore("c", &["--identity", &one])
        .is_wrong_key("none of the identities");
    desk.change(3);
    desk.back_up(&["--identity", &two]).is(0);
    desk.restore("d", &["--identity", &two]).is(0);
    desk.assert_restored("d");
    let ended = desk.run(&["keys", "list", &repository]);
    ended.is(0);
    let expected = json!([{ "recipient": second, "role": "reader" }]);
    assert_eq!(ended.answer["recipients"], expected);
}

#[test]
fn a_passphrase_opens_it_and_never_stands_in_the_words() {
    let desk = Desk::new();
    fs::write(desk.path("pass"), "correct horse battery\n").unwrap();
    fs::write(desk.path("wrong"), "correct mule battery\n").unwrap();
    let (pass, wrong) = (desk.text("pass"), desk.text("wrong"));
    desk.back_up(&["--encrypt-passphrase-file", &pass]).is(0);
    desk.back_up(&["--passphrase-file", &pass]).is(0);
    desk.restore("a", &["--passphrase-file", &wrong])
        .is_wrong_key("the passphrase does not open this repository");
    desk.restore("b", &["--passphrase-file", &pass]).is(0);
    desk.assert_restored("b");
    let missing = desk.restore("c", &["--passphrase-file", &desk.text("nothing")]);
    missing.is(2);
}

#[test]
fn nothing_is_written_in_clear_where_a_key_was_given() {
    let desk = Desk::new();
    let reader = desk.key("admin.key");
    let admin = desk.text("admin.key");
    desk.back_up(&["--identity", &admin])
        .is_wrong_key("would not be encrypted");
    assert!(!desk.path("r").exists());
    desk.back_up(&[]).is(0);
    desk.back_up(&["--identity", &admin])
        .is_wrong_key("is not encrypted");
    desk.back_up(&["--encrypt-to", &reader])
        .is_wrong_key("is not encrypted");
    // Reading needs no key, and minds none.
    desk.restore("a", &["--identity", &admin]).is(0);
    let listed = desk.run(&["keys", "list", &desk.text("r")]);
    assert_eq!(listed.answer["encrypted"], false);
}

#[test]
fn option_files_name_keys_too() {
    let desk = Desk::new();
    let reader = desk.key("admin.key");
    let admin = desk.text("admin.key");
    desk.back_up(&["--encrypt-to", &reader]).is(0);
    desk.restore("a", &[]).is_wrong_key("no key was given");
    fs::write(
        desk.path(".my.cnf"),
        format!("[evenkeel]\nidentity={admin}\n"),
    )
    .unwrap();
    desk.restore("b", &[]).is(0);
    desk.assert_restored("b");
    desk.verify(&[]).is(0);
}
