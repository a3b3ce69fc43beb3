//! When the statements of a log ran whose times are those of their sessions.
//!
//! A server writes an entry when its statement ends, so the ends are in the order of the log. MariaDB writes into an
//! entry, and into the line `# Time:` above it, when the statement began by the clock of its session, which
//! `SET timestamp` moves. Entries whose end does not fit between those of others therefore have a clock of their own:
//! what is known of them is that they were written after the entry before. Only what other entries contradict is
//! doubted. Where the log as a whole goes back in time, all of its times are believed.

use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

const SECOND: i64 = 1_000_000_000;
/// Times are whole seconds, and entries that end together are written in any order.
const SLACK: i64 = 5 * SECOND;
/// A log may be quiet for longer; then the next two sessions, or the clock of this host, say that it was.
const LEAP: i64 = 3600 * SECOND;
/// So far from the clock of this host is a time that is being written now.
const NEAR: i64 = 60 * SECOND;
/// A time so far in the future is none that a clock showed.
const FUTURE: i64 = 86_400 * SECOND;
/// So many entries wait at most for what others say of their times.
const WAITING: usize = 32;
/// As many bytes of text do.
const WAITING_BYTES: usize = 1 << 20;
/// Of so many sessions it is known that they have a clock of their own.
const SESSIONS_MAX: usize = 65_536;

/// What an entry says of its time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    /// When it began; `None` where that cannot be read.
    pub(super) began_ns: Option<i64>,
    /// How long it took.
    pub(super) total_ns: i64,
    pub(super) session: Option<u32>,
    /// It is the clock of the server.
    pub(super) is_servers: bool,
    /// A replica applied it: it has the clock of the source when that ran it, which is never later.
    pub(super) is_applied: bool,
}

impl Claim {
    fn end_ns(&self) -> Option<i64> {
        self.began_ns
            .map(|began| began.saturating_add(self.total_ns))
    }
}

/// How a claim fits the entries before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// It may be true.
    Fits,
    /// It is no time of the server.
    Own,
    /// It is long after the entry before.
    Ahead,
    /// It is before the entry before, which cannot be.
    Behind,
}

/// An entry that waits, and what it says.
struct Waiting<T> {
    entry: T,
    claim: Claim,
    fit: Fit,
}

/// An entry, when it began, and whether its own time was not believed.
pub(super) type Timed<T> = (T, i64, bool);

/// Tells times of the server from those of sessions.
pub(super) struct SessionClocks<T> {
    /// When the last entry ended whose time is believed.
    now_ns: Option<i64>,
    /// The last session whose time was not, for as long as it goes on alone.
    alone: Option<u32>,
    /// Sessions that were seen to set their clock.
    own: HashSet<u32>,
    /// The log goes back in time: nothing contradicts anything.
    is_disordered: bool,
    waiting: Vec<Waiting<T>>,
    waiting_bytes: usize,
}

impl<T> Default for SessionClocks<T> {
    fn default() -> Self {
        Self {
            now_ns: None,
            alone: None,
            own: HashSet::new(),
            is_disordered: false,
            waiting: Vec::new(),
            waiting_bytes: 0,
        }
    }
}

impl<T> SessionClocks<T> {
    /// The server was started again: sessions have new numbers.
    pub(super) fn restart(&mut self) {
        self.own.clear();
    }

    /// Learns from a statement what the clock of its session is from now on; returns whether the statement itself has
    /// one of its own.
    pub(super) fn learn(&mut self, session: Option<u32>, sql: &[u8], is_quit: bool) -> bool {
        let set = clock_set(sql);
        let Some(session) = session else {
            return set.is_some();
        };
        let was_own = self.own.contains(&session);
        match set {
            Some(ClockSet::Moved) if self.own.len() < SESSIONS_MAX => {
                self.own.insert(session);
            }
            Some(ClockSet::Released) => {
                self.own.remove(&session);
            }
            _ if is_quit => {
                self.own.remove(&session);
            }
            _ => {}
        }
        was_own || set.is_some()
    }

    /// Returns when an entry began that can be said at once; `None` where it has to wait for those after it.
    pub(super) fn at_once(&mut self, claim: &Claim, is_own: bool) -> Option<(i64, bool)> {
        match self.fit(claim, is_own) {
            _ if !self.waiting.is_empty() => None,
            Fit::Fits => Some((self.believe(claim), false)),
            Fit::Own => self.now_ns.map(|now| (self.doubt(claim, now), true)),
            Fit::Ahead | Fit::Behind => None,
        }
    }

    /// Takes an entry that waits, with the bytes it has; returns those of which the time is known now, in their order.
    pub(super) fn wait(
        &mut self,
        (entry, bytes): (T, usize),
        claim: Claim,
        is_own: bool,
    ) -> Vec<Timed<T>> {
        let fit = match self.fit(&claim, is_own) {
            // Behind the others, it contradicts none of them.
            Fit::Fits if claim.is_applied => Fit::Own,
            fit => fit,
        };
        let is_confirmed = self.is_confirmed(&claim, fit);
        self.waiting.push(Waiting { entry, claim, fit });
        self.waiting_bytes += bytes;
        if fit == Fit::Fits {
            return self.settle(|one| one.fit == Fit::Fits);
        }
        if is_confirmed {
            return self.settle(|one| matches!(one.fit, Fit::Fits | Fit::Ahead));
        }
        match self.waiting.len() > WAITING || self.waiting_bytes > WAITING_BYTES {
            true => {
                // Where one session with a clock of its own is alone in the log, its times are all that there is.
                let is_alone = self.now_ns.is_none();
                self.is_disordered |= self.waiting.iter().any(|one| match one.fit {
                    Fit::Behind => true,
                    Fit::Own => is_alone && one.claim.began_ns.is_some(),
                    Fit::Fits | Fit::Ahead => false,
                });
                self.settle(|_| true)
            }
            false => Vec::new(),
        }
    }

