//! A host of its own for a test: processes, mounts, network and name, with a root that lies on an XFS that clones, and
//! with a systemd of its own.
//! What this machine has installed is installed there; whatever is written there goes with it. Commands find a
//! server there by its default socket and port, as on a user's host.

mod mariadb;
mod network;
mod store;
mod systemd;

use evenkeel_testkit::LoopFs;
use evenkeel_testkit::servers::cache;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What the first process does.
const BEGIN: &str = include_str!("begin.sh");
/// What the one does that becomes systemd.
const BUILD: &str = include_str!("build.sh");

/// How long a test waits for what is started there.
const PATIENCE: Duration = Duration::from_secs(30);

/// How large its filesystem may become; the file of it is sparse.
const BYTES: u64 = 3 << 30;

/// A host, which ends with all that runs in it when it is dropped, or when the test is killed.
#[derive(Debug)]
pub struct House {
    /// Ends when its standard input is closed.
    first: Child,
    /// The process id of its systemd as this machine sees it.
    pid: String,
    /// The name of its control group.
    group: String,
    fs: LoopFs,
}

impl House {
    /// Where a line of shell begins: root's home.
    pub const HOME: &str = "/root";

    /// Builds a host called `name`, with `program` as `/usr/local/bin/evenkeel`.
    #[must_use]
    pub fn new(name: &str, program: &str) -> Self {
        Self::with_program_at("/usr/local/bin/evenkeel", name, program)
    }

    /// The same with the program elsewhere.
    #[must_use]
    pub fn with_program_at(place: &str, name: &str, program: &str) -> Self {
        Self::showing(&[format!("{program}={place}")], name)
    }

    /// Builds a host called `name` that sees these files and directories of this machine, `PATH=PLACE`, and cannot
    /// write into them.
    #[must_use]
    pub fn showing(seen: &[String], name: &str) -> Self {
        let fs = LoopFs::xfs(BYTES);
        // The servers there are other accounts', and its root is theirs too.
        fs::set_permissions(fs.path(), fs::Permissions::from_mode(0o755)).expect("a mode");
        let group = systemd::new_group();
        let mut unshare = Command::new("unshare");
        unshare
            .args(["--mount", "--pid", "--net", "--uts", "--ipc"])
            .args(["--fork", "--kill-child", "bash", "-c", BEGIN, "house"])
            .args([BUILD, &group])
            .arg(fs.path())
            .arg(name)
            .arg(cache())
            // What is installed there is known to be.
            .arg("/var/lib/dpkg")
            .args(seen)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut first = unshare.spawn().expect("unshare runs");
        let mut pid = String::new();
        let said = first.stdout.take().expect("its output");
        BufReader::new(said).read_line(&mut pid).expect("a line");
        assert!(!pid.is_empty(), "the host {name} cannot be built");
        let pid = pid.trim().to_owned();
        let house = Self {
            first,
            pid,
            group,
            fs,
        };
        house.wait_for_systemd();
        house
    }

    /// Returns where a file of the host is for the test; not one in `/usr`, `/etc` or `/run`.
    #[must_use]
    pub fn path(&self, inside: &str) -> PathBuf {
        self.fs.join(inside.trim_start_matches('/'))
    }

    /// Makes its disk one that rotates, whatever it lies on.
    pub fn make_disk_rotate(&self) {
        let device = self.fs.path().metadata().expect("a directory").dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let setting = format!("/sys/dev/block/{major}:{minor}/queue/rotational");
        fs::write(&setting, "1").unwrap_or_else(|e| panic!("{setting}: {e}"));
    }

    /// Plans a line of shell as root of that host types it.
    #[must_use]
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args([
                "--target", &self.pid, "--mount", "--pid", "--net", "--cgroup",
            ])
            .args(["--uts", "--ipc", "--root"])
            .arg(format!("--wdns={}", Self::HOME))
            .arg("--")
            .args(["bash", "-c", line])
            .env_clear()
            .env("HOME", Self::HOME)
            .env("USER", "root")
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    /// Runs a line of shell that may fail.
    #[must_use]
    pub fn output(&self, line: &str) -> Output {
        self.command(line).output().expect("nsenter runs")
    }

    /// Runs a line of shell, and returns what it printed. Panics when it fails.
    #[track_caller]
    pub fn run(&self, line: &str) -> String {
        let output = self.output(line);
        let [printed, said] = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        if !output.status.success() {
            let journal = self.output("journalctl -q -n 40 --no-pager -o cat").stdout;
            let journal = String::from_utf8_lossy(&journal);
            panic!(
                "{line}\n{}\n{printed}{said}The journal:\n{journal}",
                output.status
            );
        }
        printed
    }

    /// Writes a file, and makes its directories.
    #[track_caller]
    pub fn write(&self, path: &str, text: &str, mode: &str) {
        self.put(path, text.as_bytes(), mode);
    }

    /// Copies a file of this machine into it.
    #[track_caller]
    pub fn bring(&self, file: &Path, path: &str) {
        let bytes = fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        self.put(path, &bytes, "644");
    }

    #[track_caller]
    fn put(&self, path: &str, bytes: &[u8], mode: &str) {
        let line = format!("mkdir -p $(dirname {path}) && cat >{path} && chmod {mode} {path}");
        let mut command = self.command(&line);
        let mut cat = command.stdin(Stdio::piped()).spawn().expect("a process");
        let mut input = cat.stdin.take().expect("its input");
        input.write_all(bytes).expect("all of it");
        drop(input);
        assert!(cat.wait().expect("a process").success(), "{path}");
    }

    /// Waits until a line of shell succeeds.
    #[track_caller]
    pub fn until(&self, line: &str) {
        let log = || self.run("tail -n 20 /var/log/*.log; journalctl -q -n 40 --no-pager");
        let end = Instant::now() + PATIENCE;
        while !self.output(line).status.success() {
            assert!(Instant::now() < end, "in vain: {line}\n{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts what runs on by itself; `name` is that of its log below `/var/log`.
    pub fn start(&self, name: &str, line: &str) {
        self.run(&format!(
            "setsid --fork {line} >>/var/log/{name}.log 2>&1 </dev/null"
        ));
    }
}

impl Drop for House {
    fn drop(&mut self) {
        drop(self.first.stdin.take());
        // With the first process all others go, and with them their mounts.
        let _ = self.first.wait();
        systemd::remove_group(&self.group);
    }
}
