//! The key that masked values are made with, from a file that nobody else reads.

use evenkeel_logical::dump::MaskKey;
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Context, Error, Result};
use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use zeroize::Zeroizing;

/// Fewer bytes could be tried one after the other.
const LENGTH_MIN: usize = 32;
/// No key is longer, in bytes.
const LENGTH_MAX: u64 = 64 << 10;

/// Reads the key.
///
/// Errors: `Usage` for what is no file, not this user's own, open to others, or too short.
pub fn mask_key(path: &Path) -> Result<MaskKey> {
    // A pipe that nobody writes to would be waited for.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| unreadable("key file", path, error))?;
    // Of what was opened, whatever has its name by now.
    is_closed(&file, path)?;
    let mut key = Zeroizing::new(Vec::new());
    file.take(LENGTH_MAX + 1)
        .read_to_end(&mut key)
        .context(|| format!("failed to read the key file {}", path.display()))?;
    if key.len() < LENGTH_MIN || key.len() as u64 > LENGTH_MAX {
        return Err(Error::usage(format!(
            "the key file {} has {} bytes: a key must have {LENGTH_MIN} to {LENGTH_MAX} bytes",
            path.display(),
            key.len().min(LENGTH_MAX as usize + 1)
        ))
        .hint("make one: (umask 077; head -c 32 /dev/urandom > FILE)"));
    }
    Ok(MaskKey::of(&key))
}

fn is_closed(file: &File, path: &Path) -> Result<()> {
    let shown = path.display();
    let found = file
        .metadata()
        .context(|| format!("failed to read the key file {shown}"))?;
    if !found.is_file() {
        return Err(Error::usage(format!("{shown} is not a key file"))
            .hint("make one: (umask 077; head -c 32 /dev/urandom > FILE)"));
    }
    if found.uid() != geteuid().as_raw() {
        return Err(Error::usage(format!(
            "the key file {shown} belongs to another user, who could recover the masked values"
        ))
        .hint(format!(
            "chown it to the user who runs this: chown $(id -un) {shown}"
        )));
    }
    if found.mode() & 0o077 != 0 {
        return Err(Error::usage(format!(
            "users other than its owner can read or change the key file {shown}"
        ))
        .hint(format!("let only its owner use it: chmod 600 {shown}")));
    }
    Ok(())
}
