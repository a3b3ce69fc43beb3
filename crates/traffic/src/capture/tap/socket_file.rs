//! The socket file that a tap listens on. A file that is there is not replaced, unless it is this user's socket and
//! nothing listens on it any more.

use super::place::not_listening;
use evenkeel_op::{Error, Result};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
};
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// A socket file; dropping it takes it away.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode: another file of this name is not ours.
    identity: (u64, u64),
    replaced: bool,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let is_ours = |known: &fs::Metadata| (known.dev(), known.ino()) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(|known| is_ours(&known)) {
            // What stays there is replaced by the next run.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl SocketFile {
    /// Whether this path leads to it.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|known| (known.dev(), known.ino()) == self.identity)
    }

    /// Makes the file and listens on it. Nobody can connect before it has its mode.
    ///
    /// # Errors
    ///
    /// `Usage` when something is there that cannot be replaced; when it cannot be made.
    pub(super) fn listen(path: &Path, mode: u32, backlog: i32) -> Result<(OwnedFd, Self)> {
        let shown = path.display().to_string();
        let address = SocketAddrUnix::new(path).map_err(|error| {
            Error::usage(format!("{shown} cannot be the name of a socket file"))
                .because(error)
                .hint("its path may have up to 107 bytes")
        })?;
        let failed = |error| not_listening(&shown, error);
        let socket = stream().map_err(failed)?;
        let mut replaced = false;
        if let Err(error) = bind(&socket, &address) {
            if error != Errno::ADDRINUSE {
                return Err(failed(error));
            }
            remove_dead(path, &address)?;
            replaced = true;
            bind(&socket, &address).map_err(failed)?;
        }
        let (made, identity) = own_socket(path)?;
        let file = Self {
            path: path.to_owned(),
            identity,
            replaced,
        };
        // By its descriptor: whoever may write to the folder could have put a link in its place.
        let by_descriptor = format!("/proc/self/fd/{}", made.as_raw_fd());
        fs::set_permissions(by_descriptor, fs::Permissions::from_mode(mode)).map_err(|error| {
            Error::failed(format!("failed to set the mode of {shown}")).because(error)
        })?;
        listen(&socket, backlog).map_err(failed)?;
        Ok((socket, file))
    }

    pub(super) fn replaced(&self) -> bool {
        self.replaced
    }
}

/// Opens the socket's file, without following links; returns it with its device and inode.
fn own_socket(path: &Path) -> Result<(OwnedFd, (u64, u64))> {
    let shown = path.display();
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = open(path, flags, Mode::empty()).and_then(|file| {
        let known = fstat(&file)?;
        Ok((file, known))
    });
    let (file, known) =
        opened.map_err(|error| Error::failed(format!("failed to open {shown}")).because(error))?;
    let is_socket = FileType::from_raw_mode(known.st_mode) == FileType::Socket;
    if !is_socket || known.st_uid != rustix::process::geteuid().as_raw() {
        return Err(
            Error::refused(format!("{shown} was replaced while it was made"))
                .hint("use a folder that no other user can write to"),
        );
    }
    Ok((file, (known.st_dev, known.st_ino)))
}

fn stream() -> rustix::io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, FLAGS, None)
}

/// Removes a socket of this user on which nothing listens.
fn remove_dead(path: &Path, address: &SocketAddrUnix) -> Result<()> {
    let shown = path.display();
    let taken = |why: &str| {
        Error::usage(format!("{shown} {why}"))
            .hint("name a file that does not exist; the tap makes it, and removes it when it ends")
    };
    let known = fs::symlink_metadata(path)
        .map_err(|error| Error::failed(format!("failed to read {shown}")).because(error))?;
    if !known.file_type().is_socket() {
        return Err(taken("exists, and is no socket"));
    }
    if known.uid() != rustix::process::geteuid().as_raw() {
        return Err(taken("is another user's socket"));
    }
    let probed = stream().and_then(|socket| connect(&socket, address));
    match probed {
        Err(Errno::CONNREFUSED) => fs::remove_file(path)
            .map_err(|error| Error::failed(format!("failed to remove {shown}")).because(error)),
        _ => Err(taken("is in use: something listens there")),
    }
}
