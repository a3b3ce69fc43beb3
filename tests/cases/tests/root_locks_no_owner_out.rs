//! Can an account keep using its own repository after root wrote into it?

use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::account;
use evenkeel_testkit::servers::give_to_server;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A disk image and a repository for it, both of an account without powers.
struct Theirs {
    evenkeel: Evenkeel,
    scratch: Scratch,
    image: PathBuf,
    repository: PathBuf,
}

impl Theirs {
    fn new() -> Self {
        let scratch = Scratch::new();
        let home = scratch.join("home");
        fs::create_dir(&home).unwrap();
        give_to_server(&home);
        let image = home.join("disk.img");
        fs::write(&image, vec![7; 1 << 20]).unwrap();
        give_to_server(&image);
        Self {
            evenkeel: Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test")),
            repository: home.join("repository"),
            scratch,
            image,
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.evenkeel.command(args);
        command
            .arg(&self.repository)
            .current_dir(self.scratch.path());
        command
    }

    fn by_root(&self, args: &[&str]) -> Ended {
        run(self.command(args))
    }

    fn by_owner(&self, args: &[&str]) -> Ended {
        run(as_owner(&self.command(args)))
    }

    fn backup(&self) -> [&str; 4] {
        [
            "backup",
            "--snapshot=copy",
            "--volume",
            self.image.to_str().unwrap(),
        ]
    }
}

/// The same command, by the account without powers.
fn as_owner(command: &Command) -> Command {
    let owner = account().expect("tests run as root");
    let mut lesser = Command::new("setpriv");
    lesser.arg(format!("--reuid={}", owner.uid));
    lesser.arg(format!("--regid={}", owner.gid));
    lesser.args(["--clear-groups", "--"]).env("HOME", "/");
    lesser.arg(command.get_program()).args(command.get_args());
    lesser
}

#[track_caller]
fn assert_done(ended: &Ended) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Returns what below a directory is not of its owner, or open to others.
fn strange(directory: &Path) -> String {
    let mut find = Command::new("find");
    find.arg(directory)
        .args(["(", "-user", "root", "-o", "-perm", "/077", ")"]);
    String::from_utf8(find.output().unwrap().stdout).unwrap()
}

#[test]
fn the_owner_continues() {
    let theirs = Theirs::new();
    assert_eq!(theirs.by_owner(&theirs.backup()).generation(), 1);
    fs::write(&theirs.image, vec![8; 1 << 20]).unwrap();
    assert_eq!(theirs.by_root(&theirs.backup()).generation(), 2);
    assert_done(&theirs.by_root(&["verify", "--all"]));
    assert_eq!(strange(&theirs.repository), "");
    assert_eq!(theirs.by_owner(&theirs.backup()).generation(), 3);
    assert_done(&theirs.by_owner(&["verify", "--all"]));
    assert_done(&theirs.by_owner(&["forget", "--keep-last=1", "--execute"]));
    assert_done(&theirs.by_owner(&["prune", "--execute"]));
}

#[test]
fn files_are_not_promised_to_others_without_root() {
    let theirs = Theirs::new();
    assert_eq!(theirs.by_owner(&theirs.backup()).generation(), 1);
    let target = theirs.repository.with_file_name("restored");
    let named = target.to_str().unwrap();
    let refused = theirs.by_owner(&["restore", "--target", named, "--owner=root"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused
            .message()
            .contains("only root can give files to 'root'"),
        "{refused:?}"
    );
    assert!(!target.exists());
    let own = account().unwrap();
    let own = format!("--owner={}:{}", own.uid, own.gid);
    assert_done(&theirs.by_owner(&["restore", "--target", named, &own]));
}
