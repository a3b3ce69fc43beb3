//! Does `top` draw on a terminal, obey keys, and give the terminal back as it was, however it ends?

use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::mariadb_10_11;
use std::process::Command;

/// Runs `top` on a terminal of its own, does what `$3` says as soon as the first frame is there, and reports how it
/// ended: what the modes and the screen are then.
const ON_A_TERMINAL: &str = r#"
import os, pty, re, select, signal, struct, sys, fcntl, termios, time
program, socket, deed = sys.argv[1:4]
pid, fd = pty.fork()
if pid == 0:
    # As under a shell: who runs it is of the same session, and continues it.
    os.environ["TERM"] = "xterm"
    child = os.fork()
    if child == 0:
        os.execv(program, [program, "top", "--no-defaults", "-u", "root", "--interval", "200ms", socket])
    print("child", child, flush=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    status = os.waitpid(child, 0)[1]
    print("ended", os.waitstatus_to_exitcode(status), flush=True)
    time.sleep(1)
    os._exit(0)
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 120, 0, 0))
before = termios.tcgetattr(fd)
seen = b""
def until(words):
    global seen
    end = time.time() + 60
    while not words(seen):
        assert time.time() < end, seen
        if select.select([fd], [], [], 0.2)[0]:
            try:
                seen += os.read(fd, 65536)
            except OSError:
                break
def state(child):
    return open(f"/proc/{child}/stat").read().rsplit(")", 1)[1].split()[0]
until(lambda seen: re.search(rb"child \d+\s", seen) and b"evenkeel top" in seen and b"dirty%" in seen and seen.count(b"\x1b[J") > 2)
child = int(seen.split(b"child ")[1].split()[0])
assert termios.tcgetattr(fd)[3] & termios.ECHO == 0
at = len(seen)
if deed == "stop":
    os.kill(child, signal.SIGTSTP)
    until(lambda seen: b"\x1b[?1049l" in seen[at:])
    while state(child) != "T":
        time.sleep(0.02)
    assert termios.tcgetattr(fd)[3] == before[3], "it is stopped, and the terminal is not as it was"
    os.kill(child, signal.SIGCONT)
    until(lambda seen: b"\x1b[?1049h" in seen[at:] and seen[at:].count(b"\x1b[J") > 2)
    assert termios.tcgetattr(fd)[3] & termios.ECHO == 0
    os.write(fd, b"q")
elif deed == "keys":
    os.write(fd, b"s")
    until(lambda seen: b"sorted by queries" in seen)
    os.write(fd, b"\r")
    until(lambda seen: b"Enter back" in seen)
    os.write(fd, b"q")
elif deed == "interrupt":
    os.write(fd, b"\x03")
else:
    os.kill(child, int(deed))
until(lambda seen: re.search(rb"ended -?\d+\s", seen))
after = termios.tcgetattr(fd)
assert after == before, (before, after)
# The next command of a shell is on the screen as it was.
tail = seen.rsplit(b"\x1b[?1049h", 1)[1]
assert b"\x1b[?1049l" in tail and b"\x1b[?25h" in tail, tail
print("code", seen.split(b"ended ")[1].split()[0].decode())
"#;

fn run(deed: &str) -> String {
    let room = Scratch::new();
    let running = mariadb_10_11().start(&room.path().join("data"), &[]);
    let output = Command::new("python3")
        .args(["-c", ON_A_TERMINAL, env!("CARGO_BIN_EXE_evenkeel")])
        .arg(running.socket())
        .arg(deed)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{deed}: {said}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn keys_are_obeyed_and_q_ends_it() {
    assert_eq!(run("keys"), "code 0");
}

#[test]
fn ctrl_c_ends_it() {
    assert_eq!(run("interrupt"), "code 130");
}

#[test]
fn sigterm_ends_it() {
    assert_eq!(run("15"), "code 143");
}

#[test]
fn a_shell_has_the_terminal_while_it_is_stopped() {
    assert_eq!(run("stop"), "code 0");
}
