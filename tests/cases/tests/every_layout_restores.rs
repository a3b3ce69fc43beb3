//! Does every layout and every kind of table come back, and is what cannot be covered refused by
//! name?

use evenkeel_backup::backup::{BackupRequest, SnapshotChoice};
use evenkeel_backup::restore::{RestoreReport, RestoreRequest, restore};
use evenkeel_cases::leftovers::names_in;
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_cases::{SMALL, Site, back_up, quiet};
use evenkeel_op::Cancel;
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::make_server_dir;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, Marks, TestServer, servers};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const GIB: u64 = 1 << 30;

fn run_all(session: &mut Session, statements: &[&str]) {
    for sql in statements {
        session
            .run(sql)
            .unwrap_or_else(|e| panic!("{sql}: {}", e.chain()));
    }
}

fn value(session: &mut Session, sql: &str) -> Option<String> {
    session
        .value(sql)
        .unwrap_or_else(|e| panic!("{sql}: {}", e.chain()))
}

/// The servers, from the one at `first` on: each question is put to another one in a sample.
fn turned(first: usize) -> Vec<TestServer> {
    let mut servers = servers();
    let first = first % servers.len();
    servers.rotate_left(first);
    servers
}

/// Starts a server on restored files with nothing but what the restore says.
fn boot(server: &TestServer, restored: &RestoreReport, more: &[&str]) -> Running {
    let mut launch = server.plan(&restored.target, &[]);
    launch.extra_args.clone_from(&restored.start_options);
    launch
        .extra_args
        .extend(more.iter().map(|arg| (*arg).to_owned()));
    server.run(&launch)
}

