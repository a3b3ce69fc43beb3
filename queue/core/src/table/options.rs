//! How a table is kept.

use std::time::Duration;

/// When what was written is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Before it is acknowledged, once for each group.
    Each,
    /// With the first group after this long, or when [`Queue::sync`](super::Table::sync) is called.
    Every(Duration),
    /// When the operating system likes.
    Never,
}

impl Sync {
    pub(crate) fn is_due(self, since: Duration) -> bool {
        match self {
            Self::Each => true,
            Self::Every(time) => since >= time,
            Self::Never => false,
        }
    }
}

/// How a table is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// When new rows are durable.
    pub rows: Sync,
    /// When removals are: one that was lost delivers a row again.
    pub removals: Sync,
    /// When a segment is full, in bytes.
    pub segment_bytes: u64,
    /// How many bytes of sealed files may be mapped into memory.
    pub map_bytes: u64,
    /// From how many bytes of sealed files on compaction looks at them.
    pub compact_from: u64,
    /// Which part of them has to be dead, in percent.
    pub compact_dead: u8,
    /// How many bytes compaction copies in one slice.
    pub slice_bytes: u64,
}

impl Options {
    /// Whether space is filled beforehand: it pays where each group is made durable.
    pub(crate) fn fills(&self) -> bool {
        self.rows == Sync::Each || self.removals == Sync::Each
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rows: Sync::Each,
            removals: Sync::Each,
            segment_bytes: 16 << 20,
            map_bytes: 16 << 30,
            compact_from: 16 << 20,
            compact_dead: 75,
            slice_bytes: 1 << 20,
        }
    }
}
