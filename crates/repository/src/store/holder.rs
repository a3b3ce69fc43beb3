//! Which process holds the lock of a file, as the kernel tells.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns it in words. Nothing where nobody does, or where the process is another user's.
pub(super) fn of(path: &Path) -> Option<String> {
    let file = fs::metadata(path).ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let holds = |pid: &u32| {
        // The inode's number alone may be that of a file of another filesystem.
        let open = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten();
        let mut open = open
            .flatten()
            .filter_map(|one| fs::metadata(one.path()).ok());
        open.any(|one| (one.dev(), one.ino()) == (file.dev(), file.ino()))
    };
    let holder = locks
        .lines()
        .filter_map(|line| pid_of(line, file.ino()))
        .find(holds)?;
    Some(format!("process {holder}"))
}

/// Who holds a lock by flock(2) on a file with this inode, if a line of /proc/locks says that:
/// `1: FLOCK  ADVISORY  WRITE 708 00:13:1069 0 EOF`.
fn pid_of(line: &str, inode: u64) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, "FLOCK", _, _, pid, place, ..] = fields.as_slice() else {
        return None;
    };
    let (_, number) = place.rsplit_once(':')?;
    (number.parse() == Ok(inode)).then(|| pid.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_held_locks_are_read_and_others_passed_over() {
        let held = "1: FLOCK  ADVISORY  WRITE 708 00:13:1069 0 EOF";
        assert_eq!(pid_of(held, 1069), Some(708));
        assert_eq!(pid_of(held, 13), None);
        let waits = "1: -> FLOCK  ADVISORY  WRITE 709 00:13:1069 0 EOF";
        assert_eq!(pid_of(waits, 1069), None);
        let other = "2: POSIX  ADVISORY  WRITE 708 00:13:1069 0 EOF";
        assert_eq!(pid_of(other, 1069), None);
    }
}
