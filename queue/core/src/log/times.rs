//! When rows came: pairs of a row id and a time in seconds since 1970. Each is of the rows from that id on, until the
//! next pair. The time 0 is one that nobody knows.

/// The bytes of one pair in a body.
pub(crate) const PAIR: usize = 16;

/// When the rows of one file came.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<(u64, u64)>);

impl Times {
    /// Says when the rows from `first` on came. Ids only grow, but where damage was passed over.
    pub(crate) fn say(&mut self, (first, unix_s): (u64, u64)) {
        while self.0.last().is_some_and(|(later, _)| *later >= first) {
            self.0.pop();
        }
        if self.last() != unix_s {
            self.0.push((first, unix_s));
        }
    }

    /// The time of the rows behind all pairs.
    pub(crate) fn last(&self) -> u64 {
        self.0.last().map_or(0, |(_, unix_s)| *unix_s)
    }

    /// The time of a row.
    pub(crate) fn of(&self, id: u64) -> u64 {
        let after = self.0.partition_point(|(first, _)| *first <= id);
        after.checked_sub(1).map_or(0, |at| self.0[at].1)
    }

    /// Gives back what growing reserved.
    pub(crate) fn seal(&mut self) {
        self.0.shrink_to_fit();
    }

    /// The bytes of memory this takes.
    pub(crate) fn memory(&self) -> usize {
        self.0.capacity() * PAIR
    }
}

/// What has to be said of rows, each with its time, where `said` is the time of those before. It is the time of
/// the last of them then.
pub(crate) fn changes(
    said: &mut u64,
    rows: impl IntoIterator<Item = (u64, u64)>,
) -> Vec<(u64, u64)> {
    let mut changes = Vec::new();
    for (id, unix_s) in rows {
        if unix_s != *said {
            *said = unix_s;
            changes.push((id, unix_s));
        }
    }
    changes
}

/// Writes pairs.
pub(crate) fn put(out: &mut Vec<u8>, pairs: &[(u64, u64)]) {
    for (first, unix_s) in pairs {
        out.extend(first.to_le_bytes());
        out.extend(unix_s.to_le_bytes());
    }
}

/// Reads pairs.
///
/// # Errors
///
/// There are more or fewer than `count`.
pub(crate) fn read(body: &[u8], count: u32) -> Result<Vec<(u64, u64)>, &'static str> {
    if body.len() as u64 != u64::from(count) * PAIR as u64 {
        return Err("a frame holds another number of times than it says");
    }
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let pairs = body.chunks_exact(PAIR);
    Ok(pairs
        .map(|pair| (number(&pair[..8]), number(&pair[8..])))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_the_time_that_was_said_last() {
        let mut times = Times::default();
        assert_eq!((times.of(1), times.last()), (0, 0));
        let rows = [(3, 0), (4, 100), (5, 100), (9, 101), (10, 60), (12, 0)];
        let mut said = 0;
        let pairs = changes(&mut said, rows);
        assert_eq!(pairs, [(4, 100), (9, 101), (10, 60), (12, 0)]);
        assert_eq!(said, 0);
        let mut body = Vec::new();
        put(&mut body, &pairs);
        assert!(read(&body, 3).is_err() && read(&body[1..], 4).is_err());
        for pair in read(&body, 4).unwrap() {
            times.say(pair);
        }
        for (id, unix_s) in rows {
            assert_eq!(times.of(id), unix_s, "row {id}");
        }
        assert_eq!((times.of(7), times.of(99)), (100, 0));
        times.say((10, 70));
        assert_eq!((times.of(9), times.of(10), times.of(99)), (101, 70, 70));
    }
}
