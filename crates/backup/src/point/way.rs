//! The ways from a generation on: its own history, and those of servers that took over.

use super::base::{Base, order};
use crate::archive::LogPosition;
use evenkeel_binlog::GtidSet;
use evenkeel_repository::logs::{Link, Timeline};

/// More servers than that never took over from each other.
const LEGS_MAX: usize = 64;

/// A stretch of one history on the way to a point.
#[derive(Debug, Clone)]
pub(crate) struct Leg {
    pub(crate) timeline: Timeline,
    /// Where it begins: at the generation, or at the first byte of a file.
    pub(crate) from: LogPosition,
    /// Up to where it counts, if another leg follows.
    pub(crate) until: Option<LogPosition>,
    /// By what it was reached.
    pub(crate) link: Option<Link>,
    /// What was executed before it, which is not applied again. Known once the legs before were read.
    pub(crate) known: Option<GtidSet>,
    /// Where it ends between transactions, if another leg follows. Known once it was read.
    pub(crate) whole: Option<u64>,
}

/// Returns all ways, the one through the newest server first. Through others' histories first: where
/// one server took over from another, what that one still wrote is not what everybody else saw.
pub(super) fn ways(base: &Base, known: &[Timeline]) -> Vec<Vec<Leg>> {
    let first = Leg {
        timeline: base.timeline.clone(),
        from: base.at.clone(),
        until: None,
        link: None,
        known: None,
        whole: None,
    };
    let mut all = Vec::new();
    resume(vec![first], known, &mut all);
    all
}

fn resume(way: Vec<Leg>, known: &[Timeline], all: &mut Vec<Vec<Leg>>) {
    let Some(last) = way.last().filter(|_| way.len() < LEGS_MAX) else {
        return;
    };
    let is_new = |one: &Timeline| {
        let same = |leg: &Leg| leg.timeline.source == one.source && leg.timeline.id == one.id;
        !way.iter().any(same)
    };
    let mut next: Vec<(&Timeline, &Link)> = Vec::new();
    for timeline in known.iter().filter(|one| is_new(one)) {
        let links = timeline.follows.iter().filter(|link| {
            let begin = LogPosition {
                file: link.file.clone(),
                position: 0,
            };
            link.source == last.timeline.source
                && link.timeline == last.timeline.id
                && order(&link.after) >= order(&last.from)
                && timeline.has(&begin)
        });
        next.extend(links.map(|link| (timeline, link)));
    }
    // A history's name begins with its time.
    next.sort_by(|a, b| (&b.0.id, order(&b.1.after)).cmp(&(&a.0.id, order(&a.1.after))));
    for (timeline, link) in next {
        let mut longer = way.clone();
        if let Some(last) = longer.last_mut() {
            last.until = Some(link.after.clone());
        }
        longer.push(Leg {
            timeline: timeline.clone(),
            from: LogPosition {
                file: link.file.clone(),
                position: 4,
            },
            until: None,
            link: Some(link.clone()),
            known: None,
            whole: None,
        });
        resume(longer, known, all);
    }
    all.push(way);
}
