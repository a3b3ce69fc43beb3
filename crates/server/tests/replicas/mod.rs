//! A source with traffic and a replica, and the watchdog to stop its applier with.
#![allow(dead_code)] // each test file uses some of it

use evenkeel_op::{Cancel, Result, Silent};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::launch::Running;
use evenkeel_server::replication::{Program, StopLimits, Stopped};
use evenkeel_testkit::{Bank, By, Scratch, TestServer};
use std::time::Duration;

/// A source and its replica.
pub(crate) struct Pair {
    pub(crate) source: Running,
    pub(crate) replica: Running,
    pub(crate) bank: Bank,
    _scratch: Scratch,
}

/// Options of a replica that applies in parallel.
pub(crate) fn in_parallel(server: &TestServer) -> [&'static str; 2] {
    match server.binary.flavour {
        Flavour::MariaDb => [
            "--slave-parallel-threads=4",
            "--slave-parallel-mode=optimistic",
        ],
        Flavour::MySql => [
            "--slave-parallel-workers=4",
            "--slave-parallel-type=LOGICAL_CLOCK",
        ],
    }
}

impl Pair {
    /// Starts both; `of_both` and `of_replica` are more options.
    pub(crate) fn start(
        server: &TestServer,
        by: By,
        of_both: &[&str],
        of_replica: &[&str],
    ) -> Self {
        let scratch = Scratch::new();
        let mut args = by.options(server);
        args.extend(of_both);
        let run = |name: &str, id: &'static str, more: &[&str]| {
            let args = [&args[..], &[id], more].concat();
            server.run(&server.prepare(&scratch.join(name), &args).with_networking())
        };
        let source = run("source", "--server-id=1", &[]);
        By::allow(&source);
        let bank = Bank::load(&mut source.session().unwrap(), 200).unwrap();
        let replica = run("replica", "--server-id=2", of_replica);
        by.follow(&source, &replica);
        evenkeel_testkit::wait_until_caught_up(&source, &replica);
        Self {
            source,
            replica,
            bank,
            _scratch: scratch,
        }
    }

    /// Stops the applier, for up to `limits`.
    pub(crate) fn stop(&self, limits: &StopLimits) -> Result<Stopped> {
        let stopped = Stopped::stop(
            &self.replica.connect_options(),
            Some(self.replica.pid()),
            &watchdog(),
            limits,
            &Silent,
            &Cancel::new(),
        )?;
        Ok(stopped.expect("it is a replica"))
    }
}

/// Enough for anything that does not hang.
pub(crate) fn limits() -> StopLimits {
    StopLimits {
        deadline: Duration::from_secs(60),
        hold: Duration::from_secs(60),
    }
}

/// This test program, which has a test that is the watchdog when it is called so.
pub(crate) fn watchdog() -> Program {
    Program {
        path: std::env::current_exe().unwrap(),
        args: ["--exact", "the_watchdog", "--nocapture", "--skip", WORD]
            .map(Into::into)
            .to_vec(),
    }
}

const WORD: &str = "as-watchdog";

/// The body of the test `the_watchdog`.
pub(crate) fn be_the_watchdog() {
    if std::env::args().any(|word| word == WORD) {
        // The test harness has begun a line.
        println!();
        let code = evenkeel_server::replication::watch(std::io::stdin(), std::io::stdout());
        std::process::exit(i32::from(code));
    }
    let mut said = Vec::new();
    let code = evenkeel_server::replication::watch(&b"no order\n"[..], &mut said);
    assert_eq!(code, 1);
    assert!(said.starts_with(b"failed: "), "{said:?}");
}
