//! Does a stopped server always run again, and does a pause that was none fail?

use evenkeel_op::{Error, ErrorKind};
use evenkeel_snapshot::pause::{LeftStopped, Target, heal, paused};
use evenkeel_testkit::until;
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

/// A process that runs all the time, killed when dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        Self(Command::new("yes").stdout(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    fn target(&self) -> Target {
        Target::now(self.pid()).unwrap()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn state(pid: i32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

fn signal(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Returns the watchdogs that this thread started.
fn watchdogs() -> Vec<i32> {
    watchdogs_among(&fs::read_to_string("/proc/thread-self/children").unwrap())
}

/// Returns the watchdogs that any thread of a process started.
fn watchdogs_of(pauser: u32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pauser}/task")).unwrap();
    let children = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children"));
    threads
        .flat_map(|thread| watchdogs_among(&children(thread.unwrap()).unwrap()))
        .collect()
}

fn watchdogs_among(children: &str) -> Vec<i32> {
    let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
    let is_watchdog = |pid: &i32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name == "evenkeel-pause\n")
    };
    children.filter(is_watchdog).collect()
}

#[test]
fn after_the_work() {
    let busy = Busy::start();
    let done = paused(&busy.target(), LONG, || {
        assert_eq!(state(busy.pid()), 'T');
        Ok(7)
    })
    .unwrap();
    assert_eq!(done.value, 7);
    assert!(done.lasted > Duration::ZERO);
    until("it runs again", || state(busy.pid()) == 'R');
    let failed = paused(&busy.target(), LONG, || {
        Err::<(), _>(Error::failed("no space"))
    });
    assert_eq!(failed.unwrap_err().chain(), "no space");
    until("it runs again", || state(busy.pid()) == 'R');
}

#[test]
fn after_a_panic_in_the_work() {
    let busy = Busy::start();
    let target = busy.target();
    let result = catch_unwind(AssertUnwindSafe(|| {
        let _ = paused::<()>(&target, LONG, || panic!("meant to"));
    }));
    assert!(result.is_err());
    until("it runs again", || state(busy.pid()) == 'R');
}

#[test]
fn at_the_deadline_and_the_work_counts_for_nothing() {
    let busy = Busy::start();
    let result = paused(&busy.target(), Duration::from_millis(200), || {
        until("the watchdog lets it run on", || state(busy.pid()) == 'R');
        Ok(())
    });
    let reported = result.unwrap_err().chain();
    assert!(
        reported.contains("exceeded its deadline of 200 ms"),
        "{reported}"
    );
}

/// The process that is killed in the middle of a pause; nothing unless another test started it.
#[test]
fn victim() {
    let Ok(pid) = std::env::var("VICTIM_TARGET") else {
        return;
    };
    let mark = std::env::var("VICTIM_MARK").unwrap();
    let target = Target::now(pid.parse().unwrap()).unwrap();
    let _ = paused::<()>(&target, LONG, || {
        fs::write(&mark, "").unwrap();
        loop {
            std::thread::park();
        }
    });
}

/// Kills a process in mid-pause, in a way of the caller's.
fn kill_the_pauser(kill: impl FnOnce(&mut Child)) {
    let busy = Busy::start();
    pause_and_kill(&busy, kill);
    until("it runs again", || state(busy.pid()) == 'R');
    // Nothing is left to do but to remove the note.
    assert!(healed(&busy).is_empty());
    assert!(!note_of(&busy).exists());
}

fn pause_and_kill(busy: &Busy, kill: impl FnOnce(&mut Child)) {
    let scratch = tempfile::tempdir().unwrap();
    let mark = scratch.path().join("stopped");
    let mut pauser = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "victim"])
        .env("VICTIM_TARGET", busy.pid().to_string())
        .env("VICTIM_MARK", &mark)
        .stdout(Stdio::null())
        // As a shell would: a group that gets the terminal's signals.
        .process_group(0)
        .spawn()
        .unwrap();
    until("it is stopped", || mark.exists());
    assert_eq!(state(busy.pid()), 'T');
    assert!(note_of(busy).exists());
    // Its pauser lives.
    assert!(healed(busy).is_empty());
    assert_eq!(state(busy.pid()), 'T');
    kill(&mut pauser);
    pauser.wait().unwrap();
}

