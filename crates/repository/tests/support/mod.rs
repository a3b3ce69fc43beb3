//! A model of a server's files, and how to back it up and compare it.
#![allow(dead_code, unreachable_pub)] // Each test file uses its part of this.

pub mod bears;
pub mod crash;
pub mod forge;
pub mod hostile;
pub mod logs;
pub mod memory;
pub mod way;

use evenkeel_op::{Cancel, Result, Silent};
use evenkeel_repository::{
    Begin, BlockContent, CommitInfo, FileKind, FileMeta, Forget, Leaf, Prune, Reader, Repository,
    RunKind, Verify, VerifyReport, Worker, Writer,
};
use std::collections::{BTreeMap, BTreeSet};

/// What a block of a modelled file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    Hole,
    /// Bytes drawn from a seed; 0 is all zeros.
    Bytes(u64),
    /// Only the first so many bytes are allocated.
    Front(u64, usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFile {
    pub block_size: u32,
    pub size: u64,
    pub blocks: Vec<Block>,
}

impl ModelFile {
    pub fn new(block_size: u32, size: u64, seed: u64) -> Self {
        let mut file = Self {
            block_size,
            size: 0,
            blocks: Vec::new(),
        };
        file.resize(size, seed);
        file
    }

    /// Changes the length; new blocks, and a last block of another length, get new content.
    pub fn resize(&mut self, size: u64, seed: u64) {
        let old = self.size;
        self.size = size;
        let count = size.div_ceil(u64::from(self.block_size)) as usize;
        self.blocks.truncate(count);
        while self.blocks.len() < count {
            let block = Block::Bytes(seed.wrapping_add(self.blocks.len() as u64) | 1);
            self.blocks.push(block);
        }
        if old != size {
            let edge = (old.min(size) / u64::from(self.block_size)) as usize;
            if let Some(block) = self.blocks.get_mut(edge) {
                *block = Block::Bytes(seed | 1);
            }
        }
    }

    pub fn length(&self, block: usize) -> usize {
        let start = block as u64 * u64::from(self.block_size);
        (self.size - start).min(u64::from(self.block_size)) as usize
    }

    /// The allocated bytes of a block, or `None` for a hole.
    pub fn bytes(&self, block: usize) -> Option<Vec<u8>> {
        let length = self.length(block);
        match self.blocks[block] {
            Block::Hole => None,
            Block::Bytes(seed) => Some(content(seed, length)),
            Block::Front(seed, front) if front < length => Some(content(seed, front)),
            Block::Front(seed, _) => Some(content(seed, length)),
        }
    }
}

/// Bytes that compress about as rows do; seed 0 is zeros.
pub fn content(seed: u64, length: usize) -> Vec<u8> {
    if seed == 0 {
        return vec![0; length];
    }
    let mut state = seed;
    let mut bytes = Vec::with_capacity(length + 16);
    while bytes.len() < length {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        bytes.extend_from_slice(&state.to_le_bytes());
        bytes.extend_from_slice(b"row body");
    }
    bytes.truncate(length);
    bytes
}

pub type Model = BTreeMap<String, ModelFile>;

/// Backs the model up. With `before`, only blocks that differ from it are given.
pub fn back_up(
    repo: &Repository,
    kind: RunKind,
    model: &Model,
    before: Option<&Model>,
) -> Result<CommitInfo> {
    let mut begin = Begin::new(kind, "model");
    // Small packs, so that there are several.
    begin.pack_bytes_max = 20_000;
    run(repo.begin(begin)?, model, before)
}

pub fn run(writer: Writer, model: &Model, before: Option<&Model>) -> Result<CommitInfo> {
    give(&writer, model, before)?;
    writer.commit(
        serde_json::json!({"fact": 1}),
        serde_json::json!({"binlog": "b.1"}),
    )
}

pub fn give(writer: &Writer, model: &Model, before: Option<&Model>) -> Result<()> {
    let mut dir = FileMeta::file("data", 0, 0);
    dir.kind = FileKind::Dir;
    writer.add(dir)?;
    let mut worker = writer.worker()?;
    // Backwards: the order of names must not matter.
    for (name, file) in model.iter().rev() {
        let base = writer.base_file(name)?;
        let meta = FileMeta::file(name, file.size, file.block_size);
        let builder = writer.file_builder(meta, base)?;
        let old = before.and_then(|before| before.get(name));
        let old = old.filter(|_| builder.has_base());
        let mut wanted: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (i, block) in file.blocks.iter().enumerate() {
            let i = i as u64;
            let same = old.is_some_and(|old| old.blocks.get(i as usize) == Some(block));
            if !same || builder.required_blocks().contains(&i) {
                wanted.entry(i / 256).or_default().insert(i);
            }
        }
        for (index, blocks) in wanted.iter().rev() {
            let mut leaf = builder.leaf(*index)?;
            for &i in blocks {
                give_block(&mut leaf, &mut worker, file, i)?;
            }
            builder.set_leaf(leaf)?;
        }
        builder.finish()?;
    }
    worker.finish()
}

/// Backs the model up as a stream would: all of it, lengths told at the end.
pub fn back_up_streamed(repo: &Repository, kind: RunKind, model: &Model) -> Result<CommitInfo> {
    let mut begin = Begin::new(kind, "model");
    begin.pack_bytes_max = 20_000;
    let writer = repo.begin(begin)?;
    let mut worker = writer.worker()?;
    for (name, file) in model {
        let meta = FileMeta::file(name, 0, file.block_size);
        let builder = writer.growing_builder(meta, writer.base_file(name)?)?;
        let full = builder.leaf_bytes();
        let leaves = file.size.div_ceil(full);
        // Workers are done in any order.
        for index in (0..leaves).map(|at| (at + 2) % leaves) {
            let bytes = full.min(file.size - index * full);
            let mut leaf = builder.leaf(index, bytes)?;
            for i in leaf.blocks() {
                give_block(&mut leaf, &mut worker, file, i)?;
            }
            builder.set_leaf(leaf)?;
        }
        builder.finish(file.size)?;
    }
    worker.finish()?;
    writer.commit(serde_json::json!(1), serde_json::json!(1))
}

fn give_block(leaf: &mut Leaf, worker: &mut Worker, file: &ModelFile, i: u64) -> Result<()> {
    match file.bytes(i as usize) {
        None => leaf.hole(worker, i)?,
        Some(bytes) if bytes.len() == file.length(i as usize) => leaf.put(worker, i, &bytes)?,
        Some(front) => leaf.put_with_tail_hole(worker, i, &front)?,
    };
    Ok(())
}

/// What a generation gives back: the model, or the first difference or error.
pub fn compare(reader: &Reader, model: &Model) -> std::result::Result<(), String> {
    let mut seen = BTreeSet::new();
    for record in reader.files() {
        let record = record.map_err(|error| error.chain())?;
        if record.meta.kind != FileKind::File {
            continue;
        }
        let name = record.meta.name.clone();
        let file = model
            .get(&name)
            .ok_or(format!("{name} should not be there"))?;
        if (record.meta.size, record.meta.block_size) != (file.size, file.block_size) {
            return Err(format!("{name} has size {}", record.meta.size));
        }
        let open = reader.open_file(&record).map_err(|error| error.chain())?;
        let mut count = 0;
        for index in 0..open.leaf_count() {
            let mut wrong = None;
            let read = open.read_leaf(index, |i, content| {
                if i != count {
                    wrong = Some(format!("{name}: block {i} in place of {count}"));
                }
                count += 1;
                let expected = file.bytes(i as usize);
                let same = match content {
                    BlockContent::Hole => expected.is_none(),
                    BlockContent::Zero => {
                        expected.is_some_and(|bytes| bytes == vec![0; file.length(i as usize)])
                    }
                    BlockContent::Data(found) => expected.as_deref() == Some(found),
                };
                if !same {
                    wrong = Some(format!(
                        "{name}: block {i} is not {:?}",
                        file.blocks[i as usize]
                    ));
                }
                Ok(())
            });
            read.map_err(|error| error.chain())?;
            if let Some(wrong) = wrong {
                return Err(format!("WRONG BYTES: {wrong}"));
            }
        }
        if count != file.blocks.len() as u64 {
            return Err(format!("WRONG BYTES: {name} has {count} blocks"));
        }
        seen.insert(name);
    }
    if seen.len() != model.len() {
        return Err(format!("WRONG BYTES: only {seen:?} are there"));
    }
    Ok(())
}

/// Reads one generation back and compares it.
pub fn check(repo: &Repository, generation: u32, model: &Model) -> std::result::Result<(), String> {
    let reader = repo.reader(generation).map_err(|error| error.chain())?;
    compare(&reader, model)
}

pub fn verify(repo: &Repository) -> Result<VerifyReport> {
    let how = Verify {
        workers: 1,
        ..Verify::default()
    };
    repo.verify(&how, &Silent, &Cancel::new())
}

/// Fails unless verify finds nothing at all.
pub fn assert_sound(repo: &Repository) {
    let report = verify(repo).unwrap();
    assert!(report.is_sound(), "{:#?}", report.findings);
}

pub fn forget(repo: &Repository, generations: &[u32]) -> Result<()> {
    let plan = repo.plan_forget(&Forget::These(generations.to_vec()), true)?;
    repo.perform_forget(&plan, std::time::Duration::ZERO)
}

pub fn prune(repo: &Repository, live_share_min: f64) -> Result<u64> {
    let how = Prune {
        live_share_min,
        ..Prune::default()
    };
    let plan = repo.plan_prune(&how, &Cancel::new())?;
    repo.perform_prune(&plan, std::time::Duration::ZERO, &Cancel::new())
}

/// A small repository of four generations, two of them forgotten, with a compacted pack and one
/// that waits to be pruned; the models of those that are left.
pub fn small(repo: &Repository) -> BTreeMap<u32, Model> {
    let mut models = BTreeMap::new();
    let mut model = Model::new();
    model.insert("data/a.ibd".into(), ModelFile::new(512, 1300, 11));
    model.insert("data/b.ibd".into(), ModelFile::new(512, 512 * 2, 12));
    back_up(repo, RunKind::Full, &model, None).unwrap();
    model.get_mut("data/a.ibd").unwrap().blocks[1] = Block::Bytes(99);
    back_up(repo, RunKind::Incremental, &model, None).unwrap();
    models.insert(2, model.clone());
    model.get_mut("data/b.ibd").unwrap().blocks[0] = Block::Hole;
    model.insert("data/c".into(), ModelFile::new(1024, 100, 5));
    back_up(repo, RunKind::Incremental, &model, None).unwrap();
    models.insert(3, model);
    forget(repo, &[1]).unwrap();
    prune(repo, 1.0).unwrap();
    // One that nobody needs, not pruned yet.
    back_up(repo, RunKind::Full, &models[&2], None).unwrap();
    forget(repo, &[4]).unwrap();
    models
}
