//! Answers of `binlog`.

use super::Answer;
use evenkeel_backup::archive::{
    ArchiveList, ArchiveReport, Gap, Link, LogPosition, Reach, TimelineList,
};
use evenkeel_op::units;
use serde::Serialize;

impl Answer for ArchiveReport {
    const SCHEMA: &'static str = "evenkeel/binlog-archive/1";

    fn text(&self) -> String {
        let to = self
            .to
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let mut text = match &self.from {
            None => format!("{}: nothing new, archived up to {to}\n", self.source),
            Some(from) => format!(
                "{}: {from} to {to}: {}, {} stored as {}\n",
                self.source,
                units::count(self.transactions, "transaction"),
                units::bytes(self.bytes),
                units::bytes(self.bytes_stored),
            ),
        };
        for gap in &self.gaps {
            text.push_str(&missing(gap));
        }
        text.extend(self.follows.as_ref().map(following));
        if let Some(why) = &self.does_not_follow {
            text.push_str(&format!("    {why}\n"));
        }
        text
    }
}

/// What `binlog extract` wrote.
#[derive(Debug, Serialize)]
pub struct ExtractAnswer {
    /// Names of the files.
    pub files: Vec<String>,
}

impl Answer for ExtractAnswer {
    const SCHEMA: &'static str = "evenkeel/binlog-extract/1";

    fn text(&self) -> String {
        self.files.iter().map(|name| format!("{name}\n")).collect()
    }
}

impl Answer for ArchiveList {
    const SCHEMA: &'static str = "evenkeel/binlog-list/1";

    fn text(&self) -> String {
        let mut text = String::new();
        for source in &self.sources {
            text.push_str(&format!("{}\n", source.source));
            for timeline in &source.timelines {
                text.push_str(&line(timeline));
            }
        }
        if text.is_empty() {
            text.push_str("no binary log is archived here\n");
        }
        text
    }
}

fn line(timeline: &TimelineList) -> String {
    let place = |place: &Option<LogPosition>| match place {
        Some(place) => format!("{place}"),
        None => String::new(),
    };
    let time = |time: &Option<jiff::Timestamp>| match time {
        Some(time) => {
            let zoned = time.to_zoned(jiff::tz::TimeZone::system());
            zoned.strftime("%Y-%m-%d %H:%M:%S").to_string()
        }
        None => "-".to_owned(),
    };
    let mut text = format!(
        "  {}  {} to {}  {} to {}  {} in {}{}\n",
        timeline.timeline,
        place(&timeline.from),
        place(&timeline.to),
        time(&timeline.first_time),
        time(&timeline.last_time),
        units::bytes(timeline.bytes),
        units::count(timeline.segments, "segment"),
        match &timeline.last_gtid {
            Some(gtid) => format!("  {gtid}"),
            None => String::new(),
        },
    );
    for link in &timeline.follows {
        text.push_str(&following(link));
    }
    for reach in &timeline.points {
        text.push_str(&possible(reach));
    }
    for gap in &timeline.gaps {
        text.push_str(&missing(gap));
    }
    text
}

fn following(link: &Link) -> String {
    format!(
        "    continues {} after {}, with {}\n",
        link.source, link.after, link.file
    )
}

fn possible(reach: &Reach) -> String {
    let since = reach.since.to_zoned(jiff::tz::TimeZone::system());
    format!(
        "    any point from generation {} ({}, {}) to {}\n",
        reach.generation,
        since.strftime("%Y-%m-%d %H:%M:%S"),
        reach.from,
        reach.to
    )
}

fn missing(gap: &Gap) -> String {
    let why = gap.why.as_ref().map(|why| format!(": {why}"));
    let why = why.unwrap_or_default();
    format!(
        "    MISSING between {} and {}{why}\n",
        gap.after, gap.before
    )
}
