//! Writes the files of a plan, many threads, each block of the repository read once.
//!
//! All is made durable at once, before it is shown. What is written goes to the disk meanwhile, because the
//! kernel would begin only after seconds, and the end would wait for nearly all of a small restore.

use super::plan::Plan;
use super::request::RestoreRequest;
use super::write::BlockWriter;
use super::{dress, entries, names};
use crossbeam_channel::{Receiver, Sender, bounded};
use evenkeel_op::own_directory::{OwnDirectory, shown};
use evenkeel_op::workers::first_error;
use evenkeel_op::{Cancel, Context, Error, ErrorKind, Result, Run, Unit};
use evenkeel_repository::{FileKind, FileMeta, FileReader, Reader};
use rustix::fs::Mode;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Work that waits for a thread.
const QUEUE: usize = 64;
/// Leaves (of 256 blocks) that one thread writes before another may take over in the same file.
const STRETCH: u64 = 4;
/// Files that wait to be flushed; one that finds no room is flushed with all others at the end.
const FLUSHES: usize = 32;
/// Files with fewer blocks than a leaf has are left to the end: each flush waits for the journal.
const FLUSHED_MIN_LEAVES: u64 = 2;

/// The mode of a root of which the generation tells nothing.
const ROOT_MODE: u32 = 0o700;

struct Open {
    path: PathBuf,
    meta: FileMeta,
    file: File,
    reader: FileReader,
    stretches_left: AtomicU64,
}

struct Item {
    open: Arc<Open>,
    leaves: Range<u64>,
}

/// Writes everything; returns how many bytes were written.
pub(super) fn apply(plan: &Plan, request: &RestoreRequest, run: Run<'_>) -> Result<u64> {
    run.progress.phase(
        "restoring",
        Some(plan.reader.manifest().bytes_logical),
        Unit::Bytes,
    );
    let written = AtomicU64::new(0);
    let failed = Cancel::new();
    let (send, receive) = bounded::<Item>(QUEUE);
    let (flush, flushes) = bounded::<Arc<Open>>(FLUSHES);
    std::thread::scope(|scope| {
        let mut workers = Vec::new();
        workers.push(scope.spawn(|| {
            let ended = flush_each(flushes, &failed, run);
            if ended.is_err() {
                failed.cancel(2);
            }
            ended
        }));
        for _ in 0..request.workers.max(1) {
            let (receive, written, failed) = (receive.clone(), &written, &failed);
            let flush = flush.clone();
            workers.push(scope.spawn(move || {
                let ended = work(&receive, &flush, request, written, failed, run);
                if ended.is_err() {
                    failed.cancel(2);
                }
                ended
            }));
        }
        drop((receive, flush));
        let first = hand_out(plan, request, &send, &failed, run);
        if first.is_err() {
            failed.cancel(2);
        }
        drop(send);
        let first = first_error(first, workers);
        run.cancel.check()?;
        first
    })?;
    dress_dirs(plan, request)?;
    run.progress.end();
    Ok(written.load(Ordering::Relaxed))
}

/// Creates directories and links, and hands out the files.
fn hand_out(
    plan: &Plan,
    request: &RestoreRequest,
    send: &Sender<Item>,
    failed: &Cancel,
    run: Run<'_>,
) -> Result<()> {
    // Names are sorted, but a directory may sort behind its files' neighbours: make them first.
    for record in plan.reader.files() {
        let meta = record?.meta;
        if meta.kind == FileKind::Dir {
            let (staging, relative) = names::place(&plan.roots, &meta.name)?;
            entries::make_dir(&staging.dir().join(relative))?;
        }
    }
    for record in plan.reader.files() {
        failed.check()?;
        run.cancel.check()?;
        let record = record?;
        let (staging, relative) = names::place(&plan.roots, &record.meta.name)?;
        let path = staging.path(&relative);
        match record.meta.kind {
            FileKind::Dir => {}
            // A backup never holds links: what is behind one is a root or a file of its own.
            FileKind::Symlink => {
                return Err(Error::failed(format!("{} is a link", record.meta.name)));
            }
            FileKind::File => {
                if let Some(parent) = path.parent() {
                    entries::make_dir(parent)?;
                }
                let reader = plan.reader.open_file(&record)?;
                hand_out_file(path, record.meta, reader, send, request)?;
            }
        }
    }
    Ok(())
}

