//! Ranges of objects that were read or are on their way: a bounded number, the oldest go first.

use crate::retry::retried;
use crate::shared::Shared;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error as Fault, GetOptions, ObjectStore};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::OnceCell;

/// Bytes that are kept, all objects together.
const KEPT: u64 = 64 << 20;

/// An object as it was when it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) path: Path,
    pub(crate) e_tag: Option<String>,
}

impl Version {
    /// Reads a range of it; of one that was replaced since, an error.
    pub(crate) async fn read(
        &self,
        objects: &dyn ObjectStore,
        range: Range<u64>,
    ) -> Result<Bytes, Fault> {
        let read = retried!(async {
            let options = GetOptions {
                if_match: self.e_tag.clone(),
                range: Some(range.clone().into()),
                ..GetOptions::default()
            };
            objects.get_opts(&self.path, options).await?.bytes().await
        });
        let bytes = read?;
        if bytes.len() as u64 == range.end - range.start {
            return Ok(bytes);
        }
        Err(Fault::Generic {
            store: "store",
            source: format!("{} is shorter than it was", self.path).into(),
        })
    }
}

#[derive(Default)]
pub(crate) struct Windows(Mutex<VecDeque<Window>>);

#[derive(Clone)]
struct Window {
    of: Version,
    range: Range<u64>,
    /// Asked for once, whoever waits for it.
    bytes: Arc<OnceCell<Bytes>>,
}

impl Windows {
    fn all(&self) -> MutexGuard<'_, VecDeque<Window>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns the window of a range, and whether it is a new one.
    fn window(&self, of: &Version, range: Range<u64>) -> (Window, bool) {
        let mut all = self.all();
        let found = all
            .iter()
            .position(|one| one.range == range && one.of == *of);
        if let Some(found) = found.and_then(|at| all.remove(at)) {
            all.push_back(found.clone());
            return (found, false);
        }
        let new = Window {
            of: of.clone(),
            range,
            bytes: Arc::default(),
        };
        all.push_back(new.clone());
        let mut kept: u64 = all.iter().map(|one| one.range.end - one.range.start).sum();
        while kept > KEPT && all.len() > 1 {
            let oldest = all.pop_front().map_or(0..0, |one| one.range);
            kept -= oldest.end - oldest.start;
        }
        (new, true)
    }

    /// Returns the bytes of a range.
    pub(crate) fn get(
        &self,
        shared: &Shared,
        of: &Version,
        range: Range<u64>,
    ) -> Result<Bytes, Fault> {
        let (window, _) = self.window(of, range);
        let read = || window.of.read(&*shared.objects, window.range.clone());
        shared.wait(window.bytes.get_or_try_init(read)).cloned()
    }

    /// Has a range read ahead of being wanted. That it fails, whoever wants it will see.
    pub(crate) fn want(&self, shared: &Arc<Shared>, of: &Version, range: Range<u64>) {
        let (window, is_new) = self.window(of, range);
        if is_new {
            let objects = shared.objects.clone();
            shared.runtime().spawn(async move {
                let read = || window.of.read(&*objects, window.range.clone());
                let _ = window.bytes.get_or_try_init(read).await;
            });
        }
    }
}
