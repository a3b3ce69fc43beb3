//! The machine itself: started, watched, and ended when its time is over.

use super::{Room, SPARE_DISKS};
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often the machine is asked whether it still runs.
const LOOK: Duration = Duration::from_millis(100);

/// Whoever asks for the time, or waits, leaves the emulated processor for an emulated device, unless the
/// kernel is told that the processor's own counter is good, and to leave the local timer alone: a sixth of
/// the host's time.
const CHEAP_TIME: &str = "clocksource=tsc tsc=reliable nosmp nolapic";

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
    let child = command(root, kernel, room, &tsc_khz(kernel)?).spawn();
    let mut machine = Machine(child.context("failed to start qemu-system-x86_64")?);
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

/// Measures how many thousand times a second the processor's counter counts, which the machine must not do: on a
/// host at work its seconds would be a third as long.
fn tsc_khz(kernel: &Path) -> Result<String> {
    let reported = Command::new(kernel.join("tsc_khz")).output();
    let reported = reported.context("failed to measure the processor's counter")?;
    let khz = String::from_utf8(reported.stdout)?.trim().to_owned();
    let is_one = khz.parse::<u32>().is_ok_and(|khz| khz > 0);
    ensure!(is_one, "the processor's counter counts '{khz}' kHz");
    Ok(khz)
}

fn command(root: &Path, kernel: &Path, room: &Room, tsc_khz: &str) -> Command {
    // With the last argument of setpriv the machine dies with us, however we die.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
    // No KVM: nested, it hangs, and what is measured here is not speed. One processor: a second one takes
    // two fifths more of the host's time, for messages between the two.
    command.args(["-accel", "tcg", "-cpu", "Nehalem", "-smp", "1"]);
    command.args(["-m", "1536", "-nodefaults", "-display", "none"]);
    command.args(["-no-reboot", "-device", "virtio-rng-pci"]);
    command.arg("-kernel").arg(kernel.join("vmlinuz"));
    command.arg("-initrd").arg(kernel.join("initrd"));
    // What the host's kernel was told to write down does not matter once the machine is off.
    for disk in std::iter::once("vda").chain(SPARE_DISKS) {
        let file = room.path.join(disk);
        command.arg("-drive").arg(format!(
            "file={},if=virtio,format=raw,cache=unsafe,discard=unmap",
            file.display()
        ));
    }
    command.args([
        "-virtfs",
        "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
    ]);
    command.args(["-serial", "stdio", "-serial"]);
    command.arg(format!("file:{}", room.path.join("verdict").display()));
    command.arg("-append").arg(format!(
        "console=ttyS0 loglevel=3 panic=-1 mitigations=off {CHEAP_TIME} tsc_early_khz={tsc_khz} rdinit=/init evenkeel.inside={} evenkeel.run={}",
        root.join("tests/vm/inside").display(),
        room.path.display()
    ));
    command.stdin(Stdio::null());
    command
}
