use super::door::{LOCK, MARKER, MARKER_UNFINISHED};
use super::facts::FACTS;
use super::*;
use proptest::prelude::*;
use rustix::process::geteuid;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;

/// What the base of no repository is called.
const BASE: &str = "base";

fn holding(root: &Path) -> PathBuf {
    root.join(".evenkeel-0")
}

/// Commits a run whose directory holds one file with `text` in it.
fn commit(directory: &Path, token: &str, text: &str) {
    commit_for("", directory, token, text);
}

/// The same as a run of a repository.
fn commit_for(repository: &str, directory: &Path, token: &str, text: &str) {
    let run = Holding::open(directory, repository)
        .unwrap()
        .start()
        .unwrap();
    fs::write(run.path().join("file"), text).unwrap();
    run.commit("reflink", token).unwrap();
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_base_is_found_by_provider_and_token() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    commit(&directory, "one", "1");
    commit(&directory, "two", "2");
    let open = Holding::open(&directory, "").unwrap();
    assert_eq!(open.base("reflink", "one"), None);
    assert_eq!(open.base("btrfs", "two"), None);
    let base = open.base("reflink", "two").unwrap();
    assert_eq!(fs::read_to_string(base.join("file")).unwrap(), "2");
    assert_eq!(names(&directory), [MARKER, BASE, LOCK]);
    open.drop_base().unwrap();
    assert_eq!(open.facts(), None);
    assert_eq!(names(&directory), [MARKER, LOCK]);
}

#[test]
fn each_repository_has_its_base_and_those_of_others_are_few() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    let has = |repository: &str, token: &str| {
        let open = Holding::open(&directory, repository).unwrap();
        open.base("reflink", token).is_some()
    };
    commit_for("one", &directory, "1", "one");
    commit_for("two", &directory, "2", "two");
    commit_for("one", &directory, "3", "one");
    assert!(has("one", "3") && has("two", "2") && !has("one", "1"));
    // A run that died while it changed one costs the others nothing.
    let open = Holding::open(&directory, "one").unwrap();
    open.write_facts(&BaseFacts::now("reflink", None, false))
        .unwrap();
    drop(open);
    assert!(heal(&directory).unwrap());
    assert!(has("two", "2") && !has("one", "3"));
    // Those that were used last stay. All of this is one second's, so the clock is given.
    for (at, repository) in ["two", "three", "four", "five"].iter().enumerate() {
        commit_for(repository, &directory, repository, "");
        let open = Holding::open(&directory, repository).unwrap();
        let mut facts = open.facts().unwrap();
        facts.created_unix_s = facts.created_unix_s - 100 + at as u64;
        open.write_facts(&facts).unwrap();
    }
    assert!(has("five", "five") && has("four", "four") && has("three", "three"));
    assert!(!has("two", "two"));
    Holding::open(&directory, "").unwrap().drop_bases().unwrap();
    assert_eq!(names(&directory), [MARKER, LOCK]);
}

#[test]
fn abandoned_and_dropped_runs_leave_the_base_alone() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    commit(&directory, "one", "1");
    Holding::open(&directory, "")
        .unwrap()
        .start()
        .unwrap()
        .abandon()
        .unwrap();
    drop(Holding::open(&directory, "").unwrap().start().unwrap());
    assert_eq!(names(&directory), [MARKER, BASE, LOCK]);
    assert_eq!(
        Holding::open(&directory, "")
            .unwrap()
            .facts()
            .unwrap()
            .token,
        Some("one".to_owned())
    );
}

#[test]
fn a_second_run_is_told_to_wait() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    let run = Holding::open(&directory, "").unwrap().start().unwrap();
    assert_eq!(
        Holding::open(&directory, "").unwrap_err().kind(),
        ErrorKind::Busy
    );
    // Healing does not touch the living.
    assert!(!heal(&directory).unwrap());
    assert!(run.path().is_dir());
    drop(run);
    assert!(Holding::open(&directory, "").is_ok());
}

#[test]
fn what_dead_runs_left_is_deleted_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    commit(&directory, "one", "1");
    for dead in ["run-1-x/files/data~", "old-2-y/files"] {
        fs::create_dir_all(directory.join(dead)).unwrap();
    }
    fs::write(directory.join("somebody's notes"), "").unwrap();
    assert!(heal(&directory).unwrap());
    assert!(!heal(&directory).unwrap());
    assert_eq!(names(&directory), [MARKER, BASE, LOCK, "somebody's notes"]);
}

