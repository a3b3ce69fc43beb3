//! Is a sound server asked in one session and without its thread, and is what is wrong with it seen all the same?

use evenkeel_health::probe::{Checks, Observed};
use evenkeel_health::reason::Cause;
use evenkeel_health::watch::{Target, Timing, Watch};
use evenkeel_server::options::{ConnectOptions, SslMode};
use evenkeel_testkit::until;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

const TIMING: Timing = Timing {
    interval: Duration::from_millis(50),
    timeout: Duration::from_secs(20),
};

/// How statements are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Manner {
    #[default]
    Well,
    /// One byte at a time.
    Dripping,
    /// It is read-only.
    ReadOnly,
    /// Counters are refused.
    Refusing,
    /// With a packet that has nothing in it.
    Nonsense,
}

/// What is known of the server.
#[derive(Default)]
struct Told {
    manner: Manner,
    /// What the next answer says of connections.
    connections: u64,
    streams: Vec<TcpStream>,
}

#[derive(Clone, Default)]
struct Stage(Arc<Mutex<Told>>);

const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const END: &[u8] = b"\xfe\0\0\x02\0";
const COLUMN: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x21\0\xff\0\0\0\xfd\0\0\0\0\0";

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_le_bytes();
    [&length[..3], &[number], body].concat()
}

fn row(values: &[&str]) -> Vec<u8> {
    let value = |value: &&str| [&[u8::try_from(value.len()).unwrap()], value.as_bytes()].concat();
    values.iter().flat_map(value).collect()
}

fn result(columns: u8, rows: &[Vec<u8>]) -> Vec<u8> {
    let mut bodies = vec![vec![columns]];
    bodies.extend((0..columns).map(|_| COLUMN.to_vec()));
    bodies.push(END.to_vec());
    bodies.extend(rows.iter().cloned());
    bodies.push(END.to_vec());
    let numbered = bodies.iter().zip(1..);
    numbered
        .flat_map(|(body, number)| packet(number, body))
        .collect()
}

fn greeting() -> Vec<u8> {
    let (low, high) = (0xa203_u16.to_le_bytes(), 0x0008_u16.to_le_bytes());
    let head = [b"\x0a8.0.30\0\x07\0\0\0abcdefgh\0", &low[..]].concat();
    let tail = b"\x15\0\0\0\0\0\0\0\0\0\0abcdefghijkl\0mysql_native_password\0";
    [&head[..], b"\x21\x02\0", &high, tail].concat()
}

impl Stage {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap()
    }

    fn answer(&self, statement: &str, number: u8) -> Vec<u8> {
        let mut told = self.told();
        if statement.starts_with("SELECT @@GLOBAL.read_only") {
            let is_read_only = if told.manner == Manner::ReadOnly {
                "1"
            } else {
                "0"
            };
            return match told.manner {
                Manner::Nonsense => packet(1, b""),
                _ => result(3, &[row(&[is_read_only, "100", "0"])]),
            };
        }
        if statement.starts_with("SHOW GLOBAL VARIABLES") {
            return result(2, &[]);
        }
        if statement.starts_with("SHOW GLOBAL STATUS") {
            if told.manner == Manner::Refusing {
                return packet(1, b"\xff\x51\x04#HY000told to refuse");
            }
            told.connections += 1;
            let number = told.connections.to_string();
            return result(2, &[row(&["Threads_connected", &number])]);
        }
        packet(number, OK)
    }

    fn talk(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.write_all(&packet(0, &greeting()))?;
        loop {
            let mut head = [0; 4];
            stream.read_exact(&mut head)?;
            let [a, b, c, number] = head;
            let mut body = vec![0; u32::from_le_bytes([a, b, c, 0]) as usize];
            stream.read_exact(&mut body)?;
            let statement = String::from_utf8_lossy(body.get(1..).unwrap_or_default());
            let answer = self.answer(&statement, number.wrapping_add(1));
            let step = match self.told().manner {
                Manner::Dripping => 1,
                _ => answer.len(),
            };
            for piece in answer.chunks(step) {
                stream.write_all(piece)?;
            }
        }
    }

    fn listen(&self) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let stage = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                stage.told().streams.push(stream.try_clone().unwrap());
                let stage = stage.clone();
                std::thread::spawn(move || stage.talk(stream));
            }
        });
        port
    }

    /// Returns how many sessions there have been.
    fn sessions(&self) -> usize {
        self.told().streams.len()
    }
}

