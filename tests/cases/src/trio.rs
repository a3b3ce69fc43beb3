//! A source with two replicas, to be broken.

use crate::program::{Ended, Evenkeel, run};
use evenkeel_server::abilities::{Abilities, Flavour};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::{Launch, Running};
use evenkeel_server::replication::{Channel, ThreadState};
use evenkeel_testkit::replicas::has_fetched;
use evenkeel_testkit::servers::SERVER_DEADLINE;
use evenkeel_testkit::{By, Scratch, TestServer, until, wait_until_caught_up};
use serde_json::Value;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What all three have.
const OPTIONS: [&str; 5] = [
    // As a statement, an update of a row that is missing succeeds.
    "--binlog-format=ROW",
    "--innodb-buffer-pool-size=32M",
    "--innodb-flush-log-at-trx-commit=2",
    "--relay-log=relay",
    "--slave-net-timeout=60",
];
const IDS: [&str; 3] = ["--server-id=1", "--server-id=2", "--server-id=3"];

/// A source (0) and its replicas (1 and 2).
pub struct Trio {
    /// Which server they are.
    pub server: TestServer,
    /// How replicas find their place.
    pub by: By,
    launches: Vec<Launch>,
    running: Vec<Option<Running>>,
    ports: Vec<u16>,
    evenkeel: Evenkeel,
    scratch: Scratch,
}

