//! Do private servers start, say why when they do not, and never outlive whoever started them?

use evenkeel_op::{Cancel, ErrorKind};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::{Binary, Install, Launch};
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::servers::{SERVER_DEADLINE, make_server_dir, mariadb_10_11, mysql_5_7_22};
use evenkeel_testkit::{Scratch, servers, until};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn is_there(pid: i32) -> bool {
    // A zombie has ended; whoever is its parent now has not looked yet.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next());
    !matches!(state, None | Some("Z" | "X"))
}

#[test]
fn every_server_initialises_starts_stops_and_starts_again() {
    for server in servers() {
        let scratch = Scratch::new();
        let data = scratch.join("data");
        let launch = Launch::new(server.binary.clone(), &data).arg("--innodb-page-size=8k");
        launch.initialise(SERVER_DEADLINE, &Cancel::new()).unwrap();
        let running = launch.start(SERVER_DEADLINE, &Cancel::new()).unwrap();
        let mut session = running.session().unwrap();
        assert_eq!(
            session.variable("innodb_page_size").unwrap().as_deref(),
            Some("8192")
        );
        assert_eq!(
            session.variable("skip_networking").unwrap().as_deref(),
            Some("ON")
        );
        assert_eq!(running.port(), None);
        let (pid, run_dir) = (running.pid(), running.socket().parent().unwrap().to_owned());
        assert!(run_dir.exists() && !running.log_tail(5).is_empty());
        running.stop(SERVER_DEADLINE).unwrap();
        assert!(!is_there(pid) && !run_dir.exists());

        let running = launch
            .with_networking()
            .start(SERVER_DEADLINE, &Cancel::new())
            .unwrap();
        let options = ConnectOptions::over_tcp("127.0.0.1", running.port().unwrap(), "root");
        // 5.7's own certificate cannot be spoken with; on the loopback it does not matter.
        let options = ConnectOptions {
            ssl_mode: evenkeel_server::options::SslMode::Disabled,
            ..options
        };
        Session::open(&options).unwrap();
        let pid = running.pid();
        running.kill();
        assert!(!is_there(pid));
    }
}

#[test]
fn a_server_that_does_not_start_says_why() {
    for server in servers() {
        let scratch = Scratch::new();
        let launch = server
            .prepare(&scratch.join("data"), &[])
            .arg("--no-such-option=1");
        let error = launch.start(SERVER_DEADLINE, &Cancel::new()).unwrap_err();
        assert!(
            error.to_string().contains("no-such-option"),
            "{}: {error}",
            server.name
        );
    }
}

#[test]
fn a_deadline_and_a_cancellation_end_the_wait_and_the_server() {
    let server = mysql_5_7_22();
    let scratch = Scratch::new();
    let launch = server.prepare(&scratch.join("data"), &[]);
    let error = launch.start(Duration::ZERO, &Cancel::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    let cancel = Cancel::new();
    cancel.cancel(15);
    let error = launch.start(SERVER_DEADLINE, &cancel).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Terminated);
    // Had one of them survived, this one could not lock the files.
    drop(server.run(&launch));
}

#[test]
fn a_directory_with_files_in_it_is_not_initialised() {
    for server in servers() {
        let scratch = Scratch::new();
        std::fs::write(scratch.join("precious"), "x").unwrap();
        let launch = Launch::new(server.binary, scratch.path());
        let error = launch
            .initialise(SERVER_DEADLINE, &Cancel::new())
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_mariadb_without_its_script_says_what_to_install() {
    let scratch = Scratch::new();
    let binary = Binary {
        install: Install::Script(None),
        ..mariadb_10_11().binary
    };
    let launch = Launch::new(binary, scratch.join("data"));
    let error = launch
        .initialise(SERVER_DEADLINE, &Cancel::new())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.hints()[0].contains("mariadb-install-db"));
}

#[test]
fn a_stopped_process_is_killed_when_it_does_not_shut_down() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let running = server.start(&scratch.join("data"), &[]);
    let pid = running.pid();
    let stopped = Command::new("kill")
        .args(["-STOP", &pid.to_string()])
        .status()
        .unwrap();
    assert!(stopped.success());
    let error = running.stop(Duration::from_millis(100)).unwrap_err();
    assert!(error.to_string().contains("was killed"), "{error}");
    assert!(!is_there(pid));
}

