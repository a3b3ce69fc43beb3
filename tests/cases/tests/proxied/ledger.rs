//! Clients that come one after the other, and which server each of them got.

use super::checked::Checked;
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::until;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// From one client to the next.
const PAUSE: Duration = Duration::from_millis(20);

/// A client: whether it began when HAProxy knew that nobody may use the first server, and who served it.
#[derive(Debug, Clone, Copy)]
struct Entry {
    is_late: bool,
    server: Option<u32>,
}

/// Who was served by whom.
pub(crate) struct Ledger {
    entries: Arc<Mutex<Vec<Entry>>>,
    is_over: Arc<AtomicBool>,
    clients: JoinHandle<()>,
}

impl Ledger {
    /// Has clients come to HAProxy from now on.
    pub(crate) fn begin(front: PathBuf, first: Arc<Checked>) -> Self {
        let entries = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (into, stop) = (entries.clone(), is_over.clone());
        let mut options = ConnectOptions::over_socket(&front, "app");
        options.connect_timeout = Duration::from_secs(5);
        let clients = std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let is_late = first.is_over();
                let server = served(&options);
                // What was known at its beginning must hold until its end.
                let is_late = is_late && first.is_over();
                into.lock().unwrap().push(Entry { is_late, server });
                std::thread::sleep(PAUSE);
            }
        });
        Self {
            entries,
            is_over,
            clients,
        }
    }

    /// Waits until so many more clients were served by a server.
    pub(crate) fn until_more_at(&self, server: u32, clients: usize) {
        let count = || {
            let entries = self.entries.lock().unwrap();
            let all = entries.iter();
            all.filter(|entry| entry.server == Some(server)).count()
        };
        let before = count();
        until(&format!("clients are served by db{server}"), || {
            count() >= before + clients
        });
    }

    /// No client reached the first server that came when it was known to be down.
    pub(crate) fn nobody_came_late(&self) {
        let entries = self.entries.lock().unwrap();
        let late: Vec<_> = entries.iter().filter(|entry| entry.is_late).collect();
        assert!(!late.is_empty());
        assert!(late.iter().all(|entry| entry.server != Some(1)), "{late:?}");
    }

    pub(crate) fn end(self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.clients.join().unwrap();
    }
}

/// Connects and asks, as a client. Returns the number of the server.
fn served(options: &ConnectOptions) -> Option<u32> {
    let mut session = Session::open(options).ok()?;
    let number = session.value("SELECT @@server_id").ok()??;
    number.parse().ok()
}
