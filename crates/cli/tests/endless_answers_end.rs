//! Does an answer without an end, from whatever is at the other side, cost a view of servers no memory?

mod served;

use evenkeel_testkit::servers::mariadb_10_11;
use served::Served;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// A socket in front of a server's, where a question for counters has more rows than fit anywhere.
fn endless(path: &Path, real: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    let real = real.to_owned();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = UnixStream::connect(&real).unwrap();
            let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            std::thread::spawn(move || ask(client, server));
        }
    });
}

fn ask(mut client: UnixStream, mut server: UnixStream) {
    let mut once = || -> std::io::Result<()> {
        let mut head = [0; 4];
        client.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        let mut asked = vec![0; length as usize];
        client.read_exact(&mut asked)?;
        if String::from_utf8_lossy(&asked).contains("SHOW GLOBAL STATUS") {
            asked = b"\x03SELECT seq, seq FROM mysql.seq_1_to_1000000000000".to_vec();
        }
        let length = (asked.len() as u32).to_le_bytes();
        server.write_all(&[length[0], length[1], length[2], head[3]])?;
        server.write_all(&asked)
    };
    while once().is_ok() {}
    let _ = server.shutdown(Shutdown::Both);
}

#[test]
fn a_view_gives_up() {
    let served = Served::new(&mariadb_10_11(), &[], "root");
    endless(&served.room().join("endless"), served.running.socket());
    for (verb, count) in [("qps", "--count=1"), ("top", "--once")] {
        let words = [
            "--no-defaults",
            "-uroot",
            count,
            "--interval=300ms",
            "./endless",
        ];
        let out = served.command(verb, &words).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(
            said.contains("rows or") && said.contains("in one answer"),
            "{verb}: {said}"
        );
        assert_eq!(out.status.code(), Some(1), "{verb}: {said}");
    }
}
