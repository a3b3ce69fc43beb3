//! `capture`.

mod output;
mod tap;
mod uprobes;

use super::piped;
use crate::args::{self, CaptureFormat};
use crate::show::answers::{CaptureAnswer, SeenBy};
use crate::show::{Form, Statements, Ui};
use evenkeel_op::{Error, Result, exit};
use evenkeel_traffic::capture::live::{Live, Seen, Settings};
use evenkeel_traffic::capture::tap::Tap;
use evenkeel_traffic::capture::uprobes::Uprobes;
use evenkeel_traffic::capture::{Capture, Options};
use evenkeel_traffic::digest::is_counted;
use evenkeel_traffic::kept::CaptureEnd;
use evenkeel_traffic::{Coverage, Filter, Source, Statement};
use output::Output;
use std::io::Read;
use std::path::Path;

/// Texts shorter than this are of no use, longer ones are kept for each statement that waits for its answer.
const TEXTS: std::ops::RangeInclusive<u64> = 64..=64 << 20;
/// Memory for packets: one that holds a burst, and no more than a host would miss.
const RINGS: std::ops::RangeInclusive<u64> = 1 << 20..=4 << 30;

/// Where packets come from.
enum Packets {
    Captured(Box<Capture<Box<dyn Read + Send>>>),
    Live(Box<Live>),
    Tapped(Box<Tap>),
    Watched(Box<Uprobes>),
}

/// Runs the command.
pub fn run(args: &args::Capture, ui: &Ui) -> Result<u8> {
    let packets = open(args, options(args)?, ui);
    let filter = filter(args)?;
    ui.cancel().check()?;
    let mut packets = packets?;
    // Over a pipe, each statement is shown at once; an interface says when there is a pause.
    let is_piped = args.pcap.as_deref() == Some(Path::new("-"));
    let mut shown = Shown {
        out: Output::of(args, Statements::new(form(args, ui), is_piped), ui)?,
        filter,
        shown: 0,
        unanswered: 0,
        others: 0,
    };
    let read = packets.read(&mut shown, ui);
    if !shown.out.is_kept() {
        shown.out.pause()?;
    }
    let coverage = match read {
        // Whoever reads what we show has seen enough.
        Err(_) if shown.out.is_closed() => return Ok(exit::DONE),
        read => read?,
    };
    let seen_by = packets.seen_by();
    let refused = match &seen_by {
        SeenBy::Tap(tally) => tally.refused,
        _ => 0,
    };
    let written = shown.out.end(CaptureEnd {
        coverage,
        is_cut: packets.is_cut(),
        refused,
        damage: packets.damage().map(Error::chain),
    })?;
    let mut answer = CaptureAnswer::new(
        &coverage,
        [shown.shown, shown.unanswered],
        packets.is_cut(),
        packets.damage(),
        seen_by,
    );
    answer.tells_apart(shown.others);
    if let Some(written) = written {
        answer.keeps(args.kept.directory.as_deref(), written);
    }
    ui.answer_aside(&answer);
    let has_packets = coverage.packets > 0 || matches!(packets, Packets::Live(_));
    if coverage.statements == 0 && has_packets && answer.complete {
        ui.warn(&unheard(args));
    }
    ui.cancel().check()?;
    Ok(match answer.complete {
        true => exit::DONE,
        false => exit::PARTIAL,
    })
}

/// Shows statements as they come.
struct Shown {
    out: Output,
    filter: Filter,
    shown: u64,
    unanswered: u64,
    others: u64,
}

impl Shown {
    fn take(&mut self, statement: &Statement<'_>) -> Result<()> {
        self.others += u64::from(!is_counted(statement));
        self.unanswered += u64::from(statement.total_ns.is_none() && statement.is_asked());
        if self.filter.keeps(statement) && self.out.take(statement)? {
            self.shown += 1;
        }
        Ok(())
    }

    /// Shows what was held back.
    fn pause(&mut self) -> Result<()> {
        self.out.pause()?;
        match self.out.is_closed() {
            true => Err(Error::failed("standard output is closed")),
            false => Ok(()),
        }
    }
}

impl Packets {
    fn read(&mut self, shown: &mut Shown, ui: &Ui) -> Result<Coverage> {
        match self {
            Self::Captured(capture) => {
                capture.read(&mut |statement| shown.take(statement), ui.cancel())
            }
            Self::Live(live) => live.watch(
                &mut |seen| match seen {
                    Seen::Statement(statement) => shown.take(statement),
                    Seen::Pause => shown.pause(),
                },
                ui.cancel(),
            ),
            Self::Tapped(tap) => tap::read(tap, shown, ui),
            Self::Watched(server) => server.watch(
                &mut |seen| match seen {
                    Seen::Statement(statement) => shown.take(statement),
                    Seen::Pause => shown.pause(),
                },
                ui.cancel(),
            ),
        }
    }

