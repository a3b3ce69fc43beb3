//! Does a backup have every table that the server lists, or fail and name it; and does a proof notice one
//! that is gone?

use evenkeel_backup::backup::{BackupRequest, SnapshotChoice, Source};
use evenkeel_backup::facts::Facts;
use evenkeel_backup::verify::{self, BootReport, BootRequest};
use evenkeel_cases::forged::{forge, one_table_more};
use evenkeel_cases::kinds::{Other, has_frm_files, site};
use evenkeel_cases::{Site, back_up, quiet};
use evenkeel_op::{Cancel, ErrorKind};
use evenkeel_repository::Repository;
use evenkeel_server::connect::{Row, Session};
use evenkeel_server::tables::{Definition, IS_TABLE, TableId, definition};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11, mariadb_11_8};
use evenkeel_testkit::servers::{mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Every table that an almighty account sees, with its engine.
fn listed(session: &mut Session) -> BTreeMap<TableId, String> {
    let rows = session
        .rows(&format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE {IS_TABLE} \
             AND TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema')"
        ))
        .unwrap();
    let cell = |row: &Row, at: usize| row.at(at).unwrap().to_owned();
    let pair = |row: &Row| {
        let table = TableId {
            schema: cell(row, 0),
            name: cell(row, 1),
        };
        (table, cell(row, 2))
    };
    rows.iter().map(pair).collect()
}

/// A request of an account that sees no table.
fn as_backup_account(site: &Site) -> BackupRequest {
    let mut session = site.running().session().unwrap();
    let more = match site.server.id {
        "mysql-8.0.15" | "mysql-9" => ", BACKUP_ADMIN, REPLICATION CLIENT",
        "mysql-5.7.22" => ", REPLICATION CLIENT",
        _ => ", BINLOG MONITOR",
    };
    for sql in [
        "CREATE USER IF NOT EXISTS poor@localhost".to_owned(),
        format!("GRANT RELOAD, PROCESS{more} ON *.* TO poor@localhost"),
    ] {
        session
            .run(&sql)
            .unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
    }
    let mut options = site.running().connect_options();
    options.user = Some("poor".into());
    let mut request = site.request(SnapshotChoice::Reflink);
    request.source = Source::Live(Box::new(options));
    request
}

fn recorded(site: &Site, generation: u32) -> (BTreeSet<String>, BTreeSet<TableId>) {
    let repository = Repository::open(site.repository()).unwrap();
    let facts = Facts::of(&repository.manifest(generation).unwrap()).unwrap();
    facts.tables.expect("a record").names().unwrap()
}

/// Each definition says the engine that the server says.
fn definitions_agree(site: &Site, listed: &BTreeMap<TableId, String>) {
    let dir = site.launch.datadir.join("kinds");
    let mut seen = 0;
    for entry in fs::read_dir(&dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let Some(Definition::Table(engine)) = definition(&name, &entry.path()).unwrap() else {
            continue;
        };
        let stem = name.split('.').next().unwrap();
        let stem = match has_frm_files(site) {
            true => stem,
            false => stem.rsplit_once('_').unwrap().0,
        };
        let table = TableId {
            schema: "kinds".into(),
            name: stem.into(),
        };
        assert!(
            engine.eq_ignore_ascii_case(&listed[&table]),
            "{table}: {engine}"
        );
        seen += 1;
    }
    assert!(seen >= 4, "{}: {seen}", site.server.name);
}

/// What is moved away comes back when this is dropped.
struct Away {
    from: PathBuf,
    to: PathBuf,
}

impl Away {
    fn take(from: PathBuf, to: &Path) -> Self {
        fs::rename(&from, to).unwrap();
        Self {
            from,
            to: to.to_owned(),
        }
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        fs::rename(&self.to, &self.from).unwrap();
    }
}

