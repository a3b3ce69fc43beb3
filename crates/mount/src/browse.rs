//! A [`Tree`] as the kernel asks for it.

use crate::attributes::{KEPT_FOR, file_type, of_tree};
use crate::listings::Listings;
use crate::tree::{Entry, NodeId, Tree};
use fuser::{
    FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, Request,
};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

pub(crate) struct Browse<T> {
    tree: T,
    listings: Listings,
}

impl<T: Tree> Browse<T> {
    pub(crate) fn new(tree: T) -> Self {
        Self {
            tree,
            listings: Listings::default(),
        }
    }

    fn entry(&self, parent: NodeId, name: &OsStr) -> io::Result<fuser::FileAttr> {
        let node = self.tree.find(parent, name)?;
        let node = node.ok_or_else(|| io::Error::from(rustix::io::Errno::NOENT))?;
        Ok(of_tree(node, &self.tree.attributes(node)?))
    }
}

/// Asks for what makes reading fast, as far as the kernel has it.
pub(crate) fn init(config: &mut KernelConfig) {
    for wanted in [
        InitFlags::FUSE_PARALLEL_DIROPS,
        InitFlags::FUSE_ASYNC_DIO,
        InitFlags::FUSE_CACHE_SYMLINKS,
    ] {
        // An older kernel does without.
        let _ = config.add_capabilities(wanted);
    }
    let _ = config.set_max_background(64);
    if let Err(most) = config.set_max_readahead(1 << 20) {
        let _ = config.set_max_readahead(most);
    }
}

impl<T: Tree> Filesystem for Browse<T> {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        init(config);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.entry(parent.0, name) {
            Ok(attr) => reply.entry(&KEPT_FOR, &attr, Generation(0)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.tree.attributes(ino.0) {
            Ok(found) => reply.attr(&KEPT_FOR, &of_tree(ino.0, &found)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.tree.target(ino.0) {
            Ok(target) => reply.data(target.as_bytes()),
            Err(error) => reply.error(error.into()),
        }
    }

    fn open(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_KEEP_CACHE);
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
        let mut buffer = vec![0; size as usize];
        match self.tree.read_at(ino.0, offset, &mut buffer) {
            Ok(length) => reply.data(&buffer[..length.min(buffer.len())]),
            Err(error) => reply.error(error.into()),
        }
    }

    fn opendir(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let named = |one: Entry| (one.name, one.node, file_type(one.kind));
        let names = self.tree.list(ino.0);
        let names = names.map(|names| names.into_iter().map(named).collect());
        let flags = FopenFlags::FOPEN_KEEP_CACHE | FopenFlags::FOPEN_CACHE_DIR;
        self.listings.open(names, flags, reply);
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

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        // Full: nothing can be written here.
        reply.statfs(1, 0, 0, 1, 0, 4096, 255, 4096);
    }
}
