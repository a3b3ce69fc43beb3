//! How many bases of other repositories a run leaves alone.
//!
//! A base holds back the space of all that changed since it was made. So there are few, and one goes that no
//! run has used for long.

use std::time::{SystemTime, UNIX_EPOCH};

/// Bases of other repositories beside the run's own.
const OTHERS_MAX: usize = 2;
/// Two weekly runs, and a day: one that was missed costs nothing.
const AGE_MAX_S: u64 = 15 * 24 * 60 * 60;

/// Returns the seconds since 1970.
pub(crate) fn now_unix_s() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Returns those of other repositories' bases that go, of pairs of when it was last used, in seconds since
/// 1970, and the base.
pub(crate) fn surplus<T>(mut others: Vec<(u64, T)>, now_unix_s: u64) -> Vec<T> {
    others.sort_by_key(|(used, _)| std::cmp::Reverse(*used));
    let stays =
        |at: usize, used: u64| at < OTHERS_MAX && now_unix_s < used.saturating_add(AGE_MAX_S);
    let gone = others.into_iter().enumerate();
    gone.filter(|(at, (used, _))| !stays(*at, *used))
        .map(|(_, (_, base))| base)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_recently_used_ones_stay() {
        let now = 100 * AGE_MAX_S;
        let others = |used: &[u64]| used.iter().map(|used| (*used, *used)).collect::<Vec<_>>();
        assert_eq!(
            surplus(others(&[now - 2, now - 1, now - 3]), now),
            [now - 3]
        );
        assert_eq!(
            surplus(others(&[now - AGE_MAX_S, now - 1]), now),
            [now - AGE_MAX_S]
        );
        assert_eq!(surplus(others(&[now - AGE_MAX_S + 1]), now), [0; 0]);
        // A clock that was set back is no reason.
        assert_eq!(surplus(others(&[now + 5]), now), [0; 0]);
    }
}
