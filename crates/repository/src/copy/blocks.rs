//! Block by block: the other repository is one of its own, with keys and numbers of its own. Each
//! generation is read as a restore reads it and written as a backup writes it, against the newest one
//! that came from here; blocks of the same hash are neither read nor sent.

use super::choose::choose;
use super::request::{Copied, CopyReport, CopyWay};
use super::run::Run;
use crate::catalog::Catalog;
use crate::format::header::ObjectKind;
use crate::ids::{Digest, RepositoryId};
use crate::list::{FileKind, FileRecord, Files, ListReader};
use crate::locks;
use crate::map::tree::Tree;
use crate::map::{Child, Entry};
use crate::mutex::held;
use crate::read::{BlockContent, FileReader, FrameCache, LeafCache};
use crate::repository::{Repository, no_generation};
use crate::write::{Begin, FileBuilder, RunKind, Worker, Writer};
use crossbeam_channel::{Receiver, Sender};
use evenkeel_op::{Error, Result, Unit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// Decompressed frames kept for reuse.
const CACHE_BYTES: usize = 64 << 20;

/// The name, among a generation's facts, of where it was copied from.
const ORIGIN: &str = "copied_from";

/// Which generation another was copied from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    repository: RepositoryId,
    generation: u32,
    manifest: Digest,
}

pub(super) fn copy(from: &Repository, to: &Repository, run: &Run<'_>) -> Result<CopyReport> {
    let _reading = locks::reader(&**from.store(), run.how.wait)?;
    let source = Arc::new(Catalog::new(
        from.store().clone(),
        from.id(),
        from.keys().clone(),
        from.head()?,
    ));
    let mut there = origins(&source, to)?;
    let newest = there.keys().next_back().copied();
    let choice = choose(&source, run.how, newest, |number| {
        there.contains_key(&number)
    })?;
    let mut report = CopyReport::new(CopyWay::Blocks);
    for &generation in &choice.wanted {
        let base = there.range(..generation).next_back();
        let base = base.map(|(number, becomes)| (*number, *becomes));
        let becomes = one(&source, to, (generation, base), run)?;
        there.insert(generation, becomes);
        report.copied.push(Copied {
            generation,
            becomes,
        });
    }
    let archived = from.store().list(crate::names::BINLOGS);
    if archived.is_ok_and(|found| !found.is_empty()) {
        let note = "archived binary logs are copied only to a copy of this repository, not to an \
             independent one";
        report.notes.push(note.to_owned());
    }
    report.present = choice.present;
    report.left_out = choice.left_out;
    report.bytes_copied = run.sent.load(Ordering::Relaxed);
    Ok(report)
}

/// Returns the generations that came from here, and their numbers there.
fn origins(source: &Catalog, to: &Repository) -> Result<BTreeMap<u32, u32>> {
    let there = Catalog::new(to.store().clone(), to.id(), to.keys().clone(), to.head()?);
    let live: Vec<u32> = there.head.live.iter().map(|one| one.generation).collect();
    there.prepare(live.iter().copied());
    let mut found = BTreeMap::new();
    for becomes in live {
        let known = there.generation(becomes)?;
        let origin = known.manifest.facts.get(ORIGIN).cloned();
        let origin = origin.and_then(|value| serde_json::from_value::<Origin>(value).ok());
        if let Some(origin) = origin.filter(|one| one.repository == source.repository) {
            found.insert(origin.generation, becomes);
        }
    }
    Ok(found)
}

