//! Attributes in the kernel's words.

use crate::tree::{Attributes, NodeKind};
use fuser::{FileAttr, FileType, INodeNo};
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The read size that programs are given: a compressed frame holds about this much.
const BLOCK_SIZE: u32 = 64 << 10;

/// Nothing changes behind the kernel's back, so it may cache what it was given for long.
pub(crate) const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn file_type(kind: NodeKind) -> FileType {
    match kind {
        NodeKind::File => FileType::RegularFile,
        NodeKind::Directory => FileType::Directory,
        NodeKind::Link => FileType::Symlink,
    }
}

/// What stands for a name that is not there: number 0.
pub(crate) fn nothing() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

pub(crate) fn of_tree(node: u64, attributes: &Attributes) -> FileAttr {
    let mtime = time(attributes.mtime.0, attributes.mtime.1);
    FileAttr {
        ino: INodeNo(node),
        size: attributes.size,
        blocks: attributes.allocated.div_ceil(512),
        atime: mtime,
        mtime,
        ctime: mtime,
        crtime: mtime,
        kind: file_type(attributes.kind),
        perm: (attributes.mode & 0o7777) as u16,
        nlink: 1,
        uid: attributes.uid,
        gid: attributes.gid,
        rdev: 0,
        blksize: BLOCK_SIZE,
        flags: 0,
    }
}

pub(crate) fn of_file(node: u64, metadata: &Metadata) -> FileAttr {
    let ctime = time(metadata.ctime(), metadata.ctime_nsec() as u32);
    FileAttr {
        ino: INodeNo(node),
        size: metadata.size(),
        blocks: metadata.blocks(),
        atime: time(metadata.atime(), metadata.atime_nsec() as u32),
        mtime: time(metadata.mtime(), metadata.mtime_nsec() as u32),
        ctime,
        crtime: ctime,
        kind: kind_of(metadata),
        perm: (metadata.mode() & 0o7777) as u16,
        nlink: metadata.nlink() as u32,
        uid: metadata.uid(),
        gid: metadata.gid(),
        rdev: metadata.rdev() as u32,
        blksize: BLOCK_SIZE,
        flags: 0,
    }
}

pub(crate) fn kind_of(metadata: &Metadata) -> FileType {
    let kind = metadata.file_type();
    if kind.is_dir() {
        FileType::Directory
    } else if kind.is_symlink() {
        FileType::Symlink
    } else if kind.is_socket() {
        FileType::Socket
    } else if kind.is_fifo() {
        FileType::NamedPipe
    } else {
        FileType::RegularFile
    }
}

fn time(seconds: i64, nanoseconds: u32) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    base.unwrap_or(UNIX_EPOCH) + Duration::from_nanos(u64::from(nanoseconds))
}
