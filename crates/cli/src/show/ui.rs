//! The side of the program that the user sees.

use super::log::{Level, Log};
use super::obeyed::numbered;
use super::progress::{Bars, Lines, Noted, Overheard, Shown};
use super::{Answer, failure};
use crate::args::{Cli, CompressAt, Output};
use crate::settings;
use crate::signals::Signals;
use evenkeel_objects::Tell;
use evenkeel_op::{Cancel, Error, Event, Progress, Result, Silent, exit};
use evenkeel_repository::Location;
use evenkeel_transport::{Far, Word};
use serde::Serialize;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Where answers, talk and failures go, in the form that was asked for.
pub struct Ui {
    json: bool,
    with_text: bool,
    quiet: bool,
    log: Log,
    signals: Signals,
    progress: Arc<Overheard>,
    /// The last answer's document, once somebody wants it kept.
    kept: OnceLock<Mutex<Option<Value>>>,
    /// Whoever gave the order, when that was on another host.
    far: Option<Commander>,
    /// Standard output is something else's.
    beside: bool,
    /// The answer was given: whatever goes wrong after it is no document beside it.
    is_answered: AtomicBool,
    /// Nobody reads what is said.
    is_muted: AtomicBool,
}

/// The other host that has the user and the repository.
struct Commander {
    far: Far,
    /// What the repository is called there.
    place: String,
    /// Blocks are compressed there.
    compresses: bool,
}

#[derive(Serialize)]
struct Document<'a, T> {
    schema: &'static str,
    #[serde(flatten)]
    body: &'a T,
    /// The same as people read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    as_text: Option<String>,
}

impl<'a, A: Answer> Document<'a, A> {
    fn of(body: &'a A) -> Self {
        Self {
            schema: A::SCHEMA,
            body,
            as_text: None,
        }
    }
}

impl Ui {
    /// Makes the UI that `output` asks for.
    #[must_use]
    pub fn new(output: &Output, signals: Signals) -> Self {
        let log = Log::of(output);
        let progress = if output.quiet {
            asked_for(Lines::only_asked(std::io::stderr(), log), &signals)
        } else if std::io::stderr().is_terminal() && !log.is_asked_for() {
            asked_for(Bars::default(), &signals)
        } else {
            asked_for(Lines::new(std::io::stderr(), log), &signals)
        };
        Self {
            json: output.json,
            with_text: output.with_text,
            quiet: output.quiet,
            log,
            signals,
            progress: Arc::new(Overheard::by(progress)),
            kept: OnceLock::new(),
            far: None,
            beside: false,
            is_answered: AtomicBool::new(false),
            is_muted: AtomicBool::new(false),
        }
    }

    /// Says whether standard output is something else's, so that failures keep away from it.
    #[must_use]
    pub fn beside(mut self, beside: bool) -> Self {
        self.beside = beside;
        self
    }

    /// Makes the UI of a run for the user of another host, whose repository is called `place`.
    #[must_use]
    pub fn far(cli: &Cli, signals: Signals, far: Far, place: String) -> Self {
        let output = &cli.output;
        let compress_at = cli.verb.remote().map(|remote| remote.compress_at);
        let progress: Arc<dyn Progress> = match output.quiet {
            true => Arc::new(Silent),
            false => Arc::new(Noted::to(far.clone())),
        };
        Self {
            json: output.json,
            with_text: output.with_text,
            quiet: output.quiet,
            log: Log::of(output),
            signals,
            progress: Arc::new(Overheard::by(progress)),
            kept: OnceLock::new(),
            far: Some(Commander {
                far,
                place,
                compresses: compress_at == Some(CompressAt::Repository),
            }),
            beside: false,
            is_answered: AtomicBool::new(false),
            is_muted: AtomicBool::new(false),
        }
    }

    /// Returns whether the user is on another host.
    #[must_use]
    pub fn is_far(&self) -> bool {
        self.far.is_some()
    }

    /// Returns where the repository that the user calls `path` is: a path or the URL of a store.
    pub fn repository(&self, path: &Path) -> Result<Location> {
        self.repository_in(path, None)
    }

