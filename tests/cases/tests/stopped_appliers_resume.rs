//! Is a replica's applier running again after a backup was killed at any of its steps, with or
//! without the watchdog, and is no process left?

use evenkeel_cases::failpoints::{APPLIER, APPLIER_STANDS, CLOSING_GAPS};
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::launch::Running;
use evenkeel_server::replication::ThreadState;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::replicas::{status, wait_until_it_applies};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{Bank, BankTraffic, By, LoopFs, TestServer, until};
use std::fs;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};
use std::time::Duration;

const GIB: u64 = 1 << 30;
const MARK: &str = "EVENKEEL_TEST_CASE";

struct Case {
    traffic: BankTraffic,
    _source: Running,
    site: Site,
    evenkeel: Evenkeel,
    mark: String,
}

impl Case {
    fn start(server: TestServer) -> Self {
        let fs = LoopFs::xfs(4 * GIB);
        let plan = |name: &str, id: &'static str, more: &[&'static str]| {
            let mut args: Vec<&str> = SMALL.to_vec();
            args.extend(By::Position.options(&server));
            args.push(id);
            args.extend(more);
            server.prepare(&fs.join(name), &args).with_networking()
        };
        let workers = match server.binary.flavour {
            Flavour::MariaDb => "--slave-parallel-threads=4",
            Flavour::MySql => "--slave-parallel-workers=4",
        };
        let source = server.run(&plan("source", "--server-id=1", &[]));
        By::allow(&source);
        let bank = Bank::load(&mut source.session().unwrap(), 500).unwrap();
        let launch = plan("data", "--server-id=2", &[workers]);
        let running = server.run(&launch);
        By::Position.follow(&source, &running);
        wait_until_it_applies(&running);
        let traffic = bank.start(&source.connect_options(), 2).unwrap();
        Self {
            traffic,
            _source: source,
            mark: format!("{MARK}={}", running.pid()),
            site: Site {
                running: Some(running),
                launch,
                bank,
                server,
                fs,
            },
            evenkeel: Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test")),
        }
    }

    fn backup(&self) -> Command {
        let mut backup = self.evenkeel.backup(&self.site, &["--stop-applier"]);
        let (name, value) = self.mark.split_once('=').unwrap();
        backup.env(name, value);
        backup
    }

    fn kill_at(&self, point: &str, everybody: bool) {
        println!("killed at {point}, everybody: {everybody}");
        let mut backup = killed_at(self.backup(), point);
        if everybody {
            backup.env("EVENKEEL_KILL_ALL", "1");
        }
        let ended = run(backup);
        assert_eq!(
            ended.signal,
            Some(9),
            "{point} was never reached: {ended:?}"
        );
    }

    /// The processes of backups of this case, watchdogs among them.
    fn processes(&self) -> Vec<i32> {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_ours = |pid: &i32| {
            fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
                environment
                    .split(|byte| *byte == 0)
                    .any(|one| one == self.mark.as_bytes())
            })
        };
        numbers.filter(is_ours).collect()
    }

    /// Waits until there are none. To look at all processes of the host is much: it is not done again at once.
    fn wait_for_processes(&self) {
        until("no process is left", || {
            let is_none = self.processes().is_empty();
            if !is_none {
                std::thread::sleep(Duration::from_millis(50));
            }
            is_none
        });
    }

    fn notes(&self) -> usize {
        let prefix = format!("{}-", self.site.running().pid());
        let notes = fs::read_dir("/run/evenkeel/appliers")
            .into_iter()
            .flatten()
            .flatten();
        notes
            .filter(|note| note.file_name().to_string_lossy().starts_with(&prefix))
            .count()
    }

    fn applier(&self) -> ThreadState {
        status(self.site.running()).channels[0].applier
    }

    fn assert_resumes(&self, point: &str) {
        wait_until_it_applies(self.site.running());
        self.wait_for_processes();
        assert_eq!(self.applier(), ThreadState::Running, "{point}");
        assert!(!status(self.site.running()).channels[0].until, "{point}");
        self.traffic.wait_for(5);
    }

    fn doctor(&self) -> String {
        let mut doctor = self
            .evenkeel
            .command(&["doctor", "--no-defaults", "-u", "root"]);
        doctor.arg("-S").arg(self.site.running().socket());
        let ended = run(doctor);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.said
    }

    /// Killed alone, the watchdog does it; killed together with it, the next command.
    fn at_each(&self, points: &[&str]) {
        for point in points {
            self.kill_at(point, false);
            self.assert_resumes(point);
            self.kill_at(point, true);
            if APPLIER_STANDS.contains(point) {
                assert_eq!(
                    self.applier(),
                    ThreadState::Stopped,
                    "nobody could start it"
                );
            }
            let said = self.doctor();
            if APPLIER_STANDS.contains(point) {
                assert!(said.contains("had left the SQL thread stopped"), "{said}");
            }
            self.assert_resumes(point);
            assert_eq!(self.notes(), 0, "{point}");
        }
        let ended = run(self.backup());
        assert!(ended.generation() > 0);
        self.assert_resumes("the end");
        assert_eq!(self.notes(), 0);
    }
}

