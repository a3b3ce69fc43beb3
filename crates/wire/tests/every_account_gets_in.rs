//! Does each way of proving a password work, with and without TLS, and is a wrong one refused?

use evenkeel_op::{Cancel, ErrorKind};
use evenkeel_server::abilities::Flavour;
use evenkeel_server::options::{ConnectOptions, Secret, SslMode};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_9};
use evenkeel_testkit::{Scratch, TestServer, servers};
use evenkeel_wire::Connection;

/// Plugins that a server has, with the statement that makes an account.
fn accounts(server: &TestServer) -> Vec<(&'static str, String)> {
    let user = |name, how: &str| (name, format!("CREATE USER {name}@'%' IDENTIFIED {how}"));
    match (server.binary.flavour, server.id) {
        // Its plugins are not among the fetched files.
        (_, "mariadb-11.8") => vec![user("native", "BY 'secret'"), user("nobody", "BY ''")],
        (Flavour::MariaDb, _) => vec![
            user("native", "BY 'secret'"),
            user("ed", "VIA ed25519 USING PASSWORD('secret')"),
            user("nobody", "BY ''"),
        ],
        (_, "mysql-5.7.22") => vec![
            user("native", "WITH mysql_native_password BY 'secret'"),
            user("nobody", "BY ''"),
        ],
        (_, "mysql-9") => vec![
            user("sha2", "WITH caching_sha2_password BY 'secret'"),
            user("nobody", "BY ''"),
        ],
        _ => vec![
            user("native", "WITH mysql_native_password BY 'secret'"),
            user("sha2", "WITH caching_sha2_password BY 'secret'"),
            user("nobody", "WITH caching_sha2_password BY ''"),
        ],
    }
}

fn get_in(options: &ConnectOptions, user: &str) {
    let mut connection = Connection::open(options, &Cancel::new())
        .unwrap_or_else(|e| panic!("{user}, {:?}: {}", options.ssl_mode, e.chain()));
    let mut rows = connection
        .query("SELECT SUBSTRING_INDEX(USER(), '@', 1)")
        .unwrap();
    let row = rows.next().unwrap().unwrap();
    assert_eq!(row.cells().next(), Ok(Some(user.as_bytes())));
}

fn case(server: &TestServer) {
    println!("{}", server.name);
    let scratch = Scratch::new();
    let plan = server.prepare(&scratch.join("data"), &[]);
    let running = server.run(&plan.with_networking());
    let mut root = running.session().unwrap();
    for (user, create) in accounts(server) {
        if user == "ed" {
            root.run("INSTALL SONAME 'auth_ed25519'").unwrap();
        }
        root.run(&create).unwrap();
        let password = if user == "nobody" { "" } else { "secret" };
        let with = |password: &str, ssl_mode| ConnectOptions {
            password: Some(Secret::new(password)),
            ssl_mode,
            ..ConnectOptions::over_tcp("127.0.0.1", running.port().unwrap(), user)
        };
        let mut socket = with(password, SslMode::Preferred);
        socket.host = None;
        socket.socket = Some(running.socket().to_owned());
        // In this order the server does not know the password at first: sealed with its key on a
        // plain connection, then from its memory, then, forgotten again, over a socket.
        for _ in 0..2 {
            get_in(&with(password, SslMode::Disabled), user);
        }
        root.run("FLUSH PRIVILEGES").unwrap();
        get_in(&socket, user);
        root.run("FLUSH PRIVILEGES").unwrap();
        get_in(&with(password, SslMode::Preferred), user);
        for mode in [SslMode::Disabled, SslMode::Preferred] {
            let error = Connection::open(&with("wrong", mode), &Cancel::new()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{user}: {error}");
            assert!(error.to_string().contains("ERROR 1045"), "{user}: {error}");
        }
    }
}

#[test]
fn on_every_server() {
    for server in servers() {
        case(&server);
    }
}

#[test]
fn on_newer_servers() {
    for server in [mariadb_11_8(), mysql_9()] {
        case(&server);
    }
}

/// Servers log and count connections that end without a login.
#[test]
fn one_connection_is_enough_for_a_server_without_tls() {
    let server = mariadb_10_11();
    let scratch = Scratch::new();
    let plan = server.prepare(&scratch.join("data"), &[]);
    let running = server.run(&plan.with_networking());
    let mut root = running.session().unwrap();
    root.run("CREATE USER u@'%' IDENTIFIED BY 'secret'")
        .unwrap();
    let mut connections = || -> u64 {
        let row = root.one("SHOW GLOBAL STATUS LIKE 'Connections'").unwrap();
        row.unwrap().at(1).unwrap().parse().unwrap()
    };
    let before = connections();
    let with = |ssl_mode| ConnectOptions {
        password: Some(Secret::new("secret")),
        ssl_mode,
        ..ConnectOptions::over_tcp("127.0.0.1", running.port().unwrap(), "u")
    };
    get_in(&with(SslMode::Preferred), "u");
    assert_eq!(connections(), before + 1);
    let error = Connection::open(&with(SslMode::Required), &Cancel::new()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
}

/// MySQL 9 makes itself certificates and speaks a TLS that is safe.
#[test]
fn tls_is_what_was_asked_for() {
    let server = mysql_9();
    let scratch = Scratch::new();
    let plan = server.prepare(&scratch.join("data"), &[]);
    let running = server.run(&plan.with_networking());
    let mut root = running.session().unwrap();
    root.run("CREATE USER u@'%' IDENTIFIED BY 'secret' REQUIRE SSL")
        .unwrap();
    let with = |ssl_mode| ConnectOptions {
        password: Some(Secret::new("secret")),
        ssl_mode,
        ..ConnectOptions::over_tcp("127.0.0.1", running.port().unwrap(), "u")
    };
    let open = |options: &ConnectOptions| Connection::open(options, &Cancel::new());
    assert!(open(&with(SslMode::Required)).unwrap().is_private());
    let error = open(&with(SslMode::Disabled)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    // Signed by an authority that nobody knows.
    let error = open(&with(SslMode::VerifyCa)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let mut known = with(SslMode::VerifyCa);
    let data = root.variable("datadir").unwrap().unwrap();
    known.ssl_ca = Some(std::path::Path::new(&data).join("ca.pem"));
    assert!(open(&known).unwrap().is_private());
    // It names no host.
    known.ssl_mode = SslMode::VerifyIdentity;
    let error = open(&known).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
}
