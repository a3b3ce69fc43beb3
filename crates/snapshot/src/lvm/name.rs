//! What our snapshots are called and tagged, and what device-mapper calls any volume.
//!
//! ```text
//! evenkeel-4711-0123456789abcdef        the volume's name: process, random
//!     evenkeel                          a tag: made by evenkeel
//!     evenkeel.of.0123456789abcdef      a tag: whose snapshot it is, see [`holding_id`]
//!     evenkeel.run                      a tag: of a run that has not committed
//!     evenkeel.for.89abcdef01234567     a tag: the repository that it is kept for, where there is one
//!     evenkeel.token.…                  a tag: the generation that it is kept for
//!     evenkeel.map.…                    a tag: which files had which names in it
//!     evenkeel.at.1700000000000         a tag: when it was kept, in milliseconds since 1970
//!     evenkeel.delta                    a tag: a metadata snapshot of its pool may be reserved for it
//! ```

use crate::filesystem::stable_hash;
use evenkeel_op::{Error, Result};
use std::hash::{BuildHasher, RandomState};
use std::time::SystemTime;

const PREFIX: &str = "evenkeel-";
/// Made by evenkeel.
pub(super) const TAG: &str = "evenkeel";
/// Of a run that has not committed.
pub(super) const TAG_RUN: &str = "evenkeel.run";
/// A metadata snapshot of its pool may be reserved for it.
pub(super) const TAG_DELTA: &str = "evenkeel.delta";
const FOR: &str = "evenkeel.for.";
const TOKEN: &str = "evenkeel.token.";
const MAP: &str = "evenkeel.map.";
const AT: &str = "evenkeel.at.";

/// Returns a name that no other run has used.
pub(super) fn unique() -> String {
    // A fresh `RandomState` is seeded by the system: random enough to tell snapshots apart.
    let random = RandomState::new().hash_one(SystemTime::now());
    format!("{PREFIX}{}-{random:016x}", std::process::id())
}

/// Whether a volume may be one of ours, by its name alone.
pub(super) fn is_ours(name: &str) -> bool {
    let Some((pid, random)) = name
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once('-'))
    else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    pid.parse::<u32>().is_ok() && random.len() == 16 && digits(random)
}

/// Returns the tag of what belongs to a holding.
pub(super) fn tag_of(id: &str) -> String {
    format!("evenkeel.of.{id}")
}

/// Returns the tag of a base that is kept for a repository, or for none (empty).
pub(super) fn tag_for(kept_for: &str) -> String {
    format!("{FOR}{:016x}", stable_hash(kept_for.as_bytes()))
}

/// Returns the tag that says for which repository a base is kept, if it has one.
pub(super) fn kept_for(tags: &[String]) -> Option<&str> {
    let mut all = tags.iter().map(String::as_str);
    all.find(|tag| tag.starts_with(FOR))
}

/// Returns the tags of a kept base. `Failed` when the token holds what tags may not.
pub(super) fn kept_tags(token: &str, map: u64, at_unix_ms: u64) -> Result<[String; 3]> {
    let sound = |c: char| c.is_ascii_alphanumeric() || "_+.-/=!:&#".contains(c);
    if token.is_empty() || token.len() > 512 || !token.chars().all(sound) {
        return Err(Error::failed(format!("'{token}' cannot be a tag in LVM")));
    }
    Ok([
        format!("{TOKEN}{token}"),
        format!("{MAP}{map:016x}"),
        format!("{AT}{at_unix_ms}"),
    ])
}

/// Returns the token that a base is kept for.
pub(super) fn token(tags: &[String]) -> Option<&str> {
    tags.iter().find_map(|tag| tag.strip_prefix(TOKEN))
}

/// Returns which files had which names in a kept base.
pub(super) fn map(tags: &[String]) -> Option<u64> {
    let hex = tags.iter().find_map(|tag| tag.strip_prefix(MAP))?;
    u64::from_str_radix(hex, 16).ok()
}

/// Returns when a base was kept, in milliseconds since 1970; 0 when that is not said.
pub(super) fn kept_at(tags: &[String]) -> u64 {
    let at = tags.iter().find_map(|tag| tag.strip_prefix(AT));
    at.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns what device-mapper calls a volume.
pub(super) fn device_mapper(vg: &str, lv: &str) -> String {
    format!("{}-{}", vg.replace('-', "--"), lv.replace('-', "--"))
}

/// Returns the path of a volume's device.
pub(super) fn device(vg: &str, lv: &str) -> String {
    format!("/dev/mapper/{}", device_mapper(vg, lv))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_names_are_told_from_others() {
        assert!(is_ours(&unique()));
        for name in [
            "evenkeel",
            "evenkeel-1",
            "evenkeel-1-xyz",
            "evenkeel-backup-0123456789abcdef",
            "evenkeel-1-0123456789abcdef0",
            "lvm_dump",
        ] {
            assert!(!is_ours(name), "{name}");
        }
        assert_ne!(unique(), unique());
    }

    #[test]
    fn tags_read_back() {
        let tags = kept_tags("a1b2-7-c3d4", 0xAB, 1_700_000_000).unwrap();
        assert_eq!(token(&tags), Some("a1b2-7-c3d4"));
        assert_eq!((map(&tags), kept_at(&tags)), (Some(0xAB), 1_700_000_000));
        assert!(kept_tags("a b", 0, 0).is_err());
        assert!(kept_tags("a,evenkeel.run", 0, 0).is_err());
        assert_eq!((token(&[]), map(&[]), kept_at(&[])), (None, None, 0));
    }

    #[test]
    fn dashes_are_doubled() {
        assert_eq!(device_mapper("my-vg", "a-b"), "my--vg-a--b");
        assert_eq!(device("vg", "vm1"), "/dev/mapper/vg-vm1");
    }
}
