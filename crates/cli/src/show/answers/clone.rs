//! The answer of `clone`.

use super::restore::as_replica;
use super::{Answer, for_shell};
use evenkeel_backup::clone::CloneReport;
use evenkeel_op::units;
use std::iter;
use std::time::Duration;

/// Bytes of a block.
const BLOCK: u64 = 64 << 10;

impl Answer for CloneReport {
    const SCHEMA: &'static str = "evenkeel/clone/1";

    fn text(&self) -> String {
        let mut text = format!(
            "{} cloned to {}: {}, {} in {}\n",
            self.source,
            self.target.display(),
            units::count(self.files, "file"),
            units::bytes(self.bytes_logical),
            units::duration(Duration::from_secs_f64(self.seconds)),
        );
        let there = match (self.blocks_reused, self.taken_up) {
            (0, _) => String::new(),
            (blocks, true) => format!(
                "; {} were there, from the run that was interrupted",
                units::bytes(blocks * BLOCK)
            ),
            (blocks, false) => format!("; {} were there", units::bytes(blocks * BLOCK)),
        };
        text.push_str(&format!(
            "  {} sent{there}\n",
            units::bytes(self.bytes_sent)
        ));
        for (id, path) in self.roots.iter().filter(|(id, _)| *id != "data") {
            text.push_str(&format!("  root {id} is at {}\n", path.display()));
        }
        let options = iter::once(format!("--datadir={}", self.target.display()));
        let options = for_shell(options.chain(self.start_options.iter().cloned()));
        text.push_str(&format!("  a server starts on it with: {options}\n"));
        if let Some(seeding) = &self.replica {
            text.push_str(&as_replica(seeding, &self.target, "cloned"));
        }
        plain(text)
    }
}

/// The other host says what is in it: nothing that a terminal obeys.
fn plain(text: String) -> String {
    text.replace(|sign: char| sign.is_control() && sign != '\n', " ")
}