/// Kills the pauser so that nobody of its own is left to end the pause.
fn kill_with_the_watchdog(pauser: &mut Child) {
    // It gives itself its name after it was forked.
    let mut watchdog = Vec::new();
    until("the watchdog has its name", || {
        watchdog = watchdogs_of(pauser.id());
        watchdog.len() == 1
    });
    // Stopped first, it cannot act on the pauser's end.
    signal(watchdog[0], rustix::process::Signal::STOP);
    until("the watchdog is stopped", || state(watchdog[0]) == 'T');
    pauser.kill().unwrap();
    signal(watchdog[0], rustix::process::Signal::KILL);
    until("the watchdog is gone", || {
        // Not yet waited for by its new parent, perhaps.
        let stat = fs::read_to_string(format!("/proc/{}/stat", watchdog[0]));
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
    });
}

fn healed(busy: &Busy) -> Vec<LeftStopped> {
    heal(|pid| pid == busy.pid())
}

fn note_of(busy: &Busy) -> std::path::PathBuf {
    let stat = fs::read_to_string(format!("/proc/{}/stat", busy.pid())).unwrap();
    let start = stat
        .rsplit_once(") ")
        .unwrap()
        .1
        .split(' ')
        .nth(19)
        .unwrap();
    // Tests run as root.
    std::path::PathBuf::from(format!("/run/evenkeel/{}-{start}", busy.pid()))
}

#[test]
fn by_the_next_command_after_pauser_and_watchdog_were_killed() {
    let busy = Busy::start();
    pause_and_kill(&busy, kill_with_the_watchdog);
    assert_eq!(state(busy.pid()), 'T', "nobody was left to resume it");
    // Nobody means it.
    assert!(heal(|_| false).is_empty());
    assert_eq!(state(busy.pid()), 'T');
    let done = healed(&busy);
    assert!(done[0].resumed.is_ok());
    until("it runs again", || state(busy.pid()) == 'R');
    assert!(!note_of(&busy).exists());
    assert!(healed(&busy).is_empty());
}

/// A command that is to do with another server looks at the note for a moment: this one's must not take it for
/// that of a run that lives.
#[test]
fn by_the_command_it_concerns_while_another_looks() {
    let busy = Busy::start();
    pause_and_kill(&busy, kill_with_the_watchdog);
    let mut done = Vec::new();
    let of_another = heal(|pid| {
        if pid == busy.pid() {
            done = healed(&busy);
        }
        false
    });
    assert!(of_another.is_empty());
    assert_eq!(done.len(), 1, "{done:?}");
    assert!(done[0].resumed.is_ok());
}

/// Who may not even look at root's files had root remove them, with a directory of this name in `/tmp`.
#[test]
fn what_other_users_wrote_is_neither_obeyed_nor_removed() {
    assert!(
        geteuid().is_root(),
        "this test gives files away, which only root can"
    );
    let busy = Busy::start();
    pause_and_kill(&busy, kill_with_the_watchdog);
    let stranger = 40_000 + busy.0.id() % 20_000;
    let theirs = std::path::PathBuf::from(format!("/tmp/evenkeel-pause-{stranger}"));
    fs::create_dir(&theirs).unwrap();
    let (note, other) = (theirs.join("note"), theirs.join("other"));
    fs::copy(note_of(&busy), &note).unwrap();
    fs::remove_file(note_of(&busy)).unwrap();
    fs::write(&other, "no note").unwrap();
    for path in [&theirs, &note, &other] {
        chown(path, Some(stranger), Some(stranger)).unwrap();
    }
    let done = healed(&busy);
    let kept = note.exists() && other.exists();
    fs::remove_dir_all(&theirs).unwrap();
    assert!(done.is_empty(), "{done:?}");
    assert!(kept);
}

