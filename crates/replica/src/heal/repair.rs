//! The repair of one failure. Every step is in the journal before it is done, and whatever happens, threads that were
//! stopped run again.

use super::class::HealClass;
use super::journal::{BegunRepair, HealEvent, HealJournal, HealOutcome, user};
use super::known::{channel_of, key_of};
use super::lease::SourceLease;
use super::prove::{self, Proof, is_stop};
use super::treated::{Healed, Treated};
use super::{Fence, HealRequest, rows};
use crate::diagnose::{Diagnosis, Failure};
use crate::survey::{Facts, Target};
use crate::topology::source_of;
use evenkeel_op::{Cancel, Error, ErrorKind, Result, Run};
use evenkeel_server::connect::server_behind;
use evenkeel_server::replication::{Channel, ReplicaLease, ThreadState};
use std::time::{Duration, Instant};

/// How long a statement may take.
const STEP: Duration = Duration::from_secs(30);
/// When the watchdog starts threads that were stopped.
const HELD_MAX: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(100);

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

    fn statements(&self) -> Vec<String> {
        let own = self.treated.steps.iter();
        let own = own.filter(|step| step.on == self.treated.server);
        own.filter_map(|step| step.sql.clone()).collect()
    }

    fn begun(&self, id: &str, class: HealClass) -> Result<BegunRepair> {
        let (facts, channel) = (self.facts()?, self.channel()?);
        let place = channel.executed.as_ref();
        Ok(BegunRepair {
            id: id.to_owned(),
            user: user(),
            server: self.treated.server.clone(),
            key: key_of(facts),
            channel: channel.name.clone(),
            failure: self.treated.finding.failure.name().to_owned(),
            class,
            evidence: self.treated.finding.evidence.clone(),
            executed: place.map(|at| format!("{}:{}", at.file, at.position)),
            gtid: facts.applied.to_string(),
            steps: self.statements(),
        })
    }
}

/// Repairs it. What goes wrong with it is in the answer.
///
/// Errors: those of the journal; `Busy` while another healer has the lease of the source; a request to stop.
pub(super) fn heal_one(
    job: &Job<'_>,
    journal: &mut HealJournal,
    fence: &mut Option<&mut dyn Fence>,
    run: Run<'_>,
) -> Result<Healed> {
    let begun = Instant::now();
    let class = job.treated.decision.class;
    let class = class.ok_or_else(|| Error::failed("nothing repairs this"))?;
    let id = journal.new_id();
    let mut lease = match SourceLease::take(&job.source()?.options) {
        Err(error) if error.kind() != ErrorKind::Busy && !is_stop(error.kind()) => {
            return not_begun(id, &error, journal);
        }
        taken => taken?,
    };
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
        HealClass::RowRepair => rows::repair(&mut work),
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
fn not_begun(id: String, error: &Error, journal: &mut HealJournal) -> Result<Healed> {
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
    /// Writes a step down, if nothing forbids it by now.
    pub(super) fn step(&mut self, does: &str) -> Result<()> {
        self.run.cancel.check()?;
        self.lease.check()?;
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
            // Nothing was taken out of use by us.
            self.journal.add(HealEvent::Released {
                id: self.id.to_owned(),
                server: server.clone(),
            })?;
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
            (
                channel.receiver,
                channel.applier,
                channel.executed.clone(),
                number(&channel.receiver_error),
                number(&channel.applier_error),
            )
        };
        match state(then) == state(&now) {
            true => Ok(replica),
            false => Err(Error::refused(
                "it has changed since it was looked at, so nothing was done",
            )),
        }
    }

    /// Starts what stands.
    fn restart(&mut self) -> Result<()> {
        let mut replica = self.replica()?;
        fail::fail_point!("heal::leased");
        let channel = self.job.channel()?.name.clone();
        for sql in self.job.statements() {
            self.step(&sql)?;
            replica.run(&sql, STEP)?;
            if sql.contains(" UNTIL ") {
                self.wait_until_it_stands(&mut replica, &channel)?;
            }
            fail::fail_point!("heal::stepped");
        }
        if self.job.treated.finding.failure == Failure::AppliedWithGaps {
            // It may have been restarted without either thread.
            let sql = replica.start_statement(&channel);
            self.step(&sql)?;
            replica.run(&sql, STEP)?;
        }
        Ok(())
    }

    fn wait_until_it_stands(&self, replica: &mut ReplicaLease, channel: &str) -> Result<()> {
        let until = Instant::now() + self.job.request.settle;
        while replica.channel(channel)?.applier == ThreadState::Running {
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
        let replica = self.replica()?;
        let target = self.job.replica();
        let channel = self.job.channel()?.name.clone();
        let start = replica.start_statement(&channel);
        let pid = server_behind(&target.options);
        let program = &self.job.request.watchdog;
        let mut halted = replica.halt(pid, program, &channel, HELD_MAX)?;
        fail::fail_point!("heal::leased");
        for sql in self.job.statements() {
            if sql.starts_with("START ") {
                continue;
            }
            self.step(&sql)?;
            halted.run(&sql, STEP)?;
            fail::fail_point!("heal::stepped");
        }
        self.step(&start)?;
        halted.start()?;
        fail::fail_point!("heal::started");
        Ok(())
    }

    /// Waits until it is well, and compares it with its source.
    fn prove(&mut self) -> Result<Proof> {
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
