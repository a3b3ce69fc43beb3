//! Is what a replica says of itself read right, in every server's dialect?

mod replicas;

use evenkeel_server::abilities::{Abilities, Flavour};
use evenkeel_server::replication::{Positioning, Replication, ThreadState, applied_under_lock};
use evenkeel_testkit::replicas::{ACCOUNT, status};
use evenkeel_testkit::{By, Scratch, servers};
use replicas::Pair;

#[test]
fn the_watchdog() {
    replicas::be_the_watchdog();
}

#[test]
fn by_position_and_by_gtid() {
    for server in servers() {
        for by in [By::Position, By::Gtid] {
            let reported = format!("{} {by:?}", server.name);
            let pair = Pair::start(&server, by, &[], &[]);
            let now = status(&pair.replica);
            let [channel] = &now.channels[..] else {
                panic!("{reported}: {now:?}");
            };
            assert_eq!(channel.name, "", "{reported}");
            assert_eq!(channel.host, "127.0.0.1", "{reported}");
            assert_eq!(channel.port, pair.source.port(), "{reported}");
            assert_eq!(channel.user, ACCOUNT.0, "{reported}");
            assert_eq!(channel.receiver, ThreadState::Running, "{reported}");
            assert_eq!(channel.applier, ThreadState::Running, "{reported}");
            assert_eq!(channel.lag_s, Some(0), "{reported}");
            assert!(!channel.until, "{reported}");
            let positioning = match by {
                By::Position => Positioning::File,
                By::Gtid => Positioning::Gtid,
            };
            assert_eq!(channel.positioning, positioning, "{reported}");
            let place = channel.executed.clone().expect(&reported);
            assert!(place.position > 1000, "{reported}: {place:?}");

            let mut session = pair.replica.session().unwrap();
            session.run("STOP SLAVE SQL_THREAD").unwrap();
            let stopped = status(&pair.replica);
            assert_eq!(
                stopped.channels[0].applier,
                ThreadState::Stopped,
                "{reported}"
            );
            assert_eq!(stopped.channels[0].lag_s, None, "{reported}");
            let abilities = Abilities::probe(&mut session).unwrap();
            let applied = applied_under_lock(&mut session, &abilities).unwrap();
            if server.binary.flavour == Flavour::MariaDb {
                assert_eq!(applied.gtid, now.gtid, "{reported}");
            } else if server.binary.version.major == 8 {
                assert_eq!(applied.positions, [(String::new(), place)], "{reported}");
            } else {
                // MySQL 5.7 keeps it in a file, which is not written with the data.
                assert_eq!(applied.positions, [], "{reported}");
            }
        }
    }
}

#[test]
fn several_sources_are_all_seen() {
    for server in servers() {
        let scratch = Scratch::new();
        let running = server.start(
            &scratch.join("data"),
            &[
                "--server-id=2",
                "--master-info-repository=TABLE",
                "--relay-log-info-repository=TABLE",
            ]
            .map(|arg| match server.binary.flavour {
                Flavour::MariaDb if arg.contains("repository") => "--server-id=2",
                _ => arg,
            }),
        );
        let mut session = running.session().unwrap();
        let abilities = Abilities::probe(&mut session).unwrap();
        let none = Replication::read(&mut session, &abilities).unwrap();
        assert_eq!(none.channels, [], "{}", server.name);
        for (name, port) in [("east", 1), ("west", 2)] {
            let to = format!("MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='u'");
            let sql = match server.binary.flavour {
                Flavour::MariaDb => format!("CHANGE MASTER '{name}' TO {to}"),
                Flavour::MySql => format!("CHANGE MASTER TO {to} FOR CHANNEL '{name}'"),
            };
            session.run(&sql).unwrap();
        }
        let both = Replication::read(&mut session, &abilities).unwrap();
        let mut names: Vec<&str> = both.channels.iter().map(|one| &one.name[..]).collect();
        names.sort_unstable();
        assert_eq!(names, ["east", "west"], "{}", server.name);
        for channel in &both.channels {
            assert_eq!(channel.applier, ThreadState::Stopped, "{}", server.name);
            assert_eq!(channel.receiver, ThreadState::Stopped, "{}", server.name);
        }
    }
}
