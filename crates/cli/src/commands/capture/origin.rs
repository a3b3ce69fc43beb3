//! Where the statements of `capture` come from.

use super::{Shown, tap, uprobes};
use crate::args::{self, CaptureFormat};
use crate::commands::piped;
use crate::commands::remembered::{self, Asking};
use crate::commands::traffic_file::unread_of;
use crate::show::Ui;
use crate::show::answers::{SeenBy, not_seen, refused};
use evenkeel_op::{Error, Result, units};
use evenkeel_traffic::capture::live::{Live, Settings};
use evenkeel_traffic::capture::tap::Tap;
use evenkeel_traffic::capture::uprobes::Uprobes;
use evenkeel_traffic::capture::{Capture, Options};
use evenkeel_traffic::source::{Following, Idle, Input, InputKind, Opened, PerformanceSchema};
use evenkeel_traffic::{Coverage, Seen, Source, SourceKind, Statement};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Memory for packets: one that holds a burst, and no more than a host would miss.
const RINGS: std::ops::RangeInclusive<u64> = 1 << 20..=4 << 30;

/// Where statements come from.
pub(super) enum Origin {
    Packets(Box<Capture<Box<dyn Read + Send>>>),
    Interface(Box<Live>),
    Tap(Box<Tap>),
    Process(Box<Uprobes>),
    /// With the number of times that the log was cut under way.
    Log(Box<Opened>, Arc<AtomicU64>),
    Memory(Box<PerformanceSchema>),
}

/// Who shows statements, also for the reader of a pipe: while it waits, what was held back is shown.
#[derive(Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Option<Shown>>>);

impl Shared {
    pub(super) fn begin(&self, shown: Shown) {
        *self.lock() = Some(shown);
    }

    pub(super) fn end(&self) -> Option<Shown> {
        self.lock().take()
    }

    /// Shows a statement, or what was held back.
    pub(super) fn see(&self, seen: Seen<'_>) -> Result<()> {
        match self.lock().as_mut() {
            Some(shown) => shown.see(seen),
            None => Ok(()),
        }
    }

    /// Returns whether nobody reads on.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().as_ref().is_some_and(Shown::is_closed)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Shown>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the reader does that has to wait.
    fn idle(&self) -> Idle {
        let shared = self.clone();
        Box::new(move || shared.lock().as_mut().is_none_or(Shown::pause_within))
    }
}

impl Origin {
    pub(super) fn open(
        args: &args::Capture,
        options: Options,
        shared: &Shared,
        ui: &Ui,
    ) -> Result<Self> {
        if args.ring.is_some_and(|ring| !RINGS.contains(&ring)) {
            return Err(Error::usage("--ring is out of range").hint("give from 1M to 4G"));
        }
        if let Some(path) = &args.pcap {
            let from = piped::open_watched(path, "capture", ui.cancel(), shared.idle())?;
            return Ok(Self::Packets(Box::new(Capture::new(from, options)?)));
        }
        if args.uprobes {
            let server = uprobes::open(args, &options, ui)?;
            return Ok(Self::Process(Box::new(server)));
        }
        if let Some(listen) = &args.tap {
            let tap = tap::open(args, listen, &options, ui)?;
            return Ok(Self::Tap(Box::new(tap)));
        }
        if let Some(path) = &args.log {
            let (log, cuts) = log(args, path, shared, ui)?;
            return Ok(Self::Log(Box::new(log), cuts));
        }
        if let Some(place) = &args.server {
            let server = memory(args, place, ui)?;
            return Ok(Self::Memory(Box::new(server)));
        }
        let settings = Settings {
            interface: args.interface.clone().unwrap_or_default(),
            ring_bytes: args.ring,
            span: args.span,
        };
        let live = Live::open(settings, options)?;
        ui.note(&format!("capturing {}", super::place(args)));
        Ok(Self::Interface(Box::new(live)))
    }

