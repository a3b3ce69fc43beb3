//! Is every file of a server found, wherever it keeps them, and is what cannot be covered refused?

use evenkeel_op::{Cancel, ErrorKind};
use evenkeel_server::abilities::{Abilities, Flavour, RedoLayout};
use evenkeel_server::connect::Session;
use evenkeel_server::files::{FileClass, ServerFiles, discover, discover_stopped, relative_path};
use evenkeel_server::launch::{Launch, Running};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{
    SERVER_DEADLINE, copy_tree, mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9,
};
use evenkeel_testkit::servers::{account, give_to_server, make_server_dir};
use evenkeel_testkit::{Bank, Scratch, TestServer, servers};
use std::collections::BTreeMap;
use std::path::Path;

fn files_of(running: &Running) -> ServerFiles {
    try_files_of(running).unwrap_or_else(|e| panic!("{}", e.chain()))
}

fn try_files_of(running: &Running) -> evenkeel_op::Result<ServerFiles> {
    let mut session = running.session().unwrap();
    let abilities = Abilities::probe(&mut session).unwrap();
    discover(&mut session, &abilities)
}

fn class_of(files: &ServerFiles, name: &str) -> Option<FileClass> {
    files
        .files
        .iter()
        .find(|file| file.name == name)
        .map(|file| file.class)
}

fn root_ids(files: &ServerFiles) -> Vec<&str> {
    files.roots.iter().map(|root| root.id.as_str()).collect()
}

fn run_all(session: &mut Session, statements: &[&str]) {
    for sql in statements {
        session.run(sql).unwrap();
    }
}

/// Returns the name of a redo log file that the server uses.
fn redo_log(server: &TestServer, running: &Running) -> String {
    if RedoLayout::of(server.binary.flavour, server.binary.version) != RedoLayout::Directory {
        return "ib_logfile0".to_owned();
    }
    let mut session = running.session().unwrap();
    let dir = session.variable("innodb_log_group_home_dir").unwrap();
    let datadir = session.variable("datadir").unwrap().unwrap();
    let dir = Path::new(&datadir).join(dir.unwrap()).join("#innodb_redo");
    let names = std::fs::read_dir(dir).unwrap();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let used = names.find(|name| !name.ends_with("_tmp")).unwrap();
    format!("#innodb_redo/{used}")
}

#[test]
fn a_plain_data_directory_boots_from_what_was_found() {
    let mariadb = draw("servers of MariaDB", &[mariadb_10_11(), mariadb_11_8()], 1);
    let mysql = [mysql_8_0_15(), mysql_9(), mysql_5_7_22()];
    for server in [mariadb, draw("servers of MySQL", &mysql, 1)].concat() {
        let scratch = Scratch::new();
        let running = server.start(
            &scratch.join("source"),
            &["--log-bin=binlog", "--server-id=7"],
        );
        let mut session = running.session().unwrap();
        let bank = Bank::load(&mut session, 40).unwrap();
        run_all(&mut session, &["CREATE DATABASE hollow"]);
        let files = files_of(&running);

        assert_eq!(root_ids(&files), ["data"], "{}", server.name);
        assert_eq!(files.pid, Some(running.pid()));
        assert_eq!(files.page_size, 16384);
        assert_eq!(files.settings["server_id"], "7");
        assert!(!files.has_nontransactional_user_tables());
        assert!(files.dirs.iter().any(|(name, _)| name == "data/hollow"));
        use FileClass as C;
        let redo = format!("data/{}", redo_log(&server, &running));
        for (name, class) in [
            ("data/ibdata1", C::InnodbData),
            (&redo, C::InnodbRedo),
            ("data/bank/accounts_0.ibd", C::InnodbData),
            ("data/binlog.000001", C::Binlog),
            ("data/binlog.index", C::BinlogIndex),
        ] {
            assert_eq!(
                class_of(&files, name),
                Some(class),
                "{}: {name}",
                server.name
            );
        }
        let other: Vec<&str> = files
            .files
            .iter()
            .filter(|file| file.class == C::Other)
            .map(|file| file.name.as_str())
            .collect();
        assert_eq!(other, [""; 0], "{}: not recognised", server.name);
        assert!(
            files
                .excluded
                .iter()
                .any(|(path, _)| path.ends_with("ibtmp1"))
        );

        running.stop(SERVER_DEADLINE).unwrap();
        let stopped = discover_stopped(&scratch.join("source"), &files.settings).unwrap();
        copy_out(&stopped, &scratch.join("copy"));
        let copy = server.run(&server.plan(&scratch.join("copy/data"), &[]));
        bank.check(&mut copy.session().unwrap()).unwrap();
    }
}

