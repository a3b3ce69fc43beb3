//! The files that come, and the directories that they come into.

use super::CloneTarget;
use super::file::{ReceivedFile, There};
use super::judge::{judge, unsound};
use super::like::Like;
use super::sweep::sweep;
use crate::clone::list::{Hash, ImageEnd, ImageList, hash_all};
use crate::facts::{DATA_ROOT, Facts};
use crate::restore::staging::{Purpose, Staging};
use crate::restore::{beside, entries, names, refuse_moved_tables, space, start_options};
use evenkeel_op::paths::absolute;
use evenkeel_op::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Such files.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) list: ImageList,
    list_hash: Hash,
    pub(super) facts: Facts,
    /// By root; that of the data directory is always there.
    pub(super) roots: BTreeMap<String, Staging>,
    pub(super) files: Vec<ReceivedFile>,
    pub(super) taken_up: bool,
    /// Blocks of stretches of which not all was said, of all files.
    underway: Arc<AtomicU64>,
    pub(super) bytes_sent: AtomicU64,
    pub(super) blocks_sent: AtomicU64,
    pub(super) blocks_reused: AtomicU64,
}

impl Listed {
    /// Judges the list, and makes the directories; takes up what an interrupted run left of them.
    pub(super) fn of(
        list: ImageList,
        list_hash: Hash,
        wanted: &CloneTarget,
        like: Option<&Like>,
    ) -> Result<Self> {
        judge(&list)?;
        if wanted.is_one_directory {
            refuse_outside(&list)?;
        }
        let facts = Facts {
            settings: list.settings.clone(),
            roots: list.roots.clone(),
            ..Facts::default()
        };
        let roots = plan(&list, wanted)?;
        refuse_moved_tables(&facts, &roots)?;
        let targets = roots.iter();
        let targets = targets.map(|(id, root)| (id.clone(), root.target().to_owned()));
        start_options(&facts.settings, &facts.roots, &targets.collect())?;
        let mut listed = Self {
            list_hash,
            facts,
            roots,
            files: Vec::new(),
            taken_up: false,
            underway: Arc::default(),
            bytes_sent: AtomicU64::new(0),
            blocks_sent: AtomicU64::new(0),
            blocks_reused: AtomicU64::new(0),
            list,
        };
        match listed.make(like, wanted) {
            Ok(()) => Ok(listed),
            Err(error) => {
                listed.abandon_if_unsound(&error);
                Err(error)
            }
        }
    }

    fn make(&mut self, like: Option<&Like>, wanted: &CloneTarget) -> Result<()> {
        for (id, root) in &self.roots {
            let top = self.list.dirs.iter().find(|meta| meta.name == *id);
            if let Some(top) = top {
                root.dress_last(top.clone(), wanted.owner);
            }
        }
        let mut fresh = true;
        for root in self.roots.values() {
            fresh &= !root.take_up()?;
        }
        self.taken_up = !fresh;
        if fresh && like.is_none() {
            // What is there already, and may be shared, counts for nothing that is known.
            let files = self.list.files.iter().map(|meta| Ok(meta.clone()));
            let room = space::check_files(&self.roots, files);
            room.inspect_err(|_| self.abandon())?;
        }
        self.sweep()?;
        for meta in &self.list.dirs {
            let (root, relative) = names::place(&self.roots, &meta.name)?;
            entries::make_dir(&root.dir().join(relative))?;
        }
        let mut paths = BTreeSet::new();
        for meta in &self.list.files {
            let (root, relative) = names::place(&self.roots, &meta.name)?;
            let path = root.path(&relative);
            if !paths.insert(path.clone()) {
                return Err(unsound("named two files that are one"));
            }
            if let Some(parent) = path.parent() {
                entries::make_dir(parent)?;
            }
            let is_data = meta.name.starts_with("data/");
            let is_like = || like.is_some_and(|like| is_data && like.has(&relative));
            let there = match path.symlink_metadata().is_ok() {
                true => There::Staged,
                false if is_like() => There::Like,
                false => There::Nothing,
            };
            self.files.push(ReceivedFile::new(
                meta.clone(),
                (path, relative),
                there,
                &self.underway,
            ));
        }
        Ok(())
    }

