//! Answers of `mount`: what is shown, that the scratch is full, how it ended.

use super::{Answer, for_shell};
use evenkeel_backup::mount::{Filled, MountEnd, MountReport};
use evenkeel_op::units;
use std::iter;
use std::time::Duration;

impl Answer for MountReport {
    const SCHEMA: &'static str = "evenkeel/mount/1";

    fn text(&self) -> String {
        let place = self.mountpoint.display();
        let what = match self.generation {
            Some(generation) => format!("generation {generation}"),
            None => units::count(self.generations, "generation"),
        };
        let seconds = Duration::from_secs_f64(self.seconds);
        let mut text = format!(
            "{what} mounted at {place} in {}\n",
            units::duration(seconds)
        );
        if let Some(scratch) = &self.scratch {
            text.push_str(&format!(
                "  writes go to {}; {} of {} are fetched on demand\n",
                scratch.display(),
                units::bytes(self.bytes_missing.min(self.bytes_logical)),
                units::bytes(self.bytes_logical),
            ));
        }
        if !self.start_command.is_empty() {
            let command = for_shell(&self.start_command);
            text.push_str(&format!("  a server starts on it with: {command}\n"));
        }
        text
    }
}

impl Answer for Filled {
    const SCHEMA: &'static str = "evenkeel/mount-filled/1";

    fn text(&self) -> String {
        format!(
            "{} is complete after {}: the repository is no longer needed. It becomes a full \
             restore when you stop the server and end the mount\n",
            self.scratch.display(),
            units::duration(Duration::from_secs_f64(self.seconds)),
        )
    }
}

impl Answer for MountEnd {
    const SCHEMA: &'static str = "evenkeel/mount-end/1";

    fn text(&self) -> String {
        let mut text = format!("{} unmounted\n", self.mountpoint.display());
        if let Some(target) = &self.target {
            let target = target.display();
            let options = iter::once(format!("--datadir={target}"));
            let options = for_shell(options.chain(self.start_options.iter().cloned()));
            text.push_str(&format!(
                "  restored to {target}; a server starts on it with: {options}\n",
            ));
        } else if self.scratch == Some("kept") {
            text.push_str(&format!(
                "  the scratch directory is kept; {} are missing: run the same command again to \
                 resume\n",
                units::bytes(self.bytes_missing),
            ));
        }
        text
    }
}
