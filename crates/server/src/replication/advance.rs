//! Lets a stopped applier do a little more: up to one place in its source's binary log, and not a transaction more.

use super::statements::{self, Order};
use super::status::{Channel, Position, ThreadState};
use super::stop::Stopped;
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result, units};
use std::time::{Duration, Instant};

/// How often it is looked at: it stands for as long as this is not noticed.
const POLL: Duration = Duration::from_millis(10);
/// How often the watchdog is told that it goes on.
const TELL: Duration = Duration::from_secs(5);

/// Where an applier is to stand.
pub struct Advance<'a> {
    /// Its channel.
    pub channel: &'a str,
    /// The place in its source's log.
    pub to: &'a Position,
    /// How long it may stay at one place on the way: what it takes to get there depends on how far it is behind.
    pub deadline: Duration,
    /// Whether a place that it stands at is as good: only what is no transaction is between.
    pub is_as_good: &'a mut dyn FnMut(&Position) -> Result<bool>,
}

impl Stopped {
    /// Lets an applier that this run has stopped continue to a place, and stand there.
    ///
    /// What the watchdog allows begins again once it stands there.
    ///
    /// Errors: `LockTimeout` when it stayed at one place for too long; `Failed` when it stopped elsewhere. It runs again after
    /// either, once this value is dropped.
    pub fn advance(&mut self, mut advance: Advance<'_>, cancel: &Cancel) -> Result<()> {
        let (channel, to) = (advance.channel, advance.to);
        if !self.has_stopped(channel) {
            return Err(Error::refused(format!(
                "the SQL thread of channel '{channel}' does not run"
            ))
            .hint("start it first: START SLAVE SQL_THREAD"));
        }
        self.forget_where_they_stand()
            .context(|| "failed to note that the SQL thread moves")?;
        fail::fail_point!("applier::advancing");
        if !(advance.is_as_good)(&self.stand(channel)?)? {
            let sql = statements::start_until(channel, to, self.abilities());
            self.session().run(&sql)?;
            self.wait_until_there(&mut advance, cancel)?;
        }
        self.put_watchdog_off();
        self.note_where_they_stand()?;
        fail::fail_point!("applier::advanced");
        Ok(())
    }

    fn wait_until_there(&mut self, advance: &mut Advance<'_>, cancel: &Cancel) -> Result<()> {
        let channel = advance.channel;
        let (mut last, mut since, mut told) = (None, Instant::now(), Instant::now());
        loop {
            cancel.check()?;
            let now = self.look(channel)?;
            if now.executed != last {
                (last, since) = (now.executed.clone(), Instant::now());
            }
            let until = since + advance.deadline;
            let stands = now.applier == ThreadState::Stopped;
            let is_there = match &now.executed {
                Some(place) => (advance.is_as_good)(place)?,
                None => false,
            };
            match (stands, is_there) {
                (true, true) => return Ok(()),
                (true, false) => return Err(stopped_elsewhere(&now, advance.to)),
                // With nothing more to do, it does not notice that it is there.
                (false, true) => {
                    let sql = statements::applier(Order::Stop, channel, self.abilities());
                    self.run_until(vec![sql], until)?;
                }
                (false, false) => {}
            }
            if Instant::now() >= until {
                return Err(stays(&now, advance));
            }
            if told.elapsed() >= TELL && since > told {
                self.put_watchdog_off();
                told = Instant::now();
            }
            std::thread::sleep(POLL);
        }
    }

    fn stand(&mut self, channel: &str) -> Result<Position> {
        let place = self.look(channel)?.executed;
        place.ok_or_else(|| Error::failed("the replica does not say where its SQL thread is"))
    }

    fn look(&mut self, channel: &str) -> Result<Channel> {
        let abilities = self.abilities().clone();
        let all = Channel::all(self.session(), &abilities)?;
        let found = all.into_iter().find(|one| one.name == channel);
        found.ok_or_else(|| Error::failed(format!("channel '{channel}' is gone")))
    }
}

fn stays(now: &Channel, advance: &Advance<'_>) -> Error {
    let place = |place: &Position| format!("{} {}", place.file, place.position);
    let here = now.executed.as_ref().map_or("one place".into(), place);
    Error::new(
        ErrorKind::LockTimeout,
        format!(
            "the SQL thread stayed at {here} for {}, on its way to {}",
            units::duration(advance.deadline),
            place(advance.to)
        ),
    )
    .hint("find out what it waits for: evenkeel replica diagnose")
    .hint("or allow more time with --lock-deadline, if it is at a long transaction")
}

fn stopped_elsewhere(now: &Channel, to: &Position) -> Error {
    let wanted = format!("{} {}", to.file, to.position);
    let error = match &now.executed {
        Some(place) => Error::failed(format!(
            "the SQL thread stopped at {} {} instead of {wanted}",
            place.file, place.position
        )),
        None => Error::failed(format!("the SQL thread stopped before {wanted}")),
    };
    match &now.applier_error {
        Some((number, text)) => error.because(Error::failed(format!("ERROR {number}: {text}"))),
        None => error,
    }
}
