//! Can another account on this host read what a server holds in anything that evenkeel writes?

use evenkeel_cases::Site;
use evenkeel_cases::points::{add, archive, make_table};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

/// An account that has nothing.
const NOBODY: &str = "65534";

struct Here<'a> {
    evenkeel: Evenkeel,
    site: &'a Site,
}

impl Here<'_> {
    /// Runs it as in a shell that leaves everything open to everybody.
    fn run(&self, args: &[&str]) -> Ended {
        let program = self.evenkeel.command(args);
        let mut open = Command::new("/bin/sh");
        open.args(["-c", "umask 0; exec \"$0\" \"$@\""]);
        open.arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            open.env(name, value.unwrap_or(OsStr::new("")));
        }
        open.current_dir(self.site.fs.path());
        let ended = run(open);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    }

    /// The same with where the server is.
    fn ask(&self, args: &[&str]) -> Ended {
        let socket = self.site.running().socket();
        let server = [
            "--no-defaults",
            "-u",
            "root",
            "-S",
            socket.to_str().unwrap(),
        ];
        self.run(&[args, &server].concat())
    }
}

/// Returns the files below `directory` that the account can read.
fn read_by_nobody(directory: &Path) -> String {
    let found = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .arg("find")
        .arg(directory)
        .args(["-type", "f", "-readable"])
        .output()
        .unwrap();
    String::from_utf8(found.stdout).unwrap()
}

/// Returns the files below `directory` that others may read once they get there.
fn open_below(directory: &Path) -> String {
    let found = Command::new("find")
        .arg(directory)
        .args(["-type", "f", "-perm", "/077"])
        .output()
        .unwrap();
    String::from_utf8(found.stdout).unwrap()
}

#[test]
fn neither_backups_nor_dumps_nor_logs() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(4 << 30), 20, &[]);
    let everybody = Permissions::from_mode(0o755);
    fs::set_permissions(site.fs.path(), everybody.clone()).unwrap();
    let here = Here {
        evenkeel: Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test")),
        site: &site,
    };
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    add(&mut session, 1);
    assert_eq!(
        reported(&here),
        (
            "repository does not exist; the first backup creates it, closed to other users"
                .to_owned(),
            false
        )
    );
    here.ask(&["backup", "repository"]);
    assert_eq!(archive(&here.evenkeel, &site, &[]).code, Some(0));
    here.run(&["binlog", "extract", "repository", "logs"]);
    here.ask(&["dump", "--database", "points", "--output", "dump"]);
    // A directory that somebody made for it, open to all.
    fs::DirBuilder::new()
        .mode(0o777)
        .create(site.fs.join("made"))
        .unwrap();
    fs::set_permissions(site.fs.join("made"), Permissions::from_mode(0o777)).unwrap();
    here.ask(&["dump", "--database", "points", "--output", "made"]);
    for written in ["repository", "logs", "dump", "made"] {
        let directory = site.fs.join(written);
        assert!(fs::read_dir(&directory).unwrap().next().is_some());
        assert_eq!(read_by_nobody(&directory), "", "{written}");
        assert_eq!(open_below(&directory), "", "{written}");
    }
    // The helper can read what is open.
    fs::write(site.fs.join("open"), "x").unwrap();
    assert!(read_by_nobody(site.fs.path()).contains("open"));
    assert!(open_below(site.fs.path()).contains("open"));

    // What an earlier version left open is closed by the next run.
    fs::set_permissions(site.fs.join("repository"), everybody).unwrap();
    let open = "repository can be read by other users (0755); the next backup closes it";
    assert_eq!(reported(&here), (open.to_owned(), true));
    here.ask(&["backup", "repository"]);
    assert_eq!(read_by_nobody(&site.fs.join("repository")), "");
    let closed = "repository is closed to other users (0700)";
    assert_eq!(reported(&here), (closed.to_owned(), false));
}

/// What `doctor` says of the repository, and whether that is a warning.
fn reported(here: &Here<'_>) -> (String, bool) {
    let answer = here.ask(&["doctor", "repository"]).answer;
    let checks = answer["checks"].as_array().unwrap();
    let mut checks = checks.iter().filter(|check| check["name"] == "repository");
    let check = checks.next().unwrap();
    let found = check["found"].as_str().unwrap();
    (found.to_owned(), check["warning"].as_bool().unwrap())
}

/// Its owner could lead what root writes elsewhere.
#[test]
fn root_dumps_into_no_directory_of_others() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(4 << 30), 20, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let theirs = site.fs.join("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65534), None).unwrap();
    let mut command = evenkeel.command(&["dump", "--no-defaults", "-u", "root", "--output"]);
    command.arg(&theirs).arg("-S").arg(site.running().socket());
    let ended = run(command);
    assert_eq!(ended.code, Some(14), "{ended:?}");
    let message = ended.answer["message"].as_str().unwrap_or_default();
    assert!(message.contains("belongs to another user"), "{ended:?}");
    assert!(fs::read_dir(&theirs).unwrap().next().is_none());
}
