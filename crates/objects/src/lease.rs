//! Locks where there are none: leases.
//!
//! ```text
//! writer.lock/exclusive        {"holder": "…", "host": …, "process": …, "released": false}
//! reader.lock/shared-4f1d…     one for each holder
//! reader.lock/exclusive
//! ```
//! A holder renews its lease every quarter of its term. Whoever finds one that is older than
//! the term takes it over, on the condition that it is still the one that was found. Ages are
//! differences of two times that the store itself wrote: no clock but the store's is asked. Alone
//! comes after together in this way: who wants to be alone writes its own lease first, then looks
//! for the others; they do it the other way about; so of two at the same time at least one sees the
//! other, and stands back.
//!
//! A holder whose lease was not renewed for three quarters of the term takes it for lost, and its
//! store refuses to change anything from then on.

use crate::retry::retried;
use crate::shared::{Shared, put_surely, version_of};
use evenkeel_op::boot::boot_id;
use evenkeel_repository::store::{Lock, LockMode};
use object_store::path::Path;
use object_store::{
    Attributes, Error as Fault, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    UpdateVersion,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use tokio::task::AbortHandle;

/// What a lease says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Body {
    holder: String,
    host: String,
    /// Of the host's present run: with another one, its processes are gone.
    boot: String,
    process: u32,
    /// Counts the renewals, so that no two versions are equal.
    renewed: u64,
    released: bool,
}

/// A lease that is held.
pub(crate) struct Lease {
    state: Arc<LeaseState>,
    renewing: AbortHandle,
}

struct LeaseState {
    shared: Weak<Shared>,
    objects: Arc<dyn ObjectStore>,
    path: Path,
    mode: LockMode,
    term: Duration,
    now: Mutex<Now>,
}

struct Now {
    body: Body,
    version: UpdateVersion,
    /// By a clock that continues while the machine sleeps.
    renewed_at: Duration,
    lost: bool,
}

/// The leases of a store.
#[derive(Default)]
pub(crate) struct Held(Mutex<Vec<Weak<LeaseState>>>);

impl Held {
    pub(crate) fn add(&self, lease: &Lease) {
        let mut all = self.0.lock().unwrap_or_else(|e| e.into_inner());
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&lease.state));
    }

    /// Fails when one may be someone else's by now.
    pub(crate) fn check(&self) -> io::Result<()> {
        let all = self.0.lock().unwrap_or_else(|e| e.into_inner());
        for state in all.iter().filter_map(Weak::upgrade) {
            state.check()?;
        }
        Ok(())
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({})", self.state.path)
    }
}

impl Lock for Lease {}

impl Lease {
    /// Takes a lock, or nothing if someone holds it.
    pub(crate) fn take(
        shared: &Arc<Shared>,
        name: &str,
        mode: LockMode,
    ) -> Result<Option<Self>, Fault> {
        let taken = match mode {
            LockMode::Exclusive => shared.wait(alone(shared, name))?,
            LockMode::Shared => shared.wait(together(shared, name))?,
        };
        let Some((path, body, version)) = taken else {
            return Ok(None);
        };
        let state = Arc::new(LeaseState {
            shared: Arc::downgrade(shared),
            objects: shared.objects.clone(),
            path,
            mode,
            term: shared.options.lease,
            now: Mutex::new(Now {
                body,
                version,
                renewed_at: awake(),
                lost: false,
            }),
        });
        let renewing = shared.runtime().spawn(renew(state.clone())).abort_handle();
        Ok(Some(Self { state, renewing }))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.renewing.abort();
        let Some(shared) = self.state.shared.upgrade() else {
            return;
        };
        // One that was lost is someone else's; one that cannot be given back ends by itself.
        if self.state.check().is_ok() {
            let _ = shared.wait(self.state.give_back());
        }
    }
}

type Taken = Option<(Path, Body, UpdateVersion)>;

