//! A server that replicates from another.

use crate::servers::TestServer;
use crate::wait::until_within;
use evenkeel_server::abilities::{Abilities, Flavour};
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::launch::Running;
use evenkeel_server::replication::{Channel, Position, Replication, ThreadState};
use std::time::{Duration, Instant};

/// The account that replicas use, and its password.
pub const ACCOUNT: (&str, &str) = ("repl", "s3cret");

/// How a replica finds its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// File and position.
    Position,
    /// GTIDs.
    Gtid,
}

impl By {
    /// Options that source and replica need for it, besides a server id and networking.
    #[must_use]
    pub fn options(self, server: &TestServer) -> Vec<&'static str> {
        let mut options = vec!["--log-bin=binlog"];
        if server.binary.flavour == Flavour::MySql {
            // From MySQL 8 on, replicas do so by themselves.
            if server.binary.version.major < 8 {
                options.push("--log-slave-updates=ON");
            }
            if self == Self::Gtid {
                options.extend(["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]);
            }
        } else {
            options.push("--log-slave-updates=ON");
        }
        options
    }

    /// Makes the account for replicas on a source.
    pub fn allow(source: &Running) {
        let mut session = source.session().expect("a session");
        let abilities = Abilities::probe(&mut session).expect("abilities");
        let how = match abilities.flavour {
            Flavour::MySql if !abilities.change_replication_source => {
                "WITH mysql_native_password BY"
            }
            // MySQL 9 has no such accounts any more.
            Flavour::MySql | Flavour::MariaDb => "BY",
        };
        let (user, password) = ACCOUNT;
        for sql in [
            format!("CREATE USER '{user}'@'%' IDENTIFIED {how} '{password}'"),
            format!("GRANT REPLICATION SLAVE ON *.* TO '{user}'@'%'"),
        ] {
            session.run(&sql).expect(&sql);
        }
    }

    /// Makes an empty server replicate everything that `source` (with networking and a binary log
    /// `binlog`) ever logged.
    pub fn follow(self, source: &Running, replica: &Running) {
        let mut session = replica.session().expect("a session");
        let abilities = Abilities::probe(&mut session).expect("abilities");
        let (user, password) = ACCOUNT;
        let port = source.port().expect("a source has networking");
        let place = match (self, abilities.flavour) {
            (Self::Position, Flavour::MySql) => "MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4",
            (Self::Position, Flavour::MariaDb) => {
                "MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4, MASTER_USE_GTID=no"
            }
            (Self::Gtid, Flavour::MySql) => "MASTER_AUTO_POSITION=1",
            (Self::Gtid, Flavour::MariaDb) => "MASTER_USE_GTID=slave_pos",
        };
        let change = format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='{user}', \
             MASTER_PASSWORD='{password}', MASTER_CONNECT_RETRY=1, {place}"
        );
        let (change, start) = if abilities.change_replication_source {
            let change = change.replace("CHANGE MASTER", "CHANGE REPLICATION SOURCE");
            let change = change.replace("MASTER_", "SOURCE_");
            (
                format!("{change}, GET_SOURCE_PUBLIC_KEY=1"),
                "START REPLICA",
            )
        } else {
            (change, "START SLAVE")
        };
        for sql in [&change, start] {
            session.run(sql).expect(sql);
        }
    }
}

/// Returns the state of a server's replication.
#[must_use]
pub fn status(running: &Running) -> Replication {
    let mut session = running.session().expect("a session");
    let abilities = Abilities::probe(&mut session).expect("abilities");
    Replication::read(&mut session, &abilities).expect("a status")
}

/// Waits until a server's only applier runs.
#[track_caller]
pub fn wait_until_it_applies(running: &Running) {
    until_within(Duration::from_secs(60), "the applier runs", || {
        let status = status(running);
        let [channel] = &status.channels[..] else {
            panic!("one channel: {status:?}");
        };
        assert_eq!(channel.applier_error, None);
        channel.applier == ThreadState::Running
    });
}

fn is_at(place: Option<&Position>, at: &Coordinates) -> bool {
    place.is_some_and(|place| {
        Some(&place.file) == at.binlog_file.as_ref() && Some(place.position) == at.binlog_position
    })
}

/// Whether a replica has fetched everything that its source has logged by now.
#[must_use]
pub fn has_fetched(channel: &Channel, source: &mut Session, abilities: &Abilities) -> bool {
    let at = Coordinates::read(source, abilities).expect("coordinates");
    is_at(channel.received.as_ref(), &at)
}

/// Waits until a replica has applied everything that its source has logged by now. The source must
/// not go on meanwhile.
#[track_caller]
pub fn wait_until_caught_up(source: &Running, replica: &Running) {
    let mut session: Session = source.session().expect("a session");
    let abilities = Abilities::probe(&mut session).expect("abilities");
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        let status = status(replica);
        let [channel] = &status.channels[..] else {
            panic!("one channel: {status:?}");
        };
        assert_eq!(channel.applier_error, None);
        assert!(
            channel.receiver_error.is_none() || channel.receiver != ThreadState::Stopped,
            "{channel:?}"
        );
        // Again and again: MariaDB notes a while after a new file begins that the one before is not needed any more.
        let at = Coordinates::read(&mut session, &abilities).expect("coordinates");
        let is_there = is_at(channel.executed.as_ref(), &at);
        if is_there {
            return;
        }
        assert!(Instant::now() < end, "not at {at:?}, but {channel:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
