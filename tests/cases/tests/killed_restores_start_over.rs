//! Is a restore that is killed at any of its steps never taken for a data directory, and does the
//! next one succeed, in a plain directory and in a mount point?

use evenkeel_cases::Site;
use evenkeel_cases::failpoints::RESTORE;
use evenkeel_cases::leftovers::{assert_same_tree, names_in};
use evenkeel_cases::program::{Evenkeel, killed_at, run};
use evenkeel_op::Cancel;
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::{
    copy_tree, give_to_server, mariadb_10_11, mysql_5_7_22, mysql_8_0_15,
};
use evenkeel_testkit::{LoopFs, Marks, TestServer};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const GIB: u64 = 1 << 30;

struct Case {
    site: Site,
    evenkeel: Evenkeel,
    marks: Marks,
}

impl Case {
    /// A repository with one generation, and what it restores to.
    fn start(server: TestServer) -> Self {
        let mut site = Site::start(server, LoopFs::xfs(4 * GIB), 500, &[]);
        let traffic = site.traffic(2);
        traffic.wait_for(50);
        let marks = traffic.stop();
        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
        site.kill();
        site.restore(None, "whole").unwrap();
        Self {
            site,
            evenkeel,
            marks,
        }
    }

    fn restore(&self, target: &Path, point: Option<&str>) -> evenkeel_cases::program::Ended {
        let command = self
            .evenkeel
            .restore(&self.site.repository(), target, &["--threads=2"]);
        run(match point {
            Some(point) => killed_at(command, point),
            None => command,
        })
    }

    fn at_each(&self, target: &Path, part: Part, clear: impl Fn()) {
        for point in share("kill points of a restore", &RESTORE, part) {
            println!("killed at {point}");
            let killed = self.restore(target, Some(point));
            assert_eq!(
                killed.signal,
                Some(9),
                "{point} was never reached: {killed:?}"
            );
            if self.is_whole(target) {
                // It was killed when all was done: another restore must not touch it.
                assert!(point.ends_with("renamed"), "{point}");
                assert_eq!(self.restore(target, None).code, Some(2));
                self.assert_whole(target, point);
                clear();
                continue;
            }
            for half in self.halves(target) {
                self.assert_refused(&half, point);
            }
            let again = self.restore(target, None);
            assert_eq!(again.code, Some(0), "{point}: {again:?}");
            self.assert_whole(target, point);
            clear();
        }
    }

    /// Directories that somebody might point a server at.
    fn halves(&self, target: &Path) -> Vec<PathBuf> {
        let parent = target.parent().unwrap();
        let staging = |dir: &Path| {
            let names = names_in(dir);
            let ours = names
                .iter()
                .filter(|name| name.ends_with("evenkeel-restoring"));
            ours.map(|name| dir.join(name)).collect::<Vec<_>>()
        };
        let mut halves = [staging(parent), staging(target)].concat();
        if target.exists() && !names_in(target).is_empty() {
            halves.push(target.to_owned());
        }
        assert!(!halves.is_empty(), "nothing of the killed run was found");
        // One that only lacks its name is none.
        halves.retain(|half| !self.is_whole(half));
        halves
    }

    fn is_whole(&self, target: &Path) -> bool {
        let files = |top| evenkeel_cases::leftovers::all_files(top);
        !names_in(target).is_empty() && files(target) == files(&self.site.fs.join("whole"))
    }

    fn assert_whole(&self, target: &Path, point: &str) {
        assert_same_tree(&self.site.fs.join("whole"), target, point);
    }

    /// No server takes a half directory for its own, and none makes a new database in it.
    fn assert_refused(&self, half: &Path, point: &str) {
        let copy = self.site.fs.join("copy");
        copy_tree(half, &copy);
        // Not for lack of rights.
        give_to_server(&copy);
        let mut launch = self.site.launch.clone();
        launch.datadir.clone_from(&copy);
        let started = launch.start(Duration::from_secs(60), &Cancel::new());
        let Err(error) = started else {
            panic!("{point}: a server started on {}", half.display())
        };
        assert!(
            error.to_string().contains("did not start"),
            "{point}: {error}"
        );
        fs::remove_dir_all(copy).unwrap();
    }
}

/// The servers share the points, and none has the same ones in both places.
fn case(server: TestServer, nth: usize) {
    let case = Case::start(server);
    let plain = case.site.fs.join("plain");
    case.at_each(&plain, Part::new(nth, 3), || {
        fs::remove_dir_all(&plain).unwrap()
    });

    // A data directory is often a mount point: the volume cannot be renamed onto.
    let volume = LoopFs::ext4(GIB);
    let clear = || {
        for name in names_in(volume.path()) {
            let path = volume.join(name);
            if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            }
            .unwrap();
        }
    };
    clear();
    case.at_each(volume.path(), Part::new((nth + 1) % 3, 3), clear);
    let last = case.restore(volume.path(), None);
    assert_eq!(last.code, Some(0), "{last:?}");
    case.site
        .check_bank_at(volume.path(), &case.marks, &case.marks);
}

#[test]
fn of_mariadb() {
    case(mariadb_10_11(), 0);
}

#[test]
fn of_mysql8() {
    case(mysql_8_0_15(), 1);
}

#[test]
fn of_mysql57() {
    case(mysql_5_7_22(), 2);
}

#[test]
fn files_in_the_way_stay() {
    let case = Case::start(mariadb_10_11());
    let volume = LoopFs::ext4(GIB);
    fs::write(volume.join("precious"), "x").unwrap();
    let ended = case.restore(volume.path(), None);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.message().contains("precious"), "{ended:?}");
    assert_eq!(names_in(volume.path()), ["lost+found", "precious"]);
}
