//! Servers that have queues.

mod hosts;

pub use hosts::Host;

pub mod ledger;
pub mod over_innodb;
pub mod soak;
pub mod tools;
pub mod verbs;

use evenkeel_server::connect::Session;
use evenkeel_server::launch::{Launch, Running};
use evenkeel_testkit::{Scratch, TestServer, until};
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::process::Command;

/// Functions that return numbers.
const NUMBERS: [&str; 7] = [
    "queue_wait",
    "queue_wait_n",
    "queue_end",
    "queue_abort",
    "queue_rowid",
    "queue_set_srcid",
    "queue_compact",
];

/// A server with queues, and a database `shop`.
#[derive(Debug)]
pub struct QueueSite {
    /// The server.
    pub running: Running,
    /// How it was started.
    pub launch: Launch,
    /// Which server it is.
    pub host: Host,
    server: TestServer,
    _scratch: Scratch,
}

impl QueueSite {
    /// Starts Debian's MariaDB with more options.
    #[must_use]
    pub fn start(more: &[&str]) -> Self {
        Self::start_on(Host::MariaDb10, more)
    }

    /// Starts a server with more options.
    #[must_use]
    pub fn start_on(host: Host, more: &[&str]) -> Self {
        Self::start_as(host, more, |launch| launch)
    }

    /// Starts a server that others may replicate from.
    #[must_use]
    pub fn start_with_networking(host: Host, more: &[&str]) -> Self {
        Self::start_as(host, more, Launch::with_networking)
    }

    fn start_as(host: Host, more: &[&str], plan: fn(Launch) -> Launch) -> Self {
        let (server, scratch) = (host.server(), Scratch::new());
        let plugins = scratch.join("plugins");
        fs::create_dir(&plugins).expect("a plugin directory");
        fs::copy(plugin(host, &server), plugins.join("ha_queue.so")).expect("the plugin");
        let plugin_dir = format!("--plugin-dir={}", plugins.display());
        let mut args = vec![
            "--log-bin=binlog",
            "--server-id=7",
            "--innodb-buffer-pool-size=32M",
            &plugin_dir,
        ];
        args.extend(host.options());
        args.extend(more);
        let launch = plan(server.prepare(&scratch.join("data"), &args));
        let running = server.run(&launch);
        let mut session = running.session().expect("a session");
        let numbers = NUMBERS
            .map(|name| format!("CREATE FUNCTION {name} RETURNS INTEGER SONAME 'ha_queue.so'"));
        let others = [
            "INSTALL PLUGIN queue SONAME 'ha_queue.so'",
            "CREATE FUNCTION queue_stats RETURNS STRING SONAME 'ha_queue.so'",
            "CREATE DATABASE shop",
        ];
        for sql in numbers.iter().map(String::as_str).chain(others) {
            session
                .run(sql)
                .unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
        }
        Self {
            running,
            launch,
            host,
            server,
            _scratch: scratch,
        }
    }

    /// A session in the database `shop`.
    #[must_use]
    pub fn session(&self) -> Session {
        let mut session = self.running.session().expect("a session");
        session.run("USE shop").expect("the database");
        session
    }

    /// The directory below which the rows of all queues are.
    #[must_use]
    pub fn rows(&self) -> PathBuf {
        self.launch.datadir.join("#sqlqueue")
    }

    /// Empties the database `shop`.
    pub fn clear(&self) {
        let mut session = self.running.session().expect("a session");
        for sql in ["DROP DATABASE shop", "CREATE DATABASE shop"] {
            session
                .run(sql)
                .unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
        }
    }

    /// UNINSTALL by hand, until the engine is gone.
    pub fn take_out(&self) {
        self.running
            .session()
            .expect("a session")
            .run("FLUSH TABLES")
            .expect("closed tables");
        until("nobody uses it", || {
            let mut session = self.running.session().expect("a session");
            session.run("UNINSTALL PLUGIN queue").is_ok()
        });
        until("it is gone", || {
            let mut session = self.running.session().expect("a session");
            let sql = "SELECT COUNT(*) FROM information_schema.PLUGINS WHERE PLUGIN_NAME = 'QUEUE'";
            session.value(sql).expect("a count").as_deref() == Some("0")
        });
    }

    /// INSTALL by hand, after [`QueueSite::take_out`].
    pub fn put_in(&self, session: &mut Session) {
        session
            .run("INSTALL PLUGIN queue SONAME 'ha_queue.so'")
            .expect("the engine");
    }

    /// Starts it again, after it was killed or stopped by `end`.
    #[must_use]
    pub fn again(mut self, end: impl FnOnce(Running)) -> Self {
        end(self.running);
        self.running = self.server.run(&self.launch);
        self
    }
}

/// The plugin, built of what cargo has built for these tests and of the handler's sources.
#[must_use]
pub fn plugin(host: Host, server: &TestServer) -> PathBuf {
    let sources = evenkeel_testkit::checkout().join("queue");
    let (library, headers) = (engine_library(), host.headers());
    let mut hasher = DefaultHasher::new();
    server.binary.version.to_string().hash(&mut hasher);
    let mut parts: Vec<PathBuf> = [host.family(), "handler"]
        .into_iter()
        .flat_map(|part| fs::read_dir(sources.join(part)).expect("the handler's sources"))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    parts.sort();
    parts.extend([sources.join("engine/engine.h"), library.clone()]);
    parts.push(headers.join("VERSION"));
    for part in &parts {
        let bytes =
            fs::read(part).unwrap_or_else(|e| panic!("{}: {e}: run testkit/setup", part.display()));
        bytes.hash(&mut hasher);
    }
    let beside = library.parent().expect("a directory");
    let output = beside.join(format!("ha_queue-{:016x}.so", hasher.finish()));
    // Tests run side by side, in processes of their own: one builds it.
    let lock = File::create(beside.join("ha_queue.lock")).expect("a lock");
    lock.lock().expect("the lock");
    if !output.exists() {
        let built = Command::new(sources.join(host.family()).join("build"))
            .args([&headers, &library, &output])
            .env(host.variable(), &server.binary.path)
            .output()
            .expect("the build runs");
        assert!(
            built.status.success(),
            "{}",
            String::from_utf8_lossy(&built.stderr)
        );
    }
    output
}

/// What cargo has built of the engine; the newest, where there are several.
#[must_use]
pub fn engine_library() -> PathBuf {
    let program = std::env::current_exe().expect("this program's path");
    let beside = program.parent().expect("a directory");
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libevenkeel_queue_engine") && name.ends_with(".a")
    };
    let entries = fs::read_dir(beside).expect("the tests' directory");
    entries
        .map(|entry| entry.expect("an entry").path())
        .filter(is_ours)
        .max_by_key(|path| fs::metadata(path).and_then(|meta| meta.modified()).ok())
        .expect("cargo builds the engine's library for these tests")
}
