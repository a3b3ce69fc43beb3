//! Clients that write to the tables, one each, and how far each of them is.

use super::{SETTLED, Subject};
use evenkeel_op::Result;
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::effort::is_full;
use evenkeel_testkit::wait::until_within;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a busy host may take to let every client take its turns: each of them is synced to disk.
const PATIENCE: Duration = Duration::from_secs(240);

/// How long a client rests after each turn in a sample. Without a rest, clients and server take all that a busy
/// host has for as long as a lock is waited for, and what they have written by then takes as long to check.
const REST: Duration = Duration::from_millis(5);

/// Between which turns something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The last one that the server had acknowledged before.
    pub acknowledged: i64,
    /// The last one that was begun after.
    pub started: i64,
}

impl Bounds {
    pub(super) fn holds(self, turn: i64) -> bool {
        (self.acknowledged..=self.started).contains(&turn)
    }
}

#[derive(Debug, Default)]
struct ClientCounts {
    started: AtomicI64,
    acknowledged: AtomicI64,
    lost: Mutex<Option<String>>,
}

/// Clients that write while they are let: in full as fast as the server takes it.
#[derive(Debug)]
pub struct EngineTraffic {
    clients: Vec<(Subject, Arc<ClientCounts>)>,
    options: ConnectOptions,
    running: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl EngineTraffic {
    /// Prepares one client for each subject: takes the turns that change nothing.
    pub fn prepare(subjects: &[Subject], options: &ConnectOptions) -> Result<Self> {
        let mut clients = Vec::new();
        for subject in subjects {
            let place = Arc::new(ClientCounts::default());
            let mut session = open(*subject, options)?;
            for _ in 0..SETTLED {
                take_turn(&mut session, *subject, &place)?;
            }
            clients.push((*subject, place));
        }
        Ok(Self {
            clients,
            options: options.clone(),
            running: Vec::new(),
            stop: Arc::default(),
        })
    }

    /// Lets all clients write.
    pub fn start(&mut self) -> Result<()> {
        self.stop.store(false, Ordering::SeqCst);
        for (subject, place) in &self.clients {
            let (subject, place) = (*subject, Arc::clone(place));
            let mut session = open(subject, &self.options)?;
            let stop = Arc::clone(&self.stop);
            let rest = rest_after(subject);
            self.running.push(std::thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    if let Err(error) = take_turn(&mut session, subject, &place) {
                        *place.lost.lock().expect("a place") = Some(error.chain());
                        return;
                    }
                    if !rest.is_zero() {
                        std::thread::sleep(rest);
                    }
                }
            }));
        }
        Ok(())
    }

    /// Stops all clients after the turn they are at. Panics when one was disturbed.
    #[track_caller]
    pub fn stop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.running.drain(..) {
            thread.join().expect("a client");
        }
        for (subject, place) in &self.clients {
            let lost = place.lost.lock().expect("a place").clone();
            assert_eq!(lost, None, "{subject:?}: a client was disturbed");
        }
    }

    /// Waits until every client has taken some more turns.
    #[track_caller]
    pub fn wait_for(&self, turns: i64) {
        let goals: Vec<i64> = self.turns(|place| &place.acknowledged);
        until_within(PATIENCE, "every table was written to", || {
            let now = self.turns(|place| &place.acknowledged);
            let is_there = |(now, goal): (&i64, &i64)| *now >= goal + turns;
            now.iter().zip(&goals).all(is_there) || self.is_anybody_lost()
        });
    }

    fn is_anybody_lost(&self) -> bool {
        let mut places = self.clients.iter().map(|(_, place)| place);
        places.any(|place| place.lost.lock().expect("a place").is_some())
    }

    /// Returns the last turn that was acknowledged, of each client.
    #[must_use]
    pub fn acknowledged(&self) -> Vec<i64> {
        self.turns(|place| &place.acknowledged)
    }

    /// Returns the last turn that was begun, of each client.
    #[must_use]
    pub fn started(&self) -> Vec<i64> {
        self.turns(|place| &place.started)
    }

    fn turns(&self, pick: fn(&ClientCounts) -> &AtomicI64) -> Vec<i64> {
        let clients = self.clients.iter();
        clients
            .map(|(_, place)| pick(place).load(Ordering::SeqCst))
            .collect()
    }
}

impl Drop for EngineTraffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.running.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Longer where nothing is ever deleted: each row is read again of each image.
fn rest_after(subject: Subject) -> Duration {
    match subject {
        _ if is_full() => Duration::ZERO,
        Subject::Table { changes: false, .. } => REST * 5,
        _ => REST,
    }
}

fn open(subject: Subject, options: &ConnectOptions) -> Result<Session> {
    let mut session = Session::open(options)?;
    if !subject.is_logged() {
        session.run("SET SESSION sql_log_bin = 0")?;
    }
    Ok(session)
}

fn take_turn(session: &mut Session, subject: Subject, place: &ClientCounts) -> Result<()> {
    let turn = place.started.fetch_add(1, Ordering::SeqCst) + 1;
    // Some of them answer with rows. MySQL 8 may ask to retry a GRANT, of which nothing was done.
    while let Err(error) = session.rows(&subject.statement(turn)) {
        if !error.chain().contains("(40001)") {
            return Err(error);
        }
    }
    place.acknowledged.store(turn, Ordering::SeqCst);
    Ok(())
}
