//! What device-mapper says of a snapshot and of a pool: `dmsetup status`.

use super::tool;
use evenkeel_op::{Error, Result};

/// How full a thick snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thick {
    /// So many of so many sectors.
    Valid(u64, u64),
    /// It overflowed or broke: what it holds is lost.
    Lost,
}

/// How full a thin pool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pool {
    /// Used and all blocks of metadata.
    pub(super) metadata: (u64, u64),
    /// Used and all blocks of data.
    pub(super) data: (u64, u64),
    /// Whether a snapshot of its metadata is reserved.
    pub(super) reserved: bool,
    /// Whether it takes writes.
    pub(super) writable: bool,
}

/// Asks for a thick snapshot, by its name in device-mapper.
pub(super) fn thick(name: &str) -> Result<Thick> {
    parse_thick(&tool::run("dmsetup", &["status", name])?)
}

/// Asks for a pool, by its name in device-mapper.
pub(super) fn pool(name: &str) -> Result<Pool> {
    // Without a flush, which would make the pool write its metadata each time.
    parse_pool(&tool::run("dmsetup", &["status", "--noflush", name])?)
}

/// Returns what stands behind the target's kind.
fn fields<'a>(text: &'a str, kind: &str) -> Result<Vec<&'a str>> {
    let mut words = text.split_whitespace();
    match words.nth(2) {
        Some(found) if found == kind => Ok(words.collect()),
        _ => Err(not_understood(text)),
    }
}

fn not_understood(text: &str) -> Error {
    Error::failed(format!("dmsetup says '{}'", text.trim()))
}

fn part(text: &str) -> Option<(u64, u64)> {
    let (used, all) = text.split_once('/')?;
    Some((used.parse().ok()?, all.parse().ok()?))
}

/// Reads `0 204800 snapshot 16/20480 16`.
fn parse_thick(text: &str) -> Result<Thick> {
    let words = fields(text, "snapshot")?;
    let first = words.first().copied().unwrap_or_default();
    match part(first) {
        Some((used, all)) => Ok(Thick::Valid(used, all)),
        None if !first.is_empty() => Ok(Thick::Lost),
        None => Err(not_understood(text)),
    }
}

/// Reads `0 409600 thin-pool 1 141/1024 300/3200 - rw discard_passdown queue_if_no_space - 1024`.
fn parse_pool(text: &str) -> Result<Pool> {
    let words = fields(text, "thin-pool")?;
    let word = |index: usize| words.get(index).copied().unwrap_or_default();
    if matches!(word(0), "Fail" | "Error") {
        return Ok(Pool {
            metadata: (1, 1),
            data: (1, 1),
            reserved: false,
            writable: false,
        });
    }
    let (Some(metadata), Some(data)) = (part(word(1)), part(word(2))) else {
        return Err(not_understood(text));
    };
    Ok(Pool {
        metadata,
        data,
        reserved: word(3) != "-",
        writable: word(4) == "rw",
    })
}

/// Returns a share in percent, rounded down; of nothing, all.
pub(super) fn percent((used, all): (u64, u64)) -> u64 {
    match all {
        0 => 100,
        all => (u128::from(used) * 100 / u128::from(all)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn snapshots_are_valid_or_lost() {
        let thick = |text| parse_thick(text).unwrap();
        assert_eq!(
            thick("0 204800 snapshot 16/20480 16\n"),
            Thick::Valid(16, 20480)
        );
        assert_eq!(thick("0 204800 snapshot Invalid"), Thick::Lost);
        assert_eq!(thick("0 204800 snapshot Overflow"), Thick::Lost);
        assert!(parse_thick("0 204800 linear 1/2").is_err());
        assert!(parse_thick("0 204800 snapshot").is_err());
        assert!(parse_thick("").is_err());
    }

    #[test]
    fn pools_say_how_full_they_are() {
        let text =
            "0 409600 thin-pool 1 141/1024 300/3200 - rw discard_passdown queue_if_no_space - 1024";
        let pool = parse_pool(text).unwrap();
        assert_eq!((pool.metadata, pool.data), ((141, 1024), (300, 3200)));
        assert!(pool.writable && !pool.reserved);
        let held = parse_pool(&text.replace(" - rw", " 77 out_of_data_space")).unwrap();
        assert!(held.reserved && !held.writable);
        let failed = parse_pool("0 409600 thin-pool Fail").unwrap();
        assert!(!failed.writable && percent(failed.data) == 100);
        assert!(parse_pool("0 409600 thin-pool 1 x 300/3200 - rw").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,80}") {
            let _ = (parse_thick(&text), parse_pool(&text));
        }

        #[test]
        fn shares_do_not_overflow(used: u64, all: u64) {
            let share = percent((used, all));
            prop_assert!(used > all || share <= 100);
        }
    }
}