#[test]
fn a_base_without_readable_facts_is_no_base() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    commit(&directory, "one", "1");
    fs::write(directory.join(BASE).join(FACTS), "{").unwrap();
    let open = Holding::open(&directory, "").unwrap();
    assert_eq!(open.base("reflink", "one"), None);
    assert_eq!(names(&directory), [MARKER, LOCK]);
}

#[test]
fn a_base_that_was_being_changed_is_deleted() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    for heals in [true, false] {
        let open = Holding::open(&directory, "").unwrap();
        let moving = BaseFacts::now("reflink", None, false);
        open.make_base(&moving, &["files"]).unwrap();
        assert!(open.base_path().join("files").is_dir());
        drop(open);
        if heals {
            assert!(heal(&directory).unwrap());
        } else {
            drop(Holding::open(&directory, "").unwrap());
        }
        assert_eq!(names(&directory), [MARKER, LOCK]);
    }
}

#[test]
fn a_directory_of_somebody_else_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    fs::create_dir_all(directory.join("run-1-x")).unwrap();
    let error = Holding::open(&directory, "").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(!heal(&directory).unwrap());
    assert_eq!(names(&directory), ["run-1-x"]);
}

/// The server's own user may write beside its data, and can forge all that a holding directory has but its
/// owner.
#[test]
fn what_another_user_made_is_refused_whatever_is_in_it() {
    assert!(geteuid().is_root(), "only root can give a directory away");
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    commit(&directory, "one", "1");
    fs::create_dir(directory.join("run-1-x")).unwrap();
    chown(&directory, Some(4242), None).unwrap();
    assert!(!is_ours(&directory));
    assert!(!heal(&directory).unwrap());
    let error = Holding::open(&directory, "").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("another user"), "{error}");
    assert_eq!(names(&directory), [MARKER, BASE, LOCK, "run-1-x"]);
}

#[test]
fn what_others_may_write_into_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    commit(&directory, "one", "1");
    fs::set_permissions(&directory, Permissions::from_mode(0o770)).unwrap();
    assert!(!is_ours(&directory));
    assert!(Holding::open(&directory, "").is_err());
    fs::set_permissions(&directory, Permissions::from_mode(0o700)).unwrap();
    let link = root.path().join("link");
    std::os::unix::fs::symlink(&directory, &link).unwrap();
    assert!(!is_ours(&link));
    assert!(Holding::open(&link, "").is_err());
}

/// Who owns the directory above can put another in its place at any moment.
#[test]
fn what_is_put_in_its_place_while_it_is_open_is_not_touched() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    let run = Holding::open(&directory, "").unwrap().start().unwrap();
    let moved = root.path().join("moved");
    fs::rename(&directory, &moved).unwrap();
    let outside = root.path().join("outside");
    fs::create_dir_all(outside.join("files")).unwrap();
    fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink(&outside, directory.join(BASE)).unwrap();
    fs::write(run.path().join("file"), "1").unwrap();
    run.commit("reflink", "one").unwrap();
    assert_eq!(names(&outside), ["files"]);
    assert_eq!(names(&directory), [BASE]);
    assert_eq!(names(&moved), [MARKER, BASE, LOCK]);
}

#[test]
fn an_unfinished_first_run_is_finished() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    DirBuilder::new().mode(0o755).create(&directory).unwrap();
    fs::write(directory.join(MARKER_UNFINISHED), "even").unwrap();
    Holding::open(&directory, "").unwrap();
    assert!(is_ours(&directory));
}

#[test]
fn symbolic_links_are_deleted_and_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    let outside = root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("precious"), "").unwrap();
    Holding::open(&directory, "").unwrap();
    fs::create_dir(directory.join("run-1-x")).unwrap();
    std::os::unix::fs::symlink(&outside, directory.join("run-1-x/link")).unwrap();
    std::os::unix::fs::symlink(&outside, directory.join("old-1-y")).unwrap();
    heal(&directory).unwrap();
    assert_eq!(names(&directory), [MARKER, LOCK]);
    assert!(outside.join("precious").exists());
}

#[test]
fn a_child_does_not_inherit_the_lock() {
    let root = tempfile::tempdir().unwrap();
    let directory = holding(root.path());
    let open = Holding::open(&directory, "").unwrap();
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    drop(open);
    let again = Holding::open(&directory, "").map(|_| ());
    child.kill().unwrap();
    child.wait().unwrap();
    again.unwrap();
}

