//! Answers of `replica resync`.

use crate::show::answers::Answer;
use crate::show::obeyed::is_obeyed;
use evenkeel_op::units;
use evenkeel_replica::resync::{ResyncPlan, ResyncReport};
use std::time::Duration;

/// Bytes of a block.
const BLOCK: u64 = 64 << 10;

impl Answer for ResyncPlan {
    const SCHEMA: &'static str = "evenkeel/replica-resync/1";

    fn text(&self) -> String {
        let mut text = plan(self);
        text.push_str("only a plan: add --execute to do it\n");
        plain(&text)
    }
}

impl Answer for ResyncReport {
    const SCHEMA: &'static str = "evenkeel/replica-resync/1";

    fn text(&self) -> String {
        let plan = &self.plan;
        let mut text = format!(
            "{} is a replica of {} again, made from {}, in {}\n  {} sent; {} were there; the sibling's SQL thread \
             stopped for {}\n",
            plan.datadir.display(),
            plan.source,
            plan.sibling,
            seconds(self.seconds),
            units::bytes(self.bytes_sent),
            units::bytes(self.blocks_reused * BLOCK),
            seconds(self.applier_ms / 1000.0),
        );
        if let Some(at) = &self.executed_to {
            text.push_str(&format!("  caught up: {}:{}\n", at.file, at.position));
        }
        text.push_str(&match &self.old_kept_at {
            Some(path) => format!("  the old files are in {}\n", path.display()),
            None => "  the old files were removed\n".to_owned(),
        });
        text.push_str(&format!(
            "  its rows were not compared with the source's: {}\n",
            self.check_with
        ));
        plain(&text)
    }
}

fn plan(plan: &ResyncPlan) -> String {
    let mut text = format!(
        "make {} new from {}, as a replica of {}\n",
        plan.datadir.display(),
        plan.sibling,
        plan.source
    );
    text.push_str(&match plan.runs {
        true => format!("stop and start the server: {}\n", plan.server),
        false => format!("no server runs on it; start it: {}\n", plan.server),
    });
    text.push_str(&format!(
        "the new files are prepared in {}: {} are free there, the old files have {}\n",
        plan.beside.display(),
        units::bytes(plan.bytes_free),
        units::bytes(plan.bytes_old)
    ));
    text.push_str(match plan.keeps_old {
        true => "the old files are kept\n",
        false => "the old files are removed in the end\n",
    });
    if let Some(what) = &plan.interrupted {
        text.push_str(&format!("{what}\n"));
    }
    for note in &plan.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

fn seconds(seconds: f64) -> String {
    units::duration(Duration::from_secs_f64(seconds))
}

/// What servers say, as text and not as what a terminal obeys.
fn plain(text: &str) -> String {
    text.replace(|letter| letter != '\n' && is_obeyed(letter), " ")
}
