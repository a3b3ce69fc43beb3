//! The login path file, `~/.mylogin.cnf`, that `mysql_config_editor` writes.
//!
//! ```text
//! 0    4   unused
//! 4   20   key material: XOR of every 16th byte makes the AES-128 key
//! 24   …   per line: u32 little endian length of what follows; the line with its newline,
//!          AES-128 ECB, PKCS#7 padding
//! ```
//!
//! The key lies beside the lock: the file hides passwords from a glance, not from a reader. That is
//! why one that others may read is ignored, as the MySQL clients do.

use crate::option_file::{self, OptionFileResult};
use aes::Aes128;
use aes::cipher::{BlockDecrypt, KeyInit};
use evenkeel_op::{Context, Error, Result};
use std::fs;
use std::io::ErrorKind as IoErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Where the key material begins and how long it is, in bytes.
const KEY: std::ops::Range<usize> = 4..24;

/// AES block, in bytes.
const BLOCK: usize = 16;

/// Reads the options of some groups from a login path file; a file that is not there has none.
/// Groups match and values are unquoted as in an option file.
///
/// Errors: `Usage` for a file that is not one or is cut short; `Failed` when it cannot be read.
pub fn read(path: &Path, groups: &[&str]) -> Result<OptionFileResult> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(Default::default()),
        // Another account's home, as `sudo -E` leaves it: the MySQL clients pass over it, too.
        Err(error) if error.kind() == IoErrorKind::PermissionDenied => {
            return Ok(OptionFileResult {
                options: Vec::new(),
                warnings: vec![format!(
                    "{} is ignored: this user cannot read it",
                    path.display()
                )],
            });
        }
        other => other.context(|| format!("failed to look at {}", path.display()))?,
    };
    if !metadata.is_file() || metadata.permissions().mode() & 0o077 != 0 {
        let warning = format!(
            "{} is ignored: it must be a file that only its owner can read and write",
            path.display()
        );
        return Ok(OptionFileResult {
            options: Vec::new(),
            warnings: vec![warning],
        });
    }
    let bytes = fs::read(path).context(|| format!("failed to read {}", path.display()))?;
    let text = decrypted(&bytes).ok_or_else(|| {
        Error::usage(format!("{} is not a login path file", path.display()))
            .hint("rewrite it with mysql_config_editor, or skip it with --no-login-paths")
    })?;
    option_file::read_text(path, &text, groups)
}

/// Returns the file's text, or nothing when the bytes do not make sense.
fn decrypted(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut key = [0u8; BLOCK];
    for (at, byte) in bytes.get(KEY)?.iter().enumerate() {
        key[at % BLOCK] ^= byte;
    }
    let cipher = Aes128::new(&key.into());
    let mut rest = &bytes[KEY.end..];
    let mut text = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (line, after) = after.split_at_checked(length)?;
        text.extend(decrypted_line(&cipher, line)?);
        rest = after;
    }
    Some(text)
}

fn decrypted_line(cipher: &Aes128, line: &[u8]) -> Option<Vec<u8>> {
    if line.is_empty() || !line.len().is_multiple_of(BLOCK) {
        return None;
    }
    let mut plain = line.to_vec();
    for block in plain.chunks_exact_mut(BLOCK) {
        cipher.decrypt_block(block.into());
    }
    let padding = usize::from(*plain.last()?);
    let length = plain.len().checked_sub(padding)?;
    let padded = (1..=BLOCK).contains(&padding)
        && plain[length..]
            .iter()
            .all(|byte| usize::from(*byte) == padding);
    plain.truncate(length);
    padded.then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_login_file_is_said_to_be_none() {
        assert_eq!(decrypted(b""), None);
        assert_eq!(decrypted(&[7; 24]), Some(Vec::new()));
        assert_eq!(decrypted(&[7; 27]), None);
        let cut = [&[7; 24][..], &16u32.to_le_bytes(), &[1; 15]].concat();
        assert_eq!(decrypted(&cut), None);
        let noise = [&[7; 24][..], &16u32.to_le_bytes(), &[1; 16]].concat();
        assert_eq!(decrypted(&noise), None);
    }
}
