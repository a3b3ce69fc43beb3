//! Does a program that cannot run on the other host end the run with what to do, and leave nothing there?

use evenkeel_cases::far::FarHost;
use evenkeel_cases::leftovers::names_in;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::Scratch;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// Sends a program that `change` made of the right one.
fn sent(change: impl FnOnce(&mut Vec<u8>)) -> Ended {
    let scratch = Scratch::new();
    let far = FarHost::start(&[]);
    let mut bytes = fs::read(PROGRAM).unwrap();
    change(&mut bytes);
    let other = scratch.join("other");
    fs::write(&other, bytes).unwrap();
    fs::set_permissions(&other, Permissions::from_mode(0o755)).unwrap();
    let mut command = Evenkeel::new(PROGRAM).command(&["doctor", "--no-defaults"]);
    command.arg("--ssh-program").arg(&other);
    let ended = run(far.over(command, 60));
    far.assert_clean("after a program that does not run");
    assert!(names_in(&far.kept()).is_empty());
    assert_eq!(ended.code, Some(14), "{ended:?}");
    let hints = ended.answer["hints"].to_string();
    assert!(hints.contains("--ssh-program"), "{ended:?}");
    ended
}

/// The loader asks for the version by name: as on a host whose C library has no such version yet.
#[test]
fn an_older_c_library() {
    let ended = sent(|bytes| {
        let name = b"GLIBC_2.34\0";
        let found = bytes.windows(name.len()).position(|window| window == name);
        let major = found.expect("it asks for a version of 2021") + "GLIBC_".len();
        bytes[major] = b'9';
    });
    let answer = ended.answer.to_string();
    assert!(answer.contains("C library is older"), "{answer}");
    assert!(answer.contains("GLIBC_9.34"), "{answer}");
    assert!(answer.contains("make portable"), "{answer}");
}

#[test]
fn another_processor() {
    let ended = sent(|bytes| {
        let arm = [183, 0];
        let other = if bytes[18..20] == arm { [62, 0] } else { arm };
        bytes[18..20].copy_from_slice(&other);
    });
    let answer = ended.answer.to_string();
    assert!(answer.contains("it was built for"), "{answer}");
}
