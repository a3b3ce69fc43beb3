//! Damaged pages for `evenkeel check`: a table that has several leaves of two indexes, and bits that
//! flip.

use crate::Site;
use crate::program::{Ended, Evenkeel, run};
use evenkeel_innodb::doublewrite::DoublewriteCopies;
use evenkeel_innodb::{PageSize, Probe, SpaceFormat};
use evenkeel_server::connect::Session;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Bytes of a page of the servers here.
pub const PAGE: u64 = 16 << 10;
/// The table's file, as `check` calls it.
pub const VICTIM: &str = "data/bank/victim.ibd";
/// How many rows it has.
pub const ROWS: u32 = 2048;

/// Makes the table, and brings all of its pages to disk.
pub fn make_victim(site: &Site) {
    let mut session = site.running().session().expect("a session");
    for sql in [
        "CREATE TABLE bank.victim (id INT PRIMARY KEY, name VARCHAR(200), KEY by_name (name))",
        "INSERT INTO bank.victim VALUES (1, REPEAT('a', 150))",
    ] {
        session.run(sql).expect("a table");
    }
    for _ in 0..ROWS.ilog2() {
        let doubled = "INSERT INTO bank.victim SELECT id + (SELECT MAX(id) FROM bank.victim v), \
                       CONCAT(id, name) FROM bank.victim w";
        session.run(doubled).expect("rows");
    }
    flush(site);
}

/// Brings all pages of the table to disk.
pub fn flush(site: &Site) {
    let mut session = site.running().session().expect("a session");
    for sql in ["FLUSH TABLES bank.victim FOR EXPORT", "UNLOCK TABLES"] {
        session.run(sql).expect("a flush");
    }
}

/// Makes the table with other rows, and leaves copies of its pages in the doublewrite buffer, as long as
/// the session holds what it locks.
pub fn make_copied(session: &mut Session) {
    for sql in [
        "CREATE TABLE bank.victim (id INT PRIMARY KEY, name VARCHAR(200))",
        "INSERT INTO bank.victim VALUES (1, REPEAT('a', 150))",
    ] {
        session.run(sql).expect("a table");
    }
    for _ in 0..8 {
        let doubled = "INSERT INTO bank.victim SELECT id + (SELECT MAX(id) FROM bank.victim v), \
                       name FROM bank.victim w";
        session.run(doubled).expect("rows");
    }
    // Writes its pages. MariaDB makes no copies of new ones, so they are written twice; then
    // they are the last ones in the doublewrite buffer.
    for sql in [
        "FLUSH TABLES bank.victim FOR EXPORT",
        "UNLOCK TABLES",
        "UPDATE bank.victim SET name = REPEAT('b', 150)",
        "FLUSH TABLES bank.victim FOR EXPORT",
    ] {
        session.run(sql).expect("a flush");
    }
}

/// Returns the files that have copies of pages for a server that recovers: its doublewrite files, where
/// it has some.
#[must_use]
pub fn doublewrite_files(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data).expect("a data directory").flatten();
    let files = entries.map(|entry| entry.path());
    files
        .filter(|path| path.extension().is_some_and(|end| end == "dblwr"))
        .collect()
}

/// Returns a leaf of a tablespace file of which there is a good copy; not one of the first pages, which a
/// server looks at before it recovers.
#[must_use]
pub fn page_with_a_copy(data: &Path, table: &Path) -> u32 {
    let open = |path: &Path| File::open(path).expect("a file");
    let system = open(&data.join("ibdata1"));
    let mut copies = DoublewriteCopies::read(&system, PageSize::DEFAULT).expect("copies");
    for path in doublewrite_files(data) {
        copies.add_file(&open(&path)).expect("copies");
    }
    let Probe::Checkable(format) = SpaceFormat::of_file(&open(table)).expect("a first page") else {
        panic!("{} cannot be checked", table.display());
    };
    let pages = copies.pages().filter(|(space, page)| {
        *space == format.space_id && *page > 4 && copies.good_copy(&format, *page).is_some()
    });
    let first = pages.map(|(_, page)| page).min();
    first.expect("a page that was just written")
}

