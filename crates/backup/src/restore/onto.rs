//! Writes one volume of a generation over a block device or an existing file: only the blocks that
//! differ. What is there is lost, so a plan is made first.

use crate::facts::Facts;
use evenkeel_op::workers::first_error;
use evenkeel_op::{Cancel, Context, Error, Result, Run, Unit, units};
use evenkeel_repository::{BlockContent, FileKind, FileReader, Location, Reader, Repository};
use evenkeel_snapshot::volume::{self, Users, VolumeKind};
use rustix::fs::{FallocateFlags, SeekFrom};
use serde::Serialize;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Leaves (of 256 blocks) that one thread writes before it takes the next.
const STRETCH: u64 = 16;

/// Which volume to write, and over what.
#[derive(Debug, Clone)]
pub struct OntoRequest {
    /// The repository.
    pub repository: Location,
    /// The generation; the newest when not given.
    pub generation: Option<u32>,
    /// The volume's name, with or without `volume/`; may be left out where there is only one.
    pub volume: Option<String>,
    /// The block device or file that is overwritten.
    pub target: PathBuf,
    /// Threads that write.
    pub workers: usize,
}

impl OntoRequest {
    /// Makes a request with the usual settings.
    #[must_use]
    pub fn new(repository: impl Into<Location>, generation: Option<u32>, target: &Path) -> Self {
        Self {
            repository: repository.into(),
            generation,
            volume: None,
            target: target.to_owned(),
            workers: crate::default_workers(),
        }
    }
}

/// What would be overwritten with what.
pub struct OntoPlan {
    /// What the plan comes to.
    pub report: OntoReport,
    kind: VolumeKind,
    reader: FileReader,
    workers: usize,
}

/// What writing over a volume comes, or came, to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OntoReport {
    /// Whether it was done, or is only planned.
    pub executed: bool,
    /// The generation.
    pub generation: u32,
    /// The volume's name in it.
    pub volume: String,
    /// Where it came from.
    pub source: String,
    /// What is overwritten.
    pub target: PathBuf,
    /// Bytes of the volume.
    pub bytes_logical: u64,
    /// Bytes of the target as it was.
    pub bytes_target: u64,
    /// Bytes that were written, because they differed; 0 in a plan.
    pub bytes_written: u64,
    /// Wall-clock time; 0 in a plan.
    pub seconds: f64,
}

/// Plans. `Refused` when the target is too small, mounted or otherwise in use.
pub fn plan_onto(request: &OntoRequest) -> Result<OntoPlan> {
    let repository = Repository::open(&request.repository)?;
    let generation = match request.generation {
        Some(generation) => generation,
        None => super::newest_whole(&repository)?,
    };
    let reader = repository.reader(generation)?;
    let facts = Facts::of(reader.manifest())?;
    let (name, content) = find(&reader, &facts, request.volume.as_deref())?;
    let kind = volume::kind(&request.target)
        .map_err(|error| error.hint("to create a new file, use --target DIRECTORY instead"))?;
    let target = open(&request.target, kind)?;
    let bytes_target = volume::size(&target)
        .context(|| format!("failed to examine {}", request.target.display()))?;
    let size = content.meta().size;
    if kind == VolumeKind::Device && bytes_target < size {
        return Err(Error::refused(format!(
            "{} has {}, but {name} needs {}",
            request.target.display(),
            units::bytes(bytes_target),
            units::bytes(size)
        ))
        .hint("make it larger, or name another"));
    }
    Ok(OntoPlan {
        report: OntoReport {
            executed: false,
            generation,
            source: facts.volumes.get(&name).cloned().unwrap_or_default(),
            volume: name,
            target: request.target.clone(),
            bytes_logical: size,
            bytes_target,
            bytes_written: 0,
            seconds: 0.0,
        },
        kind,
        reader: content,
        workers: request.workers,
    })
}

/// Finds a volume of a generation.
fn find(reader: &Reader, facts: &Facts, wanted: Option<&str>) -> Result<(String, FileReader)> {
    let generation = reader.generation();
    if !facts.is_of_volumes() {
        return Err(Error::refused(format!(
            "generation {generation} holds a server's files, not volumes"
        ))
        .hint("restore it into a directory: --target DIRECTORY"));
    }
    let names: Vec<&str> = facts.volumes.keys().map(String::as_str).collect();
    let short = |name: &str| name.split_once('/').map_or("", |(_, rest)| rest).to_owned();
    let name = match (wanted, names.as_slice()) {
        (Some(wanted), names) => names
            .iter()
            .find(|name| **name == wanted || short(name) == wanted),
        (None, [only]) => Some(only),
        (None, _) => None,
    };
    let Some(name) = name else {
        let known: Vec<String> = names.iter().map(|name| short(name)).collect();
        return Err(Error::usage(match wanted {
            Some(wanted) => format!("generation {generation} has no volume '{wanted}'"),
            None => format!("generation {generation} has {} volumes", known.len()),
        })
        .hint(format!("name one with --volume: {}", known.join(", "))));
    };
    for record in reader.files() {
        let record = record?;
        if record.meta.kind == FileKind::File && record.meta.name == *name {
            return Ok(((*name).to_owned(), reader.open_file(&record)?));
        }
    }
    Err(Error::failed(format!(
        "generation {generation} lacks its volume {name}"
    )))
}

