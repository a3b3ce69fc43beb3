//! Does SIGUSR1 have a run say how far it is, and go on?

mod wait;

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use wait::{Tied, signal};

/// Lets a process read a file at a byte a second, asks it when it has said that it reads, and returns what it
/// answers. It is told to stop then: 143 says that it was alive.
fn answer(words: &[&str]) -> String {
    let mut run = Tied::start(
        Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped()),
    );
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    let mut line = |is_it: fn(&str) -> bool| {
        let found = lines.by_ref().map_while(Result::ok);
        found.into_iter().find(|line| is_it(line))
    };
    let reads = line(|line| line.contains("reading, 16.0 MiB"));
    assert!(reads.is_some(), "it said what there is to read");
    signal("USR1", run.id());
    let reported = line(|line| line.ends_with(" so far") || line.ends_with(" left"));
    let reported = reported.expect("an answer");
    signal("TERM", run.id());
    assert_eq!(run.wait().unwrap().code(), Some(143), "{reported}");
    reported
}

#[test]
fn a_backup_says_how_far_it_is_and_continues() {
    let dir = tempfile::tempdir().unwrap();
    let volume = dir.path().join("disk.img");
    fs::write(&volume, vec![1; 16 << 20]).unwrap();
    let (volume, place) = (volume.to_str().unwrap(), dir.path().join("r"));
    let place = place.to_str().unwrap();
    let slow = ["--volume", volume, "--snapshot", "copy", "--rate", "1"];
    let reported = answer(&[&["backup", place], &slow[..]].concat());
    assert!(reported.contains("16.0 MiB"), "{reported}");
}

#[test]
fn each_of_a_fleet_says_it_too() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().display();
    fs::write(dir.path().join("a.img"), vec![1; 16 << 20]).unwrap();
    let list = dir.path().join("fleet.toml");
    let text = format!(
        "[[server]]\nname = 'a'\nrepository = '{here}/r'\nvolume = '{here}/a.img'\n\
         snapshot = 'copy'\nrate = 1\n"
    );
    fs::write(&list, text).unwrap();
    let reported = answer(&["fleet", list.to_str().unwrap(), "--", "backup"]);
    assert!(reported.contains("a: reading"), "{reported}");
}
