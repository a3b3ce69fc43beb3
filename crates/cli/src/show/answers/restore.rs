//! Answers of `restore` and `verify`.

use super::{Answer, for_shell};
use evenkeel_backup::point::{PointReport, Transaction, Why};
use evenkeel_backup::restore::{OntoReport, RestoreReport};
use evenkeel_backup::verify::{BootReport, sentence};
use evenkeel_op::units;
use evenkeel_repository::{SampleReport, VerifyReport};
use evenkeel_server::replication::Seeding;
use serde::Serialize;
use std::iter;
use std::path::Path;
use std::time::Duration;

impl Answer for RestoreReport {
    const SCHEMA: &'static str = "evenkeel/restore/1";

    fn text(&self) -> String {
        let of = match self.source.as_str() {
            "" => String::new(),
            source => format!(" of {source}"),
        };
        let mut text = format!(
            "generation {}{of} restored to {}: {}, {} in {}\n",
            self.generation,
            self.target.display(),
            units::count(self.files, "file"),
            units::bytes(self.bytes_logical),
            units::duration(Duration::from_secs_f64(self.seconds)),
        );
        if self.roots.contains_key("volume") {
            return text;
        }
        for (id, path) in self.roots.iter().filter(|(id, _)| *id != "data") {
            text.push_str(&format!("  root {id} is at {}\n", path.display()));
        }
        let options = iter::once(format!("--datadir={}", self.target.display()));
        let options = for_shell(options.chain(self.start_options.iter().cloned()));
        text.push_str(&format!("  a server starts on it with: {options}\n"));
        if let Some(point) = &self.point {
            text.push_str(&at_point(point));
        }
        if let Some(seeding) = &self.replica {
            text.push_str(&as_replica(seeding, &self.target, "backed up"));
        }
        text
    }
}

impl Answer for OntoReport {
    const SCHEMA: &'static str = "evenkeel/restore-onto/1";

    fn text(&self) -> String {
        let target = self.target.display();
        let mut text = format!(
            "generation {}: {} ({}, of {}) over {target} ({})\n",
            self.generation,
            self.volume,
            units::bytes(self.bytes_logical),
            self.source,
            units::bytes(self.bytes_target),
        );
        if self.executed {
            text.push_str(&format!(
                "  {} differed and were written in {}\n",
                units::bytes(self.bytes_written),
                units::duration(Duration::from_secs_f64(self.seconds)),
            ));
        } else {
            text.push_str(&format!(
                "  what {target} holds now would be lost\nonly a plan: add --execute to do it\n"
            ));
        }
        text
    }
}

/// Says which point was reached.
fn at_point(point: &PointReport) -> String {
    let mut text = format!(
        "  {} applied, from {} to {}\n",
        units::count(point.transactions, "transaction"),
        point.from,
        point.to
    );
    for seam in &point.seams {
        text.push_str(&format!(
            "  from {} to {}, after {}\n",
            seam.from, seam.to, seam.after
        ));
    }
    let mut line = |what: &str, one: &Option<Transaction>, none: &str| {
        let reported = one.as_ref().map_or_else(|| none.to_owned(), transaction);
        text.push_str(&format!("  {what}: {reported}\n"));
    };
    line("last applied", &point.last_applied, "none");
    line(
        "first not applied",
        &point.first_not_applied,
        "none, the archive ends there",
    );
    for one in &point.unmade {
        let what = match one.why {
            Why::Library => {
                "left out, because no library is loaded here: run it on the restored server"
            }
            Why::File => "reads a file on the source, and returns NULL here: check the result",
        };
        text.push_str(&format!(
            "  not replayed as on the source: {} at {}\n    {what}\n",
            one.statement, one.at
        ));
    }
    if let Some(two) = &point.two_places {
        text.push_str(&format!(
            "  times in the log go backward around the point: {} earlier transactions between {} \
             and {}; used the {} position\n",
            two.earlier, two.first, two.last, two.taken
        ));
    }
    text
}

fn transaction(one: &Transaction) -> String {
    let zone = jiff::tz::TimeZone::system();
    let time = one.time.map(|time| {
        let zoned = time.to_zoned(zone);
        format!(" of {}", zoned.strftime("%Y-%m-%d %H:%M:%S"))
    });
    let gtid = one.gtid.as_ref().map(|gtid| format!("{gtid} "));
    let (gtid, time) = (gtid.unwrap_or_default(), time.unwrap_or_default());
    format!("{gtid}at {}{time}", one.at)
}

