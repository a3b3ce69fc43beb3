//! `capture`.

use super::connection::SslModeArg;
use clap::{ArgGroup, Args, ValueEnum};
use evenkeel_repository::Recipient;
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
  evenkeel capture --interface any --directory shop.capture       Into Parquet files: for digest, replay, SQL
  evenkeel capture --interface any --directory shop.capture --append --redact
  evenkeel capture --interface any --directory s3://captures/shop --encrypt-to age1...
  evenkeel capture --tap :3307 --to 127.0.0.1:3306                Clients connect to port 3307 of this host
  evenkeel capture --tap /run/evenkeel/tap.sock --to /run/mysqld/mysqld.sock
  evenkeel capture --tap 0.0.0.0:3307 --to db1 --tap-cert tap.pem --tap-key tap-key.pem
  evenkeel capture --uprobes                                      What the server of this host runs, also by TLS
  evenkeel capture --uprobes --datadir /srv/shop/data --for 10s   One of several servers
  evenkeel capture --log /var/lib/mysql/slow.log --follow         What the server writes into its slow query log
  evenkeel capture --log general.log.1.gz --format sql            What a general query log holds
  evenkeel capture --server /run/mysqld/mysqld.sock --for 1m      What the server's performance_schema remembers

Prepared statements are shown with their values. If a statement was prepared before the capture started, its
text is unknown, and it is shown as stmt#NUMBER. Passwords in statements are replaced by '***'. TLS hides
statements; the connections that use it are counted. The last line, on standard error, reports how much was
captured.

--tap relays connections to the server byte for byte, as an ordinary user, and shows their statements. The
server sees the tap's address instead of the clients'. Without --tap-cert, the tap does not offer TLS: clients
that only prefer it send everything in the clear, logins included; accounts that require TLS cannot log in,
nor, often, accounts with caching_sha2_password that the server has not cached. :PORT listens on 127.0.0.1
only; to accept clients of the network, type 0.0.0.0:PORT. If statements come faster than they can be written,
they are dropped from the capture and counted, never from the traffic. At Ctrl-C, connections are closed once
they are idle.

--uprobes has the kernel read each command of a running server where the server dispatches it: also those by
TLS, compression or Unix socket. Rows, errors and the time to the first byte are not known; accounts, schemas
and numbers of connections only of those that began after the capture. It needs Linux 5.8, root (or CAP_BPF,
CAP_PERFMON and CAP_SYS_PTRACE), and a server whose program kept its dynamic symbols, as packages do.

--log reads what the server wrote: a statement is shown when the next one begins or the log ends. A general
query log does not say how long statements took. --server asks a server every second for the statements that
ended: those that it forgot before are counted, and the values of prepared statements are not known.

Exit code 3: packets, bytes or entries are missing, the server forgot statements, a statement's text or a
connection was hidden, or the capture is cut off or damaged. Exit code 14: --interface needs root or CAP_NET_RAW, --uprobes needs root.";

