//! The kernel calls that no safe crate offers: FIEMAP, and btrfs snapshots and identity.
//!
//! `unsafe` is allowed here and nowhere else in the crate but the pause's watchdog. Each call hands
//! the kernel one pointer to a structure whose layout and size are asserted below; the kernel
//! writes inside that structure only, because its size is part of the request number (FIEMAP's
//! array: part of the structure's `extent_count`).
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;

// linux/fiemap.h, linux/fs.h
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
const FIEMAP_FLAG_SYNC: u32 = 1;
const BATCH: usize = 1024;

/// Set on the last extent of a file.
pub(crate) const EXTENT_LAST: u32 = 0x1;
/// The address is not known, or not yet.
pub(crate) const EXTENT_UNKNOWN: u32 = 0x2;
/// Not written to disk yet.
pub(crate) const EXTENT_DELALLOC: u32 = 0x4;
/// Compressed or otherwise transformed: the address says nothing about an offset inside.
pub(crate) const EXTENT_ENCODED: u32 = 0x8;
/// Encrypted by the filesystem.
pub(crate) const EXTENT_DATA_ENCRYPTED: u32 = 0x80;
/// Does not begin or end at a block boundary.
pub(crate) const EXTENT_NOT_ALIGNED: u32 = 0x100;
/// Stored among the metadata.
pub(crate) const EXTENT_DATA_INLINE: u32 = 0x200;
/// Packed together with the tails of other files.
pub(crate) const EXTENT_DATA_TAIL: u32 = 0x400;
/// Allocated, reads as zeros.
pub(crate) const EXTENT_UNWRITTEN: u32 = 0x800;
/// Some other file refers to it too.
pub(crate) const EXTENT_SHARED: u32 = 0x2000;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RawExtent {
    pub(crate) logical: u64,
    pub(crate) physical: u64,
    pub(crate) length: u64,
    pub(crate) reserved64: [u64; 2],
    pub(crate) flags: u32,
    pub(crate) reserved: [u32; 3],
}
const _: () = assert!(size_of::<RawExtent>() == 56);

/// `struct fiemap` with room for a batch of extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}
const _: () = assert!(size_of::<Fiemap>() == 32 + BATCH * 56);

/// One reusable FIEMAP request (57 KiB).
pub(crate) struct ExtentBatch(Box<Fiemap>);

impl ExtentBatch {
    /// Makes an empty batch.
    pub(crate) fn new() -> Self {
        Self(Box::new(Fiemap {
            start: 0,
            length: 0,
            flags: 0,
            mapped_extents: 0,
            extent_count: 0,
            reserved: 0,
            extents: [RawExtent::default(); BATCH],
        }))
    }

    /// Fills the batch with the extents of `file` from byte `start` on, after its dirty pages were
    /// written out, and returns how many there are (at most a batch; 0 = no more).
    pub(crate) fn fill(&mut self, file: &File, start: u64) -> io::Result<usize> {
        let map = &mut *self.0;
        map.start = start;
        map.length = u64::MAX - start;
        map.flags = FIEMAP_FLAG_SYNC;
        map.mapped_extents = 0;
        map.extent_count = BATCH as u32;
        map.reserved = 0;
        // SAFETY: `map` is a valid `struct fiemap` followed by `extent_count` extents.
        check(unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, std::ptr::from_mut(map)) })?;
        Ok((map.mapped_extents as usize).min(BATCH))
    }

    /// Returns the extent at `index` of the last filled batch.
    pub(crate) fn get(&self, index: usize) -> RawExtent {
        self.0.extents[index]
    }
}

const FICLONERANGE: libc::Ioctl = 0x4020_940D_u32 as libc::Ioctl;

/// `struct file_clone_range`.
#[repr(C)]
struct CloneRange {
    source: i64,
    source_offset: u64,
    length: u64,
    target_offset: u64,
}
const _: () = assert!(size_of::<CloneRange>() == 32);

/// Lets a range of `target` share the bytes at the same place in `source`. Both ends must be at
/// block boundaries, or the end at that of `source`; else `EINVAL`.
pub(crate) fn clone_range(source: &File, target: &File, range: &Range<u64>) -> io::Result<()> {
    let args = CloneRange {
        source: i64::from(source.as_raw_fd()),
        source_offset: range.start,
        length: range.end - range.start,
        target_offset: range.start,
    };
    // SAFETY: FICLONERANGE reads one `struct file_clone_range`.
    check(unsafe { libc::ioctl(target.as_raw_fd(), FICLONERANGE, std::ptr::from_ref(&args)) })
}

