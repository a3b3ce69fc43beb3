//! Runs the programs of LVM and device-mapper.

use evenkeel_op::workers::joined;
use evenkeel_op::{Context, Error, Result};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may take.
const LIMIT: Duration = Duration::from_secs(600);
/// Where administrators' programs are, which are not on everybody's path.
const PLACES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
/// How much of what a program says is kept, in bytes.
const KEPT: u64 = 16 << 20;

/// Fails when a program is not installed.
pub(super) fn require(program: &str) -> Result<PathBuf> {
    let paths = PLACES.iter().map(|place| Path::new(place).join(program));
    paths.into_iter().find(|path| path.exists()).ok_or_else(|| {
        let package = match program {
            "thin_delta" => "thin-provisioning-tools",
            "dmsetup" => "dmsetup",
            _ => "lvm2",
        };
        Error::refused(format!("{program} is not installed")).hint(format!("install {package}"))
    })
}

/// Runs a program to its end and returns what it printed. One that takes too long is an error, and is
/// left alone: killed at the wrong moment, it would leave a volume suspended forever.
pub(super) fn run(program: &str, args: &[&str]) -> Result<String> {
    let mut text = String::new();
    each_line(program, args, |line| {
        text.push_str(line);
        text.push('\n');
        Ok(())
    })?;
    Ok(text)
}

/// The same, handing over each line as it comes.
pub(super) fn each_line(
    program: &str,
    args: &[&str],
    mut line: impl FnMut(&str) -> Result<()> + Send,
) -> Result<()> {
    let shown = || format!("{program} {}", args.join(" "));
    let mut child = Command::new(require(program)?)
        .args(args)
        .env("LVM_SUPPRESS_FD_WARNINGS", "1")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A key that interrupts this process must not interrupt a change of volumes half-way.
        .process_group(0)
        .spawn()
        .context(|| format!("failed to run {}", shown()))?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let (read, complaint, status) = thread::scope(|scope| {
        let reader = scope.spawn(move || match output {
            Some(output) => BufReader::new(output)
                .lines()
                .try_for_each(|text| line(&text.context(|| "failed to read its output")?)),
            None => Ok(()),
        });
        let complaint = scope.spawn(move || {
            let mut text = Vec::new();
            if let Some(errors) = errors {
                // What cannot be read is not reported.
                let _ = errors.take(KEPT).read_to_end(&mut text);
            }
            String::from_utf8_lossy(&text).trim().to_owned()
        });
        let status = wait(&mut child);
        (
            joined(reader, "a reader"),
            complaint.join().unwrap_or_default(),
            status,
        )
    });
    let status = status.context(|| format!("failed to wait for {}", shown()))?;
    if !status.success() {
        return Err(Error::failed(format!("{} failed: {complaint}", shown())));
    }
    read.context(|| format!("failed to understand {}", shown()))
}

fn wait(child: &mut Child) -> Result<ExitStatus> {
    let deadline = Instant::now() + LIMIT;
    let mut pause = Duration::from_millis(1);
    loop {
        let ended = child.try_wait().context(|| "failed to wait")?;
        if let Some(status) = ended {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            let limit = evenkeel_op::units::duration(LIMIT);
            return Err(Error::failed(format!(
                "it has taken longer than {limit} and still runs as process {}",
                child.id()
            )));
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_gets_through() {
        assert_eq!(run("printf", &["a\\nb\\n"]).unwrap(), "a\nb\n");
        let error = run("ls", &["/nonexistent-place"]).unwrap_err().chain();
        assert!(error.contains("nonexistent-place"), "{error}");
        let error = run("no-such-program", &[]).unwrap_err();
        assert!(error.to_string().contains("is not installed"), "{error}");
    }

    #[test]
    fn a_line_that_is_not_understood_is_an_error() {
        let error = each_line("printf", &["a\\nb\\n"], |line| match line {
            "a" => Ok(()),
            _ => Err(Error::failed("what?")),
        });
        assert!(error.unwrap_err().chain().contains("what?"));
    }
}
