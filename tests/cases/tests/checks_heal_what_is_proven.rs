//! Does `check --heal-from --execute` write a good copy back where it is proven right, keep what was
//! there, and refuse everywhere else?

use evenkeel_cases::Site;
use evenkeel_cases::checking::{
    PAGE, assert_table_is_whole, check_live, check_stopped, damage, flush, heal, leaf, make_victim,
    stop, victim,
};
use evenkeel_cases::failpoints::HEAL;
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::{account, mariadb_10_11};
use evenkeel_testkit::{LoopFs, TestServer, servers};
use serde_json::Value;
use std::path::PathBuf;

const GIB: u64 = 1 << 30;

fn evenkeel() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// A server with a table that was backed up.
fn start(server: TestServer) -> Site {
    let calm = [
        "--innodb-doublewrite=0",
        "--innodb-buffer-pool-load-at-startup=OFF",
    ];
    let site = Site::start(server, LoopFs::xfs(4 * GIB), 100, &calm);
    make_victim(&site);
    assert_eq!(run(evenkeel().backup(&site, &[])).generation(), 1);
    site
}

/// Returns what became of the one page.
#[track_caller]
fn page(ended: &Ended, reported: &str) -> Value {
    let pages = ended.answer["heal"]["pages"].as_array();
    let pages = pages.unwrap_or_else(|| panic!("{reported}: {ended:?}"));
    assert_eq!(pages.len(), 1, "{reported}: {pages:#?}");
    pages[0].clone()
}

fn healed(server: TestServer) {
    let mut site = start(server);
    let reported = site.server.name;
    stop(&mut site);
    let number = leaf(&victim(&site), false);
    let whole = std::fs::read(victim(&site)).expect("the file");
    damage(&victim(&site), number);
    let damaged = std::fs::read(victim(&site)).expect("the file");

    let plan = heal(&evenkeel(), &site, &[]);
    assert_eq!(plan.code, Some(4), "{reported}: {plan:?}");
    assert_eq!(
        page(&plan, reported)["outcome"],
        "planned",
        "{reported}: {plan:?}"
    );
    assert_eq!(plan.answer["heal"]["executed"], false, "{reported}");
    assert!(
        damaged == std::fs::read(victim(&site)).expect("the file"),
        "{reported}: only a plan"
    );

    let done = heal(&evenkeel(), &site, &["--execute"]);
    assert_eq!(done.code, Some(0), "{reported}: {done:?}");
    let what = page(&done, reported);
    assert_eq!(
        (&what["outcome"], &what["from"]),
        (&"healed".into(), &"generation 1".into()),
        "{reported}"
    );
    assert!(
        whole == std::fs::read(victim(&site)).expect("the file"),
        "{reported}: as it was"
    );
    let kept = PathBuf::from(what["kept"].as_str().expect("a path"));
    let at = (number * PAGE) as usize;
    let kept = std::fs::read(kept).expect("the damaged page");
    assert!(kept == damaged[at..at + PAGE as usize], "{reported}: kept");
    assert_eq!(
        check_stopped(&evenkeel(), &site, &[]).code,
        Some(0),
        "{reported}"
    );
    assert_table_is_whole(&mut site);
}

/// The server's account may write beside the data, and knows where a damaged page will be kept.
#[test]
fn pages_are_not_kept_through_links_of_others() {
    let mut site = start(mariadb_10_11());
    stop(&mut site);
    damage(&victim(&site), leaf(&victim(&site), false));
    let damaged = std::fs::read(victim(&site)).expect("the file");
    let roots = site.fs.join("roots");
    std::fs::create_dir(&roots).expect("a directory");
    let mode = || {
        let found = std::fs::metadata(&roots).expect("the directory");
        std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o777
    };
    let open = mode();
    let link = site.fs.join("data.damaged-pages");
    std::os::unix::fs::symlink(&roots, &link).expect("a link");
    let user = account().expect("an account").uid;
    std::os::unix::fs::lchown(&link, Some(user), None).expect("its link");
    let ended = heal(&evenkeel(), &site, &["--execute"]);
    assert_eq!(ended.code, Some(14), "{ended:?}");
    let message = ended.answer["message"].as_str().unwrap_or_default();
    assert!(message.contains("symbolic link"), "{ended:?}");
    assert_eq!((mode(), open), (open, 0o755));
    assert_eq!(std::fs::read_dir(&roots).expect("a list").count(), 0);
    let now = std::fs::read(victim(&site)).expect("the file");
    assert!(now == damaged, "nothing is written before it is kept");
}