fn hand_out_file(
    path: PathBuf,
    meta: FileMeta,
    reader: FileReader,
    send: &Sender<Item>,
    request: &RestoreRequest,
) -> Result<()> {
    let file = File::create_new(&path)
        .context(|| format!("failed to create {}", shown(&path).display()))?;
    file.set_len(meta.size)
        .context(|| format!("failed to size {}", shown(&path).display()))?;
    let leaves = reader.leaf_count();
    let stretches = leaves.div_ceil(STRETCH);
    if stretches == 0 {
        return dress::dress(file.as_fd(), &path, &meta, request.owner);
    }
    let open = Arc::new(Open {
        path,
        meta,
        file,
        reader,
        stretches_left: AtomicU64::new(stretches),
    });
    for stretch in 0..stretches {
        let leaves = stretch * STRETCH..((stretch + 1) * STRETCH).min(leaves);
        if send
            .send(Item {
                open: Arc::clone(&open),
                leaves,
            })
            .is_err()
        {
            return Err(Error::new(ErrorKind::Interrupted, "the workers ended"));
        }
    }
    Ok(())
}

/// Brings to the disk what was written, while more is.
fn flush_each(files: Receiver<Arc<Open>>, failed: &Cancel, run: Run<'_>) -> Result<()> {
    files.into_iter().try_for_each(|open| {
        failed.check()?;
        run.cancel.check()?;
        let flushed = open.file.sync_data();
        flushed.context(|| format!("failed to sync {}", shown(&open.path).display()))
    })
}

fn work(
    items: &Receiver<Item>,
    flush: &Sender<Arc<Open>>,
    request: &RestoreRequest,
    written: &AtomicU64,
    failed: &Cancel,
    run: Run<'_>,
) -> Result<()> {
    while let Ok(Item { open, leaves }) = items.recv() {
        failed.check()?;
        let mut writer = BlockWriter::new(&open.file);
        let block_size = u64::from(open.meta.block_size);
        for leaf in leaves {
            run.cancel.check()?;
            let mut end = 0;
            open.reader
                .read_leaf(leaf, |block, content| {
                    let length = open.meta.block_length(block) as u64;
                    end += length;
                    writer.block(block * block_size, length, content)
                })
                .context(|| format!("failed to restore {}", open.meta.name))?;
            run.progress.advance(end);
        }
        let bytes = writer
            .finish()
            .context(|| format!("failed to write {}", shown(&open.path).display()))?;
        written.fetch_add(bytes, Ordering::Relaxed);
        fail::fail_point!("restore::apply::stretch");
        if open.stretches_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            dress::dress(open.file.as_fd(), &open.path, &open.meta, request.owner)?;
        }
        if open.reader.leaf_count() >= FLUSHED_MIN_LEAVES {
            // Full, or ended by a failure that is reported elsewhere: the end flushes everything.
            let _ = flush.try_send(open);
        }
    }
    Ok(())
}

/// Directories get their times and modes last: writing into them changes both or needs them. The roots wait
/// until nothing is left to be written at all.
fn dress_dirs(plan: &Plan, request: &RestoreRequest) -> Result<()> {
    for record in plan.reader.files() {
        let meta = record?.meta;
        let (staging, relative) = names::place(&plan.roots, &meta.name)?;
        if meta.kind == FileKind::Dir && !relative.as_os_str().is_empty() {
            dress::dress_dir(&staging.dir().join(relative), &meta, request.owner)?;
        }
    }
    Ok(())
}

/// Gives directories that their groups or others may write into these rights again, after they were closed.
pub(super) fn open_up_dirs(plan: &Plan) -> Result<()> {
    for record in plan.reader.files() {
        let meta = record?.meta;
        let mode = dress::plain_mode(&meta);
        let (staging, relative) = names::place(&plan.roots, &meta.name)?;
        if meta.kind != FileKind::Dir || relative.as_os_str().is_empty() || mode & 0o022 == 0 {
            continue;
        }
        let path = staging.dir().join(relative);
        // A schema may have been dropped since.
        if let Some((open, _)) = OwnDirectory::find(&path)? {
            rustix::fs::fchmod(&open, Mode::from_raw_mode(mode))
                .context(|| format!("failed to set the mode of {}", shown(&path).display()))?;
        }
    }
    Ok(())
}

/// Returns what each root was itself.
pub(super) fn tops(reader: &Reader) -> Result<BTreeMap<String, FileMeta>> {
    let mut roots: BTreeMap<String, FileMeta> = BTreeMap::new();
    for record in reader.files() {
        let meta = record?.meta;
        let (root, relative) = names::split(&meta.name)?;
        if relative.as_os_str().is_empty() {
            roots.insert(root.to_owned(), meta);
            continue;
        }
        // Generations of old do not tell of the roots themselves: those are their files' owner's.
        if !roots.contains_key(root) {
            let top = FileMeta {
                mode: ROOT_MODE,
                ..meta.clone()
            };
            roots.insert(root.to_owned(), top);
        }
    }
    Ok(roots)
}
