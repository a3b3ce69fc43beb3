//! Is a replica down whose disk for relay logs is full: SELECT works, and the server may say that all is well?

use evenkeel_health::probe::{Checks, Observed};
use evenkeel_health::reason::Cause;
use evenkeel_health::watch::{Target, Timing, Watch};
use evenkeel_server::connect::Session;
use evenkeel_testkit::replicas::wait_until_it_applies;
use evenkeel_testkit::servers::{TestServer, give_to_server, mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{By, LoopFs, Scratch, until};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

const TIMING: Timing = Timing {
    interval: Duration::from_secs(2),
    timeout: Duration::from_secs(2),
};

fn next(watch: &mut Watch) -> Observed {
    let mut found = None;
    until("a probe ends", || {
        found = watch.next(TIMING.interval).pop();
        found.is_some()
    });
    found.unwrap().1
}

/// Waits until there is no room on a filesystem.
fn fill(disk: &LoopFs) {
    let mut file = File::create(disk.join("filler")).unwrap();
    for size in [1 << 16, 1 << 10, 1] {
        let block = vec![b'x'; size];
        while file
            .write_all(&block)
            .and_then(|()| file.sync_data())
            .is_ok()
        {}
    }
}

fn full_replicas_are_down(server: &TestServer) {
    let (room, disk) = (Scratch::new(), LoopFs::ext4(16 << 20));
    give_to_server(disk.path());
    let relay = format!("--relay-log={}", disk.join("relay").display());
    let plan = |name: &str, more: &[&str]| {
        let options = [&By::Position.options(server), more].concat();
        let datadir = room.path().join(name);
        server.prepare(&datadir, &options).with_networking()
    };
    let source = server.run(&plan("source", &["--server-id=1"]));
    By::allow(&source);
    let replica = server.run(&plan("replica", &["--server-id=2", &relay]));
    By::Position.follow(&source, &replica);
    wait_until_it_applies(&replica);
    let target = Target {
        name: "replica".to_owned(),
        options: replica.connect_options(),
        checks: Arc::new(Checks {
            lag_max: Some(Duration::from_secs(8)),
            write_table: Some("ops.beat".parse().unwrap()),
            ..Checks::default()
        }),
    };
    let mut there = replica.session().unwrap();
    there.run("SET GLOBAL read_only = ON").unwrap();
    let mut root: Session = source.session().unwrap();
    for sql in [
        "CREATE DATABASE ops",
        "CREATE TABLE ops.beat (id BIGINT UNSIGNED PRIMARY KEY, at DATETIME(6))",
        "CREATE TABLE ops.texts (text LONGTEXT)",
    ] {
        root.run(sql).unwrap();
    }
    // As the prober of the source does.
    let mut beat = move |with: &str| {
        root.run("REPLACE INTO ops.beat VALUES (1, UTC_TIMESTAMP(6))")
            .unwrap();
        root.run(with).unwrap();
    };
    let mut watch = Watch::new(vec![target], TIMING);
    until("it replicates", || {
        beat("DO 1");
        next(&mut watch).reasons.is_empty()
    });
    fill(&disk);
    let mut causes = Vec::new();
    for _ in 0..30 {
        beat("INSERT INTO ops.texts VALUES (REPEAT('x', 500000))");
        let found = next(&mut watch);
        causes = found.reasons.iter().map(|reason| reason.cause).collect();
        // Whatever else hangs, this does not.
        assert_eq!(there.value("SELECT 1").unwrap().as_deref(), Some("1"));
        if !causes.is_empty() {
            break;
        }
    }
    // MySQL says that both threads run, and that it is 0 s behind.
    let known = [Cause::Stuck, Cause::Replication, Cause::Lag];
    assert!(
        causes.iter().any(|cause| known.contains(cause)),
        "{}: {causes:?}",
        server.name
    );
    drop((watch, there));
    replica.kill();
    source.kill();
}

#[test]
fn full_replicas_of_mariadb_are_down() {
    full_replicas_are_down(&mariadb_10_11());
}

#[test]
fn full_replicas_of_mysql_8_are_down() {
    full_replicas_are_down(&mysql_8_0_15());
}
