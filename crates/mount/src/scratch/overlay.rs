//! What can be done with the files of a scratch: names and attributes are the real files' own,
//! content is fetched before it is looked at.

use super::Origin;
use super::claim::Scratch;
use super::content::Content;
use super::nodes::Nodes;
use crate::attributes::of_file;
use crate::listings::Names;
use evenkeel_op::own_directory::OwnDirectory;
use evenkeel_op::{Context, Result};
use fuser::{FileAttr, FileType};
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType as DiskType, Mode, RenameFlags, Timestamps,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The files of a scratch, to be shown.
pub struct Overlay {
    top: PathBuf,
    /// `top` leads through it.
    _open: Option<Arc<OwnDirectory>>,
    nodes: RwLock<Nodes>,
    origin: RwLock<Arc<dyn Origin>>,
    /// Reads and writes that are being served.
    pub(super) busy: AtomicU64,
}

/// Who makes something.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maker {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Counts a request while it is served.
struct Served<'a>(&'a AtomicU64);

impl<'a> Served<'a> {
    fn begin(busy: &'a AtomicU64) -> Self {
        busy.fetch_add(1, Ordering::Relaxed);
        Self(busy)
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Overlay {
    /// Reads the names of a scratch, and what is missing of each file.
    pub fn open(scratch: &Scratch, origin: Arc<dyn Origin>) -> Result<Arc<Self>> {
        let top = scratch.files();
        Self::load(top, Some(scratch), origin)
    }

    /// Reads the names of a directory whose files are whole.
    pub(crate) fn plain(directory: &Path) -> Result<Arc<Self>> {
        Self::load(directory.to_owned(), None, Arc::new(Nothing))
    }

    fn load(top: PathBuf, scratch: Option<&Scratch>, origin: Arc<dyn Origin>) -> Result<Arc<Self>> {
        let table = scratch.map(Scratch::table);
        let nodes = Nodes::load(&top, table.as_ref())
            .context(|| format!("failed to read {}", top.display()))?;
        Ok(Arc::new(Self {
            top,
            _open: scratch.map(Scratch::open),
            nodes: RwLock::new(nodes),
            origin: RwLock::new(origin),
            busy: AtomicU64::new(0),
        }))
    }

    /// Returns where something is below the top, if it still has a name.
    pub(crate) fn name(&self, number: u64) -> Option<PathBuf> {
        let path = self.nodes().path(number).ok()?;
        path.strip_prefix(&self.top).ok().map(Path::to_owned)
    }

    /// Returns how many bytes are missing, at most.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.nodes()
            .contents()
            .map(|content| content.missing())
            .sum()
    }

    pub(super) fn nodes(&self) -> RwLockReadGuard<'_, Nodes> {
        self.nodes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn nodes_mut(&self) -> RwLockWriteGuard<'_, Nodes> {
        self.nodes.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn origin(&self) -> Arc<dyn Origin> {
        let origin = self.origin.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&origin)
    }

