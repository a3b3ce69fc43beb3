//! Which start of this host it is.

use std::{fs, io};

/// Returns the kernel's name for this start of the host. What was written and not synced before is lost with another,
/// and process numbers are given again.
///
/// Errors: those of the system, where `/proc` is not mounted.
pub fn boot_id() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}
