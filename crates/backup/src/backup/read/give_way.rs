//! Lets the server have the processors first while its files are read.
//!
//! Two things decide in Linux who runs: the nice value of a thread, and, where the kernel groups
//! threads by session (`sched_autogroup_enabled`), the nice value of the session's group. The first
//! counts only inside of a group, so a backup started from a shell or by cron would still get as
//! much as the whole server. Both are set, and the group's is put back at the end.

use std::fs;

/// The nicest.
const NICE: i32 = 19;
/// A session's group gets a tenth of what another one gets that is as busy. The nicest would be a
/// seventieth: any other work on the host, not only the server's, would make a run last that much
/// longer, and a snapshot that is kept longer costs the server more than the processors do.
const GROUP_NICE: i32 = 10;
/// The calling process's group: `/autogroup-71 nice 0`.
const OWN: &str = "/proc/self/autogroup";

/// Lets the server's threads run before the calling thread.
pub(crate) fn thread() {
    // On Linux this is for the calling thread alone. Without it the backup only is less polite.
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Lets other sessions run before this process's, until dropped.
pub(crate) struct SessionGivesWay {
    former: Option<i32>,
}

impl SessionGivesWay {
    /// Begins, unless the server is of the same session, or only root could put it back.
    pub(crate) fn to(server: Option<i32>) -> Self {
        let own = group("self");
        let theirs = server.and_then(|pid| group(&pid.to_string()));
        let former = match (own, theirs) {
            (Some((own, nice)), Some((theirs, _))) if own != theirs && nice < GROUP_NICE => {
                Some(nice)
            }
            _ => None,
        };
        let former = former.filter(|_| rustix::process::geteuid().is_root());
        let set = former.is_some() && fs::write(OWN, GROUP_NICE.to_string()).is_ok();
        Self {
            former: former.filter(|_| set),
        }
    }
}

impl Drop for SessionGivesWay {
    fn drop(&mut self) {
        if let Some(nice) = self.former {
            // The session stays polite if it cannot be put back.
            let _ = fs::write(OWN, nice.to_string());
        }
    }
}

/// Returns name and nice value of a process's group; `None` where the kernel has none.
fn group(process: &str) -> Option<(String, i32)> {
    parse(&fs::read_to_string(format!("/proc/{process}/autogroup")).ok()?)
}

fn parse(text: &str) -> Option<(String, i32)> {
    let (name, nice) = text.trim().split_once(" nice ")?;
    Some((name.to_owned(), nice.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_read() {
        assert_eq!(
            parse("/autogroup-71 nice -5\n"),
            Some(("/autogroup-71".to_owned(), -5))
        );
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn nothing_is_set_without_another_session() {
        let before = group("self");
        let same = i32::try_from(std::process::id()).unwrap();
        drop(SessionGivesWay::to(Some(same)));
        drop(SessionGivesWay::to(None));
        assert_eq!(group("self"), before);
    }
}
