//! Which bases a holding directory has: one for each repository that the server is backed up into.

use super::facts::{self, BaseFacts};
use crate::filesystem::stable_hash;
use crate::kept;
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Result};
use std::fs;
use std::path::Path;

const BASE: &str = "base";

/// Returns what the base of a repository is called; one that is nobody's has the bare name.
pub(super) fn name(kept_for: &str) -> String {
    match kept_for {
        "" => BASE.to_owned(),
        _ => format!("{BASE}-{:016x}", stable_hash(kept_for.as_bytes())),
    }
}

/// Returns the names of all bases in a holding directory.
pub(super) fn all(directory: &Path) -> Result<Vec<String>> {
    let failed = || format!("failed to list {}", shown(directory).display());
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).context(failed)? {
        let Ok(name) = entry.context(failed)?.file_name().into_string() else {
            continue;
        };
        let id = name
            .strip_prefix(BASE)
            .and_then(|rest| rest.strip_prefix('-'));
        if name == BASE || id.is_some_and(is_id) {
            names.push(name);
        }
    }
    Ok(names)
}

fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the bases that are of no use: those that cannot be read, and of those of other repositories than
/// the one with `own` what is more, or older, than may be kept.
pub(super) fn useless(directory: &Path, own: &str) -> Result<Vec<String>> {
    let mut useless = Vec::new();
    let mut others: Vec<(u64, String)> = Vec::new();
    for name in all(directory)? {
        match facts::read(&directory.join(&name)) {
            None => useless.push(name),
            Some(BaseFacts { created_unix_s, .. }) if name != own => {
                others.push((created_unix_s, name));
            }
            Some(_) => {}
        }
    }
    useless.extend(kept::surplus(others, kept::now_unix_s()));
    Ok(useless)
}