#[test]
fn not_when_somebody_else_stopped_it_since() {
    use rustix::process::Signal;
    let busy = Busy::start();
    pause_and_kill(&busy, kill_with_the_watchdog);
    signal(busy.pid(), Signal::CONT);
    until("it runs", || state(busy.pid()) == 'R');
    signal(busy.pid(), Signal::STOP);
    until("it is stopped", || state(busy.pid()) == 'T');
    assert!(note_of(&busy).exists());
    assert!(healed(&busy).is_empty());
    assert_eq!(state(busy.pid()), 'T');
    assert!(!note_of(&busy).exists());
}

#[test]
fn after_the_pauser_was_killed() {
    kill_the_pauser(|pauser| pauser.kill().unwrap());
}

#[test]
fn after_the_pausers_whole_group_was_interrupted_and_terminated() {
    use rustix::process::{Pid, Signal, kill_process_group};
    kill_the_pauser(|pauser| {
        let group = Pid::from_raw(pauser.id() as i32).unwrap();
        for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
            kill_process_group(group, signal).unwrap();
        }
    });
}

#[test]
fn after_the_watchdog_was_killed() {
    let busy = Busy::start();
    paused(&busy.target(), LONG, || {
        until("the watchdog is there", || watchdogs().len() == 1);
        signal(watchdogs()[0], rustix::process::Signal::KILL);
        Ok(())
    })
    .unwrap();
    until("it runs again", || state(busy.pid()) == 'R');
}

#[test]
fn a_server_that_ran_meanwhile_was_not_paused() {
    use rustix::process::Signal;
    let busy = Busy::start();
    let result = paused(&busy.target(), LONG, || {
        signal(busy.pid(), Signal::CONT);
        until("it runs", || state(busy.pid()) == 'R');
        signal(busy.pid(), Signal::STOP);
        until("it is stopped", || state(busy.pid()) == 'T');
        Ok(())
    });
    let reported = result.unwrap_err().chain();
    assert!(reported.contains("ran during the pause"), "{reported}");
    until("it runs again", || state(busy.pid()) == 'R');
}

#[test]
fn a_server_that_died_meanwhile_was_not_paused() {
    let busy = Busy::start();
    let result = paused(&busy.target(), LONG, || {
        signal(busy.pid(), rustix::process::Signal::KILL);
        until("it ends", || state(busy.pid()) == 'Z');
        Ok(())
    });
    assert!(result.is_err());
}

#[test]
fn a_process_that_is_not_the_one_meant_is_left_alone() {
    let busy = Busy::start();
    let error = Target::started_at(busy.pid(), 1).unwrap_err();
    assert!(
        error.chain().contains("a different process"),
        "{}",
        error.chain()
    );
    for pid in [0, 1, -1, std::process::id() as i32] {
        assert!(Target::now(pid).is_err(), "{pid}");
    }
    let target = {
        let gone = Busy::start();
        gone.target()
    };
    assert!(paused(&target, LONG, || Ok(())).is_err());
}

#[test]
fn a_server_that_somebody_else_stopped_stays_stopped() {
    use rustix::process::Signal;
    let busy = Busy::start();
    let target = busy.target();
    signal(busy.pid(), Signal::STOP);
    until("it is stopped", || state(busy.pid()) == 'T');
    let error = paused(&target, LONG, || Ok(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(state(busy.pid()), 'T');
}

#[test]
fn a_watchdog_holds_no_file_of_ours_open() {
    let busy = Busy::start();
    let scratch = tempfile::tempdir().unwrap();
    let _lock = fs::File::create(scratch.path().join("lock")).unwrap();
    paused(&busy.target(), LONG, || {
        until("the watchdog is there", || watchdogs().len() == 1);
        let open = format!("/proc/{}/fd", watchdogs()[0]);
        until(
            "the watchdog has closed everything but a pipe and a pidfd",
            || {
                let files = fs::read_dir(&open).unwrap().flatten();
                files.count() == 2
            },
        );
        Ok(())
    })
    .unwrap();
}
