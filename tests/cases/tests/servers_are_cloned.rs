//! Does a clone of a running server start with what was committed, does only what differs cross, and does an
//! interrupted one go on where it was?

mod cloned;

use cloned::{Case, GIB, leftovers, start_on};
use evenkeel_cases::failpoints::{CLONE_RECEIVER, CLONE_SENDER};
use evenkeel_cases::far::FarHost;
use evenkeel_cases::leftovers::assert_unharmed;
use evenkeel_cases::program::{Ended, killed_at, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_op::exit;
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::replicas::wait_until_it_applies;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{Bank, By, TestServer, wait_until_caught_up};
use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// Plans a clone to `target`, by its path below the directory that the program is started in.
fn clone_to(case: &Case, target: &str, flags: &[&str]) -> Command {
    case.plan(&[&["--target", target], flags].concat())
}

fn count(ended: &Ended, what: &str) -> u64 {
    ended.answer[what]
        .as_u64()
        .unwrap_or_else(|| panic!("no {what}: {ended:?}"))
}

#[test]
fn a_busy_server() {
    let case = Case::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 2_000);
    assert_eq!(run(case.evenkeel.backup(&case.site, &[])).generation(), 1);
    let ended = case.clone_and_check("new", clone_to(&case, "new", &[]));
    assert!(
        ended.answer["coordinates"]["binlog_file"].is_string(),
        "{ended:?}"
    );
    assert!(count(&ended, "pages_checked") > 0 && count(&ended, "blocks_sent") > 0);
    assert_eq!(count(&ended, "blocks_reused"), 0);
    assert_eq!(ended.answer["replica"]["of"], "itself", "{ended:?}");
    assert!(leftovers(&case).is_empty());
    // The base that backups compare with is theirs.
    let backup = run(case.evenkeel.backup(&case.site, &["--audit"]));
    assert_eq!(backup.generation(), 2);
    assert_eq!(
        backup.answer["read_everything_because"],
        serde_json::Value::Null
    );
    more_files_than_may_be_open(&case);
    let used = run(clone_to(&case, "new", &[]));
    assert_eq!(used.code, Some(i32::from(exit::USAGE)), "{used:?}");
    let running = run(clone_to(&case, "other", &["--like=data"]));
    assert_eq!(running.code, Some(i32::from(exit::REFUSED)), "{running:?}");
    let inside = run(clone_to(&case, "data/inside", &[]));
    assert_eq!(inside.code, Some(i32::from(exit::USAGE)), "{inside:?}");
    let root = run(clone_to(&case, "other", &["--map-root=redo=redo"]));
    assert_eq!(root.code, Some(i32::from(exit::USAGE)), "{root:?}");
    assert!(leftovers(&case).is_empty() && !case.site.fs.join("other").exists());
}

fn more_files_than_may_be_open(case: &Case) {
    let mut session = case.site.running().session().unwrap();
    session.run("CREATE DATABASE many").unwrap();
    for table in 0..300 {
        session
            .run(&format!("CREATE TABLE many.t{table} (id INT PRIMARY KEY)"))
            .unwrap();
    }
    let command = clone_to(case, "many", &[]);
    let mut limited = Command::new("prlimit");
    limited
        .arg("--nofile=600:600")
        .arg(command.get_program())
        .args(command.get_args());
    limited.current_dir(case.site.fs.path());
    let ended = run(limited);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(count(&ended, "files") > 600, "{ended:?}");
    session.run("DROP DATABASE many").unwrap();
}

/// The old directory is a clone that a server worked on since, and in which pages are damaged.
#[test]
fn only_what_differs_is_sent() {
    let case = Case::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 50_000);
    let first = case.clone_and_check("old", clone_to(&case, "old", &[]));
    let table = case.site.fs.join("old/bank/accounts_0.ibd");
    let damaged = fs::File::options().write(true).open(table).unwrap();
    damaged.write_all_at(&[7; 70_000], 300_000).unwrap();
    let before = fs::metadata(case.site.fs.join("old/ibdata1")).unwrap();
    fs::create_dir(case.site.fs.join("snapshots")).unwrap();
    let flags = ["--like=old", "--snapshot-dir=snapshots"];
    let ended = case.clone_and_check("new", clone_to(&case, "new", &flags));
    let (sent, reused) = (count(&ended, "blocks_sent"), count(&ended, "blocks_reused"));
    assert!(reused > sent, "{sent} and {reused}: {first:?}");
    let after = fs::metadata(case.site.fs.join("old/ibdata1")).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
}

