//! The change list of a thin pool, through a snapshot of its metadata.
//!
//! A live pool's metadata can only be read from a snapshot of it, of which a pool has one at most,
//! whoever reserved it. As long as it is there, freed blocks are not reused: one that is leaked fills
//! the pool in time. So ours carries a tag on the volume that it was reserved for, which outlives this
//! process and a restart, and whoever has the pool's lock and finds both gives it back.

use super::own::{self, Lock};
use super::report::Lv;
use super::status;
use super::{delta, name, tool};
use crate::failpoints::fail_point;
use evenkeel_op::{Error, Result};
use std::ops::Range;

/// Returns the ranges in which two snapshots of one pool may differ. `Failed` also when somebody else
/// has a snapshot of the pool's metadata.
pub(super) fn difference(pool: &Lv, base: &Lv, now: &Lv) -> Result<Vec<Range<u64>>> {
    let (Some(base_id), Some(now_id)) = (base.thin_id, now.thin_id) else {
        return Err(Error::failed(
            "lvs does not report the ids of the thin volumes",
        ));
    };
    tool::require("thin_delta")?;
    let _lock = Lock::wait_for(&lock_name(pool))?;
    let message = device(pool);
    if status::pool(&message)?.reserved {
        return Err(Error::failed(format!(
            "another program has a snapshot of the metadata of {}",
            pool.path()
        )));
    }
    own::retag(now, &[name::TAG_DELTA], &[])?;
    fail_point!("snapshot::lvm::delta_tagged");
    tool::run(
        "dmsetup",
        &["message", &message, "0", "reserve_metadata_snap"],
    )?;
    fail_point!("snapshot::lvm::metadata_reserved");
    let metadata = name::device(&pool.vg, &pool.metadata_lv);
    let found = delta::between(&metadata, base_id, now_id);
    release(&message)?;
    fail_point!("snapshot::lvm::metadata_released");
    own::retag(now, &[], &[name::TAG_DELTA])?;
    found
}

/// Gives back a metadata snapshot that a dead run reserved for `lv`, one of our own.
pub(super) fn heal(pool: &Lv, lv: &Lv) -> Result<()> {
    if !lv.has_tag(name::TAG_DELTA) {
        return Ok(());
    }
    let _lock = Lock::wait_for(&lock_name(pool))?;
    let message = device(pool);
    if status::pool(&message)?.reserved {
        release(&message)?;
    }
    own::retag(lv, &[], &[name::TAG_DELTA])
}

fn release(message: &str) -> Result<()> {
    tool::run(
        "dmsetup",
        &["message", message, "0", "release_metadata_snap"],
    )
    .map(|_| ())
}

/// Returns what device-mapper calls the pool itself.
fn device(pool: &Lv) -> String {
    format!("{}-tpool", name::device_mapper(&pool.vg, &pool.name))
}

fn lock_name(pool: &Lv) -> String {
    format!("pool-{}.lock", pool.uuid)
}