/// A server that keeps each kind of file somewhere else.
struct Spread {
    server: TestServer,
    launch: Launch,
    scratch: Scratch,
    /// A schema lies behind a symbolic link, as people do when a disk is full. MySQL 8 forbids it.
    linked: bool,
}

impl Spread {
    fn new(server: TestServer) -> Self {
        let scratch = Scratch::new();
        for dir in ["redo", "undo", "home", "binlog", "aria", "tables", "far"] {
            make_server_dir(&scratch.join(dir));
        }
        let at = |option: &str, dir: &str| format!("--{option}={}", scratch.join(dir).display());
        let mut args = vec![
            at("innodb-log-group-home-dir", "redo"),
            at("innodb-undo-directory", "undo"),
            at("innodb-data-home-dir", "home"),
            at("log-bin", "binlog/log"),
            "--server-id=7".to_owned(),
        ];
        let maria = server.binary.flavour == Flavour::MariaDb;
        let linked = maria || server.id == "mysql-5.7.22";
        if linked {
            args.push("--symbolic-links=1".to_owned());
            args.push("--innodb-undo-tablespaces=3".to_owned());
        } else {
            args.push(at("innodb-directories", "tables"));
        }
        if maria {
            args.push(at("aria-log-dir-path", "aria"));
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let launch = server.plan(&scratch.join("source"), &args);
        launch.initialise(SERVER_DEADLINE, &Cancel::new()).unwrap();
        if linked {
            std::os::unix::fs::symlink(scratch.join("far"), launch.datadir.join("far")).unwrap();
        }
        Self {
            server,
            launch,
            scratch,
            linked,
        }
    }

    fn load(&self, session: &mut Session) -> Bank {
        let bank = Bank::load(session, 40).unwrap();
        let tables = self.scratch.join("tables");
        let away = format!(
            "CREATE TABLE bank.away (id INT PRIMARY KEY) ENGINE=InnoDB DATA DIRECTORY='{}'",
            tables.display()
        );
        run_all(session, &[&away, "INSERT INTO bank.away VALUES (1), (2)"]);
        if self.linked {
            run_all(
                session,
                &["CREATE TABLE far.t (id INT PRIMARY KEY) ENGINE=InnoDB"],
            );
        }
        bank
    }

    fn roots(&self) -> Vec<&'static str> {
        let mut roots = vec!["data"];
        roots.extend(self.linked.then_some("schema-far"));
        roots.extend(["innodb-home", "redo", "undo"]);
        roots.extend((self.server.binary.flavour == Flavour::MariaDb).then_some("aria-log"));
        roots.extend(["binlog", "tablespaces-1"]);
        roots
    }
}

fn names(files: &ServerFiles) -> Vec<&str> {
    files.files.iter().map(|file| file.name.as_str()).collect()
}

/// Returns what was found first and not again, but for what a shutdown removes.
fn lost<'f>(first: &'f ServerFiles, again: &ServerFiles) -> Vec<&'f str> {
    let passing = [
        "ib_buffer_pool",
        "ddl_recovery.log",
        "log.index",
        "log.state",
    ];
    let still = names(again);
    names(first)
        .into_iter()
        .filter(|name| !still.contains(name) && !passing.iter().any(|end| name.ends_with(end)))
        .collect()
}

