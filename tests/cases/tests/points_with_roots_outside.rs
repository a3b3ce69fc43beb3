//! Does a restore to a point work where logs and tablespaces lay outside the data directory, and does
//! it touch nothing where they lay?

use evenkeel_cases::points::{add, archive, make_table, restore_to};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_op::Cancel;
use evenkeel_testkit::servers::make_server_dir;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer};
use std::fs;

/// A server whose files are everywhere.
fn spread(server: TestServer) -> Site {
    let fs = LoopFs::xfs(3 << 30);
    let here = fs.path().to_owned();
    let at = |option: &str, dir: &str| {
        make_server_dir(&here.join(dir));
        format!("--{option}={}", here.join(dir).display())
    };
    let mut args: Vec<String> = SMALL[1..].iter().map(|arg| (*arg).to_owned()).collect();
    args.push(at("innodb-log-group-home-dir", "redo"));
    args.push(at("innodb-undo-directory", "undo"));
    args.push(at("innodb-data-home-dir", "home"));
    args.push(format!("{}/log", at("log-bin", "binlog")));
    args.push("--symbolic-links=1".to_owned());
    if server.id == "mysql-8.0.15" {
        args.push(at("innodb-directories", "tables"));
        args.extend(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"].map(str::to_owned));
    } else {
        args.push(at("aria-log-dir-path", "aria"));
        args.push("--innodb-undo-tablespaces=3".to_owned());
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let launch = server.plan(&here.join("data"), &args);
    launch.initialise(SERVER_DEADLINE, &Cancel::new()).unwrap();
    if server.id != "mysql-8.0.15" {
        make_server_dir(&here.join("schemas/far"));
        std::os::unix::fs::symlink(here.join("schemas/far"), here.join("data/far")).unwrap();
    }
    let site = Site::of(server, fs, launch, 20);
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    let far = match site.server.id {
        "mysql-8.0.15" => format!(
            "CREATE TABLE points.far (id INT PRIMARY KEY) DATA DIRECTORY='{}'",
            here.join("tables").display()
        ),
        _ => "CREATE TABLE far.t (id INT PRIMARY KEY) ENGINE=InnoDB".to_owned(),
    };
    session.run(&far).unwrap();
    site
}

fn case(server: TestServer, far: &str) {
    let mut site = spread(server);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    add(&mut session, 1);
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    session
        .run(&format!("INSERT INTO {far} VALUES (1)"))
        .unwrap();
    add(&mut session, 2);
    session.run("FLUSH LOGS").unwrap();
    session
        .run(&format!("INSERT INTO {far} VALUES (2)"))
        .unwrap();
    let three = add(&mut session, 3);
    add(&mut session, 4);
    let archived = archive(&evenkeel, &site, &[]);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    site.kill();
    // The originals are not there to be used by mistake.
    for name in [
        "data", "redo", "undo", "home", "binlog", "tables", "aria", "schemas",
    ] {
        let _ = fs::rename(site.fs.join(name), site.fs.join(format!("{name}-away")));
    }
    let target = site.fs.join("restored");
    let ended = restore_to(&evenkeel, &site, &target, &three.moved(0));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for name in [
        "data", "redo", "undo", "home", "binlog", "tables", "aria", "schemas",
    ] {
        assert!(!site.fs.join(name).exists(), "{name}");
    }
    let mut launch = site.server.plan(&target, &[]);
    let options = ended.answer["start_options"].as_array().unwrap();
    launch
        .extra_args
        .extend(options.iter().map(|one| one.as_str().unwrap().to_owned()));
    let running = site.server.run(&launch);
    let mut session = running.session().unwrap();
    for (table, rows) in [("points.n", "1,2,3"), (far, "1,2")] {
        let found = session.value(&format!("SELECT GROUP_CONCAT(id ORDER BY id) FROM {table}"));
        assert_eq!(found.unwrap().as_deref(), Some(rows), "{table}");
    }
    // It logs where it is now, behind the restored logs.
    add(&mut session, 9);
    drop(session);
    running.stop(SERVER_DEADLINE).unwrap();
    for name in ["binlog", "tables", "schemas"] {
        assert!(!site.fs.join(name).exists(), "{name}");
    }
}

#[test]
fn on_mariadb_10_11() {
    case(mariadb_10_11(), "far.t");
}

#[test]
fn on_mysql_8_0_15() {
    case(mysql_8_0_15(), "points.far");
}

/// Where crash recovery goes by a table's old path, no server can work on the files before.
#[test]
fn tables_that_are_bound_to_their_place_are_refused() {
    let mut site = spread(mariadb_10_11());
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    let tables = site.fs.join("tables");
    make_server_dir(&tables);
    let away = format!(
        "CREATE TABLE points.away (id INT PRIMARY KEY) ENGINE=InnoDB DATA DIRECTORY='{}'",
        tables.display()
    );
    session.run(&away).unwrap();
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    let one = add(&mut session, 1);
    let archived = archive(&evenkeel, &site, &[]);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    site.kill();
    let target = site.fs.join("restored");
    let refused = restore_to(&evenkeel, &site, &target, &one.moved(0));
    assert_eq!(refused.code, Some(14), "{refused:?}");
    assert!(refused.message().contains("tables"), "{refused:?}");
    assert!(!target.exists());
}
