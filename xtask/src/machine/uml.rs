//! The machine itself: started, watched, and ended when its time is over.

use super::{Room, SCRATCH_DISK, SPARE_DISKS};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How often the machine is asked whether it still runs.
const LOOK: Duration = Duration::from_millis(100);

/// A machine; killed when dropped.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a machine until it powers itself off; its console is our standard output. Returns how many
/// seconds that took. An error when it is not off at the deadline.
pub(super) fn run(root: &Path, kernel: &Path, room: &Room, deadline: Duration) -> Result<u64> {
    let started = Instant::now();
    let child = command(root, kernel, room)?.spawn();
    let mut machine = Machine(child.context("failed to start user-mode Linux")?);
    while started.elapsed() < deadline {
        if let Some(status) = machine.0.try_wait()? {
            // How it ended does not matter: only what it told of each test does.
            if !status.success() {
                bail!("the machine ended with {status}");
            }
            return Ok(started.elapsed().as_secs());
        }
        std::thread::sleep(LOOK);
    }
    bail!("the machine is still on after {} s", deadline.as_secs());
}

fn command(root: &Path, kernel: &Path, room: &Room) -> Result<Command> {
    // With the last argument of setpriv the machine dies with us, however we die; its processes die with it.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    command.arg(kernel.join("linux"));
    // Its memory is a file, best in memory. Without seccomp its programs are traced, and each call of its kernel and
    // each new page takes several times as long.
    command.env("TMPDIR", "/dev/shm");
    command.args(["mem=1536M", "seccomp=on", "quiet"]);
    command.args(["rdinit=/init", "loglevel=3", "panic=-1"]);
    command.arg(argument("initrd", &kernel.join("initrd")));
    for disk in std::iter::once(SCRATCH_DISK).chain(SPARE_DISKS) {
        command.arg(argument(disk, &room.path.join(disk)));
    }
    // The console, and the second serial line: each is read from nowhere and written to one of our descriptors.
    command.args(["con=null", "con0=null,fd:1", "ssl=null", "ssl1=null,fd:0"]);
    command.stdin(File::create(room.path.join("verdict"))?);
    // Where it notes that it runs; otherwise that is the home directory.
    command.arg(argument("uml_dir", &room.path));
    command.arg(argument("evenkeel.inside", &root.join("tests/vm/inside")));
    command.arg(argument("evenkeel.run", &room.path));
    Ok(command)
}

fn argument(name: &str, value: &Path) -> String {
    format!("{name}={}", value.display())
}
