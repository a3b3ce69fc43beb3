//! What a server's last answer says beside its counts of statements, as numbers. What is old, or not known, is not there.

use crate::details::{Details, Digests};
use crate::poll::Server;

/// Numbers of one server.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Gauges {
    /// Connections that are open.
    pub threads_connected: Option<u64>,
    /// Of these, those that run a statement; ours is one.
    pub threads_running: Option<u64>,
    /// Of the pages that were asked for in the interval, those that were in the buffer pool.
    pub buffer_pool_hit_percent: Option<f64>,
    /// InnoDB's reads from files.
    pub disk_reads_per_s: Option<f64>,
    /// Of the buffer pool, pages that are not written yet.
    pub dirty_percent: Option<f64>,
    /// Waits for locks of rows that began.
    pub row_lock_waits_per_s: Option<f64>,
    /// Statements that failed, where the server counts them by class.
    pub errors_per_s: Option<f64>,
    /// Undo records that are not purged yet.
    pub history_list_length: Option<u64>,
}

impl Gauges {
    /// Reads them from a server's last answer.
    #[must_use]
    pub fn of(server: &Server) -> Self {
        let Some(answer) = server.answer() else {
            return Self::default();
        };
        let gauge = |name| answer.status.get(name);
        let grown = |name| {
            server.counts()?;
            answer.status.grown(&server.base.as_ref()?.status, name)
        };
        let per_s = |count| server.counts().and_then(|counts| counts.per_s(count));
        let details = answer.details.as_ref();
        let errors = match details.map(|details| &details.digests) {
            Some(Digests::Ran(ran)) => Some(ran.iter().map(|one| one.errors).sum()),
            _ => None,
        };
        Self {
            threads_connected: gauge("Threads_connected"),
            threads_running: gauge("Threads_running"),
            buffer_pool_hit_percent: hit_percent(
                grown("Innodb_buffer_pool_read_requests"),
                grown("Innodb_buffer_pool_reads"),
            ),
            disk_reads_per_s: per_s(grown("Innodb_data_reads")),
            dirty_percent: percent(
                gauge("Innodb_buffer_pool_pages_dirty"),
                gauge("Innodb_buffer_pool_pages_total"),
            ),
            row_lock_waits_per_s: per_s(grown("Innodb_row_lock_waits")),
            errors_per_s: per_s(errors),
            history_list_length: details.and_then(|details| details.history),
        }
    }
}

/// Returns what a server's last answer says in detail.
#[must_use]
pub fn details(server: &Server) -> Option<&Details> {
    server.answer()?.details.as_ref()
}

/// Returns how far behind a replica is: the most, where it has several sources.
#[must_use]
pub fn lag_s(server: &Server) -> Option<u64> {
    let sources = &details(server)?.sources;
    sources.iter().map(|source| source.lag_s).max()?
}

fn percent(part: Option<u64>, of: Option<u64>) -> Option<f64> {
    let of = of.filter(|of| *of > 0)?;
    Some(part? as f64 * 100.0 / of as f64)
}

fn hit_percent(asked: Option<u64>, read: Option<u64>) -> Option<f64> {
    let hit = asked?.saturating_sub(read?);
    percent(Some(hit), asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_of_nothing_are_not_known() {
        assert_eq!(hit_percent(Some(0), Some(0)), None);
        assert_eq!(hit_percent(Some(200), Some(1)), Some(99.5));
        // A page read ahead was not asked for.
        assert_eq!(hit_percent(Some(1), Some(5)), Some(0.0));
        assert_eq!(percent(Some(1), None), None);
    }
}