#[test]
fn files_everywhere_are_found_and_boot() {
    let linked = [mysql_5_7_22(), mariadb_11_8(), mariadb_10_11()];
    let linked = draw("servers with links", &linked, 1);
    let others = draw("servers without", &[mysql_9(), mysql_8_0_15()], 1);
    for server in [linked, others].concat() {
        let spread = Spread::new(server);
        let name = spread.server.name;
        let running = spread.server.run(&spread.launch);
        let mut session = running.session().unwrap();
        let bank = spread.load(&mut session);
        let files = files_of(&running);
        assert_eq!(root_ids(&files), spread.roots(), "{name}");
        use FileClass as C;
        let redo = format!("redo/{}", redo_log(&spread.server, &running));
        for (file, class) in [
            ("innodb-home/ibdata1", C::InnodbData),
            (&redo, C::InnodbRedo),
            ("binlog/log.000001", C::Binlog),
            ("binlog/log.index", C::BinlogIndex),
            ("tablespaces-1/bank/away.ibd", C::InnodbData),
        ] {
            assert_eq!(class_of(&files, file), Some(class), "{name}: {file}");
        }
        let far = class_of(&files, "schema-far/t.ibd");
        assert_eq!(far, spread.linked.then_some(C::InnodbData));

        // The same, found again without asking the server, and with it stopped.
        assert_eq!(names(&files.rescan().unwrap()), names(&files), "{name}");
        drop(session);
        running.stop(SERVER_DEADLINE).unwrap();
        let stopped = discover_stopped(&spread.launch.datadir, &files.settings).unwrap();
        assert_eq!(root_ids(&stopped), spread.roots(), "{name}");
        assert_eq!(lost(&files, &stopped), [""; 0], "{name}");

        // Everything that is needed is among it: the originals are gone when the copy starts.
        let copy = spread.scratch.join("copy");
        copy_out(&stopped, &copy);
        for root in &stopped.roots {
            let away = spread.scratch.join(format!("was-{}", root.id));
            std::fs::rename(&root.path, away).unwrap();
        }
        put_back(&stopped, &copy);
        let again = spread.server.run(&spread.launch);
        let mut session = again.session().unwrap();
        bank.check(&mut session).unwrap();
        let count = session.value("SELECT COUNT(*) FROM bank.away").unwrap();
        assert_eq!(count.as_deref(), Some("2"), "{name}");
    }
}

#[test]
fn a_session_that_holds_tables_is_not_waited_for() {
    for server in draw("servers with tables held", &servers(), 1) {
        let scratch = Scratch::new();
        let tables = scratch.join("tables");
        make_server_dir(&tables);
        let known = format!("--innodb-directories={}", tables.display());
        let args = match server.id {
            "mysql-8.0.15" => vec![known.as_str()],
            _ => vec![],
        };
        let running = server.start(&scratch.join("source"), &args);
        let mut holder = running.session().unwrap();
        run_all(
            &mut holder,
            &[
                "CREATE DATABASE shop",
                "CREATE TABLE shop.here (id INT PRIMARY KEY) ENGINE=InnoDB",
                &format!(
                    "CREATE TABLE shop.away (id INT PRIMARY KEY) ENGINE=InnoDB \
                     DATA DIRECTORY='{}'",
                    tables.display()
                ),
                "LOCK TABLES shop.here WRITE, shop.away WRITE",
            ],
        );
        let mut session = running.session().unwrap();
        session.run("SET SESSION lock_wait_timeout = 1").unwrap();
        let abilities = Abilities::probe(&mut session).unwrap();
        let files = discover(&mut session, &abilities)
            .unwrap_or_else(|e| panic!("{}: {}", server.name, e.chain()));
        assert_eq!(
            class_of(&files, "tablespaces-1/shop/away.ibd"),
            Some(FileClass::InnodbData),
            "{}",
            server.name
        );
    }
}

/// Copies what was found into a new place, by names alone.
fn copy_out(files: &ServerFiles, to: &Path) {
    for (name, _) in &files.dirs {
        let (root, path) = relative_path(name).unwrap();
        std::fs::create_dir_all(to.join(root).join(path)).unwrap();
    }
    for file in &files.files {
        let (root, path) = relative_path(&file.name).unwrap();
        let target = to.join(root).join(path);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(&file.path, target).unwrap();
    }
    give_to_server(to);
}

