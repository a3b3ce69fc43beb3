//! A repository in an object store: a real one, by a way on which requests can go wrong.

use crate::Site;
use crate::program::Evenkeel;
use evenkeel_testkit::{HttpFaults, Seaweed};
use std::process::Command;

/// A store, the way there, and a repository that is not made yet.
#[derive(Debug)]
pub struct Bucket {
    /// What can go wrong on the way.
    pub way: HttpFaults,
    store: Seaweed,
    evenkeel: Evenkeel,
}

impl Bucket {
    /// Starts a store. `program` is the one under test.
    #[must_use]
    pub fn start(program: &str) -> Self {
        let store = Seaweed::start();
        Self {
            way: HttpFaults::to(store.port()),
            store,
            evenkeel: Evenkeel::new(program),
        }
    }

    /// Returns the repository's URL.
    #[must_use]
    pub fn repository(&self) -> String {
        format!("s3://{}/db/shop", Seaweed::BUCKET)
    }

    /// Returns the uploads in parts that nobody has completed or given up.
    #[must_use]
    pub fn uploads(&self) -> Vec<String> {
        self.store.uploads()
    }

    /// Plans a run straight to the store.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.evenkeel.command(words);
        command.envs(Seaweed::environment(self.store.port()));
        command
    }

    /// Plans a backup of a site's server straight to the store.
    #[must_use]
    pub fn backup(&self, site: &Site, flags: &[&str]) -> Command {
        let mut command = self.command(&["backup", "--no-defaults", "-u", "root"]);
        command.args(["--max-impact=100", "-S"]);
        command.arg(site.running().socket()).args(flags);
        command.arg(self.repository());
        command
    }

    /// Has a run go there with credentials that may only read.
    #[must_use]
    pub fn only_reading(&self, mut command: Command) -> Command {
        command.env("AWS_ACCESS_KEY_ID", Seaweed::READER);
        command
    }

    /// Has a run go the way on which requests can go wrong.
    #[must_use]
    pub fn by_the_way(&self, mut command: Command) -> Command {
        command.envs(Seaweed::environment(self.way.port()));
        command
    }
}
