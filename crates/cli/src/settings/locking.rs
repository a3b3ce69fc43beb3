//! Flags of locking, as the server's lock understands them.

use crate::args::{LockMethod, Locking, LongQueryKind};
use evenkeel_server::lock::{Limits, LockChoice, LongQueries, QueryKind};

/// Returns how long the lock may be waited for and held.
#[must_use]
pub fn limits(typed: &Locking) -> Limits {
    let kind = |kind: &LongQueryKind| match kind {
        LongQueryKind::Select => QueryKind::Select,
        LongQueryKind::Update => QueryKind::Update,
    };
    Limits {
        deadline: typed.lock_deadline,
        hold: typed.lock_hold_limit,
        long_queries: LongQueries {
            threshold: typed.long_query_threshold,
            wait: typed.long_query_wait,
            kill: typed.kill_long_queries.iter().map(kind).collect(),
        },
    }
}

/// Returns which lock was asked for; nothing for `none`.
#[must_use]
pub fn choice(typed: LockMethod) -> Option<LockChoice> {
    match typed {
        LockMethod::Auto => Some(LockChoice::Auto),
        LockMethod::Stage => Some(LockChoice::BackupStage),
        LockMethod::Instance => Some(LockChoice::Instance),
        LockMethod::Ftwrl => Some(LockChoice::GlobalRead),
        LockMethod::None => None,
    }
}