/// Opens what should be overwritten, if nobody uses it. A device stays claimed as long as it is
/// open.
fn open(target: &Path, kind: VolumeKind) -> Result<File> {
    let hint = "unmount it, stop the program that uses it, or name another";
    let file = match kind {
        VolumeKind::Device => volume::claim(target, true).map_err(|error| error.hint(hint))?,
        VolumeKind::File => File::options()
            .read(true)
            .write(true)
            .open(target)
            .context(|| format!("failed to open {}", target.display()))?,
    };
    match volume::user_of(target, Users::All)? {
        Some(user) => {
            Err(Error::refused(format!("{user} is using {}", target.display())).hint(hint))
        }
        None => Ok(file),
    }
}

/// Writes. Where it ends early, the target is neither what it was nor what it should be; the same
/// command again continues.
pub fn onto(plan: OntoPlan, run: Run<'_>) -> Result<OntoReport> {
    let begun = Instant::now();
    let mut report = plan.report.clone();
    let path = &report.target;
    let file = open(path, plan.kind)?;
    if plan.kind == VolumeKind::File {
        file.set_len(report.bytes_logical)
            .context(|| format!("failed to size {}", path.display()))?;
    }
    run.progress
        .phase("writing", Some(report.bytes_logical), Unit::Bytes);
    let written = AtomicU64::new(0);
    write(&plan, &file, &written, run).map_err(|error| {
        error.hint(format!(
            "{} is partly overwritten: run the same command again",
            path.display()
        ))
    })?;
    file.sync_all()
        .context(|| format!("failed to sync {}", path.display()))?;
    run.progress.end();
    report.executed = true;
    report.bytes_written = written.load(Ordering::Relaxed);
    report.seconds = begun.elapsed().as_secs_f64();
    Ok(report)
}

/// Lets threads write stretch after stretch.
fn write(plan: &OntoPlan, file: &File, written: &AtomicU64, run: Run<'_>) -> Result<()> {
    let next = AtomicU64::new(0);
    let failed = Cancel::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.workers.max(1))
            .map(|_| {
                scope.spawn(|| {
                    let ended = stretches(plan, file, &next, written, &failed, run);
                    if ended.is_err() {
                        failed.cancel(2);
                    }
                    ended
                })
            })
            .collect();
        let first = first_error(Ok(()), workers);
        run.cancel.check()?;
        first
    })
}

fn stretches(
    plan: &OntoPlan,
    file: &File,
    next: &AtomicU64,
    written: &AtomicU64,
    failed: &Cancel,
    run: Run<'_>,
) -> Result<()> {
    let leaves = plan.reader.leaf_count();
    let mut over = Over {
        file,
        kind: plan.kind,
        wanted: Vec::new(),
        there: Vec::new(),
    };
    loop {
        let begin = next.fetch_add(1, Ordering::Relaxed) * STRETCH;
        if begin >= leaves {
            return Ok(());
        }
        for leaf in begin..(begin + STRETCH).min(leaves) {
            failed.check()?;
            run.cancel.check()?;
            let (mut bytes, mut looked_at) = (0, 0);
            let meta = plan.reader.meta();
            plan.reader.read_leaf(leaf, |block, content| {
                let length = meta.block_length(block) as u64;
                looked_at += length;
                bytes += over.block(block * u64::from(meta.block_size), length, content)?;
                Ok(())
            })?;
            written.fetch_add(bytes, Ordering::Relaxed);
            run.progress.advance(looked_at);
        }
        fail::fail_point!("restore::onto::stretch");
    }
}

/// What is written over.
struct Over<'a> {
    file: &'a File,
    kind: VolumeKind,
    wanted: Vec<u8>,
    there: Vec<u8>,
}

impl Over<'_> {
    /// Writes a block if what is there differs, and returns how many bytes that were.
    fn block(&mut self, offset: u64, length: u64, content: BlockContent<'_>) -> Result<u64> {
        let is_hole = matches!(content, BlockContent::Hole);
        if is_hole && self.kind == VolumeKind::File && self.is_hole_there(offset, length) {
            return Ok(0);
        }
        let bytes = match content {
            BlockContent::Data(bytes) => bytes,
            BlockContent::Hole | BlockContent::Zero => &[],
        };
        self.wanted.clear();
        self.wanted.extend_from_slice(bytes);
        self.wanted.resize(length as usize, 0);
        self.there.resize(length as usize, 0);
        self.file
            .read_exact_at(&mut self.there, offset)
            .context(|| format!("failed to read at byte {offset}"))?;
        if self.there == self.wanted {
            return Ok(0);
        }
        if !(is_hole && self.kind == VolumeKind::File && self.punch(offset, length)) {
            self.file
                .write_all_at(&self.wanted, offset)
                .context(|| format!("failed to write at byte {offset}"))?;
        }
        Ok(length)
    }

    /// Whether the target is a hole there already: not worth reading.
    fn is_hole_there(&self, offset: u64, length: u64) -> bool {
        match rustix::fs::seek(self.file, SeekFrom::Data(offset)) {
            Ok(data) => data >= offset + length,
            Err(error) => error == rustix::io::Errno::NXIO,
        }
    }

    /// Makes a hole where the filesystem can.
    fn punch(&self, offset: u64, length: u64) -> bool {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(self.file, flags, offset, length).is_ok()
    }
}
