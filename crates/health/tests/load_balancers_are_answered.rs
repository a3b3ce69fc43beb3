//! Do HTTP, agent and metrics say what a server is, briefly, completely, and to whoever asks badly, too?

use evenkeel_health::board::Board;
use evenkeel_health::machine::{HealthOrder, Remembered, Rules};
use evenkeel_health::probe::Observed;
use evenkeel_health::reason::{Cause, Reason};
use evenkeel_health::serve::{self, Weighing, agent_line, answer};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

const RULES: Rules = Rules {
    fall: 1,
    rise: 2,
    min_down: Duration::ZERO,
    hold: Duration::ZERO,
    hold_max: Duration::ZERO,
    flaps_max: 0,
    flap_window: HOUR,
    stale: HOUR,
};

fn board(names: &[&str]) -> Board {
    let servers = names
        .iter()
        .map(|name| ((*name).to_owned(), Remembered::default()));
    Board::new(servers, RULES)
}

fn seen(is_writable: bool, lag_s: Option<u64>) -> Observed {
    Observed {
        is_writable: Some(is_writable),
        replicates: Some(!is_writable),
        lag_s,
        running: Some(1),
        ..Observed::default()
    }
}

fn up(board: &Board, server: usize, observed: &Observed) {
    for _ in 0..2 {
        board.probed(server, observed.clone());
    }
}

fn hung() -> Observed {
    let reason = Reason::new(Cause::Hung, "no answer to SELECT # for 1 s\r\nup ready");
    Observed::failed(reason, Duration::from_secs(1))
}

#[test]
fn statuses_are_those_that_load_balancers_expect() {
    let board = board(&["db1", "db2", "db3"]);
    let status = |path: &str| answer(&board, path).status;
    assert_eq!(status("/db1"), 503, "before it is proven");
    up(&board, 0, &seen(true, None));
    up(&board, 1, &seen(false, Some(7)));
    for (path, expected) in [
        ("/db1", 200),
        ("/db1/any", 200),
        ("/db1/primary", 200),
        ("/db1/replica", 503),
        ("/db2/primary", 503),
        ("/db2/replica", 200),
        ("/db2/replica?max_lag=7s", 200),
        ("/db2/replica?max_lag=6s", 503),
        ("/db1/any?max_lag=6s", 503),
        ("/db3/any", 503),
        ("/db3/replica", 503),
        ("/", 200),
        ("/metrics", 200),
        // It must not look like one that is drained.
        ("/db4", 400),
        ("/db4/any", 400),
        ("/any", 400),
        ("/db1/write", 400),
        ("/db1/any/x", 400),
        ("/db2/replica?max_lga=6s", 400),
        ("/db2/replica?max_lag=x", 400),
    ] {
        assert_eq!(status(path), expected, "{path}");
    }
    // One server has no name in paths, whatever it is called.
    let only = self::board(&["primary"]);
    up(&only, 0, &seen(false, Some(1)));
    let of_only = ["/primary", "/replica", "/any", "/"].map(|path| answer(&only, path).status);
    assert_eq!(of_only, [503, 200, 200, 200]);
    let none = self::board(&["db1", "db2"]);
    assert_eq!(answer(&none, "/").status, 503, "none of them is up");
    board.order(0, HealthOrder::Drain("upgrade".to_owned()));
    assert_eq!(status("/db1"), 404);
    board.order(0, HealthOrder::Maintenance("upgrade".to_owned()));
    assert_eq!(status("/db1"), 503);
    board.release(0);
    assert_eq!(status("/db1"), 200);
    board.probed(0, hung());
    let down = answer(&board, "/db1");
    let body: serde_json::Value = serde_json::from_str(&down.body).unwrap();
    assert_eq!((down.status, &body["state"]), (503, &"down".into()));
    assert_eq!(body["reasons"][0]["cause"], "hung");
}

