//! Are queues there whose files an earlier version had elsewhere: as it left them, as an upgrade of the server did, and
//! out of a backup of that time?

use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_cases::queues::QueueSite;
use evenkeel_cases::queues::verbs::{Queues, numbers};
use evenkeel_testkit::servers::SERVER_DEADLINE;
use std::fs;

#[test]
fn from_each_of_them() {
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut site = QueueSite::start(&[]);
    let mut session = site.open("shop");
    site.create(&mut session, "jobs", "id INT NOT NULL")
        .unwrap();
    session
        .run("INSERT INTO jobs VALUES (1), (2), (3)")
        .unwrap();
    drop(session);
    // A restored backup of that time has the first; an upgrade made the second of it.
    for old in ["#queue", "@0023queue"] {
        let (rows, place) = (site.rows(), site.launch.datadir.join(old));
        let datadir = site.launch.datadir.clone();
        site = site.again(|running| {
            running.stop(SERVER_DEADLINE).unwrap();
            fs::rename(&rows, &place).unwrap();
            if old == "@0023queue" {
                fs::write(place.join("db.opt"), "default-character-set=latin1\n").unwrap();
            }
            // Before the server has moved them the program finds them, too.
            let checked = run(program.command(&["queue", "check", datadir.to_str().unwrap()]));
            assert_eq!(checked.code, Some(0), "{checked:?}");
        });
        let mut session = site.open("shop");
        assert_eq!(
            numbers(&mut session, "SELECT id FROM jobs"),
            [1, 2, 3],
            "{old}"
        );
        assert!(!place.exists() && site.rows().exists(), "{old}");
        let databases = session.rows("SHOW DATABASES LIKE '%queue%'").unwrap();
        assert!(databases.is_empty(), "{old}");
    }
}
