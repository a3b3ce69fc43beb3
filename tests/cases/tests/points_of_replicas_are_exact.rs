//! Can a generation of a replica be brought to a point, though its files say where its applier was? And does
//! the restored server follow nobody?

use evenkeel_cases::leftovers::names_in;
use evenkeel_cases::points::{archive, make_table, mark, restore_to, rows_of};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_server::abilities::{Abilities, Flavour};
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{Bank, By, LoopFs, TestServer, wait_until_caught_up};

fn options(server: &TestServer, by: By, id: &'static str) -> Vec<&'static str> {
    let own = SMALL.iter().filter(|arg| !arg.starts_with("--server-id"));
    let mut args: Vec<&str> = own.copied().collect();
    if server.id == "mysql-9" {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
    }
    args.extend(by.options(server));
    args.push(id);
    args
}

/// A replica of several sources may have one that it does not follow at the time. Returns what takes it away.
fn other_channel(replica: &Running) -> &'static str {
    let mut session = replica.session().unwrap();
    let abilities = Abilities::probe(&mut session).unwrap();
    let (make, take_away) = match (abilities.flavour, abilities.change_replication_source) {
        (Flavour::MariaDb, _) => (
            "CHANGE MASTER 'other' TO MASTER_HOST='127.0.0.1', MASTER_PORT=1",
            "RESET SLAVE 'other' ALL",
        ),
        (Flavour::MySql, true) => (
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1 FOR CHANNEL 'other'",
            "RESET REPLICA ALL FOR CHANNEL 'other'",
        ),
        (Flavour::MySql, false) => (
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1 FOR CHANNEL 'other'",
            "RESET SLAVE ALL FOR CHANNEL 'other'",
        ),
    };
    session.run(make).unwrap();
    take_away
}

fn case(server: TestServer, by: By, several: bool) {
    let fs = LoopFs::xfs(4 << 30);
    let plan = |name: &str, id: &'static str| {
        let args = options(&server, by, id);
        server.prepare(&fs.join(name), &args).with_networking()
    };
    let source = server.run(&plan("source", "--server-id=1"));
    let launch = plan("replica", "--server-id=2");
    let replica = server.run(&launch);
    By::allow(&source);
    by.follow(&source, &replica);
    let mut session = source.session().unwrap();
    make_table(&mut session);
    let bank = Bank::load(&mut session, 100).unwrap();
    let site = Site {
        running: Some(replica),
        launch,
        bank,
        server,
        fs,
    };
    let mut add = |id: u32| {
        let sql = format!("INSERT INTO points.n VALUES ({id})");
        session.run(&sql).unwrap();
        wait_until_caught_up(&source, site.running());
        mark(&mut site.running().session().unwrap())
    };
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    add(1);
    let take_away = several.then(|| other_channel(site.running()));
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    if let Some(sql) = take_away {
        site.running().session().unwrap().run(sql).unwrap();
    }
    add(2);
    let three = add(3);
    add(4);
    let archived = archive(&evenkeel, &site, &[]);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    let target = site.fs.join("restored");
    let ended = restore_to(&evenkeel, &site, &target, &three.moved(0));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let left = names_in(&target);
    let of_replicas = |name: &&String| {
        // MariaDB makes an empty one on every server.
        let tells = name.ends_with(".info") && *name != "multi-master.info";
        tells || name.contains("evenkeel-relay")
    };
    assert_eq!(left.iter().find(of_replicas), None, "{left:?}");
    // It says too whether the server follows anybody.
    assert_eq!(rows_of(&site, &target), "1,2,3", "{ended:?}");
}

#[test]
fn of_mariadb_by_gtid() {
    case(mariadb_10_11(), By::Gtid, true);
}

#[test]
fn of_mariadb_by_position() {
    case(mariadb_10_11(), By::Position, true);
}

#[test]
fn of_mysql_8_0() {
    case(mysql_8_0_15(), By::Gtid, true);
}

#[test]
fn of_mysql_5_7_by_position() {
    // What it knows of its source is in files, of one channel only.
    case(mysql_5_7_22(), By::Position, false);
}

#[test]
fn of_mysql_9() {
    case(mysql_9(), By::Gtid, true);
}
