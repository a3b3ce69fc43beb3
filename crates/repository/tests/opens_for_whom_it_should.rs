//! Does an encrypted repository open for its readers, let writers add and no more, and stay shut
//! for everyone else, also while its keys change?

mod support;

use evenkeel_op::{Cancel, ErrorKind, Result, Silent};
use evenkeel_repository::secrecy::SecretString;
use evenkeel_repository::{
    Access, Begin, Create, Credentials, Encrypt, KeyChange, Prune, Repository, Role, RunKind,
    Verify,
};
use std::sync::Arc;
use std::time::Duration;
use support::memory::{MemoryStore, Objects};
use support::way::{Person, sealed_for};
use support::{Block, Model, ModelFile, assert_sound, back_up, check, forget};

fn model(seed: u64) -> Model {
    [("data/a.ibd".to_owned(), ModelFile::new(512, 512 * 40, seed))].into()
}

fn open(store: &MemoryStore, person: &Person) -> Result<Repository> {
    Repository::open_on(Arc::new(store.clone()))?.unlock(&person.credentials)
}

fn change(repo: &Repository, change: &KeyChange) -> Result<()> {
    let plan = repo.plan_keys(change)?;
    assert!(plan.needed);
    repo.perform_keys(&plan, Duration::ZERO)
}

/// A repository with one generation of `model(1)`.
fn made(readers: &[&Person], writers: &[&Person]) -> MemoryStore {
    let store = MemoryStore::default();
    let how = sealed_for(readers, writers);
    let repo = Repository::create_on(Arc::new(store.clone()), how).unwrap();
    assert_eq!(repo.access(), Access::Writer);
    back_up(&repo, RunKind::Full, &model(1), None).unwrap();
    store
}

fn wrong_key<T>(result: Result<T>, says: &str) {
    let error = result.err().expect("it should stay shut");
    assert_eq!(error.kind(), ErrorKind::WrongKey, "{}", error.chain());
    assert!(error.chain().contains(says), "{}", error.chain());
    assert!(!error.hints().is_empty(), "{}", error.chain());
}

#[test]
fn a_writer_adds_increments_and_reads_nothing() {
    let (reader, writer) = (Person::new(), Person::new());
    let store = made(&[&reader], &[&writer]);
    let repo = open(&store, &writer).unwrap();
    assert_eq!(repo.access(), Access::Writer);
    let mut next = model(1);
    next.get_mut("data/a.ibd").unwrap().blocks[7] = Block::Bytes(77);
    let done = back_up(&repo, RunKind::Incremental, &next, None).unwrap();
    assert_eq!((done.blocks_changed, done.based_on), (1, Some(1)));
    // What a stream gives is compared by hash, too.
    let done = support::back_up_streamed(&repo, RunKind::Incremental, &next).unwrap();
    assert_eq!(done.blocks_changed, 0);
    // Names and coordinates are the writer's to see, content is not.
    assert_eq!(repo.manifest(2).unwrap().coordinates["binlog"], "b.1");
    let why = check(&repo, 2, &next).unwrap_err();
    assert!(why.contains("can write backups, not read them"), "{why}");
    wrong_key(
        repo.plan_keys(&KeyChange::Remove(reader.recipient.clone())),
        "not read them",
    );
    let repo = open(&store, &reader).unwrap();
    assert_eq!(repo.access(), Access::Reader);
    check(&repo, 1, &model(1)).unwrap();
    check(&repo, 2, &next).unwrap();
    assert_sound(&repo);
}

#[test]
fn without_a_key_it_lists_and_forgets_but_shows_and_adds_nothing() {
    let (reader, stranger) = (Person::new(), Person::new());
    let store = made(&[&reader], &[]);
    wrong_key(open(&store, &stranger), "none of the identities");
    let repo = Repository::open_on(Arc::new(store.clone())).unwrap();
    let about = repo.generations().unwrap()[0].about.clone().unwrap();
    assert_eq!((about.files, about.source.as_str()), (1, ""));
    let manifest = repo.manifest(1).unwrap();
    assert!(manifest.facts.is_null() && manifest.coordinates.is_null());
    wrong_key(
        repo.begin(Begin::new(RunKind::Full, "t")).map(|_| ()),
        "no key was given",
    );
    wrong_key(repo.reader(1).map(|_| ()), "no key was given");
    let plan = repo.plan_prune(&Prune::default(), &Cancel::new());
    wrong_key(plan.map(|_| ()), "no key was given");
    wrong_key(
        repo.plan_keys(&KeyChange::Add(stranger.recipient.clone(), Role::Reader)),
        "no key was given",
    );
    back_up(
        &open(&store, &reader).unwrap(),
        RunKind::Full,
        &model(2),
        None,
    )
    .unwrap();
    forget(&repo, &[1]).unwrap();
    assert_eq!(repo.generations().unwrap().len(), 1);
    check(&open(&store, &reader).unwrap(), 2, &model(2)).unwrap();
}