/// Returns the number of a leaf of the index that holds the rows, or of the other one. Not the last
/// one, which may be nearly empty, and not a root.
#[must_use]
pub fn leaf(path: &Path, secondary: bool) -> u64 {
    let bytes = fs::read(path).expect("the table's file");
    let number = |at: usize, n: usize| {
        let bytes = bytes[at..at + n].iter();
        bytes.fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let pages = (0..bytes.len()).step_by(PAGE as usize);
    // Page type INDEX, level 0; the index's number follows.
    let leaves = pages.filter(|at| number(at + 24, 2) == 17855 && number(at + 64, 2) == 0);
    let leaves: Vec<(u64, u64)> = leaves
        .map(|at| (number(at + 66, 8), at as u64 / PAGE))
        .collect();
    let indexes = leaves.iter().map(|leaf| leaf.0);
    let wanted = if secondary {
        indexes.max()
    } else {
        indexes.min()
    };
    let found = leaves.iter().find(|leaf| Some(leaf.0) == wanted);
    found.expect("a leaf").1
}

/// Flips a bit in the middle of a page.
pub fn damage(path: &Path, page: u64) {
    let file = File::options().read(true).write(true).open(path);
    let file = file.expect("the table's file");
    let mut byte = [0];
    let at = page * PAGE + 8000;
    file.read_exact_at(&mut byte, at).expect("a byte");
    byte[0] ^= 0x10;
    file.write_all_at(&byte, at).expect("a byte");
    file.sync_all().expect("a sync");
}

/// Shuts the site's server down.
pub fn stop(site: &mut Site) {
    let running = site.running.take().expect("the server runs");
    running.stop(Duration::from_secs(120)).expect("a shutdown");
}

/// Where the table's file is.
#[must_use]
pub fn victim(site: &Site) -> PathBuf {
    site.fs.join("data/bank/victim.ibd")
}

/// Plans a check of the site's server while it runs.
#[must_use]
pub fn check_live(evenkeel: &Evenkeel, site: &Site) -> Command {
    let mut command = evenkeel.command(&["check", "--no-defaults", "-u", "root", "-S"]);
    command.arg(site.running().socket());
    command
}

/// Checks the site's stopped server.
#[must_use]
pub fn check_stopped(evenkeel: &Evenkeel, site: &Site, flags: &[&str]) -> Ended {
    let mut command = evenkeel.command(&["check", "--no-defaults", "--datadir"]);
    command.arg(site.fs.join("data")).args(flags);
    run(command)
}

/// The same with the site's repository to heal from.
#[must_use]
pub fn heal(evenkeel: &Evenkeel, site: &Site, flags: &[&str]) -> Ended {
    let repository = site.repository().display().to_string();
    let flags = [&["--heal-from", &repository], flags].concat();
    check_stopped(evenkeel, site, &flags)
}

/// Starts the server again and makes sure that the table is sound and whole.
pub fn assert_table_is_whole(site: &mut Site) {
    site.running = Some(site.server.run(&site.launch));
    let mut session = site.running().session().expect("a session");
    let checked = session.one("CHECK TABLE bank.victim EXTENDED");
    let checked = checked.expect("a check").expect("a row");
    assert_eq!(checked.at(3), Some("OK"), "{checked:?}");
    for index in ["PRIMARY", "by_name"] {
        let sql = format!(
            "SELECT COUNT(*), SUM(LENGTH(name) > 0) FROM bank.victim FORCE INDEX ({index})"
        );
        let row = session.one(&sql).expect("rows").expect("a row");
        assert_eq!(row.at(0), Some(ROWS.to_string().as_str()), "{index}");
    }
}
