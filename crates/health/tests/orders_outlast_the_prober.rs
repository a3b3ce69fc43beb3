//! Are orders obeyed only from those who may give them, kept across restarts, and told apart from failures?

use evenkeel_health::board::Board;
use evenkeel_health::control::{Control, HealthRequest, ask};
use evenkeel_health::keep::{Keep, StateKey};
use evenkeel_health::machine::{HealthOrder, HealthState, Rules};
use evenkeel_health::probe::Observed;
use evenkeel_op::ErrorKind;
use evenkeel_testkit::Scratch;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
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

fn board(keep: &Keep) -> Arc<Board> {
    let mut before = keep.load().unwrap();
    let servers =
        ["db1", "db2"].map(|name| (name.to_owned(), before.remove(name).unwrap_or_default()));
    Arc::new(Board::new(servers, RULES))
}

fn drain(server: &str) -> HealthRequest {
    HealthRequest::Order {
        server: server.to_owned(),
        order: HealthOrder::Drain("upgrade".to_owned()),
    }
}

fn release(server: &str) -> HealthRequest {
    HealthRequest::Release {
        server: server.to_owned(),
    }
}

fn state(board: &Board, server: usize) -> HealthState {
    board.probed(server, Observed::default());
    board.probed(server, Observed::default());
    board.verdict(server).state
}

#[test]
fn an_order_is_there_after_a_restart() {
    let room = Scratch::new();
    let (directory, socket) = (room.join("state"), room.join("run/health.sock"));
    let keep = Arc::new(Keep::open(&directory).unwrap());
    let first = board(&keep);
    let control = Control::obey(&socket, first.clone(), Some(keep.clone())).unwrap();
    let shown = ask(&socket, &drain("db1")).unwrap();
    assert_eq!(shown[0]["server"], "db1");
    assert_eq!(state(&first, 0), HealthState::Draining);
    assert_eq!(state(&first, 1), HealthState::Up);
    // A second one would answer for the same servers.
    let busy = Keep::open(&directory).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    let busy = Control::obey(&socket, first.clone(), None).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    // Killed: nothing was written in the end, and its socket is still there.
    std::mem::forget(control);
    let kept = std::fs::read_to_string(directory.join("health.json")).unwrap();
    assert!(kept.contains("upgrade"), "{kept}");
    let copy = room.join("again");
    std::fs::create_dir(&copy).unwrap();
    std::fs::write(copy.join("health.json"), kept).unwrap();
    // While only the other one is watched, the order is not forgotten.
    let keep = Arc::new(Keep::open(&copy).unwrap());
    let before = keep.load().unwrap().remove("db2").unwrap();
    let other = Board::new([("db2".to_owned(), before)], RULES);
    keep.save(&other).unwrap();
    let second = board(&keep);
    assert_eq!(state(&second, 0), HealthState::Draining);
    assert_eq!(state(&second, 1), HealthState::Up);
    let socket = room.join("run/second.sock");
    let control = Control::obey(&socket, second.clone(), Some(keep)).unwrap();
    ask(&socket, &release("db1")).unwrap();
    assert_eq!(state(&second, 0), HealthState::Up);
    let all = ask(&socket, &HealthRequest::Status).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 2);
    drop(control);
    assert!(!socket.exists());
}

#[test]
fn an_old_prober_that_ends_leaves_the_socket_of_a_newer_one() {
    let room = Scratch::new();
    let board = board(&Keep::open(&room.join("state")).unwrap());
    let socket = room.join("health.sock");
    let old = Control::obey(&socket, board.clone(), None).unwrap();
    // Somebody cleaned up, or put another one in its place.
    std::fs::remove_file(&socket).unwrap();
    let new = Control::obey(&socket, board, None).unwrap();
    drop(old);
    assert!(ask(&socket, &HealthRequest::Status).is_ok());
    drop(new);
    assert!(!socket.exists());
}

#[test]
fn a_path_is_as_long_as_it_likes_and_a_name_that_is_too_long_is_said() {
    let room = Scratch::new();
    let board = board(&Keep::open(&room.join("state")).unwrap());
    let deep = room.join("d".repeat(100)).join("e".repeat(100));
    let socket = deep.join("health.sock");
    let _control = Control::obey(&socket, board.clone(), None).unwrap();
    assert!(ask(&socket, &HealthRequest::Status).is_ok());
    let long = room.join("n".repeat(86));
    for error in [
        Control::obey(&long, board, None).unwrap_err(),
        ask(&long, &HealthRequest::Status).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(
            error.to_string().contains("its name has 86 bytes"),
            "{error}"
        );
    }
}

/// Somebody's socket that is not one of ours.
fn somebody(path: &Path, answer: Option<&'static str>) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    let accepting = listener.try_clone().unwrap();
    if let Some(answer) = answer {
        std::thread::spawn(move || {
            let (mut stream, _) = accepting.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
        });
    }
    listener
}