#[test]
fn nothing_of_names_and_content_stands_in_the_store() {
    let reader = Person::new();
    let store = made(&[&reader], &[]);
    let secrets: [&[u8]; 4] = [b"data/a.ibd", b"row body", b"binlog", b"model"];
    let holds = |store: &MemoryStore, secret: &[u8]| {
        let has = |bytes: &Arc<Vec<u8>>| bytes.windows(secret.len()).any(|part| part == secret);
        store.objects().values().any(has)
    };
    for secret in secrets {
        assert!(
            !holds(&store, secret),
            "{}",
            String::from_utf8_lossy(secret)
        );
    }
    // The search does find what is there.
    let plain = MemoryStore::default();
    let repo = Repository::create_on(Arc::new(plain.clone()), Create::default()).unwrap();
    back_up(&repo, RunKind::Full, &model(1), None).unwrap();
    assert!(holds(&plain, b"binlog") && holds(&plain, b"row body"));
}

#[test]
fn one_of_two_readers_is_enough_and_a_passphrase_is_one() {
    let (one, other) = (Person::new(), Person::new());
    let store = MemoryStore::default();
    let how = Create {
        encrypt: Some(Encrypt {
            readers: vec![one.recipient.clone(), other.recipient.clone()],
            writers: Vec::new(),
            passphrase: Some(SecretString::from("correct horse".to_owned())),
        }),
        ..Create::default()
    };
    let repo = Repository::create_on(Arc::new(store.clone()), how).unwrap();
    back_up(&repo, RunKind::Full, &model(1), None).unwrap();
    for person in [&one, &other] {
        check(&open(&store, person).unwrap(), 1, &model(1)).unwrap();
    }
    let knows = |text: &str| {
        let mut credentials = Credentials::default();
        credentials.add_passphrase(SecretString::from(text.to_owned()));
        Repository::open_on(Arc::new(store.clone()))
            .unwrap()
            .unlock(&credentials)
    };
    check(&knows("correct horse").unwrap(), 1, &model(1)).unwrap();
    wrong_key(knows("correct mule"), "the passphrase does not open");
    let holders = repo.key_holders().unwrap();
    let passphrase = holders.iter().find(|one| one.passphrase).unwrap();
    let gone = KeyChange::Remove(passphrase.recipient.parse().unwrap());
    change(&open(&store, &one).unwrap(), &gone).unwrap();
    wrong_key(knows("correct horse"), "has no passphrase");
}

#[test]
fn who_is_removed_opens_nothing_and_who_is_left_opens_old_and_new() {
    let (stays, goes, comes) = (Person::new(), Person::new(), Person::new());
    let store = made(&[&stays, &goes], &[]);
    let objects = store.objects();
    change(
        &open(&store, &stays).unwrap(),
        &KeyChange::Remove(goes.recipient.clone()),
    )
    .unwrap();
    // Nothing but the small key objects was written.
    let changed: Vec<String> = store
        .objects()
        .into_iter()
        .filter(|(name, bytes)| objects.get(name) != Some(bytes))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(changed, ["keys", "keys.copy"]);
    wrong_key(open(&store, &goes), "none of the identities");
    let repo = open(&store, &stays).unwrap();
    back_up(&repo, RunKind::Incremental, &model(2), None).unwrap();
    change(
        &repo,
        &KeyChange::Add(comes.recipient.clone(), Role::Reader),
    )
    .unwrap();
    for person in [&stays, &comes] {
        let repo = open(&store, person).unwrap();
        check(&repo, 1, &model(1)).unwrap();
        check(&repo, 2, &model(2)).unwrap();
        assert_sound(&repo);
    }
    // The keys that the one removed may have kept do not open what was written since: old keys
    // with the new generations.
    let mut mixed = store.objects();
    for name in ["keys", "keys.copy"] {
        mixed.insert(name.to_owned(), objects[name].clone());
    }
    let repo = open(&MemoryStore::of(mixed), &goes).unwrap();
    check(&repo, 1, &model(1)).unwrap();
    assert!(check(&repo, 2, &model(2)).is_err());
    let last = KeyChange::Remove(comes.recipient.clone());
    change(&open(&store, &stays).unwrap(), &last).unwrap();
    let error = open(&store, &stays)
        .unwrap()
        .plan_keys(&KeyChange::Remove(stays.recipient.clone()))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{}", error.chain());
}

