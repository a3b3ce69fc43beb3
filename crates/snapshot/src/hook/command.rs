//! Running a user's command with a deadline.

use evenkeel_op::{Context, Error, Result};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How much of the end of each output is kept, in bytes.
const KEPT: usize = 64 * 1024;

/// Runs `sh -c command` and returns what it printed (the last 64 KiB). Fails with the end of its
/// stderr when it fails, and when it takes longer than `timeout`; its process group is killed then.
pub(super) fn run(
    command: &str,
    environment: &[(&str, &OsStr)],
    timeout: Duration,
) -> Result<String> {
    let deadline = Instant::now() + timeout;
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(command)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that what it started can be killed with it.
        .process_group(0)
        .spawn()
        .context(|| format!("failed to run '{command}'"))?;
    let output = collect(child.stdout.take());
    let errors = collect(child.stderr.take());
    let status = wait(&mut child, deadline)?;
    let (Some(status), Some(output), Some(errors)) = (
        status,
        received(&output, deadline),
        received(&errors, deadline),
    ) else {
        kill_group(&mut child);
        let limit = evenkeel_op::units::duration(timeout);
        return Err(
            Error::failed(format!("'{command}' took longer than {limit}"))
                .hint("a background process that keeps its output open counts as still running"),
        );
    };
    if !status.success() {
        let errors = errors.trim();
        let said = if errors.is_empty() {
            String::new()
        } else {
            format!(": {errors}")
        };
        return Err(Error::failed(format!(
            "'{command}' ended with {status}{said}"
        )));
    }
    Ok(output)
}

/// Waits for a child until the deadline.
fn wait(child: &mut Child, deadline: Instant) -> Result<Option<ExitStatus>> {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child
            .try_wait()
            .context(|| "failed to wait for the command")?
        {
            return Ok(Some(status));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Reads a stream to its end in a thread, keeping the last part.
fn collect(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut kept = Vec::new();
        let mut buffer = [0; 8192];
        if let Some(mut stream) = stream {
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                kept.extend_from_slice(&buffer[..count]);
                let excess = kept.len().saturating_sub(KEPT);
                kept.drain(..excess);
            }
        }
        // The receiver is gone when the deadline passed.
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    });
    receiver
}

fn received(receiver: &Receiver<String>, deadline: Instant) -> Option<String> {
    receiver
        .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        .ok()
}

fn kill_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        // It may have ended by now; its group then is empty or its children's.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn output_and_environment_get_through() {
        let text = run("echo one; echo $X", &[("X", OsStr::new("two"))], LONG).unwrap();
        assert_eq!(text, "one\ntwo\n");
    }

    #[test]
    fn failure_carries_stderr_and_status() {
        let error = run("echo sad >&2; exit 3", &[], LONG).unwrap_err();
        let text = error.chain();
        assert!(
            text.contains("sad") && text.contains("exit status: 3"),
            "{text}"
        );
    }

    #[test]
    fn deadline_kills_the_whole_group() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let command = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let error = run(&command, &[], Duration::from_millis(300)).unwrap_err();
        assert!(error.chain().contains("took longer"), "{}", error.chain());
        let pid: i32 = std::fs::read_to_string(file)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let deadline = Instant::now() + LONG;
        // Gone, or a zombie until its new parent reaps it.
        while std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z"))
        {
            assert!(Instant::now() < deadline, "process {pid} lives on");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn endless_output_is_cut_at_its_beginning() {
        let text = run("yes | head -c 1000000; echo end", &[], LONG).unwrap();
        assert_eq!(text.len(), KEPT);
        assert!(text.ends_with("end\n"));
    }
}
