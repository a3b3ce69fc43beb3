//! The repair of one failure. Every step is in the journal before it is done, and whatever happens, threads that were
//! stopped run again.

use super::class::HealClass;
use super::journal::{BegunRepair, HealEvent, HealJournal, HealOutcome, user};
use super::known::{channel_of, key_of, place_of};
use super::lease::SourceLease;
use super::prove::{self, Proof, is_stop};
use super::treated::{Healed, Treated};
use super::{Fence, HealRequest, events, rows};
use crate::diagnose::{Diagnosis, Failure};
use crate::survey::{Facts, Target};
use crate::topology::source_of;
use evenkeel_op::{Cancel, Error, ErrorKind, Result, Run};
use evenkeel_server::connect::server_behind;
use evenkeel_server::replication::{Channel, Halted, ReplicaLease, ThreadState};
use std::time::{Duration, Instant};

/// How long a statement may take.
pub(super) const STEP: Duration = Duration::from_secs(30);
/// When the watchdog starts threads that were stopped.
const HELD_MAX: Duration = Duration::from_secs(120);
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// A repair that may be made.
pub(super) struct Job<'a> {
    pub(super) targets: &'a [Target],
    pub(super) request: &'a HealRequest,
    pub(super) diagnosis: &'a Diagnosis,
    pub(super) treated: &'a Treated,
}

impl Job<'_> {
    pub(super) fn replica(&self) -> &Target {
        &self.targets[self.treated.finding.server]
    }

    pub(super) fn facts(&self) -> Result<&Facts> {
        let answered = &self.diagnosis.servers[self.treated.finding.server];
        let facts = answered.facts.as_ref();
        facts.map_err(|_| Error::failed(format!("{} does not answer", answered.name)))
    }

    pub(super) fn channel(&self) -> Result<&Channel> {
        let channel = channel_of(self.facts()?, &self.treated.finding);
        channel.ok_or_else(|| Error::failed("the failure is not of a channel"))
    }

    pub(super) fn source(&self) -> Result<&Target> {
        let server = self.treated.finding.server;
        let at = source_of(&self.diagnosis.servers, server, self.channel()?);
        at.map(|at| &self.targets[at])
            .ok_or_else(|| Error::failed("its source was not asked"))
    }

    pub(super) fn statements(&self) -> Vec<String> {
        let own = self.treated.steps.iter();
        let own = own.filter(|step| step.on == self.treated.server);
        own.filter_map(|step| step.sql.clone()).collect()
    }

    fn begun(&self, id: &str, class: HealClass) -> Result<BegunRepair> {
        let (facts, channel) = (self.facts()?, self.channel()?);
        let place = place_of(facts, channel);
        Ok(BegunRepair {
            id: id.to_owned(),
            user: user(),
            server: self.treated.server.clone(),
            key: key_of(facts),
            channel: channel.name.clone(),
            failure: self.treated.finding.failure.name().to_owned(),
            class,
            evidence: self.treated.finding.evidence.clone(),
            executed: place.executed,
            gtid: place.gtid,
            steps: self.statements(),
        })
    }
}

/// Repairs it, with the lease of its source. What goes wrong with it is in the answer.
///
/// Errors: those of the journal; a request to stop.
pub(super) fn heal_one(
    job: &Job<'_>,
    mut lease: SourceLease,
    journal: &mut HealJournal,
    fence: &mut Option<&mut dyn Fence>,
    run: Run<'_>,
) -> Result<Healed> {
    let begun = Instant::now();
    let class = job.treated.decision.class;
    let class = class.ok_or_else(|| Error::failed("nothing repairs this"))?;
    let id = journal.new_id();
    let name = &job.treated.server;
    run.progress.note(format!(
        "{name}: {}: {} ({id})",
        job.treated.finding.failure.name(),
        class.word()
    ));
    journal.add(HealEvent::Begun(Box::new(job.begun(&id, class)?)))?;
    fail::fail_point!("heal::begun");
    let mut work = Work {
        job,
        id: &id,
        lease: &mut lease,
        journal,
        run,
    };
    let done = work.drain(fence).and_then(|()| match class {
        HealClass::Restart => work.restart().and_then(|()| work.prove()),
        HealClass::RelayReset => work.relay_reset().and_then(|()| work.prove()),
        HealClass::RowRepair => match job.treated.finding.failure {
            Failure::RowsDiffer => rows::repair(&mut work),
            _ => events::repair(&mut work),
        },
        HealClass::Resync => Err(Error::refused("it runs on the replica's host only")),
    });
    let (proof, stopped) = match done {
        Ok(proof) => (proof, None),
        Err(error) => {
            let proof = Proof::new(HealOutcome::Failed, error.chain());
            (proof, is_stop(error.kind()).then_some(error))
        }
    };
    fail::fail_point!("heal::proved");
    journal.add(HealEvent::Ended {
        id: id.clone(),
        outcome: proof.outcome,
        why: proof.why.clone(),
    })?;
    match stopped {
        Some(error) => Err(error),
        None => Ok(Healed {
            id,
            outcome: proof.outcome,
            why: proof.why,
            seconds: begun.elapsed().as_secs_f64(),
        }),
    }
}