/// Copies one generation; returns its number there. `base` is an older one: its numbers here and
/// there.
fn one(
    source: &Arc<Catalog>,
    to: &Repository,
    (generation, base): (u32, Option<(u32, u32)>),
    run: &Run<'_>,
) -> Result<u32> {
    let known = source.generation(generation)?;
    let manifest = &known.manifest;
    let digest = source.head.manifest(generation);
    let origin = Origin {
        repository: source.repository,
        generation,
        manifest: digest.ok_or_else(|| no_generation(&*source.store, generation))?,
    };
    let mut facts = manifest.facts.clone();
    let origin = serde_json::to_value(origin).map_err(|error| {
        Error::failed("failed to record where a copy comes from").because(error)
    })?;
    match &mut facts {
        serde_json::Value::Object(all) => {
            all.insert(ORIGIN.to_owned(), origin);
        }
        other => *other = serde_json::json!({ ORIGIN: origin }),
    }
    let kind = match base {
        None => RunKind::Full,
        Some((_, becomes)) => match to.head()?.live.last() {
            Some(last) if last.generation == becomes => RunKind::Incremental,
            _ => RunKind::Against(becomes),
        },
    };
    let mut begin = Begin::new(kind, manifest.source.clone());
    begin.created = Some(manifest.created);
    begin.wait = run.how.wait;
    source.check_references(generation)?;
    // What did not change here since the base did not change there.
    let older = match base.filter(|(number, _)| source.head.live(*number).is_some()) {
        Some((number, _)) => Some(list(source, number)?),
        None => None,
    };
    let phase = format!("copying generation {generation}");
    run.progress.phase(&phase, None, Unit::Bytes);
    let writer = to.begin(begin)?;
    let becomes = writer.generation();
    let side = Side {
        source,
        generation,
        older,
        cache: Arc::new(FrameCache::new(CACHE_BYTES)),
        leaves: Arc::new(LeafCache::new()),
    };
    send(&side, &writer, run)?;
    fail::fail_point!("copy::blocks_sent");
    let done = writer.commit(facts, manifest.coordinates.clone())?;
    run.sent(done.bytes_stored);
    run.progress.end();
    Ok(becomes)
}

fn list(source: &Catalog, generation: u32) -> Result<Arc<ListReader>> {
    let list = source.object(generation, ObjectKind::Files, 0)?;
    Ok(Arc::new(ListReader::open(list)?))
}

/// What is read.
struct Side<'c> {
    source: &'c Arc<Catalog>,
    generation: u32,
    /// The files of the generation here that the base there was copied from.
    older: Option<Arc<ListReader>>,
    cache: Arc<FrameCache>,
    leaves: Arc<LeafCache>,
}

/// A file on its way; whoever is done with the last of its leaves finishes it.
struct OnTheWay {
    reader: FileReader,
    tree: Tree,
    older: Option<Tree>,
    builder: RwLock<Option<FileBuilder>>,
    leaves: u64,
    left: AtomicU64,
}

type Job = (Arc<OnTheWay>, u64);

fn send(side: &Side<'_>, writer: &Writer, run: &Run<'_>) -> Result<()> {
    let workers = run.how.workers.max(1);
    let (sender, receiver) = crossbeam_channel::bounded::<Job>(workers * 4);
    let failed: Mutex<Option<Error>> = Mutex::default();
    let keep = |error| {
        held(&failed).get_or_insert(error);
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (receiver, keep) = (receiver.clone(), &keep);
            scope.spawn(move || {
                if let Err(error) = work(writer, receiver, run) {
                    keep(error);
                }
            });
        }
        // Theirs are the only ones: when all have failed, sending fails.
        drop(receiver);
        if let Err(error) = feed(side, writer, sender) {
            keep(error);
        }
    });
    match held(&failed).take() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn feed(side: &Side<'_>, writer: &Writer, jobs: Sender<Job>) -> Result<()> {
    for record in Files::new(list(side.source, side.generation)?) {
        let record = record?;
        if record.meta.kind != FileKind::File {
            writer.add(record.meta)?;
            continue;
        }
        let file = Arc::new(file(side, &record, writer)?);
        if file.leaves == 0 {
            finish(&file)?;
        }
        for index in 0..file.leaves {
            jobs.send((file.clone(), index))
                .map_err(|_| Error::failed("the threads that copy blocks have ended"))?;
        }
    }
    Ok(())
}