impl Trio {
    /// Starts them, with a table `shop.a` with three rows and one `shop.nokey`, and waits until all have it.
    #[must_use]
    pub fn start(server: TestServer, by: By, more: &[&'static str], program: &str) -> Self {
        Self::start_with(server, by, more, None, program)
    }

    /// The same, with the relay logs in another directory.
    #[must_use]
    pub fn start_with(
        server: TestServer,
        by: By,
        more: &[&'static str],
        relay_logs: Option<&Path>,
        program: &str,
    ) -> Self {
        let scratch = Scratch::new();
        let launches: Vec<Launch> = IDS
            .iter()
            .enumerate()
            .map(|(at, id)| {
                let mut args = by.options(&server);
                args.extend(OPTIONS);
                args.extend(more);
                args.push(id);
                let launch = server
                    .prepare(&scratch.join(format!("data{at}")), &args)
                    .with_networking();
                match relay_logs {
                    Some(elsewhere) => {
                        launch.arg(format!("--relay-log={}/relay{at}", elsewhere.display()))
                    }
                    None => launch,
                }
            })
            .collect();
        let running: Vec<Option<Running>> = launches
            .iter()
            .map(|launch| Some(server.run(launch)))
            .collect();
        let ports = running
            .iter()
            .map(|one| one.as_ref().unwrap().port().unwrap())
            .collect();
        let trio = Self {
            server,
            by,
            launches,
            running,
            ports,
            evenkeel: Evenkeel::new(program),
            scratch,
        };
        By::allow(trio.running(0));
        for replica in [1, 2] {
            by.follow(trio.running(0), trio.running(replica));
        }
        for sql in [
            "CREATE DATABASE shop",
            "CREATE TABLE shop.a (id INT PRIMARY KEY, u INT, t VARCHAR(60), UNIQUE KEY u (u), KEY t (t)) ENGINE=InnoDB",
            "CREATE TABLE shop.nokey (id INT, t VARCHAR(60)) ENGINE=InnoDB",
            "INSERT INTO shop.a VALUES (1, 10, 'one'), (2, 20, 'two'), (3, 30, 'three')",
            "INSERT INTO shop.nokey VALUES (1, 'one'), (2, 'two')",
        ] {
            trio.sql(0, sql);
        }
        trio.catch_up();
        trio
    }

    /// Returns a server.
    #[must_use]
    pub fn running(&self, at: usize) -> &Running {
        self.running[at].as_ref().expect("it runs")
    }

    /// Returns a server's data directory.
    #[must_use]
    pub fn datadir(&self, at: usize) -> PathBuf {
        self.scratch.join(format!("data{at}"))
    }

    /// Returns the port of a server.
    #[must_use]
    pub fn port(&self, at: usize) -> u16 {
        self.ports[at]
    }

    /// Opens a session.
    #[must_use]
    pub fn session(&self, at: usize) -> Session {
        self.running(at).session().expect("a session")
    }

    /// Runs a statement.
    pub fn sql(&self, at: usize, sql: &str) {
        self.session(at).run(sql).expect(sql);
    }

    /// Runs statements that no other server is told of.
    pub fn unlogged(&self, at: usize, all: &[&str]) {
        let mut session = self.session(at);
        session.run("SET sql_log_bin = 0").unwrap();
        for sql in all {
            session.run(sql).expect(sql);
        }
    }

    /// Returns the words for replication that this server has.
    #[must_use]
    pub fn word(&self) -> &'static str {
        let mut session = self.session(0);
        let abilities = Abilities::probe(&mut session).unwrap();
        if abilities.replica_statements {
            "REPLICA"
        } else {
            "SLAVE"
        }
    }

    /// Starts or stops replication, or a part of it.
    pub fn order(&self, at: usize, verb: &str, what: &str) {
        self.sql(at, &format!("{verb} {} {what}", self.word()));
    }

    /// Changes what a replica knows of its source: `MASTER_…`.
    pub fn change(&self, at: usize, what: &str) {
        let mut session = self.session(at);
        let abilities = Abilities::probe(&mut session).unwrap();
        let sql = match abilities.change_replication_source {
            true => format!(
                "CHANGE REPLICATION SOURCE TO {}",
                what.replace("MASTER_", "SOURCE_")
            ),
            false => format!("CHANGE MASTER TO {what}"),
        };
        session.run(&sql).expect(&sql);
    }

    /// Returns the only channel of a replica.
    #[must_use]
    pub fn channel(&self, at: usize) -> Channel {
        let mut session = self.session(at);
        let abilities = Abilities::probe(&mut session).unwrap();
        let mut all = Channel::all(&mut session, &abilities).unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    /// Waits until a channel is as it should be.
    #[track_caller]
    pub fn until(&self, at: usize, what: &str, is: impl Fn(&Channel) -> bool) {
        let mut last = None;
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until(what, || {
                let channel = self.channel(at);
                let is_so = is(&channel);
                last = Some(channel);
                is_so
            });
        }));
        assert!(ended.is_ok(), "not {what}: {last:?}");
    }

    /// Waits until a replica's applier has stopped with an error.
    #[track_caller]
    pub fn until_applier_fails(&self, at: usize) {
        self.until(at, "the applier fails", |channel| {
            channel.applier == ThreadState::Stopped && channel.applier_error.is_some()
        });
    }

    /// Waits until a replica has fetched all that the source has logged.
    #[track_caller]
    pub fn until_fetched(&self, at: usize) {
        let mut session = self.session(0);
        let abilities = Abilities::probe(&mut session).unwrap();
        let source = std::cell::RefCell::new(session);
        self.until(at, "all is fetched", |channel| {
            has_fetched(channel, &mut source.borrow_mut(), &abilities)
        });
    }

    /// Returns a replica's relay logs, each with its length.
    #[must_use]
    pub fn relay_files(&self, at: usize) -> Vec<(u64, PathBuf)> {
        let entries = std::fs::read_dir(self.datadir(at)).unwrap();
        let is_log = |name: &str| {
            let number = name.strip_prefix("relay.");
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        entries
            .map(Result::unwrap)
            .filter(|entry| is_log(&entry.file_name().to_string_lossy()))
            .map(|entry| (entry.metadata().unwrap().len(), entry.path()))
            .collect()
    }

    /// Damages a replica's relay log in what comes next, of 20 rows from the number `first` on, at a place of the
    /// newest one that its length leads to. Its applier has failed then.
    #[track_caller]
    pub fn damage_relay_log(&self, at: usize, first: u32, place: impl Fn(u64) -> u64) {
        self.order(at, "STOP", "SQL_THREAD");
        for id in first..first + 20 {
            let row = format!("INSERT INTO shop.a VALUES ({id}, {id}, REPEAT('x', 50))");
            self.sql(0, &row);
        }
        self.until_fetched(at);
        let (length, path) = self.relay_files(at).into_iter().max().unwrap();
        let file = std::fs::File::options().write(true).open(path).unwrap();
        // In what comes next: MariaDB with GTIDs deletes it if the receiver stands too.
        file.write_all_at(&[0xff; 300], place(length)).unwrap();
        self.order(at, "START", "SQL_THREAD");
        self.until_applier_fails(at);
    }

    /// Waits until both replicas have applied everything, and compares all tables.
    #[track_caller]
    pub fn catch_up(&self) {
        for replica in [1, 2] {
            wait_until_caught_up(self.running(0), self.running(replica));
            for table in ["shop.a", "shop.nokey"] {
                assert_eq!(self.rows(replica, table), self.rows(0, table), "{table}");
            }
        }
    }

    fn rows(&self, at: usize, table: &str) -> Vec<String> {
        let rows = self
            .session(at)
            .rows(&format!("SELECT * FROM {table} ORDER BY id, t"))
            .unwrap();
        rows.iter().map(|row| format!("{row:?}")).collect()
    }

    /// Stops a server in an orderly way.
    pub fn stop(&mut self, at: usize) {
        let running = self.running[at].take().expect("it runs");
        running.stop(SERVER_DEADLINE).expect("it stops");
    }

    /// Stops a server with SIGKILL.
    pub fn kill(&mut self, at: usize) {
        self.running[at].take().expect("it runs").kill();
    }

    /// Starts a server again, at the port that it had, with more options.
    pub fn restart(&mut self, at: usize, more: &[&str]) {
        let mut launch = self.launches[at]
            .clone()
            .arg(format!("--port={}", self.ports[at]));
        for arg in more {
            launch = launch.arg(*arg);
        }
        self.running[at] = Some(self.server.run(&launch));
    }

    /// Asks what is wrong with these.
    #[must_use]
    pub fn diagnose(&self, which: &[usize], more: &[&str]) -> Ended {
        self.asks("diagnose", which, more)
    }

    /// Runs a verb of `replica` about these.
    #[must_use]
    pub fn asks(&self, verb: &str, which: &[usize], more: &[&str]) -> Ended {
        run(self.command(verb, which, more))
    }

    /// Plans a run of a verb of `replica` about these.
    #[must_use]
    pub fn command(&self, verb: &str, which: &[usize], more: &[&str]) -> Command {
        self.command_as("root", verb, which, more)
    }

    /// The same, with another account.
    #[must_use]
    pub fn command_as(&self, user: &str, verb: &str, which: &[usize], more: &[&str]) -> Command {
        let sockets: Vec<String> = which
            .iter()
            .map(|at| self.running(*at).socket().display().to_string())
            .collect();
        let mut args = vec!["replica", verb, "--no-defaults", "-u", user];
        args.extend(sockets.iter().map(String::as_str));
        args.extend(more);
        self.evenkeel.command(&args)
    }

    /// Diagnoses all three until what is found about a server is this, and returns it. Nothing else may be found.
    #[track_caller]
    pub fn finds(&self, at: usize, failure: &str) -> Value {
        self.finds_with(at, failure, &[])
    }

    /// The same, with more options.
    #[track_caller]
    pub fn finds_with(&self, at: usize, failure: &str, more: &[&str]) -> Value {
        let socket = self.running(at).socket().display().to_string();
        let which: Vec<usize> = (0..3).filter(|at| self.running[*at].is_some()).collect();
        let ended = self.diagnose(&which, more);
        assert_eq!(ended.code, Some(4), "{failure}: {ended:?}");
        let all = ended.answer["findings"].as_array().expect("findings");
        let of = |one: &&Value| one["server"] == socket.as_str();
        let found: Vec<&Value> = all.iter().filter(of).collect();
        let names: Vec<&Value> = found.iter().map(|one| &one["failure"]).collect();
        assert!(
            names.contains(&&Value::from(failure)),
            "{failure}: {ended:?}"
        );
        let found = found.into_iter().find(|one| one["failure"] == failure);
        found.expect("it was found").clone()
    }

    /// Diagnoses all three, and finds nothing.
    #[track_caller]
    pub fn is_well(&self) {
        let ended = self.diagnose(&[0, 1, 2], &[]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }

    /// Runs the statements of a repair, in their order; what is no statement is left out.
    pub fn repair(&self, at: usize, found: &Value) {
        for step in found["repair"].as_array().expect("steps") {
            if let Some(sql) = step["sql"].as_str() {
                self.sql(at, sql);
            }
        }
    }

    /// Whether it is MariaDB.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        self.server.binary.flavour == Flavour::MariaDb
    }
}
