//! Do leases keep others out while their holder lives, and let them in when it is gone?

use evenkeel_objects::{ObjectsStore, StoreOptions};
use evenkeel_repository::store::LockMode::{Exclusive, Shared};
use evenkeel_repository::store::{Existing, Store};
use evenkeel_testkit::until;
use futures_core::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(400);

fn on(objects: &Arc<InMemory>, lease: Duration) -> ObjectsStore {
    let options = StoreOptions {
        lease,
        ..StoreOptions::default()
    };
    ObjectsStore::new(
        objects.clone(),
        Path::from("r"),
        "memory://test".to_owned(),
        options,
    )
    .unwrap()
}

fn objects(objects: &Arc<InMemory>, name: &str, body: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let path = Path::from(name);
    let put = objects.put(&path, PutPayload::from(body.to_owned()));
    runtime.block_on(put).unwrap();
}

/// What a holder on another host leaves when it is killed.
fn left_behind(all: &Arc<InMemory>, name: &str) {
    let body =
        r#"{"holder":"h","host":"elsewhere","boot":"b","process":1,"renewed":3,"released":false}"#;
    objects(all, name, body);
}

#[test]
fn alone_and_together() {
    let all = Arc::default();
    let (one, other) = (on(&all, LONG), on(&all, LONG));
    let alone = one.try_lock("w", Exclusive).unwrap().unwrap();
    assert!(other.try_lock("w", Exclusive).unwrap().is_none());
    assert!(other.try_lock("w", Shared).unwrap().is_none());
    assert!(
        other.try_lock("r", Exclusive).unwrap().is_some(),
        "another lock"
    );
    drop(alone);
    let first = one.try_lock("w", Shared).unwrap().unwrap();
    let second = other.try_lock("w", Shared).unwrap().unwrap();
    assert!(other.try_lock("w", Exclusive).unwrap().is_none());
    drop(first);
    assert!(one.try_lock("w", Exclusive).unwrap().is_none());
    drop(second);
    assert!(one.try_lock("w", Exclusive).unwrap().is_some());
}

#[test]
fn one_that_is_renewed_lasts() {
    let all = Arc::default();
    let (one, other) = (on(&all, SHORT), on(&all, SHORT));
    let _alone = one.try_lock("w", Exclusive).unwrap().unwrap();
    // Longer than the term, told by the store's clock.
    let begun = modified(&all);
    until("three terms are over", || {
        assert!(other.try_lock("w", Exclusive).unwrap().is_none());
        modified(&all) > begun + 3 * SHORT
    });
    let mut object = one.create("x", Existing::Refuse).unwrap();
    object.write(b"1").unwrap();
    object.finish().unwrap();
}

/// When the lease was last written.
fn modified(all: &Arc<InMemory>) -> std::time::SystemTime {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let head = runtime
        .block_on(all.head(&Path::from("r/w/exclusive")))
        .unwrap();
    head.last_modified.into()
}

#[test]
fn one_that_nobody_renews_is_taken_over() {
    for (left, mode) in [
        ("exclusive", Exclusive),
        ("exclusive", Shared),
        ("shared-x", Exclusive),
    ] {
        let all = Arc::default();
        left_behind(&all, &format!("r/w/{left}"));
        let patient = on(&all, LONG);
        assert!(
            patient.try_lock("w", mode).unwrap().is_none(),
            "{left} {mode:?}"
        );
        let hasty = on(&all, SHORT);
        until("the lease is over", || {
            hasty.try_lock("w", mode).unwrap().is_some()
        });
    }
}

#[test]
fn a_dead_process_of_this_host_holds_nothing() {
    let all: Arc<InMemory> = Arc::default();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let boot = format!("{} {}", boot.trim(), space.display());
    let body = |process: u32| {
        format!(
            r#"{{"holder":"h","host":"x","boot":"{boot}","process":{process},"renewed":0,"released":false}}"#
        )
    };
    objects(
        &all,
        "r/w/exclusive",
        &body(std::os::unix::process::parent_id()),
    );
    assert!(on(&all, LONG).try_lock("w", Exclusive).unwrap().is_none());
    objects(&all, "r/w/exclusive", &body(child.id()));
    assert!(on(&all, LONG).try_lock("w", Exclusive).unwrap().is_some());
}

#[test]
fn a_lost_lease_stops_every_change() {
    let all = Arc::default();
    let one = on(&all, SHORT);
    let lock = one.try_lock("w", Exclusive).unwrap().unwrap();
    let mut begun = one.create("begun", Existing::Refuse).unwrap();
    begun.write(b"1").unwrap();
    // Someone took it for abandoned.
    left_behind(&all, "r/w/exclusive");
    until("the holder sees it", || one.remove("nothing").is_err());
    let error = begun.finish().unwrap_err();
    assert!(error.to_string().contains("lease"), "{error}");
    drop(lock);
    // It gave back nothing that was not its own any more.
    assert!(on(&all, LONG).try_lock("w", Exclusive).unwrap().is_none());
}

#[test]
fn a_store_that_makes_things_twice_is_refused() {
    let careless = Arc::new(Careless(InMemory::new()));
    let place = "memory://test".to_owned();
    let store =
        ObjectsStore::new(careless, Path::from("r"), place, StoreOptions::default()).unwrap();
    let error = store.try_lock("w", Exclusive).unwrap_err();
    assert!(error.to_string().contains("conditional"), "{error}");
}

/// Does as it is told, whatever the conditions.
#[derive(Debug)]
struct Careless(InMemory);

impl std::fmt::Display for Careless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Careless")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Careless {
    async fn put_opts(&self, at: &Path, what: PutPayload, _: PutOptions) -> Result<PutResult> {
        self.0.put_opts(at, what, PutOptions::default()).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(at, options).await
    }

    fn delete_stream(
        &self,
        all: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(all)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}