    /// Everything is there.
    pub(super) fn let_go(&self) {
        *self.origin.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Nothing);
    }

    fn attributes_at(&self, number: u64, path: &Path) -> io::Result<FileAttr> {
        Ok(of_file(number, &std::fs::symlink_metadata(path)?))
    }

    pub(super) fn find(&self, parent: u64, name: &OsStr) -> io::Result<FileAttr> {
        let mut nodes = self.nodes_mut();
        let number = nodes.find(parent, name)?;
        let attributes = self.attributes_at(number, &nodes.path(number)?)?;
        nodes.reported(number);
        Ok(attributes)
    }

    pub(super) fn forget(&self, number: u64, times: u64) {
        self.nodes_mut().forget(number, times);
    }

    pub(super) fn attributes(&self, number: u64) -> io::Result<FileAttr> {
        let nodes = self.nodes();
        let content = nodes.get(number)?.content.clone();
        match content.and_then(|content| content.file()) {
            Some(file) => Ok(of_file(number, &file.metadata()?)),
            None => self.attributes_at(number, &nodes.path(number)?),
        }
    }

    pub(super) fn list(&self, number: u64) -> io::Result<Names> {
        let nodes = self.nodes();
        let names = nodes.get(number)?.names.iter();
        names
            .map(|(name, child)| Ok((name.clone(), *child, nodes.get(*child)?.kind)))
            .collect()
    }

    pub(super) fn target(&self, number: u64) -> io::Result<PathBuf> {
        let nodes = self.nodes();
        std::fs::read_link(nodes.path(number)?)
    }

    /// Opens a file, until [`Overlay::release`].
    pub(super) fn open_number(&self, number: u64) -> io::Result<()> {
        // The names stay as they are until the file is open.
        let nodes = self.nodes();
        let content = content_of(&nodes, number)?;
        content.open(|| nodes.path(number)).map(drop)
    }

    /// Opens a file until the kernel forgets it: where the kernel does not say who opens it.
    /// Pins what has a name, because it is about to lose it; what is no file needs none.
    pub(super) fn pin_named(&self, parent: u64, name: &OsStr) {
        let nodes = self.nodes();
        let number = nodes.get(parent).ok().and_then(|dir| dir.names.get(name));
        if let Some(number) = number.copied()
            && let Ok(content) = content_of(&nodes, number)
        {
            // One that cannot be opened is nobody's to read.
            let _ = content.pin(|| nodes.path(number));
        }
    }

    pub(super) fn release(&self, number: u64) {
        if let Ok(content) = content_of(&self.nodes(), number) {
            content.release();
        }
    }

    pub(super) fn opened(&self, number: u64) -> io::Result<(Arc<Content>, Arc<File>)> {
        let content = content_of(&self.nodes(), number)?;
        let file = content.file();
        let file = file.ok_or_else(|| io::Error::from(rustix::io::Errno::BADF))?;
        Ok((content, file))
    }

    pub(super) fn read(&self, number: u64, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let _served = Served::begin(&self.busy);
        self.with_file(number, |content, file, origin| {
            content.read(file, origin, offset, buffer)
        })
    }

    pub(super) fn write(&self, number: u64, offset: u64, data: &[u8]) -> io::Result<()> {
        let _served = Served::begin(&self.busy);
        self.with_file(number, |content, file, origin| {
            content.write(file, origin, offset, data)
        })
    }

    /// Runs something on a file's content, opening it for that where nobody has.
    fn with_file<R>(
        &self,
        number: u64,
        run: impl FnOnce(&Content, &File, &dyn Origin) -> io::Result<R>,
    ) -> io::Result<R> {
        self.open_number(number)?;
        let done = self
            .opened(number)
            .and_then(|(content, file)| run(&content, &file, &*self.origin()));
        self.release(number);
        done
    }

    pub(super) fn set_len(&self, number: u64, length: u64) -> io::Result<()> {
        self.with_file(number, |content, file, origin| {
            content.set_len(file, origin, length)
        })
    }

    pub(super) fn allocate(
        &self,
        number: u64,
        mode: FallocateFlags,
        range: std::ops::Range<u64>,
    ) -> io::Result<()> {
        self.with_file(number, |content, file, origin| {
            content.allocate(file, origin, mode, range)
        })
    }

    pub(super) fn sync(&self, number: u64, only_data: bool) -> io::Result<()> {
        self.with_file(number, |_, file, _| match only_data {
            true => file.sync_data(),
            false => file.sync_all(),
        })
    }

    pub(super) fn sync_directory(&self, number: u64) -> io::Result<()> {
        let path = self.nodes().path(number)?;
        evenkeel_op::disk::sync_directory(&path)
    }

    pub(super) fn set_mode(&self, number: u64, mode: u32) -> io::Result<()> {
        let nodes = self.nodes();
        std::fs::set_permissions(
            nodes.path(number)?,
            PermissionsExt::from_mode(mode & 0o7777),
        )
    }

    pub(super) fn set_owner(
        &self,
        number: u64,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> io::Result<()> {
        let nodes = self.nodes();
        std::os::unix::fs::lchown(nodes.path(number)?, uid, gid)
    }

    pub(super) fn set_times(&self, number: u64, times: &Timestamps) -> io::Result<()> {
        let nodes = self.nodes();
        match nodes.path(number) {
            Ok(path) => {
                rustix::fs::utimensat(CWD, path, times, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            // It has no name any more, and nobody will see its times.
            Err(_) => return Ok(()),
        }
        Ok(())
    }

    /// Makes something, gives it to its maker, and returns what is given to the kernel.
    fn make(
        &self,
        (parent, name): (u64, &OsStr),
        kind: FileType,
        maker: Maker,
        make: impl FnOnce(&Path) -> io::Result<Option<File>>,
    ) -> io::Result<FileAttr> {
        let mut nodes = self.nodes_mut();
        let path = nodes.path_in(parent, name)?;
        let file = make(&path)?;
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::lchown(&path, Some(maker.uid), Some(maker.gid))?;
        }
        let content = (kind == FileType::RegularFile).then(Content::default);
        let number = nodes.add(parent, name, kind, content);
        if let Some(file) = file {
            content_of(&nodes, number)?.opened(file);
        }
        nodes.reported(number);
        self.attributes_at(number, &path)
    }

    /// Makes a file and leaves it open.
    pub(super) fn create(
        &self,
        place: (u64, &OsStr),
        mode: u32,
        maker: Maker,
    ) -> io::Result<FileAttr> {
        self.make(place, FileType::RegularFile, maker, |path| {
            let mut options = File::options();
            let options = options.read(true).write(true).create_new(true);
            let file = options.mode(mode & 0o7777).open(path)?;
            file.set_permissions(PermissionsExt::from_mode(mode & 0o7777))?;
            Ok(Some(file))
        })
    }

    /// Makes a file that is not opened, a socket or a pipe.
    pub(super) fn make_node(
        &self,
        place: (u64, &OsStr),
        mode: u32,
        maker: Maker,
    ) -> io::Result<FileAttr> {
        let kind = DiskType::from_raw_mode(mode);
        let shown = match kind {
            DiskType::RegularFile => FileType::RegularFile,
            DiskType::Socket => FileType::Socket,
            DiskType::Fifo => FileType::NamedPipe,
            _ => return Err(rustix::io::Errno::PERM.into()),
        };
        self.make(place, shown, maker, |path| {
            let bits = Mode::from_raw_mode(mode & 0o7777);
            rustix::fs::mknodat(CWD, path, kind, bits, 0)?;
            // The kernel has applied the umask of who makes it; ours is of no concern.
            rustix::fs::chmod(path, bits)?;
            Ok(None)
        })
    }

    pub(super) fn make_directory(
        &self,
        place: (u64, &OsStr),
        mode: u32,
        maker: Maker,
    ) -> io::Result<FileAttr> {
        self.make(place, FileType::Directory, maker, |path| {
            let bits = Mode::from_raw_mode(mode & 0o7777);
            rustix::fs::mkdir(path, bits)?;
            rustix::fs::chmod(path, bits)?;
            Ok(None)
        })
    }

    pub(super) fn make_link(
        &self,
        place: (u64, &OsStr),
        target: &Path,
        maker: Maker,
    ) -> io::Result<FileAttr> {
        self.make(place, FileType::Symlink, maker, |path| {
            std::os::unix::fs::symlink(target, path)?;
            Ok(None)
        })
    }

    /// Takes away the name of a file or of an empty directory.
    pub(super) fn remove(&self, parent: u64, name: &OsStr, is_directory: bool) -> io::Result<()> {
        let mut nodes = self.nodes_mut();
        let path = nodes.path_in(parent, name)?;
        match is_directory {
            true => std::fs::remove_dir(path)?,
            false => std::fs::remove_file(path)?,
        }
        nodes.unlink(parent, name);
        Ok(())
    }

    pub(super) fn rename(
        &self,
        from: (u64, &OsStr),
        to: (u64, &OsStr),
        flags: RenameFlags,
    ) -> io::Result<()> {
        if !RenameFlags::NOREPLACE.contains(flags) {
            return Err(rustix::io::Errno::INVAL.into());
        }
        let mut nodes = self.nodes_mut();
        let (old, new) = (nodes.path_in(from.0, from.1)?, nodes.path_in(to.0, to.1)?);
        rustix::fs::renameat_with(CWD, old, CWD, new, flags)?;
        nodes.rename(from, to);
        Ok(())
    }

    pub(super) fn space(&self) -> io::Result<rustix::fs::StatVfs> {
        Ok(rustix::fs::statvfs(&self.top)?)
    }
}

fn content_of(nodes: &Nodes, number: u64) -> io::Result<Arc<Content>> {
    let content = nodes.get(number)?.content.clone();
    content.ok_or_else(|| rustix::io::Errno::ISDIR.into())
}

/// The origin of files that are whole.
struct Nothing;

impl Origin for Nothing {
    fn read_at(&self, _file: u64, _offset: u64, _buffer: &mut [u8]) -> io::Result<()> {
        Err(io::Error::other("the file was whole"))
    }
}
