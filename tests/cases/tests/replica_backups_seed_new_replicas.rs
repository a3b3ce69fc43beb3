//! Does a backup of a replica, restored, become a new replica of the same source by exactly what
//! `restore` says? And one of a source a replica of that source?

use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_server::abilities::{Flavour, RedoLayout};
use evenkeel_server::launch::Running;
use evenkeel_server::replication::ThreadState;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::replicas::{ACCOUNT, status, wait_until_it_applies};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{Bank, By, LoopFs, TestServer, wait_until_caught_up};
use serde_json::Value;
use std::fs;

const GIB: u64 = 1 << 30;

/// A source with a bank, and what is to be backed up: a replica of it, or the source itself.
struct Case {
    source: Option<Running>,
    site: Site,
    evenkeel: Evenkeel,
}

fn options(server: &TestServer, by: By, more: &[&'static str]) -> Vec<&'static str> {
    let own = SMALL.iter().filter(|arg| !arg.starts_with("--server-id"));
    let mut args: Vec<&str> = own.copied().collect();
    if RedoLayout::of(server.binary.flavour, server.binary.version) == RedoLayout::Directory {
        args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
        args.push("--innodb-redo-log-capacity=64M");
    }
    args.extend(by.options(server));
    args.extend(more);
    args
}

fn evenkeel() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

impl Case {
    fn of_a_replica(server: TestServer, fs: LoopFs, by: By, more: &[&'static str]) -> Self {
        let plan = |name: &str, more: &[&'static str]| {
            let args = options(&server, by, more);
            server.prepare(&fs.join(name), &args).with_networking()
        };
        let source = server.run(&plan("source", &["--server-id=1"]));
        By::allow(&source);
        let bank = Bank::load(&mut source.session().unwrap(), 500).unwrap();
        let launch = plan("data", &[&["--server-id=2"], more].concat());
        let running = server.run(&launch);
        by.follow(&source, &running);
        wait_until_caught_up(&source, &running);
        Self {
            source: Some(source),
            site: Site {
                running: Some(running),
                launch,
                bank,
                server,
                fs,
            },
            evenkeel: evenkeel(),
        }
    }

    fn of_a_source(server: TestServer, fs: LoopFs, by: By) -> Self {
        let args = options(&server, by, &["--server-id=1"]);
        let launch = server.prepare(&fs.join("data"), &args).with_networking();
        let running = server.run(&launch);
        By::allow(&running);
        let bank = Bank::load(&mut running.session().unwrap(), 500).unwrap();
        Self {
            source: None,
            site: Site {
                running: Some(running),
                launch,
                bank,
                server,
                fs,
            },
            evenkeel: evenkeel(),
        }
    }

    fn source(&self) -> &Running {
        self.source.as_ref().unwrap_or_else(|| self.site.running())
    }

    /// Backs up under traffic, restores, and returns what both said.
    fn back_up_and_restore(&self, flags: &[&str]) -> (Ended, Ended) {
        let options = self.source().connect_options();
        let traffic = self.site.bank.start(&options, 2).unwrap();
        traffic.wait_for(50);
        let done = run(self.evenkeel.backup(&self.site, flags));
        assert_eq!(done.code, Some(0), "{done:?}");
        traffic.wait_for(50);
        traffic.assert_undisturbed();
        drop(traffic.stop());
        let target = self.site.fs.join("new");
        let restored = run(self.evenkeel.restore(&self.site.repository(), &target, &[]));
        assert_eq!(restored.code, Some(0), "{restored:?}");
        (done, restored)
    }

    /// Does what `restore` said, and returns the new replica.
    fn seed(&self, replica: &Value) -> Running {
        let texts = |name: &str| -> Vec<String> {
            let all = replica[name].as_array().expect(name).iter();
            all.map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let target = self.site.fs.join("new");
        for name in texts("remove") {
            fs::remove_file(target.join(name)).unwrap();
        }
        let mut launch = self.site.launch.clone();
        launch.datadir = target;
        for option in texts("start_options") {
            let id = "<a number that no other server has>";
            launch.extra_args.push(option.replace(id, "3"));
        }
        let new = self.site.server.run(&launch);
        for channel in status(&new).channels {
            assert_eq!(channel.receiver, ThreadState::Stopped, "{channel:?}");
            assert_eq!(channel.applier, ThreadState::Stopped, "{channel:?}");
        }
        let mut session = new.session().unwrap();
        for statement in texts("statements") {
            let sql = statement
                .replace("<password>", ACCOUNT.1)
                .replace("<user>", ACCOUNT.0);
            session.run(&sql).expect(&sql);
        }
        new
    }

    /// The new replica has what the source has.
    fn check(&self, new: &Running) {
        wait_until_it_applies(new);
        wait_until_caught_up(self.source(), new);
        let bank = &self.site.bank;
        let there = bank.check(&mut self.source().session().unwrap()).unwrap();
        let here = bank.check(&mut new.session().unwrap()).unwrap();
        assert_eq!(here, there);
        assert!(here.transfers > 100);
        let checksums = |running: &Running| {
            let mut session = running.session().unwrap();
            let tables = (0..bank.tables).map(|n| format!("bank.accounts_{n}"));
            let tables: Vec<String> = tables.chain(["bank.ledger".to_owned()]).collect();
            let rows = session.rows(&format!("CHECKSUM TABLE {}", tables.join(", ")));
            let rows = rows.unwrap().into_iter();
            rows.map(|row| row.at(1).unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(checksums(new), checksums(self.source()));
    }
}

/// Workers that apply in parallel.
fn workers(server: &TestServer) -> [&'static str; 2] {
    match server.binary.flavour {
        Flavour::MariaDb => [
            "--slave-parallel-threads=4",
            "--slave-parallel-mode=optimistic",
        ],
        Flavour::MySql if server.binary.version.major > 8 => [
            "--replica-parallel-workers=4",
            "--replica-preserve-commit-order=OFF",
        ],
        Flavour::MySql => [
            "--slave-parallel-workers=4",
            "--slave-parallel-type=LOGICAL_CLOCK",
        ],
    }
}

fn seeds(server: TestServer, fs: LoopFs, by: By, flags: &[&str]) {
    let workers = workers(&server);
    let case = Case::of_a_replica(server, fs, by, &workers);
    let (done, restored) = case.back_up_and_restore(flags);
    wait_until_it_applies(case.site.running());
    let reported = &done.answer["source_coordinates"][0];
    assert_eq!(reported["host"], "127.0.0.1", "{done:?}");
    assert_eq!(reported["port"], case.source().port().unwrap(), "{done:?}");
    let stopped = flags.contains(&"--stop-applier");
    assert_eq!(reported["binlog_file"].is_string(), stopped, "{done:?}");
    assert_eq!(reported["binlog_position"].is_u64(), stopped, "{done:?}");
    match (by, case.site.server.binary.flavour) {
        (By::Gtid, _) => assert!(reported["gtid"].is_string(), "{done:?}"),
        // It may have received more than it applied.
        (By::Position, Flavour::MariaDb) => assert_eq!(reported["gtid"], Value::Null, "{done:?}"),
        // MySQL 9 has GTIDs also where they are not asked for.
        (By::Position, Flavour::MySql) => {}
    }
    let stood = done.answer["applier_ms"].as_f64().unwrap();
    assert_eq!(stood > 0.0, stopped, "{done:?}");
    let replica = &restored.answer["replica"];
    assert_eq!(replica["of"], "source", "{restored:?}");
    let new = case.seed(replica);
    case.check(&new);
}

/// A replica that is backed up: its server, how it follows, and where its data is.
type Variant = (TestServer, fn(u64) -> LoopFs);

const STOPPED: &[&str] = &["--stop-applier"];

/// Runs one of the variants; in full, all of them.
fn seeds_of(what: &str, variants: &[Variant], by: By, flags: &[&str]) {
    for (server, filesystem) in draw(what, variants, 1) {
        seeds(server, filesystem(4 * GIB), by, flags);
    }
}

#[test]
fn by_position() {
    let variants: [Variant; 5] = [
        (mariadb_10_11(), LoopFs::xfs),
        (mysql_8_0_15(), LoopFs::xfs),
        (mysql_5_7_22(), LoopFs::btrfs),
        (mariadb_11_8(), LoopFs::xfs),
        (mysql_9(), LoopFs::xfs),
    ];
    seeds_of("replicas by position", &variants, By::Position, STOPPED);
}

#[test]
fn by_gtid() {
    let variants: [Variant; 2] = [
        (mariadb_10_11(), LoopFs::btrfs),
        (mysql_5_7_22(), LoopFs::xfs),
    ];
    seeds_of("replicas by GTID", &variants, By::Gtid, STOPPED);
}

#[test]
fn by_gtid_as_it_goes() {
    let variants: [Variant; 3] = [
        (mysql_8_0_15(), LoopFs::xfs),
        (mariadb_10_11(), LoopFs::xfs),
        (mysql_9(), LoopFs::btrfs),
    ];
    seeds_of("replicas by GTID as they go", &variants, By::Gtid, &[]);
}

/// A place that nobody can know is not guessed.
#[test]
fn by_position_as_it_goes() {
    let servers = [mariadb_10_11(), mysql_8_0_15()];
    for server in draw("replicas by position as they go", &servers, 1) {
        let workers = workers(&server);
        let case = Case::of_a_replica(server, LoopFs::xfs(4 * GIB), By::Position, &workers);
        let (done, restored) = case.back_up_and_restore(&[]);
        assert!(done.said.contains("--stop-applier"), "{done:?}");
        let reported = &done.answer["source_coordinates"][0];
        assert_eq!(reported["binlog_file"], Value::Null, "{done:?}");
        assert_eq!(reported["positioning"], "file", "{done:?}");
        assert_eq!(restored.answer["replica"], Value::Null, "{restored:?}");
    }
}

/// What the hint of `restore` warns of.
#[test]
fn a_restored_replica_would_replicate_by_itself() {
    let case = Case::of_a_replica(
        mariadb_10_11(),
        LoopFs::xfs(4 * GIB),
        By::Position,
        &["--relay-log=relay"],
    );
    let (_, restored) = case.back_up_and_restore(&["--stop-applier"]);
    let mut launch = case.site.launch.clone();
    launch.datadir = case.site.fs.join("new");
    let new = case.site.server.run(&launch);
    let channel = &status(&new).channels[0];
    assert_eq!(channel.applier, ThreadState::Running, "{channel:?}");
    let options = restored.answer["replica"]["start_options"].to_string();
    assert!(options.contains("--skip-slave-start"), "{options}");
}

/// The account that the book recommends for backups may not see a replica's status on MariaDB.
#[test]
fn an_account_that_may_not_look_backs_up_all_the_same() {
    let case = Case::of_a_replica(mariadb_10_11(), LoopFs::xfs(4 * GIB), By::Gtid, &[]);
    let mut session = case.site.running().session().unwrap();
    for sql in [
        "CREATE USER looker@localhost",
        "GRANT RELOAD, PROCESS, BINLOG MONITOR ON *.* TO looker@localhost",
    ] {
        session.run(sql).unwrap();
    }
    let done = run(case.evenkeel.backup(&case.site, &["-u", "looker"]));
    assert!(done.generation() > 0);
    assert!(done.said.contains("SLAVE MONITOR"), "{done:?}");
    session
        .run("GRANT SLAVE MONITOR ON *.* TO looker@localhost")
        .unwrap();
    let done = run(case.evenkeel.backup(&case.site, &["-u", "looker"]));
    assert_eq!(
        done.answer["source_coordinates"][0]["positioning"], "gtid",
        "{done:?}"
    );
    // The table of what was applied is another matter; the image has it.
    assert_eq!(
        done.answer["source_coordinates"][0]["gtid"],
        Value::Null,
        "{done:?}"
    );
    let refused = run(case
        .evenkeel
        .backup(&case.site, &["-u", "looker", "--stop-applier"]));
    assert_eq!(refused.code, Some(14), "{refused:?}");
    wait_until_it_applies(case.site.running());
    // A server that is no replica says nothing of it.
    let mut of_source = case.evenkeel.command(&[
        "backup",
        "--no-defaults",
        "-u",
        "looker",
        "--max-impact=100",
    ]);
    let mut session = case.source().session().unwrap();
    for sql in [
        "CREATE USER looker@localhost",
        "GRANT RELOAD, PROCESS, BINLOG MONITOR ON *.* TO looker@localhost",
    ] {
        session.run(sql).unwrap();
    }
    of_source
        .arg("-S")
        .arg(case.source().socket())
        .arg(case.site.fs.join("repository-of-the-source"));
    let done = run(of_source);
    assert!(done.generation() > 0);
    assert!(!done.said.contains("replica"), "{done:?}");
}

/// Under a read lock, a table that is written with the data tells: without workers.
#[test]
fn by_position_as_it_goes_under_a_read_lock() {
    let case = Case::of_a_replica(mysql_8_0_15(), LoopFs::xfs(4 * GIB), By::Position, &[]);
    let (done, restored) = case.back_up_and_restore(&["--lock=ftwrl"]);
    let reported = &done.answer["source_coordinates"][0];
    assert!(reported["binlog_file"].is_string(), "{done:?}");
    let new = case.seed(&restored.answer["replica"]);
    case.check(&new);
}

#[test]
fn sources_seed_replicas_of_themselves() {
    let variants = [
        (mariadb_10_11(), By::Gtid),
        (mysql_8_0_15(), By::Gtid),
        (mysql_5_7_22(), By::Position),
    ];
    for (server, by) in draw("sources", &variants, 1) {
        let name = server.name;
        let case = Case::of_a_source(server, LoopFs::xfs(4 * GIB), by);
        let (done, restored) = case.back_up_and_restore(&["--stop-applier"]);
        assert!(done.said.contains("is not a replica"), "{done:?}");
        assert_eq!(done.answer["source_coordinates"], serde_json::json!([]));
        let mut replica = restored.answer["replica"].clone();
        assert_eq!(replica["of"], "itself", "{name}: {restored:?}");
        // The host by whose name the source is reached is this one.
        let statements = replica["statements"].as_array_mut().unwrap();
        let port = case.source().port().unwrap();
        let change = statements.iter_mut().find(|one| {
            let text = one.as_str().unwrap();
            text.starts_with("CHANGE MASTER") && text.contains(&format!("MASTER_PORT={port}"))
        });
        let change = change.expect("a statement that names the port");
        let text = change.as_str().unwrap();
        let host = text
            .split('\'')
            .find(|part| !part.is_empty() && !part.contains(' '));
        *change = text.replace(host.unwrap(), "127.0.0.1").into();
        let new = case.seed(&replica);
        case.check(&new);
    }
}
