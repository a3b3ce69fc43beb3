//! Is a server that breaks off while a client logs in called a server, and what is none not?

use evenkeel_op::{Cancel, Error, ErrorKind};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_9};
use evenkeel_testkit::{Scratch, TestServer};
use evenkeel_wire::Connection;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// What MySQL says to a session that is killed, numbered as if nothing had been said before.
const OUT_OF_TURN: &[u8] = b"\x1a\0\0\0\xff\x25\x05#70100Query interrupted...";

/// Listens at a new socket, and does `how` with each client.
fn listener(scratch: &Scratch, name: &str, how: impl Fn(UnixStream) + Send + 'static) -> PathBuf {
    let path = scratch.join(name);
    let listener = UnixListener::bind(&path).unwrap();
    // Ends with the test's process.
    std::thread::spawn(move || listener.incoming().flatten().for_each(how));
    path
}

/// Passes the server's greeting on, and answers what the client says with what makes no sense there.
fn break_off(mut client: UnixStream, real: &Path) -> io::Result<()> {
    let mut server = UnixStream::connect(real)?;
    let mut greeting = [0; 4096];
    let length = server.read(&mut greeting)?;
    client.write_all(&greeting[..length])?;
    if client.read(&mut greeting)? > 0 {
        client.write_all(OUT_OF_TURN)?;
    }
    Ok(())
}

fn both(socket: &Path) -> [Error; 2] {
    let options = ConnectOptions::over_socket(socket, "root");
    [
        Session::open(&options).unwrap_err(),
        Connection::open(&options, &Cancel::new()).unwrap_err(),
    ]
}

fn case(server: &TestServer) {
    let scratch = Scratch::new();
    let running = server.run(&server.prepare(&scratch.join("data"), &[]));
    let real = running.socket().to_owned();
    let broken = listener(&scratch, "broken", move |client| {
        let _ = break_off(client, &real);
    });
    for error in both(&broken) {
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{}", error.chain());
        let reported = format!("the login at {} was cut off: ", broken.display());
        assert!(
            error.to_string().starts_with(&reported),
            "{}",
            error.chain()
        );
    }
    let ssh = listener(&scratch, "ssh", |mut client| {
        let _ = client.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n");
        let _ = client.read(&mut [0; 64]);
    });
    for error in both(&ssh) {
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{}", error.chain());
        let reported = format!(
            "the program that listens at {} is not MySQL or MariaDB",
            ssh.display()
        );
        assert!(
            error.to_string().starts_with(&reported),
            "{}",
            error.chain()
        );
    }
}

#[test]
fn of_mariadb() {
    case(&mariadb_10_11());
}

#[test]
fn of_mysql() {
    case(&mysql_9());
}
