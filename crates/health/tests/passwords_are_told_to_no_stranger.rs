//! Does what listens in a server's place learn the checker's password?

use evenkeel_health::probe::{Checks, Observed};
use evenkeel_health::reason::Cause;
use evenkeel_health::watch::{Target, Timing, Watch};
use evenkeel_server::options::{ConnectOptions, Secret, ServerKey, SslMode};
use evenkeel_testkit::{Scratch, until};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const TIMING: Timing = Timing {
    interval: Duration::from_secs(20),
    timeout: Duration::from_secs(20),
};

const PASSWORD: &str = "s3same";

const KEY: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAxSKOcxiet8lLMn8ImyUE
bGGKob5EdRz/4wdiw12ED0GfKKTKhVnodFCfm1mdy7bKOX5QxL9skrvYodpW43eR
R5bfOzIgy1qIB8RYb6qOXRBw1oA4snBDqtUjDv/lbHLJN+IbzM4oU+e3Lt9rXyLX
VY289ewONPweXHqSCnTL91w+wkU1peIFV2QhZ+upUCdCtwOn5hnJPNgxtbklFoya
C8W3Z7Xx7He2QDJsEWAqX197efw0L6j8X8Tyd8Uwb7zUB1tfMGhHfm9EwejPAtzx
4GztQNtNMtGS2oGZLQBLV9hib4dDL92iiZeckg2LAf4GsJofLLR8mcHCRoqVbQJ1
YQIDAQAB
-----END PUBLIC KEY-----
";

fn send(stream: &mut TcpStream, number: u8, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    stream.write_all(&[&length[..3], &[number], body].concat())
}

fn receive(stream: &mut TcpStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let [a, b, c, number] = head;
    let mut body = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
    stream.read_exact(&mut body)?;
    Ok((number.wrapping_add(1), body))
}

/// Has a client log in as servers do that know no proof of its password from before: it wants to read it. Returns what
/// the client says to that. (MySQL's documentation, "Caching_sha2_password information".)
fn asks(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let (low, high) = (0xa203_u16.to_le_bytes(), 0x0008_u16.to_le_bytes());
    let head = [b"\x0a8.0.30\0\x07\0\0\0abcdefgh\0", &low[..]].concat();
    let tail = b"\x15\0\0\0\0\0\0\0\0\0\0abcdefghijkl\0mysql_native_password\0";
    let greeting = [&head[..], b"\x21\x02\0", &high, tail].concat();
    send(stream, 0, &greeting)?;
    let (number, _) = receive(stream)?;
    let other = b"\xfecaching_sha2_password\0abcdefghabcdefghijkl\0";
    send(stream, number, other)?;
    let (number, _) = receive(stream)?;
    send(stream, number, b"\x01\x04")?;
    let (number, said) = receive(stream)?;
    if said != [2] {
        return Ok(said);
    }
    send(stream, number, &[b"\x01", KEY.as_bytes()].concat())?;
    Ok(receive(stream)?.1)
}

/// Returns options that lead to such a server, and what clients say to it; nothing where they hang up.
fn stranger(key: ServerKey) -> (ConnectOptions, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = ConnectOptions {
        ssl_mode: SslMode::Disabled,
        password: Some(Secret::new(PASSWORD)),
        server_key: key,
        ..ConnectOptions::over_tcp(
            "127.0.0.1",
            listener.local_addr().unwrap().port(),
            "checker",
        )
    };
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let said = asks(&mut stream.unwrap()).unwrap_or_default();
            if tell.send(said).is_err() {
                return;
            }
        }
    });
    (options, heard)
}

fn probe(options: ConnectOptions) -> Observed {
    let target = Target {
        name: "theirs".to_owned(),
        options,
        checks: Arc::new(Checks::default()),
    };
    let mut watch = Watch::new(vec![target], TIMING);
    let mut found = None;
    until("a probe ends", || {
        found = watch.next(Duration::from_millis(100)).pop();
        found.is_some()
    });
    found.unwrap().1
}

#[test]
fn no_key_is_taken_from_a_stranger() {
    let (options, heard) = stranger(ServerKey::Unsaid);
    let found = probe(options);
    assert_eq!(heard.recv().unwrap(), b"", "it hangs up");
    assert_eq!(found.reasons[0].cause, Cause::Login, "{found:?}");
    let text = &found.reasons[0].text;
    assert!(text.contains("asks for the password itself"), "{text}");
}

#[test]
fn a_key_that_was_named_is_used_and_no_other() {
    let room = Scratch::new();
    let path = room.path().join("public_key.pem");
    std::fs::write(&path, KEY).unwrap();
    let (options, heard) = stranger(ServerKey::File(path.clone()));
    probe(options);
    // As long as the key's modulus, at once.
    assert_eq!(heard.recv().unwrap().len(), 256);
    std::fs::write(&path, "no key").unwrap();
    let (options, heard) = stranger(ServerKey::File(path));
    let found = probe(options);
    assert!(heard.try_recv().is_err(), "nobody was asked");
    let text = &found.reasons[0].text;
    assert!(text.contains("has no public key"), "{text}");
}

#[test]
fn who_wants_it_asks_for_a_key() {
    let (options, heard) = stranger(ServerKey::Asked);
    probe(options);
    assert_eq!(heard.recv().unwrap().len(), 256);
}
