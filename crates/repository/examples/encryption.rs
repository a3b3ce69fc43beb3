//! Measures what encryption costs: `encryption DIRECTORY MIB ROUNDS`.
//!
//! Writes the same pages into a repository in clear and into an encrypted one, reads both back, by
//! turns, and prints the medians of both and their ratio. The bar is 0.85.

use evenkeel_op::{Error, Result, units};
use evenkeel_repository::{
    Begin, BlockContent, Create, Credentials, Encrypt, FileMeta, NewIdentity, Repository, RunKind,
};
use std::path::Path;
use std::time::Instant;

const BLOCK: u32 = 16 << 10;
const THREADS: u64 = 2;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [place, mib, rounds] = &arguments[..] else {
        return Err(Error::usage("usage: encryption DIRECTORY MIB ROUNDS"));
    };
    let number = |text: &str| text.parse().map_err(|_| Error::usage("not a number"));
    let (mib, rounds): (u64, u64) = (number(mib)?, number(rounds)?);
    let identity = NewIdentity::generate(jiff::Timestamp::now());
    let mut credentials = Credentials::default();
    credentials.add_identities("the identity", &identity.file)?;
    let sealed = Create {
        encrypt: Some(Encrypt {
            readers: vec![identity.recipient],
            ..Encrypt::default()
        }),
        ..Create::default()
    };
    let pages = pages();
    let place = Path::new(place).join("encryption-bench");
    let mut seconds = [const { [const { Vec::new() }; 2] }; 2];
    for _ in 0..rounds {
        for (way, how) in [Create::default(), sealed.clone()].into_iter().enumerate() {
            let repository = Repository::create(place.as_path(), how)?.unlock(&credentials)?;
            seconds[0][way].push(write(&repository, &pages, mib)?);
            seconds[1][way].push(read(&repository)?);
            std::fs::remove_dir_all(&place)
                .map_err(|error| Error::failed("failed to clean up").because(error))?;
        }
    }
    for (what, ways) in ["write", "read"].iter().zip(&mut seconds) {
        let [plain, sealed] = ways.each_mut().map(|all| {
            all.sort_by(f64::total_cmp);
            (mib << 20) as f64 / all[all.len() / 2]
        });
        println!(
            "{what}: in clear {}/s, encrypted {}/s, ratio {:.3}",
            units::bytes(plain as u64),
            units::bytes(sealed as u64),
            sealed / plain
        );
    }
    Ok(())
}

/// Pages that pack about as rows do: half of them noise.
fn pages() -> Vec<Vec<u8>> {
    let mut state = 1u64;
    let page = |_| {
        let mut bytes = Vec::with_capacity(BLOCK as usize);
        while bytes.len() < BLOCK as usize {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            bytes.extend_from_slice(&state.to_le_bytes());
            bytes.extend_from_slice(b"row body");
        }
        bytes
    };
    (0..1024).map(page).collect()
}

fn write(repository: &Repository, pages: &[Vec<u8>], mib: u64) -> Result<f64> {
    let started = Instant::now();
    let writer = repository.begin(Begin::new(RunKind::Full, "bench"))?;
    let meta = FileMeta::file("data", mib << 20, BLOCK);
    let builder = writer.file_builder(meta, None)?;
    let (builder_ref, writer_ref) = (&builder, &writer);
    in_threads(|thread| {
        let mut worker = writer_ref.worker()?;
        for index in (thread..builder_ref.leaf_count()).step_by(THREADS as usize) {
            let mut leaf = builder_ref.leaf(index)?;
            for block in leaf.blocks() {
                let page = &pages[block as usize % pages.len()];
                leaf.put(&mut worker, block, page)?;
            }
            builder_ref.set_leaf(leaf)?;
        }
        worker.finish()
    })?;
    builder.finish()?;
    writer.commit(serde_json::Value::Null, serde_json::Value::Null)?;
    Ok(started.elapsed().as_secs_f64())
}

fn read(repository: &Repository) -> Result<f64> {
    let started = Instant::now();
    let reader = repository.reader(1)?;
    let record = reader.find("data")?;
    let record = record.ok_or_else(|| Error::failed("the file is gone"))?;
    let file = reader.open_file(&record)?;
    in_threads(|thread| {
        for index in (thread..file.leaf_count()).step_by(THREADS as usize) {
            file.read_leaf(index, |_, content| match content {
                BlockContent::Data(_) => Ok(()),
                _ => Err(Error::failed("a page is gone")),
            })?;
        }
        Ok(())
    })?;
    Ok(started.elapsed().as_secs_f64())
}

fn in_threads(work: impl Fn(u64) -> Result<()> + Sync) -> Result<()> {
    let work = &work;
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        running
            .into_iter()
            .try_for_each(|one| one.join().map_err(|_| Error::failed("a thread died"))?)
    })
}
