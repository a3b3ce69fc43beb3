//! Does the server's own hot-copy tool give, on a filesystem that can freeze nothing, backups of a
//! busy server that restore to exactly what was committed, and increments as small as a snapshot's?

use evenkeel_backup::backup::{BackupRequest, Done, RunKind, SnapshotChoice};
use evenkeel_backup::verify::{self, BootRequest};
use evenkeel_cases::leftovers::all_files;
use evenkeel_cases::storm::Storm;
use evenkeel_cases::{Site, back_up, quiet};
use evenkeel_op::{Cancel, ErrorKind};
use evenkeel_repository::Repository;
use evenkeel_testkit::effort::rounds;
use evenkeel_testkit::servers::make_server_dir;
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{LoopFs, Marks};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn engine(site: &Site) -> BackupRequest {
    site.request(SnapshotChoice::Engine)
}

/// Tables of every kind that the tool treats in a way of its own.
fn add_kinds(site: &Site) {
    let mut session = site.running().session().unwrap();
    for sql in [
        "CREATE DATABASE kinds",
        "CREATE DATABASE empty",
        "CREATE TABLE kinds.pressed (id INT PRIMARY KEY, t VARCHAR(2000)) PAGE_COMPRESSED=1",
        "INSERT INTO kinds.pressed SELECT seq, REPEAT('compress me ', 100) FROM bank.seq_1_to_5000",
        "CREATE TABLE kinds.zipped (id INT PRIMARY KEY, t VARCHAR(2000)) ROW_FORMAT=COMPRESSED",
        "INSERT INTO kinds.zipped SELECT * FROM kinds.pressed",
        "CREATE TABLE kinds.isam (id INT PRIMARY KEY, t VARCHAR(200)) ENGINE=MyISAM",
        "INSERT INTO kinds.isam SELECT seq, 'isam' FROM bank.seq_1_to_1000",
        "CREATE TABLE kinds.aria (id INT PRIMARY KEY, t VARCHAR(200)) ENGINE=Aria",
        "INSERT INTO kinds.aria SELECT seq, 'aria' FROM bank.seq_1_to_1000",
        "CREATE TABLE kinds.parted (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 30",
        "INSERT INTO kinds.parted SELECT seq FROM bank.seq_1_to_3000",
    ] {
        session
            .run(sql)
            .unwrap_or_else(|e| panic!("{sql}: {}", e.chain()));
    }
}

const COUNTS: [(&str, &str); 5] = [
    ("kinds.pressed", "5000"),
    ("kinds.zipped", "5000"),
    ("kinds.isam", "1000"),
    ("kinds.aria", "1000"),
    ("kinds.parted", "3000"),
];

#[test]
fn every_generation_restores_to_what_was_committed() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::ext4(2 * GIB), 2_000, &[]);
    add_kinds(&site);
    // Else most pages would come from the redo log, when the copy is prepared.
    restart(&mut site);
    let traffic = site.traffic(4);
    let mut taken: Vec<(Done, Marks, Marks)> = Vec::new();
    for number in 0..3 {
        traffic.wait_for(50);
        let before = traffic.marks();
        // Where nothing else works, it is chosen.
        let choice = match number {
            1 => SnapshotChoice::Auto,
            _ => SnapshotChoice::Engine,
        };
        let mut request = site.request(choice);
        request.workers = 1 + number;
        taken.push((back_up(&request).unwrap(), before, traffic.marks()));
    }
    traffic.assert_undisturbed();
    site.kill();
    drop(traffic.stop());
    for (done, before, after) in &taken {
        let report = &done.report;
        assert_eq!(report.snapshot, "engine/mariadb-backup");
        assert_eq!(report.pages_corrupt, 0);
        assert!(report.pages_checked > 100, "{report:?}");
        assert!(report.lock_ms > 0.0, "{report:?}");
        assert!(report.coordinates.binlog_position.is_some(), "{report:?}");
        let name = format!("restored-{}", report.generation);
        let restored = site.restore(Some(report.generation), &name).unwrap();
        assert_no_notes(&restored.target);
        site.check_bank_at(&restored.target, before, after);
    }
    let restored = site.fs.join("restored-3");
    let sparse = fs::metadata(restored.join("kinds/pressed.ibd")).unwrap();
    assert!(sparse.blocks() * 512 < sparse.len() / 2, "holes are kept");
    assert!(restored.join("empty").is_dir());
    let mut launch = site.launch.clone();
    launch.datadir = restored;
    let running = site.server.run(&launch);
    let mut session = running.session().unwrap();
    for (table, rows) in COUNTS {
        let found = session
            .value(&format!("SELECT COUNT(*) FROM {table}"))
            .unwrap();
        assert_eq!(found.as_deref(), Some(rows), "{table}");
    }
}

