//! Does a damaged page of a real server get its table's and index's name, and does the statement
//! given for it repair the table?

use evenkeel_innodb::names::{self, IndexRow, Names, PageName, TableName};
use evenkeel_innodb::{PageHeader, Probe, SpaceFormat, verify};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A server reads pages that it last had in memory when it starts; MySQL 5.7 dies of a damaged one.
const CALM: &[&str] = &["--innodb-buffer-pool-load-at-startup=OFF"];

#[test]
fn mariadb() {
    damage_is_named_and_repaired(&mariadb_10_11(), names::query(false), true);
}

#[test]
fn mysql_8_0() {
    damage_is_named_and_repaired(&mysql_8_0_15(), names::query(true), false);
}

#[test]
fn mysql_5_7() {
    damage_is_named_and_repaired(&mysql_5_7_22(), names::query(false), true);
}

fn damage_is_named_and_repaired(server: &TestServer, query: &str, knows_partitions: bool) {
    let scratch = Scratch::new();
    let datadir = scratch.join("data");
    let running = server.start(&datadir, CALM);
    let mut session = running.session().unwrap();
    fill(&mut session);
    let reported: Vec<IndexRow> = session.rows(query).unwrap().iter().map(index_row).collect();
    let names = Names::new(reported.clone());
    drop(session);
    running.stop(SERVER_DEADLINE).unwrap();

    let file = "data/k@002d1@0020@0p/or@0023der@002e@65e5.ibd";
    let path = datadir.join(file.strip_prefix("data/").unwrap());
    dictionaries_agree(server, &datadir, &path, &reported);
    let seen = pages(&names, file, &path);
    let indexes: BTreeSet<&str> = seen
        .iter()
        .filter_map(|(_, n)| n.index.as_deref())
        .collect();
    assert_eq!(
        indexes.into_iter().collect::<Vec<_>>(),
        ["PRIMARY", "by v", "by_a"]
    );

    let partition = "data/k@002d1@0020@0p/parts#P#p@002d0#SP#p@002d0sp1.ibd";
    let seen = pages(&names, partition, &datadir.join(&partition[5..]));
    let name = seen.iter().find(|(_, name)| name.page_type.is_index());
    let (_, name) = name.unwrap();
    let text = name.to_string();
    let table = "k-1 é.parts partition p-0 subpartition p-0sp1, ";
    assert!(text.starts_with(table), "{text}");
    assert_eq!(name.secondary.is_some(), knows_partitions, "{text}");

    let repair = damage_a_leaf(&names, file, &path);
    assert_eq!(repair, "ALTER TABLE `k-1 é`.`or#der.日` FORCE");
    let running = server.run(&server.plan(&datadir, CALM));
    let mut session = running.session().unwrap();
    session.run(&repair).unwrap();
    let row = session
        .one("CHECK TABLE `k-1 é`.`or#der.日`")
        .unwrap()
        .unwrap();
    assert_eq!(row.at(3), Some("OK"));
    drop(session);
    running.stop(SERVER_DEADLINE).unwrap();
    let bytes = fs::read(&path).unwrap();
    let Probe::Checkable(format) = SpaceFormat::parse(&bytes) else {
        panic!("not checkable");
    };
    let bad = bytes
        .chunks_exact(format.physical_size())
        .zip(0..)
        .filter(|(page, no)| verify(page, *no, &format).is_corrupt());
    assert_eq!(bad.count(), 0);
}

/// What the files say without a server is what the server says.
fn dictionaries_agree(server: &TestServer, datadir: &Path, table: &Path, reported: &[IndexRow]) {
    let is_mysql_8 = server.name.starts_with("MySQL 8");
    let read: Vec<IndexRow> = match is_mysql_8 {
        false => {
            let page = sound_pages(&datadir.join("ibdata1"));
            names::system::read(page)
        }
        true => {
            let page = sound_pages(table);
            names::sdi::of_space(page)
        }
    };
    let of_table = |rows: &[IndexRow]| -> BTreeSet<(u32, u64, String, bool)> {
        let is_it = |row: &&IndexRow| {
            let name = TableName::of_dictionary(&row.table);
            (&*name.schema, &*name.table) == ("k-1 é", "or#der.日")
        };
        let key = |row: &IndexRow| {
            let clustered = row.index_type & 1 != 0;
            (row.space_id, row.index_id, row.index.clone(), clustered)
        };
        rows.iter().filter(is_it).map(key).collect()
    };
    assert_eq!(of_table(&read), of_table(reported), "{}", server.name);
    assert_eq!(of_table(&read).len(), 3, "{}: {read:?}", server.name);
    if !is_mysql_8 {
        assert!(read.len() >= reported.len(), "{}", server.name);
    }
}

