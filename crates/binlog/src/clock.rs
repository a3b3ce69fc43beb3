//! When a transaction was committed, as truly as its events tell.
//!
//! The time in a header is the session's, and `SET timestamp` sets that to anything, also for the events
//! that begin and end a file when such a session begins the next one. What no session can set, as seen on
//! each server:
//!
//! | server | of what | where |
//! |---|---|---|
//! | MySQL from 8.0.1 | every transaction | its GTID event (`GTID`, `ANONYMOUS_GTID`): microseconds of the commit, here and where it was first |
//! | MySQL 5.7 | every transaction | `QUERY` (a `BEGIN` at least): header time and seconds that it took, modulo 2^32 |
//! | MariaDB | statements and DDL | the same |
//! | MariaDB | changes of rows | nowhere |
//!
//! The seconds of a statement lead to the clock of the server that wrote the file. Of what that server only
//! replicated, the header keeps the time of the one where it was first, and that is what counts.

use crate::{Event, Format, kind};

/// Seconds since 1970 in a transaction's GTID event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Committed {
    /// Where the transaction was first, if that is known.
    pub(crate) first: Option<u32>,
    /// On the server that wrote the file.
    pub(crate) here: u32,
}

/// Reads MySQL's commit times. Body: `u8 flags, 16 bytes server, u64 number, u8 2, u64, u64`, then 7
/// bytes of microseconds here; the highest bit says that 7 bytes of those where it was first follow.
pub(crate) fn committed(body: &[u8]) -> Option<Committed> {
    const KIND: usize = 25;
    const HERE: usize = KIND + 1 + 16;
    const FIRST: usize = HERE + 7;
    const FIRST_FOLLOWS: u64 = 1 << 55;
    let micros = |at: usize| {
        let mut bytes = [0; 8];
        bytes[..7].copy_from_slice(body.get(at..at + 7)?);
        Some(u64::from_le_bytes(bytes))
    };
    let seconds = |micros: u64| u32::try_from(micros / 1_000_000).ok();
    if body.get(KIND) != Some(&2) {
        return None;
    }
    let here = micros(HERE)?;
    let first = match here & FIRST_FOLLOWS {
        0 => here,
        _ => micros(FIRST)?,
    };
    Some(Committed {
        // 0: it was first on a server that does not say it.
        first: seconds(first).filter(|first| *first > 0),
        here: seconds(here & !FIRST_FOLLOWS)?,
    })
}

/// Returns what the clock of the server that wrote the file said when it logged a statement of its own.
/// Body: `u32 thread, u32 seconds`.
pub(crate) fn of_statement(event: &Event, body: &[u8], format: &Format) -> Option<u32> {
    let header = &event.header;
    let is_statement = matches!(
        header.kind,
        kind::QUERY | kind::MARIADB_QUERY_COMPRESSED | kind::EXECUTE_LOAD_QUERY
    );
    if !is_statement || header.server != format.server {
        return None;
    }
    let took = u32::from_le_bytes(*body.get(4..)?.first_chunk()?);
    // A session that lives in the future took less than nothing.
    Some(header.time.wrapping_add(took))
}

/// Returns the time of a transaction that was taken to be of `time`, when a statement in it says `said`
/// and the clock was at `clock`.
pub(crate) fn corrected(time: u32, said: u32, clock: u32) -> u32 {
    let is_ahead = (clock.wrapping_sub(said) as i32) < 0;
    match is_ahead && time == said {
        true => clock,
        // A long statement, or a session in the past; what was committed since was not before.
        false => time.max(clock),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gtid(here: u64, first: Option<u64>) -> Vec<u8> {
        let mut body = vec![0; 25];
        body.push(2);
        body.extend([0; 16]);
        let bit = if first.is_some() { 1 << 55 } else { 0 };
        body.extend(&(here | bit).to_le_bytes()[..7]);
        body.extend(
            first
                .iter()
                .flat_map(|first| first.to_le_bytes()[..7].to_vec()),
        );
        body
    }

    #[test]
    fn commit_times_are_read_as_mysql_writes_them() {
        let read = |here, first| committed(&gtid(here, first)).map(|c| (c.here, c.first));
        assert_eq!(read(7_900_000, None), Some((7, Some(7))));
        assert_eq!(read(7_900_000, Some(5_000_000)), Some((7, Some(5))));
        assert_eq!(read(7_900_000, Some(0)), Some((7, None)));
        // 5.7 ends before them.
        let whole = gtid(7_900_000, Some(5_000_000));
        for cut in 0..whole.len() {
            assert_eq!(committed(&whole[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn a_session_in_the_future_or_the_past_is_brought_back() {
        assert_eq!(corrected(2000, 2000, 1000), 1000);
        assert_eq!(corrected(10, 10, 1000), 1000);
        // One that took long, and a commit long behind its first statement.
        assert_eq!(corrected(1000, 1000, 1005), 1005);
        assert_eq!(corrected(1060, 1000, 1005), 1060);
        // A second statement of the same session.
        assert_eq!(corrected(1000, 2000, 1003), 1003);
    }
}
