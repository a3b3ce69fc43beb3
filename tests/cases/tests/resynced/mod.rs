//! A source with two replicas, of which one is broken and made new from the other.

use evenkeel_cases::SMALL;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_op::Cancel;
use evenkeel_server::connect::Session;
use evenkeel_server::launch::{Launch, Running};
use evenkeel_server::service::Process;
use evenkeel_testkit::replicas::wait_until_it_applies;
use evenkeel_testkit::servers::SERVER_DEADLINE;
use evenkeel_testkit::{Bank, By, LoopFs, TestServer, wait_until_caught_up};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const GIB: u64 = 1 << 30;
/// Their names: the source, the healthy replica, the broken one.
pub(crate) const NAMES: [&str; 3] = ["source", "sibling", "broken"];
const IDS: [&str; 3] = ["--server-id=1", "--server-id=2", "--server-id=3"];

/// Such servers. All that run on their directories are killed at the end, whoever started them.
pub(crate) struct Three {
    pub(crate) fs: LoopFs,
    pub(crate) bank: Bank,
    evenkeel: Evenkeel,
    running: Vec<Running>,
}

impl Three {
    pub(crate) fn start(server: &TestServer, by: By, accounts: u32) -> Self {
        let fs = LoopFs::xfs(4 * GIB);
        let plan = |at: usize| -> Launch {
            let own = SMALL.iter().filter(|arg| !arg.starts_with("--server-id"));
            let own = own.copied().chain(by.options(server));
            let more = [
                IDS[at],
                "--relay-log=relay",
                "--slave-net-timeout=60",
                "--sync-binlog=0",
            ];
            let options: Vec<&str> = own.chain(more).collect();
            let launch = server.prepare(&fs.join(NAMES[at]), &options);
            launch.with_networking()
        };
        let running: Vec<Running> = (0..3).map(|at| server.run(&plan(at))).collect();
        By::allow(&running[0]);
        let bank = Bank::load(&mut running[0].session().unwrap(), accounts).unwrap();
        for replica in [1, 2] {
            by.follow(&running[0], &running[replica]);
            wait_until_caught_up(&running[0], &running[replica]);
        }
        Self {
            fs,
            bank,
            evenkeel: Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test")),
            running,
        }
    }

    pub(crate) fn running(&self, name: &str) -> &Running {
        let at = NAMES.iter().position(|one| *one == name).expect("a name");
        &self.running[at]
    }

    /// Opens a session with whichever server answers at that one's socket.
    #[track_caller]
    pub(crate) fn session(&self, name: &str) -> Session {
        let options = self.running(name).connect_options();
        Session::open(&options).unwrap_or_else(|e| panic!("{name}: {}", e.chain()))
    }

    pub(crate) fn value(&self, name: &str, sql: &str) -> Option<String> {
        self.session(name).value(sql).expect(sql)
    }

    /// Rows that no other server has are added, one is deleted, and the relay logs are gone.
    pub(crate) fn break_it(&self) {
        let mut session = self.session("broken");
        session.run("STOP SLAVE").unwrap();
        session.run("SET sql_log_bin = 0").unwrap();
        for sql in [
            "CREATE DATABASE own",
            "CREATE TABLE own.t (id INT PRIMARY KEY)",
            "DELETE FROM bank.accounts_0 LIMIT 3",
        ] {
            session.run(sql).expect(sql);
        }
        for entry in fs::read_dir(self.fs.join("broken")).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with("relay.") {
                fs::remove_file(entry.path()).unwrap();
            }
        }
    }

    /// Plans a resync of a server's directory from another server, from the directory above them.
    pub(crate) fn plan(&self, broken: &str, from: &str, flags: &[&str]) -> Command {
        let mut command =
            self.evenkeel
                .command(&["replica", "resync", "--no-defaults", "-u", "root"]);
        command
            .arg("-S")
            .arg(self.running(from).socket())
            .args(["--datadir", broken, "--catch-up-deadline=5m"])
            .args(flags)
            .current_dir(self.fs.path());
        command
    }

    /// Plans one of the broken server from its sibling, to be carried out.
    pub(crate) fn resync(&self, flags: &[&str]) -> Command {
        self.plan("broken", "sibling", &[&["--execute"], flags].concat())
    }

    /// Runs it, and checks that the replica is one again.
    #[track_caller]
    pub(crate) fn done(&self, command: Command, what: &str) -> Ended {
        let ended = run(command);
        assert_eq!(ended.code, Some(0), "{what}: {ended:?}");
        assert_eq!(ended.answer["schema"], "evenkeel/replica-resync/1");
        assert_eq!(ended.answer["executed"], true, "{what}: {ended:?}");
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new(), "{what}");
        ended
    }

    /// Waits for both replicas, and compares them with the source. It must not be written to meanwhile.
    #[track_caller]
    pub(crate) fn assert_equal(&self, what: &str) {
        let source = self.running("source");
        let state = |name: &str| {
            let state = self.bank.check(&mut self.session(name));
            state.unwrap_or_else(|e| panic!("{what}: {name}: {}", e.chain()))
        };
        for name in ["sibling", "broken"] {
            wait_until_it_applies(self.running(name));
            wait_until_caught_up(source, self.running(name));
            assert_eq!(state(name), state("source"), "{what}: {name}");
        }
        let own = "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'own'";
        assert_eq!(self.value("broken", own).as_deref(), Some("0"), "{what}");
        for (name, id) in NAMES.iter().zip(["1", "2", "3"]) {
            let found = self.value(name, "SELECT @@GLOBAL.server_id");
            assert_eq!(found.as_deref(), Some(id), "{what}: {name}");
        }
    }

    /// The MySQL server's name for itself; of MariaDB none.
    pub(crate) fn uuid(&self, name: &str) -> Option<String> {
        self.session(name).variable("server_uuid").unwrap()
    }

    /// Asserts that others have no way in that they had not before.
    #[track_caller]
    pub(crate) fn assert_closed(&self) {
        let facts = |path: PathBuf| {
            let found = fs::metadata(path).unwrap();
            (found.mode() & 0o7777, found.uid(), found.gid())
        };
        for name in ["", "ibdata1", "mysql", "bank", "bank/ledger.ibd"] {
            let of = |server: &str| facts(self.fs.join(server).join(name));
            assert_eq!(of("broken"), of("sibling"), "{name}");
        }
    }

    /// What lies beside the directories.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.fs.path()).unwrap().flatten();
        let paths = entries.map(|entry| entry.path());
        let is_ours = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            name.contains("evenkeel-res")
        };
        paths.filter(is_ours).collect()
    }

    /// The processes of servers on a directory.
    pub(crate) fn servers(&self, name: &str) -> Vec<i32> {
        let word = format!("--datadir={}", self.fs.join(name).display());
        let processes = fs::read_dir("/proc").unwrap().flatten();
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

    /// Kills whichever server runs on a directory.
    pub(crate) fn kill(&self, name: &str) {
        let until = Instant::now() + SERVER_DEADLINE;
        for pid in self.servers(name) {
            let Ok(process) = Process::now(pid) else {
                continue;
            };
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
            assert!(process.wait(until, &Cancel::new()).unwrap(), "{name}");
        }
    }
}

impl Drop for Three {
    fn drop(&mut self) {
        for name in NAMES.iter().chain(&["broken.evenkeel-resync"]) {
            for _ in 0..50 {
                let servers = self.servers(name);
                for pid in &servers {
                    let _ = kill_process(Pid::from_raw(*pid).unwrap(), Signal::KILL);
                }
                if servers.is_empty() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}
