//! Snapshots of logical volumes: one point in time for everything on a volume, thin or thick.
//!
//! | | thin | thick |
//! |---|---|---|
//! | room | the pool's, checked before and watched | its own, checked before and watched |
//! | kept for the next run | yes | no |
//! | change list | `thin_delta`, mapped to files by their extents | none: everything is read |
//!
//! The volume is suspended for the moment of the snapshot, which freezes the filesystem on it: what
//! the snapshot holds is what a crash at that point in time would leave, with the filesystem's own log empty.
//!
//! Everything that a later run must know is in tags of the snapshots themselves (see `name`), so it is
//! true after a kill and after a restart. Mounts are seen by this process alone and go with it.

mod delta;
mod mount;
mod name;
mod origin;
mod own;
mod pool;
mod report;
mod room;
mod status;
mod tool;

use crate::extents;
use crate::failpoints::fail_point;
use crate::filesystem::stable_hash;
use crate::kept;
use crate::{Atomicity, Changed, Layout, Provider, Settings, SourceFile};
use evenkeel_op::{Context, Error, ErrorKind, Result, units};
use mount::Mounted;
use origin::Origin;
use own::Lock;
use report::Lv;
use room::{Watch, Watched};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

const NAME: &str = "lvm";

/// Makes snapshots of the logical volume that a server's directories are on, or of raw volumes.
pub(crate) struct LvmProvider {
    _lock: Lock,
    id: String,
    volumes: Vec<Volume>,
    base_token: Option<String>,
    /// The tag of bases that are kept for this run's repository.
    kept_for: String,
    taken: HashMap<String, Taken>,
    /// Which directories, or files, have which names in the generation.
    names: BTreeSet<(String, Vec<u8>)>,
    watch: Option<Watch>,
    ended: bool,
}

/// One volume, and its snapshots.
struct Volume {
    origin: Origin,
    /// The thin pool that it is in.
    pool: Option<Lv>,
    /// How large a thick snapshot is made.
    bytes: Option<u64>,
    base: Option<Lv>,
    /// Bases that are kept for other repositories.
    others: Vec<Lv>,
    snapshot: Option<Snapshot>,
    /// Where the snapshot differs from the base, once that is known.
    delta: Option<Vec<Range<u64>>>,
    base_mount: Option<Mounted>,
}

struct Snapshot {
    lv: String,
    mount: Option<Mounted>,
    facts: Option<Lv>,
}

/// A file that belongs to the snapshot.
struct Taken {
    volume: usize,
    /// Relative to its filesystem; none of a raw volume.
    inside: Option<PathBuf>,
}

impl LvmProvider {
    /// Finds the volumes of `layout`, deletes what dead runs left of them and looks for room. `changed`
    /// will compare with the base that was committed under `base_token`. `Refused` when not all of a
    /// server's directories are on one volume, or there is no room; `Busy` when another run is at it.
    pub(crate) fn open(
        layout: &Layout,
        settings: &Settings,
        base_token: Option<&str>,
    ) -> Result<Self> {
        let (origins, _) = origin::find(layout)?;
        require_tools(&origins)?;
        let id = holding_id(layout, &origins)?;
        let lock = Lock::try_take(&format!("lvm-{id}.lock"))?.ok_or_else(|| {
            Error::new(ErrorKind::Busy, "another run is making snapshots of this")
                .hint("wait until the other backup of it is done")
        })?;
        // Again: whoever had the lock until now may have kept what was of a run when it was listed.
        let all = report::volumes()?;
        let volumes: Result<Vec<Volume>> = origins
            .into_iter()
            .map(|origin| Volume::open(origin, &id, &all, settings))
            .collect();
        Ok(Self {
            _lock: lock,
            id,
            volumes: volumes?,
            base_token: base_token.map(str::to_owned),
            kept_for: name::tag_for(&settings.kept_for),
            taken: HashMap::new(),
            names: BTreeSet::new(),
            watch: None,
            ended: false,
        })
    }

