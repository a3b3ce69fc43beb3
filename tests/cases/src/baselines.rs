//! Data directories that are saved and rolled back, under a server that others start again.

use crate::Site;
use crate::program::{Ended, Evenkeel, run};
use evenkeel_op::Cancel;
use evenkeel_server::connect::Session;
use evenkeel_server::service::Process;
use evenkeel_testkit::servers::{SERVER_DEADLINE, copy_tree};
use evenkeel_testkit::{BankState, BankTraffic, Marks, Scratch};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A site whose server may be stopped and started by the program under test. It is killed at the end,
/// whoever started it.
pub struct Rolled {
    /// The program under test.
    pub evenkeel: Evenkeel,
    /// The data directory.
    pub datadir: PathBuf,
    /// The site; its server is the first one that ran.
    pub site: Site,
}

impl Rolled {
    /// Takes a site.
    #[must_use]
    pub fn new(site: Site, program: &str) -> Self {
        Self {
            evenkeel: Evenkeel::new(program),
            datadir: site.launch.datadir.clone(),
            site,
        }
    }

    /// Plans a command about the baselines of the server that answers at the site's socket.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.evenkeel.command(&["baseline"]);
        command
            .args(words)
            .args(["--no-defaults", "-u", "root", "-S"])
            .arg(self.site.running().socket());
        command
    }

    /// Plans one about those of the stopped server.
    #[must_use]
    pub fn command_stopped(&self, words: &[&str]) -> Command {
        let mut command = self.evenkeel.command(&["baseline"]);
        command.args(words).arg("--datadir").arg(&self.datadir);
        command
    }

    /// Runs a command that is to succeed.
    #[track_caller]
    pub fn done(&self, words: &[&str]) -> Ended {
        succeeded(run(self.command(words)))
    }

    /// Runs one about the stopped server that is to succeed.
    #[track_caller]
    pub fn done_stopped(&self, words: &[&str]) -> Ended {
        succeeded(run(self.command_stopped(words)))
    }

    /// Opens a session with whichever server answers at the socket.
    #[track_caller]
    #[must_use]
    pub fn session(&self) -> Session {
        let options = self.site.running().connect_options();
        Session::open(&options).unwrap_or_else(|e| panic!("{}", e.chain()))
    }

    /// Returns whether one answers.
    #[must_use]
    pub fn answers(&self) -> bool {
        Session::open(&self.site.running().connect_options()).is_ok()
    }

    /// Starts clients of whichever server answers.
    #[must_use]
    pub fn traffic(&self) -> BankTraffic {
        let options = self.site.running().connect_options();
        self.site.bank.start(&options, 2).expect("traffic")
    }

    /// Lets clients work for a while.
    pub fn work(&self, transfers: u64) -> Marks {
        let traffic = self.traffic();
        traffic.wait_for(transfers);
        traffic.stop()
    }

    /// Checks the bank and returns its state.
    #[track_caller]
    #[must_use]
    pub fn bank(&self) -> BankState {
        let state = self.site.bank.check(&mut self.session());
        state.unwrap_or_else(|e| panic!("{}", e.chain()))
    }

    /// Returns the processes of servers on the data directory, also of those that are just starting.
    #[must_use]
    pub fn servers(&self) -> Vec<i32> {
        let word = format!("--datadir={}", self.datadir.display());
        let processes = fs::read_dir("/proc").expect("processes").flatten();
        processes
            .filter(|process| {
                let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
                words
                    .split(|byte| *byte == 0)
                    .any(|one| one == word.as_bytes())
            })
            .filter_map(|process| process.file_name().to_str()?.parse().ok())
            .collect()
    }

    /// Ends whichever server runs, cleanly.
    pub fn stop(&self) {
        self.end(Signal::TERM);
    }

    /// Starts a server as the first one was.
    pub fn start(&mut self) {
        self.stop();
        self.site.running = None;
        self.site.running = Some(self.site.server.run(&self.site.launch));
    }

    fn end(&self, signal: Signal) {
        let until = Instant::now() + SERVER_DEADLINE;
        for pid in self.servers() {
            let Ok(process) = Process::now(pid) else {
                continue;
            };
            let _ = kill_process(Pid::from_raw(pid).expect("a number"), signal);
            let ended = process.wait(until, &Cancel::new()).expect("a wait");
            assert!(ended, "the server does not end");
        }
    }

    /// Asserts that no server starts on the data directory as it is, with a copy of it.
    #[track_caller]
    pub fn assert_refused(&self, point: &str) {
        let scratch = Scratch::new();
        let copy = scratch.join("data");
        copy_tree(&self.datadir, &copy);
        let _ = fs::remove_dir_all(copy.join(".evenkeel-baselines"));
        let mut launch = self.site.launch.clone();
        launch.datadir.clone_from(&copy);
        let started = launch.start(Duration::from_secs(60), &Cancel::new());
        assert!(
            started.is_err(),
            "{point}: a server started on half a state"
        );
    }

    /// Asserts that nothing is left of what a run was at.
    #[track_caller]
    pub fn assert_tidy(&self, reported: &str) {
        let kept_in = self.list_stopped()["kept_in"].as_str().map(PathBuf::from);
        let kept_in = kept_in.unwrap_or_else(|| panic!("{reported}: no place"));
        assert!(!kept_in.join("rollback.json").exists(), "{reported}");
        let work = crate::leftovers::names_in(&kept_in.join("work"));
        assert_eq!(work, Vec::<String>::new(), "{reported}");
        assert!(
            !self.datadir.join(".evenkeel-rollback").exists(),
            "{reported}"
        );
    }

    /// Returns what `list` says.
    #[track_caller]
    #[must_use]
    pub fn list_stopped(&self) -> serde_json::Value {
        self.done_stopped(&["list"]).answer
    }
}

impl Drop for Rolled {
    fn drop(&mut self) {
        for _ in 0..50 {
            let servers = self.servers();
            for pid in &servers {
                if let Some(pid) = Pid::from_raw(*pid) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            if servers.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[track_caller]
fn succeeded(ended: Ended) -> Ended {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

/// Makes a directory a subvolume of its own.
pub fn make_subvolume(path: &Path) {
    let output = Command::new("btrfs")
        .args(["subvolume", "create"])
        .arg(path)
        .output()
        .expect("btrfs");
    assert!(output.status.success(), "{output:?}");
}