fn next(watch: &mut Watch) -> Observed {
    let mut found = None;
    until("a probe ends", || {
        found = watch.next(Duration::from_millis(100)).pop();
        found.is_some()
    });
    found.unwrap().1
}

/// Returns how often threads that probe have gone to sleep, once all of them have.
fn sleeps() -> u64 {
    let mut count = 0;
    until("threads that probe sleep", || {
        count = 0;
        fs::read_dir("/proc/self/task").unwrap().all(|task| {
            let status = task.unwrap().path().join("status");
            // A thread may have ended by now.
            let status = fs::read_to_string(status).unwrap_or_default();
            let line = |name: &str| {
                let mut lines = status.lines();
                lines
                    .find_map(|line| line.strip_prefix(name))
                    .unwrap_or_default()
                    .trim()
                    .to_owned()
            };
            if line("Name:") != "probe" {
                return true;
            }
            count += line("voluntary_ctxt_switches:").parse::<u64>().unwrap();
            line("State:").starts_with('S')
        })
    });
    count
}

#[test]
fn its_thread_sleeps_and_every_failure_is_seen() {
    let stage = Stage::default();
    let options = ConnectOptions {
        ssl_mode: SslMode::Disabled,
        ..ConnectOptions::over_tcp("127.0.0.1", stage.listen(), "checker")
    };
    let target = Target {
        name: "db1".to_owned(),
        options,
        checks: Arc::new(Checks {
            connections_min: 1,
            ..Checks::default()
        }),
    };
    let mut watch = Watch::new(vec![target], TIMING);
    let be = |manner| stage.told().manner = manner;

    let first = next(&mut watch);
    assert_eq!(
        (first.reasons.as_slice(), first.connections),
        (&[][..], Some(1))
    );
    let before = sleeps();
    for manner in [Manner::Well, Manner::Dripping, Manner::Well] {
        be(manner);
        for _ in 0..3 {
            let connections = stage.told().connections + 1;
            let found = next(&mut watch);
            assert!(found.reasons.is_empty(), "{manner:?}: {found:?}");
            assert_eq!(found.is_writable, Some(true));
            assert_eq!(found.connections, Some(connections), "what it says now");
        }
    }
    assert_eq!(sleeps(), before, "the thread was not asked");
    assert_eq!(stage.sessions(), 1);

    be(Manner::ReadOnly);
    assert_eq!(next(&mut watch).is_writable, Some(false));
    be(Manner::Refusing);
    let found = next(&mut watch);
    assert!(
        found.reasons[0].text.contains("told to refuse"),
        "{found:?}"
    );
    be(Manner::Well);
    assert!(next(&mut watch).reasons.is_empty());
    assert_eq!(stage.sessions(), 1, "all that was said in one session");

    // A session that somebody ended is no failure of the server.
    stage.told().streams[0].shutdown(Shutdown::Both).unwrap();
    for _ in 0..3 {
        let found = next(&mut watch);
        assert!(found.reasons.is_empty(), "{found:?}");
    }
    assert_eq!(stage.sessions(), 2);

    be(Manner::Nonsense);
    let found = next(&mut watch);
    assert_eq!(found.reasons[0].cause, Cause::Refused, "{found:?}");
    be(Manner::Well);
    assert!(next(&mut watch).reasons.is_empty());
    drop(watch);
    until("it says goodbye", || {
        let told = stage.told();
        let last = told.streams.last().unwrap();
        last.set_nonblocking(true).unwrap();
        matches!(last.peek(&mut [0]), Ok(0))
    });
}
