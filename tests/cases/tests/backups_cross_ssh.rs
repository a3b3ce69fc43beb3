//! Does a server on another host, where nothing is installed, back up hot and incrementally into a
//! repository here, restore there and start there?

use evenkeel_cases::Site;
use evenkeel_cases::far::FarHost;
use evenkeel_cases::leftovers::assert_only_the_base;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::effort::{draw, rounds};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, Scratch, TestServer};
use std::process::Command;

const GIB: u64 = 1 << 30;
const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");
const PATIENCE_S: u32 = 60;

fn case(server: TestServer, fs: LoopFs) {
    let mut site = Site::start(server, fs, 2_000, &[]);
    let far = FarHost::start(&[]);
    let evenkeel = Evenkeel::new(PROGRAM);
    let over = |command| -> Ended { run(far.over(command, PATIENCE_S)) };
    let traffic = site.traffic(4);
    let mut taken = Vec::new();
    for number in 1..=rounds("generations over ssh", 2, 3) {
        traffic.wait_for(50);
        let before = traffic.marks();
        let ended = over(evenkeel.backup(&site, &["--audit"]));
        assert_eq!(ended.generation(), number);
        taken.push((before, traffic.marks()));
        far.assert_clean("after a backup");
        assert_only_the_base(site.fs.path(), "after a backup");
    }
    traffic.assert_undisturbed();
    site.kill();
    drop(traffic.stop());
    for (number, (before, after)) in (1..).zip(&taken) {
        let target = site.fs.join(format!("restored-{number}"));
        let generation = format!("--generation={number}");
        let ended = over(evenkeel.restore(&site.repository(), &target, &[&generation]));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(ended.answer["generation"], number);
        site.check_bank_at(&target, before, after);
    }
    let mut verify = evenkeel.command(&["verify", "--boot"]);
    verify
        .arg(site.repository())
        .arg("--server-binary")
        .arg(&site.server.binary.path);
    verify.arg("--scratch").arg(site.fs.join("scratch"));
    let ended = over(verify);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.answer["boot"]["proven"], true, "{ended:?}");
    far.assert_clean("after all");
}

#[test]
fn generations_come_over_and_go_back() {
    type Case = (fn() -> TestServer, fn(u64) -> LoopFs);
    let cases: [Case; 3] = [
        (mariadb_10_11, LoopFs::xfs),
        (mysql_8_0_15, LoopFs::btrfs),
        (mysql_5_7_22, LoopFs::xfs),
    ];
    for (server, fs) in draw("servers over ssh", &cases, 1) {
        case(server(), fs(2 * GIB));
    }
}

#[test]
fn blocks_may_be_compressed_where_they_are_kept() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 20_000, &[]);
    let far = FarHost::having(PROGRAM, &[]);
    let evenkeel = Evenkeel::new(PROGRAM);
    let over = |command| -> Ended { run(far.over(command, PATIENCE_S)) };
    let crossed = |flags: &[&str]| {
        let before = far.proxy.bytes();
        let ended = over(evenkeel.backup(&site, flags));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let stored = ended.answer["bytes_stored"].as_u64().unwrap();
        (far.proxy.bytes() - before, stored)
    };
    let (there, stored_there) = crossed(&["--full", "--level=1"]);
    let (here, stored_here) = crossed(&["--full", "--level=1", "--compress-at=repository"]);
    assert!(
        here > there + stored_there,
        "{here} and {there} bytes crossed"
    );
    assert!(
        stored_here < stored_there * 11 / 10,
        "{stored_here} and {stored_there} stored"
    );
    let mut verify = evenkeel.command(&["verify", "--all"]);
    verify.arg(site.repository());
    assert_eq!(run(verify).code, Some(0));
}

#[test]
fn what_did_not_change_does_not_cross() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(2 * GIB), 200_000, &[]);
    let far = FarHost::having(PROGRAM, &[]);
    let evenkeel = Evenkeel::new(PROGRAM);
    let over = |command| -> Ended { run(far.over(command, PATIENCE_S)) };
    let whole = over(evenkeel.backup(&site, &[]));
    assert_eq!(whole.generation(), 1);
    let logical = whole.answer["bytes_logical"].as_u64().unwrap();
    // With and without a list of what changed.
    for flags in [&[][..], &["--audit"]] {
        let before = far.proxy.bytes();
        let ended = over(evenkeel.backup(&site, flags));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let crossed = far.proxy.bytes() - before;
        assert!(
            crossed * 100 < logical,
            "{crossed} of {logical} bytes crossed ({flags:?})"
        );
    }
    far.assert_clean("after all");
}

/// The other host may not remove anything: that is done here, when it is done over there.
#[test]
fn what_is_no_longer_kept_continues_this_side() {
    let scratch = Scratch::new();
    let (disk, metrics) = (scratch.join("disk"), scratch.join("disk.prom"));
    let far = FarHost::having(PROGRAM, &[]);
    let backup = |mut command: Command, change: u8| {
        std::fs::write(&disk, vec![change; 1 << 20]).unwrap();
        command.args(["--snapshot=copy", "--keep-last=1", "--prune"]);
        command.arg("--volume").arg(&disk);
        command.arg("--metrics").arg(&metrics);
        command.arg(scratch.join("repository"));
        far.over(command, PATIENCE_S)
    };
    let evenkeel = Evenkeel::new(PROGRAM);
    for number in 1..=2 {
        let ended = run(backup(evenkeel.command(&["backup"]), number));
        assert_eq!(u32::from(number), ended.generation());
        let gone: Vec<u8> = (1..number).collect();
        assert_eq!(
            ended.answer["forgotten"]["remove"],
            serde_json::json!(gone),
            "{ended:?}"
        );
    }
    // For people too.
    let mut command = Command::new(PROGRAM);
    command.arg("backup");
    let output = backup(command, 3).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("generation 3 (incremental on 2)"), "{text}");
    assert!(text.contains("forgot generation 2; "), "{text}");
    let reported = std::fs::read_to_string(metrics).unwrap();
    assert!(
        reported.contains("evenkeel_backup_generation{"),
        "{reported}"
    );
    assert!(reported.contains(&*disk.to_string_lossy()), "{reported}");
    far.assert_clean("after all");
}