#[test]
fn from_another_host_by_a_link_that_breaks() {
    let case = Case::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 20_000);
    let far = FarHost::having(PROGRAM, &[]);
    let over = |target: &str, flags: &[&str]| far.over(clone_to(&case, target, flags), 60);
    let first = case.clone_and_check("first", over("first", &[]));
    assert!(count(&first, "bytes_sent") < count(&first, "bytes_logical"));
    far.assert_clean("after a clone");
    let (crossed, connections) = (far.proxy.bytes(), far.proxy.connections());
    far.proxy.cut_after(&[200_000, 900_000]);
    let ended = case.clone_and_check("second", over("second", &[]));
    assert!(
        far.proxy.connections() > connections + 1,
        "nothing was cut: {ended:?}"
    );
    far.assert_clean("after cuts");
    let whole = far.proxy.bytes() - crossed;
    let like = case.clone_and_check("third", over("third", &["--like=second"]));
    let crossed = far.proxy.bytes() - crossed - whole;
    assert!(
        count(&like, "blocks_reused") > count(&like, "blocks_sent"),
        "{like:?}"
    );
    assert!(crossed < whole, "{crossed} of {whole}");
}

#[test]
fn of_mysql() {
    for server in draw("servers of MySQL", &[mysql_8_0_15(), mysql_5_7_22()], 1) {
        let case = Case::start(server, LoopFs::xfs(2 * GIB), 2_000);
        let ended = case.clone_and_check("new", clone_to(&case, "new", &[]));
        let replica = &ended.answer["replica"];
        assert!(
            replica["remove"].as_array().unwrap().is_empty(),
            "{ended:?}"
        );
        // Two servers of one name cannot replicate from the same source.
        let name =
            |place: &str| fs::read_to_string(case.site.fs.join(place).join("auto.cnf")).unwrap();
        assert_ne!(name("new"), name("data"));
    }
}

/// Nothing of it is kept, also not of a run before it.
#[test]
fn corrupt_pages_are_not_cloned() {
    // A page with a good copy in the doublewrite buffer is no corrupt page.
    let more = ["--innodb-doublewrite=0"];
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 2_000, &more);
    let case = Case::of(site);
    let mut session = case.site.running().session().unwrap();
    for sql in [
        "CREATE TABLE bank.victim (id INT PRIMARY KEY, name VARCHAR(200)) ENGINE=InnoDB",
        "INSERT INTO bank.victim SELECT seq, REPEAT('a', 150) FROM bank.seq_1_to_4000",
        "FLUSH TABLES bank.victim FOR EXPORT",
        "UNLOCK TABLES",
    ] {
        session.run(sql).expect(sql);
    }
    let killed = run(killed_at(clone_to(&case, "new", &[]), "clone::received"));
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    let table = case.site.fs.join("data/bank/victim.ibd");
    let file = fs::File::options().write(true).open(table).unwrap();
    // In the middle of a leaf.
    file.write_all_at(&[0xEE; 16], 10 * (16 << 10) + 8000)
        .unwrap();
    file.sync_all().unwrap();
    let ended = run(clone_to(&case, "new", &[]));
    assert_eq!(ended.code, Some(i32::from(exit::DIFFERS)), "{ended:?}");
    let message = ended.message();
    assert!(
        message.contains("page 10 of data/bank/victim.ibd"),
        "{message}"
    );
    assert!(leftovers(&case).is_empty() && !case.site.fs.join("new").exists());
    case.site.assert_clean("after a corrupt page");
}