fn refused(server: TestServer) {
    let mut site = start(server);
    let reported = site.server.name;
    let mut session = site.running().session().expect("a session");
    session
        .run("UPDATE bank.victim SET name = REVERSE(name) WHERE id < 40")
        .expect("a change");
    drop(session);
    flush(&site);
    let live = {
        let mut command = check_live(&evenkeel(), &site);
        command
            .args(["--execute", "--heal-from"])
            .arg(site.repository());
        run(command)
    };
    assert_eq!(live.code, Some(14), "{reported}: {live:?}");
    stop(&mut site);
    let number = leaf(&victim(&site), false);
    damage(&victim(&site), number);
    let damaged = std::fs::read(victim(&site)).expect("the file");
    let ended = heal(&evenkeel(), &site, &["--execute"]);
    assert_eq!(ended.code, Some(4), "{reported}: {ended:?}");
    let what = page(&ended, reported);
    assert_eq!(what["outcome"], "refused", "{reported}: {what:#}");
    let why = what["why"].as_str().expect("why");
    assert!(why.contains("changed since"), "{reported}: {why}");
    assert!(
        what["instead"].to_string().contains("restore generation 1"),
        "{reported}: {what:#}"
    );
    assert!(
        damaged == std::fs::read(victim(&site)).expect("the file"),
        "{reported}: nothing was written"
    );
}

#[test]
fn what_did_not_change_is_healed() {
    for server in draw("servers", &servers(), 2) {
        healed(server);
    }
}

#[test]
fn what_changed_is_refused() {
    for server in draw("servers", &servers(), 2) {
        refused(server);
    }
}

#[test]
fn a_killed_run_is_made_good_by_the_next() {
    let mut site = start(mariadb_10_11());
    stop(&mut site);
    let path = victim(&site);
    let number = leaf(&path, false);
    let at = (number * PAGE) as usize;
    let whole = std::fs::read(&path).expect("the file");
    damage(&path, number);
    let damaged = std::fs::read(&path).expect("the file");
    for point in HEAL {
        let repository = site.repository().display().to_string();
        let mut command = evenkeel().command(&["check", "--no-defaults", "--execute"]);
        command
            .args(["--heal-from", &repository, "--datadir"])
            .arg(site.fs.join("data"));
        assert_eq!(run(killed_at(command, point)).signal, Some(9), "{point}");
        // Any mixture of sectors is what the moment between may leave.
        for sectors in [0, 1, 15, 16, 31, 32] {
            let mut torn = whole.clone();
            let cut = at + sectors * 512;
            torn[cut..at + PAGE as usize].copy_from_slice(&damaged[cut..at + PAGE as usize]);
            std::fs::write(&path, &torn).expect("write");
            let ended = heal(&evenkeel(), &site, &["--execute"]);
            assert_eq!(ended.code, Some(0), "{point}, {sectors} sectors: {ended:?}");
            assert!(
                whole == std::fs::read(&path).expect("the file"),
                "{point}, {sectors}"
            );
        }
        std::fs::write(&path, &damaged).expect("write");
    }
    let kept = site.fs.join("zwei Wörter");
    let flag = format!("--keep-damaged={}", kept.display());
    let ended = heal(&evenkeel(), &site, &["--execute", &flag]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(std::fs::read_dir(&kept).expect("it").next().is_some());
    assert_table_is_whole(&mut site);
}

#[test]
fn a_server_that_starts_meanwhile_is_not_written_to() {
    let mut site = start(mariadb_10_11());
    stop(&mut site);
    damage(&victim(&site), leaf(&victim(&site), false));
    // As a server of another container does, whose process is not seen here.
    let system = site.fs.join("data/ibdata1");
    let held = std::fs::File::options()
        .read(true)
        .write(true)
        .open(system)
        .expect("a file");
    rustix::fs::fcntl_lock(&held, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .expect("a lock");
    let before = std::fs::read(victim(&site)).expect("the file");
    let ended = heal(&evenkeel(), &site, &["--execute"]);
    assert_eq!(ended.code, Some(11), "{ended:?}");
    assert!(before == std::fs::read(victim(&site)).expect("the file"));
}