    /// Reads all statements.
    pub(super) fn read(&mut self, shared: &Shared, ui: &Ui) -> Result<Coverage> {
        let mut take = |seen: Seen<'_>| shared.see(seen);
        match self {
            Self::Packets(packets) => packets.read(
                &mut |statement| take(Seen::Statement(statement)),
                ui.cancel(),
            ),
            Self::Log(log, _) => {
                let mut each = |statement: &Statement<'_>| take(Seen::Statement(statement));
                let coverage = log.read(&mut each, ui.cancel())?;
                log.log_damage()
                    .map_or(Ok(coverage), |error| Err(again(error)))
            }
            Self::Interface(live) => live.watch(&mut take, ui.cancel()),
            Self::Process(server) => server.watch(&mut take, ui.cancel()),
            Self::Memory(server) => {
                let place = server.place().to_owned();
                let mut take = |seen: Seen<'_>| match seen {
                    Seen::Silent(waited) => {
                        ui.warn(&remembered::silent(&place, waited));
                        Ok(())
                    }
                    seen => take(seen),
                };
                let coverage = server.watch(&mut take, ui.cancel())?;
                server
                    .damage()
                    .map_or(Ok(coverage), |error| Err(again(error)))
            }
            Self::Tap(tap) => tap::read(tap, shared, ui),
        }
    }

    /// Returns what the statements are seen by.
    pub(super) fn kind(&self) -> SourceKind {
        match self {
            Self::Packets(_) | Self::Interface(_) => SourceKind::Packets,
            Self::Tap(_) => SourceKind::Tap,
            Self::Process(_) => SourceKind::Uprobes,
            Self::Log(log, _) => log.source(),
            Self::Memory(_) => SourceKind::PerformanceSchema,
        }
    }

    /// Returns what they were seen by, with what is known of it.
    pub(super) fn seen_by(&self) -> SeenBy {
        match self {
            Self::Packets(_) | Self::Interface(_) => SeenBy::Packets,
            Self::Tap(tap) => SeenBy::Tap(tap.tally()),
            Self::Process(server) => SeenBy::Server {
                connections: server.connections(),
            },
            Self::Log(..) | Self::Memory(_) => SeenBy::ServerItself(self.kind()),
        }
    }

    /// Says what was not seen.
    pub(super) fn missing(&self, coverage: &Coverage) -> Vec<String> {
        match self {
            Self::Log(log, _) => {
                let unread = unread_of(coverage, log);
                unread.into_iter().chain(self.loss()).collect()
            }
            Self::Memory(_) => remembered::forgotten(coverage).into_iter().collect(),
            _ => {
                let mut missing = not_seen(coverage, self.kind(), self.is_cut(), self.damage());
                missing.extend(Some(self.refused()).filter(|count| *count > 0).map(refused));
                missing
            }
        }
    }

    /// Returns how many connections were refused.
    pub(super) fn refused(&self) -> u64 {
        match self {
            Self::Tap(tap) => tap.tally().refused,
            _ => 0,
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        matches!(self, Self::Packets(capture) if capture.is_cut())
    }

    pub(super) fn damage(&self) -> Option<&Error> {
        match self {
            Self::Packets(capture) => capture.damage(),
            Self::Interface(live) => live.damage(),
            Self::Process(server) => server.damage(),
            Self::Tap(_) | Self::Log(..) | Self::Memory(_) => None,
        }
    }

    /// Says why the rest, or a part between, could not be read.
    pub(super) fn loss(&self) -> Option<String> {
        match self {
            Self::Log(_, cuts) => {
                let cuts = cuts.load(Ordering::Relaxed);
                let times = units::count(cuts, "time");
                (cuts > 0).then(|| {
                    format!("the log was cut {times}: what was written just before may be missing")
                })
            }
            _ => self.damage().map(Error::chain),
        }
    }

    /// Whether there could have been statements.
    pub(super) fn could_hear(&self, coverage: &Coverage) -> bool {
        coverage.packets > 0 || matches!(self, Self::Interface(_))
    }
}

/// Returns a failure that is also kept where it was.
fn again(error: &Error) -> Error {
    let all = Error::new(error.kind(), error.chain());
    { error.hints().into_iter() }.fold(all, Error::hint)
}

/// Opens a log of a server.
fn log(
    args: &args::Capture,
    path: &Path,
    shared: &Shared,
    ui: &Ui,
) -> Result<(Opened, Arc<AtomicU64>)> {
    if args.span.is_some() && !args.follow {
        return Err(
            Error::usage("--for has no meaning for a log that is read to its end")
                .hint("add --follow to read what the server writes from now on"),
        );
    }
    if args.follow && path == Path::new("-") {
        return Err(Error::usage("standard input cannot be followed")
            .hint("leave --follow out: a pipe is read until it ends"));
    }
    let name = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let mut cuts = Arc::default();
    let since_ns = i64::try_from(Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX);
    let (input, known) = if args.follow {
        let log = Following::open(path, args.span, ui.cancel(), shared.idle())?;
        ui.note(&format!("following {name}"));
        let known = log.kind();
        cuts = log.cuts();
        (Input::of(name, log)?, known)
    } else {
        let from = piped::open_watched(path, "log file", ui.cancel(), shared.idle())?;
        (Input::of(name, from)?, None)
    };
    match known.or(input.kind) {
        Some(InputKind::GeneralLog)
            if args.min_latency.is_some() || args.format == Some(CaptureFormat::Slowlog) =>
        {
            Err(
                Error::usage("a general query log does not say how long statements took")
                    .hint("leave --min-latency and --format slowlog out, or read a slow query log"),
            )
        }
        Some(kind @ (InputKind::SlowLog | InputKind::GeneralLog)) => {
            let mut opened = Opened::new(input, kind, TimeZone::system(), Options::default())?;
            if args.follow {
                opened.follow_from(since_ns);
            }
            Ok((opened, cuts))
        }
        Some(InputKind::Packets) => Err(Error::usage(format!(
            "{} holds captured packets",
            input.name
        ))
        .hint("read it with --pcap")),
        None => Err(Error::usage(format!(
            "{} is neither a slow query log nor a general query log",
            input.name
        ))
        .hint("cut a damaged beginning off: begin at a line '# Time:' or '# User@Host:'")),
    }
}

/// Connects to a server whose performance_schema is asked.
fn memory(args: &args::Capture, place: &str, ui: &Ui) -> Result<PerformanceSchema> {
    let asking = Asking {
        verb: "capture",
        defaults_file: args.defaults_file.as_deref(),
        interval: args.interval,
        span: args.span,
    };
    let server = remembered::open(place, &asking, ui)?;
    ui.note(&format!("asking {} what it remembers", server.place()));
    Ok(server)
}
