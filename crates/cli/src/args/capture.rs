//! `capture`.

use clap::{ArgGroup, Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

const CAPTURE: &str = "\
Examples:
  evenkeel capture --interface any                                What runs right now
  evenkeel capture --interface eth0 --port 3307 --for 10s --format slowlog > shop.log
  evenkeel capture --pcap shop.pcap                               What ran while tcpdump wrote this file
  tcpdump -i any -s 0 -U -w - 'tcp port 3306' | evenkeel capture --pcap -
  evenkeel capture --pcap shop.pcap --min-latency 100ms --user app
  evenkeel capture --pcap shop.pcap --format slowlog > shop.log   For tools that read slow logs

Prepared statements are shown with their values. If a statement was prepared before the capture started, its
text is unknown, and it is shown as stmt#NUMBER. Passwords in statements are replaced by '***'. TLS hides
statements; the connections that use it are counted. The last line, on standard error, reports how much was
captured. Exit code 3: packets or bytes are missing, a statement's text or a connection was hidden, or the
capture is cut off or damaged. Exit code 14: --interface needs root or CAP_NET_RAW.";

/// Show the statements that clients send, decoded from captured packets.
#[derive(Args, Debug)]
#[command(after_help = CAPTURE, group = ArgGroup::new("source").required(true))]
pub struct Capture {
    /// The interface to capture on, as root; `any` is all of them.
    #[arg(long, value_name = "NAME", group = "source")]
    pub interface: Option<String>,
    /// The captured packets, a pcap or pcapng file; `-` reads standard input.
    #[arg(long, value_name = "FILE", group = "source")]
    pub pcap: Option<PathBuf>,
    /// With --interface: stop after this time [default: at Ctrl-C].
    #[arg(long = "for", value_name = "TIME", value_parser = super::span, conflicts_with = "pcap")]
    pub span: Option<Duration>,
    /// With --interface: memory for packets that wait to be decoded [default: 64M, less on small hosts].
    #[arg(long, value_name = "SIZE", value_parser = super::size, conflicts_with = "pcap")]
    pub ring: Option<u64>,
    /// The port that the server listens on; repeat for several.
    #[arg(long, value_name = "PORT", default_value = "3306",
          value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Vec<u16>,
    /// The output format [default: line; with --json: json].
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<CaptureFormat>,
    /// Only statements of this account; repeat for several.
    #[arg(long, value_name = "NAME", help_heading = "Filters")]
    pub user: Vec<String>,
    /// Only statements with this default schema; repeat for several.
    #[arg(long, value_name = "SCHEMA", help_heading = "Filters")]
    pub database: Vec<String>,
    /// Only statements from this address; repeat for several.
    #[arg(long, value_name = "ADDRESS", help_heading = "Filters")]
    pub host: Vec<String>,
    /// Only statements whose text matches this regular expression; case is ignored.
    #[arg(long = "match", value_name = "REGEX", help_heading = "Filters")]
    pub matching: Option<String>,
    /// Only statements that took at least this long: `10ms`.
    #[arg(long, value_name = "TIME", value_parser = super::span, help_heading = "Filters")]
    pub min_latency: Option<Duration>,
    /// Keep at most this much of each statement's text.
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = super::size)]
    pub max_text: u64,
}

/// The output format.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureFormat {
    /// One line per statement: time, connection, account, schema, latency, rows, text.
    Line,
    /// The text of each statement, followed by a semicolon.
    Sql,
    /// One JSON document per line.
    Json,
    /// The format of slow query logs.
    Slowlog,
}