    /// Returns the volume that a file is on, and where in its filesystem it is.
    fn locate(&self, file: &SourceFile, frozen: bool) -> Result<Taken> {
        let is_raw = |volume: &Volume| volume.origin.raw.as_deref() == Some(&file.path);
        if let Some(volume) = self.volumes.iter().position(is_raw) {
            return Ok(Taken {
                volume,
                inside: None,
            });
        }
        let first = self.volumes.first();
        let Some(mounts) = first.and_then(|volume| volume.origin.mounts.as_ref()) else {
            return Err(Error::failed(format!(
                "{} is not one of the volumes",
                file.path.display()
            )));
        };
        if !frozen {
            mounts.require(&file.path)?;
        }
        Ok(Taken {
            volume: 0,
            inside: Some(mounts.inside(&file.path)?),
        })
    }

    /// Which files have which names, as far as it takes to tell that a name means the same file as in
    /// a base.
    fn map(&self) -> u64 {
        let mut bytes = Vec::new();
        for (name, path) in &self.names {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(0);
            bytes.extend_from_slice(path);
            bytes.push(0);
        }
        stable_hash(&bytes)
    }

    /// Returns the base of a volume, if it is the one that was asked for.
    fn base<'a>(&self, volume: &'a Volume) -> Option<&'a Lv> {
        let base = volume.base.as_ref()?;
        let same = name::token(&base.tags) == self.base_token.as_deref()
            && self.base_token.is_some()
            && name::map(&base.tags) == Some(self.map());
        same.then_some(base)
    }

    /// Makes the snapshots of thin volumes the bases of the next run, and returns their UUIDs.
    fn keep(&mut self, token: &str) -> Result<Vec<String>> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at_unix_ms = since.map_or(0, |since| since.as_millis() as u64);
        let tags = name::kept_tags(token, self.map(), at_unix_ms)?;
        let mut tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        tags.push(&self.kept_for);
        let mut kept = Vec::new();
        for volume in &mut self.volumes {
            volume.base_mount = None;
            let snapshot = volume.snapshot.take();
            let facts = snapshot.and_then(|snapshot| snapshot.facts);
            if let Some(lv) = facts.filter(|_| volume.pool.is_some()) {
                own::retag(&lv, &tags, &[name::TAG_RUN, name::TAG_DELTA])?;
                fail_point!("snapshot::lvm::kept");
                // Out of everybody's way; active, it does no harm either.
                let _ = own::activate(&lv, false);
                kept.push(lv.uuid);
            }
        }
        Ok(kept)
    }

    /// Removes the snapshots of this run, and lets go of everything.
    fn end(&mut self) -> Result<()> {
        self.ended = true;
        let crowded = self
            .watch
            .take()
            .is_some_and(|watch| watch.check().is_err());
        for volume in &mut self.volumes {
            volume.base_mount = None;
            volume.snapshot = None;
        }
        let all = report::volumes()?;
        for volume in &self.volumes {
            let ours = own::among(&all, &self.id, &volume.origin.lv);
            let found = own::sort(ours, &self.kept_for, kept::now_unix_s());
            found.leftovers.iter().try_for_each(own::remove)?;
            // What bases hold back may be what the server's writes need.
            if crowded && volume.pool.is_some() {
                found.others.iter().try_for_each(own::remove)?;
                found.base.iter().try_for_each(own::remove)?;
            } else if let Some(base) = &volume.base {
                // Best left out of everybody's way; active, it does no harm either.
                let _ = own::activate(base, false);
            }
        }
        Ok(())
    }
}

impl Volume {
    fn open(origin: Origin, id: &str, all: &[Lv], settings: &Settings) -> Result<Self> {
        let pool = pool_of(&origin.lv, all).cloned();
        let ours = own::among(all, id, &origin.lv);
        if let Some(pool) = &pool {
            ours.iter().try_for_each(|lv| pool::heal(pool, lv))?;
        }
        let own::Found {
            base,
            others,
            leftovers,
        } = own::sort(ours, &name::tag_for(&settings.kept_for), kept::now_unix_s());
        leftovers.iter().try_for_each(own::remove)?;
        let mut volume = Self {
            origin,
            pool,
            bytes: None,
            base,
            others,
            snapshot: None,
            delta: None,
            base_mount: None,
        };
        volume.make_room(settings, !leftovers.is_empty())?;
        Ok(volume)
    }

