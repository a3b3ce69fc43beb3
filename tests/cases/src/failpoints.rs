//! Every point at which a test may kill `evenkeel`, and who comes by there.

/// Points that every backup of a running server comes by, after the first one.
pub const EVERY_BACKUP: [&str; 8] = [
    "backup::begun",
    "backup::freeze::ddl_blocked",
    "backup::freeze::moment",
    "backup::freeze::taken",
    "backup::freeze::before_release",
    "backup::frozen",
    "backup::stored",
    "backup::committed",
];

/// Points that only the first backup comes by: afterwards there is a place for snapshots.
pub const FIRST_BACKUP: [&str; 3] = [
    "snapshot::holding::directory_made",
    "snapshot::holding::marker_written",
    "snapshot::holding::run_made",
];

/// Points of a backup that clones file by file.
pub const REFLINK: [&str; 8] = [
    "snapshot::reflink::preparing",
    "snapshot::reflink::moving",
    "snapshot::reflink::cloning",
    "snapshot::reflink::next_file",
    "snapshot::reflink::changes_written",
    "snapshot::reflink::settled",
    "snapshot::reflink::committed",
    "snapshot::reflink::store_committed",
];

/// Points of a backup that splices the redo log's checkpoint. The second clone is the one of the
/// moment: of the logs, with commits or the whole process paused.
pub const SPLICE: [&str; 2] = [
    "backup::freeze::data_cloned",
    "snapshot::reflink::cloning#2",
];

/// Points of a backup by a btrfs snapshot.
pub const BTRFS: [&str; 5] = [
    "snapshot::btrfs::snapped",
    "snapshot::holding::facts_written",
    "snapshot::holding::base_replaced",
    "snapshot::holding::deleting",
    "snapshot::holding::snapshot_deleted",
];

/// Points of a backup that stops a replica's applier.
pub const APPLIER: [&str; 7] = [
    "applier::noted",
    "applier::guarded",
    "applier::stopped",
    "applier::stands",
    "backup::applier_stopped",
    "applier::starting",
    "applier::started",
];

/// Those of them at which it stands.
pub const APPLIER_STANDS: [&str; 4] = [
    "applier::stopped",
    "applier::stands",
    "backup::applier_stopped",
    "applier::starting",
];

/// Where workers make up for what they left out (MySQL).
pub const CLOSING_GAPS: [&str; 1] = ["applier::closing_gaps"];
/// Points of a backup that the server's own tool copies.
pub const ENGINE: [&str; 7] = [
    "backup::begun",
    "backup::engine::starting",
    "backup::engine::leaf",
    "backup::engine::locks",
    "backup::engine::streamed",
    "backup::stored",
    "backup::committed",
];

/// Points of the restore of such a generation, besides those of every restore.
pub const PREPARE: [&str; 2] = ["restore::preparing", "restore::prepared"];

/// Points of a backup by an LVM snapshot.
pub const LVM: [&str; 8] = [
    "snapshot::lvm::making",
    "snapshot::lvm::made",
    "snapshot::lvm::snapped",
    "snapshot::lvm::delta_tagged",
    "snapshot::lvm::metadata_reserved",
    "snapshot::lvm::metadata_released",
    "snapshot::lvm::removing",
    "snapshot::lvm::kept",
];

/// Points of the restore of a volume over another.
pub const ONTO: [&str; 1] = ["restore::onto::stretch"];

/// Points of an archive of binary logs.
pub const ARCHIVE: [&str; 3] = [
    "archive::segment_full",
    "archive::segment_written",
    "archive::segment_finished",
];

/// Points of one that continues with a server that took over.
pub const LINKING: [&str; 1] = ["archive::linked"];

/// Points of a restore that goes on to a point in time, besides those of every restore.
pub const POINT: [&str; 4] = [
    "point::unheld",
    "point::relay_written",
    "point::applied",
    "point::taken_back",
];

/// Points of a proof that a generation starts.
pub const PROOF: [&str; 1] = ["verify::started"];

/// Points of a copy of a repository, object by object.
pub const COPY: [&str; 4] = [
    "copy::prepared",
    "copy::object_sent",
    "copy::manifests_sent",
    "copy::committed",
];

/// Points of a copy block by block.
pub const COPY_BLOCKS: [&str; 1] = ["copy::blocks_sent"];

/// Points of a restore.
pub const RESTORE: [&str; 7] = [
    "restore::created",
    "restore::apply::stretch",
    "restore::applied",
    "restore::roots_published",
    "restore::publish::synced",
    "restore::publish::unheld",
    "restore::publish::renamed",
];

/// Points of the healing of a page.
pub const HEAL: [&str; 2] = ["check::heal::kept", "check::heal::written"];

/// Points of the save of a baseline.
pub const BASELINE_SAVE: [&str; 4] = [
    "baseline::save::begun",
    "baseline::save::taken",
    "baseline::save::facts_written",
    "baseline::named",
];

/// Points of a rollback at which what was there is whole.
pub const ROLLBACK_BEFORE: [&str; 3] = [
    "baseline::rollback::begun",
    "baseline::rollback::prepared",
    "baseline::rollback::stopped",
];