/// Every mixture of old and new objects that an interruption can leave.
#[test]
fn a_change_that_was_interrupted_leaves_keys_that_work() {
    let (stays, goes) = (Person::new(), Person::new());
    let store = made(&[&stays, &goes], &[]);
    let before = store.objects();
    let remove = KeyChange::Remove(goes.recipient.clone());
    change(&open(&store, &stays).unwrap(), &remove).unwrap();
    let after = store.objects();
    let with = |names: &[&str], torn: Option<&str>| {
        let mut all: Objects = before.clone();
        for name in names {
            all.insert((*name).to_owned(), after[*name].clone());
        }
        if let Some(name) = torn {
            let half = after[name].len() / 2;
            all.insert(
                format!("{name}.tmp"),
                Arc::new(after[name][..half].to_vec()),
            );
        }
        MemoryStore::of(all)
    };
    for (store, goes_opens) in [
        (with(&[], None), true),
        (with(&[], Some("keys")), true),
        (with(&["keys"], None), false),
        (with(&["keys"], Some("keys.copy")), false),
        (with(&["keys", "keys.copy"], None), false),
    ] {
        let repo = open(&store, &stays).unwrap();
        assert_sound(&repo);
        check(&repo, 1, &model(1)).unwrap();
        assert_eq!(open(&store, &goes).is_ok(), goes_opens);
        // The next run finishes it, whichever it was.
        back_up(&repo, RunKind::Incremental, &model(2), None).unwrap();
        let objects = store.objects();
        assert_eq!(objects["keys"], objects["keys.copy"]);
        assert!(!objects.keys().any(|name| name.ends_with(".tmp")));
        let repo = open(&store, &stays).unwrap();
        check(&repo, 2, &model(2)).unwrap();
        let report = support::verify(&repo).unwrap();
        assert!(report.is_sound() && report.notes.is_empty(), "{report:?}");
    }
}

#[test]
fn one_lost_copy_of_the_keys_is_found_and_fixed() {
    let reader = Person::new();
    let store = made(&[&reader], &[]);
    for lost in ["keys", "keys.copy"] {
        for damage in [None, Some(b"evenkeel keys 2\n{}".to_vec())] {
            let mut all = store.objects();
            all.remove(lost);
            all.extend(damage.map(|bytes| (lost.to_owned(), Arc::new(bytes))));
            let store = MemoryStore::of(all);
            let repo = open(&store, &reader).unwrap();
            check(&repo, 1, &model(1)).unwrap();
            let report = support::verify(&repo).unwrap();
            assert!(
                report.findings.iter().any(|one| one.object == lost),
                "{report:?}"
            );
            back_up(&repo, RunKind::Incremental, &model(1), None).unwrap();
            assert_sound(&open(&store, &reader).unwrap());
        }
    }
}

/// Two hosts that opened the repository before its keys changed.
#[test]
fn two_controllers_do_not_undo_each_other() {
    let (one, other) = (Person::new(), Person::new());
    // Only a real directory has real locks.
    let dir = tempfile::tempdir().unwrap();
    let how = sealed_for(&[&one, &other], &[]);
    Repository::create(dir.path(), how).unwrap();
    let open = |person: &Person| {
        let repo = Repository::open(dir.path()).unwrap();
        repo.unlock(&person.credentials).unwrap()
    };
    let (here, there) = (open(&one), open(&other));
    let add = |person: &Person| KeyChange::Add(person.recipient.clone(), Role::Writer);
    let (first, second) = (Person::new(), Person::new());
    let plan = here.plan_keys(&add(&first)).unwrap();
    change(&there, &add(&second)).unwrap();
    let error = here.perform_keys(&plan, Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain());
    // A run that is going on keeps keys as they are, and the other way round.
    let writer = here.begin(Begin::new(RunKind::Full, "t")).unwrap();
    let plan = there.plan_keys(&add(&first)).unwrap();
    let error = there.perform_keys(&plan, Duration::ZERO).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain());
    writer.abort().unwrap();
    there.perform_keys(&plan, Duration::ZERO).unwrap();
    for person in [&first, &second] {
        assert_eq!(open(person).access(), Access::Writer);
    }
}

