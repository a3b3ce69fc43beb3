//! Is a restore to a time whole where a session, or the server's clock, says that it is another time?

use evenkeel_cases::Site;
use evenkeel_cases::points::{archive, make_table, restore_to, restore_to_command, rows_of};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_server::connect::Session;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer, until};
use std::fs;
use std::path::PathBuf;

/// In 2037.
const FUTURE: u32 = 2_114_380_800;

/// Waits for the server's next second.
fn next_second(session: &mut Session) {
    let mut now = || session.value("SELECT UNIX_TIMESTAMP()").unwrap();
    let before = now();
    until("the next second came", || now() != before);
}

struct Case {
    site: Site,
    evenkeel: Evenkeel,
    /// A second behind all of it, as `--to` takes it.
    behind: String,
    target: PathBuf,
}

/// Rows 1, 2 (in the future), 3 and 4, in a log of this format.
fn case(server: TestServer, format: &str) -> Case {
    let mut site = Site::start(server, LoopFs::xfs(3 << 30), 20, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    let add = |session: &mut Session, id: u32| {
        session
            .run(&format!("INSERT INTO points.n VALUES ({id})"))
            .unwrap();
    };
    session
        .run(&format!("SET binlog_format = '{format}'"))
        .unwrap();
    // Logs have whole seconds: this one is behind the backup's.
    next_second(&mut session);
    add(&mut session, 1);
    session.run(&format!("SET timestamp = {FUTURE}")).unwrap();
    add(&mut session, 2);
    session.run("SET timestamp = DEFAULT").unwrap();
    add(&mut session, 3);
    add(&mut session, 4);
    next_second(&mut session);
    let behind = session
        .value("SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%dT%H:%i:%sZ')")
        .unwrap()
        .unwrap();
    add(&mut session, 5);
    drop(session);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    site.kill();
    Case {
        target: site.fs.join("restored"),
        site,
        evenkeel,
        behind,
    }
}

impl Case {
    fn restore(&self, to: &str) -> Ended {
        restore_to(&self.evenkeel, &self.site, &self.target, to)
    }

    fn rows(&self) -> String {
        let rows = rows_of(&self.site, &self.target);
        fs::remove_dir_all(&self.target).unwrap();
        rows
    }
}

/// Where the log tells when a transaction was committed, the session's time is nothing.
fn reported(server: TestServer, format: &str) {
    let case = case(server, format);
    let ended = case.restore(&case.behind);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(case.rows(), "1,2,3,4", "{ended:?}");
}

#[test]
fn rows_on_mysql() {
    let servers = [mysql_8_0_15(), mysql_9(), mysql_5_7_22()];
    for server in draw("servers of MySQL", &servers, 1) {
        reported(server, "ROW");
    }
}

#[test]
fn statements_on_mariadb_10_11() {
    reported(mariadb_10_11(), "STATEMENT");
}

/// Where it does not, both places are named, and one is taken when somebody says which.
fn asked(server: TestServer) {
    let case = case(server, "ROW");
    let ended = case.restore(&case.behind);
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert!(!case.target.exists());
    let hint = |word: &str| {
        let hints = ended.answer["hints"].as_array().unwrap();
        let texts = hints.iter().map(|hint| hint.as_str().unwrap());
        let mut found = texts.filter_map(|text| Some(text.split_once("--to ")?.1));
        let found = found.find(|to| to.starts_with(word));
        found
            .unwrap_or_else(|| panic!("{word}: {ended:?}"))
            .to_owned()
    };
    for (to, rows) in [(hint("before:"), "1"), (hint("gtid:"), "1,2,3,4")] {
        let ended = case.restore(&to);
        assert_eq!(ended.code, Some(0), "{to}: {ended:?}");
        assert_eq!(case.rows(), rows, "{to}");
    }
    for (which, rows) in [("first", "1"), ("last", "1,2,3,4")] {
        let mut command =
            restore_to_command(&case.evenkeel, &case.site, &case.target, &case.behind);
        command.args(["--times-go-back", which]);
        let ended = run(command);
        assert_eq!(ended.code, Some(3), "{which}: {ended:?}");
        let two = &ended.answer["point"]["two_places"];
        assert_eq!(two["taken"], which, "{ended:?}");
        assert_eq!(two["earlier"], 2, "{ended:?}");
        assert_eq!(case.rows(), rows, "{which}");
    }
}

#[test]
fn rows_on_mariadb() {
    for server in draw("servers of MariaDB", &[mariadb_10_11(), mariadb_11_8()], 1) {
        asked(server);
    }
}
