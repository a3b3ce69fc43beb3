//! Is a second server, or one that was reinstalled, kept out of a repository that holds another's backups,
//! and let in where its owner says so?

use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer};
use std::path::Path;
use std::time::Duration;

const GIB: u64 = 1 << 30;

fn evenkeel() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

fn of_stopped(datadir: &Path, repository: &Path, flags: &[&str]) -> Ended {
    let mut command = evenkeel().command(&["backup", "--no-defaults", "--snapshot=copy"]);
    command.arg("--datadir").arg(datadir).arg(repository);
    command.args(flags);
    run(command)
}

fn of_running(socket: &Path, repository: &Path, flags: &[&str]) -> Ended {
    let mut command = evenkeel().command(&["backup", "--no-defaults", "-u", "root", "-S"]);
    command.arg(socket).arg(repository).args(flags);
    run(command)
}

fn sources(repository: &Path) -> Vec<String> {
    let mut command = evenkeel().command(&["generations"]);
    command.arg(repository);
    let ended = run(command);
    let listed = ended.answer["generations"].as_array();
    let listed = listed.unwrap_or_else(|| panic!("{ended:?}")).iter();
    let source = |one: &serde_json::Value| one["source"].as_str().unwrap_or_default().to_owned();
    listed.map(source).collect()
}

#[track_caller]
fn assert_refused(ended: &Ended, whose: &str) {
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.message().contains("holds backups of"), "{ended:?}");
    assert!(ended.message().contains(whose), "{ended:?}");
}

/// Starts a server for a moment: what it keeps of itself is then there.
fn begin_and_end(server: &TestServer, datadir: &Path) {
    let running = server.start(datadir, &[]);
    running.stop(Duration::from_secs(60)).unwrap();
}

#[test]
fn a_second_server_takes_nothing_from_the_first() {
    let server = mariadb_10_11();
    let fs = LoopFs::xfs(2 * GIB);
    let (one, two, repository) = (fs.join("one"), fs.join("two"), fs.join("repository"));
    let (first, second) = (server.start(&one, &[]), server.start(&two, &[]));
    assert_eq!(of_running(first.socket(), &repository, &[]).code, Some(0));
    for flags in [
        &["--keep-last=1", "--prune"][..],
        &["--full", "--keep-last=1", "--prune"],
        &["--against=1"],
    ] {
        let refused = of_running(second.socket(), &repository, flags);
        assert_refused(&refused, one.to_str().unwrap());
    }
    assert_eq!(sources(&repository).len(), 1);
    assert_eq!(of_running(first.socket(), &repository, &[]).code, Some(0));
    // Its owner says that the second takes its place. From then on it is the first that is another.
    let moved = of_running(second.socket(), &repository, &["--new-source"]);
    assert_eq!(moved.code, Some(0), "{moved:?}");
    assert_refused(
        &of_running(first.socket(), &repository, &[]),
        two.to_str().unwrap(),
    );
    let sources = sources(&repository);
    let are_of = |data: &Path| {
        sources
            .iter()
            .filter(|one| one.ends_with(data.to_str().unwrap()))
            .count()
    };
    assert_eq!((are_of(&one), are_of(&two)), (2, 1), "{sources:?}");
}

#[test]
fn a_server_that_was_set_up_anew_is_another() {
    let server = mysql_8_0_15();
    let fs = LoopFs::xfs(2 * GIB);
    let (data, repository) = (fs.join("data"), fs.join("repository"));
    begin_and_end(&server, &data);
    assert_eq!(of_stopped(&data, &repository, &[]).code, Some(0));
    assert_eq!(
        of_stopped(&data, &repository, &[]).code,
        Some(0),
        "it is the same one"
    );
    std::fs::remove_file(data.join("auto.cnf")).unwrap();
    let running = server.start(&data, &[]);
    let refused = of_running(running.socket(), &repository, &[]);
    assert_refused(&refused, "server_uuid was");
    running.stop(Duration::from_secs(60)).unwrap();
    assert_refused(&of_stopped(&data, &repository, &[]), "server_uuid was");
    assert_eq!(
        of_stopped(&data, &repository, &["--new-source"]).code,
        Some(0)
    );
    assert_eq!(
        of_stopped(&data, &repository, &[]).code,
        Some(0),
        "once is enough"
    );
}
