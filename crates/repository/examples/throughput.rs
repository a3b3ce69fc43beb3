//! Measures the writer and the reader: `throughput REPOSITORY THREADS FILE…`.
//!
//! Makes the repository if need be, adds a generation of the files (full the first time, then
//! incremental with everything given), reads it back, and prints seconds, rates and peak memory.
//! A file named `sparse:SIZE` is not read: it is SIZE bytes of holes with ten blocks of data,
//! other ones in every run. One named `many:N` is N files of one block.

use evenkeel_op::units;
use evenkeel_op::{Error, Result};
use evenkeel_repository::{Begin, BlockContent, Create, FileMeta, Repository, RunKind, Writer};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const BLOCK: u32 = 16 << 10;
const LEAF: u64 = 256;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [place, threads, files @ ..] = &arguments[..] else {
        return Err(Error::usage("usage: throughput REPOSITORY THREADS FILE..."));
    };
    let threads: u64 = threads.parse().map_err(|_| Error::usage("not a number"))?;
    let place = Path::new(place);
    let repository =
        Repository::open(place).or_else(|_| Repository::create(place, Create::default()))?;
    let started = Instant::now();
    let writer = repository.begin(Begin::new(RunKind::Incremental, "throughput"))?;
    for name in files {
        match name.split_once(':') {
            Some(("sparse", size)) => give_sparse(&writer, units::parse_bytes(size)?)?,
            Some(("many", count)) => give_many(&writer, units::parse_bytes(count)?)?,
            _ => give_file(&writer, name, threads)?,
        }
    }
    let done = writer.commit(serde_json::Value::Null, serde_json::Value::Null)?;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "write {}: {} in {seconds:.2} s = {}/s, changed {}, stored {}, peak memory {} KiB",
        done.kind.name(),
        units::bytes(done.bytes_given),
        units::bytes((done.bytes_given as f64 / seconds) as u64),
        units::bytes(done.bytes_changed),
        units::bytes(done.bytes_stored),
        peak_kib(),
    );
    if std::env::var_os("WRITE_ONLY").is_none() {
        read_back(&repository, done.generation, threads)?;
    }
    Ok(())
}

fn give_file(writer: &Writer, name: &str, threads: u64) -> Result<()> {
    let failed =
        |error: std::io::Error| Error::failed(format!("failed to read {name}")).because(error);
    let file = File::open(name).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let base = writer.base_file(name)?;
    let builder = writer.file_builder(FileMeta::file(name, size, BLOCK), base)?;
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            let mut worker = writer.worker()?;
            let mut buffer = vec![0; (LEAF * u64::from(BLOCK)) as usize];
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= builder.leaf_count() {
                    return worker.finish();
                }
                let mut leaf = builder.leaf(index)?;
                let blocks = leaf.blocks();
                let start = leaf.byte_range(blocks.start).start;
                let length = (leaf.byte_range(blocks.end - 1).end - start) as usize;
                file.read_exact_at(&mut buffer[..length], start)
                    .map_err(failed)?;
                for (block, bytes) in blocks.zip(buffer[..length].chunks(BLOCK as usize)) {
                    leaf.put(&mut worker, block, bytes)?;
                }
                builder.set_leaf(leaf)?;
            }
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .try_for_each(|one| one.join().map_err(|_| Error::failed("a thread died"))?)
    })?;
    builder.finish().map(|_| ())
}

fn give_sparse(writer: &Writer, size: u64) -> Result<()> {
    let base = writer.base_file("sparse")?;
    let is_first = base.is_none();
    let builder = writer.file_builder(FileMeta::file("sparse", size, BLOCK), base)?;
    let mut worker = writer.worker()?;
    let leaves = builder.leaf_count();
    let seed = u64::from(writer.generation());
    let chosen: Vec<u64> = (0..10)
        .map(|i| (i * 7_919 + seed * 104_729) % leaves)
        .collect();
    let all: Box<dyn Iterator<Item = u64>> = if is_first {
        Box::new(0..leaves)
    } else {
        Box::new(chosen.clone().into_iter())
    };
    for index in all {
        let mut leaf = builder.leaf(index)?;
        if is_first {
            for block in leaf.blocks() {
                leaf.hole(&mut worker, block)?;
            }
        }
        if chosen.contains(&index) {
            let block = leaf.blocks().start + 3;
            leaf.put(&mut worker, block, &[seed as u8; BLOCK as usize])?;
        }
        builder.set_leaf(leaf)?;
    }
    worker.finish()?;
    builder.finish().map(|_| ())
}

fn give_many(writer: &Writer, count: u64) -> Result<()> {
    let mut worker = writer.worker()?;
    for i in 0..count {
        // In full runs not in the order of names: sorting is part of what is measured. Lookups in
        // the base are meant to be nearly in order.
        let number = if writer.base().is_some() {
            i
        } else {
            i * 7_919 % count
        };
        let name = format!("data/schema-{}/table_{number:08}.ibd", number / 1000);
        let base = writer.base_file(&name)?;
        let builder = writer.file_builder(FileMeta::file(name, 4096, BLOCK), base)?;
        let mut leaf = builder.leaf(0)?;
        leaf.put(&mut worker, 0, &[number as u8 | 1; 4096])?;
        builder.set_leaf(leaf)?;
        builder.finish()?;
    }
    worker.finish()
}

fn read_back(repository: &Repository, generation: u32, threads: u64) -> Result<()> {
    let started = Instant::now();
    let reader = repository.reader(generation)?;
    let bytes = AtomicU64::new(0);
    for record in reader.files() {
        let file = reader.open_file(&record?)?;
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let work = || -> Result<()> {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= file.leaf_count() {
                        return Ok(());
                    }
                    let mut sum = 0;
                    file.read_leaf(index, |_, content| {
                        if let BlockContent::Data(data) = content {
                            sum += data.len() as u64;
                        }
                        Ok(())
                    })?;
                    bytes.fetch_add(sum, Ordering::Relaxed);
                }
            };
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            running
                .into_iter()
                .try_for_each(|one| one.join().map_err(|_| Error::failed("a thread died"))?)
        })?;
    }
    let seconds = started.elapsed().as_secs_f64();
    let bytes = bytes.into_inner();
    println!(
        "read: {} in {seconds:.2} s = {}/s, peak memory {} KiB",
        units::bytes(bytes),
        units::bytes((bytes as f64 / seconds) as u64),
        peak_kib(),
    );
    Ok(())
}

fn peak_kib() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("?")
        .trim()
        .trim_end_matches(" kB")
        .to_owned()
}
