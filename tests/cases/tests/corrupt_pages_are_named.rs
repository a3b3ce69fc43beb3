//! Is a corrupt page found while it is backed up, named so that it can be repaired, and not stored
//! unless that is wanted?

use evenkeel_cases::Site;
use evenkeel_cases::leftovers::names_in;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_repository::Repository;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::{LoopFs, TestServer, servers};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const GIB: u64 = 1 << 30;
const PAGE: u64 = 16 << 10;

/// A page of an index, in byte order of the file.
struct Leaf {
    page: u64,
    index: u64,
}

/// Returns the leaf pages of all indexes of a tablespace file.
fn leaves(path: &Path) -> Vec<Leaf> {
    let bytes = fs::read(path).unwrap();
    let number = |at: usize, n: usize| {
        bytes[at..at + n]
            .iter()
            .fold(0u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let pages = (0..bytes.len()).step_by(PAGE as usize);
    // Page type INDEX, level 0; the index's number follows.
    pages
        .filter(|at| number(at + 24, 2) == 17855 && number(at + 64, 2) == 0)
        .map(|at| Leaf {
            page: at as u64 / PAGE,
            index: number(at + 66, 8),
        })
        .collect()
}

fn flip(path: &Path, page: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, page * PAGE + 8000).unwrap();
    byte[0] ^= 0x10;
    file.write_all_at(&byte, page * PAGE + 8000).unwrap();
    file.sync_all().unwrap();
}

fn start(server: TestServer) -> Site {
    // A page that has a good copy in the doublewrite buffer is no corrupt page: recovery repairs it.
    // Pages written this short a while ago may all have one.
    let site = Site::start(
        server,
        LoopFs::xfs(4 * GIB),
        100,
        &["--innodb-doublewrite=0"],
    );
    let mut session = site.running().session().unwrap();
    for sql in [
        "CREATE TABLE bank.victim (id INT PRIMARY KEY, name VARCHAR(200), KEY by_name (name))",
        "INSERT INTO bank.victim VALUES (1, REPEAT('a', 150))",
    ] {
        session.run(sql).unwrap();
    }
    for _ in 0..11 {
        let doubled = "INSERT INTO bank.victim SELECT id + (SELECT MAX(id) FROM bank.victim v), \
                       CONCAT(id, name) FROM bank.victim w";
        session.run(doubled).unwrap();
    }
    // All of its pages are on disk then, and nothing changes them.
    session.run("FLUSH TABLES bank.victim FOR EXPORT").unwrap();
    session.run("UNLOCK TABLES").unwrap();
    site
}

fn assert_refused(ended: &Ended, page: u64) {
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let message = ended.message();
    for part in [
        &format!("page {page} of data/bank/victim.ibd"),
        "space ",
        "victim",
    ] {
        assert!(message.contains(part), "'{part}' in: {message}");
    }
}

fn generations(site: &Site) -> Vec<u32> {
    let repository = Repository::open(site.repository()).unwrap();
    let all = repository.generations().unwrap();
    all.iter().map(|one| one.generation).collect()
}

fn case(server: TestServer, secondary: bool) {
    let mut site = start(server);
    // The last good one.
    let sound = run(Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test")).backup(&site, &[]));
    assert_eq!(sound.generation(), 1, "{sound:?}");
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let path = site.fs.join("data/bank/victim.ibd");
    let leaves = leaves(&path);
    let wanted = leaves.iter().map(|leaf| leaf.index);
    let wanted = if secondary {
        wanted.max()
    } else {
        wanted.min()
    };
    // Not the last leaf, which may be nearly empty.
    let page = leaves
        .iter()
        .find(|leaf| Some(leaf.index) == wanted)
        .unwrap()
        .page;
    flip(&path, page);

    let live = run(evenkeel.backup(&site, &[]));
    assert_refused(&live, page);
    let index = if secondary { "by_name" } else { "PRIMARY" };
    assert!(live.message().contains(index), "{live:?}");
    let hints = live.answer["hints"].to_string();
    assert_eq!(
        secondary,
        hints.contains("ALTER TABLE"),
        "what would repair it: {hints}"
    );
    assert_eq!(generations(&site), [1], "nothing was stored");
    site.assert_clean("after the refusal");

    let kept = run(evenkeel.backup(&site, &["--keep-corrupt"]));
    assert_eq!(kept.code, Some(3), "{kept:?}");
    assert_eq!(kept.answer["pages_corrupt"], 1);
    let found = &kept.answer["corrupt"][0];
    assert_eq!(found["file"], "data/bank/victim.ibd");
    assert_eq!(found["page"], page);
    assert_eq!(found["index"], index);
    assert!(found["space"].as_u64().unwrap() > 0);
    let restored = site.restore(None, "restored").unwrap();
    let same = fs::read(restored.target.join("bank/victim.ibd")).unwrap();
    assert!(same == fs::read(&path).unwrap(), "stored as it is");

    nothing_sound_is_forgotten(&site, &evenkeel, page);

    // Without a server to ask, the file's name still tells the table.
    site.running
        .take()
        .unwrap()
        .stop(Duration::from_secs(60))
        .unwrap();
    let mut command = evenkeel.command(&["backup", "--no-defaults", "--snapshot=copy", "--full"]);
    command
        .arg("--datadir")
        .arg(site.fs.join("data"))
        .arg(site.fs.join("other"));
    assert_refused(&run(command), page);
    assert_eq!(names_in(&site.fs.join("other/generations")), [""; 0]);
}

/// After a generation with a corrupt page.
fn nothing_sound_is_forgotten(site: &Site, evenkeel: &Evenkeel, page: u64) {
    let verified = run(evenkeel.command(&["verify", site.repository().to_str().unwrap()]));
    assert!(
        verified.answer["notes"]
            .to_string()
            .contains("generation 2 has a corrupt page")
    );

    // Nothing changed since: what was corrupt is, also for a run that would read only what changed.
    assert_refused(&run(evenkeel.backup(site, &[])), page);
    let again = run(evenkeel.backup(site, &["--keep-corrupt", "--keep-last=1", "--prune"]));
    assert_eq!(again.code, Some(3), "{again:?}");
    assert_eq!(again.answer["pages_corrupt"], 1);
    assert_eq!(generations(site), [1, 2, 3]);
    // Nor is the last good one forgotten for being old.
    let mut forget = evenkeel.command(&["forget", "--keep-last=1", "--execute"]);
    forget.arg(site.repository());
    assert_eq!(run(forget).code, Some(0));
    assert_eq!(generations(site), [1, 3]);
    assert!(site.restore(Some(1), "good").is_ok());
}

#[test]
fn of_a_secondary_index() {
    for server in draw("servers", &servers(), 2) {
        case(server, true);
    }
}

#[test]
fn of_the_rows_themselves() {
    for server in draw("servers", &servers(), 1) {
        case(server, false);
    }
}