/// Says how the server becomes a replica whose files were restored, or came otherwise (`done`).
pub(super) fn as_replica(seeding: &Seeding, target: &Path, done: &str) -> String {
    let whose = match seeding.of {
        "source" => "of the same source".to_owned(),
        _ => format!("of the server that was {done}"),
    };
    let mut text = format!("to make it a new replica {whose}:\n");
    for name in &seeding.remove {
        text.push_str(&format!("  remove {}\n", target.join(name).display()));
    }
    text.push_str(&format!(
        "  start it with these options as well: {}\n  and run there:\n",
        seeding.start_options.join(" ")
    ));
    for statement in &seeding.statements {
        text.push_str(&format!("    {statement}\n"));
    }
    for note in &seeding.notes {
        text.push_str(&format!("  note: {note}\n"));
    }
    text
}

/// Says how much was read, and what it would take to be sure.
fn sampled(sample: &SampleReport) -> String {
    let (checked, total) = (sample.bytes_checked, sample.bytes_total);
    let percent = 100.0 * checked as f64 / total.max(1) as f64;
    let which = match (sample.part, sample.parts, sample.seed) {
        (Some(part), Some(of), _) => format!("part {part} of {of}; the other parts cover the rest"),
        (_, _, Some(seed)) => format!("--seed {seed} reads the same again"),
        _ => String::new(),
    };
    let parts = match sample.parts {
        Some(of) => of,
        None => (1.0 / sample.share.max(0.001)).ceil() as u32,
    };
    format!(
        "  a sample: all metadata, and {} of {} of content ({percent:.1} %); {which}\n  \
         such a sample finds damage to a single frame with a probability of {percent:.1} %; \
         all of --part 1/{parts} to {parts}/{parts}, or a run without a sample, always find it\n",
        units::bytes(checked),
        units::bytes(total),
    )
}

/// What `verify` found.
#[derive(Debug, Serialize)]
pub struct VerifyAnswer {
    /// Whether nothing was found.
    pub sound: bool,
    /// What reading found.
    #[serde(flatten)]
    pub read: VerifyReport,
    /// How long reading took.
    pub seconds: f64,
    /// What starting a server found, when asked for.
    pub boot: Option<BootReport>,
}

impl Answer for VerifyAnswer {
    const SCHEMA: &'static str = "evenkeel/verify/1";

    fn text(&self) -> String {
        let generations: Vec<String> = self.read.generations.iter().map(u32::to_string).collect();
        let mut text = format!(
            "generation {}: {}, {} read in {}: {}\n",
            generations.join(", "),
            units::count(self.read.blocks, "block"),
            units::bytes(self.read.bytes_read),
            units::duration(Duration::from_secs_f64(self.seconds)),
            if self.read.findings.is_empty() {
                "sound"
            } else {
                "DAMAGED"
            },
        );
        if self.read.log_segments > 0 {
            text.push_str(&format!(
                "  binary logs: {} by name and order, {} read\n",
                units::count(self.read.log_segments, "segment"),
                self.read.log_segments_read
            ));
        }
        for finding in &self.read.findings {
            text.push_str(&format!("  {}\n", sentence(finding)));
        }
        if let Some(sample) = &self.read.sample {
            text.push_str(&sampled(sample));
        }
        for what in &self.read.unchecked {
            text.push_str(&format!("  NOT CHECKED: {what}\n"));
        }
        for note in &self.read.notes {
            text.push_str(&format!("  note: {note}\n"));
        }
        if let Some(boot) = &self.boot {
            text.push_str(&format!(
                "generation {}: {} {}, {} checked: {}\n",
                boot.generation,
                boot.server,
                boot.recovery_seconds.map_or_else(
                    || "DID NOT START".to_owned(),
                    |seconds| {
                        let took = units::duration(Duration::from_secs_f64(seconds));
                        format!("started after {took} of recovery")
                    }
                ),
                units::count(boot.tables_checked, "table"),
                if boot.proven {
                    "restorable"
                } else {
                    "NOT PROVEN"
                },
            ));
            match boot.tables_recorded {
                Some(tables) => text.push_str(&format!(
                    "  compared with the generation's list of {}\n",
                    units::count(tables, "table")
                )),
                None if boot.recovery_seconds.is_some() => text.push_str(
                    "  NOT COMPARED: the generation has no list of its tables (an earlier \
                     evenkeel made it, or MySQL was stopped)\n",
                ),
                None => {}
            }
            for problem in &boot.problems {
                text.push_str(&format!("  {problem}\n"));
            }
        }
        text
    }
}
