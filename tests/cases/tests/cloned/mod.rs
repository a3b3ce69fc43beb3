//! A server that is cloned, and what became of the clone.

use evenkeel_cases::Site;
use evenkeel_cases::leftovers::assert_unharmed;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_server::launch::Running;
use evenkeel_testkit::{LoopFs, TestServer};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const GIB: u64 = 1 << 30;

/// Such a server, and the program.
pub(crate) struct Case {
    pub(crate) site: Site,
    pub(crate) evenkeel: Evenkeel,
}

impl Case {
    pub(crate) fn start(server: TestServer, fs: LoopFs, accounts: u32) -> Self {
        Self::of(Site::start(server, fs, accounts, &[]))
    }

    pub(crate) fn of(site: Site) -> Self {
        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        Self { site, evenkeel }
    }

    /// Plans a clone, started in the directory above the server's.
    pub(crate) fn plan(&self, flags: &[&str]) -> Command {
        let mut command = self
            .evenkeel
            .command(&["clone", "--no-defaults", "-u", "root"]);
        command
            .arg("-S")
            .arg(self.site.running().socket())
            .args(flags)
            .current_dir(self.site.fs.path());
        command
    }

    /// Clones under traffic, starts a server on the clone, and checks that it has the bank of one point in time.
    pub(crate) fn clone_and_check(&self, target: &str, command: Command) -> Ended {
        let traffic = self.site.traffic(2);
        traffic.wait_for(50);
        let before = traffic.marks();
        let ended = run(command);
        let after = traffic.marks();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        traffic.wait_for(20);
        traffic.assert_undisturbed();
        drop(traffic.stop());
        assert_unharmed(self.site.running(), "after a clone");
        self.site.assert_clean("after a clone");
        let place = self.site.fs.join(target);
        assert_eq!(ended.answer["target"], place.to_str().unwrap(), "{ended:?}");
        assert_eq!(ended.answer["schema"], "evenkeel/clone/1");
        self.assert_closed(&place);
        self.site.check_bank_at(&place, &before, &after);
        ended
    }

    /// Others have no way in that they have not on the server that was cloned.
    pub(crate) fn assert_closed(&self, target: &Path) {
        let status = |path: &Path| {
            let found = fs::metadata(path).unwrap();
            (found.mode() & 0o7777, found.uid(), found.gid())
        };
        let data = &self.site.launch.datadir;
        assert_eq!(status(target), status(data));
        for name in ["ibdata1", "mysql", "bank", "bank/ledger.ibd"] {
            assert_eq!(
                status(&target.join(name)),
                status(&data.join(name)),
                "{name}"
            );
        }
    }
}

/// Starts a server on a clone; it is not stopped.
pub(crate) fn start_on(case: &Case, target: &str, more: &[String]) -> Running {
    let mut launch = case.site.launch.clone();
    launch.datadir = case.site.fs.join(target);
    launch.extra_args.extend(more.iter().cloned());
    case.site.server.run(&launch)
}

/// The names beside the data directory that a clone may have left.
pub(crate) fn leftovers(case: &Case) -> Vec<PathBuf> {
    let entries = fs::read_dir(case.site.fs.path()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.contains("evenkeel-restor")
    };
    paths.filter(is_ours).collect()
}
