//! Does `verify --boot` leave the files of the server that was backed up alone, also those that lie
//! outside the data directory?

use evenkeel_backup::backup::SnapshotChoice;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_cases::{SMALL, Site, back_up};
use evenkeel_op::Cancel;
use evenkeel_server::connect::Session;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::make_server_dir;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A template has its system tablespace in the data directory.
fn start(server: TestServer, templated: bool, more: impl Fn(&Path) -> Vec<String>) -> Site {
    let fs = LoopFs::xfs(4 << 30);
    make_server_dir(&fs.join("elsewhere"));
    let own = more(&fs.join("elsewhere"));
    let mut args = SMALL.to_vec();
    args.extend(own.iter().map(String::as_str));
    let datadir = fs.join("data");
    let launch = match templated {
        true => server.prepare(&datadir, &args),
        false => server.plan(&datadir, &args),
    };
    if !templated {
        launch.initialise(SERVER_DEADLINE, &Cancel::new()).unwrap();
    }
    Site::of(server, fs, launch, 100)
}

fn run_all(session: &mut Session, statements: &[&str]) {
    for sql in statements {
        session
            .run(sql)
            .unwrap_or_else(|e| panic!("{sql}: {}", e.chain()));
    }
}

/// Content and time of every file below a directory.
type FileContents = BTreeMap<PathBuf, (Vec<u8>, i64, i64)>;

fn state(top: &Path) -> FileContents {
    let names = evenkeel_cases::leftovers::all_files(top).into_keys();
    names
        .map(|name| {
            let path = top.join(&name);
            let meta = fs::metadata(&path).unwrap();
            let written = (fs::read(&path).unwrap(), meta.mtime(), meta.mtime_nsec());
            (name, written)
        })
        .collect()
}

fn prove(site: &Site) -> Ended {
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = evenkeel.command(&["verify", "--boot"]);
    command
        .arg("--server-binary")
        .arg(&site.server.binary.path)
        .arg(site.repository());
    run(command)
}

fn assert_proven(site: &Site) {
    let ended = prove(site);
    assert_eq!(ended.code, Some(0), "{}: {ended:?}", site.server.name);
    assert_eq!(ended.answer["boot"]["proven"], true, "{ended:?}");
}

/// Backs up, ends the server so that only a proof could write, and returns what there is.
fn frozen(site: &mut Site) -> [FileContents; 2] {
    back_up(&site.request(SnapshotChoice::Reflink))
        .unwrap_or_else(|e| panic!("{}: {}", site.server.name, e.chain()));
    site.kill();
    now(site)
}

fn now(site: &Site) -> [FileContents; 2] {
    ["elsewhere", "data"].map(|dir| state(&site.fs.join(dir)))
}

#[test]
fn tables_elsewhere() {
    let mut servers = draw(
        "servers that would write",
        &[mysql_5_7_22(), mariadb_10_11()],
        1,
    );
    servers.push(mysql_8_0_15());
    for server in servers {
        let is_mysql_8 = server.id == mysql_8_0_15().id;
        let mut site = start(server, true, |elsewhere| {
            let known = format!("--innodb-directories={}", elsewhere.display());
            is_mysql_8.then_some(known).into_iter().collect()
        });
        let elsewhere = site.fs.join("elsewhere");
        let at = elsewhere.display();
        let mut session = site.running().session().unwrap();
        let away = format!(
            "CREATE TABLE bank.away (id INT PRIMARY KEY) ENGINE=InnoDB DATA DIRECTORY='{at}'"
        );
        run_all(&mut session, &[&away, "INSERT INTO bank.away VALUES (1)"]);
        if site.server.id != mariadb_10_11().id {
            run_all(
                &mut session,
                &[
                    &format!("CREATE TABLESPACE ts ADD DATAFILE '{at}/ts.ibd' ENGINE=InnoDB"),
                    "CREATE TABLE bank.general (id INT PRIMARY KEY) TABLESPACE ts",
                    "INSERT INTO bank.general VALUES (1)",
                ],
            );
        }
        if is_mysql_8 {
            let undo = format!("CREATE UNDO TABLESPACE un ADD DATAFILE '{at}/un.ibu'");
            run_all(&mut session, &[&undo, "UPDATE bank.general SET id = 2"]);
        }
        drop(session);
        let before = frozen(&mut site);
        assert!(before[0].contains_key(Path::new("bank/away.ibd")));
        if is_mysql_8 {
            assert_proven(&site);
            assert!(now(&site) == before, "the originals are as they were");
            // Nor does it need them.
            fs::rename(&elsewhere, site.fs.join("gone")).unwrap();
            assert_proven(&site);
            assert!(!elsewhere.exists());
        } else {
            let ended = prove(&site);
            let reported = site.server.name;
            assert_eq!(ended.code, Some(14), "{reported}: {ended:?}");
            let message = ended.message();
            assert!(message.contains(&*elsewhere.to_string_lossy()), "{message}");
            assert!(
                message.contains("would write to the originals"),
                "{message}"
            );
            let hints = ended.answer["hints"].to_string();
            assert!(hints.contains("without --boot"), "{hints}");
            assert!(
                now(&site) == before,
                "{reported}: the originals are as they were"
            );
        }
    }
}

#[test]
fn a_system_tablespace_named_by_its_whole_path() {
    let servers = [mariadb_10_11(), mysql_5_7_22(), mysql_8_0_15()];
    for server in draw("servers with whole paths", &servers, 1) {
        let mut site = start(server, false, |elsewhere| {
            let at = elsewhere.display();
            vec![
                "--innodb-data-home-dir=".to_owned(),
                format!("--innodb-data-file-path={at}/ibdata1:12M;{at}/ibdata2:12M:autoextend"),
            ]
        });
        let before = frozen(&mut site);
        assert!(before[0].contains_key(Path::new("ibdata2")));
        assert_proven(&site);
        assert!(
            now(&site) == before,
            "{}: the originals are as they were",
            site.server.name
        );
    }
}
