//! The program that is handed what is not healed: an alarm, or what promotes. Without a shell, for a limited time, and
//! not as root unless that was asked for.

use crate::args::ReplicaHeal;
use crate::commands::health::refuse_program_of_others;
use crate::settings;
use crate::show::Ui;
use evenkeel_op::paths::{absolute, unreadable};
use evenkeel_op::{Cancel, Context, Error, Result, units};
use evenkeel_replica::heal::{HealEvent, HealJournal, HealOutcome, HealPass, Treated};
use rustix::process::{Pid, Signal, geteuid, kill_process_group};
use serde_json::json;
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What programs find their own programs by.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Whom root's hook runs as, unless that is said.
const NOBODY: &str = "nobody";
const LOOK: Duration = Duration::from_millis(20);
/// No variable is longer.
const TEXT_MAX: usize = 4000;

/// The program.
pub(super) struct Hook {
    program: PathBuf,
    account: Option<(u32, u32)>,
    timeout: Duration,
    /// What it was handed: once for as long as that is wrong.
    handed: BTreeSet<(usize, Option<String>, &'static str, &'static str)>,
}

impl Hook {
    /// Finds out what was typed.
    ///
    /// Errors: `Usage` for what is no program; `Refused` for one of others that would run as root.
    pub(super) fn of(args: &ReplicaHeal) -> Result<Option<Self>> {
        let Some(program) = &args.hook else {
            return Ok(None);
        };
        let found = std::fs::metadata(program);
        let found = found.map_err(|error| unreadable("program", program, error))?;
        if !found.is_file() {
            let shown = program.display();
            return Err(Error::usage(format!("{shown} is not a program")).hint("check --hook"));
        }
        let account = match &args.hook_user {
            Some(name) => Some(settings::owner(name)?),
            None if geteuid().is_root() => Some(settings::owner(NOBODY)?),
            None => None,
        };
        if account.is_some_and(|(user, group)| user == 0 || group == 0) {
            let hint = "give it to root in a directory of root's, or leave out --hook-user root";
            refuse_program_of_others(program, hint)?;
        }
        Ok(Some(Self {
            program: absolute(program),
            account,
            timeout: args.hook_timeout,
            handed: BTreeSet::new(),
        }))
    }

    /// Runs it for each failure that is left, unless it was told of that before.
    ///
    /// Errors: those of the journal. What goes wrong with the program is a warning.
    pub(super) fn hand_over(
        &mut self,
        pass: &HealPass,
        journal: &mut HealJournal,
        ui: &Ui,
    ) -> Result<()> {
        let mut left = BTreeSet::new();
        for one in pass.treated.iter().filter(|one| is_left(one)) {
            let to = one.decision.hands_over;
            let finding = &one.finding;
            let key = (
                finding.server,
                finding.channel.clone(),
                finding.failure.name(),
                to.word(),
            );
            if self.handed.contains(&key) {
                left.insert(key);
                continue;
            }
            let begun = Instant::now();
            let ended = match self.run(one, ui.cancel()) {
                Ok(()) => {
                    left.insert(key);
                    format!("done in {}", super::took(begun))
                }
                Err(error) => {
                    ui.warn_of("--hook: ", &error);
                    error.chain()
                }
            };
            journal.add(HealEvent::HandedOver {
                server: one.server.clone(),
                failure: finding.failure.name().to_owned(),
                to,
                ended,
            })?;
        }
        self.handed = left;
        Ok(())
    }

    fn run(&self, one: &Treated, cancel: &Cancel) -> Result<()> {
        let failed = || format!("failed to run {}", self.program.display());
        let why = why(one);
        // No variable holds such a byte.
        let plain = |text: &str| {
            text.replace('\0', " ")
                .chars()
                .take(TEXT_MAX)
                .collect::<String>()
        };
        let channel = one.finding.channel.as_deref().unwrap_or_default();
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", PATH)
            .env("EVENKEEL_SERVER", plain(&one.server))
            .env("EVENKEEL_CHANNEL", plain(channel))
            .env("EVENKEEL_FAILURE", one.finding.failure.name())
            .env("EVENKEEL_HANDS_OVER", one.decision.hands_over.word())
            .env("EVENKEEL_WHY", plain(&why))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .process_group(0);
        if let Some((user, group)) = self.account {
            // Groups of ours are given up with it.
            command.uid(user).gid(group);
        }
        let mut child = command.spawn().context(failed)?;
        let document = document(one, &why);
        if let Some(mut input) = child.stdin.take() {
            // It may not read, and then it is killed with the rest. Nobody waits for that thread.
            std::thread::spawn(move || input.write_all(document.as_bytes()));
        }
        ended(&mut child, self.timeout, cancel).context(failed)
    }
}

fn is_left(one: &Treated) -> bool {
    match &one.healed {
        Some(healed) => healed.outcome != HealOutcome::Repaired,
        // Another healer is at work there.
        None => !one.is_busy(),
    }
}

fn why(one: &Treated) -> String {
    match &one.healed {
        Some(healed) => healed.why.clone(),
        None => {
            let each = one.decision.forbidden.iter();
            each.map(|one| one.why.clone())
                .collect::<Vec<_>>()
                .join("; ")
        }
    }
}

fn document(one: &Treated, why: &str) -> String {
    let steps = one.steps.iter();
    let steps = steps.map(|step| json!({"on": step.on, "sql": step.sql, "says": step.says}));
    let document = json!({
        "schema": "evenkeel/replica-heal-hook/1",
        "server": one.server,
        "channel": one.finding.channel,
        "failure": one.finding.failure.name(),
        "hands_over": one.decision.hands_over.word(),
        "why": why,
        "forbidden_by": one.decision.forbidden,
        "evidence": one.finding.evidence,
        "repair": steps.collect::<Vec<_>>(),
    });
    format!("{document}\n")
}

fn ended(child: &mut Child, limit: Duration, cancel: &Cancel) -> Result<()> {
    let until = Instant::now() + limit;
    while Instant::now() < until && !cancel.is_cancelled() {
        if let Some(status) = child.try_wait().context(|| "failed to wait for it")? {
            return match status.success() {
                true => Ok(()),
                false => Err(Error::failed(format!("it ended with {status}"))),
            };
        }
        std::thread::sleep(LOOK);
    }
    // Not reaped yet: the number is its own.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
    let limit = units::duration(limit);
    Err(Error::failed(format!(
        "it was killed: it had not ended within {limit}"
    )))
}
