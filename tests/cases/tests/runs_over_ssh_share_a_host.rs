//! Do runs that work on one other host at once leave each other's connections alone?

use evenkeel_cases::far::FarHost;
use evenkeel_cases::program::{Ended, Evenkeel};
use evenkeel_testkit::Scratch;
use std::fs;
use std::process::Stdio;

const AT_ONCE: usize = 4;

#[test]
fn each_keeps_its_connection() {
    let (scratch, far) = (Scratch::new(), FarHost::start(&[]));
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let start = |nth: usize| {
        let image = scratch.join(format!("{nth}.img"));
        fs::write(&image, vec![nth as u8; 4 << 20]).unwrap();
        let mut command = evenkeel.command(&["backup", "--no-defaults", "--snapshot=copy"]);
        let repository = scratch.join(format!("repository-{nth}"));
        command.arg("--volume").arg(&image).arg(repository);
        let mut command = far.over(command, 60);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let running: Vec<_> = (0..AT_ONCE).map(start).collect();
    for child in running {
        let ended = Ended::of(&child.wait_with_output().unwrap());
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    // A look at the others when a run begins was once taken for a new connection of theirs.
    assert_eq!(far.proxy.connections(), AT_ONCE as u64);
    far.assert_clean("after all of them");
}