/// What is not there is named, whoever asks.
fn missing_files_fail_the_backup(site: &Site) {
    let kinds = site.launch.datadir.join("kinds");
    let rows = Away::take(kinds.join("my.MYD"), &site.fs.join("rows"));
    // A file that went while InnoDB has pages to write into it would end the server.
    let mut session = site.running().session().unwrap();
    let discard = "ALTER TABLE kinds.lost DISCARD TABLESPACE";
    session.run(discard).unwrap();
    let error = back_up(&site.request(SnapshotChoice::Reflink)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{}", error.chain());
    for name in ["`kinds`.`my`", "`kinds`.`lost`"] {
        assert!(error.to_string().contains(name), "{}", error.chain());
    }
    drop(rows);
    let error = back_up(&as_backup_account(site)).unwrap_err();
    assert!(
        error.to_string().contains("`kinds`.`lost`"),
        "{}",
        error.chain()
    );
    session.run("DROP TABLE kinds.lost").unwrap();
    // Directories that the walk does not take for a schema's.
    let schema = Away::take(site.launch.datadir.join("nothing"), &site.fs.join("schema"));
    std::os::unix::fs::symlink("/nowhere", site.launch.datadir.join("nothing")).unwrap();
    let error = back_up(&site.request(SnapshotChoice::Reflink));
    fs::remove_file(site.launch.datadir.join("nothing")).unwrap();
    drop(schema);
    // A server without a dictionary does not see it either.
    if !has_frm_files(site) {
        let error = error.unwrap_err();
        assert!(
            error.to_string().contains("schema nothing"),
            "{}",
            error.chain()
        );
    }
}

/// A table of another engine is refused, whether or not the account may see it.
fn other_engines_fail_the_backup(site: &Site) {
    let other = Other::make(site);
    for request in [
        site.request(SnapshotChoice::Reflink),
        as_backup_account(site),
    ] {
        let error = back_up(&request).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{}", error.chain());
        assert!(
            error.to_string().contains(other.named),
            "{}: {}",
            other.named,
            error.chain()
        );
        assert!(error.hints()[0].contains("ENGINE=InnoDB"));
    }
    other.drop_from(site);
}

fn boot(site: &Site, generation: u32) -> BootReport {
    let request = BootRequest {
        repository: site.repository().into(),
        generation: Some(generation),
        binary: site.server.binary.clone(),
        scratch: site.fs.join("scratch"),
        workers: 2,
        mounted: false,
        deadline: SERVER_DEADLINE,
        engine_tool: None,
        check_queues: evenkeel_queue_admin::problems,
    };
    verify::boot(&request, quiet(&Cancel::new())).unwrap_or_else(|why| panic!("{}", why.chain()))
}

fn case(server: TestServer) {
    let mut site = site(server);
    let mut session = site.running().session().unwrap();
    let listed = listed(&mut session);
    definitions_agree(&site, &listed);
    let report = back_up(&site.request(SnapshotChoice::Reflink))
        .expect("a backup")
        .report;
    let (schemas, tables) = recorded(&site, report.generation);
    let expected: BTreeSet<TableId> = listed.keys().cloned().collect();
    assert_eq!(tables, expected, "{}", site.server.name);
    assert_eq!(report.tables, Some(listed.len() as u64));
    assert!(
        schemas.contains("nothing") && schemas.contains("a-b.é#x"),
        "{schemas:?}"
    );
    let rules = report.left_out.unwrap();
    let temporary = rules
        .iter()
        .find(|rule| rule.why.contains("temporary tablespace"));
    assert!(
        temporary.is_some_and(|rule| rule.files > 0 && rule.bytes > 0),
        "{rules:?}"
    );

    // An account that sees no table has the same ones backed up.
    let poor = back_up(&as_backup_account(&site)).expect("a backup").report;
    let (_, unseen) = recorded(&site, poor.generation);
    match has_frm_files(&site) {
        true => assert_eq!(unseen, tables, "{}", site.server.name),
        false => {
            let (name, schema) = ("t$1 #Ä @0023".to_owned(), "a-b.é#x".to_owned());
            assert!(unseen.contains(&TableId { schema, name }), "{unseen:?}");
            assert!(unseen.is_subset(&tables), "{unseen:?}");
        }
    }
    missing_files_fail_the_backup(&site);
    other_engines_fail_the_backup(&site);
    // Crash recovery looks for it where it was, so no server may be started on a copy.
    session.run("DROP TABLE kinds.away").unwrap();
    let last = back_up(&site.request(SnapshotChoice::Reflink))
        .expect("a backup")
        .report;
    drop(session);
    site.kill();

    // A server that does not run.
    let source = Source::Stopped {
        datadir: site.launch.datadir.clone(),
        settings: [("log_bin_basename".to_owned(), "binlog".to_owned())].into(),
    };
    let request = BackupRequest::new(site.repository(), source, SnapshotChoice::Copy);
    let stopped = back_up(&request)
        .unwrap_or_else(|why| panic!("{}", why.chain()))
        .report;
    // Without the lost one and the one away.
    let left = listed.len() as u64 - 2;
    let expected = has_frm_files(&site).then_some(left);
    assert_eq!(stopped.tables, expected, "{}", site.server.name);

    // Of all that the generation says, one table is not there when a server has started on it.
    forge(&site.repository(), last.generation, one_table_more);
    let booted = boot(&site, last.generation);
    assert!(!booted.proven, "{booted:?}");
    let [problem] = &booted.problems[..] else {
        panic!("{booted:?}");
    };
    assert!(problem.contains("`kinds`.`phantom` existed"), "{problem}");
    assert_eq!(booted.tables_recorded, Some(left + 1));
}

#[test]
fn generations_of_before_are_proven_without_a_list() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(2 << 30), 50, &[]);
    let done = back_up(&site.request(SnapshotChoice::Reflink)).expect("a backup");
    site.kill();
    forge(&site.repository(), done.report.generation, |facts| {
        let facts = facts.as_object_mut().unwrap();
        facts.remove("tables").unwrap();
        facts.remove("left_out").unwrap();
    });
    let booted = boot(&site, done.report.generation);
    assert!(booted.proven, "{booted:?}");
    assert_eq!(booted.tables_recorded, None);
}

#[test]
fn on_mariadb_10_11() {
    case(mariadb_10_11());
}

#[test]
fn on_others() {
    let others: [fn() -> TestServer; 4] = [mysql_8_0_15, mariadb_11_8, mysql_9, mysql_5_7_22];
    for server in draw("servers with every table", &others, 1) {
        case(server());
    }
}
