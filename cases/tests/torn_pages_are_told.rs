//! Is a page that only its doublewrite copy saves stored, told, and whole again after recovery?

use evenkeel_cases::Site;
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_innodb::doublewrite::DoublewriteCopies;
use evenkeel_innodb::{PageSize, Probe, SpaceFormat};
use evenkeel_testkit::{LoopFs, servers};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PAGE: u64 = 16 << 10;

/// Returns a page of a tablespace file of which the system tablespace has a good copy; not the
/// first ones, which a server looks at before it recovers.
fn page_with_a_copy(data: &Path, table: &Path) -> u32 {
    let system = File::open(data.join("ibdata1")).unwrap();
    let copies = DoublewriteCopies::read(&system, PageSize::DEFAULT).unwrap();
    let Probe::Checkable(format) = SpaceFormat::of_file(&File::open(table).unwrap()).unwrap()
    else {
        panic!("{} cannot be checked", table.display());
    };
    let mut pages = copies
        .pages()
        .filter(|(space, page)| *space == format.space_id && *page > 3);
    let found = pages.find(|(_, page)| copies.good_copy(&format, *page).is_some());
    found.expect("a page that was just written").1
}

#[test]
fn of_every_server() {
    for server in servers() {
        let site = Site::start(server, LoopFs::xfs(4 << 30), 100, &[]);
        let told = site.server.name;
        let mut session = site.running().session().unwrap();
        for sql in [
            "CREATE TABLE bank.victim (id INT PRIMARY KEY, name VARCHAR(200))",
            "INSERT INTO bank.victim VALUES (1, REPEAT('a', 150))",
        ] {
            session.run(sql).unwrap();
        }
        for _ in 0..8 {
            let doubled = "INSERT INTO bank.victim SELECT id + (SELECT MAX(id) FROM bank.victim v), \
                           name FROM bank.victim w";
            session.run(doubled).unwrap();
        }
        // Writes its pages. MariaDB makes no copies of new ones, so they are written twice; then
        // they are the last ones in the doublewrite buffer.
        for sql in [
            "FLUSH TABLES bank.victim FOR EXPORT",
            "UNLOCK TABLES",
            "UPDATE bank.victim SET name = REPEAT('b', 150)",
            "FLUSH TABLES bank.victim FOR EXPORT",
        ] {
            session.run(sql).unwrap();
        }
        let (data, table) = (site.fs.join("data"), site.fs.join("data/bank/victim.ibd"));
        let page = page_with_a_copy(&data, &table);
        let file = File::options().write(true).open(&table).unwrap();
        file.write_all_at(&[0x55; 512], u64::from(page) * PAGE + 8192)
            .unwrap();
        session.run("UNLOCK TABLES").unwrap();

        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let ended = run(evenkeel.backup(&site, &[]));
        assert_eq!(ended.code, Some(0), "{told}: {ended:?}");
        assert_eq!(ended.answer["pages_torn"], 1, "{told}: {ended:?}");
        assert_eq!(ended.answer["pages_corrupt"], 0, "{told}");
        let named = format!("page {page} of data/bank/victim.ibd");
        assert!(ended.said.contains(&named), "{told}: {ended:?}");

        let restored = site.restore(None, "restored").unwrap();
        let mut launch = site.launch.clone();
        launch.datadir = restored.target;
        let running = site.server.run(&launch);
        let mut session = running.session().unwrap();
        let sum = session
            .value("SELECT SUM(LENGTH(name)) FROM bank.victim")
            .unwrap();
        assert_eq!(sum.as_deref(), Some("38400"), "{told}");
    }
}
