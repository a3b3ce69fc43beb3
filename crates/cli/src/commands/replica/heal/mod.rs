//! `replica heal`: the pass over the servers is the library's; who drains and who is handed what is left are composed
//! here.

mod fence;
mod hook;

use super::asked;
use crate::args::ReplicaHeal;
use crate::commands::{resume, watch_applier};
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{HealHistoryAnswer, ReplicaHealAnswer};
use evenkeel_op::paths::absolute;
use evenkeel_op::{Error, ErrorKind, Result, Run, exit, units};
use evenkeel_replica::heal::{
    Fence, HealJournal, HealOutcome, HealPass, HealPolicy, HealRequest, Treated, heal, plan_heal,
    read_history,
};
use evenkeel_replica::survey::Target;
use fence::HealthFence;
use hook::Hook;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The journal, below a state directory.
const JOURNAL: &str = "heal";
/// How often servers may be looked at.
const EVERY: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(5)..=Duration::from_secs(24 * 3600);
const LOOK: Duration = Duration::from_millis(100);

/// Runs the command.
pub(super) fn run(args: &ReplicaHeal, ui: &Ui) -> Result<u8> {
    if args.history {
        ui.answer(&HealHistoryAnswer::new(read_history(&journal(args)?)?));
        return Ok(exit::DONE);
    }
    let request = request(args)?;
    if args.execute && args.allow.is_empty() {
        return Err(Error::usage("--execute, and nothing is allowed")
            .hint("name what may be repaired: --allow restart,relay-reset")
            .hint("without --execute, all of it is shown"));
    }
    let targets = asked::meant(&args.asked, ui)?;
    if !args.execute {
        let mut fence = args.drain.as_deref().map(HealthFence::at).transpose()?;
        let fence = fence.as_mut().map(|fence| fence as &mut dyn Fence);
        let pass = plan_heal(&targets, &request, fence, during(ui))?;
        return shown(&pass, args, ui);
    }
    for target in &targets {
        // What a killed run of any command left standing is not for rules.
        resume::resume(&target.options, ui);
    }
    let mut healer = Healer::new(args, request, targets)?;
    match args.every {
        None => {
            let pass = healer.pass(ui)?;
            shown(&pass, args, ui)
        }
        Some(every) => healer.run(every, args, ui),
    }
}

fn shown(pass: &HealPass, args: &ReplicaHeal, ui: &Ui) -> Result<u8> {
    asked::say_silent(&pass.diagnosis.servers, ui)?;
    for unchecked in &pass.diagnosis.unchecked {
        ui.warn(unchecked);
    }
    ui.answer(&ReplicaHealAnswer::new(pass, args.execute));
    Ok(code(pass))
}

/// Exit code 0 means all of it.
fn code(pass: &HealPass) -> u8 {
    let outcomes = pass.treated.iter().map(|one| one.healed.as_ref());
    let outcomes: Vec<Option<HealOutcome>> = outcomes
        .map(|healed| healed.map(|healed| healed.outcome))
        .collect();
    let is_whole = |one: &Option<HealOutcome>| *one == Some(HealOutcome::Repaired);
    let is_something =
        |one: &Option<HealOutcome>| matches!(one, Some(outcome) if *outcome != HealOutcome::Failed);
    // Rows that differed after one repair, and were made equal by the next.
    let is_settled = |at: usize| {
        let one = &pass.treated[at];
        let later = pass.treated.iter().zip(&outcomes).skip(at + 1);
        let mut same = later.filter(|(other, _)| {
            (other.finding.server, &other.finding.channel)
                == (one.finding.server, &one.finding.channel)
        });
        outcomes[at] == Some(HealOutcome::Differs) && same.any(|(_, one)| is_whole(one))
    };
    let all = (0..outcomes.len()).all(|at| is_whole(&outcomes[at]) || is_settled(at));
    let is_checked = pass.diagnosis.unchecked.is_empty() && pass.kept_out.is_empty();
    // Nothing could be done because of another healer.
    let is_busy = pass.treated.iter().any(Treated::is_busy);
    if is_busy && outcomes.iter().all(Option::is_none) {
        return exit::BUSY;
    }
    match (all, outcomes.iter().any(is_something), is_checked) {
        (true, _, true) => exit::DONE,
        (true, _, false) | (false, true, _) => exit::PARTIAL,
        (false, false, _) => exit::DIFFERS,
    }
}

