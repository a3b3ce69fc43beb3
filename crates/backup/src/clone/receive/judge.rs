//! What a sender may say: it may be a host that was taken over.

use crate::clone::list::ImageList;
use crate::clone::list::OWN_NAME;
use crate::facts::{DATA_ROOT, VOLUME_ROOT, is_root};
use crate::restore::names;
use evenkeel_op::obeyed::is_obeyed;
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_repository::{FileKind, FileMeta};
use std::collections::BTreeSet;

/// The longest list of files, in bytes: millions of them.
pub(super) const LIST_MAX: u64 = 512 << 20;

/// More directories outside of the data directory no server has.
const ROOTS_MAX: usize = 1000;
/// The longest name of a file, in bytes: with every byte of a path escaped.
const NAME_MAX: usize = 16 << 10;

/// Whether a text has a character that a terminal obeys, or that begins a line of its own.
pub(super) fn obeys(text: &str) -> bool {
    text.chars().any(is_obeyed)
}

/// The same for all texts of what was sent.
pub(super) fn has_obeyed(value: &serde_json::Value) -> bool {
    use serde_json::Value;
    match value {
        Value::String(text) => obeys(text),
        Value::Array(all) => all.iter().any(has_obeyed),
        Value::Object(all) => all.iter().any(|(name, one)| obeys(name) || has_obeyed(one)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Says that a sender did what none of ours does.
pub(super) fn unsound(what: &str) -> Error {
    Error::new(
        ErrorKind::Differs,
        format!("the side that sends the files {what}"),
    )
    .hint("nothing of it was kept: check the host that is cloned, and that both run this program")
}

/// Refuses a list that leads out of the target, or makes no sense.
pub(super) fn judge(list: &ImageList) -> Result<()> {
    let is_known = |id: &str| is_root(id) && id != VOLUME_ROOT;
    if let Some(id) = list.roots.keys().find(|id| !is_known(id)) {
        return Err(unsound(&format!("named the root '{}'", id.escape_debug())));
    }
    if !list.roots.contains_key(DATA_ROOT) {
        return Err(unsound("named no data directory"));
    }
    if list.roots.len() > ROOTS_MAX || list.roots.values().any(|old| !old.starts_with('/')) {
        return Err(unsound("named roots that no server has"));
    }
    let settings = list.settings.iter().flat_map(|(name, value)| [name, value]);
    let roots = list.roots.iter().flat_map(|(id, old)| [id, old]);
    let words = [&list.source].into_iter().chain(&list.version);
    if words.chain(settings).chain(roots).any(|word| obeys(word)) {
        return Err(unsound(
            "named itself by characters that a terminal would obey",
        ));
    }
    let mut seen = BTreeSet::new();
    let mut bytes: u64 = 0;
    let dirs = list.dirs.iter().map(|meta| (meta, FileKind::Dir));
    let files = list.files.iter().map(|meta| (meta, FileKind::File));
    for (meta, kind) in dirs.chain(files) {
        one(list, meta, kind)?;
        if !seen.insert(meta.name.as_str()) {
            return Err(unsound(&format!("named {} twice", shown(meta))));
        }
        bytes = bytes
            .checked_add(meta.size)
            .filter(|bytes| *bytes <= i64::MAX as u64)
            .ok_or_else(|| unsound("named files longer than there are"))?;
    }
    if u32::try_from(list.files.len()).is_err() {
        return Err(unsound("named too many files"));
    }
    Ok(())
}

fn one(list: &ImageList, meta: &FileMeta, kind: FileKind) -> Result<()> {
    let strange = |what: &str| unsound(&format!("named {}, {what}", shown(meta)));
    if meta.name.len() > NAME_MAX {
        return Err(strange("which is longer than a path can be"));
    }
    let (root, relative) =
        names::split(&meta.name).map_err(|_| strange("which leads out of the target"))?;
    if !list.roots.contains_key(root) {
        return Err(strange("which is below no root"));
    }
    if meta.kind != kind {
        return Err(strange("which is not what it is listed as"));
    }
    let is_root_itself = relative.as_os_str().is_empty();
    if kind == FileKind::File && is_root_itself || kind == FileKind::Dir && meta.size > 0 {
        return Err(strange("which has content and is a directory"));
    }
    if meta.name == OWN_NAME {
        return Err(strange("of which each server makes its own"));
    }
    Ok(())
}

/// A name that may have anything in it.
fn shown(meta: &FileMeta) -> String {
    let name: String = meta.name.chars().take(200).collect();
    format!("'{}'", name.escape_debug())
}
