//! Is a page that only its doublewrite copy saves stored, told, and whole again after recovery?

use evenkeel_cases::Site;
use evenkeel_cases::checking::{PAGE, make_copied, page_with_a_copy};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_testkit::{LoopFs, servers};
use std::fs::File;
use std::os::unix::fs::FileExt;

#[test]
fn of_every_server() {
    for server in servers() {
        let site = Site::start(server, LoopFs::xfs(4 << 30), 100, &[]);
        let reported = site.server.name;
        let mut session = site.running().session().unwrap();
        make_copied(&mut session);
        let (data, table) = (site.fs.join("data"), site.fs.join("data/bank/victim.ibd"));
        let page = page_with_a_copy(&data, &table);
        let file = File::options().write(true).open(&table).unwrap();
        file.write_all_at(&[0x55; 512], u64::from(page) * PAGE + 8192)
            .unwrap();
        session.run("UNLOCK TABLES").unwrap();

        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let ended = run(evenkeel.backup(&site, &[]));
        assert_eq!(ended.code, Some(0), "{reported}: {ended:?}");
        assert_eq!(ended.answer["pages_torn"], 1, "{reported}: {ended:?}");
        assert_eq!(ended.answer["pages_corrupt"], 0, "{reported}");
        let named = format!("page {page} of data/bank/victim.ibd");
        assert!(ended.said.contains(&named), "{reported}: {ended:?}");

        let restored = site.restore(None, "restored").unwrap();
        let mut launch = site.launch.clone();
        launch.datadir = restored.target;
        let running = site.server.run(&launch);
        let mut session = running.session().unwrap();
        let sum = session
            .value("SELECT SUM(LENGTH(name)) FROM bank.victim")
            .unwrap();
        assert_eq!(sum.as_deref(), Some("38400"), "{reported}");
    }
}