fn request(args: &ReplicaHeal) -> Result<HealRequest> {
    let journal = match args.execute {
        true => Some(journal(args)?),
        false => journal(args).ok(),
    };
    Ok(HealRequest {
        timeout: args.asked.timeout,
        policy: HealPolicy {
            allow: args.allow.iter().copied().collect(),
            repairs_max: args.max_repairs,
            drains: args.drain.is_some(),
            beside: args.beside.clone(),
        },
        journal: journal.map(|path| absolute(&path)),
        watchdog: watch_applier::program(),
        compares: !args.no_compare,
        finds_drift: args.find_drift,
        settle: args.settle,
        drain_wait: args.drain_wait,
        rows_max: usize::try_from(args.max_rows).unwrap_or(usize::MAX),
    })
}

fn journal(args: &ReplicaHeal) -> Result<PathBuf> {
    if let Some(path) = &args.journal {
        return Ok(path.clone());
    }
    let state = settings::state_directory();
    state.map(|state| state.join(JOURNAL)).ok_or_else(|| {
        Error::usage("where is the journal?").hint(
            "name a directory with --journal: what is seen and done is kept there, and counted",
        )
    })
}

fn during(ui: &Ui) -> Run<'_> {
    Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    }
}

/// What repairs, for as long as it runs.
struct Healer {
    targets: Vec<Target>,
    request: HealRequest,
    journal: HealJournal,
    fence: Option<HealthFence>,
    hook: Option<Hook>,
}

impl Healer {
    fn new(args: &ReplicaHeal, request: HealRequest, targets: Vec<Target>) -> Result<Self> {
        let hook = Hook::of(args)?;
        let fence = args.drain.as_deref().map(HealthFence::at).transpose()?;
        let path = request.journal.clone();
        let path = path.ok_or_else(|| Error::usage("where is the journal?"))?;
        Ok(Self {
            targets,
            request,
            journal: HealJournal::open(&path)?,
            fence,
            hook,
        })
    }

    fn pass(&mut self, ui: &Ui) -> Result<HealPass> {
        let fence = self.fence.as_mut().map(|fence| fence as &mut dyn Fence);
        let pass = heal(
            &self.targets,
            &self.request,
            &mut self.journal,
            fence,
            during(ui),
        )?;
        if let Some(hook) = &mut self.hook {
            hook.hand_over(&pass, &mut self.journal, ui)?;
        }
        Ok(pass)
    }

    /// Looks again and again. What is the same as before is not said again.
    fn run(&mut self, every: Duration, args: &ReplicaHeal, ui: &Ui) -> Result<u8> {
        if !EVERY.contains(&every) {
            return Err(Error::usage("--every is out of range").hint("give from 5s to 24h"));
        }
        let mut last = None;
        loop {
            let next = Instant::now() + every;
            match self.pass(ui) {
                Ok(pass) => {
                    let answer = ReplicaHealAnswer::new(&pass, args.execute);
                    let gist = answer.gist();
                    if last.as_ref() != Some(&gist) {
                        ui.tell(&answer);
                    }
                    last = Some(gist);
                }
                Err(error) if error.kind() == ErrorKind::Busy => ui.warn_of("", &error),
                // The journal cannot be written: nothing more may be done.
                Err(error) => return Err(error),
            }
            while Instant::now() < next {
                ui.cancel().check()?;
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// Says how long something took.
fn took(begun: Instant) -> String {
    units::duration(begun.elapsed())
}
