//! Do we tell which privileges an account lacks, before an operation fails halfway?

use evenkeel_server::abilities::{Abilities, Privilege, missing_privileges};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::servers::newer_servers;
use evenkeel_testkit::{Scratch, servers};

const ALL: [Privilege; 8] = [
    Privilege::Reload,
    Privilege::BackupAdmin,
    Privilege::Process,
    Privilege::ReplicationClient,
    Privilege::ReplicaMonitor,
    Privilege::KillOthers,
    Privilege::SelectAll,
    Privilege::ReplicationAdmin,
];

#[test]
fn each_grant_takes_one_off_the_list() {
    for server in servers().into_iter().chain(newer_servers()) {
        let scratch = Scratch::new();
        let running = server.start(&scratch.join("data"), &["--log-bin=b", "--server-id=7"]);
        let mut root = running.session().unwrap();
        let abilities = Abilities::probe(&mut root).unwrap();
        let missing = missing_privileges(&mut root, &ALL).unwrap();
        assert_eq!(missing, [], "{}: root", server.name);
        root.run("CREATE USER b@localhost").unwrap();
        root.run("CREATE DATABASE d").unwrap();
        root.run("GRANT ALL ON d.* TO b@localhost").unwrap();
        loop {
            let options = ConnectOptions::over_socket(running.socket(), "b");
            let mut session = Session::open(&options).unwrap();
            let missing = missing_privileges(&mut session, &ALL).unwrap();
            checked_against_the_server(&mut session, &abilities, &missing);
            let Some(first) = missing.first() else {
                break;
            };
            let name = first.grant_name(abilities.flavour, abilities.version);
            root.run(&format!("GRANT {name} ON *.* TO b@localhost"))
                .unwrap();
            let mut session = Session::open(&options).unwrap();
            let after = missing_privileges(&mut session, &ALL).unwrap();
            assert!(after.len() < missing.len(), "{}: {name}", server.name);
        }
    }
}

/// The server itself says yes exactly where nothing is missing.
fn checked_against_the_server(session: &mut Session, abilities: &Abilities, missing: &[Privilege]) {
    let replica = match abilities.show_replica_status {
        true => "SHOW REPLICA STATUS",
        false => "SHOW SLAVE STATUS",
    };
    for (privilege, sql) in [
        (Privilege::Reload, "FLUSH TABLES"),
        (Privilege::Process, "SHOW ENGINE INNODB STATUS"),
        (Privilege::ReplicationClient, "SHOW BINARY LOGS"),
        (Privilege::ReplicaMonitor, replica),
        (Privilege::SelectAll, "SELECT 1 FROM mysql.user LIMIT 1"),
    ] {
        let allowed = session.rows(sql).is_ok();
        assert_eq!(allowed, !missing.contains(&privilege), "{sql}, {missing:?}");
    }
}
