//! Is a restore to a point that is killed while a server applies the logs never taken for a data
//! directory, and does the next one succeed?

use evenkeel_cases::Site;
use evenkeel_cases::failpoints::POINT;
use evenkeel_cases::points::{add, archive, make_table, restore_to_command, rows_of};
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::fs;

#[test]
fn on_mariadb_10_11() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(2 << 30), 50, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    add(&mut session, 1);
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    let two = add(&mut session, 2);
    add(&mut session, 3);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    site.kill();
    let target = site.fs.join("restored");
    let restore = || restore_to_command(&evenkeel, &site, &target, &two.moved(0));
    for point in POINT {
        let killed = run(killed_at(restore(), point));
        assert_eq!(killed.signal, Some(9), "{point}: {killed:?}");
        assert!(!target.exists(), "{point}");
        let again = run(restore());
        assert_eq!(again.code, Some(0), "{point}: {again:?}");
        assert_eq!(rows_of(&site, &target), "1,2", "{point}");
        fs::remove_dir_all(&target).unwrap();
    }
}