/// Puts the copy where the roots were, as a restore in place would.
fn put_back(files: &ServerFiles, from: &Path) {
    for root in &files.roots {
        copy_tree(&from.join(&root.id), &root.path);
        give_to_server(&root.path);
        if let Some(schema) = root.id.strip_prefix("schema-") {
            let link = files.datadir.join(schema);
            std::os::unix::fs::symlink(&root.path, link).unwrap();
        }
    }
}

#[test]
fn tables_without_transactions_are_told_apart() {
    for server in draw("servers with MyISAM", &servers(), 1) {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("source"), &[]);
        let mut session = running.session().unwrap();
        run_all(&mut session, &["CREATE DATABASE shop"]);
        assert!(
            !files_of(&running).has_nontransactional_user_tables(),
            "{}",
            server.name
        );
        run_all(
            &mut session,
            &["CREATE TABLE shop.log (id INT) ENGINE=MyISAM"],
        );
        let files = files_of(&running);
        assert!(files.has_nontransactional_user_tables(), "{}", server.name);
        let name = "data/shop/log.MYD";
        assert_eq!(class_of(&files, name), Some(FileClass::EngineTable));
    }
}

#[test]
fn tablespaces_that_only_the_dictionary_knows_are_found() {
    let server = mysql_8_0_15();
    let scratch = Scratch::new();
    let more = scratch.join("more");
    make_server_dir(&more);
    let known = format!("--innodb-directories={}", more.display());
    let running = server.start(&scratch.join("source"), &[&known]);
    let mut session = running.session().unwrap();
    run_all(
        &mut session,
        &[
            &format!(
                "CREATE TABLESPACE ts ADD DATAFILE '{}/ts.ibd'",
                more.display()
            ),
            &format!(
                "CREATE UNDO TABLESPACE un ADD DATAFILE '{}/un.ibu'",
                more.display()
            ),
            "CREATE TABLESPACE relative ADD DATAFILE '../more/relative.ibd'",
            "CREATE DATABASE shop",
            "CREATE TABLE shop.t (id INT PRIMARY KEY) TABLESPACE ts",
            &format!(
                "CREATE TABLE shop.parts (id INT PRIMARY KEY) PARTITION BY HASH (id) \
                 (PARTITION one DATA DIRECTORY = '{}', PARTITION two)",
                more.display()
            ),
        ],
    );
    let names = [
        "tablespaces-1/ts.ibd",
        "tablespaces-1/un.ibu",
        "tablespaces-1/relative.ibd",
        "tablespaces-1/shop/parts#P#one.ibd",
    ];
    let files = files_of(&running);
    for name in names {
        assert_eq!(
            class_of(&files, name),
            Some(FileClass::InnodbData),
            "{name}"
        );
    }
    drop(session);
    running.stop(SERVER_DEADLINE).unwrap();
    // Stopped, and nobody says where to look.
    let stopped = discover_stopped(&scratch.join("source"), &BTreeMap::new()).unwrap();
    for name in names {
        assert_eq!(
            class_of(&stopped, name),
            Some(FileClass::InnodbData),
            "{name}"
        );
    }
}

#[test]
fn a_myisam_file_behind_a_link_keeps_its_name() {
    let server = mysql_5_7_22();
    let scratch = Scratch::new();
    let running = server.start(&scratch.join("source"), &["--symbolic-links=1"]);
    let mut session = running.session().unwrap();
    let far = scratch.join("far");
    make_server_dir(&far);
    run_all(
        &mut session,
        &[
            "CREATE DATABASE shop",
            &format!(
                "CREATE TABLE shop.log (id INT) ENGINE=MyISAM DATA DIRECTORY='{}'",
                far.display()
            ),
        ],
    );
    let files = files_of(&running);
    let found = files
        .files
        .iter()
        .find(|file| file.name == "data/shop/log.MYD")
        .unwrap();
    assert_eq!(
        found.path,
        std::fs::canonicalize(far.join("log.MYD")).unwrap()
    );
}