fn file(side: &Side<'_>, record: &FileRecord, writer: &Writer) -> Result<OnTheWay> {
    let source = side.source;
    let builder = writer.file_builder(record.meta.clone(), writer.base_file(&record.meta.name)?)?;
    let older = match &side.older {
        Some(list) if builder.has_base() => list.find(&record.meta.name)?,
        _ => None,
    };
    // Of the same length and identity: then the same record says the same of the same blocks.
    let older = older.filter(|older| older.id == record.id && older.meta.size == record.meta.size);
    Ok(OnTheWay {
        reader: FileReader::new(
            source.clone(),
            side.cache.clone(),
            (side.generation, side.leaves.clone()),
            record,
        )?,
        tree: Tree::new(source.clone(), record)?,
        older: match older {
            Some(older) => Some(Tree::new(source.clone(), &older)?),
            None => None,
        },
        leaves: builder.leaf_count(),
        left: AtomicU64::new(builder.leaf_count()),
        builder: RwLock::new(Some(builder)),
    })
}

fn finish(file: &OnTheWay) -> Result<()> {
    let mut builder = file.builder.write().unwrap_or_else(|e| e.into_inner());
    match builder.take() {
        Some(builder) => builder.finish().map(|_| ()),
        None => Err(Error::failed("a file was finished twice")),
    }
}

fn work(writer: &Writer, jobs: Receiver<Job>, run: &Run<'_>) -> Result<()> {
    let mut worker = writer.worker()?;
    for (file, index) in jobs {
        run.cancel.check()?;
        let builder = file.builder.read().unwrap_or_else(|e| e.into_inner());
        if let Some(builder) = &*builder {
            leaf(&file, builder, index, &mut worker, run)?;
        }
        drop(builder);
        if file.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            finish(&file)?;
        }
    }
    worker.finish()
}

fn leaf(
    file: &OnTheWay,
    builder: &FileBuilder,
    index: u64,
    worker: &mut Worker,
    run: &Run<'_>,
) -> Result<()> {
    let now = file.tree.child(0, index)?;
    if let (Some(older), Child::Record(_)) = (&file.older, now)
        && older.child(0, index)? == now
    {
        return Ok(());
    }
    let mut leaf = builder.leaf(index)?;
    let wanted = file.tree.leaf(index)?;
    let mut changed = Vec::new();
    for (i, (new, old)) in wanted.entries.iter().zip(&leaf.entries).enumerate() {
        if !same(new, old) {
            changed.push(leaf.blocks().start + i as u64);
        }
    }
    file.reader
        .read_some(&wanted.entries, &changed, |block, content| {
            let range = leaf.byte_range(block);
            let length = (range.end - range.start) as usize;
            match content {
                BlockContent::Hole => leaf.hole(worker, block)?,
                BlockContent::Zero => leaf.put(worker, block, &vec![0; length])?,
                BlockContent::Data(bytes) if bytes.len() < length => {
                    run.pace(bytes.len() as u64)?;
                    leaf.put_with_tail_hole(worker, block, bytes)?
                }
                BlockContent::Data(bytes) => {
                    run.pace(bytes.len() as u64)?;
                    leaf.put(worker, block, bytes)?
                }
            };
            Ok(())
        })?;
    builder.set_leaf(leaf)
}

/// Whether a block there is as the one here, by its hash.
fn same(new: &Entry, old: &Entry) -> bool {
    match (new, old) {
        (
            Entry::Data {
                hash, tail_hole, ..
            },
            Entry::Data {
                hash: old_hash,
                tail_hole: old_tail,
                ..
            },
        ) => hash == old_hash && tail_hole == old_tail,
        (Entry::Hole, Entry::Hole) | (Entry::Zero, Entry::Zero) => true,
        _ => false,
    }
}