// linux/btrfs.h
const BTRFS_IOC_SNAP_CREATE_V2: libc::Ioctl = 0x5000_9417_u32 as libc::Ioctl;
const BTRFS_IOC_SNAP_DESTROY: libc::Ioctl = 0x5000_940F_u32 as libc::Ioctl;
const BTRFS_IOC_FS_INFO: libc::Ioctl = 0x8400_941F_u32 as libc::Ioctl;
const BTRFS_SUBVOL_RDONLY: u64 = 1 << 1;

/// `struct btrfs_ioctl_vol_args_v2`.
#[repr(C)]
struct VolumeArgsV2 {
    fd: i64,
    transid: u64,
    flags: u64,
    unused: [u64; 4],
    name: [u8; 4040],
}
const _: () = assert!(size_of::<VolumeArgsV2>() == 4096);

/// `struct btrfs_ioctl_vol_args`.
#[repr(C)]
struct VolumeArgs {
    fd: i64,
    name: [u8; 4088],
}
const _: () = assert!(size_of::<VolumeArgs>() == 4096);

/// `struct btrfs_ioctl_fs_info_args`, as far as it is used here.
#[repr(C)]
struct FsInfo {
    max_id: u64,
    num_devices: u64,
    fsid: [u8; 16],
    rest: [u8; 992],
}
const _: () = assert!(size_of::<FsInfo>() == 1024);

/// Makes `into/name` a snapshot of the subvolume whose root directory is `subvolume`.
pub(crate) fn btrfs_snapshot(
    subvolume: &File,
    into: &File,
    name: &OsStr,
    read_only: bool,
) -> io::Result<()> {
    let mut args = VolumeArgsV2 {
        fd: i64::from(subvolume.as_raw_fd()),
        transid: 0,
        flags: if read_only { BTRFS_SUBVOL_RDONLY } else { 0 },
        unused: [0; 4],
        name: [0; 4040],
    };
    copy_name(&mut args.name, name)?;
    pass(into.as_raw_fd(), BTRFS_IOC_SNAP_CREATE_V2, &mut args)
}

/// Deletes the subvolume `parent/name`.
pub(crate) fn btrfs_delete(parent: &File, name: &OsStr) -> io::Result<()> {
    let mut args = VolumeArgs {
        fd: 0,
        name: [0; 4088],
    };
    copy_name(&mut args.name, name)?;
    pass(parent.as_raw_fd(), BTRFS_IOC_SNAP_DESTROY, &mut args)
}

/// Returns the UUID of the btrfs that `file` is on.
pub(crate) fn btrfs_uuid(file: &File) -> io::Result<[u8; 16]> {
    let mut args = FsInfo {
        max_id: 0,
        num_devices: 0,
        fsid: [0; 16],
        rest: [0; 992],
    };
    pass(file.as_raw_fd(), BTRFS_IOC_FS_INFO, &mut args)?;
    Ok(args.fsid)
}

/// Passes `args` to a btrfs ioctl. Private: the three callers above pair requests and structures.
fn pass<T>(fd: RawFd, request: libc::Ioctl, args: &mut T) -> io::Result<()> {
    // SAFETY: `args` is the structure that `request` names, its size asserted beside it.
    check(unsafe { libc::ioctl(fd, request, std::ptr::from_mut(args)) })
}

/// Copies a file name into a zero-terminated field.
fn copy_name(field: &mut [u8], name: &OsStr) -> io::Result<()> {
    let name = name.as_bytes();
    if name.len() >= field.len() || name.contains(&b'/') || name.is_empty() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    field[..name.len()].copy_from_slice(name);
    Ok(())
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Returns the pid that holds a POSIX write-conflicting lock on `file` (0 when it cannot be seen
/// from here), or `None` when nobody does.
pub(crate) fn lock_holder(file: &File) -> io::Result<Option<i32>> {
    // SAFETY: an all-zero `struct flock` is a valid value; the fields that matter are set below.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: F_GETLK reads and writes one `struct flock`.
    check(unsafe {
        libc::fcntl(
            file.as_raw_fd(),
            libc::F_GETLK,
            std::ptr::from_mut(&mut lock),
        )
    })?;
    Ok((lock.l_type != libc::F_UNLCK as libc::c_short).then_some(lock.l_pid.max(0)))
}
