//! Is a replica that is cut off in the middle of a repair or a comparison left as it was found: with both threads
//! running, all rows, and no lock?

use evenkeel_cases::partition::{Cut, is_here};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_cases::trio::Trio;
use evenkeel_server::replication::{Channel, ThreadState};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{By, Scratch, TestServer, effort, until_within};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// Longer than a session lasts that says nothing, and than a statement is waited for.
const HEALS_WITHIN: Duration = Duration::from_secs(150);

struct Case {
    trio: Trio,
    scratch: Scratch,
}

impl Case {
    fn start(server: TestServer) -> Self {
        let trio = Trio::start(server, By::Gtid, &[], PROGRAM);
        for replica in [1, 2] {
            trio.sql(replica, "SET GLOBAL read_only = ON");
        }
        // Packets are only lost where there are some.
        trio.sql(0, "CREATE USER healer@'127.0.0.1'");
        trio.sql(
            0,
            "GRANT ALL ON *.* TO healer@'127.0.0.1' WITH GRANT OPTION",
        );
        trio.catch_up();
        let scratch = Scratch::new();
        Self { trio, scratch }
    }

    fn command(&self, verb: &str, more: &[&str]) -> Command {
        let places: Vec<String> = (0..3)
            .map(|at| format!("127.0.0.1:{}", self.trio.port(at)))
            .collect();
        let mut words = vec!["replica", verb, "--no-defaults", "-uhealer"];
        words.extend(more);
        match verb {
            "heal" => words.extend(places.iter().map(String::as_str)),
            _ => words.push(&places[1]),
        }
        Evenkeel::new(PROGRAM).command(&words)
    }

    fn heal(&self) -> Command {
        let journal = format!("--journal={}", self.scratch.join("journal").display());
        let allow = "--allow=restart,relay-reset,row-repair";
        self.command("heal", &[allow, "--execute", &journal, "--max-repairs=100"])
    }

    fn damage(&self, first: u32) {
        self.trio.damage_relay_log(1, first, |length| length / 2);
    }

    /// Everything is as it was, and a healer does the rest.
    fn recovers(&self) {
        until_within(HEALS_WITHIN, "it is repaired", || {
            run(self.heal()).code == Some(0)
        });
        self.trio.catch_up();
        for at in 0..3 {
            for lock in ["evenkeel: heal", "evenkeel: applier"] {
                until_within(HEALS_WITHIN, "no lock is left", || {
                    let sql = format!("SELECT IS_FREE_LOCK('{lock}')");
                    self.trio.session(at).value(&sql).unwrap().as_deref() == Some("1")
                });
            }
        }
    }
}

fn spawned(mut command: Command, point: &str) -> Child {
    command.env("FAILPOINTS", format!("{point}=sleep(4000)"));
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn ended(child: Child) -> Ended {
    Ended::of(&child.wait_with_output().unwrap())
}

fn both_stand(channel: &Channel) -> bool {
    channel.receiver == ThreadState::Stopped && channel.applier == ThreadState::Stopped
}

fn both_run(channel: &Channel) -> bool {
    channel.receiver == ThreadState::Running && channel.applier == ThreadState::Running
}

/// Nobody gets to the source, from when the threads were stopped on.
fn without_the_source(case: &Case) {
    case.damage(1000);
    let healer = spawned(case.heal(), "heal::stepped");
    case.trio.until(1, "both stand", both_stand);
    let cut = Cut::port(case.trio.port(0));
    let ended = ended(healer);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    drop(cut);
    case.recovers();
}

/// The healer does not get to the replica whose threads it has stopped.
fn without_the_replica(case: &Case) {
    case.damage(1100);
    let healer = spawned(case.heal(), "heal::stepped");
    case.trio.until(1, "both stand", both_stand);
    let cut = Cut::port(case.trio.port(1));
    let ended = ended(healer);
    assert_eq!(ended.code, Some(4), "{ended:?}");
    drop(cut);
    case.recovers();
}

/// A comparison stops the SQL thread, and cannot say that it should run again.
fn in_a_comparison(case: &Case) {
    let source = format!("--source=127.0.0.1:{}", case.trio.port(0));
    let comparison = case.command("checksum", &[&source, "--lock-deadline=5s"]);
    let comparison = spawned(comparison, "applier::stands");
    case.trio.until(1, "the SQL thread stands", |channel| {
        channel.applier == ThreadState::Stopped
    });
    let cut = Cut::port(case.trio.port(1));
    let ended = ended(comparison);
    assert_ne!(ended.code, Some(0), "{ended:?}");
    drop(cut);
    case.trio.until(1, "both run", both_run);
    case.recovers();
}

#[test]
fn of_replicas() {
    if !is_here("of_replicas") {
        return;
    }
    let servers = [mariadb_10_11(), mysql_8_0_15()];
    let cuts: [fn(&Case); 3] = [without_the_source, without_the_replica, in_a_comparison];
    for server in effort::draw("servers that are cut off", &servers, 1) {
        println!("{}", server.id);
        let case = Case::start(server);
        for cut in effort::draw("moments of cuts", &cuts, 1) {
            cut(&case);
        }
    }
}
