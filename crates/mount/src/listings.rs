//! Directories that are being listed: a listing continues where it was, also when names come and
//! go.

use fuser::{Errno, FileHandle, FileType, FopenFlags, INodeNo, ReplyDirectory, ReplyOpen};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Names as they are given to the kernel: name, number, kind.
pub(crate) type Names = Vec<(OsString, u64, FileType)>;

#[derive(Default)]
pub(crate) struct Listings {
    open: Mutex<HashMap<u64, Arc<Names>>>,
    next: AtomicU64,
}

impl Listings {
    fn held(&self) -> MutexGuard<'_, HashMap<u64, Arc<Names>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a directory with these names.
    pub(crate) fn open(&self, names: io::Result<Names>, flags: FopenFlags, reply: ReplyOpen) {
        match names {
            Ok(names) => {
                let handle = self.next.fetch_add(1, Ordering::Relaxed);
                self.held().insert(handle, Arc::new(names));
                reply.opened(FileHandle(handle), flags);
            }
            Err(error) => reply.error(error.into()),
        }
    }

    /// Tells the names of the directory `ino` from the one after number `offset` on, as many as fit.
    pub(crate) fn tell(
        &self,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some(names) = self.held().get(&handle.0).cloned() else {
            reply.error(Errno::EBADF);
            return;
        };
        let own = [".", ".."].map(|name| (OsStr::new(name), ino.0, FileType::Directory));
        let listed = names
            .iter()
            .map(|(name, node, kind)| (name.as_os_str(), *node, *kind));
        let all = own.into_iter().chain(listed).zip(1..);
        for ((name, node, kind), next) in all.skip(offset as usize) {
            if reply.add(INodeNo(node), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    pub(crate) fn close(&self, handle: FileHandle) {
        self.held().remove(&handle.0);
    }
}
