//! `cron`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples, as lines of a crontab:
  0 3 * * *  evenkeel cron --lock /run/shop.lock --log /var/log/shop-backup.log -t -- \\
                 evenkeel backup /backup/shop
  */5 * * *  evenkeel cron --lock /run/poll.lock --busy-ok -- ./poll.sh
  0 4 * * 0  evenkeel cron --lock /run/shop.lock --wait=2h -- evenkeel verify /backup/shop --boot

The command's standard output and error go to the log, line by line. They are printed only if it fails, so
cron sends mail only then. evenkeel exits with the command's exit code, or with 128+N if signal N killed the
command. The lock is held until every process that the command started has ended.";

/// Run a command from cron: one at a time, logged, silent unless it fails.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Cron {
    /// Run only while holding a lock on this file, which is created if missing; exit code 11 if the lock is
    /// held.
    #[arg(long, value_name = "FILE")]
    pub lock: Option<PathBuf>,
    /// Wait for the lock, at most this long [without a value: a day].
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, requires = "lock",
          default_missing_value = "1d", value_parser = super::span, overrides_with = "no_wait")]
    pub wait: Option<Duration>,
    /// Give up at once if the lock is held (the default).
    #[arg(long, overrides_with = "wait")]
    pub no_wait: bool,
    /// If the lock is held, exit quietly with code 0.
    #[arg(long, requires = "lock")]
    pub busy_ok: bool,
    /// Append to this log file, which is created if missing [default: no log].
    #[arg(long, short = 'l', visible_alias = "logfile", value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Start each line of the log with the local time.
    #[arg(long, short = 't', visible_alias = "timestamp")]
    pub timestamps: bool,
    /// Print this run's log even if the command succeeds.
    #[arg(long)]
    pub print_always: bool,
    /// The command and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
