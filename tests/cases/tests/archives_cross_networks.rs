//! Is an archive of binary logs that came over TLS, or compressed, the server's own files byte for byte, and does the server
//! hear what is acknowledged?

use evenkeel_cases::Site;
use evenkeel_cases::archives::assert_equal;
use evenkeel_cases::program::{Ended, Evenkeel, run};
use evenkeel_server::connect::Session;
use evenkeel_testkit::servers::{
    give_to_server, mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9,
};
use evenkeel_testkit::{LoopFs, TestServer, until};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, Stdio};

/// Bytes of a row that is longer than one packet of the protocol.
const LONG: usize = 17 << 20;

/// A server with a log of a few files, the first of them with a long row.
fn start(server: TestServer, fs: LoopFs, more: &[&str]) -> Site {
    let site = Site::start_with_networking(server, fs, more);
    let mut session = site.running().session().unwrap();
    for statement in [
        "CREATE USER tls@'%' IDENTIFIED BY 'secret' REQUIRE SSL",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO tls@'%'",
        "CREATE USER any@'%' IDENTIFIED BY 'secret'",
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT, SELECT ON *.* TO any@'%'",
        "CREATE TABLE bank.big (t LONGTEXT)",
        "SET GLOBAL max_allowed_packet = 64 << 20",
    ] {
        session.run(statement).unwrap();
    }
    let mut long = site.running().session().unwrap();
    long.run(&format!(
        "INSERT INTO bank.big VALUES (REPEAT('x', {LONG}))"
    ))
    .unwrap();
    for row in 0..300 {
        session
            .run(&format!("INSERT INTO bank.big VALUES ('{row}')"))
            .unwrap();
        if row % 100 == 0 {
            session.run("FLUSH LOGS").unwrap();
        }
    }
    site
}

/// Plans an archive over TCP.
fn command(site: &Site, user: &str, flags: &[&str]) -> Command {
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let mut command = evenkeel.command(&["binlog", "archive", "--no-defaults"]);
    command.args(["-h", "127.0.0.1", "-u", user, "-psecret"]);
    let port = site.running().port().unwrap().to_string();
    command.args(["-P", &port]).args(flags);
    command.arg(site.repository());
    command
}

/// Archives over TCP up to where the server is.
fn archive(site: &Site, user: &str, flags: &[&str]) -> Ended {
    let flags = [&["--until-current"], flags].concat();
    run(command(site, user, &flags))
}

/// A number that the server has counted up to.
fn counted(session: &mut Session, name: &str) -> u64 {
    let row = session.one(&format!("SHOW GLOBAL STATUS LIKE '{name}'"));
    row.unwrap().unwrap().at(1).unwrap().parse().unwrap()
}

/// Bytes that the server has sent to its clients.
fn sent(site: &Site) -> u64 {
    counted(&mut site.running().session().unwrap(), "Bytes_sent")
}

/// The account's connections are encrypted, or there are none.
fn over_tls(site: &Site) {
    let name = site.server.name;
    let plain = archive(site, "tls", &["--ssl-mode=DISABLED"]);
    assert_eq!(plain.code, Some(14), "{name}: {plain:?}");
    let ended = archive(site, "tls", &[]);
    assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
    assert!(assert_equal(site, false) >= 4, "{name}");
}

fn compressed(site: &Site, user: &str) {
    let name = site.server.name;
    let before = sent(site);
    let ended = archive(site, user, &["--compress"]);
    assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
    assert!(assert_equal(site, false) >= 4, "{name}");
    let bytes = sent(site) - before;
    assert!(bytes < LONG as u64 / 10, "{name}: {bytes} bytes were sent");
}

/// Commits wait for ten minutes unless they are acknowledged.
fn acknowledged(server: TestServer, role: &str) {
    let site = start(server, LoopFs::xfs(2 << 30), &[]);
    let mut session = site.running().session().unwrap();
    if role == "source" {
        session
            .run("INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'")
            .unwrap();
    }
    for setting in ["timeout = 600000", "enabled = ON"] {
        session
            .run(&format!("SET GLOBAL rpl_semi_sync_{role}_{setting}"))
            .unwrap();
    }
    let flags = ["--semi-sync", "--compress", "--rotate-seconds=1h"];
    let mut follower = command(&site, "tls", &flags);
    follower.stdout(Stdio::piped()).stderr(Stdio::piped());
    let follower = follower.spawn().unwrap();
    let clients = format!("Rpl_semi_sync_{role}_clients");
    until("the server waits for the archive", || {
        counted(&mut session, &clients) == 1
    });
    for row in 0..20 {
        session
            .run(&format!("INSERT INTO bank.big VALUES ('told {row}')"))
            .unwrap();
    }
    let reported = counted(&mut session, &format!("Rpl_semi_sync_{role}_yes_tx"));
    assert!(reported >= 20, "{}: {reported}", site.server.name);
    kill_process(Pid::from_child(&follower), Signal::TERM).unwrap();
    let ended = Ended::of(&follower.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{}: {ended:?}", site.server.name);
    assert!(assert_equal(&site, false) >= 4);
}

#[test]
fn acknowledged_to_mariadb() {
    acknowledged(mariadb_11_8(), "master");
}

#[test]
fn acknowledged_to_mysql() {
    acknowledged(mysql_9(), "source");
}

/// MariaDB before 11.4 makes itself no certificate.
#[test]
fn over_tls_from_mariadb_10_11() {
    let fs = LoopFs::xfs(2 << 30);
    let there = fs.join("certificate");
    certificate(&there);
    let file = |name: &str| there.join(name).display().to_string();
    let options = [
        format!("--ssl-cert={}", file("cert.pem")),
        format!("--ssl-key={}", file("key.pem")),
        "--require-secure-transport=ON".to_owned(),
    ];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    over_tls(&start(mariadb_10_11(), fs, &options));
}

#[test]
fn over_tls_from_newer_servers() {
    for server in [mariadb_11_8(), mysql_9()] {
        over_tls(&start(server, LoopFs::xfs(2 << 30), &[]));
    }
}

#[test]
fn compressed_from_every_server() {
    for server in [mariadb_10_11(), mysql_8_0_15(), mysql_5_7_22()] {
        compressed(&start(server, LoopFs::xfs(2 << 30), &[]), "any");
    }
}

#[test]
fn compressed_within_tls() {
    for server in [mariadb_11_8(), mysql_9()] {
        compressed(&start(server, LoopFs::xfs(2 << 30), &[]), "tls");
    }
}

/// Makes a certificate that the server may read.
fn certificate(dir: &Path) {
    std::fs::create_dir_all(dir).unwrap();
    let output = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args([
            "-subj",
            "/CN=server",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ])
        .current_dir(dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    give_to_server(dir);
}
