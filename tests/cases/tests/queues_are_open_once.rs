//! After a crash within ALTER TABLE: is the queue that goes on open once, so that the next stop of the server loses nothing of it?

use evenkeel_cases::queues::verbs::{Queues, numbers};
use evenkeel_cases::queues::{Host, QueueSite};
use evenkeel_queue::{Copied, Options, Store, io::Disk};
use evenkeel_testkit::servers::SERVER_DEADLINE;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::sync::Arc;

/// How MariaDB calls a copy that ALTER TABLE makes.
const COPY: &str = "#sql-alter-1-1";

#[test]
fn on_mariadb_10_11() {
    what_continues_is_open_once(Host::MariaDb10);
}

#[test]
fn on_mariadb_11_8() {
    what_continues_is_open_once(Host::MariaDb11);
}

#[test]
fn on_mysql_9() {
    what_continues_is_open_once(Host::MySql9);
}

fn what_continues_is_open_once(host: Host) {
    let site = QueueSite::start_on(host, &[]);
    let mut session = site.open("cut");
    site.create(&mut session, "t", "id INT NOT NULL").unwrap();
    session.run("INSERT INTO t VALUES (1), (2), (3)").unwrap();
    drop(session);
    let datadir = site.launch.datadir.clone();
    let site = site.again(|running| {
        running.stop(SERVER_DEADLINE).unwrap();
        match host {
            Host::MySql9 => crash_of_mysql(&datadir),
            Host::MariaDb10 | Host::MariaDb11 => crash_of_mariadb(&datadir),
        }
        let owner = fs::metadata(&datadir).unwrap();
        for part in ["cut", "#sqlqueue"] {
            give(&datadir.join(part), (owner.uid(), owner.gid()));
        }
    });
    let mut session = site.open("cut");
    if host != Host::MySql9 {
        // So it goes on by itself.
        for sql in [
            "DROP TABLE t".to_owned(),
            format!("RENAME TABLE `#mysql50#{COPY}` TO t"),
        ] {
            session.run(&sql).unwrap();
        }
    }
    assert_eq!(numbers(&mut session, "SELECT id FROM t"), [1, 2, 3]);
    assert_eq!(site.wait(&mut session, &["t"], 0.0), Ok(Some(1)));
    assert_eq!(site.end(&mut session), Ok(1));
    session.run("INSERT INTO t VALUES (4), (5)").unwrap();
    drop(session);
    let site = site.again(|running| running.stop(SERVER_DEADLINE).unwrap());
    let mut session = site.open("cut");
    assert_eq!(numbers(&mut session, "SELECT id FROM t"), [2, 3, 4, 5]);
}

/// The dictionary has the copy under the table's name, and the engine has not settled that yet.
fn crash_of_mysql(datadir: &Path) {
    let (t, old) = (datadir.join("cut/t.QUE"), datadir.join("cut/#sql2-1-1.QUE"));
    let store = Store::new(Arc::new(Disk), &datadir.join("#sqlqueue")).unwrap();
    store.rename(&t, &old).unwrap();
    let before = store.anchor(&old).unwrap();
    store
        .set_layout(&old, &with(&before.layout, "drop:0"))
        .unwrap();
    let head = format!("{:032x} make:0", before.id);
    copy(&store, &old, &t, &with(&before.layout, &head));
}

/// The table is copied, and its name is not changed yet.
fn crash_of_mariadb(datadir: &Path) {
    let at = |name: String| datadir.join("cut").join(name);
    let (t, new) = (at("t.QUE".into()), at(format!("{COPY}.QUE")));
    let store = Store::new(Arc::new(Disk), &datadir.join("#sqlqueue")).unwrap();
    let before = store.anchor(&t).unwrap();
    let head = format!("{:032x}", before.id);
    copy(&store, &t, &new, &with(&before.layout, &head));
    fs::copy(at("t.frm".into()), at(format!("{COPY}.frm"))).unwrap();
}

/// A layout with more words in its head.
fn with(layout: &[u8], words: &str) -> Vec<u8> {
    let end = layout.iter().position(|byte| *byte == 0).unwrap();
    [&layout[..end], b" ", words.as_bytes(), &layout[end..]].concat()
}

fn copy(store: &Store, from: &Path, to: &Path, layout: &[u8]) {
    store.create(to, layout).unwrap();
    let open = |anchor| store.open(anchor, Options::default()).unwrap().0;
    let (old, new) = (open(from), open(to));
    let mut rows = Vec::new();
    let mut next = 0;
    while let Some(id) = old.next_row(next) {
        let bytes = old.read(id).unwrap().unwrap();
        let came = old.came(id);
        rows.push(Copied { id, came, bytes });
        next = id + 1;
    }
    new.adopt(rows).unwrap();
    new.sync().unwrap();
}

/// Files are the server's, as all of its own.
fn give(path: &Path, owner: (u32, u32)) {
    chown(path, Some(owner.0), Some(owner.1)).unwrap();
    for entry in fs::read_dir(path).into_iter().flatten() {
        give(&entry.unwrap().path(), owner);
    }
}
