//! A trio with a journal, and those who are told.

use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_cases::trio::Trio;
use evenkeel_testkit::{By, Scratch, TestServer, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// The server whose replicas apply in parallel.
const WITH_WORKERS: &str = "mysql-8.0.15";

/// A source, two replicas where clients cannot write, and a journal.
pub(crate) struct Case {
    pub(crate) trio: Trio,
    scratch: Scratch,
}

impl Case {
    pub(crate) fn start(server: TestServer, by: By) -> Self {
        let workers: &[&'static str] = match server.id {
            WITH_WORKERS => &[
                "--slave-parallel-workers=4",
                "--slave-parallel-type=LOGICAL_CLOCK",
            ],
            _ => &[],
        };
        let trio = Trio::start(server, by, workers, PROGRAM);
        for replica in [1, 2] {
            trio.sql(replica, "SET GLOBAL read_only = ON");
        }
        let scratch = Scratch::new();
        fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o755)).unwrap();
        Self { trio, scratch }
    }

    /// Whether transactions are applied in parallel, and may leave gaps.
    pub(crate) fn has_workers(&self) -> bool {
        self.trio.server.id == WITH_WORKERS
    }

    fn journal(&self) -> String {
        format!(
            "{}={}",
            super::JOURNAL,
            self.scratch.join("journal").display()
        )
    }

    /// Plans a healing run of these, with as many repairs as there are.
    pub(crate) fn command(&self, which: &[usize], more: &[&str]) -> Command {
        self.command_as("root", which, more)
    }

    /// The same, with another account.
    pub(crate) fn command_as(&self, user: &str, which: &[usize], more: &[&str]) -> Command {
        let journal = self.journal();
        let mut words = vec!["--execute", &journal, "--max-repairs=100"];
        words.extend(more);
        self.trio.command_as(user, "heal", which, &words)
    }

    /// The same, over TCP: ways that stay when a server starts again.
    pub(crate) fn command_over_tcp(&self, user: &str, more: &[&str]) -> Command {
        let journal = self.journal();
        let places: Vec<String> = (0..3)
            .map(|at| format!("127.0.0.1:{}", self.trio.port(at)))
            .collect();
        let mut words = vec!["replica", "heal", "--no-defaults", "-u", user, "--execute"];
        words.extend([&*journal, "--max-repairs=100"]);
        words.extend(more);
        words.extend(places.iter().map(String::as_str));
        Evenkeel::new(PROGRAM).command(&words)
    }

    pub(crate) fn heal_of(&self, which: &[usize], more: &[&str]) -> Ended {
        run(self.command(which, more))
    }

    pub(crate) fn heal(&self, more: &[&str]) -> Ended {
        self.heal_of(&[0, 1, 2], more)
    }

    /// The same, with another limit of repairs.
    pub(crate) fn heal_with(&self, more: &[&str]) -> Ended {
        let journal = self.journal();
        let mut words = vec!["--execute", &journal];
        words.extend(more);
        run(self.trio.command("heal", &[0, 1, 2], &words))
    }

    pub(crate) fn plan(&self, more: &[&str]) -> Ended {
        self.trio.asks("heal", &[0, 1, 2], more)
    }

    /// Returns what was found about a server.
    #[track_caller]
    pub(crate) fn found(&self, ended: &Ended, at: usize, failure: &str) -> Value {
        let socket = self.trio.running(at).socket().display().to_string();
        let all = ended.answer["findings"].as_array().cloned();
        let mut all = all.unwrap_or_default().into_iter();
        let is_it = |one: &Value| one["server"] == socket.as_str() && one["failure"] == failure;
        let found = all.find(is_it);
        found.unwrap_or_else(|| panic!("no {failure}: {ended:?}"))
    }

    /// Everything is allowed, and nothing is done, for this reason.
    #[track_caller]
    pub(crate) fn refuses(&self, at: usize, failure: &str, rule: &str, why: &str) -> Value {
        let ended = self.heal(&[super::ALL]);
        assert_eq!(ended.code, Some(4), "{ended:?}");
        let found = self.found(&ended, at, failure);
        assert!(found["healed"].is_null(), "{found}");
        assert_eq!(found["forbidden_by"][0]["rule"], rule, "{found}");
        let said = found["forbidden_by"][0]["why"].as_str().unwrap();
        assert!(said.contains(why), "{found}");
        found
    }

    /// Everything is allowed, and this is repaired: nothing is wrong then, and all rows are equal.
    #[track_caller]
    pub(crate) fn repairs(&self, at: usize, failure: &str) {
        let ended = self.heal(&[super::ALL]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let found = self.found(&ended, at, failure);
        assert_eq!(found["healed"]["outcome"], "repaired", "{found}");
        let why = found["healed"]["why"].as_str().unwrap();
        assert!(why.contains("equal to its source"), "{found}");
        self.trio.catch_up();
        self.trio.is_well();
    }

    pub(crate) fn history(&self) -> Vec<Value> {
        let journal = self.journal();
        let ended = self.trio.asks("heal", &[], &["--history", &journal]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.answer["records"].as_array().unwrap().clone()
    }

    /// Every repair that began has ended, with its steps in between.
    #[track_caller]
    pub(crate) fn history_is_whole(&self) {
        let all = self.history();
        let count = |record: &str| all.iter().filter(|one| one["record"] == record).count();
        assert!(count("begun") >= 6, "{all:?}");
        assert_eq!(count("begun"), count("ended"), "{all:?}");
        assert!(count("step") >= count("begun") - 1, "{all:?}");
        let path = self.scratch.join("journal/heal.journal");
        let mode = fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
    }

    /// Starts `health run` for the first replica.
    pub(crate) fn prober(&self) -> Prober {
        let control = self.scratch.join("control/health.sock");
        fs::create_dir(control.parent().unwrap()).unwrap();
        let mut command = Command::new(PROGRAM);
        command.args(["health", "run", "--no-defaults", "-uroot", "--json"]);
        command.args(["--interval=500ms", "--timeout=500ms"]);
        command.arg(format!("--control={}", control.display()));
        command.arg(self.trio.running(1).socket());
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let prober = Prober {
            child: Running(child),
            control,
        };
        until("health run answers", || {
            prober
                .order(&["status"])
                .code
                .is_some_and(|code| code != 13)
        });
        prober
    }

    /// Makes a program that writes down what it is told.
    pub(crate) fn hook(&self) -> HookLog {
        let (program, log) = (self.scratch.join("hook"), self.scratch.join("log"));
        fs::write(&log, "").unwrap();
        fs::set_permissions(&log, PermissionsExt::from_mode(0o666)).unwrap();
        let body = format!(
            "#!/bin/sh\ngrep -q replica-heal-hook && echo $EVENKEEL_FAILURE $EVENKEEL_HANDS_OVER $(id -un) >> {}\n",
            log.display()
        );
        fs::write(&program, body).unwrap();
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        HookLog { program, log }
    }

    /// Starts a healer that goes on.
    pub(crate) fn daemon(&self, more: &[&str]) -> Running {
        let mut command = self.command(&[0, 1, 2], more);
        Running(command.stdout(Stdio::null()).spawn().unwrap())
    }
}

/// A process that is killed when a test fails.
pub(crate) struct Running(Child);

impl Running {
    /// Asks it to end.
    pub(crate) fn ends(mut self) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::TERM).unwrap();
        let mut code = None;
        until("it ends", || {
            code = self.0.try_wait().unwrap();
            code.is_some()
        });
        assert_eq!(code.unwrap().code(), Some(143));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A `health run`.
pub(crate) struct Prober {
    #[allow(dead_code, reason = "it lasts as long as this")]
    child: Running,
    control: PathBuf,
}

impl Prober {
    pub(crate) fn option(&self) -> String {
        format!("--drain={}", self.control.display())
    }

    fn order(&self, words: &[&str]) -> Ended {
        let mut command = Command::new(PROGRAM);
        command.args(["--json", "health"]).args(words);
        command.arg(format!("--control={}", self.control.display()));
        run(command)
    }

    pub(crate) fn drain(&self, case: &Case, at: usize) {
        let socket = case.trio.running(at).socket().display().to_string();
        assert_eq!(self.order(&["drain", &socket]).code, Some(0));
    }

    pub(crate) fn undrain(&self, case: &Case, at: usize) {
        let socket = case.trio.running(at).socket().display().to_string();
        assert_eq!(self.order(&["undrain", &socket]).code, Some(0));
    }
}

/// What a hook wrote.
pub(crate) struct HookLog {
    program: PathBuf,
    log: PathBuf,
}

impl HookLog {
    pub(crate) fn option(&self) -> String {
        format!("--hook={}", self.program.display())
    }

    pub(crate) fn lines(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}
