//! Does a hot-copy tool that fails, lies or is killed, or a backup that is killed beside one, leave
//! no generation, no process and no lock, and end with an error?

use evenkeel_backup::restore::{RestoreRequest, restore};
use evenkeel_cases::failpoints::{ENGINE, PREPARE};
use evenkeel_cases::leftovers::{all_files, assert_unharmed};
use evenkeel_cases::program::{Ended, Evenkeel, killed_at, run};
use evenkeel_cases::{Site, quiet};
use evenkeel_op::Cancel;
use evenkeel_repository::Repository;
use evenkeel_testkit::effort::{Part, share};
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{LoopFs, until};
use rustix::process::{Pid, Signal};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

struct Case {
    site: Site,
    evenkeel: Evenkeel,
}

impl Case {
    fn start() -> Self {
        Self {
            site: Site::start(mariadb_10_11(), LoopFs::ext4(2 * GIB), 500, &[]),
            evenkeel: Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test")),
        }
    }

    /// A tool that says what it is as the real one does, and then does as `script` says; it notes
    /// its process id first. `$real` is the real one.
    fn tool(&self, script: &str) -> PathBuf {
        let path = self.site.fs.join("tool");
        let text = format!(
            "#!/bin/sh\nreal=mariadb-backup\nhere={}\n\
             case \"$*\" in *--version*) exec $real \"$@\";; esac\n\
             echo $$ >$here/pid.new && mv $here/pid.new $here/pid\n{script}\n",
            self.site.fs.path().display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn command(&self, tool: Option<PathBuf>, more: &[&str]) -> Command {
        let mut flags = vec!["--snapshot=engine"];
        flags.extend(more);
        let tool = tool.map(|tool| format!("--engine-tool={}", tool.display()));
        flags.extend(tool.as_deref());
        self.evenkeel.backup(&self.site, &flags)
    }

    fn fails(&self, script: &str, why: &str) -> Ended {
        let ended = run(self.command(Some(self.tool(script)), &[]));
        assert_eq!(ended.code, Some(1), "{why}: {ended:?}");
        assert!(ended.message().contains(why), "{why}: {ended:?}");
        self.assert_nothing(why);
        ended
    }

    fn generations(&self) -> usize {
        let repository = Repository::open(self.site.repository()).unwrap();
        repository.generations().unwrap().len()
    }

    fn pid(&self) -> Option<Pid> {
        let text = fs::read_to_string(self.site.fs.join("pid")).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    }

    /// Whether the tool lives: what nobody has waited for yet is dead all the same.
    fn tool_lives(&self) -> bool {
        let Some(pid) = self.pid() else {
            return false;
        };
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[track_caller]
    fn assert_nothing(&self, reported: &str) {
        until(&format!("{reported}: the tool is gone"), || {
            !self.tool_lives()
        });
        until(
            &format!("{reported}: no client of the tool is left"),
            || {
                let mut session = self.site.running().session().unwrap();
                let sql = "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'root'";
                session.value(sql).unwrap().as_deref() == Some("1")
            },
        );
        self.site.assert_clean(reported);
        assert_eq!(self.generations(), 0, "{reported}");
        let _ = fs::remove_file(self.site.fs.join("pid"));
    }
}

const WHOLE: &str = "$real \"$@\" >$here/stream || exit 9";

#[test]
fn a_stream_that_is_not_whole_is_no_backup() {
    let case = Case::start();
    // The real tool's own stream and last words, which are right.
    let sent = |how: &str| format!("{WHOLE}\n{how} $here/stream");
    case.fails(&sent("head -c 5000000"), "the stream");
    case.fails(&sent("head -c -1"), "in the middle of a chunk");
    case.fails(&sent("tail -c +2"), "there is no chunk");
    // Without its last chunk, the end of the last file.
    case.fails(&sent("head -c -29"), "ends before 'xtrabackup_info'");
    let flip = "perl -0777 -pe 'substr($_, 5000000, 1) ^= \"\\x01\"'";
    case.fails(&sent(flip), "is damaged");
    case.fails("echo 'completed OK!' >&2; exit 3", "exit status: 3");
    case.fails("exit 0", "did not report completion");
    case.fails("$real \"$@\" 2>/dev/null", "did not report completion");
    case.fails(
        &format!("{WHOLE}; cat $here/stream; exit 1"),
        "exit status: 1",
    );
    // The tool's own words are told.
    let ended = case.fails("$real \"$@\" --no-such-option", "no-such-option");
    assert!(
        ended.message().contains("mariadb-backup failed"),
        "{ended:?}"
    );
    // And what is whole is one.
    fs::remove_file(case.site.fs.join("stream")).unwrap();
    assert_eq!(
        run(case.command(Some(case.tool(&sent("cat"))), &[])).code,
        Some(0)
    );
}

#[test]
fn a_tool_that_is_killed_makes_no_generation() {
    let case = Case::start();
    // So slowly that the pipe is full, and the tool stands in the middle of a file.
    let tool = case.tool("exec $real \"$@\"");
    let mut command = case.command(Some(tool), &["--rate=1M"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pack = |path: &PathBuf| path.to_string_lossy().contains("pack-");
    until("the first blocks are stored", || {
        all_files(&case.site.repository()).keys().any(pack)
    });
    rustix::process::kill_process(case.pid().unwrap(), Signal::KILL).unwrap();
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.message().contains("signal: 9"), "{ended:?}");
    case.assert_nothing("the tool was killed");
}

/// The tool may be waiting for a lock, or holding one, and not look at its pipe at all.
#[test]
fn a_silent_tool_dies_with_evenkeel() {
    let case = Case::start();
    let tool = case.tool("exec sleep 1000");
    let mut child = case.command(Some(tool), &[]).spawn().unwrap();
    until("the tool runs", || case.tool_lives());
    child.kill().unwrap();
    child.wait().unwrap();
    until("the tool is gone", || !case.tool_lives());
    assert_unharmed(case.site.running(), "evenkeel was killed");
    assert_eq!(case.generations(), 0);
}

#[test]
fn a_wish_to_stop_ends_both() {
    let case = Case::start();
    let tool = case.tool("exec sleep 1000");
    let mut command = case.command(Some(tool), &[]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    until("the tool runs", || case.tool_lives());
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let ended = Ended::of(&child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(143), "{ended:?}");
    case.assert_nothing("evenkeel was asked to end");
}

/// It hangs while it holds its locks because nobody reads on; the server must not.
#[test]
fn a_tool_that_keeps_writes_waiting_is_ended() {
    let case = Case::start();
    let script = "echo '[00] Acquired locks for BACKUP STAGE BLOCK_COMMIT' >&2; exec sleep 1000";
    let tool = case.tool(script);
    let ended = run(case.command(Some(tool), &["--lock-hold-limit=100ms"]));
    assert_eq!(ended.code, Some(15), "{ended:?}");
    case.assert_nothing("a lock was held too long");
}

#[test]
fn a_full_repository_is_an_error_and_leaves_nothing() {
    let mut case = Case::start();
    let full = LoopFs::ext4(16 * MIB);
    let mut session = case.site.running().session().unwrap();
    session
        .run("CREATE TABLE bank.noise (id INT PRIMARY KEY AUTO_INCREMENT, b BLOB)")
        .unwrap();
    for _ in 0..24 {
        let some = vec!["(RANDOM_BYTES(1024))"; 1024].join(",");
        session
            .run(&format!("INSERT INTO bank.noise (b) VALUES {some}"))
            .unwrap();
    }
    drop(session);
    let tool = case.tool("exec $real \"$@\"");
    let flag = format!("--engine-tool={}", tool.display());
    let mut command = case
        .evenkeel
        .command(&["backup", "--no-defaults", "-u", "root", &flag]);
    command.arg("-S").arg(case.site.running().socket());
    command.arg("--snapshot=engine").arg(full.join("r"));
    let ended = run(command);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.message().contains("space"), "{ended:?}");
    until("the tool is gone", || !case.tool_lives());
    case.site.assert_clean("a full repository");
    let repository = Repository::open(full.join("r")).unwrap();
    assert!(repository.generations().unwrap().is_empty());
    case.site.kill();
}

#[test]
fn killed_at_each_step_the_next_run_is_clean() {
    let case = Case::start();
    let traffic = case.site.traffic(2);
    let mut expected = 0;
    let restored_after = share("restores after kills", &ENGINE, Part::new(0, 2));
    for point in ENGINE {
        println!("killed at {point}");
        let tool = case.tool("exec $real \"$@\"");
        let ended = run(killed_at(case.command(Some(tool), &[]), point));
        assert_eq!(
            ended.signal,
            Some(9),
            "{point} was never reached: {ended:?}"
        );
        until(&format!("{point}: the tool is gone"), || !case.tool_lives());
        assert_unharmed(case.site.running(), point);
        traffic.wait_for(5);
        let before = traffic.marks();
        let generation = run(case.command(None, &[])).generation();
        let after = traffic.marks();
        case.site.assert_clean(point);
        expected += 1 + usize::from(point == "backup::committed");
        assert_eq!(case.generations(), expected, "{point}");
        if !restored_after.contains(&point) {
            continue;
        }
        let restored = case.site.restore(Some(generation), "next").unwrap();
        case.site.check_bank_at(&restored.target, &before, &after);
        fs::remove_dir_all(restored.target).unwrap();
    }
    traffic.assert_undisturbed();
    for point in PREPARE {
        let target = case.site.fs.join("restored");
        let command = case.evenkeel.restore(&case.site.repository(), &target, &[]);
        assert_eq!(run(killed_at(command, point)).signal, Some(9), "{point}");
        assert!(!target.exists(), "{point}");
        let request = RestoreRequest::new(case.site.repository(), None, &target);
        restore(&request, quiet(&Cancel::new())).unwrap();
        fs::remove_dir_all(&target).unwrap();
    }
}