#[test]
fn agents_say_both_words_and_end_their_line() {
    let board = board(&["db1", "db2"]);
    let line = |name: &str| agent_line(&board, name, Weighing::default());
    assert!(line("db1").starts_with("down #starting: "));
    up(&board, 0, &seen(true, None));
    assert_eq!(line("db1"), "up ready 100%\n");
    board.order(0, HealthOrder::Drain("x".to_owned()));
    assert_eq!(line("db1"), "up drain\n");
    board.order(0, HealthOrder::Maintenance("x".to_owned()));
    assert_eq!(line("db1"), "maint\n");
    board.release(0);
    board.probed(0, hung());
    let down = line("db1");
    assert_eq!(
        down,
        "down #hung: no answer to SELECT   for 1 s  up ready\n"
    );
    // HAProxy would keep what it had.
    for unknown in ["", "db3"] {
        assert!(line(unknown).starts_with("down #"), "{unknown}");
    }
}

#[test]
fn metrics_have_one_type_each_and_every_line_a_value() {
    let board = board(&["db1", "a\"b"]);
    up(&board, 0, &seen(true, None));
    let text = answer(&board, "/metrics").body;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
    let types: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("# TYPE"))
        .collect();
    let different: std::collections::BTreeSet<_> = types.iter().collect();
    assert_eq!(types.len(), different.len());
    for line in [
        "evenkeel_health_up{server=\"db1\"} 1",
        "evenkeel_health_up{server=\"a\\\"b\"} 0",
        "evenkeel_health_state{server=\"db1\",state=\"up\"} 1",
        "evenkeel_health_reason{server=\"a\\\"b\",reason=\"starting\"} 1",
        "evenkeel_health_probes_total{server=\"db1\"} 2",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
}

fn asked(at: SocketAddr, sent: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.write_all(sent).unwrap();
    let mut read = String::new();
    stream.read_to_string(&mut read).unwrap();
    read
}

