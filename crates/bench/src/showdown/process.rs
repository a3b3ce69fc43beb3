//! Commands that are timed, with all the processor time of what they started.

use evenkeel_op::{Context, Error, Result};
use evenkeel_server::launch::{kill_group, spawn};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often a command is looked at: times are as exact as that.
const POLL: Duration = Duration::from_millis(5);
/// How the kernel counts processor time for programs, per second, on every machine.
const TICKS: f64 = 100.0;
/// What is reported about a command that failed.
const LINES: usize = 8;

/// How a command ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) wall: Duration,
    /// Processor time of it and of all that it waited for.
    pub(super) cpu_seconds: f64,
    /// Why it failed, with the last lines it wrote.
    pub(super) failure: Option<String>,
}

/// Runs a command in a shell. `watch` is asked all the time whether to continue.
///
/// Errors: those of `watch`, after all of it was killed; `Failed` when it takes longer than allowed.
pub(super) fn run(
    line: &str,
    log: &Path,
    allowed: Duration,
    watch: &mut dyn FnMut() -> Result<()>,
) -> Result<Ended> {
    let file = File::create(log).context(|| format!("failed to create {}", log.display()))?;
    let second = file.try_clone().context(|| "failed to copy a descriptor")?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]);
    command.stdin(Stdio::null()).stdout(file).stderr(second);
    let cpu = reaped_cpu_seconds();
    let begun = Instant::now();
    let mut child = spawn(command).context(|| "failed to run a shell")?;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => (),
            Err(error) => return Err(error).context(|| "failed to wait for a command"),
        }
        let mut resume = watch();
        if resume.is_ok() && begun.elapsed() > allowed {
            let allowed = evenkeel_op::units::duration(allowed);
            resume = Err(Error::failed(format!("{line}: longer than {allowed}")));
        }
        if let Err(error) = resume {
            kill_group(&mut child);
            return Err(error);
        }
        std::thread::sleep(POLL);
    };
    let wall = begun.elapsed();
    Ok(Ended {
        wall,
        cpu_seconds: reaped_cpu_seconds() - cpu,
        failure: (!status.success()).then(|| format!("{status}: {}", last_lines(log))),
    })
}

/// Returns what all processes that were waited for have used, theirs included.
fn reaped_cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field may hold anything, but ends with the last bracket.
    let fields = text.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_ascii_whitespace().skip(13).take(2);
    ticks
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / TICKS
}

fn last_lines(log: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_command_started_counts_and_why_it_failed_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let line = format!("sh -c '{busy}' & wait; echo gone >&2; exit 3");
        let ended = run(&line, &log, LONG, &mut || Ok(())).unwrap();
        assert!(ended.cpu_seconds > 0.0, "{ended:?}");
        let noted = ended.failure.unwrap();
        assert!(noted.contains("3") && noted.ends_with("gone"), "{noted}");
    }

    #[test]
    fn who_asks_to_stop_is_heard() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let begun = Instant::now();
        let mut stop = || Err(Error::failed("stop"));
        let error = run("sleep 600", &log, LONG, &mut stop).unwrap_err();
        assert_eq!(error.to_string(), "stop");
        let error = run("sleep 600", &log, Duration::ZERO, &mut || Ok(())).unwrap_err();
        assert!(error.to_string().contains("longer than"), "{error}");
        assert!(begun.elapsed() < LONG);
    }
}