/// Points of a rollback by an exchange of directories, from which on it is the baseline.
pub const ROLLBACK_BESIDE: [&str; 2] =
    ["baseline::rollback::swapping", "baseline::swap::exchanged"];

/// The same in a mount point, entry by entry.
pub const ROLLBACK_INSIDE: [&str; 6] = [
    "baseline::rollback::swapping",
    "baseline::inside::guarded",
    "baseline::inside::left",
    "baseline::inside::left#3",
    "baseline::inside::arrived",
    "baseline::inside::arrived#3",
];

/// The same where what differs is written.
pub const ROLLBACK_PATCH: [&str; 5] = [
    "baseline::rollback::swapping",
    "baseline::patch::guarded",
    "baseline::patch::file",
    "baseline::patch::file#9",
    "baseline::patch::written",
];

/// Points of the rest of each rollback.
pub const ROLLBACK_AFTER: [&str; 4] = [
    "baseline::swap::in_place",
    "baseline::swap::swapped",
    "baseline::started",
    "baseline::tidied",
];

/// Points of the drop of a baseline.
pub const BASELINE_DROP: [&str; 1] = ["baseline::unnamed"];

/// Points of a load, in the order in which one comes by. The switch of `local_infile` is only where it
/// is off, the last note only where a table has no transactions, and drops only with `--replace`.
pub const LOAD: [&str; 12] = [
    "load::dropped",
    "load::begun",
    "load::statement",
    "load::phase",
    "load::local_infile",
    "load::noted",
    "load::before_commit",
    "load::committed",
    "load::chunk",
    "load::before_note",
    "load::rows",
    "load::finished",
];

/// Points of a comparison of a replica with its source, once its SQL thread stands.
pub const CHECKSUM: [&str; 5] = [
    "applier::stands",
    "checksum::source_seen",
    "applier::advancing",
    "applier::advanced",
    "checksum::replica_seen",
];

/// Points of a repair of a replica's rows, once its SQL thread stands. Nothing is committed at the first ones.
pub const REPAIR: [&str; 5] = [
    "applier::advanced",
    "repair::journalled",
    "repair::deleted",
    "repair::written",
    "repair::committing",
];

/// Points of a repair of a replica's rows that was committed.
pub const REPAIRED: [&str; 3] = ["repair::committed", "repair::noted", "applier::started"];

/// Points of a clone that its sender comes by, besides those of the freeze.
pub const CLONE_SENDER: [&str; 4] = [
    "clone::frozen",
    "clone::listed",
    "clone::sent",
    "clone::released",
];

/// Points of a clone that its receiver comes by, in their order.
pub const CLONE_RECEIVER: [&str; 6] = [
    "clone::received_list",
    "clone::received",
    "clone::received#3",
    "clone::dressed",
    "restore::publish::synced",
    "restore::publish::unheld",
];

/// Points of a resync of a replica, in their order: up to the exchange, and behind it.
pub const RESYNC: [&str; 9] = [
    "resync::noted",
    "resync::stopped",
    "clone::received",
    "resync::cloned",
    "resync::private",
    "resync::prepared",
    "resync::exchanged",
    "resync::started",
    "resync::removed",
];

/// Points of the repair of a relay log, in their order. At the first three, nothing has been done yet.
pub const HEAL_RELAY_LOG: [&str; 6] = [
    "heal::begun",
    "heal::leased",
    "heal::stepped",
    "heal::started",
    "heal::well",
    "heal::proved",
];

/// Other points of a healer.
pub const HEAL_OTHERS: [&str; 3] = [
    "heal::drained",
    "heal::rows_planned",
    "heal::event_repaired",
];

/// Returns every name above but those of loads, without the `#n` of a later time.
#[must_use]
pub fn all() -> Vec<&'static str> {
    let mut all: Vec<&str> = EVERY_BACKUP
        .iter()
        .chain(&FIRST_BACKUP)
        .chain(&REFLINK)
        .chain(&SPLICE)
        .chain(&BTRFS)
        .chain(&APPLIER)
        .chain(&CLOSING_GAPS)
        .chain(&CHECKSUM)
        .chain(&REPAIR)
        .chain(&REPAIRED)
        .chain(&ENGINE)
        .chain(&PREPARE)
        .chain(&LVM)
        .chain(&ONTO)
        .chain(&ARCHIVE)
        .chain(&LINKING)
        .chain(&POINT)
        .chain(&PROOF)
        .chain(&COPY)
        .chain(&COPY_BLOCKS)
        .chain(&RESTORE)
        .chain(&HEAL)
        .chain(&BASELINE_SAVE)
        .chain(&ROLLBACK_BEFORE)
        .chain(&ROLLBACK_BESIDE)
        .chain(&ROLLBACK_INSIDE)
        .chain(&ROLLBACK_PATCH)
        .chain(&ROLLBACK_AFTER)
        .chain(&BASELINE_DROP)
        .chain(&CLONE_SENDER)
        .chain(&CLONE_RECEIVER)
        .chain(&RESYNC)
        .chain(&HEAL_RELAY_LOG)
        .chain(&HEAL_OTHERS)
        .map(|point| point.split('#').next().unwrap_or(point))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}