async fn alone(shared: &Shared, name: &str) -> Result<Taken, Fault> {
    let path = shared.path(&format!("{name}/exclusive"));
    let objects = &*shared.objects;
    let body = Body::new();
    let mode = match retried!(objects.head(&path)) {
        Err(Fault::NotFound { .. }) => PutMode::Create,
        Err(error) => return Err(error),
        Ok(there) if is_over(shared, &there).await? => PutMode::Update(version_of(&there)),
        Ok(_) => return Ok(None),
    };
    let is_first = mode == PutMode::Create;
    let Some(version) = write(objects, &path, &body, mode).await? else {
        return Ok(None);
    };
    if is_first {
        insist(objects, &path).await?;
    }
    let folder = shared.path(name);
    let found = retried!(objects.list_with_delimiter(Some(&folder)))?;
    for there in found.objects.iter().filter(|one| one.location != path) {
        if is_over(shared, there).await? {
            // Who may not delete finds it here again, and over.
            match gone(retried!(objects.delete(&there.location))) {
                Err(Fault::PermissionDenied { .. }) => {}
                other => other?,
            }
        } else {
            release(objects, &path, &body, version).await?;
            return Ok(None);
        }
    }
    Ok(Some((path, body, version)))
}

/// Fails on a store that makes the same object twice: two runs could each hold a lock there, and a
/// generation could be replaced. Asked once, when a repository is made.
async fn insist(objects: &dyn ObjectStore, path: &Path) -> Result<(), Fault> {
    let create = || PutOptions::from(PutMode::Create);
    // Where the answer breaks off: whatever the store did, it does, and says, the same again.
    match retried!(objects.put_opts(path, "{}".into(), create())) {
        Err(Fault::AlreadyExists { .. }) => Ok(()),
        Ok(_) => {
            gone(retried!(objects.delete(path)))?;
            Err(Fault::NotSupported {
                source: "the store does not honor conditional writes: it created the same object \
                     twice. Current versions of S3, Google, Azure, MinIO, SeaweedFS, Ceph and R2 \
                     do"
                .into(),
            })
        }
        Err(error) => Err(error),
    }
}

async fn together(shared: &Shared, name: &str) -> Result<Taken, Fault> {
    let body = Body::new();
    let path = shared.path(&format!("{name}/shared-{}", body.holder));
    let objects = &*shared.objects;
    let version = match write(objects, &path, &body, PutMode::Create).await {
        Ok(Some(version)) => version,
        Ok(None) => return Ok(None),
        Err(error) => return Err(error),
    };
    let exclusive = shared.path(&format!("{name}/exclusive"));
    let free = match retried!(objects.head(&exclusive)) {
        Err(Fault::NotFound { .. }) => true,
        Err(error) => return Err(error),
        Ok(there) => is_over(shared, &there).await?,
    };
    if free {
        return Ok(Some((path, body, version)));
    }
    gone(retried!(objects.delete(&path)))?;
    Ok(None)
}

/// Returns in words who holds a lease alone; nothing where nobody does or nobody can tell.
pub(crate) fn holder(shared: &Shared, name: &str) -> Option<String> {
    let (objects, path) = (&*shared.objects, shared.path(&format!("{name}/exclusive")));
    let read = shared.wait(async { retried!(async { objects.get(&path).await?.bytes().await }) });
    let body: Body = serde_json::from_slice(&read.ok()?).ok()?;
    (!body.released).then(|| format!("process {} on {}", body.process, body.host))
}

/// Whether a lease was given back, or its holder is gone.
async fn is_over(shared: &Shared, there: &ObjectMeta) -> Result<bool, Fault> {
    let objects = &*shared.objects;
    let read = retried!(async { objects.get(&there.location).await?.bytes().await });
    let read = match read {
        Ok(read) => read,
        Err(Fault::NotFound { .. }) => return Ok(true),
        Err(error) => return Err(error),
    };
    // One that nobody can read says at least when it was written.
    let body: Option<Body> = serde_json::from_slice(&read).ok();
    if body
        .as_ref()
        .is_some_and(|body| body.released || body.is_dead())
    {
        return Ok(true);
    }
    let clock = shared.path(&format!("clock-{:016x}", random()));
    retried!(objects.put(&clock, "now".into()))?;
    let now = retried!(objects.head(&clock))?.last_modified;
    gone(retried!(objects.delete(&clock)))?;
    let age = now
        .signed_duration_since(there.last_modified)
        .num_milliseconds();
    Ok(age > shared.options.lease.as_millis() as i64)
}