#[test]
fn a_server_whose_data_directory_is_another_here_is_refused() {
    for server in draw("servers elsewhere", &servers(), 1) {
        let scratch = Scratch::new();
        let data = scratch.join("source");
        let running = server.start(&data, &[]);
        files_of(&running);
        // To this host it looks like a server elsewhere: it works in a directory that is not the
        // one of that name here.
        let moved = scratch.join("moved");
        std::fs::rename(&data, &moved).unwrap();
        let error = try_files_of(&running).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("not on this host"), "{error}");
        assert!(!error.hints().is_empty());
        copy_tree(&moved, &data);
        let error = try_files_of(&running).unwrap_err();
        assert!(error.to_string().contains("not on this host"), "{error}");
        drop(running);
    }
}

#[test]
fn a_stopped_directory_with_a_server_on_it_is_refused() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let running = server.start(&scratch.join("source"), &[]);
    let error = discover_stopped(&scratch.join("source"), &BTreeMap::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(
        error.to_string().contains(&running.pid().to_string()),
        "{error}"
    );
}

#[test]
fn a_lost_tablespace_is_refused_by_name() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let tables = scratch.join("tables");
    make_server_dir(&tables);
    let running = server.start(&scratch.join("source"), &[]);
    let mut session = running.session().unwrap();
    run_all(
        &mut session,
        &[
            "CREATE DATABASE shop",
            &format!(
                "CREATE TABLE shop.t (id INT PRIMARY KEY) ENGINE=InnoDB DATA DIRECTORY='{}'",
                tables.display()
            ),
        ],
    );
    std::fs::remove_file(tables.join("shop/t.ibd")).unwrap();
    let error = try_files_of(&running).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("shop/t.ibd"), "{error}");
}

#[test]
fn key_files_are_found_and_named() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let keys = scratch.join("keys.txt");
    std::fs::write(&keys, format!("1;{}\n", "0123456789abcdef".repeat(2))).unwrap();
    let named = format!("--file-key-management-filename={}", keys.display());
    let data = scratch.join("source");
    let running = server.start(&data, &["--plugin-load-add=file_key_management", &named]);
    let files = files_of(&running);
    assert_eq!(files.keyring, ["keyring/keys.txt"]);
    assert_eq!(
        class_of(&files, "keyring/keys.txt"),
        Some(FileClass::ServerState)
    );
    assert!(files.settings["plugins"].contains("file_key_management=file_key_management.so"));
}

#[test]
fn links_of_the_servers_user_to_what_others_own_are_refused() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let running = server.start(&scratch.join("source"), &[]);
    let mut session = running.session().unwrap();
    run_all(&mut session, &["CREATE DATABASE hollow"]);
    let secret = scratch.join("secret");
    std::fs::write(&secret, "root's").unwrap();
    let link = scratch.join("source/hollow/t.MYD");
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    let user = account().unwrap().uid;
    std::os::unix::fs::lchown(&link, Some(user), None).unwrap();
    let abilities = Abilities::probe(&mut session).unwrap();
    let error = discover(&mut session, &abilities).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("does not belong to"), "{error}");
    // Root's own link is meant.
    std::os::unix::fs::lchown(&link, Some(0), None).unwrap();
    let files = discover(&mut session, &abilities).unwrap();
    assert!(files.files.iter().any(|file| file.path == secret));
}

/// An `.isl` file is a link too.
#[test]
fn tablespaces_of_others_that_the_servers_user_names_are_refused() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let running = server.start(&scratch.join("source"), &[]);
    let mut session = running.session().unwrap();
    run_all(&mut session, &["CREATE DATABASE hollow"]);
    let secret = scratch.join("secret");
    std::fs::write(&secret, "root's").unwrap();
    let link = scratch.join("source/hollow/t.isl");
    std::fs::write(&link, secret.display().to_string()).unwrap();
    let user = account().unwrap().uid;
    std::os::unix::fs::lchown(&link, Some(user), None).unwrap();
    let abilities = Abilities::probe(&mut session).unwrap();
    let error = discover(&mut session, &abilities).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("does not belong to"), "{error}");
    // What it says is not followed either where it is a link itself.
    std::fs::write(scratch.join("named"), "/of/root's").unwrap();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(scratch.join("named"), &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(user), None).unwrap();
    let error = discover(&mut session, &abilities).unwrap_err().chain();
    assert!(!error.contains("/of/root's"), "{error}");
}
