//! How much memory may be filled.

use std::fs;

/// The share of what is available that is filled when nobody says: the server wants its buffer pool.
const SHARE: f64 = 0.5;

/// Returns how many bytes the kernel could give to a new program without swapping; nothing where it
/// does not say.
fn available() -> Option<u64> {
    read_available(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn read_available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// Returns the budget in bytes. What was asked for is kept below what is there: reading more would
/// drive out what was read before.
pub(super) fn budget(asked_for: Option<u64>) -> u64 {
    within(asked_for, available())
}

fn within(asked_for: Option<u64>, available: Option<u64>) -> u64 {
    let available = available.unwrap_or(u64::MAX);
    let share = (available as f64 * SHARE) as u64;
    asked_for.unwrap_or(share).min(available)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_what_is_available_and_never_more_than_all() {
        let text = "MemTotal:       24000 kB\nMemAvailable:    1000 kB\n";
        assert_eq!(read_available(text), Some(1000 << 10));
        assert_eq!(read_available("MemTotal: 1 kB\n"), None);
        assert_eq!(within(None, Some(1000)), 500);
        assert_eq!(within(Some(700), Some(1000)), 700);
        assert_eq!(within(Some(7000), Some(1000)), 1000);
        assert_eq!(within(Some(7000), None), 7000);
    }
}
