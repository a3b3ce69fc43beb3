//! An [`Overlay`] as the kernel asks for it.

use super::overlay::{Maker, Overlay};
use crate::attributes::{KEPT_FOR, nothing};
use crate::browse::init;
use crate::delayed::Slow;
use crate::listings::Listings;
use fuser::{
    FileAttr, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, KernelConfig, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{FallocateFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Requests that may wait in a slow filesystem beside those that a program waits for itself.
const SLOW_BACKGROUND: u16 = 4096;

pub(crate) struct Writable {
    overlay: Arc<Overlay>,
    listings: Listings,
    slow: Option<Arc<Slow>>,
}

impl Writable {
    pub(crate) fn new(overlay: Arc<Overlay>) -> Self {
        Self {
            overlay,
            listings: Listings::default(),
            slow: None,
        }
    }

    /// The same, but answers come when they are due.
    pub(crate) fn slow(overlay: Arc<Overlay>, slow: Arc<Slow>) -> Self {
        Self {
            slow: Some(slow),
            ..Self::new(overlay)
        }
    }
}

fn maker(request: &Request) -> Maker {
    Maker {
        uid: request.uid(),
        gid: request.gid(),
    }
}

fn entry(reply: ReplyEntry, outcome: io::Result<FileAttr>) {
    match outcome {
        Ok(attr) => reply.entry(&KEPT_FOR, &attr, Generation(0)),
        Err(error) => reply.error(error.into()),
    }
}

fn done(reply: ReplyEmpty, outcome: io::Result<()>) {
    match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

fn timespec(time: Option<TimeOrNow>) -> Timespec {
    let special = |nanoseconds| Timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds,
    };
    match time {
        None => special(UTIME_OMIT),
        Some(TimeOrNow::Now) => special(UTIME_NOW),
        Some(TimeOrNow::SpecificTime(time)) => specific(time),
    }
}

fn specific(time: SystemTime) -> Timespec {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => Timespec {
            tv_sec: after.as_secs() as i64,
            tv_nsec: i64::from(after.subsec_nanos()),
        },
        Err(before) => Timespec {
            tv_sec: -(before.duration().as_secs() as i64),
            tv_nsec: 0,
        },
    }
}

impl Filesystem for Writable {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        init(config);
        if self.slow.is_some() {
            // Many may wait: a disk behind a bus would take them, too.
            let _ = config.set_max_background(SLOW_BACKGROUND);
            let _ = config.set_congestion_threshold(SLOW_BACKGROUND);
        }
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.overlay.find(parent.0, name) {
            // The kernel may believe that, too: names come and go through it alone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                reply.entry(&KEPT_FOR, &nothing(), Generation(0));
            }
            outcome => entry(reply, outcome),
        }
    }

    fn forget(&self, _req: &Request, ino: INodeNo, nlookup: u64) {
        self.overlay.forget(ino.0, nlookup);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.overlay.attributes(ino.0) {
            Ok(attr) => reply.attr(&KEPT_FOR, &attr),
            Err(error) => reply.error(error.into()),
        }
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let overlay = &self.overlay;
        let change = || -> io::Result<FileAttr> {
            if let Some(mode) = mode {
                overlay.set_mode(ino.0, mode)?;
            }
            if uid.is_some() || gid.is_some() {
                overlay.set_owner(ino.0, uid, gid)?;
            }
            if let Some(size) = size {
                overlay.set_len(ino.0, size)?;
            }
            if atime.is_some() || mtime.is_some() {
                let times = Timestamps {
                    last_access: timespec(atime),
                    last_modification: timespec(mtime),
                };
                overlay.set_times(ino.0, &times)?;
            }
            overlay.attributes(ino.0)
        };
        match change() {
            Ok(attr) => reply.attr(&KEPT_FOR, &attr),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.overlay.target(ino.0) {
            Ok(target) => reply.data(target.as_os_str().as_bytes()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        entry(
            reply,
            self.overlay.make_node((parent.0, name), mode, maker(req)),
        );
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let made = self
            .overlay
            .make_directory((parent.0, name), mode, maker(req));
        entry(reply, made);
    }

    fn symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        link_name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let made = self
            .overlay
            .make_link((parent.0, link_name), target, maker(req));
        entry(reply, made);
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if self.slow.is_some() {
            self.overlay.pin_named(parent.0, name);
        }
        done(reply, self.overlay.remove(parent.0, name, false));
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        done(reply, self.overlay.remove(parent.0, name, true));
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let flags = rustix::fs::RenameFlags::from_bits_retain(flags.bits());
        let (from, to) = ((parent.0, name), (newparent.0, newname));
        if self.slow.is_some() {
            self.overlay.pin_named(to.0, to.1);
        }
        done(reply, self.overlay.rename(from, to, flags));
    }

    fn open(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if self.slow.is_some() {
            // From now on the kernel opens and closes without asking, and keeps what it has cached:
            // asking would cost more than a page cache's answer does. A file is opened for each read
            // that arrives; a server has more files than this process may have open.
            reply.error(fuser::Errno::ENOSYS);
            return;
        }
        match self.overlay.open_number(ino.0) {
            // Whatever is written goes through the kernel: what it has cached stays true.
            Ok(()) => reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE),
            Err(error) => reply.error(error.into()),
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        match self.overlay.create((parent.0, name), mode, maker(req)) {
            Ok(attr) => {
                if self.slow.is_some() {
                    // Nobody will say that it is closed.
                    self.overlay.release(attr.ino.0);
                }
                let flags = FopenFlags::FOPEN_KEEP_CACHE;
                reply.created(&KEPT_FOR, &attr, Generation(0), FileHandle(0), flags);
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let asked = Instant::now();
        let mut buffer = vec![0; size as usize];
        let outcome = self.overlay.read(ino.0, offset, &mut buffer);
        let length = *outcome.as_ref().unwrap_or(&0);
        let answer = move || match outcome {
            Ok(length) => reply.data(&buffer[..length]),
            Err(error) => reply.error(error.into()),
        };
        match &self.slow {
            Some(slow) => slow.read((ino.0, length), asked, answer),
            None => answer(),
        }
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let asked = Instant::now();
        let written = data.len() as u32;
        let outcome = self.overlay.write(ino.0, offset, data);
        let answer = move || match outcome {
            Ok(()) => reply.written(written),
            Err(error) => reply.error(error.into()),
        };
        match &self.slow {
            Some(slow) => slow.write(flags, asked, answer),
            None => answer(),
        }
    }

    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        // Nothing is held back here.
        match self.slow {
            // And the kernel need not ask again.
            Some(_) => reply.error(fuser::Errno::ENOSYS),
            None => reply.ok(),
        }
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.overlay.release(ino.0);
        reply.ok();
    }

    fn fsync(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        datasync: bool,
        reply: ReplyEmpty,
    ) {
        let asked = Instant::now();
        let outcome = self.overlay.sync(ino.0, datasync);
        let answer = move || done(reply, outcome);
        match &self.slow {
            Some(slow) => slow.sync(asked, answer),
            None => answer(),
        }
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let names = self.overlay.list(ino.0);
        self.listings.open(names, FopenFlags::empty(), reply);
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        self.listings.tell(ino, fh, offset, reply);
    }

    fn releasedir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.listings.close(fh);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        done(reply, self.overlay.sync_directory(ino.0));
    }

    fn fallocate(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        let range = offset..offset.saturating_add(length);
        done(reply, self.overlay.allocate(ino.0, mode, range));
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        match self.overlay.space() {
            Ok(space) => reply.statfs(
                space.f_blocks,
                space.f_bfree,
                space.f_bavail,
                space.f_files,
                space.f_ffree,
                space.f_bsize as u32,
                255,
                space.f_frsize as u32,
            ),
            Err(error) => reply.error(error.into()),
        }
    }
}
