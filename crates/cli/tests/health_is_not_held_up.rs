//! Does nothing that takes long keep `health run` from checking, answering and ending: no reader that does not read, no
//! disk that hangs?

mod probed;

use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{LoopFs, Scratch, until};
use probed::{PROGRAM, Probed};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A pipe that has no room left. Whoever drops its other end ends it.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (from, to) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
    while rustix::io::write(&to, &[b'x'; 4096]) != Err(Errno::AGAIN) {}
    // Whoever writes into it waits, as into every pipe.
    fcntl_setfl(&to, OFlags::empty()).unwrap();
    (from, to)
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// A `health run` in the background.
struct Prober {
    child: Child,
    port: u16,
}

impl Prober {
    fn start(watched: &Probed, options: &[&str], out: Stdio, err: Stdio) -> Self {
        let port = free_port();
        let mut command = Command::new(PROGRAM);
        command.args(["health", "run", "--no-defaults", "-uroot", "--json"]);
        command.args([
            "--interval=500ms",
            "--timeout=500ms",
            "--hold=0s",
            "--expect=writable",
        ]);
        command.arg(format!("--http=127.0.0.1:{port}"));
        command.arg(format!("--socket={}", watched.socket().display()));
        command.args(options).env_remove("NOTIFY_SOCKET");
        let child = command.stdout(out).stderr(err).spawn().unwrap();
        Self { child, port }
    }

    fn get(&self) -> Option<(u16, Value)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.write_all(b"GET /any HTTP/1.0\r\n\r\n").ok()?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply).ok()?;
        let (head, body) = reply.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, serde_json::from_str(body).unwrap_or_default()))
    }

    /// Waits until it says so, and for this cause.
    fn until(&self, what: &str, status: u16, cause: &str) {
        let mut seen = None;
        until(what, || {
            seen = self.get();
            let now = seen.as_ref();
            now.is_some_and(|(now, body)| {
                *now == status && body["reasons"][0]["cause"].as_str().unwrap_or_default() == cause
            })
        });
    }

    /// It sees a server that hangs, and that it goes on, again and again.
    fn goes_on(&self, watched: &Probed) {
        let server = Pid::from_raw(watched.running().pid()).unwrap();
        for _ in 0..3 {
            self.until("it is well", 200, "");
            kill_process(server, Signal::STOP).unwrap();
            self.until("it hangs", 503, "hung");
            kill_process(server, Signal::CONT).unwrap();
        }
        self.until("it is well", 200, "");
        watched.sql("SET GLOBAL read_only = ON");
        self.until("it is read-only", 503, "role");
        watched.sql("SET GLOBAL read_only = OFF");
        self.until("it is well", 200, "");
    }

    fn ends(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn readers_that_do_not_read_are_not_waited_for() {
    let watched = Probed::new(&mariadb_10_11(), &[]);
    let (_out, to_out) = full_pipe();
    let (_err, to_err) = full_pipe();
    // Each of them, and both.
    let prober = Prober::start(&watched, &[], to_out.into(), Stdio::null());
    prober.goes_on(&watched);
    assert_eq!(prober.ends(), Some(143));
    let prober = Prober::start(&watched, &[], Stdio::null(), to_err.into());
    prober.goes_on(&watched);
    assert_eq!(prober.ends(), Some(143));
    let (_out, to_out) = full_pipe();
    let (_err, to_err) = full_pipe();
    let prober = Prober::start(&watched, &[], to_out.into(), to_err.into());
    prober.goes_on(&watched);
    assert_eq!(prober.ends(), Some(143));
}

#[test]
fn changes_that_nobody_read_are_missing_and_said_to_be() {
    let watched = Probed::new(&mariadb_10_11(), &[]);
    let (_out, to_out) = full_pipe();
    let prober = Prober::start(&watched, &["--count=3"], to_out.into(), Stdio::piped());
    let mut prober = prober;
    let mut said = String::new();
    let mut err = prober.child.stderr.take().unwrap();
    err.read_to_string(&mut said).unwrap();
    // The server is up, but not all was done.
    assert_eq!(prober.child.wait().unwrap().code(), Some(1), "{said}");
    assert!(said.contains("missing on standard output"), "{said}");
}

/// Keeps everything from being written to a filesystem, as a disk that hangs does.
struct Frozen<'a>(&'a Path);

impl<'a> Frozen<'a> {
    fn new(path: &'a Path) -> Self {
        let done = Command::new("fsfreeze").arg("--freeze").arg(path).status();
        assert!(done.unwrap().success());
        Self(path)
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze")
            .arg("--unfreeze")
            .arg(self.0)
            .status();
    }
}

#[test]
fn a_disk_that_hangs_delays_no_verdict() {
    let watched = Probed::new(&mariadb_10_11(), &[]);
    let disk = LoopFs::ext4(64 << 20);
    let room = Scratch::new();
    let state = format!("--state-directory={}", disk.join("state").display());
    let control = format!("--control={}", room.join("run/health.sock").display());
    let prober = Prober::start(&watched, &[&state, &control], Stdio::null(), Stdio::null());
    prober.until("it is well", 200, "");
    let frozen = Frozen::new(disk.path());
    prober.goes_on(&watched);
    // It is told that it counts, but may be forgotten, or waits for that.
    let mut drain = Command::new(PROGRAM)
        .args(["health", "drain", &control])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    prober.until("it is drained", 404, "order");
    drop(frozen);
    drain.wait().unwrap();
    let kept = disk.join("state/health.json");
    until("it is kept after all", || {
        let kept = std::fs::read_to_string(&kept).unwrap_or_default();
        kept.contains("drained by hand")
    });
    assert_eq!(prober.ends(), Some(143));
}