const STEPS: &str = "steps of a backup that stops an applier";

#[test]
fn of_mariadb() {
    let mut points = share(STEPS, &APPLIER, Part::new(0, 3));
    points.push("backup::freeze::moment");
    Case::start(mariadb_10_11()).at_each(&points);
}

#[test]
fn of_mysql() {
    let closes_gaps = draw("servers that close gaps", &[1, 2], 1);
    for (part, server) in [(1, mysql_8_0_15()), (2, mysql_5_7_22())] {
        let mut points = share(STEPS, &APPLIER, Part::new(part, 3));
        if closes_gaps.contains(&part) {
            points.extend(CLOSING_GAPS);
        }
        Case::start(server).at_each(&points);
    }
}

/// What somebody else did since is not undone.
#[test]
fn what_others_stopped_stays_stopped() {
    let case = Case::start(mariadb_10_11());
    case.kill_at("applier::stands", true);
    let mut session = case.site.running().session().unwrap();
    session.run("START SLAVE SQL_THREAD").unwrap();
    wait_until_it_applies(case.site.running());
    let place = || status(case.site.running()).channels[0].executed.clone();
    let before = place();
    until("the applier gets on", || place() != before);
    session.run("STOP SLAVE SQL_THREAD").unwrap();
    let said = case.doctor();
    assert!(!said.contains("the SQL thread"), "{said}");
    assert_eq!(case.applier(), ThreadState::Stopped);
    assert_eq!(case.notes(), 0);
}

/// The command that handles it is the one for this server, also while one for another server, which does not
/// answer yet, checks what there is to do.
#[test]
fn by_the_command_for_its_server_while_another_waits() {
    let case = Case::start(mariadb_10_11());
    case.kill_at("applier::stands", true);
    let silent = UnixListener::bind(case.site.fs.join("silent")).unwrap();
    let mut other = case
        .evenkeel
        .command(&["doctor", "--no-defaults", "-u", "root"]);
    other.arg("-S").arg(case.site.fs.join("silent"));
    let mut other = other.stdout(Stdio::null()).spawn().unwrap();
    let _waits = silent.accept().unwrap();
    let said = case.doctor();
    assert!(said.contains("had left the SQL thread stopped"), "{said}");
    other.kill().unwrap();
    other.wait().unwrap();
    case.assert_resumes("while another waits");
}

/// A server that was restarted has its own way with its appliers.
#[test]
fn those_of_a_restarted_server_are_left_alone() {
    let mut case = Case::start(mariadb_10_11());
    case.kill_at("applier::stands", true);
    assert_eq!(case.notes(), 1);
    let old = case.site.running().pid();
    case.site.kill();
    let mut launch = case.site.launch.clone();
    launch.extra_args.push("--skip-slave-start".to_owned());
    case.site.running = Some(case.site.server.run(&launch));
    let said = case.doctor();
    assert!(!said.contains("the SQL thread"), "{said}");
    assert_eq!(case.applier(), ThreadState::Stopped);
    let note = fs::read_dir("/run/evenkeel/appliers").unwrap().flatten();
    let of_old = |name: &str| name.starts_with(&format!("{old}-"));
    assert!(
        !note
            .into_iter()
            .any(|one| of_old(&one.file_name().to_string_lossy()))
    );
}
