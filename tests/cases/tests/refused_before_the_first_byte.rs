//! Is what a restore to a point, or a proof, needs besides the files found missing before the first byte is
//! written or read?

use evenkeel_cases::Site;
use evenkeel_cases::points::{add, archive, make_table, restore_to_command};
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

#[test]
fn on_mariadb_10_11() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(2 << 30), 10, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    let one = add(&mut session, 1);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    site.kill();
    let closed = site.fs.join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();

    // The server that applies the logs could not get there.
    let target = closed.join("restored");
    let restore = restore_to_command(&evenkeel, &site, &target, &one.moved(0));
    let ended = run(killed_at(restore, "restore::created"));
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert!(ended.message().contains("cannot enter"), "{ended:?}");
    assert_eq!(fs::read_dir(&closed).unwrap().count(), 0);

    // Nor one that proves it, which is said before it is read: it is damaged.
    let repository = site.repository();
    let packs = fs::read_dir(repository.join("generations/1")).unwrap();
    let packs = packs.map(|entry| entry.unwrap().path());
    let pack = packs.into_iter().find(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("pack")
    });
    let pack = pack.unwrap();
    let mut bytes = fs::read(&pack).unwrap();
    bytes[100] ^= 1;
    fs::write(&pack, bytes).unwrap();
    let verify = |more: &[&str]| {
        let mut verify = evenkeel.command(&["verify", "--boot"]);
        verify.args(more).arg(&repository);
        run(verify)
    };
    let scratch = closed.join("scratch");
    let ended = verify(&["--scratch", scratch.to_str().unwrap()]);
    assert_eq!(ended.code, Some(14), "{ended:?}");
    let program = closed.join("mariadbd");
    fs::copy(&site.server.binary.path, &program).unwrap();
    let ended = verify(&["--server-binary", program.to_str().unwrap()]);
    assert_eq!(ended.code, Some(14), "{ended:?}");
    assert_eq!(verify(&[]).code, Some(4));
}
