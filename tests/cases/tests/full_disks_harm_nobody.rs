//! Does a backup that runs out of space, or may not write, say so, leave nothing, and go on when
//! there is space again?

use evenkeel_cases::Site;
use evenkeel_cases::leftovers::{assert_at_most_the_base, assert_no_unfinished, assert_unharmed};
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{LoopFs, Marks};
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

struct Case {
    site: Site,
    repository: LoopFs,
    evenkeel: Evenkeel,
}

impl Case {
    fn start(fs: LoopFs, repository: LoopFs) -> Self {
        let site = Site::start(mariadb_10_11(), fs, 500, &[]);
        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        Self {
            site,
            repository,
            evenkeel,
        }
    }

    /// What no compression makes small.
    fn add_noise(&self, mebibytes: u32) {
        let mut session = self.site.running().session().unwrap();
        session
            .run("CREATE TABLE bank.noise (id INT PRIMARY KEY AUTO_INCREMENT, b BLOB)")
            .unwrap();
        for _ in 0..mebibytes {
            let some = vec!["(RANDOM_BYTES(1024))"; 1024].join(",");
            session
                .run(&format!("INSERT INTO bank.noise (b) VALUES {some}"))
                .unwrap();
        }
    }

    fn command(&self) -> Command {
        let mut command = self
            .evenkeel
            .command(&["backup", "--no-defaults", "-u", "root"]);
        command
            .arg("-S")
            .arg(self.site.running().socket())
            .arg(self.repository.join("r"));
        command
    }

    fn assert_failed(&self, ended: &Ended, why: &str) {
        // Refused, when it is found before anything is done.
        assert!(matches!(ended.code, Some(1 | 14)), "{ended:?}");
        assert!(
            ended.answer.to_string().to_lowercase().contains(why),
            "{ended:?}"
        );
        assert_unharmed(self.site.running(), why);
        assert_at_most_the_base(self.site.fs.path(), why);
        assert_no_unfinished(&self.repository.join("r"), why);
    }

    fn assert_resumes(&self) {
        let ended = run(self.command());
        let generation = ended.generation();
        let mut request = evenkeel_backup::restore::RestoreRequest::new(
            self.repository.join("r"),
            Some(generation),
            &self.site.fs.join("restored"),
        );
        request.workers = 2;
        let cancel = evenkeel_op::Cancel::new();
        evenkeel_backup::restore::restore(&request, evenkeel_cases::quiet(&cancel)).unwrap();
        let marks = Marks::default();
        self.site
            .check_bank_at(&self.site.fs.join("restored"), &marks, &marks);
        assert_unharmed(self.site.running(), "afterwards");
    }
}

fn allocate(path: &Path, bytes: u64) -> bool {
    let Ok(file) = File::create(path) else {
        return false;
    };
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes).is_ok()
}

#[test]
fn of_the_repository() {
    let case = Case::start(LoopFs::xfs(4 * GIB), LoopFs::ext4(96 * MIB));
    case.add_noise(24);
    let ballast = case.repository.join("ballast");
    assert!(allocate(&ballast, 72 * MIB));
    for _ in 0..2 {
        let ended = run(case.command());
        case.assert_failed(&ended, "no space left");
        let hints = ended.answer["hints"].to_string();
        assert!(hints.contains("space"), "{hints}");
    }
    fs::remove_file(ballast).unwrap();
    case.assert_resumes();
}

#[test]
fn of_a_read_only_repository() {
    let case = Case::start(LoopFs::xfs(4 * GIB), LoopFs::ext4(256 * MIB));
    case.repository.set_read_only(true);
    case.assert_failed(&run(case.command()), "read-only");
    case.repository.set_read_only(false);
    assert_eq!(run(case.command()).generation(), 1);
    case.repository.set_read_only(true);
    case.assert_failed(&run(case.command()), "read-only");
    // What is there can still be read.
    let target = case.site.fs.join("read");
    let ended = run(case
        .evenkeel
        .restore(&case.repository.join("r"), &target, &[]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    case.repository.set_read_only(false);
    case.assert_resumes();
}

/// There is hardly a block left for the clones. Either they fit, or the run says what is missing.
#[test]
fn of_the_servers_filesystem() {
    let case = Case::start(LoopFs::xfs(512 * MIB), LoopFs::ext4(256 * MIB));
    let mut ballast = Vec::new();
    let mut size = 256 * MIB;
    while size >= 4096 {
        let path = case.site.fs.join(format!("ballast-{}", ballast.len()));
        if !allocate(&path, size) {
            size /= 2;
        }
        ballast.push(path);
    }
    let ended = run(case.command());
    if ended.code != Some(0) {
        assert!(matches!(ended.code, Some(1 | 14)), "{ended:?}");
        assert!(
            ended
                .answer
                .to_string()
                .to_lowercase()
                .contains("no space left"),
            "{ended:?}"
        );
    }
    for path in ballast {
        let _ = fs::remove_file(path);
    }
    assert_unharmed(case.site.running(), "with a full filesystem");
    assert_at_most_the_base(case.site.fs.path(), "with a full filesystem");
    case.assert_resumes();
}

/// Any of the clones may be the first that does not fit, the trial before them too: then nothing else
/// copies the files in their place. (One that does not fit while the moment is prepared, and does then,
/// is no failure.)
#[test]
fn of_a_clone() {
    let case = Case::start(LoopFs::xfs(4 * GIB), LoopFs::ext4(256 * MIB));
    let command = case.command();
    for number in [2, 30, 60] {
        let mut traced = Command::new("strace");
        traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=ioctl", "-e"]);
        traced.arg(format!("inject=ioctl:error=ENOSPC:when={number}+"));
        traced.arg(command.get_program()).args(command.get_args());
        case.assert_failed(&run(traced), "no space left");
    }
    case.assert_resumes();
}
