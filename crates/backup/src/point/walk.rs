//! What a walk along archived logs sees: what was executed, where the point is, what comes behind it.

use super::base::{Base, order};
use super::log::Item;
use super::look::{Look, seconds};
use super::reached::Reached;
use super::report::{PointReport, Seam};
use super::transaction::Transaction;
use super::two_places::{TimesGoBack, choose};
use super::typed::Point;
use super::unmade::Unmade;
use super::way::Leg;
use crate::archive::LogPosition;
use evenkeel_binlog::{Gtid, GtidSet};
use evenkeel_op::{Error, ErrorKind, Result};

/// What a generation and a point are to each other.
pub(super) enum Verdict {
    Found(Box<PointReport>, (bool, bool), Vec<Leg>),
    /// The generation is of a later moment, or that cannot be ruled out.
    TooLate,
    /// The archive does not reach so far without a gap, or the transaction is not in it.
    NotThere(Error),
}

/// What was seen on the way.
pub(super) struct Walk<'a> {
    point: &'a Point,
    so_far: Reached,
    /// Where the point is, once it is reached.
    cut: Option<LogPosition>,
    /// What is seen behind it, where it is a time.
    look: Option<Look>,
    next: Option<Transaction>,
    /// Everything that was executed so far; nothing where the log does not say so.
    pub(super) known: Option<GtidSet>,
    /// Which leg is walked.
    leg: usize,
    /// Why a leg does not continue from those before.
    pub(super) wrong: Option<Error>,
    seams: Vec<Seam>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(base: &Base, point: &'a Point) -> Self {
        let is_at = matches!(point, Point::Position(place) if *place == base.at);
        Self {
            point,
            so_far: Reached::at(base.at.clone()),
            cut: is_at.then(|| base.at.clone()),
            look: None,
            next: None,
            known: None,
            leg: 0,
            wrong: None,
            seams: Vec::new(),
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.cut.is_some()
    }

    /// Begins a leg. What was walked until here has to be what its link says.
    pub(super) fn enter(&mut self, number: usize, leg: &Leg) -> Result<()> {
        self.leg = number;
        let Some(link) = &leg.link else {
            return Ok(());
        };
        let linked: GtidSet = link.gtids.parse()?;
        let is_it = |known: &GtidSet| match linked.lasts().is_empty() {
            true => *known == linked,
            // A segment does not say which other servers wrote, if its archive began with it.
            false => known.lasts() == linked.lasts(),
        };
        if !self.known.as_ref().is_some_and(is_it) {
            return Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "the log of {} does not continue the transactions archived from {} up to {}",
                    leg.timeline.source, link.source, link.after
                ),
            ));
        }
        self.seams.push(Seam {
            from: link.source.clone(),
            after: link.after.clone(),
            to: leg.timeline.source.clone(),
        });
        Ok(())
    }

    /// Notes which transactions were executed when a file began.
    fn executed(&mut self, set: GtidSet) -> bool {
        match &self.known {
            Some(known) if self.leg > 0 && !set.is_subset(known) => {
                self.wrong = Some(Error::refused(format!(
                    "{} is missing between the logs of two servers",
                    set.without(known)
                )));
                false
            }
            Some(_) if self.leg > 0 => true,
            _ => {
                self.known = Some(set);
                true
            }
        }
    }

    /// Notes a transaction; returns whether it was executed before.
    fn is_again(&mut self, gtid: Option<Gtid>) -> bool {
        match (gtid, &mut self.known) {
            (Some(gtid), Some(known)) => {
                let again = self.leg > 0 && known.contains(&gtid);
                known.add(&gtid);
                again
            }
            (None, _) if self.leg > 0 => {
                self.wrong = Some(Error::refused(
                    "the log after another server's log has a transaction without a GTID",
                ));
                true
            }
            _ => {
                self.known = None;
                false
            }
        }
    }

    /// Takes what comes next; returns whether to continue.
    pub(super) fn take(&mut self, item: Item) -> Result<bool> {
        let (transaction, clock, unmade) = match item {
            Item::Executed(set) => return Ok(self.executed(set)),
            Item::Earlier(gtid) => {
                self.is_again(gtid);
                return Ok(self.wrong.is_none());
            }
            Item::Transaction(transaction, gtid, clock, unmade) => {
                if self.is_again(gtid) {
                    return Ok(self.wrong.is_none());
                }
                (transaction, clock, unmade)
            }
            Item::Between { at, time, begins } => {
                if let Some(look) = self.look.as_mut().filter(|_| begins) {
                    look.file_begun(time);
                    return Ok(!look.is_over());
                }
                if self.cut.is_none() && self.stops_between(&at, time) {
                    self.cut = Some(at);
                }
                return Ok(true);
            }
        };
        Ok(self.step(transaction, clock, unmade))
    }

    /// Takes a transaction; returns whether to continue.
    fn step(&mut self, transaction: Transaction, clock: Option<u32>, unmade: Vec<Unmade>) -> bool {
        if self.look.is_some() {
            return self.look_on(transaction, clock, unmade);
        }
        let stops = self.stops_before(&transaction);
        // Who began a file, or a replica that lags, need not have the time of what is in it.
        if matches!(self.point, Point::Time(_)) && !stops {
            self.cut = None;
        }
        if self.cut.is_none() && stops {
            self.cut = Some(transaction.at.clone());
        }
        match (&self.cut, self.point) {
            (Some(cut), Point::Time(point)) => {
                let mut first = self.so_far.clone();
                first.to = cut.clone();
                first.next = Some(transaction.clone());
                self.look = Some(Look::new(point.as_second(), first, &transaction));
                self.look_on(transaction, clock, unmade)
            }
            (Some(_), _) => {
                self.next = Some(transaction);
                false
            }
            (None, _) => {
                if self.stops_after(&transaction) {
                    self.cut = Some(LogPosition {
                        file: transaction.at.file.clone(),
                        position: transaction.end,
                    });
                }
                self.so_far.add(transaction, unmade, self.leg);
                true
            }
        }
    }

    /// Behind a time: nothing of it is applied, unless times go back.
    fn look_on(
        &mut self,
        transaction: Transaction,
        clock: Option<u32>,
        unmade: Vec<Unmade>,
    ) -> bool {
        self.so_far.add(transaction.clone(), unmade, self.leg);
        let Some(look) = &mut self.look else {
            return true;
        };
        look.take(&transaction, &self.so_far);
        if let Some(clock) = clock {
            look.clock(clock);
        }
        !look.is_over()
    }

    fn stops_between(&self, at: &LogPosition, time: u32) -> bool {
        match self.point {
            Point::Time(point) => i64::from(time) >= point.as_second(),
            Point::Position(place) => order(at) > order(place),
            Point::After(_) | Point::Before(_) => false,
        }
    }

    fn stops_before(&self, transaction: &Transaction) -> bool {
        match self.point {
            Point::Time(point) => seconds(transaction) >= point.as_second(),
            Point::Position(place) => {
                let end = LogPosition {
                    file: transaction.at.file.clone(),
                    position: transaction.end,
                };
                order(&end) > order(place)
            }
            Point::Before(gtid) => transaction.gtid.as_deref() == Some(&gtid.to_string()),
            Point::After(_) => false,
        }
    }

    fn stops_after(&self, transaction: &Transaction) -> bool {
        match self.point {
            Point::After(gtid) => transaction.gtid.as_deref() == Some(&gtid.to_string()),
            Point::Position(place) => {
                transaction.at.file == place.file && transaction.end == place.position
            }
            Point::Time(_) | Point::Before(_) => false,
        }
    }

    /// Says what came of it.
    ///
    /// Errors: `Refused` for a time that is two places, when nobody chose.
    pub(super) fn verdict(
        mut self,
        base: &Base,
        mut legs: Vec<Leg>,
        go_back: TimesGoBack,
    ) -> Result<Verdict> {
        let cut = match self.cut.take() {
            Some(cut) => cut,
            None if self.is_before_the_end(&legs) => self.so_far.to.clone(),
            None => return Ok(Verdict::NotThere(self.beyond(&legs))),
        };
        let (reached, two_places) = match self.look.take() {
            Some(look) => choose(look, go_back)?,
            None => {
                self.so_far.to = cut;
                self.so_far.next = self.next;
                (self.so_far, None)
            }
        };
        self.seams.truncate(reached.leg);
        legs.truncate(reached.leg + 1);
        Ok(Verdict::Found(
            Box::new(PointReport {
                from: base.at.clone(),
                to: reached.to,
                transactions: reached.transactions,
                last_applied: reached.last,
                first_not_applied: reached.next,
                seams: self.seams,
                two_places,
                unmade: reached.unmade,
            }),
            reached.gtids,
            legs,
        ))
    }

    /// Whether a place with no transaction behind it is archived: events of none may follow the last one, and
    /// `binlog list` names the end of those.
    fn is_before_the_end(&self, legs: &[Leg]) -> bool {
        let end = legs.first().and_then(|leg| leg.timeline.end());
        match (self.point, end) {
            (Point::Position(place), Some(end)) => order(place) <= order(&end),
            _ => false,
        }
    }

    /// The archive does not reach so far.
    fn beyond(&self, legs: &[Leg]) -> Error {
        let last = legs.get(self.so_far.leg);
        let last = last.and_then(|leg| leg.timeline.end());
        let reach = last.map_or_else(String::new, |end| end.to_string());
        let error = Error::refused(match self.point {
            Point::After(gtid) | Point::Before(gtid) => {
                format!("the archive has no transaction {gtid}: it ends at {reach}")
            }
            Point::Time(_) | Point::Position(_) => {
                format!("the point is after the end of the archive, {reach}")
            }
        });
        let last = self.so_far.last.as_ref().and_then(|last| last.time);
        let error = match last {
            Some(time) => error.hint(format!("its last transaction was committed at {time}")),
            None => error,
        };
        error.hint(
            "name an earlier point, or archive what the server still has: 'evenkeel binlog archive'",
        )
    }
}
