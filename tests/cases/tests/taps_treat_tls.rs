//! Does a tap do with TLS what it was told to, on both sides?

use evenkeel_cases::taps::Tap;
use evenkeel_server::launch::Running;
use evenkeel_testkit::Scratch;
use evenkeel_testkit::servers::{
    SERVER_DEADLINE, TestServer, mariadb_10_11, mariadb_11_8, mysql_8_0_15, mysql_9,
};
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// A server with an account that anybody has, and one that requires TLS.
struct Site {
    running: Running,
    scratch: Scratch,
}

impl Site {
    fn new(server: &TestServer, how: &str, requires: &str) -> Self {
        let scratch = Scratch::new();
        let datadir = scratch.join("data");
        let running = server.run(&server.prepare(&datadir, &[]).with_networking());
        let mut session = running.session().unwrap();
        for (name, requires) in [("app", ""), ("strict", requires)] {
            for host in ["localhost", "127.0.0.1"] {
                let make =
                    format!("CREATE USER {name}@'{host}' IDENTIFIED {how} BY 'secret' {requires}");
                session.run(&make).unwrap();
            }
        }
        Self { running, scratch }
    }

    fn tap(&self, more: &[&str]) -> Tap {
        let to = format!("127.0.0.1:{}", self.running.port().unwrap());
        if more.contains(&"cert.pem") {
            certificate(self.scratch.path());
        }
        Tap::begin(PROGRAM, self.scratch.path(), "127.0.0.1:0", &to, more)
    }

    fn end(self) {
        self.running.stop(SERVER_DEADLINE).unwrap();
    }
}

const WITH_TLS: [&str; 4] = ["--tap-cert", "cert.pem", "--tap-key", "key.pem"];
const CIPHER: &str = "SHOW STATUS LIKE 'Ssl_cipher'";

fn certificate(dir: &Path) {
    let make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=tap -keyout key.pem -out cert.pem";
    let mut openssl = Command::new("sh");
    let output = openssl
        .args(["-c", make])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn ask(tap: &Tap, user: &str, tls: &str, sql: &str) -> Output {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "-h127.0.0.1", "-psecret", "-N", "-B", tls]);
    client
        .arg(format!("-u{user}"))
        .arg(format!("-P{}", tap.port()));
    client.args(["-e", sql]).output().unwrap()
}

fn text(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn has_cipher(output: &Output) -> bool {
    text(output)
        .trim()
        .split('\t')
        .nth(1)
        .is_some_and(|cipher| !cipher.is_empty())
}

fn shown(tap: &Tap, sql: &str) -> usize {
    tap.statements()
        .iter()
        .filter(|one| one["sql"] == sql)
        .count()
}

#[test]
fn without_a_certificate_clients_are_offered_none() {
    let site = Site::new(&mysql_8_0_15(), "WITH mysql_native_password", "REQUIRE SSL");
    let mut tap = site.tap(&[]);
    assert!(!has_cipher(&ask(&tap, "app", "--skip-ssl", CIPHER)));
    assert!(!has_cipher(&ask(&tap, "app", "--ssl", CIPHER)));
    let refused = ask(&tap, "strict", "--skip-ssl", CIPHER);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("1045"), "{said}");
    let answer = tap.end();
    assert_eq!(answer["connections_encrypted"], 0, "{answer}");
    assert!(
        answer["tap"]["logins_failed"].as_u64() > Some(0),
        "{answer}"
    );
    assert!(tap.said().contains("give --tap-cert"), "{}", tap.said());
    site.end();
}