/// What is put under a name of ours.
#[derive(Debug, Clone)]
enum Put {
    LinkToFile,
    LinkToDirectory,
    SecondName,
    Pipe,
    Directory,
    Text(Vec<u8>),
    Facts(BaseFacts),
}

fn put() -> impl Strategy<Value = Put> {
    let facts = (
        0u32..4,
        any::<Option<String>>(),
        any::<bool>(),
        any::<String>(),
    );
    let facts = (facts, any::<u64>()).prop_map(|((format, token, changed, provider), created)| {
        Put::Facts(BaseFacts {
            format,
            token,
            changed,
            provider,
            created_unix_s: created,
        })
    });
    prop_oneof![
        Just(Put::LinkToFile),
        Just(Put::LinkToDirectory),
        Just(Put::SecondName),
        Just(Put::Pipe),
        Just(Put::Directory),
        any::<Vec<u8>>().prop_map(Put::Text),
        facts,
    ]
}

fn lay(what: &Put, at: &Path, neighbour: &Path) {
    // What is above may be a link or a file by now: then there is nothing to lay there, and what was
    // removed there would be the neighbour's.
    if fs::symlink_metadata(at.parent().unwrap()).is_ok_and(|above| !above.is_dir()) {
        return;
    }
    let _ = fs::remove_dir_all(at).or_else(|_| fs::remove_file(at));
    let theirs = neighbour.join("base.json");
    let _ = match what {
        Put::LinkToFile => std::os::unix::fs::symlink(&theirs, at),
        Put::LinkToDirectory => std::os::unix::fs::symlink(neighbour, at),
        Put::SecondName => fs::hard_link(&theirs, at),
        Put::Pipe => rustix::fs::mknodat(
            rustix::fs::CWD,
            at,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .map_err(Into::into),
        Put::Directory => fs::create_dir(at),
        Put::Text(text) => fs::write(at, text),
        Put::Facts(facts) => fs::write(at, serde_json::to_vec(facts).unwrap()),
    };
}

/// Works with a holding directory in every way there is; errors are fine.
fn work_with(directory: &Path) {
    let _ = heal(directory);
    let _ = is_ours(directory);
    if let Ok(open) = Holding::open(directory, "") {
        let _ = (open.facts(), open.base("reflink", "one"));
        let _ = open.write_facts(&BaseFacts::now("reflink", None, true));
        let _ = open.make_base(&BaseFacts::now("reflink", None, true), &["files"]);
        if let Ok(run) = open.start() {
            let _ = run.commit("reflink", "two");
        }
    }
    if let Ok(open) = Holding::open(directory, "other") {
        let _ = open.drop_bases();
    }
}

/// Names of ours, and one that is not.
const NAMES: [&str; 11] = [
    MARKER,
    LOCK,
    MARKER_UNFINISHED,
    BASE,
    "base/base.json",
    "base/base.json.new",
    "base/files",
    "base-0123456789abcdef",
    "run-1-x",
    "old-1-x",
    "other",
];

/// Lays things into a holding directory, works with it, and says whether its neighbour is as it was.
fn is_harmless(laid: &[(usize, Put)]) -> bool {
    let root = tempfile::tempdir().unwrap();
    let (directory, neighbour) = (holding(root.path()), root.path().join("neighbour"));
    fs::create_dir(&neighbour).unwrap();
    let facts = BaseFacts::now("reflink", Some("one".into()), false);
    let theirs = serde_json::to_vec(&facts).unwrap();
    fs::write(neighbour.join("base.json"), &theirs).unwrap();
    commit(&directory, "one", "1");
    for (name, what) in laid {
        lay(what, &directory.join(NAMES[*name]), &neighbour);
    }
    work_with(&directory);
    names(&neighbour) == ["base.json"] && fs::read(neighbour.join("base.json")).unwrap() == theirs
}

#[test]
fn what_leads_elsewhere_does_so_under_no_name() {
    for what in [
        Put::LinkToFile,
        Put::LinkToDirectory,
        Put::SecondName,
        Put::Pipe,
    ] {
        for (at, name) in NAMES.iter().enumerate() {
            let laid = [(at, what.clone())];
            assert!(is_harmless(&laid), "{what:?} as {name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_lies_in_it_neighbours_stay_as_they_are(
        laid in proptest::collection::vec((0usize..NAMES.len(), put()), 1..5),
    ) {
        prop_assert!(is_harmless(&laid));
    }
}
