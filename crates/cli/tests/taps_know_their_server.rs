//! Does a tap say that there is no server, and refuse to be its own?

use evenkeel_testkit::Scratch;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

fn tap(room: &Path, listen: &str, to: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(["capture", "--tap", listen, "--to", to, "--for=200ms"]);
    let out = command.current_dir(room).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    (out.status.code(), said)
}

/// Returns a port that nothing listens on.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn a_tap_is_not_its_own_server() {
    let room = Scratch::new();
    let port = free_port();
    symlink("tap.sock", room.path().join("link.sock")).unwrap();
    let here = room.path().join("tap.sock");
    for (listen, to) in [
        (format!("127.0.0.1:{port}"), format!("127.0.0.1:{port}")),
        (format!("127.0.0.1:{port}"), format!("localhost:{port}")),
        (format!("0.0.0.0:{port}"), format!("127.0.0.2:{port}")),
        ("./tap.sock".to_owned(), "./link.sock".to_owned()),
        ("./tap.sock".to_owned(), here.display().to_string()),
    ] {
        let (code, said) = tap(room.path(), &listen, &to);
        assert_eq!(code, Some(2), "{listen} {to}: {said}");
        assert!(said.contains("itself"), "{listen} {to}: {said}");
        assert!(!here.exists(), "the socket file is taken away");
    }
}

#[test]
fn a_server_that_is_not_there_is_said_at_once() {
    let room = Scratch::new();
    let port = free_port();
    for to in ["./none.sock".to_owned(), format!("127.0.0.1:{port}")] {
        let (code, said) = tap(room.path(), "./tap.sock", &to);
        // It may come later: the tap goes on.
        assert_eq!(code, Some(0), "{said}");
        let warned = said
            .find("no server answers at")
            .unwrap_or_else(|| panic!("{said}"));
        assert!(warned < said.find("tapping").unwrap(), "{said}");
    }
    std::os::unix::net::UnixListener::bind(room.path().join("there.sock"))
        .map(|_there| {
            let (_, said) = tap(room.path(), "./tap.sock", "./there.sock");
            assert!(!said.contains("no server answers"), "{said}");
        })
        .unwrap();
}