/// What the tool wrote for itself is not the server's, and everything has the owner of old.
fn assert_no_notes(datadir: &Path) {
    let owner = fs::metadata(datadir).unwrap().uid();
    for path in all_files(datadir).keys() {
        let name = path.to_string_lossy();
        let is_note = ["xtrabackup_", "mariadb_backup_", "backup-my.cnf", ".new"];
        assert!(!is_note.iter().any(|note| name.contains(note)), "{name}");
        assert_eq!(
            fs::metadata(datadir.join(path)).unwrap().uid(),
            owner,
            "{name}"
        );
    }
}

/// Both look at the same files, against the same base.
#[test]
fn increments_are_as_small_as_a_snapshots() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 500, &[]);
    let mut session = site.running().session().unwrap();
    for sql in [
        "CREATE TABLE bank.big (id INT PRIMARY KEY, t VARCHAR(1000))",
        "INSERT INTO bank.big SELECT seq, REPEAT(SHA1(seq), 20) FROM bank.seq_1_to_60000",
    ] {
        session.run(sql).unwrap();
    }
    drop(session);
    restart(&mut site);
    let run = |site: &Site, choice: SnapshotChoice, kind: RunKind| {
        let mut request = site.request(choice);
        request.kind = kind;
        back_up(&request).unwrap().report
    };
    // Each its own base: what is a hole to the one is zeros to the other, once.
    let full = run(&site, SnapshotChoice::Engine, RunKind::Full);
    let base = run(&site, SnapshotChoice::Reflink, RunKind::Full);
    let mut session = site.running().session().unwrap();
    session
        .run("UPDATE bank.big SET t = REVERSE(t) WHERE id BETWEEN 1000 AND 3000")
        .unwrap();
    drop(session);
    // The redo log, which each copies in its own way, is to be short.
    restart(&mut site);
    let streamed = run(
        &site,
        SnapshotChoice::Engine,
        RunKind::Against(full.generation),
    );
    let frozen = run(
        &site,
        SnapshotChoice::Reflink,
        RunKind::Against(base.generation),
    );
    let (streamed, frozen, full) = (
        streamed.bytes_changed,
        frozen.bytes_changed,
        full.bytes_changed,
    );
    println!("changed: streamed {streamed}, frozen {frozen}, full {full}");
    assert!(frozen > MIB, "something changed");
    assert!(streamed <= 2 * frozen + 2 * MIB, "{streamed} {frozen}");
    assert!(
        full > 3 * (2 * frozen + 2 * MIB),
        "the bound says something: {full}"
    );
}

fn restart(site: &mut Site) {
    let running = site.running.take().unwrap();
    running.stop(Duration::from_secs(120)).unwrap();
    site.running = Some(site.server.run(&site.launch));
}