    /// Fails when there is no room for a snapshot, not even without the kept bases. Those of other
    /// repositories go first.
    fn make_room(&mut self, settings: &Settings, outdated: bool) -> Result<()> {
        if outdated {
            self.look_again()?;
        }
        let Some(pool) = &self.pool else {
            self.bytes = Some(room::for_thick(&self.origin.lv, settings.snapshot_bytes)?);
            return Ok(());
        };
        let mut room = room::for_thin(pool);
        if room.is_err() && !self.others.is_empty() {
            std::mem::take(&mut self.others)
                .iter()
                .try_for_each(own::remove)?;
            self.look_again()?;
            room = self.pool.as_ref().map_or(Ok(()), room::for_thin);
        }
        match (room, self.base.take()) {
            (Err(_), Some(base)) => {
                own::remove(&base)?;
                self.look_again()?;
                self.pool.as_ref().map_or(Ok(()), room::for_thin)
            }
            (verdict, base) => {
                self.base = base;
                verdict
            }
        }
    }

    fn look_again(&mut self) -> Result<()> {
        let all = report::volumes()?;
        if let Some(lv) = all.iter().find(|lv| lv.uuid == self.origin.lv.uuid) {
            self.origin.lv = lv.clone();
        }
        self.pool = pool_of(&self.origin.lv, &all).cloned();
        Ok(())
    }

    /// Makes the snapshot, and mounts what is on it.
    fn snap(&mut self, id: &str) -> Result<()> {
        let made = own::make(&self.origin.lv, id, self.bytes)?;
        let device = name::device(&self.origin.lv.vg, &made);
        let kind = self.origin.mounts.as_ref().map(|mounts| &mounts.kind);
        self.snapshot = Some(Snapshot {
            lv: made,
            mount: None,
            facts: None,
        });
        if let (Some(kind), Some(snapshot)) = (kind, &mut self.snapshot) {
            snapshot.mount = Some(mount::mount(Path::new(&device), kind)?);
        }
        Ok(())
    }

    fn watched(&self) -> Option<Watched> {
        let vg = &self.origin.lv.vg;
        match (&self.pool, &self.snapshot) {
            (Some(pool), _) => Some(Watched::pool(vg, &pool.name)),
            (None, Some(snapshot)) => Some(Watched::thick(vg, &snapshot.lv)),
            (None, None) => None,
        }
    }

    /// Finds out where the snapshot differs from a base, and makes the base's files readable.
    fn compare(&mut self, base: &Lv) -> Result<()> {
        let (Some(pool), Some(snapshot)) = (&self.pool, &self.snapshot) else {
            return Ok(());
        };
        let Some(facts) = &snapshot.facts else {
            return Ok(());
        };
        let delta = pool::difference(pool, base, facts)?;
        if let Some(mounts) = &self.origin.mounts {
            own::activate(base, true)?;
            let device = name::device(&base.vg, &base.name);
            self.base_mount = Some(mount::mount(Path::new(&device), &mounts.kind)?);
        }
        self.delta = Some(delta);
        Ok(())
    }

    /// Returns where the frozen bytes of a file are.
    fn frozen(&self, inside: Option<&Path>) -> PathBuf {
        let Some(snapshot) = &self.snapshot else {
            // Before `instant` there is nothing to read anywhere.
            return PathBuf::from("/nonexistent");
        };
        match (&snapshot.mount, inside) {
            (Some(mount), Some(inside)) => mount.path().join(inside),
            _ => PathBuf::from(name::device(&self.origin.lv.vg, &snapshot.lv)),
        }
    }
}