/// Writes a lease; nothing when someone else was first.
async fn write(
    objects: &dyn ObjectStore,
    path: &Path,
    body: &Body,
    mode: PutMode,
) -> Result<Option<UpdateVersion>, Fault> {
    let bytes = serde_json::to_vec(body).unwrap_or_default();
    match put_surely(objects, path, bytes.into(), mode, Attributes::new()).await {
        Ok(version) => Ok(Some(version)),
        Err(Fault::AlreadyExists { .. } | Fault::Precondition { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Gives a lease back by saying so: removing it could remove the next holder's.
async fn release(
    objects: &dyn ObjectStore,
    path: &Path,
    body: &Body,
    version: UpdateVersion,
) -> Result<(), Fault> {
    let mut body = body.clone();
    body.released = true;
    let given = write(objects, path, &body, PutMode::Update(version)).await?;
    if given.is_some() {
        return Ok(());
    }
    // A renewal was on its way, and came through.
    let read = retried!(async {
        let there = objects.get(path).await?;
        Ok((version_of(&there.meta), there.bytes().await?))
    });
    let (version, bytes) = read?;
    let there: Option<Body> = serde_json::from_slice(&bytes).ok();
    if there.is_some_and(|there| there.holder == body.holder) {
        write(objects, path, &body, PutMode::Update(version)).await?;
    }
    Ok(())
}

async fn renew(state: Arc<LeaseState>) {
    let mut pause = state.term / 4;
    loop {
        tokio::time::sleep(pause).await;
        let (mut body, version) = {
            let now = state.now();
            (now.body.clone(), now.version.clone())
        };
        let asked_at = awake();
        body.renewed += 1;
        let written = write(
            &*state.objects,
            &state.path,
            &body,
            PutMode::Update(version),
        )
        .await;
        let mut now = state.now();
        pause = state.term / 4;
        match written {
            Ok(Some(version)) => {
                now.body = body;
                now.version = version;
                now.renewed_at = asked_at;
            }
            Ok(None) => {
                now.lost = true;
                return;
            }
            // The store has trouble: until three quarters of the term are over.
            Err(_) => pause = state.term / 16,
        }
    }
}

impl LeaseState {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn check(&self) -> io::Result<()> {
        let now = self.now();
        let age = awake().saturating_sub(now.renewed_at);
        if !now.lost && age < self.term * 3 / 4 {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "the lease on {} was lost: it could not be renewed for {} s, and another run may hold it",
            self.path,
            age.as_secs()
        )))
    }

    async fn give_back(&self) -> Result<(), Fault> {
        let (body, version) = {
            let now = self.now();
            (now.body.clone(), now.version.clone())
        };
        match self.mode {
            LockMode::Shared => match gone(self.objects.delete(&self.path).await) {
                // Who may not delete says so.
                Err(Fault::PermissionDenied { .. }) => {
                    release(&*self.objects, &self.path, &body, version).await
                }
                other => other,
            },
            LockMode::Exclusive => release(&*self.objects, &self.path, &body, version).await,
        }
    }
}

impl Body {
    fn new() -> Self {
        let uname = rustix::system::uname();
        Self {
            holder: format!("{:016x}{:016x}", random(), random()),
            host: uname.nodename().to_string_lossy().into_owned(),
            boot: boot(),
            process: std::process::id(),
            renewed: 0,
            released: false,
        }
    }

    /// Whether its holder was a process of this host that is no more.
    fn is_dead(&self) -> bool {
        let process = i32::try_from(self.process)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        !self.boot.is_empty()
            && self.boot == boot()
            && self.process != std::process::id()
            && process.is_some_and(|pid| {
                rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH)
            })
    }
}

/// Names this host's present run, and the space that its processes are numbered in.
fn boot() -> String {
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    match boot_id().unwrap_or_default().as_str() {
        "" => String::new(),
        boot => format!("{boot} {}", space.display()),
    }
}

fn awake() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A number that nobody else has.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

fn gone(deleted: Result<(), Fault>) -> Result<(), Fault> {
    match deleted {
        Err(Fault::NotFound { .. }) => Ok(()),
        other => other,
    }
}
