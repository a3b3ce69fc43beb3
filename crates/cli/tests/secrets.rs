//! Is a typed password gone from the process list, and never said?

mod wait;

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use wait::{Tied, until};

#[test]
fn a_typed_password_is_blotted_out_and_warned_of() {
    for typed in ["-phunter2", "--password=hunter2"] {
        // A server that never says hello keeps the client where it can be looked at.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = silent.local_addr().unwrap().port().to_string();
        let mut client = Tied::start(
            Command::new(env!("CARGO_BIN_EXE_evenkeel"))
                .args([
                    "doctor",
                    "--no-defaults",
                    "-h",
                    "127.0.0.1",
                    "-P",
                    &port,
                    typed,
                ])
                .args(["--connect-timeout", "60s"])
                .env("MYSQL_TEST_LOGIN_FILE", "/nonexistent")
                .stdout(Stdio::null())
                .stderr(Stdio::piped()),
        );
        let (connection, _) = silent.accept().unwrap();
        let shown = fs::read(format!("/proc/{}/cmdline", client.id())).unwrap();
        let shown = String::from_utf8_lossy(&shown).into_owned();
        assert!(
            shown.contains("doctor") && !shown.contains("hunter2"),
            "{shown}"
        );
        assert!(shown.contains("xxxxxxx"), "{shown}");
        // Nobody to try again with, either.
        drop((connection, silent));
        until("the client to give up", || {
            client.try_wait().unwrap().is_some()
        });
        let mut said = String::new();
        client
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert!(
            said.contains("a password on the command line") && !said.contains("hunter2"),
            "{said}"
        );
    }
}

#[test]
fn a_password_that_cannot_be_asked_for_says_how_else() {
    // Without a controlling terminal there is nobody to ask.
    let output = Command::new("setsid")
        .args([
            "--wait",
            env!("CARGO_BIN_EXE_evenkeel"),
            "doctor",
            "--no-defaults",
            "-p",
        ])
        .env("MYSQL_TEST_LOGIN_FILE", "/nonexistent")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("hint: put it in an option file"));
}