/// Fails when a program that is needed for sure is not installed.
fn require_tools(origins: &[Origin]) -> Result<()> {
    let programs = ["lvs", "lvcreate", "lvremove", "lvchange", "dmsetup"];
    programs
        .iter()
        .filter(|_| !origins.is_empty())
        .try_for_each(|program| tool::require(program).map(|_| ()))
}

fn pool_of<'a>(lv: &Lv, all: &'a [Lv]) -> Option<&'a Lv> {
    all.iter()
        .find(|pool| lv.is_thin() && pool.uuid == lv.pool_uuid)
}

/// Names what is backed up, so that its snapshots are distinguished from those of anything else on the same
/// volumes. Must never change, and not depend on numbers that a restart changes.
fn holding_id(layout: &Layout, origins: &[Origin]) -> Result<String> {
    let mut uuids: Vec<&str> = origins
        .iter()
        .map(|origin| origin.lv.uuid.as_str())
        .collect();
    uuids.sort_unstable();
    let mut bytes = uuids.join("\0").into_bytes();
    if origins.iter().any(|origin| origin.mounts.is_some()) {
        let paths = match layout.volumes.is_empty() {
            true => std::slice::from_ref(&layout.datadir),
            false => &layout.volumes,
        };
        for path in paths {
            let path = path
                .canonicalize()
                .context(|| format!("failed to find {}", path.display()))?;
            bytes.push(0);
            bytes.extend_from_slice(path.as_os_str().as_bytes());
        }
    }
    Ok(format!("{:016x}", stable_hash(&bytes)))
}

/// Returns name and place of what a file is below: those ends of both that are equal are left out.
fn root_of(name: &str, path: &Path) -> (String, Vec<u8>) {
    let (mut name, mut path) = (Path::new(name), path);
    while let (Some(one), Some(other)) = (name.file_name(), path.file_name())
        && one == other
        && let (Some(above), Some(beside)) = (name.parent(), path.parent())
        && above.file_name().is_some()
    {
        (name, path) = (above, beside);
    }
    (
        name.to_string_lossy().into_owned(),
        path.as_os_str().as_bytes().to_vec(),
    )
}

/// Says what a snapshot would be of, and whether later runs read only what changed; `Refused` when none
/// can be made. Changes nothing.
pub(crate) fn examine(layout: &Layout, settings: &Settings) -> Result<(String, bool)> {
    let (origins, all) = origin::find(layout)?;
    require_tools(&origins)?;
    let id = holding_id(layout, &origins)?;
    let mut reported = Vec::new();
    let mut lists = true;
    for origin in &origins {
        let (lv, path) = (&origin.lv, origin.lv.path());
        // Ours, kept or left, are given up where their room is needed.
        let gives_room = |refused: Error| match own::among(&all, &id, lv).is_empty() {
            true => Err(refused),
            false => Ok(None),
        };
        let Some(pool) = pool_of(lv, &all) else {
            let bytes = room::for_thick(lv, settings.snapshot_bytes).map(Some);
            let bytes = bytes.or_else(gives_room)?.map(units::bytes);
            let bytes = bytes.map_or(String::new(), |bytes| format!(" gets {bytes}"));
            reported.push(format!("a thick snapshot of {path}{bytes}"));
            lists = false;
            continue;
        };
        room::for_thin(pool).map(|()| None).or_else(gives_room)?;
        let (pool, share) = (pool.path(), pool.data_percent.unwrap_or_default());
        reported.push(format!(
            "a thin snapshot of {path}, whose pool {pool} is {share:.0} % full"
        ));
        if let Err(missing) = tool::require("thin_delta") {
            reported.push(missing.to_string());
            lists = false;
        }
    }
    Ok((reported.join("; "), lists))
}

