//! Does a read error of the source, or a file that ends early, fail the backup instead of making a
//! smaller one?

use evenkeel_cases::Site;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{LoopFs, Marks};
use std::process::Command;

const GIB: u64 = 1 << 30;

/// Runs a command with some of its reads answered by strace instead of the kernel.
fn injected(command: &Command, fault: &str) -> Ended {
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=pread64", "-e"]);
    traced.arg(format!("inject=pread64:{fault}"));
    traced
        .arg(command.get_program())
        .args(command.get_args())
        .env_remove("EVENKEEL_KILL_AT");
    run(traced)
}

/// Returns how many reads the program makes before it is itself.
fn reads_of_the_loader(evenkeel: &Evenkeel) -> u32 {
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-e", "trace=pread64"]);
    traced
        .arg(evenkeel.command(&[]).get_program())
        .arg("--version");
    let ended = run(traced);
    ended
        .said
        .lines()
        .filter(|line| line.contains("pread64("))
        .count() as u32
}

/// It may be the repository that could not be read. That a page fails its checksum is what comes of
/// taking for its content what was not read: not the same, for other files have no checksum.
fn assert_failed_to_read(ended: &Ended, reported: &str) {
    assert!(matches!(ended.code, Some(1 | 4)), "{reported}: {ended:?}");
    assert!(
        !ended.message().contains("corrupt"),
        "{reported}: {ended:?}"
    );
}

#[test]
fn at_any_read() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(4 * GIB), 500, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let command = evenkeel.backup(&site, &[]);
    let loader = reads_of_the_loader(&evenkeel);
    for fault in ["error=EIO", "retval=0"] {
        for number in [1, 2, 5, 11] {
            let reported = format!("{fault}, read {number}");
            let ended = injected(&command, &format!("{fault}:when={}", loader + number));
            assert_failed_to_read(&ended, &reported);
            assert!(
                site.restore(None, "none").is_err(),
                "{reported}: a generation exists"
            );
            site.assert_clean(&reported);
        }
    }
    // Reads that are interrupted are only made again.
    let ended = injected(&command, &format!("error=EINTR:when={}+3", loader + 1));
    assert_eq!(ended.generation(), 1);
    let restored = site.restore(None, "restored").unwrap();
    site.check_bank_at(&restored.target, &Marks::default(), &Marks::default());

    // The same for what an incremental run reads.
    let traffic = site.traffic(2);
    traffic.wait_for(50);
    let mut newest = 1;
    for number in [3, 9] {
        let before = traffic.marks();
        let ended = injected(&command, &format!("error=EIO:when={}", loader + number));
        if ended.code == Some(0) {
            // It met a look at the repository that is made a second time: then nothing is missing.
            newest += 1;
            assert_eq!(ended.generation(), newest);
            let target = format!("whole-{number}");
            let restored = site.restore(None, &target).unwrap();
            site.check_bank_at(&restored.target, &before, &traffic.marks());
        } else {
            assert_failed_to_read(&ended, "incremental");
        }
        site.assert_clean("incremental");
    }
    let before = traffic.marks();
    let audited = run(evenkeel.backup(&site, &["--audit"]));
    assert_eq!(audited.generation(), newest + 1);
    let after = traffic.marks();
    let restored = site.restore(None, "restored-2").unwrap();
    site.check_bank_at(&restored.target, &before, &after);
}
