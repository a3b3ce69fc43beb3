//! What a walk along archived logs sees: what was executed, where the point is, what comes behind it.

use super::find::{Base, Verdict, order};
use super::log::Item;
use super::way::Leg;
use super::{Point, PointReport, Seam, Transaction};
use crate::archive::Place;
use evenkeel_binlog::{Gtid, GtidSet};
use evenkeel_op::{Error, ErrorKind, Result};

/// What was seen on the way.
pub(super) struct Walk<'a> {
    point: &'a Point,
    transactions: u64,
    last: Option<Transaction>,
    next: Option<Transaction>,
    /// Where the point is, once it is reached.
    cut: Option<Place>,
    /// The end of what was seen, and its time.
    end: Place,
    end_time: u32,
    gtids: (bool, bool),
    /// Everything that was executed so far; nothing where the log does not say so.
    pub(super) known: Option<GtidSet>,
    /// Which leg is walked, and in which the last transaction is.
    leg: usize,
    pub(super) last_leg: usize,
    /// Why a leg does not go on from those before.
    pub(super) wrong: Option<Error>,
    seams: Vec<Seam>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(base: &Base, point: &'a Point) -> Self {
        let mut walk = Self {
            point,
            transactions: 0,
            last: None,
            next: None,
            cut: None,
            end: base.at.clone(),
            end_time: 0,
            gtids: (false, false),
            known: None,
            leg: 0,
            last_leg: 0,
            wrong: None,
            seams: Vec::new(),
        };
        if matches!(point, Point::Position(place) if *place == base.at) {
            walk.cut = Some(base.at.clone());
        }
        walk
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
                    "the log of {} goes on from other transactions than those that are archived of \
                     {} up to {}",
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
                    "a transaction without a GTID is in the log behind another server's",
                ));
                true
            }
            _ => {
                self.known = None;
                false
            }
        }
    }

    /// Takes what comes next; returns whether to go on.
    pub(super) fn take(&mut self, item: Item) -> Result<bool> {
        let transaction = match item {
            Item::Executed(set) => return Ok(self.executed(set)),
            Item::Earlier(gtid) => {
                self.is_again(gtid);
                return Ok(self.wrong.is_none());
            }
            Item::Transaction(transaction, gtid) => {
                if self.is_again(gtid) {
                    return Ok(self.wrong.is_none());
                }
                transaction
            }
            Item::Between { at, time } => {
                if self.cut.is_none() && self.stops_between(&at, time) {
                    self.cut = Some(at);
                }
                return Ok(true);
            }
        };
        if self.cut.is_none() && self.stops_before(&transaction) {
            self.cut = Some(transaction.at.clone());
        }
        if self.cut.is_some() {
            self.next = Some(transaction);
            return Ok(false);
        }
        self.transactions += 1;
        self.last_leg = self.leg;
        match transaction.gtid {
            Some(_) => self.gtids.0 = true,
            None => self.gtids.1 = true,
        }
        self.end = Place {
            file: transaction.at.file.clone(),
            position: transaction.end,
        };
        self.end_time = transaction.time.map_or(0, |time| time.as_second() as u32);
        if self.stops_after(&transaction) {
            self.cut = Some(self.end.clone());
        }
        self.last = Some(transaction);
        Ok(true)
    }

    fn stops_between(&self, at: &Place, time: u32) -> bool {
        match self.point {
            Point::Time(point) => i64::from(time) >= point.as_second(),
            Point::Position(place) => order(at) > order(place),
            Point::After(_) | Point::Before(_) => false,
        }
    }

    fn stops_before(&self, transaction: &Transaction) -> bool {
        match self.point {
            Point::Time(point) => {
                let time = transaction.time.map_or(0, |time| time.as_second());
                time >= point.as_second()
            }
            Point::Position(place) => {
                let end = Place {
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

    pub(super) fn verdict(mut self, base: &Base, reach: &str, legs: Vec<Leg>) -> Verdict {
        self.seams.truncate(self.last_leg);
        let Some(to) = self.cut else {
            let what = match self.point {
                Point::After(gtid) | Point::Before(gtid) => {
                    format!("no archived transaction is {gtid}: the archive reaches to {reach}")
                }
                Point::Time(_) | Point::Position(_) => {
                    format!("the point is beyond the archive, which reaches to {reach}")
                }
            };
            let time = jiff::Timestamp::from_second(i64::from(self.end_time)).ok();
            let time = time.filter(|_| self.end_time > 0);
            let last = time.map(|time| format!("its last transaction is of {time}"));
            let error = Error::new(ErrorKind::Refused, what);
            return Verdict::NotThere(match last {
                Some(last) => error.hint(last),
                None => error,
            });
        };
        Verdict::Found(
            Box::new(PointReport {
                from: base.at.clone(),
                to,
                transactions: self.transactions,
                last_applied: self.last,
                first_not_applied: self.next,
                seams: self.seams,
            }),
            self.gtids,
            legs,
        )
    }
}