    /// The same, for writing in a storage class of the store's.
    pub fn repository_in(&self, path: &Path, storage_class: Option<&str>) -> Result<Location> {
        match &self.far {
            Some(commander) => {
                let store = commander.far.store(&commander.place);
                let store = store.compressing_there(commander.compresses);
                Ok(Location::on(Arc::new(store)))
            }
            None => self.location(path, storage_class),
        }
    }

    /// Returns a place that is reached from this host, whoever gave the order.
    pub fn location(&self, path: &Path, storage_class: Option<&str>) -> Result<Location> {
        let progress = self.progress.clone();
        let tell = Tell::by(move |text| progress.event(Event::Warning(text.to_owned())));
        settings::location(path, storage_class, tell)
    }

    /// Returns where an operation reports its progress.
    #[must_use]
    pub fn progress(&self) -> &dyn Progress {
        &*self.progress
    }

    /// Returns the request to stop that signals make.
    #[must_use]
    pub fn cancel(&self) -> &Cancel {
        self.signals.cancel()
    }

    /// Returns the signals, for handing them on to a command.
    #[must_use]
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Returns whether JSON was asked for.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Returns whether nothing needs to be said unless it fails.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns what the user was told to look at.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.progress.warnings()
    }

    /// Says what the user should look at.
    pub fn warn(&self, text: &str) {
        self.progress.event(Event::Warning(text.to_owned()));
    }

    /// Says what went wrong beside the work, which continues, and what to do about it.
    pub fn warn_of(&self, begin: &str, error: &Error) {
        let mut text = format!("{begin}{}", error.chain());
        for hint in error.hints() {
            text.push_str(&format!("\nhint: {hint}"));
        }
        self.warn(&text);
    }

    /// Says what the user may want to know.
    pub fn note(&self, text: &str) {
        self.progress.event(Event::Note(text.to_owned()));
    }

    /// Returns where talk goes, for a thread of its own: whoever talks waits while nobody reads.
    #[must_use]
    pub fn talk(&self) -> Arc<dyn Progress> {
        self.progress.clone()
    }

    /// Has failures keep away from standard output: whoever should read it does not.
    pub fn spare_output(&self) {
        self.is_answered.store(true, Ordering::Relaxed);
    }

    /// Says nothing any more, also not how it ends: nobody reads, and whoever talks would wait for ever.
    pub fn mute(&self) {
        self.is_muted.store(true, Ordering::Relaxed);
    }

    /// Has `hear` hear of each event from now on; only the first who asks for it does.
    pub(crate) fn listen(&self, hear: impl Fn(&Event) + Send + Sync + 'static) {
        self.progress.listen(Box::new(hear));
    }

    /// Keeps the documents of answers from now on.
    pub(crate) fn keep_answer(&self) {
        let _ = self.kept.get_or_init(Mutex::default);
    }

    /// Returns whether the documents of answers are kept.
    pub(crate) fn keeps_answers(&self) -> bool {
        self.kept.get().is_some()
    }

    /// Keeps the document of an answer, if they are kept.
    pub(crate) fn keep(&self, document: Value) {
        if let Some(kept) = self.kept.get() {
            *kept.lock().unwrap_or_else(|e| e.into_inner()) = Some(document);
        }
    }

    /// Returns the document of the last answer, if they are kept and there was one.
    pub(crate) fn kept_answer(&self) -> Option<Value> {
        let kept = self.kept.get()?.lock();
        kept.unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Gives the answer on standard output. With `--quiet` only JSON that was asked for is shown.
    pub fn answer<A: Answer>(&self, answer: &A) {
        self.is_answered.store(true, Ordering::Relaxed);
        self.progress.event(Event::PhaseEnded);
        if self.keeps_answers() {
            // A plain struct: it cannot fail to serialise.
            self.keep(serde_json::to_value(answer).unwrap_or_default());
        }
        if self.json {
            self.print(&json(&Document {
                as_text: self.with_text.then(|| answer.text()),
                ..Document::of(answer)
            }));
        } else if !self.quiet {
            self.print(answer.text().as_bytes());
        }
    }

    /// Gives one of several answers on standard output, as they come: with JSON, one line each.
    pub fn tell<A: Answer>(&self, answer: &A) {
        self.progress.event(Event::PhaseEnded);
        if self.json {
            let document = Document::of(answer);
            self.print(format!("{}\n", line(&document)).as_bytes());
        } else if !self.quiet {
            self.print(answer.text().as_bytes());
        }
    }

    /// Prints on the user's standard output.
    pub fn print(&self, bytes: &[u8]) {
        match &self.far {
            Some(commander) => commander.far.say(&Word::Answer {
                text: String::from_utf8_lossy(bytes).into_owned(),
            }),
            None => print(bytes),
        }
    }

    /// Gives the answer on standard error, as text or one line of JSON, because standard output
    /// belongs to the command that was run.
    pub fn answer_aside<A: Answer>(&self, answer: &A) {
        if self.json {
            let document = Document::of(answer);
            eprintln!("{}", line(&document));
        } else if !self.quiet {
            eprint!("{}", self.log.aside(&answer.text()));
        }
    }

    /// Shows a failure, if there was one, and returns the exit code.
    #[must_use]
    pub fn leave(&self, outcome: Result<u8, Error>) -> ExitCode {
        if self.is_muted.load(Ordering::Relaxed) {
            return ExitCode::from(match outcome {
                Ok(code) => code,
                Err(error) => error.kind().exit_code(),
            });
        }
        self.progress.event(Event::PhaseEnded);
        match outcome {
            Ok(code) => {
                if let Some(why) = UNPRINTED.get() {
                    let error = Error::failed(format!("failed to write to standard output: {why}"))
                        .hint("the command has ended, and its answer is lost: free some space");
                    eprint!("{}", self.log.failure(&error));
                    return ExitCode::from(error.kind().exit_code());
                }
                // Nothing was said, and yet not all is well.
                if self.quiet && code != exit::DONE {
                    for text in self.warnings() {
                        eprint!("{}", self.log.line(Level::Warning, &text));
                    }
                }
                ExitCode::from(code)
            }
            Err(error) => {
                let document = failure::Document::of(&error);
                let is_beside = self.beside || self.is_answered.load(Ordering::Relaxed);
                if self.log.is_json() {
                    // Whoever collects the log wants it there, whatever is on standard output.
                    eprint!("{}", self.log.failure(&error));
                    if self.json && !is_beside {
                        print_json(&document);
                    }
                } else if self.json && is_beside {
                    // One line, as its answer would be.
                    eprintln!("{}", line(&document));
                } else if self.json {
                    print_json(&document);
                } else {
                    eprint!("{}", self.log.failure(&error));
                }
                ExitCode::from(error.kind().exit_code())
            }
        }
    }
}

/// Has SIGUSR1 ask this progress how far it is.
fn asked_for<P: Shown + 'static>(progress: P, signals: &Signals) -> Arc<dyn Progress> {
    let progress = Arc::new(progress);
    let asked = progress.clone();
    signals.when_asked(move || asked.tell());
    progress
}

/// Prints one document on standard output.
pub(super) fn print_json<T: Serialize>(document: &T) {
    print(&json(document));
}

/// Returns a document as one line.
fn line<T: Serialize>(document: &T) -> String {
    // These documents are plain structs: they cannot fail to serialise.
    let line = serde_json::to_string(document).unwrap_or_default();
    numbered(&line).into_owned()
}

fn json<T: Serialize>(document: &T) -> Vec<u8> {
    // As above: plain structs.
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    let mut text = numbered(&text).into_owned();
    text.push('\n');
    text.into_bytes()
}

/// Why an answer could not be printed.
static UNPRINTED: OnceLock<String> = OnceLock::new();

/// Prints on standard output. A reader that went away (`| head`) is no failure: what was asked for
/// is done, and the exit code says so. A full disk is one.
fn print(bytes: &[u8]) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush())
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = UNPRINTED.set(error.to_string());
    }
}