/// This test runs itself a second time as a process that starts a server and waits to be killed.
#[test]
fn a_killed_parent_leaves_no_server() {
    const CHILD: &str = "EVENKEEL_TEST_CHILD";
    let server = mariadb_10_11();
    if let Some(dir) = std::env::var_os(CHILD) {
        let dir = Path::new(&dir);
        // Started from a thread that ends: the server must not end with it.
        let launch = server.prepare(&dir.join("data"), &[]);
        let running = std::thread::spawn(move || server.run(&launch))
            .join()
            .unwrap();
        // Time to die in, if it were to; nothing waits for this to be long enough.
        std::thread::sleep(Duration::from_millis(100));
        running.session().unwrap();
        std::fs::write(dir.join("new"), running.pid().to_string()).unwrap();
        std::fs::rename(dir.join("new"), dir.join("pid")).unwrap();
        std::thread::sleep(SERVER_DEADLINE);
        return;
    }
    let scratch = Scratch::new();
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_parent_leaves_no_server", "--nocapture"])
        .env(CHILD, scratch.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    until("the server runs", || {
        scratch.join("pid").exists() || parent.try_wait().unwrap().is_some()
    });
    let pid: i32 = std::fs::read_to_string(scratch.join("pid"))
        .unwrap()
        .parse()
        .unwrap();
    assert!(is_there(pid));
    parent.kill().unwrap();
    parent.wait().unwrap();
    until("the server is gone", || !is_there(pid));
}

/// What is in the data directory of a sealed server may name libraries, files and places to listen.
#[test]
fn sealed_servers_load_and_write_what_they_are_reported_here() {
    for server in servers() {
        let name = server.name;
        let scratch = Scratch::new();
        let mut launch = server.prepare(&scratch.join("data"), &[]);
        let open = scratch.join("open");
        make_server_dir(&open);
        let running = server.run(&launch);
        let mut session = running.session().unwrap();
        let plugins = session.variable("plugin_dir").unwrap().unwrap();
        // MySQL's packages for tests have no plugins: that none is looked for has to do there.
        let library = "metadata_lock_info.so";
        let is_there = Path::new(&plugins).join(library).exists();
        assert_eq!(is_there, server.id == "mariadb-10.11");
        session
            .run(&format!(
                "INSERT INTO mysql.plugin VALUES ('metadata_lock_info', '{library}')"
            ))
            .unwrap();
        session
            .run("INSERT INTO mysql.func VALUES ('f', 2, 'no_such_library.so', 'function')")
            .unwrap();
        if server.id == "mysql-8.0.15" {
            let log = open.join("log");
            for sql in [
                &*format!("SET PERSIST general_log_file = '{}'", log.display()),
                "SET PERSIST general_log = ON",
                "INSERT INTO mysql.component VALUES (1, 1, 'file://component_validate_password')",
            ] {
                session.run(sql).unwrap();
            }
        }
        drop(session);
        running.stop(SERVER_DEADLINE).unwrap();
        std::fs::remove_dir_all(&open).unwrap();
        make_server_dir(&open);
        launch.is_sealed = true;
        let running = server.run(&launch);
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", running.pid())).unwrap();
        assert!(
            maps.contains(&*server.binary.path.to_string_lossy()),
            "{maps}"
        );
        assert!(!maps.contains(library), "{name} loaded {library}");
        assert_eq!(listening(running.pid()), 0, "{name}");
        let mut session = running.session().unwrap();
        let local = session.variable("local_infile").unwrap();
        assert_eq!(local.as_deref(), Some("OFF"), "{name}");
        let written: Vec<_> = std::fs::read_dir(&open).unwrap().collect();
        assert!(written.is_empty(), "{name}: {written:?}");
        let install = format!("INSTALL PLUGIN metadata_lock_info SONAME '{library}'");
        assert!(session.run(&install).is_err(), "{name}");
        let dir = session.variable("plugin_dir").unwrap().unwrap();
        let found: Vec<_> = std::fs::read_dir(dir).unwrap().collect();
        assert!(found.is_empty(), "{name}: {found:?}");
        drop(session);
        running.stop(SERVER_DEADLINE).unwrap();
    }
}

/// How many TCP sockets of a process listen.
fn listening(pid: i32) -> usize {
    let sockets: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|fd| std::fs::read_link(fd.unwrap().path()).ok())
        .filter_map(|to| {
            Some(
                to.to_str()?
                    .strip_prefix("socket:[")?
                    .trim_end_matches(']')
                    .to_owned(),
            )
        })
        .collect();
    let tables = ["tcp", "tcp6"].map(|table| {
        std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default()
    });
    let rows = tables.iter().flat_map(|table| table.lines());
    // 0A: it listens. The tenth field is the socket's inode.
    rows.filter(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        fields.get(3) == Some(&"0A")
            && fields
                .get(9)
                .is_some_and(|inode| sockets.iter().any(|one| one == inode))
    })
    .count()
}
