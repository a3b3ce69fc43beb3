//! A network of a test's own, which can be cut: whatever goes to a port, or comes from it, is lost, and nobody is told.

use std::env;
use std::process::Command;

/// Set for a test that runs in a network of its own.
const INSIDE: &str = "EVENKEEL_TEST_NETWORK";

/// Runs a test again, in a network of its own. Returns whether this is where it should run.
///
/// # Panics
///
/// When it fails there.
#[must_use]
pub fn is_here(test: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        run(&["ip", "link", "set", "lo", "up"]);
        return true;
    }
    let program = env::current_exe().expect("the test's own program");
    let status = Command::new("unshare")
        .args(["--net", "--"])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .expect("unshare runs");
    assert!(
        status.success(),
        "{test}, in a network of its own: {status}"
    );
    false
}

#[track_caller]
fn run(words: &[&str]) {
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.unwrap_or_else(|error| panic!("{words:?}: {error}"));
    assert!(output.status.success(), "{words:?}: {output:?}");
}

/// A port that nothing gets through. It is open again when this is dropped.
#[derive(Debug)]
pub struct Cut(String);

impl Cut {
    /// Cuts it off.
    #[must_use]
    pub fn port(port: u16) -> Self {
        let table = format!("cut_{port}");
        run(&["nft", "add", "table", "inet", &table]);
        let chain = "{ type filter hook output priority 0; }";
        run(&["nft", "add", "chain", "inet", &table, "out", chain]);
        for end in ["dport", "sport"] {
            let port = port.to_string();
            run(&[
                "nft", "add", "rule", "inet", &table, "out", "tcp", end, &port, "drop",
            ]);
        }
        Self(table)
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        run(&["nft", "delete", "table", "inet", &self.0]);
    }
}
