//! Does a damaged manifest cost the generation that it is of, and no other?

mod wait;

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use wait::{Tied, signal, until};

struct Case {
    scratch: TempDir,
}

impl Case {
    /// Three full generations of a disk: 1, 2 and 3 megabytes of it.
    fn new() -> Self {
        let case = Self {
            scratch: tempfile::tempdir().unwrap(),
        };
        for number in 1..=3_u8 {
            let disk = vec![number; usize::from(number) << 20];
            fs::write(case.path("disk"), disk).unwrap();
            let volume = format!("--volume={}", case.path("disk").display());
            let (code, json) = case.run("backup", &[&*volume, "--snapshot=copy", "--full"]);
            assert_eq!(code, Some(0), "{json:#}");
        }
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn run(&self, verb: &str, flags: &[&str]) -> (Option<i32>, Value) {
        let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["--json", verb])
            .arg(self.path("repository"))
            .args(flags)
            .output()
            .unwrap();
        let json = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), json)
    }

    /// Flips a bit in the middle of a generation's manifest.
    fn damage(&self, generation: usize) {
        let folders = fs::read_dir(self.path("repository/generations")).unwrap();
        let mut folders: Vec<PathBuf> = folders.map(|one| one.unwrap().path()).collect();
        folders.sort();
        let manifest = folders[generation - 1].join("manifest");
        let mut bytes = fs::read(&manifest).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(manifest, bytes).unwrap();
    }

    /// Restores, and returns how long the disk is that comes of it.
    fn restored(&self, name: &str, flags: &[&str]) -> Result<u64, (Option<i32>, Value)> {
        let target = self.path(name);
        let target = format!("--target={}", target.display());
        let (code, json) = self.run("restore", &[&[&*target], flags].concat());
        match code {
            Some(0) => Ok(json["bytes_logical"].as_u64().unwrap()),
            code => Err((code, json)),
        }
    }
}

fn numbers(list: &Value) -> Vec<u64> {
    let all = list.as_array().unwrap().iter();
    all.map(|one| one["generation"].as_u64().unwrap()).collect()
}

#[test]
fn the_others_are_listed_and_it_is_named() {
    let case = Case::new();
    let (code, json) = case.run("generations", &[]);
    assert_eq!(code, Some(0), "{json:#}");
    assert_eq!(numbers(&json["damaged"]), [] as [u64; 0]);
    case.damage(2);
    let (code, json) = case.run("generations", &[]);
    assert_eq!(code, Some(3), "{json:#}");
    assert_eq!(numbers(&json["generations"]), [1, 3]);
    assert_eq!(numbers(&json["damaged"]), [2]);
    let why = json["damaged"][0]["damage"].as_str().unwrap();
    assert!(why.contains("manifest"), "{why}");
}

#[test]
fn the_others_are_restored() {
    let case = Case::new();
    case.damage(2);
    assert_eq!(case.restored("one", &["--generation=1"]).unwrap(), 1 << 20);
    assert_eq!(case.restored("newest", &[]).unwrap(), 3 << 20);
    let (code, json) = case.restored("two", &["--generation=2"]).unwrap_err();
    assert_eq!(code, Some(4), "{json:#}");
}

#[test]
fn on_the_way_to_a_point_it_is_passed_over() {
    let case = Case::new();
    case.damage(3);
    let restore = |flags: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .arg("restore")
            .arg(case.path("repository"))
            .args(["--to=gtid:0-1-1", "--target"])
            .arg(case.path("target"))
            .args(flags)
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    // No log is archived, so that there is no way on from the others either.
    let said = restore(&[]);
    assert!(said.contains("skipping generation 3"), "{said}");
    let said = restore(&["--generation=3"]);
    assert!(!said.contains("skipping generation"), "{said}");
}

#[test]
fn in_place_of_the_newest_no_older_one_is_restored_unasked() {
    let case = Case::new();
    case.damage(3);
    let (code, json) = case.restored("newest", &[]).unwrap_err();
    assert_eq!(code, Some(4), "{json:#}");
    let hints = json["hints"].to_string();
    assert!(hints.contains("--generation 2"), "{hints}");
}

#[test]
fn the_others_are_mounted() {
    let case = Case::new();
    case.damage(3);
    let place = case.path("mounted");
    fs::create_dir(&place).unwrap();
    let mut mount = Tied::start(
        Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["mount", "--json"])
            .args([&case.path("repository"), &place])
            .stdout(Stdio::piped()),
    );
    let shown = || {
        let sources = fs::read_dir(&place).into_iter().flatten().flatten();
        let all = sources.flat_map(|one| fs::read_dir(one.path()).into_iter().flatten());
        let names = all.map(|one| one.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    until("the mount, or its end", || {
        !shown().is_empty() || mount.try_wait().unwrap().is_some()
    });
    assert_eq!(shown(), ["1", "2", "latest"]);
    signal("INT", mount.id());
    let output = std::io::read_to_string(mount.stdout.take().unwrap()).unwrap();
    let first: Value = serde_json::from_str(output.lines().next().unwrap()).unwrap();
    assert_eq!(first["generations"], 2, "{output}");
}