/// Wherever either side dies, the server goes on, no server starts at the target, and the next run takes it up.
#[test]
fn killed_and_taken_up() {
    let case = Case::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 5_000);
    let points = [&CLONE_SENDER[..], &CLONE_RECEIVER].concat();
    for point in share("kill points of a clone", &points, Part::new(0, 2)) {
        println!("killed at {point}");
        let killed = run(killed_at(clone_to(&case, "new", &[]), point));
        assert_eq!(killed.signal, Some(9), "{point}: {killed:?}");
        assert_unharmed(case.site.running(), point);
        assert!(!case.site.fs.join("new").exists(), "{point}");
        let ended = case.clone_and_check("new", clone_to(&case, "new", &[]));
        let was_listed = point != "clone::frozen";
        assert_eq!(ended.answer["taken_up"], was_listed, "{point}: {ended:?}");
        let was_sent = was_listed && !point.contains("list");
        assert_eq!(
            count(&ended, "blocks_reused") > 0,
            was_sent,
            "{point}: {ended:?}"
        );
        assert!(leftovers(&case).is_empty(), "{point}");
        fs::remove_dir_all(case.site.fs.join("new")).unwrap();
    }
}

#[test]
fn the_other_host_killed() {
    let case = Case::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 20_000);
    for point in ["clone::frozen", "clone::sent"] {
        let far = FarHost::having(PROGRAM, &[("EVENKEEL_KILL_AT", point)]);
        let killed = run(far.over(clone_to(&case, "new", &[]), 20));
        assert_eq!(
            killed.code,
            Some(i32::from(exit::UNREACHABLE)),
            "{point}: {killed:?}"
        );
        far.assert_no_process(point);
        assert_unharmed(case.site.running(), point);
        assert!(!case.site.fs.join("new").exists(), "{point}");
    }
    assert_eq!(leftovers(&case).len(), 2, "{:?}", leftovers(&case));
    let ended = case.clone_and_check("new", clone_to(&case, "new", &[]));
    assert!(count(&ended, "blocks_reused") > 0, "{ended:?}");
}

/// A clone of a replica becomes another replica of its source, by exactly what is answered.
fn seeds(server: TestServer, by: By) {
    let fs = LoopFs::xfs(3 * GIB);
    let options = |id: &'static str| {
        let own = SMALL.iter().filter(|arg| !arg.starts_with("--server-id"));
        let own = own.copied().chain(by.options(&server));
        own.chain([id]).collect::<Vec<_>>()
    };
    let plan = |name: &str, id| {
        let launch = server.prepare(&fs.join(name), &options(id));
        launch.with_networking()
    };
    let source = server.run(&plan("source", "--server-id=1"));
    By::allow(&source);
    let bank = Bank::load(&mut source.session().unwrap(), 500).unwrap();
    let launch = plan("data", "--server-id=2");
    let running = server.run(&launch);
    by.follow(&source, &running);
    wait_until_caught_up(&source, &running);
    let case = Case::of(Site {
        running: Some(running),
        launch,
        bank,
        server,
        fs,
    });
    let traffic = case.site.bank.start(&source.connect_options(), 1).unwrap();
    traffic.wait_for(50);
    let ended = run(clone_to(&case, "new", &["--stop-applier"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    traffic.wait_for(20);
    drop(traffic.stop());
    wait_until_it_applies(case.site.running());
    let replica = &ended.answer["replica"];
    assert_eq!(replica["of"], "source", "{ended:?}");
    assert!(
        ended.answer["applier_ms"].as_f64().unwrap() > 0.0,
        "{ended:?}"
    );
    let texts = |name: &str| -> Vec<String> {
        let all = replica[name].as_array().expect(name).iter();
        all.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let id = "<a number that no other server has>";
    let more: Vec<String> = texts("start_options")
        .iter()
        .map(|option| option.replace(id, "3"))
        .collect();
    let new = start_on(&case, "new", &more);
    let mut session = new.session().unwrap();
    for statement in texts("statements") {
        let (user, password) = evenkeel_testkit::replicas::ACCOUNT;
        let sql = statement.replace("<password>", password);
        session.run(&sql.replace("<user>", user)).expect(&sql);
    }
    wait_until_it_applies(&new);
    wait_until_caught_up(&source, &new);
    let there = case
        .site
        .bank
        .check(&mut source.session().unwrap())
        .unwrap();
    assert_eq!(case.site.bank.check(&mut session).unwrap(), there);
    assert!(there.transfers > 50);
}

#[test]
fn a_replica() {
    let variants = [
        (mariadb_10_11(), By::Position),
        (mysql_8_0_15(), By::Gtid),
        (mariadb_10_11(), By::Gtid),
        (mysql_5_7_22(), By::Position),
    ];
    for (server, by) in draw("replicas that are cloned", &variants, 1) {
        seeds(server, by);
    }
}
