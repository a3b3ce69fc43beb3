//! Under 30 clients, changes of tables, kills, resets, upgrades and restarts: is each row that was acknowledged given to be
//! ended once, and none by half, in its order, and as it was put in?

use evenkeel_cases::queues::soak::{Own, Soak};
use evenkeel_cases::queues::tools::tool;
use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_testkit::effort::{rounds, seed};
use evenkeel_testkit::servers::SERVER_DEADLINE;
use evenkeel_testkit::traffic::Random;
use evenkeel_testkit::until;
use rustix::process::{Pid, Signal, kill_process};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Rounds of a server in a sample, and in full: 20 minutes.
const SAMPLE: u32 = 3;
const ALL: u32 = 300;

/// How a round ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    Stopped,
    Upgraded,
    ClientsKilled,
    Reinstalled,
}

/// The first five rounds have one end each, in another order with another seed.
fn end(host: Host, round: u32, random: &mut Random) -> End {
    let nth = (u64::from(round) + seed()) % 5;
    let end = match if round < 5 {
        nth
    } else {
        u64::from(random.below(12))
    } {
        0 | 5..=7 => End::Killed,
        1 | 8 => End::Stopped,
        2 => End::Upgraded,
        3 | 9..=10 => End::ClientsKilled,
        _ => End::Reinstalled,
    };
    match end {
        End::Upgraded if host == Host::MySql9 => End::Stopped,
        end => end,
    }
}

fn signal(site: &QueueSite, signal: Signal) {
    kill_process(Pid::from_raw(site.running.pid()).unwrap(), signal).unwrap();
}

/// Kills whoever is there until nobody is.
fn nobody_is_left(site: &QueueSite) {
    let mut session = site.running.session().unwrap();
    until("nobody is left", || {
        let others = "SELECT id FROM information_schema.PROCESSLIST WHERE user = 'root' AND id <> CONNECTION_ID()";
        let rows = session.rows(others).unwrap();
        for row in &rows {
            // It may have gone by itself.
            let _ = session.run(&format!("KILL {}", row.at(0).unwrap()));
        }
        rows.is_empty()
    });
}

fn out_and_in(site: &QueueSite) {
    let mut session = site.running.session().unwrap();
    session.run("FLUSH TABLES").unwrap();
    until("it is out and in again", || {
        let _ = session.run("UNINSTALL PLUGIN queue");
        session
            .run("INSTALL PLUGIN queue SONAME 'ha_queue.so'")
            .is_ok()
    });
}

fn ended(site: QueueSite, end: End) -> QueueSite {
    let stop = |site: QueueSite| site.again(|running| running.stop(SERVER_DEADLINE).unwrap());
    match end {
        End::Killed => site.again(|running| running.kill()),
        End::Stopped => stop(site),
        End::Upgraded => {
            let site = stop(site);
            let upgraded = tool(&site, "mariadb-upgrade")
                .arg("--force")
                .output()
                .unwrap();
            assert!(upgraded.status.success(), "{upgraded:?}");
            site
        }
        End::ClientsKilled => {
            nobody_is_left(&site);
            site
        }
        End::Reinstalled => {
            nobody_is_left(&site);
            out_and_in(&site);
            site
        }
    }
}

fn the_ledger_is_exact(host: Host, turn: u64) {
    // One server in a sample.
    let sample = if seed() % 3 == turn { SAMPLE } else { 0 };
    let rounds = rounds("rounds of clients of queues", sample, ALL);
    if rounds == 0 {
        return;
    }
    let (begun, soak, mut own) = (Instant::now(), Soak::default(), Own::default());
    let mut random = Random::new(seed() * 3 + turn);
    let mut site = QueueSite::start_on(host, &["--performance-schema=OFF"]);
    Soak::make(&site);
    let (mut restarts, mut upgrades) = (0, 0);
    for round in 0..rounds {
        let end = end(host, round, &mut random);
        let place = format!("seed {}, {host:?}, round {round}, {end:?}", seed());
        let pause = Duration::from_millis(u64::from(800 + random.below(2200)));
        soak.run(&site, &mut own, random.number(), |soak| {
            sleep(pause);
            soak.ends();
            match end {
                End::Killed => signal(&site, Signal::KILL),
                End::Stopped | End::Upgraded => signal(&site, Signal::TERM),
                End::ClientsKilled | End::Reinstalled => nobody_is_left(&site),
            }
        });
        assert_eq!(soak.wrong(), None, "{place}");
        site = ended(site, end);
        restarts += u32::from(!matches!(end, End::ClientsKilled | End::Reinstalled));
        upgrades += u32::from(end == End::Upgraded);
        assert_eq!(soak.compare(&site), Ok(()), "{place}");
        assert_eq!(own.compare(&site), Ok(()), "{place}");
        println!("{place}: {:?}", soak.ledger().counts());
    }
    assert_eq!(
        soak.drain(&site),
        Ok(()),
        "seed {}, {host:?}, drained",
        seed()
    );
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let [acknowledged, ended, doubts] = soak.ledger().counts();
    assert_eq!(acknowledged, ended);
    assert!(ended > 0);
    println!(
        "{host:?}: {rounds} rounds, {} s, {} statements, {acknowledged} acknowledged, {ended} ended, {doubts} in doubt, \
         {} kills, {} resets, {} DDL, {upgrades} upgrades, {restarts} restarts",
        begun.elapsed().as_secs(),
        of(&soak.counts.statements),
        of(&soak.counts.kills),
        of(&soak.counts.resets),
        of(&soak.counts.ddl),
    );
}

#[test]
fn on_mariadb_10_11() {
    the_ledger_is_exact(Host::MariaDb10, 0);
}

#[test]
fn on_mariadb_11_8() {
    the_ledger_is_exact(Host::MariaDb11, 1);
}

#[test]
fn on_mysql_9() {
    the_ledger_is_exact(Host::MySql9, 2);
}
