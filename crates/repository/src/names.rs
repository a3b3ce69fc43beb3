//! Names in the store, all in one place.

/// The identity file.
pub(crate) const IDENTITY: &str = "repository";
/// The list of live generations.
pub(crate) const HEAD: &str = "head";
/// Who may open an encrypted repository, and the keys wrapped for them.
pub(crate) const KEYS: &str = "keys";
/// The same once more: all is lost with it.
pub(crate) const KEYS_COPY: &str = "keys.copy";
/// The folder of archived binary logs, which are no generation's.
pub const BINLOGS: &str = "binlogs";
/// The folder of the generations.
pub(crate) const GENERATIONS: &str = "generations";
/// Held alone by whoever adds or removes objects.
pub const WRITER_LOCK: &str = "writer.lock";
/// Held together by readers, alone by whoever removes what they may read.
pub const READER_LOCK: &str = "reader.lock";
/// The lock of whoever archives the binary logs of a source, in the source's folder.
pub const ARCHIVE_LOCK: &str = "archive.lock";

/// Marks a generation that is being written.
pub(crate) const PENDING: &str = "pending";
/// Marks a generation of which the last objects are being removed.
pub(crate) const REMOVING: &str = "removing";
/// Names and metadata of a generation's files. The first to go when it is forgotten: while it is there, the
/// generation was not.
pub(crate) const FILES: &str = "files";
/// The commit point of a generation.
pub(crate) const MANIFEST: &str = "manifest";

/// Returns the folder of a generation.
pub(crate) fn folder(generation: u32) -> String {
    format!("{GENERATIONS}/{generation}")
}

/// Returns the name in the store of a generation's object.
pub(crate) fn object(generation: u32, name: &str) -> String {
    format!("{GENERATIONS}/{generation}/{name}")
}
