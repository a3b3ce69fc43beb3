//! Does `copy` notice whoever touches the files, and does `hook` believe no command that lies?

mod ground;

use evenkeel_op::ErrorKind;
use evenkeel_snapshot::{
    Atomicity, Changed, HookCommand, Layout, Method, Opened, Settings, assess, open,
};
use evenkeel_testkit::until;
use ground::{FILES, content, files, layout};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A data directory on whatever the temporary directory is on, and no server.
fn stopped() -> (tempfile::TempDir, Layout) {
    let root = tempfile::tempdir().unwrap();
    let datadir = root.path().join("mysql");
    fs::create_dir_all(datadir.join("bank")).unwrap();
    ground::write_version(&datadir, 1);
    let layout = Layout {
        server_running: false,
        page_bytes: 0,
        ..layout(&datadir)
    };
    (root, layout)
}

/// A process that has a file open, killed when dropped.
struct Holder(Child);

impl Holder {
    fn start(file: &Path, how: &str) -> Self {
        let ready = file.with_extension("ready");
        let command = format!(
            "exec 9{how}'{}'; : > '{}'; exec sleep 1000",
            file.display(),
            ready.display()
        );
        let holder = Self(Command::new("sh").args(["-c", &command]).spawn().unwrap());
        // The shell has the file open a moment before it becomes `sleep`, the name that is reported.
        let name = format!("/proc/{}/comm", holder.0.id());
        until("the file is open", || {
            ready.exists() && fs::read_to_string(&name).unwrap() == "sleep\n"
        });
        fs::remove_file(ready).unwrap();
        holder
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn refusal(layout: &Layout) -> String {
    let error = open(Method::Copy, layout, &Settings::default(), None)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    error.chain()
}

#[test]
fn a_copy_is_of_the_files_themselves() {
    let (_root, layout) = stopped();
    let mut copy = open(Method::Copy, &layout, &Settings::default(), None).unwrap();
    assert_eq!(copy.atomicity(), Atomicity::Stopped);
    let files = files(&layout.datadir);
    copy.take(&files).unwrap();
    let made = copy.instant().unwrap();
    let copy = copy.seal(made).unwrap();
    assert_eq!(copy.frozen_path(&files[0]), files[0].path);
    assert_eq!(copy.changed(&files[0]).unwrap(), Changed::Unknown);
    copy.check().unwrap().commit("one").unwrap();
}

#[test]
fn a_copy_notices_a_file_that_changes() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 3] = [
        ("written to", |path| {
            let file = OpenOptions::new().write(true).open(path).unwrap();
            let before = path.metadata().unwrap().modified().unwrap();
            file.write_all_at(b"x", 7).unwrap();
            // Even if its time of modification is put back.
            file.set_modified(before).unwrap();
        }),
        ("grown", |path| {
            OpenOptions::new()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(1 << 20)
                .unwrap()
        }),
        ("deleted", |path| fs::remove_file(path).unwrap()),
    ];
    for (what, change) in changes {
        let (_root, layout) = stopped();
        let mut copy = open(Method::Copy, &layout, &Settings::default(), None).unwrap();
        let files = files(&layout.datadir);
        copy.take(&files).unwrap();
        let made = copy.instant().unwrap();
        let copy = copy.seal(made).unwrap();
        copy.stayed_frozen().unwrap();
        // Timestamps of the filesystem are as coarse as the kernel's tick.
        std::thread::sleep(Duration::from_millis(20));
        change(&files[2].path);
        assert!(copy.check().is_err(), "a file was {what}");
    }
}

#[test]
fn a_copy_is_refused_while_a_server_runs() {
    let (_root, mut layout) = stopped();
    let table = layout.datadir.join(FILES[2]);
    {
        let _reader = Holder::start(&table, "<");
        open(Method::Copy, &layout, &Settings::default(), None).unwrap();
    }
    let mut copy = open(Method::Copy, &layout, &Settings::default(), None).unwrap();
    copy.take(&files(&layout.datadir)).unwrap();
    let made = copy.instant().unwrap();
    let copy = copy.seal(made).unwrap();
    let writer = Holder::start(&table, "<>");
    let reported = refusal(&layout);
    assert!(
        reported.contains(&format!("process {} (sleep)", writer.0.id())),
        "{reported}"
    );
    let reported = copy.stayed_frozen().unwrap_err().chain();
    assert!(reported.contains("started during the copy"), "{reported}");
    drop(writer);
    copy.check().unwrap();
    layout.server_running = true;
    assert!(refusal(&layout).contains("a server is running"));
}

/// Locks a file as servers do; nothing unless another test started it.
#[test]
fn locker() {
    let Ok(path) = std::env::var("LOCKER_FILE") else {
        return;
    };
    let path = PathBuf::from(path);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    rustix::fs::fcntl_lock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    fs::write(path.with_extension("locked"), "").unwrap();
    loop {
        std::thread::park();
    }
}

