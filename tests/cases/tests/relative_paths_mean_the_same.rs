//! Do all verbs that start servers or read directories of their own take paths as they are typed: relative, with
//! blanks and letters of other alphabets, through a link?

use evenkeel_cases::Site;
use evenkeel_cases::mounting::Mounting;
use evenkeel_cases::points::{add, archive, make_table, rows_of};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Everything is made in here.
const PLACE: &str = "zwei Wörter";
/// The way there by a link.
const LINK: &str = "link";

struct Here<'a> {
    evenkeel: Evenkeel,
    site: &'a Site,
}

impl Here<'_> {
    fn new(site: &Site) -> Here<'_> {
        fs::create_dir(site.fs.join(PLACE)).unwrap();
        symlink(PLACE, site.fs.join(LINK)).unwrap();
        for (name, program) in [
            ("server", site.server.binary.path.as_path()),
            ("tool", Path::new("/usr/bin/mariadb-backup")),
        ] {
            symlink(program, site.fs.join(PLACE).join(name)).unwrap();
        }
        Here {
            evenkeel: Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test")),
            site,
        }
    }

    /// Plans it in the directory that everything lies in.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.evenkeel.command(args);
        command.current_dir(self.site.fs.path());
        command
    }

    fn run(&self, args: &[&str]) -> Ended {
        let ended = run(self.command(args));
        assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
        ended
    }

    /// The same with where the server is.
    fn ask(&self, args: &[&str]) -> Ended {
        let socket = self.site.running().socket().display().to_string();
        self.run(&[args, &["--no-defaults", "-u", "root", "-S", &socket]].concat())
    }
}

#[test]
fn on_mariadb() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(4 << 30), 20, &[]);
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    add(&mut session, 1);
    let here = Here::new(&site);
    here.ask(&["doctor", "repository", "--snapshot-dir", PLACE]);
    here.ask(&["backup", "repository", "--snapshot-dir", PLACE]);
    let two = add(&mut session, 2);
    assert_eq!(archive(&here.evenkeel, &site, &[]).code, Some(0));
    here.run(&["binlog", "extract", "repository", "link/logs"]);
    let server = "--server-binary=link/server";
    here.run(&["verify", "--boot", "repository", server]);
    here.run(&[
        "verify",
        "--boot",
        "--mount",
        "--scratch",
        "zwei Wörter/s",
        "repository",
    ]);
    here.run(&["restore", "repository", "--target", "link/plain"]);
    here.run(&[
        "restore",
        "repository",
        "--target",
        "zwei Wörter/two",
        "--to",
        &two.moved(0),
        server,
    ]);
    here.ask(&["dump", "--database", "points", "--output", "link/dump"]);
    session.run("DROP DATABASE points").unwrap();
    here.ask(&["load", "zwei Wörter/dump"]);
    let rows = session.value("SELECT GROUP_CONCAT(id ORDER BY id) FROM points.n");
    assert_eq!(rows.unwrap().as_deref(), Some("1,2"));
    drop(session);
    site.kill();
    assert_eq!(rows_of(&site, &site.fs.join(PLACE).join("plain")), "1");
    assert_eq!(rows_of(&site, &site.fs.join(PLACE).join("two")), "1,2");
    assert!(!Path::new(PLACE).exists() && !Path::new(LINK).exists());
}

/// A kept snapshot is found again, however the directory is typed that it lies in.
#[test]
fn what_a_snapshot_directory_keeps_is_found_again() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(4 << 30), 2_000, &[]);
    let here = Here::new(&site);
    let whole = site.fs.join(PLACE).display().to_string();
    let first = here.ask(&["backup", "repository", "--snapshot-dir", LINK]);
    let all = first.answer["bytes_read"].as_u64().unwrap();
    for (repository, place) in [("./repository", PLACE), ("link/../repository", &whole)] {
        let next = here.ask(&["backup", repository, "--snapshot-dir", place]);
        let read = next.answer["bytes_read"].as_u64().unwrap();
        assert!(read < all / 2, "{place}: {next:?}");
    }
}

#[test]
fn the_servers_own_tool() {
    let site = Site::start(mariadb_10_11(), LoopFs::xfs(4 << 30), 20, &[]);
    let here = Here::new(&site);
    let (typed, linked) = (
        "--engine-tool=./zwei Wörter/tool",
        "--engine-tool=link/tool",
    );
    here.ask(&["backup", "link/r", "--snapshot=engine", typed]);
    here.run(&["restore", "link/r", "--target=link/restored", linked]);
    here.run(&["verify", "zwei Wörter/r", "--boot", typed]);
    let place = site.fs.join("mnt");
    fs::create_dir(&place).unwrap();
    let words = [
        "mount",
        "link/r",
        "mnt",
        "--writable-scratch=link/w",
        linked,
    ];
    let mounting = Mounting::run(here.command(&words), &place);
    assert!(place.join("data/ibdata1").exists());
    let _ = mounting.end();
}
