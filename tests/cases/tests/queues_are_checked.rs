//! Does CHECK TABLE read the rows of a queue, owned ones too, and say when one is not what was written?

use evenkeel_cases::queues::verbs::Queues;
use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_server::connect::Session;
use evenkeel_testkit::effort::draw;
use std::fs;
use std::path::Path;

/// Kinds and texts of what CHECK TABLE says.
fn check(session: &mut Session) -> Vec<(String, String)> {
    let rows = session.rows("CHECK TABLE jobs").unwrap();
    let cell = |row: &evenkeel_server::connect::Row, at| row.at(at).unwrap().to_owned();
    rows.iter()
        .map(|row| (cell(row, 2), cell(row, 3)))
        .collect()
}

fn pair(kind: &str, text: &str) -> (String, String) {
    (kind.to_owned(), text.to_owned())
}

/// Changes the row that has this text, in the file of rows.
fn damage(rows: &Path, text: &str) {
    for table in fs::read_dir(rows).unwrap() {
        for file in fs::read_dir(table.unwrap().path()).unwrap() {
            let file = file.unwrap().path();
            let mut bytes = fs::read(&file).unwrap();
            let found = bytes
                .windows(text.len())
                .position(|at| at == text.as_bytes());
            if let Some(at) = found {
                bytes[at] ^= 1;
                fs::write(&file, bytes).unwrap();
                return;
            }
        }
    }
    panic!("no file has {text}");
}

fn case(host: Host) {
    let site = QueueSite::start_on(host, &[]);
    let (mut session, mut owner) = (site.session(), site.session());
    for sql in [
        "CREATE TABLE jobs (id INT NOT NULL, what TEXT) ENGINE=QUEUE",
        "INSERT INTO jobs VALUES (1, 'the owned one'), (2, 'the free one')",
    ] {
        session.run(sql).unwrap();
    }
    assert_eq!(site.wait(&mut owner, &["jobs"], 0.0), Ok(Some(1)));
    assert_eq!(check(&mut session), [pair("status", "OK")]);
    damage(&site.rows(), "the owned one");
    let said = check(&mut session);
    assert_eq!(said.last(), Some(&pair("error", "Corrupt")), "{said:?}");
    let (_, why) = &said[0];
    assert!(
        why.contains("the checksum of a row does not match"),
        "{why}"
    );
    assert!(why.contains("evenkeel queue salvage"), "{why}");
}

#[test]
fn on_each_host() {
    let hosts = [Host::MariaDb10, Host::MySql9, Host::MariaDb11];
    for host in draw("hosts of queues", &hosts, 1) {
        case(host);
    }
}
