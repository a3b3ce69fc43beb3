//! Is a process the server's only where the kernel says so, whatever the server answers?

use evenkeel_op::{ErrorKind, Result};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::files::{ServerFiles, discover};
use evenkeel_server::launch::Running;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::servers::{account, mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};
use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// A socket in front of a server's, where every question for the thread that serves is answered with
/// another number.
fn lying(scratch: &Scratch, running: &Running, thread: u32) -> PathBuf {
    let path = scratch.join(format!("lies-{thread}"));
    let listener = UnixListener::bind(&path).unwrap();
    let real = running.socket().to_owned();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = UnixStream::connect(&real).unwrap();
            let (from, to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || pass_on(from, to));
            std::thread::spawn(move || ask(client, server, thread));
        }
    });
    path
}

fn pass_on(mut from: UnixStream, mut to: UnixStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Both);
}

fn ask(mut client: UnixStream, mut server: UnixStream, thread: u32) {
    let mut once = || -> std::io::Result<()> {
        let mut head = [0; 4];
        client.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        let mut asked = vec![0; length as usize];
        client.read_exact(&mut asked)?;
        let text = String::from_utf8_lossy(&asked);
        if text.contains("SELECT TID") || text.contains("THREAD_OS_ID") {
            asked = format!("\x03SELECT {thread} AS TID").into_bytes();
        }
        let length = (asked.len() as u32).to_le_bytes();
        server.write_all(&[length[0], length[1], length[2], head[3]])?;
        server.write_all(&asked)
    };
    while once().is_ok() {}
    let _ = server.shutdown(Shutdown::Both);
}

fn files_at(socket: &Path) -> Result<ServerFiles> {
    let mut session = Session::open(&ConnectOptions::over_socket(socket, "root"))?;
    let abilities = Abilities::probe(&mut session)?;
    discover(&mut session, &abilities)
}

/// Runs a program called like a server in the data directory, as the server's account, with a file of it open.
fn impostor(scratch: &Scratch, name: &str, mode: u32, user: u32) -> Child {
    let (program, data) = (scratch.join(name), scratch.join("source"));
    fs::copy("/bin/sleep", &program).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(mode)).unwrap();
    let mut command = Command::new(program);
    command.arg("1000").current_dir(&data).uid(user);
    command.stdin(File::open(data.join("ibdata1")).unwrap());
    command.spawn().unwrap()
}

fn is_not_led_to_others(server: TestServer) {
    let scratch = Scratch::new();
    let running = server.start(&scratch.join("source"), &[]);
    let user = account().unwrap().uid;
    // The truth, by the same way.
    let honest = lying(&scratch, &running, running.pid() as u32);
    assert_eq!(files_at(&honest).unwrap().pid, Some(running.pid()));
    for (name, mode, user, why) in [
        // Root's rights, as `su` has them while it asks for the password.
        ("mysqld-set-uid", 0o4755, user, "two accounts"),
        (
            "mysqld-set-gid",
            0o2755,
            user,
            "has a setuid or setgid program",
        ),
        ("mysqld-of-root", 0o755, 0, "while the directory belongs"),
        ("sleeper", 0o755, user, "is called neither"),
    ] {
        let mut child = impostor(&scratch, name, mode, user);
        let outcome = files_at(&lying(&scratch, &running, child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{name}: {error}");
        assert!(error.to_string().contains(why), "{name}: {error}");
    }
}

#[test]
fn mariadb_is_not_believed() {
    is_not_led_to_others(mariadb_10_11());
}

#[test]
fn mysql_is_not_believed() {
    is_not_led_to_others(mysql_8_0_15());
}