#[test]
fn a_copy_is_refused_while_ibdata1_is_locked() {
    let (root, layout) = stopped();
    // Locked through another name: nothing but the lock itself tells of it.
    let other = root.path().join("other");
    fs::hard_link(layout.datadir.join("ibdata1"), &other).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "locker"])
        .env("LOCKER_FILE", &other)
        .stdout(Stdio::null())
        .spawn();
    let locker = Holder(child.unwrap());
    until("it is locked", || other.with_extension("locked").exists());
    let reported = refusal(&layout);
    assert!(
        reported.contains(&format!("process {}", locker.0.id())),
        "{reported}"
    );
}

fn hook(layout: &Layout, create: &str) -> (Settings, Opened) {
    let scratch = layout.datadir.parent().unwrap().display().to_string();
    let settings = Settings {
        hook: Some(HookCommand {
            create: create.replace("SCRATCH", &scratch),
            release: Some(format!(
                "echo \"$EVENKEEL_OUTCOME\" > {scratch}/released; rm -r \"$EVENKEEL_SNAPSHOT\""
            )),
            timeout: Duration::from_secs(20),
        }),
        ..Settings::default()
    };
    let provider = open(Method::Hook, layout, &settings, None).unwrap();
    (settings, provider)
}

const COPY: &str = "cp -a \"$EVENKEEL_DATADIR\" SCRATCH/frozen; echo made; echo SCRATCH/frozen";

#[test]
fn a_hook_freezes_and_releases() {
    let (root, layout) = stopped();
    let released = || fs::read_to_string(root.path().join("released")).unwrap();
    let frozen = || {
        let (_, mut hook) = hook(&layout, COPY);
        ground::write_version(&layout.datadir, 1);
        let files = files(&layout.datadir);
        hook.take(&files).unwrap();
        let made = hook.instant().unwrap();
        let hook = hook.seal(made).unwrap();
        ground::write_version(&layout.datadir, 2);
        for (file, name) in files.iter().zip(FILES) {
            assert!(
                fs::read(hook.frozen_path(file)).unwrap() == content(name, 1),
                "{name}"
            );
        }
        hook
    };
    frozen().check().unwrap().commit("one").unwrap();
    assert_eq!(released(), "kept\n");
    frozen().abandon().unwrap();
    assert_eq!(released(), "abandoned\n");
    fs::remove_file(root.path().join("released")).unwrap();
    drop(frozen());
    assert_eq!(released(), "abandoned\n");
    assert!(!root.path().join("frozen").exists());
}

#[test]
fn a_hook_that_lies_is_not_believed() {
    let lies = [
        ("true", "did not print"),
        ("echo frozen", "did not print"),
        ("echo /nonexistent/frozen", "failed to find"),
        ("echo SCRATCH/mysql/ibdata1", "not a directory"),
        ("echo \"$EVENKEEL_DATADIR\"", "live data directory"),
        (
            "ln -s mysql SCRATCH/link; echo SCRATCH/link",
            "live data directory",
        ),
        ("echo no space left >&2; exit 9", "no space left"),
    ];
    for (command, expected) in lies {
        let (_root, layout) = stopped();
        let (_, mut hook) = hook(&layout, command);
        hook.take(&files(&layout.datadir)).unwrap();
        let reported = hook.instant().unwrap_err().chain();
        assert!(reported.contains(expected), "{command}: {reported}");
    }
    // One that forgets a file.
    let (_root, layout) = stopped();
    let (_, mut hook) = hook(
        &layout,
        &COPY.replace("; echo made", "; rm SCRATCH/frozen/ib_*"),
    );
    hook.take(&files(&layout.datadir)).unwrap();
    let made = hook.instant().unwrap();
    let reported = hook.seal(made).unwrap_err().chain();
    assert!(
        reported.contains("lacks") && reported.contains("ib_logfile0"),
        "{reported}"
    );
}

#[test]
fn a_hook_does_not_cover_files_elsewhere() {
    let (root, mut layout) = stopped();
    layout.dirs.push(root.path().to_owned());
    let (settings, _) = hook(&stopped().1, "true");
    let error = open(Method::Hook, &layout, &settings, None)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
}

#[test]
fn each_method_is_assessed_with_its_reason() {
    let (_root, layout) = stopped();
    // `/proc` is a filesystem that can do nothing.
    let nothing = Layout {
        datadir: "/proc/self".into(),
        dirs: vec![],
        server_running: true,
        page_bytes: 0,
        volumes: Vec::new(),
    };
    for assessment in assess(&nothing, &Settings::default()) {
        assert!(!assessment.usable, "{assessment:?}");
        assert!(!assessment.reason.is_empty());
    }
    let found = assess(&layout, &Settings::default());
    let names: Vec<_> = found.iter().map(|assessment| assessment.provider).collect();
    assert_eq!(names, ["btrfs", "reflink", "lvm", "copy", "hook"]);
    assert!(!found[2].usable && found[2].reason.contains("logical volume"));
    assert!(found[3].usable && !found[3].change_list);
    assert!(found[4].reason.contains("--hook"));
    let (settings, _) = hook(&layout, "true");
    assert!(assess(&layout, &settings)[4].usable);
}