/// A client with and one without TLS, and what the server sees.
fn ended_by_the_tap(server: &TestServer, how: &str, server_has: bool, more: &[&str]) {
    let requires = if server_has { "REQUIRE SSL" } else { "" };
    let site = Site::new(server, how, requires);
    let mut tap = site.tap(&[&WITH_TLS, more].concat());
    assert!(!has_cipher(&ask(&tap, "app", "--skip-ssl", CIPHER)));
    assert_eq!(has_cipher(&ask(&tap, "app", "--ssl", CIPHER)), server_has);
    assert_eq!(
        has_cipher(&ask(&tap, "strict", "--ssl", CIPHER)),
        server_has
    );
    let wrong = ask(&tap, "nobody", "--ssl", CIPHER);
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("1045"), "{said}");
    let large = ask(&tap, "app", "--ssl", "SELECT REPEAT('x', 10000000)");
    assert_eq!(large.stdout.len(), 10_000_001);
    let answer = tap.end();
    assert_eq!(shown(&tap, CIPHER), 3, "{answer}");
    for what in ["connections_encrypted", "undecodable", "bytes_missing"] {
        assert_eq!(answer[what], 0, "{answer}");
    }
    site.end();
}

#[test]
fn the_tap_is_the_end_of_it_for_mariadb_without_tls() {
    ended_by_the_tap(&mariadb_10_11(), "", false, &[]);
}

#[test]
fn the_tap_is_the_end_of_it_for_mariadb() {
    ended_by_the_tap(&mariadb_11_8(), "", true, &[]);
}

#[test]
fn the_tap_is_the_end_of_it_for_mysql() {
    let how = "WITH mysql_native_password";
    let more = ["--ssl-mode", "DISABLED"];
    ended_by_the_tap(&mysql_8_0_15(), how, false, &more);
}

#[test]
fn passwords_reach_mysql_by_tls() {
    let site = Site::new(&mysql_9(), "WITH caching_sha2_password", "REQUIRE SSL");
    let mut tap = site.tap(&WITH_TLS);
    assert!(has_cipher(&ask(&tap, "strict", "--ssl", CIPHER)));
    tap.end();
    assert_eq!(shown(&tap, CIPHER), 1);
    site.end();
}

#[test]
fn tls_that_fails_is_not_tried_again() {
    // Its TLS is too old for ours.
    let site = Site::new(&mysql_8_0_15(), "WITH mysql_native_password", "");
    let mut tap = site.tap(&WITH_TLS);
    assert!(!ask(&tap, "app", "--ssl", CIPHER).status.success());
    assert!(!has_cipher(&ask(&tap, "app", "--ssl", CIPHER)));
    assert!(tap.said().contains("TLS with it failed"), "{}", tap.said());
    tap.end();
    site.end();
}

#[test]
fn the_server_is_asked_for_it_on_demand() {
    let site = Site::new(&mariadb_11_8(), "", "REQUIRE SSL");
    let mut tap = site.tap(&["--ssl-mode", "REQUIRED"]);
    assert!(has_cipher(&ask(&tap, "strict", "--skip-ssl", CIPHER)));
    let again = ask(&tap, "app", "--skip-ssl", "SELECT 1; SELECT 2");
    assert_eq!(text(&again), "1\n2\n");
    tap.end();
    assert_eq!(shown(&tap, CIPHER), 1);
    let mut tap = site.tap(&["--ssl-mode", "VERIFY_CA", "--ssl-ca", "cert.pem"]);
    let refused = ask(&tap, "app", "--skip-ssl", CIPHER);
    assert!(!refused.status.success(), "any certificate was taken");
    tap.end();
    site.end();
}

#[test]
fn a_server_without_it_is_not_asked_in_the_clear() {
    let site = Site::new(&mariadb_10_11(), "", "");
    let mut tap = site.tap(&["--ssl-mode", "REQUIRED"]);
    let refused = ask(&tap, "app", "--skip-ssl", CIPHER);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("told to use TLS"), "{said}");
    tap.end();
    site.end();
}

#[test]
fn it_passes_unread_and_is_counted() {
    let site = Site::new(&mariadb_11_8(), "", "REQUIRE SSL");
    let mut tap = site.tap(&["--tap-pass-tls"]);
    assert!(has_cipher(&ask(&tap, "strict", "--ssl", CIPHER)));
    assert_eq!(text(&ask(&tap, "app", "--skip-ssl", "SELECT 7")), "7\n");
    let answer = tap.end();
    assert_eq!(answer["connections_encrypted"], 1, "{answer}");
    assert_eq!((shown(&tap, CIPHER), shown(&tap, "SELECT 7")), (0, 1));
    site.end();
}