/// A source that answered a moment ago, and does not any more.
///
/// Errors: those of the journal.
pub(super) fn not_begun(error: &Error, journal: &mut HealJournal) -> Result<Healed> {
    let id = journal.new_id();
    let why = format!(
        "the lease on the source was not to be had: {}",
        error.chain()
    );
    let outcome = HealOutcome::Failed;
    journal.add(HealEvent::Ended {
        id: id.clone(),
        outcome,
        why: why.clone(),
    })?;
    Ok(Healed {
        id,
        outcome,
        why,
        seconds: 0.0,
    })
}

/// A repair that is being made.
pub(super) struct Work<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) id: &'a str,
    lease: &'a mut SourceLease,
    pub(super) journal: &'a mut HealJournal,
    pub(super) run: Run<'a>,
}

impl Work<'_> {
    /// Fails if nothing more may be done: it should end, or another healer may be at work.
    pub(super) fn may_go_on(&mut self) -> Result<()> {
        self.run.cancel.check()?;
        self.lease.check()
    }

    /// Writes a step down, if nothing forbids it by now.
    pub(super) fn step(&mut self, does: &str) -> Result<()> {
        self.may_go_on()?;
        self.journal.add(HealEvent::Step {
            id: self.id.to_owned(),
            on: self.job.treated.server.clone(),
            does: does.to_owned(),
        })
    }

    fn drain(&mut self, fence: &mut Option<&mut dyn Fence>) -> Result<()> {
        let Some(fence) = fence else { return Ok(()) };
        let server = &self.job.treated.server;
        self.journal.add(HealEvent::Drained {
            id: self.id.to_owned(),
            server: server.clone(),
        })?;
        if let Err(error) = fence.drain(server, self.id) {
            // It may have been obeyed all the same.
            if let Ok(false) = fence.is_out(server, Some(self.id)) {
                self.journal.add(HealEvent::Released {
                    id: self.id.to_owned(),
                    server: server.clone(),
                })?;
            }
            return Err(error);
        }
        fail::fail_point!("heal::drained");
        pause(self.job.request.drain_wait, self.run.cancel)
    }

    /// Takes the lease of the replica, and makes sure that it is as it was seen.
    fn replica(&self) -> Result<ReplicaLease> {
        let mut replica = ReplicaLease::take(&self.job.replica().options)?;
        let then = self.job.channel()?;
        let now = replica.channel(&then.name)?;
        let state = |channel: &Channel| {
            let number = |error: &Option<(u32, String)>| error.as_ref().map(|error| error.0);
            let source = (channel.host.clone(), channel.port, channel.delay_s);
            (
                source,
                channel.receiver,
                channel.applier,
                // One that applies goes on meanwhile.
                Some(channel.executed.clone()).filter(|_| then.applier != ThreadState::Running),
                number(&channel.receiver_error),
                number(&channel.applier_error),
            )
        };
        match state(then) == state(&now) && self.is_behind(&mut replica)? {
            true => Ok(replica),
            false => Err(Error::refused(
                "it has changed since it was looked at, so nothing was done",
            )),
        }
    }

    /// Whether it is the server that was looked at: behind one address there may be another by now.
    pub(super) fn is_behind(&self, replica: &mut ReplicaLease) -> Result<bool> {
        let facts = self.job.facts()?;
        let sql = match facts.identity.uuid {
            Some(_) => "SELECT @@server_uuid",
            None => "SELECT CONCAT(@@server_id, '@', @@hostname, ':', @@port)",
        };
        Ok(replica.value(sql)? == Some(key_of(facts)))
    }

    /// Makes sure that both threads run if this ends, for as long as `limit`.
    fn halt(&self, limit: Duration) -> Result<Halted> {
        let replica = self.replica()?;
        let pid = server_behind(&self.job.replica().options);
        let program = &self.job.request.watchdog;
        let source = &self.job.source()?.options;
        replica.halt(pid, program, &self.job.channel()?.name, (source, limit))
    }

    /// Writes down that both threads run.
    fn runs(&mut self) -> Result<()> {
        self.journal.add(HealEvent::Running {
            id: self.id.to_owned(),
        })
    }

    /// Starts what stands.
    fn restart(&mut self) -> Result<()> {
        if self.job.treated.finding.failure == Failure::AppliedWithGaps {
            return self.close_gaps();
        }
        let mut replica = self.replica()?;
        fail::fail_point!("heal::leased");
        for sql in self.job.statements() {
            self.step(&sql)?;
            replica.run(&sql, STEP)?;
            fail::fail_point!("heal::stepped");
        }
        Ok(())
    }

    /// Has the SQL thread close its gaps, where it stops by itself. From its first step on, a watchdog starts both
    /// threads if this ends.
    fn close_gaps(&mut self) -> Result<()> {
        let mut halted = self.halt(HELD_MAX + self.job.request.settle)?;
        fail::fail_point!("heal::leased");
        let channel = self.job.channel()?.name.clone();
        for sql in self.job.statements() {
            self.step(&sql)?;
            if sql.contains(" UNTIL ") {
                halted.run(&sql, STEP)?;
                self.wait_until_it_stands(&mut halted, &channel)?;
            }
            fail::fail_point!("heal::stepped");
        }
        self.start(halted)
    }

    fn wait_until_it_stands(&self, halted: &mut Halted, channel: &str) -> Result<()> {
        let until = Instant::now() + self.job.request.settle;
        while halted.channel(channel)?.applier == ThreadState::Running {
            self.run.cancel.check()?;
            if Instant::now() >= until {
                let message = "the SQL thread did not come to its end in time";
                return Err(Error::new(ErrorKind::LockTimeout, message));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Has the relay logs fetched again. From its first step on, a watchdog starts both threads if this ends.
    fn relay_reset(&mut self) -> Result<()> {
        let mut halted = self.halt(HELD_MAX)?;
        let then = self.job.channel()?.clone();
        fail::fail_point!("heal::leased");
        for sql in self.job.statements() {
            self.step(&sql)?;
            if sql.starts_with("START ") {
                continue;
            }
            halted.run(&sql, STEP)?;
            // The statements that follow have the place in them.
            if sql.starts_with("STOP ") && halted.channel(&then.name)?.executed != then.executed {
                return Err(Error::refused(
                    "it has changed since it was looked at: its threads were started again",
                ));
            }
            fail::fail_point!("heal::stepped");
        }
        self.start(halted)
    }

    fn start(&mut self, halted: Halted) -> Result<()> {
        let is_started = halted.start()?;
        fail::fail_point!("heal::started");
        match is_started {
            true => self.runs(),
            false => Err(Error::refused(
                "the server was restarted, or was given another source or clients that write, meanwhile: its threads \
                 were not started",
            )),
        }
    }

    /// Waits until it is well, and compares it with its source.
    pub(super) fn prove(&mut self) -> Result<Proof> {
        let (job, run) = (self.job, self.run);
        let finding = &job.treated.finding;
        if let Some(left) = prove::wait_until_well(job.targets, finding, job.request, run)? {
            return Ok(Proof::new(HealOutcome::Failed, left));
        }
        fail::fail_point!("heal::well");
        if !job.request.compares {
            let why = "it runs; its rows were not compared";
            return Ok(Proof::new(HealOutcome::NotCompared, why));
        }
        let (source, channel) = (job.source()?, &job.channel()?.name);
        let compared = prove::compare(job.replica(), source, channel, job.request, run);
        match compared {
            Ok(proof) => Ok(proof),
            Err(error) if is_stop(error.kind()) => Err(error),
            Err(error) => {
                let why = format!("it runs; its rows were not compared: {}", error.chain());
                Ok(Proof::new(HealOutcome::NotCompared, why))
            }
        }
    }
}

fn pause(time: Duration, cancel: &Cancel) -> Result<()> {
    let until = Instant::now() + time;
    while Instant::now() < until {
        cancel.check()?;
        std::thread::sleep(LOOK.min(time));
    }
    Ok(())
}