/// Deletes what dead runs left of a layout's volumes, and returns whether there was anything. Does
/// nothing when a run is at it, or the layout is on no such volume.
pub(crate) fn heal(layout: &Layout) -> Result<bool> {
    let Ok((origins, _)) = origin::find(layout) else {
        return Ok(false);
    };
    let id = holding_id(layout, &origins)?;
    let Some(_lock) = Lock::try_take(&format!("lvm-{id}.lock"))? else {
        return Ok(false);
    };
    let all = report::volumes()?;
    let mut any = false;
    for origin in &origins {
        let ours = own::among(&all, &id, &origin.lv);
        if let Some(pool) = pool_of(&origin.lv, &all) {
            ours.iter().try_for_each(|lv| pool::heal(pool, lv))?;
        }
        let found = own::sort(ours, &name::tag_for(""), kept::now_unix_s());
        any |= !found.leftovers.is_empty();
        found.leftovers.iter().try_for_each(own::remove)?;
    }
    Ok(any)
}

/// Deletes the kept bases of a layout's volumes. Does nothing when it is on no such volume.
pub(crate) fn drop_base(layout: &Layout) -> Result<()> {
    let Ok((origins, _)) = origin::find(layout) else {
        return Ok(());
    };
    let id = holding_id(layout, &origins)?;
    let _lock = Lock::wait_for(&format!("lvm-{id}.lock"))?;
    let all = report::volumes()?;
    for origin in &origins {
        own::among(&all, &id, &origin.lv)
            .into_iter()
            .try_for_each(own::remove)?;
    }
    Ok(())
}

