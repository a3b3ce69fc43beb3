//! The load of a round, and a method that is run in a loop meanwhile.

use super::able::quietly;
use super::method::{Leaves, Method, Words};
use super::process;
use super::report::Once;
use super::request::DATABASE;
use super::run_directory::DATA;
use super::stage::Stage;
use crate::tpcc::{self, Keying, TpccReport, TpccRequest};
use evenkeel_op::workers::joined;
use evenkeel_op::{Cancel, Context, Error, Event, Progress, Result, Run};
use evenkeel_server::launch::Running;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long one backup or restore may take.
pub(super) const BACKUP: Duration = Duration::from_secs(6 * 3600);
/// How often it is looked whether it is time.
const POLL: Duration = Duration::from_millis(5);

/// What was run, and what it left.
#[derive(Debug, Default)]
pub(super) struct Looped {
    pub(super) command: Option<String>,
    pub(super) backups: Vec<Once>,
    /// The last one, whole.
    pub(super) newest: Option<PathBuf>,
}

/// Hears that the load has begun.
#[derive(Debug, Default)]
struct Bell(AtomicBool);

impl Progress for Bell {
    fn event(&self, event: Event) {
        if matches!(event, Event::PhaseStarted { .. }) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}

/// The servers of a round.
pub(super) struct Servers {
    pub(super) source: Running,
    pub(super) replica: Option<Running>,
}

impl Servers {
    /// The one that is backed up.
    fn backed_up(&self) -> &Running {
        self.replica.as_ref().unwrap_or(&self.source)
    }

    /// Fails when one is gone, with what its log says.
    fn check(&mut self) -> Result<()> {
        let all = std::iter::once(&mut self.source).chain(&mut self.replica);
        for server in all {
            if !server.is_running() {
                let log = server.log_tail(6);
                return Err(Error::failed(format!("the server died:\n{log}")));
            }
        }
        Ok(())
    }
}

/// Runs the load, and the method in a loop once the ramp-up is over.
///
/// Errors: of the method, the server, or an interruption; then the load was ended, too.
pub(super) fn with(
    method: &Method,
    repetition: usize,
    servers: &mut Servers,
    stage: &Stage<'_>,
    run: Run<'_>,
) -> Result<(TpccReport, Looped)> {
    let request = stage.request;
    let tpcc = TpccRequest {
        database: DATABASE.to_owned(),
        warehouses: None,
        connections: request.connections,
        keying: Keying::None,
        ramp_up: request.ramp_up,
        measure: request.measure,
        interval: Duration::from_secs(1),
        failures_allowed: None,
        check: false,
        is_checked: false,
        like_tpcc_mysql: false,
        // The same for all methods of a repetition.
        seed: request.seed.wrapping_add(repetition as u64),
    };
    let options = servers.source.connect_options();
    let (stop, bell) = (Cancel::new(), Bell::default());
    std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let run = Run {
                progress: &bell,
                cancel: &stop,
            };
            tpcc::measure(&options, &tpcc, run)
        });
        let looped = (|| {
            while !bell.0.load(Ordering::SeqCst) && !load.is_finished() {
                resume(servers, run)?;
                std::thread::sleep(POLL);
            }
            wait_until(Instant::now() + request.ramp_up, servers, run)?;
            let until = Instant::now() + request.measure;
            in_a_loop(method, until, servers, stage, quietly(run))
        })();
        if looped.is_err() {
            stop.cancel(15);
        }
        let load = joined(load, "a thread of the load");
        let looped = looped?;
        let report = load.context(|| "the load failed")?;
        match report.ended {
            "time" => Ok((report, looped)),
            _ => Err(Error::failed(
                "the server went down before the time was over",
            )),
        }
    })
}

/// Fails when nobody wants to continue, or nobody can.
fn resume(servers: &mut Servers, run: Run<'_>) -> Result<()> {
    run.cancel.check()?;
    servers.check()
}

fn wait_until(end: Instant, servers: &mut Servers, run: Run<'_>) -> Result<()> {
    while Instant::now() < end {
        resume(servers, run)?;
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Backs up again and again. The last one is waited for, although the load may be over by then.
fn in_a_loop(
    method: &Method,
    until: Instant,
    servers: &mut Servers,
    stage: &Stage<'_>,
    run: Run<'_>,
) -> Result<Looped> {
    let mut looped = Looped::default();
    let Some(backup) = &method.backup else {
        wait_until(until, servers, run)?;
        return Ok(looped);
    };
    let request = stage.request;
    let socket = servers.backed_up().socket().to_owned();
    let datadir = stage.run_directory.round(match servers.replica {
        Some(_) => "replica",
        None => DATA,
    });
    let log = stage.run_directory.run_dir().join("method");
    let mut before = 0;
    while Instant::now() < until {
        let number = match method.is_incremental {
            true => 0,
            false => looped.backups.len(),
        };
        let output = stage.run_directory.output().join(number.to_string());
        fs::create_dir_all(&output).context(|| format!("failed to create {}", output.display()))?;
        let words = Words {
            evenkeel: &request.evenkeel,
            bin: request.server.path.parent().unwrap_or(Path::new("/")),
            database: DATABASE,
            threads: request.threads,
            socket: &socket,
            datadir: &datadir,
            output: &output,
            target: &output,
        };
        let line = words.fill(backup);
        let begun = Instant::now();
        let ended = process::run(&line, &log, BACKUP, &mut || resume(servers, run))?;
        looped.command.get_or_insert(line);
        if let Some(why) = ended.failure {
            servers.check()?;
            return Err(Error::failed(format!("the backup failed: {why}")));
        }
        let all = disk_bytes(&output)?;
        let older = looped.newest.replace(output.clone());
        looped.backups.push(Once {
            seconds: ended.wall.as_secs_f64(),
            cpu_seconds: ended.cpu_seconds,
            bytes: match method.is_incremental {
                true => all.saturating_sub(before),
                false => all,
            },
            under_load: Instant::now() <= until,
        });
        before = all;
        if let Some(older) = older.filter(|older| *older != output) {
            fs::remove_dir_all(&older)
                .context(|| format!("failed to remove {}", older.display()))?;
        }
        wait_until(until.min(begun + request.every), servers, run)?;
    }
    if method.leaves == Leaves::Nothing {
        looped.newest = None;
    }
    Ok(looped)
}

/// Returns what a directory takes on disk.
fn disk_bytes(top: &Path) -> Result<u64> {
    let listing = || format!("failed to look into {}", top.display());
    let mut bytes = 0;
    for entry in fs::read_dir(top).context(listing)? {
        let entry = entry.context(listing)?;
        let is = entry.metadata().context(listing)?;
        bytes += match is.is_dir() {
            true => disk_bytes(&entry.path())?,
            false => is.blocks() * 512,
        };
    }
    Ok(bytes)
}