    fn seen_by(&self) -> SeenBy {
        match self {
            Self::Captured(_) | Self::Live(_) => SeenBy::Packets,
            Self::Tapped(tap) => SeenBy::Tap(tap.tally()),
            Self::Watched(server) => SeenBy::Server {
                connections: server.connections(),
            },
        }
    }

    fn is_cut(&self) -> bool {
        match self {
            Self::Captured(capture) => capture.is_cut(),
            Self::Live(_) | Self::Tapped(_) | Self::Watched(_) => false,
        }
    }

    fn damage(&self) -> Option<&Error> {
        match self {
            Self::Captured(capture) => capture.damage(),
            Self::Live(live) => live.damage(),
            Self::Tapped(_) => None,
            Self::Watched(server) => server.damage(),
        }
    }
}

fn open(args: &args::Capture, options: Options, ui: &Ui) -> Result<Packets> {
    if let Some(path) = &args.pcap {
        let capture = Capture::new(piped::open(path, "capture", ui.cancel())?, options)?;
        return Ok(Packets::Captured(Box::new(capture)));
    }
    if args.ring.is_some_and(|ring| !RINGS.contains(&ring)) {
        return Err(Error::usage("--ring is out of range").hint("give from 1M to 4G"));
    }
    if args.uprobes {
        let server = uprobes::open(args, &options, ui)?;
        return Ok(Packets::Watched(Box::new(server)));
    }
    if let Some(listen) = &args.tap {
        let tap = tap::open(args, listen, &options, ui)?;
        return Ok(Packets::Tapped(Box::new(tap)));
    }
    let settings = Settings {
        interface: args.interface.clone().unwrap_or_default(),
        ring_bytes: args.ring,
        span: args.span,
    };
    let live = Live::open(settings, options)?;
    ui.note(&format!("capturing {}", place(args)));
    Ok(Packets::Live(Box::new(live)))
}

/// Returns what is captured.
fn place(args: &args::Capture) -> String {
    let ports: Vec<String> = args.port.iter().map(u16::to_string).collect();
    let interface = args.interface.as_deref().unwrap_or_default();
    format!("port {} on {interface}", ports.join(", "))
}

/// Returns what may be why there was no statement.
fn unheard(args: &args::Capture) -> String {
    match args.interface.as_deref() {
        Some(interface) => format!(
            "no client spoke to {}: if the server listens on another port, name it with --port; {}a Unix socket has \
             no packets",
            place(args),
            match interface {
                "any" => "",
                _ => "if clients come another way, capture with --interface any; ",
            }
        ),
        None => {
            let ports: Vec<String> = args.port.iter().map(u16::to_string).collect();
            format!(
                "no client spoke to port {}: if the server listens on another one, name it with --port",
                ports.join(", ")
            )
        }
    }
}

fn filter(args: &args::Capture) -> Result<Filter> {
    let pattern = args.matching.as_deref().map(Filter::pattern);
    let min = args.min_latency.unwrap_or_default();
    Ok(Filter {
        since_ns: None,
        until_ns: None,
        users: args.user.clone(),
        schemas: args.database.clone(),
        hosts: args.host.clone(),
        pattern: pattern.transpose()?,
        min_ns: u64::try_from(min.as_nanos()).unwrap_or(u64::MAX),
    })
}

fn options(args: &args::Capture) -> Result<Options> {
    if !TEXTS.contains(&args.max_text) {
        return Err(Error::usage("--max-text is out of range").hint(
            "give a size from 64 bytes to 64M; each unanswered statement may take that much memory",
        ));
    }
    Ok(Options {
        ports: args.port.clone(),
        text_bytes: usize::try_from(args.max_text).unwrap_or(usize::MAX),
        // For a replay. A checksum of a short result would tell what is in it.
        checksums: args.kept.directory.is_some() && !args.kept.redact,
        values: args.kept.directory.is_some() && !args.kept.redact,
    })
}

fn form(args: &args::Capture, ui: &Ui) -> Form {
    match (args.format, ui.is_json()) {
        (Some(CaptureFormat::Json), _) | (None, true) => Form::Json,
        (Some(CaptureFormat::Line) | None, _) => Form::Line,
        (Some(CaptureFormat::Sql), _) => Form::Sql,
        (Some(CaptureFormat::Slowlog), _) => Form::SlowLog,
    }
}
