//! A server with a baseline, and the traffic that clients then sent to it.

use crate::Site;
use crate::baselines::Rolled;
use crate::packets::Packets;
use crate::program::{Ended, run};
use evenkeel_op::Cancel;
use evenkeel_server::options::{ConnectOptions, SslMode};
use evenkeel_testkit::{LoopFs, TestServer};
use evenkeel_wire::Connection;
use std::path::PathBuf;
use std::process::Command;

const CLIENTS: i64 = 3;
const TURNS: i64 = 20;
/// The rows of the table before the traffic.
pub const ITEMS: i64 = 30;

/// A server whose traffic was captured, with the baseline `before`.
pub struct Played {
    /// The server; it was saved before the traffic.
    pub rolled: Rolled,
    /// The capture.
    pub capture: PathBuf,
    port: u16,
}

impl Played {
    /// Starts a server with the baseline, without traffic.
    #[must_use]
    pub fn server(server: TestServer, program: &str) -> Rolled {
        let site = Site::start_with_networking(server, LoopFs::xfs(4 << 30), &[]);
        let rolled = Rolled::new(site, program);
        let mut session = rolled.session();
        for sql in [
            "CREATE DATABASE shop",
            "CREATE TABLE shop.items (id INT PRIMARY KEY, stock INT)",
            "CREATE TABLE shop.sold (id INT PRIMARY KEY, item INT)",
        ] {
            session.run(sql).expect(sql);
        }
        for id in 0..ITEMS {
            let sql = format!("INSERT INTO shop.items VALUES ({id}, 1000)");
            session.run(&sql).expect("a row");
        }
        drop(session);
        rolled.done(&["save", "before"]);
        rolled
    }

    /// Starts a server, saves the baseline, and captures traffic.
    #[must_use]
    pub fn new(server: TestServer, program: &str) -> Self {
        let rolled = Self::server(server, program);
        let port = rolled.site.running().port().expect("a TCP port");
        let capture = rolled.site.fs.join("shop.pcap");
        let packets = Packets::of(port, &capture);
        let played = Self {
            rolled,
            capture,
            port,
        };
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let played = &played;
                scope.spawn(move || played.buys(client));
            }
        });
        packets.end();
        played
    }

    fn buys(&self, client: i64) {
        let options = ConnectOptions {
            socket: None,
            host: Some("127.0.0.1".to_owned()),
            port: Some(self.port),
            ssl_mode: SslMode::Disabled,
            ..self.rolled.site.running().connect_options()
        };
        let mut session = Connection::open(&options, &Cancel::new()).expect("a session");
        session.run("USE shop").expect("the database");
        for turn in 0..TURNS {
            let item = (client * 10 + turn) % ITEMS;
            for sql in [
                format!(
                    "SELECT id, stock FROM items WHERE id >= {item} AND stock > 0 AND stock < 100000
                     AND stock <> 77 ORDER BY id, stock DESC"
                ),
                "BEGIN".to_owned(),
                format!("UPDATE items SET stock = stock - 1 WHERE id = {item}"),
                format!("INSERT INTO sold VALUES ({}, {item})", client * 1000 + turn),
                "COMMIT".to_owned(),
            ] {
                session
                    .run(&sql)
                    .unwrap_or_else(|e| panic!("{sql}: {}", e.chain()));
            }
        }
    }

    /// The server's TCP port while it was captured.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Statements in all.
    #[must_use]
    pub fn statements() -> i64 {
        CLIENTS * TURNS * 5
    }

    /// Plans a command about the capture.
    #[must_use]
    pub fn command(&self, verb: &str, words: &[&str]) -> Command {
        let mut command = self.rolled.evenkeel.command(&[verb, "shop.pcap"]);
        let port = match verb {
            "replay" => "--captured-port",
            _ => "--port",
        };
        command.arg(format!("{port}={}", self.port)).args(words);
        command.current_dir(self.rolled.site.fs.path());
        command
    }

    /// Plans a replay on the server.
    #[must_use]
    pub fn replay(&self, words: &[&str]) -> Command {
        let mut command = self.command("replay", &["--no-defaults", "-u", "root", "-S"]);
        command.arg(self.rolled.site.running().socket());
        command.args(words);
        command
    }

    /// Plays the capture in rounds from the baseline.
    #[must_use]
    pub fn rounds(&self, words: &[&str]) -> Ended {
        let mut command = self.replay(&["--allow-writes", "--speed=max", "--baseline=before"]);
        command.args(words);
        run(command)
    }

    /// What the data are.
    #[must_use]
    pub fn state(&self) -> Vec<String> {
        let sql = "SELECT CONCAT_WS(' ', 'item', id, stock) AS one FROM shop.items UNION ALL
                   SELECT CONCAT_WS(' ', 'sold', id, item) FROM shop.sold ORDER BY 1";
        let rows = self.rolled.session().rows(sql).expect("rows");
        let text = |row: &evenkeel_server::connect::Row| row.at(0).map(str::to_owned);
        rows.iter().filter_map(text).collect()
    }

    /// A global variable.
    #[must_use]
    pub fn global(&self, name: &str) -> String {
        let sql = format!("SELECT @@GLOBAL.{name}");
        let value = self.rolled.session().value(&sql).expect("a value");
        value.unwrap_or_default()
    }
}
