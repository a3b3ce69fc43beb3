//! What is in memory before a start.

use super::tree;
use evenkeel_op::{Cancel, Context, Result};
use rustix::fs::Advice;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// The kernel's switch, for root only.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Has the kernel forget a directory: as root all that it remembers of any file, programs included.
pub(super) fn forget(directory: &Path, cancel: &Cancel) -> Result<()> {
    // What is not written yet cannot be forgotten.
    rustix::fs::sync();
    if rustix::process::geteuid().is_root() && fs::write(DROP_CACHES, "3\n").is_ok() {
        return Ok(());
    }
    tree::each_file(directory, cancel, &mut |_, file| {
        rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?;
        Ok(())
    })
}

/// Reads all of a directory and the server's program, so that only the emulated delay is waited
/// for, and not the disk below it. Then takes as much memory as that once more and gives it back:
/// a virtual machine's host may have lent out what lay idle, and having it returned while a start
/// is timed would take longer than the reads.
pub(super) fn read(directory: &Path, program: &Path, cancel: &Cancel) -> Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    let mut swallow = |file: &fs::File| -> io::Result<()> {
        let mut file = file;
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                read => bytes += read,
            }
        }
    };
    fs::File::open(program)
        .and_then(|file| swallow(&file))
        .context(|| format!("failed to read {}", program.display()))?;
    tree::each_file(directory, cancel, &mut |_, file| swallow(file))?;
    // Not zero: the kernel need not find memory for zeros.
    std::hint::black_box(vec![1u8; bytes]);
    Ok(())
}
