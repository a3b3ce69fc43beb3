//! Does a host that cannot read its backups make encrypted, incremental ones of a busy server, here
//! and over ssh, that whoever can read them restores to exactly what was committed?

use evenkeel_cases::Site;
use evenkeel_cases::far::FarHost;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer};
use std::process::Command;

const GIB: u64 = 1 << 30;
const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");
const PATIENCE_S: u32 = 60;

/// Makes an identity in `name` and returns its file and its recipient.
fn identity(evenkeel: &Evenkeel, site: &Site, name: &str) -> (String, String) {
    let file = site.fs.join(name).display().to_string();
    let ended = run(evenkeel.command(&["keys", "generate", "--output", &file]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let recipient = ended.answer["recipient"].as_str().expect("a recipient");
    (file, recipient.to_owned())
}

/// A full and an incremental generation under traffic; what `there` makes of a command runs it.
fn case(server: TestServer, fs: LoopFs, there: impl Fn(Command) -> Command) {
    let mut site = Site::start(server, fs, 2_000, &[]);
    let evenkeel = Evenkeel::new(PROGRAM);
    let go = |command| -> Ended { run(there(command)) };
    let (admin, reader) = identity(&evenkeel, &site, "admin.key");
    let (host, _) = identity(&evenkeel, &site, "host.key");
    let traffic = site
        .bank
        .start(&site.running().connect_options(), 4)
        .expect("traffic");
    let mut taken = Vec::new();
    for number in 1..=2 {
        traffic.wait_for(50);
        let before = traffic.marks();
        let mut flags = vec!["--audit", "--identity", &host];
        if number == 1 {
            flags.extend(["--encrypt-to", &reader]);
        }
        let ended = go(evenkeel.backup(&site, &flags));
        assert_eq!(ended.generation(), number);
        let kind = if number == 1 { "full" } else { "incremental" };
        assert_eq!(ended.answer["kind"], kind);
        taken.push((before, traffic.marks()));
    }
    assert_eq!(traffic.lost(), Vec::<String>::new());
    let ended = go(evenkeel.backup(&site, &[]));
    assert_eq!(ended.code, Some(12), "without a key: {ended:?}");
    site.kill();
    drop(traffic.stop());
    let shut = site.fs.join("shut");
    let ended = go(evenkeel.restore(&site.repository(), &shut, &["--identity", &host]));
    assert_eq!(ended.code, Some(12), "with a writer's key: {ended:?}");
    assert!(ended.message().contains("not read them"), "{ended:?}");
    for (number, (before, after)) in (1..).zip(&taken) {
        let target = site.fs.join(format!("restored-{number}"));
        let generation = format!("--generation={number}");
        let flags = [generation.as_str(), "--identity", &admin];
        let ended = go(evenkeel.restore(&site.repository(), &target, &flags));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        site.check_bank_at(&target, before, after);
    }
    let mut verify = evenkeel.command(&["verify", "--all", "--identity", &admin]);
    verify.arg(site.repository());
    let ended = go(verify);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn here() {
    type Case = (fn() -> TestServer, fn(u64) -> LoopFs);
    let cases: [Case; 3] = [
        (mariadb_10_11, LoopFs::xfs),
        (mysql_8_0_15, LoopFs::btrfs),
        (mysql_5_7_22, LoopFs::xfs),
    ];
    for (server, fs) in draw("servers with encrypted backups", &cases, 1) {
        case(server(), fs(2 * GIB), |command| command);
    }
}

#[test]
fn over_ssh() {
    let far = FarHost::having(PROGRAM, &[]);
    case(mariadb_10_11(), LoopFs::xfs(2 * GIB), |command| {
        far.over(command, PATIENCE_S)
    });
    far.assert_clean("after all");
}