/// Gives sound pages of a file.
fn sound_pages(path: &Path) -> impl Fn(u32) -> Option<Vec<u8>> + use<> {
    let bytes = fs::read(path).unwrap();
    let Probe::Checkable(format) = SpaceFormat::parse(&bytes) else {
        panic!("{}", path.display());
    };
    move |no| {
        let size = format.physical_size();
        let page = bytes.get(no as usize * size..)?.get(..size)?;
        (verify(page, no, &format) == evenkeel_innodb::Verdict::Good).then(|| page.to_vec())
    }
}

fn fill(session: &mut Session) {
    let mut run = |sql: &str| session.run(sql).unwrap();
    run("CREATE DATABASE `k-1 é`");
    run(
        "CREATE TABLE `k-1 é`.`or#der.日` (id INT PRIMARY KEY AUTO_INCREMENT, a INT, \
         v VARCHAR(200), KEY by_a (a), UNIQUE KEY `by v` (v, id)) ENGINE=InnoDB",
    );
    run("INSERT INTO `k-1 é`.`or#der.日` (a, v) VALUES (1, 'x'), (2, REPEAT('y', 200))");
    for _ in 0..11 {
        run("INSERT INTO `k-1 é`.`or#der.日` (a, v) SELECT a, v FROM `k-1 é`.`or#der.日`");
    }
    run(
        "CREATE TABLE `k-1 é`.parts (id INT, KEY (id)) ENGINE=InnoDB PARTITION BY RANGE (id) \
         SUBPARTITION BY HASH (id) SUBPARTITIONS 2 \
         (PARTITION `p-0` VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)",
    );
}

fn index_row(row: &evenkeel_server::connect::Row) -> IndexRow {
    let number = |name| row.get(name).unwrap().parse::<u64>().unwrap();
    IndexRow {
        space_id: number("space_id") as u32,
        index_id: number("index_id"),
        table: row.get("table_name").unwrap().to_owned(),
        index: row.get("index_name").unwrap().to_owned(),
        index_type: number("index_type") as u32,
    }
}

fn pages(names: &Names, file: &str, path: &Path) -> Vec<(PageHeader, PageName)> {
    let bytes = fs::read(path).unwrap();
    let Probe::Checkable(format) = SpaceFormat::parse(&bytes) else {
        panic!("{file}: not checkable");
    };
    bytes
        .chunks_exact(format.physical_size())
        .map(|page| PageHeader::read(page, &format).unwrap())
        .map(|header| (header, names.describe(file, format.space_id, &header)))
        .collect()
}

/// Damages a leaf of `by_a` and returns the statement that is to repair it.
fn damage_a_leaf(names: &Names, file: &str, path: &Path) -> String {
    let seen = pages(names, file, path);
    let leaf = seen.iter().rposition(|(header, name)| {
        name.index.as_deref() == Some("by_a") && (header.prev.is_some() || header.next.is_some())
    });
    let no = leaf.expect("by_a has several leaves");
    let mut bytes = fs::read(path).unwrap();
    let Probe::Checkable(format) = SpaceFormat::parse(&bytes) else {
        panic!("not checkable");
    };
    let size = format.physical_size();
    bytes[no * size + size / 2] ^= 0x10;
    let page = &bytes[no * size..][..size];
    assert!(verify(page, no as u32, &format).is_corrupt());
    let header = PageHeader::read(page, &format).unwrap();
    let name = names.describe(file, format.space_id, &header);
    assert_eq!(name.to_string(), "k-1 é.or#der.日, secondary index by_a");
    fs::write(path, &bytes).unwrap();
    name.rebuild_sql().unwrap()
}
