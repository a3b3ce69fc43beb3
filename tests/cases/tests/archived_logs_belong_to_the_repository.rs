//! Are archived binary logs as well kept as generations are: encrypted with them, verified, forgotten
//! when no generation needs them, and taken from another host?

use evenkeel_cases::Site;
use evenkeel_cases::far::FarHost;
use evenkeel_cases::points::{
    add, archive, archive_command, make_table, restore_to_command, rows_of,
};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const PATIENCE_S: u32 = 60;
const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

fn evenkeel() -> Evenkeel {
    Evenkeel::new(PROGRAM)
}

/// Makes an identity in `name` and returns its file and its recipient.
fn identity(site: &Site, name: &str) -> (String, String) {
    let file = site.fs.join(name).display().to_string();
    let ended = run(evenkeel().command(&["keys", "generate", "--output", &file]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let recipient = ended.answer["recipient"].as_str().expect("a recipient");
    (file, recipient.to_owned())
}

fn on_repository(site: &Site, words: &[&str]) -> Ended {
    let mut command = evenkeel().command(words);
    command.arg(site.repository());
    run(command)
}

/// The archived segments, oldest first.
fn segments(site: &Site) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![site.repository().join("binlogs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            match path.is_dir() {
                true => folders.push(path),
                false if name.starts_with("binlog.") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// A host that cannot read archives, whoever can reads a point back.
fn encrypted(server: TestServer, there: impl Fn(Command) -> Command) {
    let mut site = Site::start(server, LoopFs::xfs(2 << 30), 50, &[]);
    let (admin, reader) = identity(&site, "admin.key");
    let (host, _) = identity(&site, "host.key");
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    add(&mut session, 1);
    let backup = evenkeel().backup(&site, &["--identity", &host, "--encrypt-to", &reader]);
    assert_eq!(run(there(backup)).generation(), 1);
    add(&mut session, 2);
    let go = |flags: &[&str]| run(there(archive_command(&evenkeel(), &site, flags)));
    let shut = go(&[]);
    assert_eq!(shut.code, Some(12), "without a key: {shut:?}");
    for id in 3..5 {
        add(&mut session, id);
        session.run("FLUSH LOGS").unwrap();
        // It continues a log that it cannot read.
        let archived = go(&["--identity", &host]);
        assert_eq!(archived.code, Some(0), "{archived:?}");
        assert!(!archived.said.contains("new timeline"), "{archived:?}");
    }
    let five = add(&mut session, 5);
    add(&mut session, 6);
    let archived = go(&["--identity", &host]);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    site.kill();
    for segment in segments(&site) {
        let bytes = fs::read(&segment).unwrap();
        assert_eq!(&bytes[..8], b"EKBLSEG2", "{}", segment.display());
    }
    let listed = on_repository(&site, &["binlog", "list", "--identity", &host]);
    let timelines = &listed.answer["sources"][0]["timelines"];
    assert_eq!(timelines.as_array().map(Vec::len), Some(1), "{listed:?}");
    assert_eq!(timelines[0]["points"][0]["generation"], 1, "{listed:?}");
    let target = site.fs.join("restored");
    let restore = |key: &str| {
        let mut command = restore_to_command(&evenkeel(), &site, &target, &five.moved(0));
        command.args(["--identity", key]);
        run(there(command))
    };
    let shut = restore(&host);
    assert_eq!(shut.code, Some(12), "with a writer's key: {shut:?}");
    assert!(!target.exists());
    let ended = restore(&admin);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(rows_of(&site, &target), "1,2,3,4,5");
    let sound = on_repository(&site, &["verify", "--all", "--identity", &admin]);
    assert_eq!(sound.code, Some(0), "{sound:?}");
    assert!(
        sound.answer["log_segments_read"].as_u64() >= Some(3),
        "{sound:?}"
    );
}

#[test]
fn encrypted_of_mariadb_10_11() {
    encrypted(mariadb_10_11(), |command| command);
}

#[test]
fn encrypted_of_mariadb_10_11_over_ssh() {
    let far = FarHost::having(PROGRAM, &[]);
    encrypted(mariadb_10_11(), |command| far.over(command, PATIENCE_S));
    far.assert_clean("after all");
}

/// What a generation needs stays whatever is pruned, and what none needs goes.
fn retention(server: TestServer) {
    let site = Site::start(server, LoopFs::xfs(3 << 30), 50, &[]);
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    let mut marks = Vec::new();
    for round in 1..=3 {
        add(&mut session, 10 * round);
        assert_eq!(run(evenkeel().backup(&site, &[])).generation(), round);
        marks.push(add(&mut session, 10 * round + 1));
        session.run("FLUSH LOGS").unwrap();
        session.run("FLUSH LOGS").unwrap();
        let archived = archive(&evenkeel(), &site, &[]);
        assert_eq!(archived.code, Some(0), "{archived:?}");
    }
    let all = segments(&site);
    let prune = |flags: &[&str]| on_repository(&site, &[&["prune"], flags].concat());
    // Every generation is there: what came before the first alone is not needed, and there is none.
    let none = prune(&[]);
    assert_eq!(none.answer["binlogs"], serde_json::Value::Null, "{none:?}");
    let forgotten = on_repository(&site, &["forget", "--generation=1", "--execute"]);
    assert_eq!(forgotten.code, Some(0), "{forgotten:?}");
    // A point after a generation that is left can be restored; one before it cannot.
    let plan = prune(&[]);
    assert_eq!(plan.code, Some(0), "{plan:?}");
    let before = plan.answer["binlogs"][0]["before"]["file"].clone();
    assert_eq!(before, marks[1].file.as_str(), "{plan:?}");
    assert_eq!(segments(&site), all, "a plan removed something");
    let done = prune(&["--execute"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let left = segments(&site);
    assert!(left.len() < all.len() && all.ends_with(&left), "{left:?}");
    let sound = on_repository(&site, &["verify", "--all"]);
    assert_eq!(sound.code, Some(0), "{sound:?}");
    let listed = on_repository(&site, &["binlog", "list"]);
    let points = &listed.answer["sources"][0]["timelines"][0]["points"];
    assert_eq!(points[0]["generation"], 2, "{listed:?}");
    let target = site.fs.join("restored");
    let restore = |to: &str| run(restore_to_command(&evenkeel(), &site, &target, to));
    let refused = restore(&marks[0].moved(0));
    assert_eq!(refused.code, Some(14), "{refused:?}");
    for (mark, rows) in [(&marks[1], "10,11,20,21"), (&marks[2], "10,11,20,21,30,31")] {
        let ended = restore(&mark.moved(0));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(rows_of(&site, &target), rows);
        fs::remove_dir_all(&target).unwrap();
    }
    // In the backup's own command: the archive need not have come to the newest generation.
    assert_eq!(run(evenkeel().backup(&site, &[])).generation(), 4);
    add(&mut session, 39);
    let archived = archive(&evenkeel(), &site, &[]);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    let kept = run(evenkeel().backup(&site, &["--keep-last=2", "--prune"]));
    assert_eq!(kept.code, Some(0), "{kept:?}");
    assert!(kept.answer["pruned"]["binlogs"][0].is_object(), "{kept:?}");
    let last = add(&mut session, 40);
    let archived = archive(&evenkeel(), &site, &[]);
    assert_eq!(archived.code, Some(0), "{archived:?}");
    assert!(!archived.said.contains("new timeline"), "{archived:?}");
    let ended = restore(&last.moved(0));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(rows_of(&site, &target).ends_with(",31,39,40"));
    damaged(&site);
}

/// A segment that is damaged, and one that is lost, are named.
fn damaged(site: &Site) {
    let victim = segments(site).remove(0);
    let name = victim
        .strip_prefix(site.repository())
        .unwrap()
        .display()
        .to_string();
    let sound = fs::read(&victim).unwrap();
    let mut wrong = sound.clone();
    let last = wrong.len() - 9;
    wrong[last] ^= 4;
    fs::write(&victim, &wrong).unwrap();
    let reported = on_repository(site, &["verify", "--all"]);
    assert_eq!(reported.code, Some(4), "{reported:?}");
    assert_eq!(
        reported.answer["findings"][0]["object"],
        name.as_str(),
        "{reported:?}"
    );
    fs::remove_file(&victim).unwrap();
    let reported = on_repository(site, &["verify"]);
    assert_eq!(reported.code, Some(4), "{reported:?}");
    let what = reported.answer["findings"][0]["what"].as_str().unwrap();
    assert!(what.contains("missing"), "{reported:?}");
    fs::write(&victim, &sound).unwrap();
    let reported = on_repository(site, &["verify"]);
    assert_eq!(reported.code, Some(0), "{reported:?}");
}

#[test]
fn retention_of_mariadb_10_11() {
    retention(mariadb_10_11());
}

/// A sample puts one of the two questions, which MariaDB is asked each time.
#[test]
fn of_mysql_8_0_15() {
    type Case = fn(TestServer);
    let cases: [Case; 2] = [|server| encrypted(server, |command| command), retention];
    for case in draw("questions about archives of MySQL", &cases, 1) {
        case(mysql_8_0_15());
    }
}
