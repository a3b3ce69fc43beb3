//! Does a fleet work for some servers at a time, go on without those that fail or are killed, and
//! stop them all when it is told to?

use evenkeel_testkit::{Scratch, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::process::{Child, Command, Output, Stdio};

struct Case {
    scratch: Scratch,
}

impl Case {
    /// Disks of virtual machines for servers: they need none to be backed up. What is in `options`
    /// is for every one of them.
    fn new(names: &[&str], options: &str) -> Self {
        let scratch = Scratch::new();
        let here = scratch.path().display().to_string();
        let mut list = format!(
            "[every]\nrepository = '{here}/{{name}}'\nvolume = '{here}/{{name}}.img'\n\
             snapshot = 'copy'\n{options}\n"
        );
        for name in names {
            fs::write(scratch.join(format!("{name}.img")), vec![1; 16 << 20]).unwrap();
            list.push_str(&format!("[[server]]\nname = '{name}'\n"));
        }
        fs::write(scratch.join("fleet.toml"), list).unwrap();
        Self { scratch }
    }

    fn command(&self, flags: &[&str], words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
        command.args(["--json", "fleet"]);
        command.arg(self.scratch.join("fleet.toml"));
        command.args(flags).arg("--").args(words);
        command
    }

    fn run(&self, flags: &[&str], words: &[&str]) -> (Option<i32>, Value) {
        answer(&self.command(flags, words).output().unwrap())
    }
}

fn answer(output: &Output) -> (Option<i32>, Value) {
    let said = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout);
    (
        output.status.code(),
        json.unwrap_or_else(|_| panic!("{said}")),
    )
}

fn codes(answer: &Value) -> Vec<Option<u64>> {
    let servers = answer["servers"].as_array().unwrap().iter();
    servers.map(|one| one["exit_code"].as_u64()).collect()
}

/// A fleet at work; killed with all of its processes if the test does not see it to its end.
struct Spawned(Option<Child>);

impl Spawned {
    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    fn children(&mut self) -> Vec<Pid> {
        let mut found = Vec::new();
        // It may have ended.
        let threads = fs::read_dir(format!("/proc/{}/task", self.child().id()));
        for thread in threads.into_iter().flatten().flatten() {
            let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            let pids = text.split_whitespace().map(|pid| pid.parse().unwrap());
            found.extend(pids.filter_map(Pid::from_raw));
        }
        found
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        if self.0.is_some() {
            for pid in self.children() {
                let _ = kill_process(pid, Signal::KILL);
            }
            let _ = self.child().kill();
            let _ = self.child().wait();
        }
    }
}

#[test]
fn what_fails_stops_no_other() {
    let case = Case::new(&["a", "b", "c"], "");
    let missing = case.scratch.join("b.img");
    fs::rename(&missing, case.scratch.join("away")).unwrap();
    let (code, json) = case.run(&["--jobs=1"], &["backup"]);
    assert_eq!(code, Some(3), "{json:#}");
    let ended = codes(&json);
    assert_eq!((ended[0], ended[2]), (Some(0), Some(0)), "{json:#}");
    assert_ne!(ended[1], Some(0), "{json:#}");
    assert_eq!(json["servers"][1]["answer"]["schema"], "evenkeel/error/1");
    assert_eq!((&json["done"], &json["failed"]), (&2.into(), &1.into()));

    fs::rename(case.scratch.join("away"), &missing).unwrap();
    let (code, json) = case.run(&["--only=b", "--only=c"], &["backup"]);
    assert_eq!(code, Some(0), "{json:#}");
    let servers = json["servers"].as_array().unwrap();
    let generations = servers
        .iter()
        .map(|one| one["answer"]["generation"].as_u64());
    assert_eq!(generations.collect::<Vec<_>>(), [Some(1), Some(2)]);

    let (code, json) = case.run(&[], &["generations", "7"]);
    assert_eq!(code, Some(1), "all of them failed: {json:#}");
}

/// At a byte a second nobody gets done.
#[test]
fn some_at_a_time_until_it_is_told_to_stop() {
    let case = Case::new(&["a", "b", "c", "d"], "rate = 1");
    let mut command = case.command(&["--jobs=2"], &["backup"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut fleet = Spawned(Some(command.spawn().unwrap()));
    let begun = |name: &str| case.scratch.join(name).exists();
    until("two have begun", || begun("a") && begun("b"));
    let first = fleet.children();
    assert_eq!(first.len(), 2, "as many as were asked for");
    assert!(!begun("c"));
    kill_process(first[0], Signal::KILL).unwrap();
    until("the third has begun", || begun("c"));
    let then = fleet.children();
    assert!(then.contains(&first[1]), "the second goes on");
    assert_eq!(then.len(), 2);

    kill_process(Pid::from_child(fleet.child()), Signal::TERM).unwrap();
    until("all have ended", || {
        fleet.children().is_empty() && fleet.child().try_wait().unwrap().is_some()
    });
    let (code, json) = answer(&fleet.0.take().unwrap().wait_with_output().unwrap());
    assert_eq!(code, Some(143), "{json:#}");
    let mut ended = codes(&json);
    assert_eq!(
        ended.pop(),
        Some(None),
        "the last was never begun: {json:#}"
    );
    ended.sort();
    assert_eq!(ended, [Some(137), Some(143), Some(143)], "{json:#}");
    for pid in then {
        let alive = rustix::process::test_kill_process(pid).is_ok();
        assert!(!alive, "{pid:?} is left");
    }
    assert!(!begun("d"));
}
