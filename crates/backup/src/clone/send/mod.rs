//! The sender: freezes the files as a backup does, and sends what the other side lacks.

mod files;
mod work;

use super::list::{END, HERE, ImageEnd, LIST, hash, hash_all};
use crate::backup::settle::sentence;
use crate::backup::{self, BackupRequest, HeldImage, Source};
use evenkeel_op::{Context, Error, ErrorKind, Result, Run, paths, units};
use evenkeel_repository::store::{Existing, Store};
use evenkeel_server::files::ServerFiles;
use files::SentFiles;
use std::path::Path;

/// Clones a running server into the request's repository, which is a [`Receiver`](super::Receiver), here or at
/// the other end of a link. `compresses` says whether what is sent is worth that: it crosses a network.
///
/// On an error the server has no lock, snapshot or stopped thread of ours, and the receiver no directory that a
/// server would accept.
pub fn send(request: &BackupRequest, compresses: bool, run: Run<'_>) -> Result<()> {
    if !matches!(request.source, Source::Live(_)) {
        return Err(Error::usage("only a running server is cloned")
            .hint("copy the data directory of one that is stopped"));
    }
    let store = request.repository.store();
    let image = backup::hold(request, run)?;
    let sent = refuse_within(image.found(), store.directory())
        .and_then(|()| send_image(&image, &*store, request, compresses, run))
        .map_err(|error| image.lost(error));
    // Whatever comes of it, nobody needs the image any more.
    let released = image.release();
    let end = sent?;
    released?;
    fail::fail_point!("clone::released");
    let end = serde_json::to_vec(&end).context(|| "failed to write how it ended")?;
    put(&*store, END, &end)
}

/// Refuses a target within what is cloned: the server takes it for a schema.
fn refuse_within(files: &ServerFiles, target: Option<&Path>) -> Result<()> {
    let Some(target) = target.map(paths::resolved) else {
        return Ok(());
    };
    let mut roots = files.roots.iter();
    match roots.find(|root| target.starts_with(&root.path)) {
        None => Ok(()),
        Some(root) => Err(Error::usage(format!(
            "{} is within {}, which is cloned",
            target.display(),
            root.path.display()
        ))
        .hint("name a directory elsewhere")),
    }
}

fn send_image(
    image: &HeldImage,
    store: &dyn Store,
    request: &BackupRequest,
    compresses: bool,
    run: Run<'_>,
) -> Result<ImageEnd> {
    fail::fail_point!("clone::frozen");
    let (list, files) = SentFiles::of(image)?;
    let list = serde_json::to_vec(&list).context(|| "failed to list the files")?;
    put(store, LIST, &list)?;
    fail::fail_point!("clone::listed");
    let here = get(store, HERE, files.count())?;
    let level = compresses.then_some(request.compression.usual_level());
    let done = work::work(image, &files, &here, store, (request, level), run)?;
    run.progress.end();
    let asked = BackupRequest {
        // Whether that ends it is said below.
        keep_corrupt: true,
        ..request.clone()
    };
    let settled = image.settle(&done.findings, &asked, run)?;
    if let Some(first) = settled.corrupt.first() {
        let count = units::count(settled.corrupt.len() as u64, "corrupt page");
        return Err(Error::new(
            ErrorKind::Differs,
            format!(
                "{count} found; the clone is not kept. First: {}",
                sentence(first)
            ),
        )
        .hint("repair the server that is cloned, or clone another one"));
    }
    let list = hash(&list);
    Ok(ImageEnd {
        hash: hash_all([&list].into_iter().chain(done.hashes.values())),
        coordinates: image.coordinates().clone(),
        source_coordinates: image.source_coordinates().to_vec(),
        applier_ms: image.applier_stood().as_secs_f64() * 1000.0,
        pages_checked: done.findings.checked(),
        pages_torn: settled.torn,
    })
}

/// Sends an object.
fn put(store: &dyn Store, name: &str, bytes: &[u8]) -> Result<()> {
    let put = || -> std::io::Result<()> {
        let mut object = store.create(name, Existing::Refuse)?;
        object.write(bytes)?;
        object.finish()
    };
    put().context(|| format!("failed to send the object '{name}'"))
}

/// Asks for an object of `length` bytes.
fn get(store: &dyn Store, name: &str, length: usize) -> Result<Vec<u8>> {
    let get = || -> std::io::Result<Vec<u8>> {
        let object = store.open(name)?;
        if object.size() != length as u64 {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length];
        object.read_exact_at(0, &mut bytes)?;
        Ok(bytes)
    };
    get().context(|| format!("failed to ask for the object '{name}'"))
}
