//! Does a dump rest while others have much to do, say why, and go on afterwards?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::dump;
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_logical::dump::{
    Compression, Directory, Filter, Format, Report, Request, Throttling, dump as dump_here,
};
use evenkeel_logical::objects::Definer;
use evenkeel_op::{Cancel, Event, Progress, Result};
use evenkeel_server::launch::Running;
use evenkeel_testkit::replicas::{By, status};
use evenkeel_testkit::servers::{mariadb_10_11, mysql_8_0_15};
use evenkeel_testkit::{Bank, Scratch, until};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Hands notes on.
struct Notes(Mutex<Sender<String>>);

impl Progress for Notes {
    fn event(&self, event: Event) {
        if let Event::Note(text) = event {
            let _ = self.0.lock().unwrap().send(text);
        }
    }
}

/// Waits for a note that begins so.
fn heard(notes: &Receiver<String>, wanted: &str) -> String {
    loop {
        let note = notes.recv_timeout(Duration::from_secs(60)).expect(wanted);
        if note.starts_with(wanted) {
            return note;
        }
    }
}

/// Begins a dump in a thread.
fn begin(
    running: &Running,
    output: PathBuf,
    throttle: Throttling,
) -> (std::thread::JoinHandle<Result<Report>>, Receiver<String>) {
    let (sender, notes) = channel();
    let options = running.connect_options();
    let thread = std::thread::spawn(move || {
        let request = Request {
            threads: 2,
            filter: Filter::default(),
            format: Format::Tab,
            compression: Compression::None,
            chunk_bytes: 1 << 16,
            lock: Some(evenkeel_server::lock::LockChoice::Auto),
            limits: evenkeel_server::lock::Limits::default(),
            definer: Definer::Keep,
            throttle,
        };
        let directory = Directory {
            place: output.into(),
            leftover: evenkeel_logical::dump::Leftover::Refuse,
        };
        let progress = Notes(Mutex::new(sender));
        dump_here(&options, &request, &directory, &progress, &Cancel::new())
    });
    (thread, notes)
}

#[test]
fn while_many_statements_run() {
    for server in [mariadb_10_11(), mysql_8_0_15()] {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &SMALL);
        let mut session = running.session().unwrap();
        Bank::load(&mut session, 500).unwrap();
        session.run("SELECT GET_LOCK('busy', 60)").unwrap();
        let waiting: Vec<_> = (0..5)
            .map(|_| {
                let mut waiter = running.session().unwrap();
                std::thread::spawn(move || waiter.run("SELECT GET_LOCK('busy', 60)"))
            })
            .collect();
        let sql = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT GET_LOCK%'";
        until("five wait", || {
            session.value(sql).unwrap().as_deref() == Some("5")
        });
        let throttle = Throttling {
            threads_running: Some(3),
            ..Throttling::default()
        };
        let (thread, notes) = begin(&running, scratch.join("d"), throttle);
        let why = heard(&notes, "resting");
        assert!(
            why.contains("statements of other sessions, more than 3"),
            "{why}"
        );
        assert!(!thread.is_finished());
        session.run("SELECT RELEASE_LOCK('busy')").unwrap();
        heard(&notes, "resuming");
        let report = thread
            .join()
            .unwrap()
            .unwrap_or_else(|e| panic!("{}", e.chain()));
        assert!(report.rested > 0.0 && report.rows == 500, "{report:?}");
        for waiter in waiting {
            waiter.join().unwrap().unwrap();
        }
    }
}

#[test]
fn while_the_replica_is_behind() {
    let (server, scratch) = (mariadb_10_11(), Scratch::new());
    let how = By::Gtid;
    let options: Vec<&str> = SMALL.iter().copied().chain(how.options(&server)).collect();
    let launch = server
        .prepare(&scratch.join("source"), &options)
        .with_networking();
    let source = server.run(&launch);
    By::allow(&source);
    let mut options = options;
    options.push("--server-id=8");
    let replica = server.start(&scratch.join("replica"), &options);
    how.follow(&source, &replica);
    evenkeel_testkit::replicas::wait_until_it_applies(&replica);
    Bank::load(&mut source.session().unwrap(), 500).unwrap();
    replica
        .session()
        .unwrap()
        .run("STOP SLAVE SQL_THREAD")
        .unwrap();
    let throttle = Throttling {
        lag: Some(Duration::from_secs(30)),
        replicas: vec![replica.connect_options()],
        ..Throttling::default()
    };
    let (thread, notes) = begin(&source, scratch.join("d"), throttle);
    let why = heard(&notes, "resting");
    assert!(why.contains("is not replicating"), "{why}");
    replica
        .session()
        .unwrap()
        .run("START SLAVE SQL_THREAD")
        .unwrap();
    heard(&notes, "resuming");
    let report = thread
        .join()
        .unwrap()
        .unwrap_or_else(|e| panic!("{}", e.chain()));
    assert!(report.rested > 0.0 && report.rows == 500, "{report:?}");
    assert_eq!(status(&replica).channels.len(), 1);

    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let ended = run(dump(
        &program,
        &source,
        &scratch.join("e"),
        &["--max-lag=5s"],
    ));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.message().contains("is not a replica"), "{ended:?}");
}