#[test]
fn one_that_is_stopped_is_told_from_one_that_is_gone() {
    let room = Scratch::new();
    let stopped = somebody(&room.join("stopped"), None);
    let error = ask(&room.join("stopped"), &HealthRequest::Status).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(
        error.to_string().contains("is there, but has not answered"),
        "{error}"
    );
    assert!(error.hints()[0].contains("kill -CONT"), "{error:?}");
    // Also if so many wait that nobody else can: that is not waited for.
    let mut waiting = Vec::new();
    let full = loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let address = SocketAddrUnix::new(room.join("stopped")).unwrap();
        match connect(&socket, &address) {
            Ok(()) => waiting.push(socket),
            Err(error) => break error,
        }
    };
    assert_eq!(full, rustix::io::Errno::AGAIN);
    let error = ask(&room.join("stopped"), &HealthRequest::Status).unwrap_err();
    assert!(error.to_string().contains("is there, but"), "{error}");
    let board = board(&Keep::open(&room.join("state")).unwrap());
    let busy = Control::obey(&room.join("stopped"), board, None).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    drop(stopped);
    let error = ask(&room.join("stopped"), &HealthRequest::Status).unwrap_err();
    assert!(error.to_string().contains("no answer from"), "{error}");
}

#[test]
fn words_of_somebody_elses_drive_no_terminal() {
    let room = Scratch::new();
    let path = room.join("theirs");
    let answer = "{\"kind\":\"failed\",\"message\":\"a\\u001b]0;b\\u009bc\\u202ed\"}\n";
    let _theirs = somebody(&path, Some(answer));
    let error = ask(&path, &HealthRequest::Status).unwrap_err();
    assert_eq!(error.to_string(), "a ]0;b c d");
}

#[test]
fn what_is_kept_is_found_whatever_socket_is_there_today() {
    let room = Scratch::new();
    let old = r#"{"schema":"evenkeel/health-state/1","saved_ms":0,"servers":{
        "/tmp/mysql.sock":{"was_up":true,"order":{"order":"drain","reason":"upgrade"}},
        "/run/mysqld/mysqld.sock":{"was_up":true,"is_locked":true},
        "db7":{"order":{"order":"maintenance","reason":"disk"}},
        "db8":{"was_up":true}}}"#;
    std::fs::create_dir(room.join("state")).unwrap();
    std::fs::write(room.join("state/health.json"), old).unwrap();
    let usual = StateKey::usual_socket(&["/run/mysqld/mysqld.sock", "/tmp/mysql.sock"]);
    for _ in 0..2 {
        let keep = Keep::open(&room.join("state")).unwrap();
        keep.load().unwrap();
        let known = keep.resume("localhost", &usual);
        assert!(known.order.is_some() && known.is_locked);
        // What nobody asks for any more is said.
        let left = keep.not_watched();
        let left: Vec<&str> = left.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(left, ["db7"]);
        let board = Board::new([("localhost".to_owned(), known)], RULES);
        keep.save(&board).unwrap();
    }
    let kept = std::fs::read_to_string(room.join("state/health.json")).unwrap();
    assert!(
        kept.contains("\"localhost\"") && !kept.contains("mysql.sock"),
        "{kept}"
    );
    // A name that was one of a host is that of its port; another port is another server.
    let keep = Keep::open(&room.join("state")).unwrap();
    keep.load().unwrap();
    assert!(
        keep.resume("db7", &StateKey::tcp("db7", 3306))
            .order
            .is_some()
    );
    assert!(
        keep.resume("db7", &StateKey::tcp("db7", 3307))
            .order
            .is_none()
    );
}

#[test]
fn what_cannot_be_obeyed_says_why() {
    let room = Scratch::new();
    let keep = Keep::open(&room.join("state")).unwrap();
    let board = board(&keep);
    let socket = room.join("health.sock");
    let error = ask(&socket, &HealthRequest::Status).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(!error.hints().is_empty());
    let _control = Control::obey(&socket, board, None).unwrap();
    for (request, said) in [(drain("db3"), "'db3'"), (release(""), "name one")] {
        let error = ask(&socket, &request).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.chain().contains(said), "{}", error.chain());
    }
    let long = |letters| HealthRequest::Order {
        server: "db1".to_owned(),
        order: HealthOrder::Maintenance("x".repeat(letters)),
    };
    let error = ask(&socket, &long(4096)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.chain().contains("too long"), "{}", error.chain());
    let shown = ask(&socket, &long(3000)).unwrap();
    assert_eq!(shown[0]["order"], "maintenance", "{shown}");
    let error = ask(&socket, &drain("db1")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(
        !error.chain().contains('\n') && error.chain().contains("undrain"),
        "{error}"
    );
}

#[test]
fn what_another_user_put_there_is_not_used() {
    let room = Scratch::new();
    let open = room.join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    let refused = |error: evenkeel_op::Error| error.kind() == ErrorKind::Refused;
    assert!(Keep::open(&open).is_err_and(refused));
    let own = room.join("own");
    let board = board(&Keep::open(&own).unwrap());
    let obey = |path: &Path| Control::obey(path, board.clone(), None);
    assert!(obey(&open.join("health.sock")).is_err_and(refused));
    let file = own.join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(obey(&file).is_err_and(refused));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x");
    // A drained server must not come back because a file is not understood.
    let freeze = r#"{"schema":"evenkeel/health-state/1","saved_ms":0,"servers":{"db1":{"order":{"order":"freeze"}}}}"#;
    for text in ["{", freeze] {
        std::fs::write(own.join("health.json"), text).unwrap();
        assert!(Keep::open(&own).unwrap().load().is_err(), "{text}");
    }
    std::fs::remove_file(own.join("health.json")).unwrap();
    symlink(&file, own.join("health.json")).unwrap();
    assert!(Keep::open(&own).unwrap().load().is_err());
    let mode = std::fs::metadata(room.join("own")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
}