/// Only the tool itself knows which of two names a table had at the end.
#[test]
fn tables_that_change_during_the_copy_are_whole() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::ext4(2 * GIB), 500, &[]);
    let storm = Storm::start(site.running(), 20_261_121);
    let traffic = site.traffic(2);
    let mut taken = Vec::new();
    for _ in 0..rounds("copies of changing tables", 2, 3) {
        storm.wait_for(30);
        let before = traffic.marks();
        let done = back_up(&engine(&site)).unwrap();
        taken.push((done.report.generation, before, traffic.marks()));
    }
    drop(storm);
    site.kill();
    drop(traffic.stop());
    for (generation, before, after) in taken {
        let restored = site.restore(Some(generation), "restored").unwrap();
        site.check_bank_at(&restored.target, &before, &after);
        fs::remove_dir_all(&restored.target).unwrap();
        let proof = BootRequest {
            repository: site.repository().into(),
            generation: Some(generation),
            binary: site.server.binary.clone(),
            scratch: site.fs.join("scratch"),
            workers: 2,
            mounted: false,
            deadline: Duration::from_secs(120),
            engine_tool: None,
            check_queues: evenkeel_queue_admin::problems,
        };
        let proof = verify::boot(&proof, quiet(&Cancel::new())).unwrap();
        assert_eq!(proof.problems, Vec::<String>::new(), "{generation}");
        assert!(proof.proven && proof.tables_checked > 30);
    }
}

#[test]
fn a_corrupt_page_is_named_and_stored_only_on_request() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::ext4(GIB), 2_000, &[]);
    restart(&mut site);
    let victim = site.launch.datadir.join("bank/accounts_0.ibd");
    let file = fs::OpenOptions::new().write(true).open(&victim).unwrap();
    let at = 5 * 16384 + 3000;
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xA5; 500], at).unwrap();
    let error = back_up(&engine(&site)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Differs, "{}", error.chain());
    assert!(
        error.chain().contains("page 5 of data/bank/accounts_0.ibd"),
        "{}",
        error.chain()
    );
    assert!(error.chain().contains("accounts_0"), "{}", error.chain());
    site.assert_clean("after a corrupt page");
    let generations = Repository::open(site.repository()).unwrap().generations();
    assert!(generations.unwrap().is_empty());
    let mut request = engine(&site);
    request.keep_corrupt = true;
    let done = back_up(&request).unwrap();
    assert_eq!((done.report.pages_corrupt, done.corrupt.len()), (1, 1));
}

#[test]
fn what_a_tool_cannot_do_is_refused_before_anything_is_done() {
    let site = Site::start(mariadb_10_11(), LoopFs::ext4(GIB), 100, &[]);
    let mut request = engine(&site);
    request.engine_tool = Some("/no/such/tool".into());
    assert_eq!(back_up(&request).unwrap_err().kind(), ErrorKind::Usage);
    // Where it would only be second best, the hint is to get one.
    let mut request = site.request(SnapshotChoice::Auto);
    request.engine_tool = Some("/no/such/tool".into());
    let error = back_up(&request).unwrap_err();
    assert!(
        error
            .hints()
            .iter()
            .any(|hint| hint.contains("--snapshot engine")),
        "{error:?}"
    );
    let mut request = engine(&site);
    request.lock = evenkeel_backup::backup::LockWish::None;
    assert_eq!(back_up(&request).unwrap_err().kind(), ErrorKind::Usage);
    let mut session = site.running().session().unwrap();
    let elsewhere = site.fs.join("elsewhere");
    make_server_dir(&elsewhere);
    let sql = format!(
        "CREATE TABLE bank.far (id INT PRIMARY KEY) DATA DIRECTORY='{}'",
        elsewhere.display()
    );
    session.run(&sql).unwrap();
    let error = back_up(&engine(&site)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{}", error.chain());
    assert!(!site.repository().exists());
    session.run("DROP TABLE bank.far").unwrap();
    back_up(&engine(&site)).unwrap();
    let restore = evenkeel_backup::restore::RestoreRequest {
        engine_tool: Some("/no/such/tool".into()),
        ..evenkeel_backup::restore::RestoreRequest::new(site.repository(), None, &site.fs.join("r"))
    };
    let error = evenkeel_backup::restore::restore(&restore, quiet(&Cancel::new())).unwrap_err();
    assert!(
        error.chain().contains("mariadb-backup copied the files"),
        "{}",
        error.chain()
    );
    assert!(!site.fs.join("r").exists());
}
