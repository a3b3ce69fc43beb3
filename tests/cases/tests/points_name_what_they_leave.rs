//! Does a restore to a point go on behind statements that a private server does not do as the source did, and
//! say which they were?

use evenkeel_cases::points::{archive, mark, restore_to};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_cases::{SMALL, Site};
use evenkeel_testkit::servers::{make_server_dir, mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer};
use std::fs;
use std::path::PathBuf;

/// The library that was built for these tests: it lies beside their programs.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("this program's path");
    program.with_file_name("libevenkeel_url.so")
}

/// A function of a library is registered, and a file of the source is read, both in the format that tells only
/// the statement. What comes behind is applied.
fn case(server: TestServer) {
    let fs = LoopFs::xfs(2 << 30);
    let plugins = fs.join("plugins");
    let files = fs.join("files");
    for dir in [&plugins, &files] {
        make_server_dir(dir);
    }
    fs::copy(library(), plugins.join("evenkeel_url.so")).unwrap();
    fs::write(files.join("motd"), "of the source").unwrap();
    let plugin_dir = format!("--plugin-dir={}", plugins.display());
    let files_dir = format!("--secure-file-priv={}", files.display());
    let mut args = SMALL.to_vec();
    args.extend([plugin_dir.as_str(), &files_dir, "--binlog-format=STATEMENT"]);
    let launch = server.prepare(&fs.join("data"), &args);
    let mut site = Site::of(server, fs, launch, 10);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    session.run("CREATE DATABASE points").unwrap();
    session
        .run("CREATE TABLE points.n (id INT PRIMARY KEY, a VARCHAR(40))")
        .unwrap();
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    let motd = files.join("motd").display().to_string();
    let mut place = String::new();
    for sql in [
        "INSERT INTO points.n VALUES (1, 'not LOAD_FILE(1)')".to_owned(),
        "CREATE FUNCTION url_table_id RETURNS STRING SONAME 'evenkeel_url.so'".to_owned(),
        format!("INSERT INTO points.n VALUES (2, LOAD_FILE('{motd}'))"),
        "INSERT INTO points.n VALUES (3, 'behind')".to_owned(),
    ] {
        let done = session.run(&sql);
        done.unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
        if sql.starts_with("CREATE") {
            place = mark(&mut session).moved(0);
        }
    }
    let read = "SELECT a FROM points.n WHERE id = 2";
    assert_eq!(
        session.value(read).unwrap().as_deref(),
        Some("of the source")
    );
    let end = mark(&mut session);
    drop(session);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    site.kill();
    // Also where the last of what is applied is left out.
    let ended = restore_to(&evenkeel, &site, &site.fs.join("registered"), &place);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert_eq!(ended.answer["point"]["transactions"], 2, "{ended:?}");
    let target = site.fs.join("restored");
    let ended = restore_to(&evenkeel, &site, &target, &end.moved(0));
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let unmade = ended.answer["point"]["unmade"].as_array().unwrap();
    let whys: Vec<_> = unmade
        .iter()
        .map(|one| one["why"].as_str().unwrap())
        .collect();
    assert_eq!(whys, ["library", "file"], "{ended:?}");
    let text = unmade[0]["statement"].as_str().unwrap();
    assert!(text.starts_with("CREATE FUNCTION url_table_id"), "{text}");
    let mut launch = site.launch.clone();
    launch.datadir = target;
    let restored = site.server.run(&launch);
    let mut session = restored.session().unwrap();
    let ids = session.value("SELECT GROUP_CONCAT(id ORDER BY id) FROM points.n");
    assert_eq!(ids.unwrap().as_deref(), Some("1,2,3"));
    assert_eq!(session.value(read).unwrap(), None);
    // It is as the answer says: what it names is run, and there it is.
    session.run(text).unwrap();
}

#[test]
fn on_mariadb_10_11() {
    case(mariadb_10_11());
}

#[test]
fn on_mysql_8_0_15() {
    case(mysql_8_0_15());
}
