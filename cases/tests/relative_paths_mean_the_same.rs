//! Do all verbs that start servers or read directories of their own take relative paths?

use evenkeel_cases::Site;
use evenkeel_cases::points::{add, archive, make_table, rows_of};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::mariadb_10_11;
use std::path::Path;
use std::process::Command;

struct Here<'a> {
    evenkeel: Evenkeel,
    site: &'a Site,
}

impl Here<'_> {
    /// Runs it in the directory that everything lies in.
    fn run(&self, args: &[&str]) -> Ended {
        self.run_command(self.evenkeel.command(args))
    }

    fn run_command(&self, mut command: Command) -> Ended {
        command.current_dir(self.site.fs.path());
        let ended = run(command);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended
    }

    /// The same with where the server is.
    fn ask(&self, args: &[&str]) -> Ended {
        let mut command = self.evenkeel.command(args);
        command.args(["--no-defaults", "-u", "root", "-S"]);
        command.arg(self.site.running().socket());
        self.run_command(command)
    }
}

#[test]
fn on_mariadb() {
    let mut site = Site::start(mariadb_10_11(), LoopFs::xfs(4 << 30), 20, &[]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut session = site.running().session().unwrap();
    make_table(&mut session);
    add(&mut session, 1);
    let here = Here {
        evenkeel: evenkeel.clone(),
        site: &site,
    };
    std::fs::create_dir(site.fs.join("d")).unwrap();
    here.ask(&["backup", "repository"]);
    let two = add(&mut session, 2);
    assert_eq!(archive(&evenkeel, &site, &[]).code, Some(0));
    here.run(&["verify", "--boot", "repository"]);
    here.run(&[
        "verify",
        "--boot",
        "--mount",
        "--scratch",
        "d/s",
        "repository",
    ]);
    here.run(&["restore", "repository", "--target", "d/plain"]);
    here.run(&[
        "restore",
        "repository",
        "--target",
        "d/two",
        "--to",
        &two.moved(0),
    ]);
    here.ask(&["dump", "--database", "points", "--output", "d/dump"]);
    session.run("DROP DATABASE points").unwrap();
    here.ask(&["load", "d/dump"]);
    let rows = session.value("SELECT GROUP_CONCAT(id ORDER BY id) FROM points.n");
    assert_eq!(rows.unwrap().as_deref(), Some("1,2"));
    drop(session);
    site.kill();
    assert_eq!(rows_of(&site, &site.fs.join("d/plain")), "1");
    assert_eq!(rows_of(&site, &site.fs.join("d/two")), "1,2");
    assert!(!Path::new("d").exists());
}