/// Who stores the repository writes `keys` as he likes, for himself and for us.
#[test]
fn keys_that_a_stranger_slipped_in_are_refused() {
    let (reader, writer, stranger) = (Person::new(), Person::new(), Person::new());
    let store = made(&[&reader], &[&writer]);
    // His own repository under our identity: wrapped for our writer, too.
    let his = made(&[&stranger], &[&writer]);
    let mut forged = his.objects()["keys"].to_vec();
    let text = String::from_utf8(forged.clone()).unwrap();
    let id = |store: &MemoryStore| {
        Repository::open_on(Arc::new(store.clone()))
            .unwrap()
            .id()
            .to_string()
    };
    let body = text.replace(&id(&his), &id(&store));
    let end = body.rfind("blake3 ").unwrap();
    let seal = evenkeel_repository::Digest::of(&body.as_bytes()[..end]);
    forged = format!("{}blake3 {seal}\n", &body[..end]).into_bytes();
    let mut all = store.objects();
    for name in ["keys", "keys.copy"] {
        all.insert(name.to_owned(), Arc::new(forged.clone()));
    }
    let store = MemoryStore::of(all);
    let error = open(&store, &writer).err().unwrap();
    assert!(
        error.chain().contains("its author did not have"),
        "{}",
        error.chain()
    );
}

/// The head and the manifests' digests can be made by anyone.
#[test]
fn a_manifest_that_a_stranger_changed_is_refused() {
    let reader = Person::new();
    let store = made(&[&reader], &[]);
    let mut all = store.objects();
    let reseal = |text: String| {
        let end = text.rfind("blake3 ").unwrap();
        let seal = evenkeel_repository::Digest::of(&text.as_bytes()[..end]);
        format!("{}blake3 {seal}\n", &text[..end])
    };
    let text = |all: &Objects, name: &str| String::from_utf8(all[name].to_vec()).unwrap();
    let old = text(&all, "generations/1/manifest");
    let new = reseal(old.replace("\"files\": 1", "\"files\": 2"));
    assert_ne!(old, new);
    let digest = |text: &str| evenkeel_repository::Digest::of(text.as_bytes()).to_string();
    let head = reseal(text(&all, "head").replace(&digest(&old), &digest(&new)));
    all.insert(
        "generations/1/manifest".to_owned(),
        Arc::new(new.into_bytes()),
    );
    all.insert("head".to_owned(), Arc::new(head.into_bytes()));
    let store = MemoryStore::of(all);
    // Without a key it passes; with one it does not.
    let locked = Repository::open_on(Arc::new(store.clone())).unwrap();
    assert_eq!(locked.manifest(1).unwrap().files, 2);
    let error = open(&store, &reader).unwrap().manifest(1).unwrap_err();
    assert!(
        error.chain().contains("its author did not have"),
        "{}",
        error.chain()
    );
}

#[test]
fn verify_says_what_it_could_not_check() {
    let (reader, writer) = (Person::new(), Person::new());
    let store = made(&[&reader], &[&writer]);
    let verify = |store: &MemoryStore, person: Option<&Person>, read_data| {
        let repo = Repository::open_on(Arc::new(store.clone())).unwrap();
        let repo = match person {
            Some(person) => repo.unlock(&person.credentials).unwrap(),
            None => repo,
        };
        let how = Verify {
            read_data,
            workers: 1,
            ..Verify::default()
        };
        repo.verify(&how, &Silent, &Cancel::new()).unwrap()
    };
    for (person, read_data, unchecked) in [
        (Some(&reader), true, 0),
        (Some(&writer), false, 0),
        (Some(&writer), true, 1),
        (None, true, 2),
    ] {
        let report = verify(&store, person, read_data);
        assert!(report.is_sound(), "{:?}", report.findings);
        assert_eq!(report.unchecked.len(), unchecked, "{:?}", report.unchecked);
    }
    // A flipped bit of what is sealed is found by everyone.
    let mut all = store.objects();
    let pack = "generations/1/pack-0000";
    let mut bytes = all[pack].to_vec();
    bytes[200] ^= 1;
    all.insert(pack.to_owned(), Arc::new(bytes));
    let store = MemoryStore::of(all);
    for person in [Some(&reader), Some(&writer), None] {
        assert!(!verify(&store, person, true).is_sound());
    }
}