/// Makes a server whose files are everywhere: below `here`, and its redo log below `there`.
fn spread(server: TestServer, fs: LoopFs, there: &Path) -> Site {
    let at = |option: &str, top: &Path, dir: &str| {
        make_server_dir(&top.join(dir));
        format!("--{option}={}", top.join(dir).display())
    };
    let here = fs.path().to_owned();
    let mut args: Vec<String> = SMALL[1..].iter().map(|arg| (*arg).to_owned()).collect();
    args.push(at("innodb-log-group-home-dir", there, "redo"));
    args.push(at("innodb-undo-directory", &here, "undo"));
    args.push(at("innodb-data-home-dir", &here, "home"));
    args.push(format!("{}/log", at("log-bin", &here, "binlog")));
    args.push("--symbolic-links=1".to_owned());
    make_server_dir(&here.join("tables"));
    match server.id {
        "mariadb-10.11" => {
            args.push(at("aria-log-dir-path", &here, "aria"));
            args.push("--innodb-undo-tablespaces=3".to_owned());
        }
        "mysql-8.0.15" => args.push(at("innodb-directories", &here, "tables")),
        _ => args.push("--innodb-undo-tablespaces=2".to_owned()),
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let launch = server.plan(&here.join("data"), &args);
    launch.initialise(SERVER_DEADLINE, &Cancel::new()).unwrap();
    if server.id != "mysql-8.0.15" {
        make_server_dir(&here.join("schemas/far"));
        std::os::unix::fs::symlink(here.join("schemas/far"), here.join("data/far")).unwrap();
    }
    let site = Site::of(server, fs, launch, 200);
    let mut session = site.running().session().unwrap();
    let tables = here.join("tables");
    let away = format!(
        "CREATE TABLE bank.away (id INT PRIMARY KEY) ENGINE=InnoDB DATA DIRECTORY='{}'",
        tables.display()
    );
    run_all(
        &mut session,
        &[&away, "INSERT INTO bank.away VALUES (1), (2)"],
    );
    if site.server.id != "mysql-8.0.15" {
        run_all(
            &mut session,
            &[
                "CREATE TABLE far.t (id INT PRIMARY KEY) ENGINE=InnoDB",
                "INSERT INTO far.t VALUES (3)",
            ],
        );
    }
    site
}

/// Roots beside the data directory go beside the restored one.
#[test]
fn files_everywhere() {
    for server in draw("servers with files everywhere", &turned(0), 1) {
        let (name, id) = (server.name, server.id);
        let other = LoopFs::xfs(GIB);
        let mut site = spread(server, LoopFs::xfs(4 * GIB), other.path());
        let traffic = site.traffic(2);
        for _ in 0..2 {
            traffic.wait_for(20);
            let mut request = site.request(SnapshotChoice::Reflink);
            request.audit = true;
            back_up(&request).unwrap_or_else(|e| panic!("{name}: {}", e.chain()));
        }
        let before = traffic.marks();
        let done = back_up(&site.request(SnapshotChoice::Auto)).unwrap();
        let after = traffic.marks();
        site.kill();
        drop(traffic);

        let target = site.fs.join("restored");
        let mut request = RestoreRequest::new(site.repository(), None, &target);
        if id != "mysql-8.0.15" {
            // Their crash recovery looks for tables where they were, and would write to what is there.
            let error = restore(&request, quiet(&Cancel::new())).unwrap_err();
            assert_eq!(error.kind().exit_code(), 14, "{name}: {}", error.chain());
            assert!(
                error.chain().contains("tables"),
                "{name}: {}",
                error.chain()
            );
            assert!(
                error
                    .hints()
                    .iter()
                    .any(|hint| hint.contains("--map-root tablespaces-1="))
            );
        }
        // The originals are not there to be used by mistake.
        fs::rename(site.fs.join("tables"), site.fs.join("tables-away")).unwrap();
        fs::rename(site.fs.join("binlog"), site.fs.join("binlog-away")).unwrap();
        fs::rename(site.fs.join("data"), site.fs.join("data-away")).unwrap();
        let _ = fs::rename(site.fs.join("schemas"), site.fs.join("schemas-away"));
        if id != "mysql-8.0.15" {
            request
                .map_roots
                .insert("tablespaces-1".to_owned(), site.fs.join("tables"));
        }
        // Killed between its roots, a restore starts over.
        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        for point in [
            "restore::publish::unheld",
            "restore::publish::renamed#2",
            "restore::roots_published",
            "restore::publish::synced#4",
        ] {
            let mut command = evenkeel.restore(&site.repository(), &target, &[]);
            for (id, place) in &request.map_roots {
                command.arg(format!("--map-root={id}={}", place.display()));
            }
            let killed = run(killed_at(command, point));
            assert_eq!(killed.signal, Some(9), "{name}: {point}: {killed:?}");
            assert!(!target.exists(), "{name}: {point}");
        }
        let restored = restore(&request, quiet(&Cancel::new()))
            .unwrap_or_else(|e| panic!("{name}: {}", e.chain()));
        let running = boot(&site.server, &restored, &[]);
        let mut session = running.session().unwrap();
        let state = site.bank.check(&mut session).unwrap();
        state.check_between(&before, &after).unwrap();
        assert_eq!(
            value(&mut session, "SELECT COUNT(*) FROM bank.away").as_deref(),
            Some("2")
        );
        if id != "mysql-8.0.15" {
            assert_eq!(
                value(&mut session, "SELECT id FROM far.t").as_deref(),
                Some("3"),
                "{name}"
            );
        }
        // The log goes on behind the restored ones.
        let logs = session.rows("SHOW BINARY LOGS").unwrap();
        let names: Vec<_> = logs.iter().filter_map(|row| row.at(0)).collect();
        let last = done.report.coordinates.binlog_file.as_deref().unwrap();
        assert!(names.contains(&last), "{name}: {names:?}");
        assert!(
            logs.iter().all(|row| row.at(1) != Some("0")),
            "{name}: {logs:?}"
        );
        drop(session);
        running.stop(SERVER_DEADLINE).unwrap();
        assert!(
            names_in(&restored.roots["binlog"]).len() > names.len(),
            "{name}: logs are there"
        );
    }
}

#[test]
fn one_snapshot_over_two_filesystems_is_refused() {
    let other = LoopFs::btrfs(GIB);
    let site = spread(mariadb_10_11(), LoopFs::btrfs(4 * GIB), other.path());
    let error = back_up(&site.request(SnapshotChoice::Btrfs)).unwrap_err();
    assert_eq!(error.kind().exit_code(), 14, "{}", error.chain());
    assert!(
        error.chain().contains(&*other.path().to_string_lossy()),
        "{}",
        error.chain()
    );
    site.assert_clean("refused");
    // Clones know one filesystem from the other.
    back_up(&site.request(SnapshotChoice::Reflink)).unwrap();
}

#[test]
fn page_sizes() {
    type Case<'a> = (fn() -> TestServer, &'a str);
    // A smaller and a larger one each, of two makers of servers.
    let pairs: [[Case<'_>; 2]; 4] = [
        [(mariadb_10_11, "4k"), (mysql_5_7_22, "32k")],
        [(mariadb_10_11, "8k"), (mysql_8_0_15, "64k")],
        [(mysql_5_7_22, "8k"), (mariadb_10_11, "32k")],
        [(mysql_8_0_15, "4k"), (mariadb_10_11, "64k")],
    ];
    for (server, size) in draw("pairs of page sizes", &pairs, 1).concat() {
        let option = format!("--innodb-page-size={size}");
        let mut site = Site::start(server(), LoopFs::xfs(4 * GIB), 500, &[&option]);
        let label = format!("{} with {size}", site.server.name);
        let traffic = site.traffic(2);
        traffic.wait_for(20);
        back_up(&site.request(SnapshotChoice::Reflink))
            .unwrap_or_else(|e| panic!("{label}: {}", e.chain()));
        traffic.wait_for(20);
        let before = traffic.marks();
        let mut request = site.request(SnapshotChoice::Reflink);
        request.audit = true;
        let done = back_up(&request).unwrap_or_else(|e| panic!("{label}: {}", e.chain()));
        let after = traffic.marks();
        assert!(done.report.pages_checked > 100, "{label}");
        site.kill();
        drop(traffic);
        let restored = site.restore(None, "restored").unwrap();
        let running = boot(&site.server, &restored, &[]);
        let state = site
            .bank
            .check(&mut running.session().unwrap())
            .expect(&label);
        state.check_between(&before, &after).expect(&label);
    }
}

#[test]
fn a_system_tablespace_of_several_files() {
    for server in draw("servers with a system tablespace", &turned(1), 1) {
        let more = ["--innodb-data-file-path=ibdata1:12M;ibdata2:8M;ibdata3:8M:autoextend"];
        let mut site = Site::start(server, LoopFs::xfs(4 * GIB), 500, &more);
        let label = site.server.name;
        let mut session = site.running().session().unwrap();
        run_all(
            &mut session,
            &[
                "SET GLOBAL innodb_file_per_table = OFF",
                "CREATE TABLE bank.inside (id INT PRIMARY KEY AUTO_INCREMENT, t VARCHAR(1000)) ENGINE=InnoDB",
                "INSERT INTO bank.inside (t) SELECT REPEAT(note, 9) FROM bank.accounts_0",
            ],
        );
        for _ in 0..8 {
            session
                .run("INSERT INTO bank.inside (t) SELECT t FROM bank.inside")
                .unwrap();
        }
        let sum = |session: &mut Session| {
            session
                .one("CHECKSUM TABLE bank.inside")
                .unwrap()
                .unwrap()
                .at(1)
                .map(str::to_owned)
        };
        // Changes at the end only: then there are files before it in which nothing changed.
        for _ in 0..3 {
            let done = back_up(&site.request(SnapshotChoice::Reflink)).expect(label);
            assert_eq!(done.report.pages_corrupt, 0, "{label}");
            let more = "INSERT INTO bank.inside (t) SELECT t FROM bank.inside LIMIT 3000";
            session.run(more).unwrap();
            session.run("FLUSH TABLES").unwrap();
        }
        let done = back_up(&site.request(SnapshotChoice::Reflink)).expect(label);
        assert_eq!(done.report.pages_corrupt, 0, "{label}");
        let expected = sum(&mut session);
        drop(session);
        site.kill();
        let restored = site.restore(None, "restored").unwrap();
        let running = boot(&site.server, &restored, &[]);
        let mut session = running.session().unwrap();
        assert_eq!(sum(&mut session), expected, "{label}");
        site.bank.check(&mut session).expect(label);
    }
}

#[test]
fn tables_without_transactions() {
    for server in draw("servers without transactions", &turned(2), 1) {
        let mut site = Site::start(server, LoopFs::xfs(4 * GIB), 200, &[]);
        let label = site.server.name;
        let mut session = site.running().session().unwrap();
        let mut engines = vec!["MyISAM", "CSV", "ARCHIVE"];
        engines.extend((site.server.id == "mariadb-10.11").then_some("Aria"));
        engines.retain(|engine| {
            let known =
                format!("SELECT support FROM information_schema.engines WHERE engine = '{engine}'");
            matches!(
                value(&mut session, &known).as_deref(),
                Some("YES" | "DEFAULT")
            )
        });
        assert!(engines.len() >= 2, "{label}: {engines:?}");
        for engine in &engines {
            run_all(
                &mut session,
                &[
                    &format!(
                        "CREATE TABLE bank.e_{engine} (id INT NOT NULL, t VARCHAR(300) NOT NULL) ENGINE={engine}"
                    ),
                    &format!(
                        "INSERT INTO bank.e_{engine} SELECT id, REPEAT(note, 3) FROM bank.accounts_0"
                    ),
                ],
            );
        }
        let fill = |session: &mut Session| {
            for engine in &engines {
                for number in 0..20 {
                    session
                        .run(&format!(
                            "INSERT INTO bank.e_{engine} VALUES ({number}, 'more')"
                        ))
                        .unwrap();
                }
            }
        };
        let count = |session: &mut Session, engine: &str| -> (u64, Option<String>) {
            let rows = value(session, &format!("SELECT COUNT(*) FROM bank.e_{engine}"));
            let sum = session
                .one(&format!("CHECKSUM TABLE bank.e_{engine}"))
                .unwrap()
                .unwrap();
            (rows.unwrap().parse().unwrap(), sum.at(1).map(str::to_owned))
        };
        let still: Vec<_> = engines
            .iter()
            .map(|engine| count(&mut session, engine))
            .collect();
        let first = back_up(&site.request(SnapshotChoice::Reflink))
            .expect(label)
            .report
            .generation;
        // And while they are written to.
        let mut second = 0;
        std::thread::scope(|scope| {
            let mut writer = site.running().session().unwrap();
            let writing = scope.spawn(move || (0..15).for_each(|_| fill(&mut writer)));
            second = back_up(&site.request(SnapshotChoice::Reflink))
                .expect(label)
                .report
                .generation;
            writing.join().unwrap();
        });
        let most: Vec<_> = engines
            .iter()
            .map(|engine| count(&mut session, engine))
            .collect();
        drop(session);
        site.kill();
        for generation in [first, second] {
            let restored = site
                .restore(Some(generation), &format!("r{generation}"))
                .unwrap();
            let running = boot(&site.server, &restored, &[]);
            let mut session = running.session().unwrap();
            for (at, engine) in engines.iter().enumerate() {
                let label = format!("{label}, {engine}, generation {generation}");
                let checked = session
                    .rows(&format!("CHECK TABLE bank.e_{engine}"))
                    .unwrap();
                assert_eq!(
                    checked.last().unwrap().at(3),
                    Some("OK"),
                    "{label}: {checked:?}"
                );
                let found = count(&mut session, engine);
                if generation == first {
                    assert_eq!(found, still[at], "{label}");
                } else {
                    assert!(
                        (still[at].0..=most[at].0).contains(&found.0),
                        "{label}: {found:?}"
                    );
                }
            }
        }
    }
}

/// The file's allocated size, in bytes.
fn allocated(path: &Path) -> f64 {
    (fs::metadata(path).unwrap().blocks() * 512) as f64
}

/// How many of the file's bytes are in no hole. What is allocated and was never written is one: a
/// restored file need not have it.
fn written(path: &Path) -> f64 {
    use rustix::fs::{SeekFrom, seek};
    let file = fs::File::open(path).unwrap();
    file.sync_all().unwrap();
    let (mut at, mut sum) = (0, 0);
    while let Ok(start) = seek(&file, SeekFrom::Data(at)) {
        at = seek(&file, SeekFrom::Hole(start)).unwrap();
        sum += at - start;
    }
    sum as f64
}

#[test]
fn compressed_tables() {
    for server in draw("servers that compress", &turned(3), 1) {
        let mut site = Site::start(server, LoopFs::xfs(4 * GIB), 1000, &[]);
        let label = site.server.name;
        let by_page = match site.server.id {
            "mariadb-10.11" => "PAGE_COMPRESSED=1",
            _ => "COMPRESSION='zlib'",
        };
        let mut session = site.running().session().unwrap();
        let mut sums = Vec::new();
        for (name, option) in [
            ("holes", by_page),
            ("small", "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4"),
        ] {
            run_all(
                &mut session,
                &[
                    &format!(
                        "CREATE TABLE bank.{name} (id INT PRIMARY KEY AUTO_INCREMENT, t VARCHAR(2000), KEY (t(30))) ENGINE=InnoDB {option}"
                    ),
                    &format!(
                        "INSERT INTO bank.{name} (t) SELECT CONCAT(id, REPEAT(note, 15)) FROM bank.accounts_0"
                    ),
                ],
            );
            for _ in 0..5 {
                session
                    .run(&format!(
                        "INSERT INTO bank.{name} (t) SELECT t FROM bank.{name}"
                    ))
                    .unwrap();
            }
            run_all(
                &mut session,
                &[
                    &format!("FLUSH TABLES bank.{name} FOR EXPORT"),
                    "UNLOCK TABLES",
                ],
            );
            sums.push(
                session
                    .one(&format!("CHECKSUM TABLE bank.{name}"))
                    .unwrap()
                    .unwrap()
                    .at(1)
                    .map(str::to_owned),
            );
        }
        let source = site.fs.join("data/bank/holes.ibd");
        let size = fs::metadata(&source).unwrap().len() as f64;
        assert!(
            allocated(&source) < 0.7 * size,
            "{label}: the table has holes"
        );
        back_up(&site.request(SnapshotChoice::Reflink)).expect(label);
        session
            .run("UPDATE bank.holes SET t = REVERSE(t) WHERE id % 50 = 0")
            .unwrap();
        sums[0] = session
            .one("CHECKSUM TABLE bank.holes")
            .unwrap()
            .unwrap()
            .at(1)
            .map(str::to_owned);
        run_all(
            &mut session,
            &["FLUSH TABLES bank.holes FOR EXPORT", "UNLOCK TABLES"],
        );
        let mut request = site.request(SnapshotChoice::Reflink);
        request.audit = true;
        let done = back_up(&request).unwrap_or_else(|e| panic!("{label}: {}", e.chain()));
        assert_eq!(done.report.pages_corrupt, 0);
        let expected = written(&source);
        drop(session);
        site.kill();
        let restored = site.restore(None, "restored").unwrap();
        let found = allocated(&restored.target.join("bank/holes.ibd"));
        assert!(
            (0.95..=1.05).contains(&(found / expected)),
            "{label}: {found} of {expected}"
        );
        let running = boot(&site.server, &restored, &[]);
        let mut session = running.session().unwrap();
        for (name, sum) in ["holes", "small"].iter().zip(sums) {
            let row = session
                .one(&format!("CHECKSUM TABLE bank.{name}"))
                .unwrap()
                .unwrap();
            assert_eq!(row.at(1).map(str::to_owned), sum, "{label}: {name}");
            let checked = session.rows(&format!("CHECK TABLE bank.{name}")).unwrap();
            assert_eq!(checked.last().unwrap().at(3), Some("OK"), "{label}: {name}");
        }
    }
}

#[test]
fn encrypted_tables() {
    let keys = evenkeel_testkit::Scratch::new();
    let file = keys.join("keys");
    let key = "770A8A65DA156D24EE2A093277530142770A8A65DA156D24EE2A093277530142";
    fs::write(&file, format!("1;{key}\n")).unwrap();
    let name = format!("--file-key-management-filename={}", file.display());
    let options = [
        "--plugin-load-add=file_key_management",
        &name,
        "--innodb-encrypt-log=ON",
    ];
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(4 * GIB), 300, &options);
    let mut session = site.running().session().unwrap();
    run_all(
        &mut session,
        &[
            "CREATE TABLE bank.secret (id INT PRIMARY KEY, t VARCHAR(200)) ENGINE=InnoDB ENCRYPTED=YES",
            "INSERT INTO bank.secret SELECT id, 'do not tell' FROM bank.accounts_0",
        ],
    );
    drop(session);
    for _ in 0..2 {
        let done = back_up(&site.request(SnapshotChoice::Reflink))
            .unwrap_or_else(|e| panic!("{}", e.chain()));
        assert_eq!(done.report.pages_corrupt, 0);
        assert_eq!(done.report.snapshot, "reflink/splice");
    }
    let marks = Marks::default();
    site.kill();
    let restored = site.restore(None, "restored").unwrap();
    let bytes = fs::read(restored.target.join("bank/secret.ibd")).unwrap();
    assert!(
        !bytes.windows(11).any(|part| part == b"do not tell"),
        "it stays encrypted"
    );
    let running = boot(&site.server, &restored, &options);
    let mut session = running.session().unwrap();
    let secret = value(
        &mut session,
        "SELECT COUNT(*) FROM bank.secret WHERE t = 'do not tell'",
    );
    assert_eq!(secret.as_deref(), Some("75"));
    site.bank
        .check(&mut session)
        .unwrap()
        .check_between(&marks, &marks)
        .unwrap();
}

#[test]
fn engines_of_others_are_refused() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(4 * GIB), 50, &[]);
    fs::create_dir(site.fs.join("data/#rocksdb")).unwrap();
    let request: BackupRequest = site.request(SnapshotChoice::Reflink);
    let error = back_up(&request).unwrap_err();
    assert_eq!(error.kind().exit_code(), 14);
    assert!(error.chain().contains("RocksDB"), "{}", error.chain());
    assert!(
        !site.repository().exists() || names_in(&site.repository().join("generations")).is_empty()
    );
}
