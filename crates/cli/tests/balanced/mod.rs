//! HAProxy on another host, in front of two servers of this one, and its clients, one after the other.

use super::networked::{ADDRESSES, OtherHost};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::until;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// From one client to the next.
const PAUSE: Duration = Duration::from_millis(20);

/// Who got which server: its number, or nothing for a client who got none.
type Served = Arc<Mutex<Vec<Option<u32>>>>;

/// HAProxy, and clients until the end.
pub(crate) struct Balanced {
    haproxy: Child,
    admin: PathBuf,
    served: Served,
    is_over: Arc<AtomicBool>,
    clients: Option<JoinHandle<()>>,
}

impl Balanced {
    /// Starts HAProxy with servers at these ports; it looks at nothing but whether they can be connected to.
    pub(crate) fn start(host: &OtherHost, room: &Path, ports: [u16; 2]) -> Self {
        let [front, admin] = ["front", "admin"].map(|name| room.join(name));
        let servers: String = (1..)
            .zip(ports)
            .map(|(number, port)| format!("    server db{number} {}:{port} check\n", ADDRESSES[0]))
            .collect();
        let text = format!(
            "global\n    stats socket {}\ndefaults\n    mode tcp\n    retries 2\n    option redispatch 1\n    \
             timeout connect 5s\n    timeout client 60s\n    timeout server 60s\n    \
             default-server inter 300ms fall 2 rise 1\nlisten shop\n    bind unix@{}\n{servers}",
            admin.display(),
            front.display(),
        );
        let file = room.join("haproxy.cfg");
        std::fs::write(&file, text).unwrap();
        let mut haproxy = host.command(&["haproxy", "-db", "-f"]);
        let haproxy = haproxy.arg(&file).spawn();
        let haproxy = haproxy.expect("haproxy is installed: run testkit/setup tests");
        until("HAProxy listens", || UnixStream::connect(&admin).is_ok());
        let (served, is_over) = (Served::default(), Arc::new(AtomicBool::new(false)));
        let (into, stop) = (served.clone(), is_over.clone());
        let clients = std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let server = server_of(&front);
                into.lock().unwrap().push(server);
                std::thread::sleep(PAUSE);
            }
        });
        Self {
            haproxy,
            admin,
            served,
            is_over,
            clients: Some(clients),
        }
    }

    /// Waits until so many more clients have come; returns whom they got. The first may have begun before.
    pub(crate) fn next(&self, clients: usize) -> Vec<Option<u32>> {
        let begin = self.served.lock().unwrap().len() + 1;
        until("clients come", || {
            self.served.lock().unwrap().len() >= begin + clients
        });
        self.served.lock().unwrap()[begin..].to_vec()
    }

    /// Waits until clients get a server.
    pub(crate) fn until_used(&self, number: u32) {
        until("clients get it", || self.next(3).contains(&Some(number)));
    }

    /// Returns what HAProxy says of a server: `UP`, `DOWN`.
    pub(crate) fn status(&self, number: u32) -> String {
        let mut admin = UnixStream::connect(&self.admin).expect("HAProxy answers");
        admin.write_all(b"show stat\n").unwrap();
        let mut text = String::new();
        admin.read_to_string(&mut text).unwrap();
        let begin = format!("shop,db{number},");
        let row = text.lines().find(|line| line.starts_with(&begin));
        let status = row.and_then(|row| row.split(',').nth(17));
        status.unwrap_or_else(|| panic!("{text}")).to_owned()
    }
}

impl Drop for Balanced {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = self.clients.take().map(JoinHandle::join);
        let _ = self.haproxy.kill();
        let _ = self.haproxy.wait();
    }
}

fn server_of(front: &Path) -> Option<u32> {
    let mut options = ConnectOptions::over_socket(front, "app");
    options.connect_timeout = Duration::from_secs(5);
    let mut session = Session::open(&options).ok()?;
    let number = session.value("SELECT @@server_id").ok()??;
    number.parse().ok()
}