#[test]
fn one_request_is_answered_and_the_connection_closed() {
    let board = Arc::new(board(&["db1"]));
    up(&board, 0, &seen(true, None));
    let http = serve::http("127.0.0.1:0", board.clone()).unwrap();
    let agent = serve::agent("127.0.0.1:0", board, Weighing::default()).unwrap();
    for request in [
        "GET /primary HTTP/1.1\r\nHost: x\r\n\r\n",
        "OPTIONS / HTTP/1.0\r\n\r\n",
        "GET /db1 HTTP/1.0\n\n",
    ] {
        let reply = asked(http, request.as_bytes());
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
        assert!(head.contains("\r\nConnection: close"), "{reply}");
        let length = format!("\r\nContent-Length: {}\r\n", body.len());
        assert!(head.contains(&length), "{reply}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["server"], "db1");
    }
    let head = asked(http, b"HEAD / HTTP/1.1\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "{head}");
    for nonsense in [
        &b"DELETE / HTTP/1.1\r\n\r\n"[..],
        b"\r\n\r\n",
        &[b'x'; 5000],
    ] {
        // It may also be hung up on before everything is sent.
        let mut stream = TcpStream::connect(http).unwrap();
        let _ = stream.write_all(nonsense);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        let reply = String::from_utf8_lossy(&reply).into_owned();
        assert!(
            reply.is_empty() || reply.starts_with("HTTP/1.1 400"),
            "{reply}"
        );
    }
    assert_eq!(asked(agent, b""), "up ready 100%\n");
    // Those who say nothing keep nobody else from being answered.
    let silent: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(http).unwrap())
        .collect();
    assert!(asked(http, b"GET / HTTP/1.0\r\n\r\n").contains("200 OK"));
    drop(silent);
}

/// Connects from another address of this host.
fn from(source: [u8; 4], to: SocketAddr) -> TcpStream {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
    bind(&socket, &SocketAddr::from((source, 0))).unwrap();
    connect(&socket, &to).unwrap();
    socket.into()
}

#[test]
fn one_client_cannot_take_every_turn() {
    let board = Arc::new(board(&["db1", "db2"]));
    up(&board, 0, &seen(true, None));
    let http = serve::http("127.0.0.1:0", board.clone()).unwrap();
    let agent = serve::agent("127.0.0.1:0", board, Weighing::default()).unwrap();
    for at in [http, agent] {
        // They say nothing, or half a line, and stay.
        let mut greedy: Vec<TcpStream> = Vec::new();
        for number in 0..400 {
            let mut stream = from([127, 0, 0, 2], at);
            if number % 2 == 0 {
                let _ = stream.write_all(b"GET /db1");
            }
            greedy.push(stream);
            // Whoever else comes is answered, and so is who shares an address with them.
            if number % 40 == 39 {
                for source in [[127, 0, 0, 3], [127, 0, 0, 2]] {
                    let mut stream = from(source, at);
                    let request: &[u8] = match at == http {
                        true => b"GET /db1 HTTP/1.0\r\n\r\n",
                        false => b"db1\n",
                    };
                    stream.write_all(request).unwrap();
                    let mut reply = String::new();
                    stream.read_to_string(&mut reply).unwrap();
                    let good = ["HTTP/1.1 200 OK", "up ready 100%\n"];
                    assert!(
                        good.iter().any(|it| reply.starts_with(it)),
                        "{number}: {reply}"
                    );
                }
            }
        }
        // The older ones had to go, for no more than a few may stay.
        let is_open = |stream: &mut TcpStream| {
            stream.set_nonblocking(true).unwrap();
            let read = stream.read(&mut [0; 64]);
            read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        };
        let open = greedy
            .iter_mut()
            .filter_map(|stream| is_open(stream).then_some(()));
        assert!(open.count() <= 16);
    }
}

#[test]
fn one_balancer_asks_for_all_servers_at_once() {
    let names: Vec<String> = (0..60).map(|number| format!("db{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let http = serve::http("127.0.0.1:0", Arc::new(board(&names))).unwrap();
    let mut streams: Vec<TcpStream> = names.iter().map(|_| from([127, 0, 0, 2], http)).collect();
    for (stream, name) in streams.iter_mut().zip(names) {
        let asked = format!("GET /{name} HTTP/1.0\r\n\r\n");
        stream.write_all(asked.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        assert!(reply.starts_with("HTTP/1.1 503 "), "{name}: {reply}");
    }
}

#[test]
fn answers_that_nobody_reads_end() {
    let names: Vec<String> = (0..300).map(|number| format!("db{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let board = Arc::new(board(&names));
    up(&board, 0, &seen(true, None));
    let http = serve::http("127.0.0.1:0", board).unwrap();
    let mut lazy: Vec<TcpStream> = (2..250)
        .map(|last| {
            let mut stream = from([127, 0, 1, last], http);
            stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            stream
        })
        .collect();
    assert!(asked(http, b"GET /db0 HTTP/1.0\r\n\r\n").contains("200 OK"));
    // The last of them is answered in full, if it reads.
    let mut metrics = String::new();
    lazy.pop().unwrap().read_to_string(&mut metrics).unwrap();
    assert!(metrics.contains("evenkeel_health_up{server=\"db299\"} 0"));
    let (head, body) = metrics.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())));
}

#[test]
fn a_drained_server_stays_drained_while_its_prober_restarts() {
    let before = Remembered {
        was_up: true,
        order: Some(HealthOrder::Drain("upgrade".to_owned())),
        ..Remembered::default()
    };
    let board = Board::new([("db1".to_owned(), before)], RULES);
    // Nobody knows yet if it is writable.
    for path in ["/", "/any", "/primary", "/replica", "/replica?max_lag=5s"] {
        assert_eq!(answer(&board, path).status, 404, "{path}");
    }
    assert_eq!(agent_line(&board, "", Weighing::default()), "up drain\n");
    board.probed(0, seen(true, None));
    assert_eq!(answer(&board, "/primary").status, 404);
    assert_eq!(answer(&board, "/replica").status, 503);
}
