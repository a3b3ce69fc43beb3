//! Two hosts with a cable between them, as far as their networks go: a test runs on the first one.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// Set for a test that runs on a host of its own.
const INSIDE: &str = "EVENKEEL_TEST_INSIDE";
/// Of the first host, as the second one sees it; from the last one, the second one is another host.
pub(crate) const ADDRESSES: [&str; 3] = ["10.99.0.1", "fd99::1", "10.99.1.1"];
/// Whom the second host is, when it reaches for the last of them.
pub(crate) const OTHERS: &str = "10.99.1.0/24";

/// Runs a test again, on a host of its own. Returns whether this is where it should run.
pub(crate) fn is_here(test: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        return true;
    }
    let status = Command::new("unshare")
        .args(["--net", "--"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .expect("unshare runs");
    assert!(status.success(), "{test}, on a host of its own: {status}");
    false
}

/// Runs a program here.
pub(crate) fn run(words: &[&str]) -> Output {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
        .output()
        .unwrap_or_else(|e| panic!("{words:?}: {e}"))
}

fn done(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

/// The other host. It ends with the test.
pub(crate) struct OtherHost(Child);

impl OtherHost {
    /// Makes it, and lays the cable.
    pub(crate) fn new() -> Self {
        // It reads until nobody is left who could write.
        let host = Command::new("unshare")
            .args(["--net", "--", "cat"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("unshare runs");
        let network = PathBuf::from(format!("/proc/{}/ns/net", host.id()));
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        evenkeel_testkit::until("there is another network", || {
            fs::read_link(&network).is_ok_and(|found| found != own)
        });
        let host = Self(host);
        let there = host.0.id().to_string();
        let here = "ip link set lo up && \
            ip link add here type veth peer name there netns $0 && ip link set here up && \
            ip addr add 10.99.0.1/24 dev here && ip addr add 10.99.1.1/24 dev here && \
            ip addr add fd99::1/64 dev here nodad";
        done(&run(&["sh", "-c", here, &there]));
        let far = "ip link set lo up && ip link set there up && \
            ip addr add 10.99.0.2/24 dev there && ip addr add 10.99.1.2/24 dev there && \
            ip addr add fd99::2/64 dev there nodad";
        done(&host.command(&["sh", "-c", far]).output().unwrap());
        host
    }

    /// Returns a command that runs there.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/proc/{}/ns/net", self.0.id()))
            .arg("--")
            .args(words);
        command
    }
}

impl Drop for OtherHost {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