impl Provider for LvmProvider {
    fn name(&self) -> &'static str {
        NAME
    }

    fn atomicity(&self) -> Atomicity {
        // Volumes that are backed up as they are have a point in time each.
        match self.volumes.len() {
            0 | 1 => Atomicity::Whole,
            _ => Atomicity::PerFile,
        }
    }

    fn take(&mut self, files: &[SourceFile]) -> Result<()> {
        let frozen = self.volumes.iter().any(|volume| volume.snapshot.is_some());
        for file in files {
            let taken = self.locate(file, frozen)?;
            self.names.insert(match &taken.inside {
                Some(inside) => root_of(&file.name, inside),
                None => {
                    let uuid = &self.volumes[taken.volume].origin.lv.uuid;
                    (file.name.clone(), uuid.clone().into_bytes())
                }
            });
            self.taken.insert(file.name.clone(), taken);
        }
        Ok(())
    }

    fn instant(&mut self) -> Result<()> {
        for volume in &mut self.volumes {
            volume.snap(&self.id)?;
        }
        fail_point!("snapshot::lvm::snapped");
        let watched = self.volumes.iter().filter_map(Volume::watched);
        self.watch = Some(Watch::begin(watched.collect()));
        Ok(())
    }

    fn seal(&mut self) -> Result<()> {
        let all = report::volumes()?;
        for volume in &mut self.volumes {
            if let Some(snapshot) = &mut volume.snapshot {
                let found = all
                    .iter()
                    .find(|lv| lv.vg == volume.origin.lv.vg && lv.name == snapshot.lv);
                snapshot.facts = found.cloned();
            }
        }
        for index in 0..self.volumes.len() {
            let Some(base) = self.base(&self.volumes[index]).cloned() else {
                continue;
            };
            // Without a change list everything is read.
            let _ = self.volumes[index].compare(&base);
        }
        Ok(())
    }

    fn frozen_dir(&self, live: &Path) -> Result<PathBuf> {
        let volume = self.volumes.first();
        let volume = volume.ok_or_else(|| Error::failed("there is no volume"))?;
        let mounts = volume.origin.mounts.as_ref();
        let mounts = mounts.ok_or_else(|| Error::failed("a raw volume has no directories"))?;
        let live = live.canonicalize().unwrap_or_else(|_| live.to_owned());
        Ok(volume.frozen(Some(&mounts.inside(&live)?)))
    }

    fn frozen_path(&self, file: &SourceFile) -> PathBuf {
        match self.taken.get(&file.name) {
            Some(taken) => self.volumes[taken.volume].frozen(taken.inside.as_deref()),
            None => PathBuf::from("/nonexistent"),
        }
    }

    fn patch(&mut self, _: &SourceFile, _: u64, _: &[u8]) -> Result<()> {
        Err(Error::failed("an LVM snapshot cannot be patched"))
    }

    fn nothing_to_compare_with(&self) -> Option<&'static str> {
        if self.volumes.iter().any(|volume| volume.pool.is_none()) {
            return Some("the volume is thick: LVM can compare only snapshots of thin volumes");
        }
        match self.volumes.iter().all(|volume| volume.delta.is_some()) {
            true => None,
            false => Some("no snapshot of the previous generation is kept"),
        }
    }

    fn changed(&self, file: &SourceFile) -> Result<Changed> {
        let Some(taken) = self.taken.get(&file.name) else {
            return Ok(Changed::Unknown);
        };
        let volume = &self.volumes[taken.volume];
        let (Some(delta), Some(base)) = (&volume.delta, self.base(volume)) else {
            return Ok(Changed::Unknown);
        };
        let Some(inside) = &taken.inside else {
            let size = volume.snapshot.as_ref().and_then(|s| s.facts.as_ref());
            let size = size.map_or(volume.origin.lv.bytes, |facts| facts.bytes);
            return Ok(Changed::Ranges(delta::of_volume(delta, base.bytes, size)));
        };
        let Some(mount) = &volume.base_mount else {
            return Ok(Changed::Unknown);
        };
        let failed = || format!("failed to find what changed in {}", file.name);
        let old = match File::open(mount.path().join(inside)) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Changed::Unknown),
            Err(error) => return Err(error).context(failed),
        };
        let now = File::open(self.frozen_path(file)).context(failed)?;
        extents::changed_on(&old, &now, delta)
            .map(Changed::Ranges)
            .context(failed)
    }

    fn holds(&self) -> Result<()> {
        self.watch.as_ref().map_or(Ok(()), Watch::check)
    }

    fn check(&self) -> Result<()> {
        self.holds()?;
        self.volumes
            .iter()
            .filter_map(Volume::watched)
            .try_for_each(|watched| watched.check())
    }

    fn commit(mut self: Box<Self>, token: &str) -> Result<()> {
        self.watch = None;
        let kept = self.keep(token)?;
        self.ended = true;
        // Not by when they were kept: clocks jump. Those of other repositories are theirs.
        let is_anothers = |lv: &Lv| {
            let whose = name::kept_for(&lv.tags);
            whose.is_some_and(|whose| whose != self.kept_for) && !lv.has_tag(name::TAG_RUN)
        };
        let all = report::volumes()?;
        for volume in &self.volumes {
            own::among(&all, &self.id, &volume.origin.lv)
                .into_iter()
                .filter(|lv| !kept.contains(&lv.uuid) && !is_anothers(lv))
                .try_for_each(own::remove)?;
        }
        Ok(())
    }

    fn abandon(mut self: Box<Self>) -> Result<()> {
        self.end()
    }
}

impl Drop for LvmProvider {
    fn drop(&mut self) {
        if !self.ended {
            // Nobody is left to tell of a failure here, and the next run deletes it anyway.
            let _ = self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_what_is_left_of_name_and_place() {
        let root = |name, path| {
            let (name, path) = root_of(name, Path::new(path));
            (name, String::from_utf8(path).unwrap())
        };
        let data = ("data".to_owned(), "lib/mysql".to_owned());
        assert_eq!(root("data/bank/a.ibd", "lib/mysql/bank/a.ibd"), data);
        assert_eq!(root("data/ibdata1", "lib/mysql/ibdata1"), data);
        // A root whose own name is in its path goes no further up than itself.
        assert_eq!(
            root("data/a", "srv/data/a"),
            ("data".into(), "srv/data".into())
        );
        // Behind a link the file is called otherwise.
        let link = ("data/a.ibd".to_owned(), "elsewhere/b.ibd".to_owned());
        assert_eq!(root("data/a.ibd", "elsewhere/b.ibd"), link);
    }
}
