//! What the user wants run around a verb: a command before it, one when it went well, one when it did not. They run
//! on this host, whatever host the verb works on.

use super::metrics::{Watch, exit_code};
use crate::args::{Around, Verb};
use crate::child::{self, Ended};
use crate::settings::shown_place;
use crate::show::Ui;
use evenkeel_op::{Context, Error, ErrorKind, Result, exit};
use rustix::process::Signal;
use std::io::stderr;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

/// So many letters of a failure are passed on: the kernel starts no program with a longer variable, and another
/// host may have written it.
const MESSAGE_MAX: usize = 4000;

/// Runs `work`, and what should be run before and after it. Returns the exit code.
pub(super) fn run(verb: &Verb, ui: &Ui, work: impl FnOnce() -> Result<u8>) -> Result<u8> {
    let Some(hooks) = Hooks::of(verb) else {
        return work();
    };
    // Which generation it made is in its answer.
    ui.keep_answer();
    let begun = hooks.before(ui).inspect_err(|error| {
        if let Some(watch) = Watch::of(verb) {
            watch.refused(error, ui);
        }
    });
    let ended = begun.and_then(|()| work());
    match hooks.after(&ended, ui) {
        Ok(()) => ended,
        Err(error) => {
            ui.warn(&error.chain());
            match ended {
                Ok(exit::DONE) => Ok(hooks.fell_short(verb, &error, ui)),
                ended => ended,
            }
        }
    }
}

/// What is notified of a run that ends before it began: its file of metrics, and its command for
/// failures.
#[derive(Debug)]
pub struct Onlookers {
    watch: Option<Watch>,
    hooks: Option<Hooks>,
}

impl Onlookers {
    /// Returns those of a verb, as it was typed.
    #[must_use]
    pub fn of(verb: &Verb) -> Self {
        Self {
            watch: Watch::of(verb),
            hooks: Hooks::of(verb),
        }
    }

    /// Tells them.
    pub fn refused(&self, error: &Error, ui: &Ui) {
        if let Some(watch) = &self.watch {
            watch.refused(error, ui);
        }
        let code = error.kind().exit_code();
        let reported = self
            .hooks
            .as_ref()
            .map(|hooks| hooks.failed(code, &error.chain(), ui));
        if let Some(Err(error)) = reported {
            ui.warn(&error.chain());
        }
    }
}

/// The commands, and what they are passed.
#[derive(Debug)]
struct Hooks {
    around: Around,
    verb: &'static str,
    repository: String,
}

impl Hooks {
    fn of(verb: &Verb) -> Option<Self> {
        let (around, verb, repository) = verb.around()?;
        around.is_any().then(|| Self {
            around: around.clone(),
            verb,
            repository: shown_place(repository),
        })
    }

    fn before(&self, ui: &Ui) -> Result<()> {
        let Some(command) = &self.around.run_before else {
            return Ok(());
        };
        self.run("--run-before", command, &[], ui)
            .map_err(|error| error.hint("nothing was done: fix the command, or remove the option"))
    }

    /// Tells that what comes after the run failed, and returns the exit code that this makes.
    fn fell_short(&self, verb: &Verb, error: &Error, ui: &Ui) -> u8 {
        if let Some(watch) = Watch::of(verb) {
            watch.fell_short();
        }
        if let Err(error) = self.failed(exit::PARTIAL, &error.chain(), ui) {
            ui.warn(&error.chain());
        }
        exit::PARTIAL
    }

    fn after(&self, ended: &Result<u8>, ui: &Ui) -> Result<()> {
        let code = exit_code(ended);
        if code != exit::DONE {
            let why = match ended {
                Ok(_) => ui.warnings().join("; "),
                Err(error) => error.chain(),
            };
            return self.failed(code, &why, ui);
        }
        match &self.around.run_after {
            Some(command) => self.run("--run-after", command, &[ended_with(code)], ui),
            None => Ok(()),
        }
    }

    fn failed(&self, code: u8, message: &str, ui: &Ui) -> Result<()> {
        let Some(command) = &self.around.run_failed else {
            return Ok(());
        };
        let message = message.chars().take(MESSAGE_MAX).collect();
        let reported = [ended_with(code), ("EVENKEEL_MESSAGE", message)];
        self.run("--run-failed", command, &reported, ui)
    }

    /// Runs a command. What it prints goes where talk goes: standard output is the answer's.
    fn run(
        &self,
        option: &str,
        command: &str,
        reported: &[(&'static str, String)],
        ui: &Ui,
    ) -> Result<()> {
        let talk = stderr().as_fd().try_clone_to_owned();
        let talk = talk.context(|| "failed to copy a descriptor")?;
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(talk);
        // Nothing of an outer run's.
        for name in [
            "EVENKEEL_EXIT_CODE",
            "EVENKEEL_MESSAGE",
            "EVENKEEL_GENERATION",
        ] {
            shell.env_remove(name);
        }
        shell.env("EVENKEEL_VERB", self.verb);
        shell.env("EVENKEEL_REPOSITORY", &self.repository);
        let answer = ui.kept_answer().unwrap_or_default();
        if let Some(generation) = answer["generation"].as_u64() {
            shell.env("EVENKEEL_GENERATION", generation.to_string());
        }
        for (name, value) in reported {
            // No variable holds such a byte.
            shell.env(name, value.replace('\0', " "));
        }
        let signals = ui.signals().share();
        let child = shell
            .spawn()
            .context(|| format!("failed to start the command of {option}"))?;
        let (ended, ()) = child::finish(child, signals, || ())?;
        match ended.is_success() {
            true => Ok(()),
            false => Err(failure(option, ended)),
        }
    }
}

fn ended_with(code: u8) -> (&'static str, String) {
    ("EVENKEEL_EXIT_CODE", code.to_string())
}

fn failure(option: &str, ended: Ended) -> Error {
    let is = |signal: Signal| ended == Ended::Signal(signal.as_raw() as u8);
    let kind = match ended {
        // Somebody stopped all of it.
        _ if is(Signal::INT) => ErrorKind::Interrupted,
        _ if is(Signal::TERM) => ErrorKind::Terminated,
        _ => ErrorKind::Failed,
    };
    let how = match ended {
        Ended::Code(code) => format!("ended with exit code {code}"),
        Ended::Signal(signal) => format!("was killed by signal {signal}"),
    };
    Error::new(kind, format!("the command of {option} {how}"))
}
