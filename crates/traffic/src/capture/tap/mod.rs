//! Statements that pass through: a relay between clients and their server, where packets cannot be seen or are hidden by
//! TLS. What was relayed is decoded by another thread. If that is too slow, statements are lost to the capture, and
//! counted; the traffic never waits for it.
//!
//! | file | what |
//! |---|---|
//! | `place` | addresses and socket files: to listen on, and to connect to |
//! | `socket_file` | a socket file that is made, and taken away |
//! | `relay` | a thread that moves the bytes of many connections |
//! | `pair` | one of these connections: its two sockets |
//! | `control` | what the threads tell each other |
//! | `queue` | bytes on their way to the decoder, as many as memory is given to |
//! | `decoder` | statements out of them |

mod control;
mod decoder;
mod pair;
mod place;
mod queue;
mod relay;
mod socket_file;

pub use control::Tally;
pub use evenkeel_wire::relay::{ForClients, ForServer, Terms};
pub use place::TapAddress;

use super::Options;
use crate::statement::{Coverage, Statement};
use control::{Control, Phase};
use decoder::Decoder;
use evenkeel_op::{Cancel, Error, Result, open_files, workers};
use place::Listener;
use queue::{Batch, Queue};
use relay::Relay;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Memory for what was relayed and not decoded yet, where none is said.
const USUAL_MEMORY: u64 = 64 << 20;
/// More threads than this only compete for the decoder.
const MOST_THREADS: usize = 4;
/// Open files that are not a connection's.
const OTHER_FILES: u64 = 64;
/// Where the system names no limit.
const MOST_CONNECTIONS: u64 = 100_000;
/// How often to look whether an end is wanted.
const LOOK: Duration = Duration::from_millis(100);

/// How to tap.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where clients connect.
    pub listen: TapAddress,
    /// The mode of the socket file that clients connect to.
    pub mode: u32,
    /// Where the server is.
    pub server: TapAddress,
    /// What is done with TLS.
    pub terms: Terms,
    /// Bytes of memory for what was not decoded yet.
    pub memory: Option<u64>,
    /// How long to capture.
    pub span: Option<Duration>,
    /// How long connections may take to become idle, at the end.
    pub drain: Duration,
}

/// What a tap hands out.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A statement.
    Statement(&'a Statement<'a>),
    /// Nothing more at this moment: what was held back can be shown.
    Pause,
    /// The server cannot be reached; why.
    Unreachable(&'a str),
    /// The first login failed from which TLS was hidden.
    LoginFailed,
    /// No more clients are taken. So many connections are open.
    Ending(usize),
}

/// A relay that captures.
#[derive(Debug)]
pub struct Tap {
    listener: Option<Listener>,
    settings: Settings,
    options: Options,
    tally: Tally,
}

impl Tap {
    /// Begins to listen. A server that is not there may come later: see [`Tap::silence`].
    ///
    /// # Errors
    ///
    /// `Usage` when the place to listen on is the server's, or is taken, or when the server's leads to it; when it cannot be listened on.
    pub fn open(settings: Settings, options: Options) -> Result<Self> {
        settings.server.differs_from(&settings.listen)?;
        let listener = Listener::open(&settings.listen, settings.mode)?;
        settings.server.is_not(&listener)?;
        Ok(Self {
            listener: Some(listener),
            settings,
            options,
            tally: Tally::default(),
        })
    }

    /// Returns why nothing answers at the server's place now, if so.
    #[must_use]
    pub fn silence(&self) -> Option<String> {
        self.settings.server.silence()
    }

    /// Returns where clients connect, once it is known: port 0 is a free one.
    #[must_use]
    pub fn place(&self) -> String {
        let listener = self.listener.as_ref();
        listener.map_or_else(|| self.settings.listen.to_string(), Listener::place)
    }

    /// Returns the socket file of an earlier run that was replaced.
    #[must_use]
    pub fn replaced(&self) -> bool {
        self.listener.as_ref().is_some_and(Listener::replaced)
    }

    /// Returns what was counted of connections.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Relays, and hands out statements as they are answered, until the time is up, `cancel` is set or `each` fails; then
    /// connections are closed as they become idle.
    ///
    /// # Errors
    ///
    /// When the kernel fails, and what `each` fails with.
    pub fn watch(
        &mut self,
        each: &mut dyn FnMut(Seen<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<Coverage> {
        let Some(listener) = self.listener.take() else {
            return Err(Error::failed("the tap has ended"));
        };
        let memory = self.settings.memory.unwrap_or(USUAL_MEMORY);
        let queue = Arc::new(Queue::new(usize::try_from(memory).unwrap_or(usize::MAX)));
        let count = thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS));
        let control = Arc::new(Control::new(most_connections(), self.settings.drain, count));
        let relays = Relay::several(count, listener, &self.settings, &control, &queue)?;
        let mut decoder = Decoder::new(self.options.clone());
        let ended = thread::scope(|scope| {
            let begin = |relay: Relay| {
                let control = &control;
                scope.spawn(move || {
                    let _ends = control.working();
                    relay.run()
                })
            };
            let threads: Vec<_> = relays.into_iter().map(begin).collect();
            let followed = self.follow(&mut decoder, &control, &queue, each, cancel);
            // Whatever happened to the capture: connections end in order.
            control.drain();
            let ended = workers::all_joined(threads, "a thread of the tap");
            followed.and(ended.into_iter().collect::<Result<Vec<()>>>().map(|_| ()))
        });
        self.tally = control.tally();
        self.tally.logins_failed = decoder.logins_failed;
        ended?;
        Ok(decoder.coverage)
    }

    /// Decodes until no relay works any more.
    fn follow(
        &self,
        decoder: &mut Decoder,
        control: &Control,
        queue: &Queue,
        each: &mut dyn FnMut(Seen<'_>) -> Result<()>,
        cancel: &Cancel,
    ) -> Result<()> {
        let end = self.settings.span.map(|span| Instant::now() + span);
        let mut batch = Batch::default();
        loop {
            // Asked before the last batch is taken: nothing comes behind it.
            let is_last = control.is_over();
            queue.take(&mut batch, if is_last { Duration::ZERO } else { LOOK });
            let outcome = decoder.take(&batch, &mut |seen| each(Seen::Statement(seen)));
            let reported = outcome.and_then(|()| news(decoder, control, each));
            if let Err(error) = reported.and_then(|()| each(Seen::Pause)) {
                queue.close();
                return Err(error);
            }
            if is_last {
                break;
            }
            let is_time = end.is_some_and(|end| Instant::now() >= end);
            if (cancel.is_cancelled() || is_time) && control.phase() == Phase::Working {
                control.drain();
                each(Seen::Ending(control.open()))?;
            }
        }
        decoder.coverage.bytes_missing += queue.lost();
        decoder.end_all(&mut |seen| each(Seen::Statement(seen)))?;
        each(Seen::Pause)
    }
}

/// Hands out what is new beside statements.
fn news(
    decoder: &mut Decoder,
    control: &Control,
    each: &mut dyn FnMut(Seen<'_>) -> Result<()>,
) -> Result<()> {
    if let Some(why) = control.unreachable() {
        each(Seen::Unreachable(&why))?;
    }
    match decoder.first_login_failed() {
        true => each(Seen::LoginFailed),
        false => Ok(()),
    }
}

/// Returns how many connections fit: each has two open files.
fn most_connections() -> usize {
    let files = open_files::raise();
    let most = files.map_or(MOST_CONNECTIONS, |files| {
        files.saturating_sub(OTHER_FILES) / 2
    });
    most.clamp(1, MOST_CONNECTIONS) as usize
}