    /// Returns the rest: no more entries come.
    pub(super) fn end(&mut self) -> Vec<Timed<T>> {
        let latest = wall_clock().saturating_add(FUTURE);
        let is_nothing_known = self.now_ns.is_none();
        self.settle(|one| match one.fit {
            Fit::Fits => true,
            Fit::Own => is_nothing_known,
            Fit::Ahead => one.claim.end_ns().is_some_and(|end| end <= latest),
            Fit::Behind => false,
        })
    }

    fn fit(&self, claim: &Claim, is_own: bool) -> Fit {
        let Some(end) = claim.end_ns() else {
            return Fit::Own;
        };
        let Some(now) = self.now_ns else {
            return match is_own && !claim.is_servers {
                true => Fit::Own,
                false => Fit::Fits,
            };
        };
        if claim.is_servers || self.is_disordered {
            Fit::Fits
        } else if is_own {
            Fit::Own
        } else if end < now.saturating_sub(SLACK) {
            if claim.is_applied {
                Fit::Own
            } else {
                Fit::Behind
            }
        } else if end > now.saturating_add(LEAP)
            && !claim.is_applied
            && end.abs_diff(wall_clock()) > NEAR.unsigned_abs()
        {
            Fit::Ahead
        } else {
            Fit::Fits
        }
    }

    /// Whether another session that waits says the same: then the log was quiet for that long.
    fn is_confirmed(&self, claim: &Claim, fit: Fit) -> bool {
        let Some(end) = claim.end_ns().filter(|_| fit == Fit::Ahead) else {
            return false;
        };
        let ahead = self.waiting.iter().filter(|one| one.fit == Fit::Ahead);
        { ahead }.any(|one| {
            let other = one.claim.end_ns().unwrap_or(i64::MAX);
            one.claim.session != claim.session
                && end >= other.saturating_sub(SLACK)
                && end <= other.saturating_add(LEAP)
        })
    }

    /// Hands out what waits.
    fn settle(&mut self, is_believed: impl Fn(&Waiting<T>) -> bool) -> Vec<Timed<T>> {
        self.waiting_bytes = 0;
        let waiting = std::mem::take(&mut self.waiting);
        // Before the first time that is believed, the others are as early as that.
        let first = { waiting.iter() }
            .filter(|one| is_believed(one))
            .find_map(|one| one.claim.began_ns);
        let mut settled = Vec::with_capacity(waiting.len());
        for one in waiting {
            let known = one.claim.began_ns.filter(|_| is_believed(&one));
            let at = match (known, self.now_ns.or(first)) {
                (Some(_), _) => self.believe(&one.claim),
                (None, Some(now)) => self.doubt(&one.claim, now),
                // The log has no time.
                (None, None) => one.claim.began_ns.unwrap_or(0),
            };
            settled.push((one.entry, at, known.is_none()));
        }
        settled
    }

    fn believe(&mut self, claim: &Claim) -> i64 {
        let end = claim.end_ns().unwrap_or(0);
        // Those that end together are written in any order.
        let is_later = self.now_ns.is_none_or(|now| end > now) || claim.is_servers;
        if is_later || self.is_disordered {
            self.now_ns = Some(end);
        }
        self.alone = None;
        claim.began_ns.unwrap_or(0)
    }

    /// An entry with a clock of its own was written after the entry before, and after its session's.
    fn doubt(&mut self, claim: &Claim, now: i64) -> i64 {
        if claim.session.is_some() && self.alone == claim.session {
            let end = now.saturating_add(claim.total_ns);
            self.now_ns = Some(end);
            return now;
        }
        self.alone = claim.session;
        now.saturating_sub(claim.total_ns)
    }
}

/// Returns the time of this host.
fn wall_clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// What a statement does to the clock of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClockSet {
    /// It has its own from now on.
    Moved,
    /// It has the server's.
    Released,
    /// Only this statement has its own.
    Once,
}

/// Returns what a statement does to the clock of its session, if it is a SET that names the clock.
fn clock_set(sql: &[u8]) -> Option<ClockSet> {
    let sql = sql.trim_ascii_start();
    let verb = sql.get(..4)?;
    if !verb[..3].eq_ignore_ascii_case(b"set") || !verb[3].is_ascii_whitespace() {
        return None;
    }
    let sql = sql[4..sql.len().min(1024)].to_ascii_lowercase();
    let name = memchr::memmem::find_iter(&sql, b"timestamp").find(|at| {
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let before = at.checked_sub(1).and_then(|before| sql.get(before));
        let after = sql.get(at + "timestamp".len());
        !before.is_some_and(is_letter) && !after.is_some_and(is_letter)
    })?;
    let rest = sql[name + "timestamp".len()..].trim_ascii_start();
    let rest = rest.strip_prefix(b"`").unwrap_or(rest).trim_ascii_start();
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let value = rest.strip_prefix(b"=")?.trim_ascii_start();
    if sql.trim_ascii_start().starts_with(b"statement ") {
        return Some(ClockSet::Once);
    }
    let word = value
        .split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.')
        .next()
        .unwrap_or_default();
    match word {
        b"default" | b"0" => Some(ClockSet::Released),
        _ => Some(ClockSet::Moved),
    }
}
