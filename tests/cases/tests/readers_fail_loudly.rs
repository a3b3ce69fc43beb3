//! Does a file that a reader of a backup cannot read, or not to its end, fail the backup by its name, and is
//! what cannot be read past the page cache read through it?

use evenkeel_cases::faults::failing;
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A file that nobody but a reader reads: it has no pages to check.
const PLAIN: &str = "aria_log.00000001";

fn backup(evenkeel: &Evenkeel, fs: &LoopFs, repository: &str) -> Command {
    let mut command = evenkeel.command(&["backup", "--no-defaults", "--snapshot=copy"]);
    let command_line = command.arg("--datadir").arg(fs.join("data"));
    command_line.arg(fs.join(repository));
    command
}

#[test]
fn whatever_the_kernel_answers() {
    let fs = LoopFs::xfs(2 << 30);
    let data = fs.join("data");
    let _ = mariadb_10_11().prepare(&data, &[]);
    // Of an odd length, and read in one go: by one thread, whose calls strace counts.
    let bytes: Vec<u8> = (0..300_001_u32).map(|at| (at % 251) as u8).collect();
    fs::write(data.join(PLAIN), &bytes).unwrap();
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let read = |fault: &str, repository: &str| {
        let command = backup(&evenkeel, &fs, repository);
        failing(&command, &data.join(PLAIN), "pread64", fault)
    };
    for (fault, says) in [
        ("error=EIO", "Input/output error"),
        ("retval=0", "the frozen file ends at byte"),
    ] {
        let ended = read(&format!("{fault}:when=1"), "none");
        assert_eq!(ended.code, Some(1), "{fault}: {ended:?}");
        let said = ended.answer.to_string();
        assert!(
            said.contains(PLAIN) && said.contains(says),
            "{fault}: {said}"
        );
        let mut generations = evenkeel.command(&["generations"]);
        generations.arg(fs.join("none"));
        let listed = run(generations).answer;
        let empty = listed["generations"].as_array().is_none_or(Vec::is_empty);
        assert!(empty, "{fault}: {listed}");
    }
    // Interrupted reads are made again, and a device that refuses direct reads is read through the cache.
    for (fault, repository) in [
        ("error=EINTR:when=1", "again"),
        ("error=EINVAL:when=1", "cached"),
    ] {
        let ended = read(fault, repository);
        assert_eq!(ended.generation(), 1, "{fault}");
        let target = fs.join(format!("restored-{repository}"));
        let ended = run(evenkeel.restore(&fs.join(repository), &target, &[]));
        assert_eq!(ended.code, Some(0), "{fault}: {ended:?}");
        let restored = fs::read(find(&target, PLAIN)).unwrap();
        assert!(restored == bytes, "{fault}: the file differs");
    }
}

/// Where a file of the data directory lies in a restored one.
fn find(target: &Path, name: &str) -> std::path::PathBuf {
    let below = target.join("data").join(name);
    match below.exists() {
        true => below,
        false => target.join(name),
    }
}