/// Show the statements that clients send, from packets, relayed connections, logs or the server.
#[derive(Args, Debug)]
#[command(after_help = CAPTURE, group = ArgGroup::new("source").required(true))]
pub struct Capture {
    /// The interface to capture on, as root; `any` is all of them.
    #[arg(long, value_name = "NAME", group = "source")]
    pub interface: Option<String>,
    /// The captured packets, a pcap or pcapng file; `-` reads standard input.
    #[arg(long, value_name = "FILE", group = "source")]
    pub pcap: Option<PathBuf>,
    /// Relay connections from this address or socket file: `:3307`, `0.0.0.0:3307`, `/run/evenkeel/tap.sock`.
    #[arg(long, value_name = "LISTEN", group = "source", requires = "to")]
    pub tap: Option<String>,
    /// With --tap: the server, as `HOST:PORT` or its socket file.
    #[arg(long, value_name = "SERVER", requires = "tap", help_heading = "Tap")]
    pub to: Option<String>,
    /// With --tap: the certificate for clients that use TLS, in PEM.
    #[arg(long, value_name = "FILE", requires_all = ["tap", "tap_key"], help_heading = "Tap")]
    pub tap_cert: Option<PathBuf>,
    /// With --tap: the key of --tap-cert, in PEM.
    #[arg(long, value_name = "FILE", requires = "tap_cert", help_heading = "Tap")]
    pub tap_key: Option<PathBuf>,
    /// With --tap: relay TLS unread; the statements of these connections are hidden, and counted as such.
    #[arg(long, requires = "tap", conflicts_with_all = ["tap_cert", "ssl_mode", "ssl_ca"], help_heading = "Tap")]
    pub tap_pass_tls: bool,
    /// With --tap: the mode of its socket file, as chmod takes it.
    #[arg(
        long,
        value_name = "MODE",
        default_value = "0660",
        requires = "tap",
        help_heading = "Tap"
    )]
    pub tap_mode: String,
    /// With --tap: how strictly to require TLS to the server; PREFERRED uses it for clients that use it.
    #[arg(
        long,
        value_name = "MODE",
        ignore_case = true,
        requires = "tap",
        help_heading = "Tap"
    )]
    pub ssl_mode: Option<SslModeArg>,
    /// With --tap: certificate authorities to trust for the server, in PEM.
    #[arg(long, value_name = "FILE", requires = "tap", help_heading = "Tap")]
    pub ssl_ca: Option<PathBuf>,
    /// With --tap: at the end, close connections that are not idle after this time.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = super::span, requires = "tap",
          help_heading = "Tap")]
    pub drain: Duration,
    /// Watch a server's process on this host, as root: the one that runs, or the one named below.
    #[arg(long, group = "source")]
    pub uprobes: bool,
    /// With --uprobes: the server's process.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..), requires = "uprobes",
          help_heading = "Uprobes")]
    pub pid: Option<i32>,
    /// With --uprobes: the server that runs on this data directory.
    #[arg(
        long,
        value_name = "DIR",
        requires = "uprobes",
        conflicts_with = "pid",
        help_heading = "Uprobes"
    )]
    pub datadir: Option<PathBuf>,
    /// A slow or general query log of a server, plain or compressed with gzip or zstd; `-` reads standard input.
    #[arg(long, value_name = "FILE", group = "source")]
    pub log: Option<PathBuf>,
    /// With --log: begin at its end, and show what the server writes from now on, also after the log was rotated.
    #[arg(long, requires = "log")]
    pub follow: bool,
    /// Ask this server what its performance_schema remembers, as it runs: a host, HOST:PORT, or the path of a Unix
    /// socket.
    #[arg(long, value_name = "SERVER", group = "source")]
    pub server: Option<String>,
    /// With --server: read how to connect to it from this option file only.
    #[arg(
        long,
        value_name = "FILE",
        requires = "server",
        help_heading = "Server"
    )]
    pub defaults_file: Option<PathBuf>,
    /// With --server: how often to ask it: what it forgets in between is missed, and counted.
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "server", value_parser = super::span,
          help_heading = "Server")]
    pub interval: Duration,
    /// Stop after this time; not with --pcap, nor with --log without --follow [default: at Ctrl-C].
    #[arg(long = "for", value_name = "TIME", value_parser = super::span, conflicts_with = "pcap")]
    pub span: Option<Duration>,
    /// With --interface, --tap or --uprobes: memory for what waits to be decoded [default: 64M, less on small hosts].
    #[arg(long, value_name = "SIZE", value_parser = super::size, conflicts_with_all = ["pcap", "log", "server"])]
    pub ring: Option<u64>,
    /// The port that the server listens on; repeat for several.
    #[arg(long, value_name = "PORT", default_value = "3306",
          value_parser = clap::value_parser!(u16).range(1..), conflicts_with_all = ["tap", "uprobes", "log", "server"])]
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
    /// Where statements are kept.
    #[command(flatten)]
    pub kept: CaptureKept,
}

/// A directory of captures.
#[derive(Args, Debug)]
#[command(next_help_heading = "Directory")]
pub struct CaptureKept {
    /// Instead of showing statements, write them into Parquet files in this directory, new or empty, or in an
    /// object store (s3://BUCKET/FOLDER); for `digest`, `replay`, DuckDB and Spark.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "format")]
    pub directory: Option<PathBuf>,
    /// Add to a directory that already holds captures.
    #[arg(long, requires = "directory")]
    pub append: bool,
    /// Begin another file when one has about this size.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = super::size, requires = "directory")]
    pub file_size: u64,
    /// Finish a file after this time; if the capture is killed, at most that much is lost.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = super::span, requires = "directory")]
    pub file_time: Duration,
    /// Keep no values: of each statement only the fingerprint is written. Cannot be replayed.
    #[arg(long, requires = "directory")]
    pub redact: bool,
    /// Encrypt the files for this recipient (`age1…`); repeat for several.
    #[arg(long, value_parser = super::recipient, value_name = "RECIPIENT", requires = "directory")]
    pub encrypt_to: Vec<Recipient>,
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