    /// Removes from directories that were taken up what is not listed.
    fn sweep(&self) -> Result<()> {
        if !self.taken_up {
            return Ok(());
        }
        for (id, root) in &self.roots {
            let (mut files, mut dirs) = (BTreeSet::new(), BTreeSet::new());
            for meta in &self.list.files {
                let (of, relative) = names::split(&meta.name)?;
                if of == id {
                    dirs.extend(relative.ancestors().skip(1).map(PathBuf::from));
                    let path = root.path(&relative);
                    let path = path.strip_prefix(root.dir()).unwrap_or(&path);
                    files.insert(path.to_owned());
                }
            }
            files.insert(PathBuf::from(Staging::STOPPED));
            for meta in &self.list.dirs {
                let (of, relative) = names::split(&meta.name)?;
                if of == id {
                    dirs.extend(relative.ancestors().map(PathBuf::from));
                }
            }
            sweep(root.dir(), &files, &dirs)?;
        }
        Ok(())
    }

    /// The data directory.
    pub(super) fn data(&self) -> &Staging {
        &self.roots[DATA_ROOT]
    }

    /// Refuses an end that comes before all is there.
    pub(super) fn refuse_incomplete(&self, end: &ImageEnd) -> Result<()> {
        let mut all = vec![self.list_hash];
        for file in &self.files {
            let hashes = file.hashes();
            all.extend(hashes.ok_or_else(|| unsound("ended before all was sent"))?);
        }
        match hash_all(&all) == end.hash {
            true => Ok(()),
            false => Err(unsound("sent other files than it says")),
        }
    }

    /// Removes all of it if it is of no use for another run; returns whether it was.
    pub(super) fn abandon_if_unsound(&self, error: &Error) -> bool {
        let is_unsound = error.kind() == ErrorKind::Differs;
        if is_unsound {
            self.abandon();
        }
        is_unsound
    }

    fn abandon(&self) {
        for root in self.roots.values() {
            // The next clone to this target removes what stays.
            let _ = root.abandon();
        }
    }

    pub(super) fn count_sent(&self, bytes: u64) {
        self.bytes_sent.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Refuses a server with files outside of its data directory, before any of them is sent.
fn refuse_outside(list: &ImageList) -> Result<()> {
    let outside: Vec<String> = list
        .roots
        .iter()
        .filter(|(id, _)| *id != DATA_ROOT)
        .map(|(id, place)| format!("{place} ({id})"))
        .collect();
    if outside.is_empty() {
        return Ok(());
    }
    Err(Error::refused(format!(
        "the server that is cloned has files outside of its data directory: {}",
        outside.join(", ")
    ))
    .hint("clone it with 'evenkeel clone', which says where they go"))
}

/// Says where each root goes.
fn plan(list: &ImageList, wanted: &CloneTarget) -> Result<BTreeMap<String, Staging>> {
    let known: Vec<&str> = list.roots.keys().map(String::as_str).collect();
    let mut mapped = wanted.map_roots.keys();
    if let Some(unknown) = mapped.find(|id| !list.roots.contains_key(*id)) {
        return Err(
            Error::usage(format!("the server that is cloned has no root '{unknown}'"))
                .hint(format!("its roots are: {}", known.join(", "))),
        );
    }
    let mut roots = BTreeMap::new();
    for id in list.roots.keys() {
        let place = match (id.as_str(), wanted.map_roots.get(id)) {
            (DATA_ROOT, _) => wanted.target.clone(),
            (_, Some(place)) => absolute(place),
            (id, None) => beside(&wanted.target, id),
        };
        let root = Staging::plan_for(Purpose::Clone, &place, &wanted.target)?;
        roots.insert(id.clone(), root);
    }
    Ok(roots)
}
