//! Does a backup take less of the processors, and more space, while other programs want them, unless `--level`
//! says otherwise?

use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::fs;
use std::process::{Child, Command};

/// Something that a higher level finds more in, in a file without pages.
const PLAIN: &str = "aria_log.00000001";

/// A loop on one processor, until it is dropped. A killed test leaves it a minute of processor time.
struct Busy(Child);

impl Busy {
    fn on(processor: &str) -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", processor, "nice", "-n", "19"]);
        command.args(["sh", "-c", "ulimit -t 60; while :; do :; done"]);
        Self(command.spawn().expect("taskset runs"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first processor that this test may run on.
fn processor() -> String {
    let status = fs::read_to_string("/proc/self/status").expect("what the kernel says of us");
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let first = list.expect("processors").trim().split([',', '-']).next();
    first.expect("a processor").to_owned()
}

/// Words of a small vocabulary, 24 MiB.
fn words() -> Vec<u8> {
    let mut state = 7_u32;
    let mut bytes = Vec::new();
    while bytes.len() < 24 << 20 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.extend_from_slice(
            format!("order {:>5} of customer {:>3}; ", state >> 18, state >> 25).as_bytes(),
        );
    }
    bytes
}

fn stored(
    evenkeel: &Evenkeel,
    fs: &LoopFs,
    repository: &str,
    level: &[&str],
    processor: &str,
) -> u64 {
    let mut command =
        evenkeel.command(&["backup", "--no-defaults", "--snapshot=copy", "--threads=1"]);
    let line = command.arg("--datadir").arg(fs.join("data")).args(level);
    line.arg(fs.join(repository));
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", processor]).arg(command.get_program());
    pinned.args(command.get_args());
    let ended: Ended = run(pinned);
    assert_eq!(ended.generation(), 1, "{level:?}");
    ended.answer["bytes_stored"].as_u64().expect("bytes")
}

#[test]
fn while_others_want_the_processors() {
    let fs = LoopFs::xfs(2 << 30);
    let data = fs.join("data");
    let _ = mariadb_10_11().prepare(&data, &[]);
    fs::write(data.join(PLAIN), words()).unwrap();
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let processor = processor();
    let _busy = [Busy::on(&processor), Busy::on(&processor)];
    let stored = |name: &str, level: &[&str]| stored(&evenkeel, &fs, name, level, &processor);
    let usual = stored("usual", &["--level=1"]);
    let quick = stored("quick", &["--level", "-3"]);
    let by_load = stored("by-load", &[]);
    assert!(
        quick > usual * 11 / 10,
        "{quick} {usual}: levels do not differ"
    );
    // The first megabytes are at the usual level, until it is known that others want the processor.
    let between = usual + (quick - usual) / 2;
    assert!(by_load > between, "{usual} {by_load} {quick}");
}
