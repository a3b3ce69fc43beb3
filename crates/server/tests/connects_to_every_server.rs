//! Can we reach each kind of server each way there is, and tell what it can do?

use evenkeel_op::ErrorKind;
use evenkeel_server::abilities::{Abilities, Flavour, GtidKind, RedoLayout};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_server::options::{ConnectOptions, Secret, SslMode};
use evenkeel_testkit::servers::{
    give_to_server, mariadb_10_11, mysql_5_7_22, mysql_8_0_15, newer_servers,
};
use evenkeel_testkit::{Scratch, TestServer, servers, until};
use std::path::Path;
use std::process::Command;

/// Starts a server that listens on TCP as well.
fn start(server: &TestServer, scratch: &Scratch, args: &[&str]) -> Running {
    let plan = server.prepare(&scratch.join("data"), args);
    server.run(&plan.with_networking())
}

fn over_tcp(running: &Running, user: &str, password: &str) -> ConnectOptions {
    ConnectOptions {
        password: Some(Secret::new(password)),
        ..ConnectOptions::over_tcp("127.0.0.1", running.port().unwrap(), user)
    }
}

fn cipher(options: &ConnectOptions) -> String {
    let mut session = Session::open(options).unwrap_or_else(|e| panic!("{}", e.chain()));
    let row = session.one("SHOW SESSION STATUS LIKE 'Ssl_cipher'");
    let cipher = row.unwrap().unwrap().at(1).unwrap().to_owned();
    assert_eq!(session.is_encrypted(), !cipher.is_empty());
    cipher
}

#[test]
fn sessions_answer_over_the_socket() {
    for server in servers().into_iter().chain(newer_servers()) {
        let scratch = Scratch::new();
        let running = start(&server, &scratch, &["--log-bin=b", "--server-id=7"]);
        let mut session = running.session().unwrap();
        let id = session.value("SELECT CONNECTION_ID()").unwrap();
        assert_eq!(id, Some(session.id().to_string()));
        let row = session
            .one("SELECT 'ü' AS A, NULL AS b, 2")
            .unwrap()
            .unwrap();
        assert_eq!((row.get("a"), row.get("b")), (Some("ü"), None));
        assert_eq!((row.at(2), row.at(3)), (Some("2"), None));
        assert_eq!(session.rows("SELECT 1 UNION SELECT 2").unwrap().len(), 2);
        assert_eq!(session.one("SELECT 1 FROM DUAL WHERE 0").unwrap(), None);
        assert_eq!(session.variable("server_id").unwrap().as_deref(), Some("7"));
        // An underscore is no wildcard, and nothing longer matches.
        assert_eq!(session.variable("server-id").unwrap(), None);
        assert_eq!(session.variable("log_bi_").unwrap(), None);
        assert_eq!(session.variable("server_i").unwrap(), None);
        probe(&server, &mut session);
        a_killed_session_is_noticed(&running);
        errors_keep_their_code(&running);
    }
}

fn probe(server: &TestServer, session: &mut Session) {
    let abilities = Abilities::probe(session).unwrap();
    assert_eq!(abilities.flavour, server.binary.flavour);
    assert_eq!(abilities.version, server.binary.version);
    assert!(abilities.binary_log_enabled);
    let maria = abilities.flavour == Flavour::MariaDb;
    assert_eq!(abilities.backup_stage, maria);
    let instance_lock = matches!(server.id, "mysql-8.0.15" | "mysql-9");
    assert_eq!(abilities.instance_lock, instance_lock);
    // What it says it can do, it does.
    let works = |session: &mut Session, sql: &str| session.rows(sql).is_ok();
    assert_eq!(works(session, "BACKUP STAGE START"), abilities.backup_stage);
    assert_eq!(works(session, "BACKUP STAGE END"), abilities.backup_stage);
    let lock = works(session, "LOCK INSTANCE FOR BACKUP");
    assert_eq!(lock, abilities.instance_lock);
    assert_eq!(works(session, "UNLOCK INSTANCE"), abilities.instance_lock);
    let flush = works(session, "FLUSH ENGINE LOGS");
    assert_eq!(flush, abilities.flush_engine_logs);
    let status = works(session, "SHOW BINARY LOG STATUS");
    // MariaDB 11.8.9 learned it in a patch release, and keeps the old statement.
    assert!(status || !abilities.show_binary_log_status);
    let master = works(session, "SHOW MASTER STATUS");
    assert_eq!(master, !abilities.show_binary_log_status, "{}", server.name);
    let replica = works(session, "SHOW REPLICA STATUS");
    assert_eq!(replica, abilities.show_replica_status);
    let all = works(session, "SHOW ALL SLAVES STATUS");
    assert_eq!(all, abilities.show_all_replicas_status);
    let log_status = works(session, "SELECT * FROM performance_schema.log_status");
    assert_eq!(log_status, abilities.log_status);
    let gtid = match server.id {
        _ if maria => GtidKind::MariaDb,
        "mysql-9" => GtidKind::MySql, // on unless it is switched off
        _ => GtidKind::None,
    };
    assert_eq!(abilities.gtid, gtid);
    let datadir = session.variable("datadir").unwrap().unwrap();
    let second = Path::new(&datadir).join("ib_logfile1").exists();
    assert_eq!(second, abilities.redo_layout == RedoLayout::TwoFilesClassic);
    let directory = Path::new(&datadir).join("#innodb_redo").exists();
    assert_eq!(directory, abilities.redo_layout == RedoLayout::Directory);
    let dictionary = Path::new(&datadir).join("mysql.ibd").exists();
    assert_eq!(dictionary, abilities.dictionary_in_innodb);
}

fn a_killed_session_is_noticed(running: &Running) {
    let mut victim = running.session().unwrap();
    let mut other = running.session().unwrap();
    assert!(victim.is_alive());
    other.run(&format!("KILL {}", victim.id())).unwrap();
    until("the killed session is gone", || {
        let id = victim.id();
        let sql = format!("SELECT 1 FROM information_schema.processlist WHERE id = {id}");
        other.value(&sql).unwrap().is_none()
    });
    assert!(!victim.is_alive());
    let error = victim.run("DO 1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(!victim.is_alive(), "it connected again behind our back");
}

fn errors_keep_their_code(running: &Running) {
    let mut holder = running.session().unwrap();
    let mut waiter = running.session().unwrap();
    holder.run("CREATE DATABASE d").unwrap();
    holder.run("CREATE TABLE d.t (a INT)").unwrap();
    holder.run("LOCK TABLES d.t WRITE").unwrap();
    waiter.run("SET SESSION lock_wait_timeout = 1").unwrap();
    let error = waiter.run("INSERT INTO d.t VALUES (1)").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LockTimeout, "{error}");
    assert!(error.to_string().contains("ERROR 1205 (HY000)"), "{error}");
    let error = waiter.run("SELEKT 1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.to_string().contains("1064"), "{error}");
    holder
        .run("CREATE USER nobody@localhost IDENTIFIED BY ''")
        .unwrap_err();
    holder.run("UNLOCK TABLES").unwrap();
    holder.run("CREATE USER nobody@localhost").unwrap();
    let mut nobody = ConnectOptions::over_socket(running.socket(), "nobody");
    let mut session = Session::open(&nobody).unwrap();
    for sql in ["FLUSH TABLES WITH READ LOCK", "SELECT * FROM d.t"] {
        let error = session.run(sql).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
    nobody.password = Some(Secret::new("wrong"));
    let error = Session::open(&nobody).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("ERROR 1045 (28000)"), "{error}");
    assert!(!error.hints().is_empty());
}

#[test]
fn mariadb_knows_root_by_its_socket() {
    let scratch = Scratch::new();
    let running = start(&mariadb_10_11(), &scratch, &[]);
    let mut session = running.session().unwrap();
    // What mariadb-install-db makes of root when nobody says otherwise.
    let how = "mysql_native_password USING 'invalid' OR unix_socket";
    session
        .run(&format!("ALTER USER root@localhost IDENTIFIED VIA {how}"))
        .unwrap();
    let mut session = running.session().unwrap();
    let user = session.value("SELECT CURRENT_USER()").unwrap();
    assert_eq!(user.as_deref(), Some("root@localhost"));
    // The login name is the account when nobody names one.
    let mut options = running.connect_options();
    options.user = None;
    assert!(Session::open(&options).unwrap().is_alive());
}

#[test]
fn mysql_8_lets_in_with_caching_sha2() {
    let scratch = Scratch::new();
    let running = start(&mysql_8_0_15(), &scratch, &[]);
    let mut session = running.session().unwrap();
    for user in ["a", "b", "c"] {
        let how = format!("'{user}'@'%' IDENTIFIED WITH caching_sha2_password BY 'päss'");
        session.run(&format!("CREATE USER {how}")).unwrap();
    }
    // Each account's first login is the full exchange, the second one the fast path.
    let mut socket = ConnectOptions::over_socket(running.socket(), "a");
    socket.password = Some(Secret::new("päss"));
    let preferred = over_tcp(&running, "b", "päss");
    let mut plain = over_tcp(&running, "c", "päss");
    plain.ssl_mode = SslMode::Disabled;
    for _ in 0..2 {
        assert_eq!(cipher(&socket), "");
        assert_eq!(cipher(&plain), "");
        // Its OpenSSL is too old for rustls, so that preferring TLS ends without.
        assert_eq!(cipher(&preferred), "");
    }
    let mut insisting = over_tcp(&running, "b", "päss");
    insisting.ssl_mode = SslMode::Required;
    let error = Session::open(&insisting).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.hints()[0].contains("too old"), "{error:?}");
}

#[test]
fn newer_servers_let_in_over_tls_by_themselves() {
    for server in newer_servers() {
        let scratch = Scratch::new();
        let running = start(&server, &scratch, &[]);
        let mut session = running.session().unwrap();
        for user in ["a", "b", "c"] {
            let who = format!("'{user}'@'%' IDENTIFIED BY 'päss'");
            session.run(&format!("CREATE USER {who}")).unwrap();
        }
        let mut socket = ConnectOptions::over_socket(running.socket(), "a");
        socket.password = Some(Secret::new("päss"));
        let preferred = over_tcp(&running, "b", "päss");
        let mut insisting = preferred.clone();
        insisting.ssl_mode = SslMode::Required;
        let mut plain = over_tcp(&running, "c", "päss");
        plain.ssl_mode = SslMode::Disabled;
        // Each account's first login may be a longer exchange than the second.
        for _ in 0..2 {
            assert_eq!(cipher(&socket), "");
            assert_eq!(cipher(&plain), "");
            assert_ne!(cipher(&preferred), "", "{}", server.name);
            assert_ne!(cipher(&insisting), "", "{}", server.name);
        }
    }
}

#[test]
fn native_passwords_work_over_tcp() {
    for server in [mysql_5_7_22(), mariadb_10_11()] {
        let scratch = Scratch::new();
        let running = start(&server, &scratch, &["--skip-ssl"]);
        let mut session = running.session().unwrap();
        session.run("CREATE USER a@'%' IDENTIFIED BY 'x'").unwrap();
        let mut options = over_tcp(&running, "a", "x");
        // Preferred: it offers none, so it is plain.
        assert_eq!(cipher(&options), "");
        options.host = Some("localhost".to_owned());
        options.socket = Some(running.socket().to_owned());
        assert_eq!(cipher(&options), "");
        let mut insisting = over_tcp(&running, "a", "x");
        insisting.ssl_mode = SslMode::Required;
        let error = Session::open(&insisting).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("TLS"), "{error}");
    }
}

/// Makes an authority and a certificate of it for `name`: `ca.pem`, `cert.pem`, `key.pem`.
fn certificates(dir: &Path, name: &str) {
    std::fs::create_dir_all(dir).unwrap();
    let script = format!(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca-key.pem \
         -out ca.pem && openssl req -newkey rsa:2048 -nodes -subj /CN={name} -keyout key.pem \
         -out request.pem && printf 'subjectAltName=DNS:{name}' > names && openssl x509 -req \
         -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2 -extfile names \
         -out cert.pem"
    );
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(dir)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    give_to_server(dir);
}

#[test]
fn certificates_are_checked_as_far_as_the_mode_says() {
    let scratch = Scratch::new();
    let (ours, theirs) = (scratch.join("ours"), scratch.join("theirs"));
    certificates(&ours, "db.example");
    certificates(&theirs, "db.example");
    let file = |name: &str| ours.join(name).display().to_string();
    let args = [
        format!("--ssl-ca={}", file("ca.pem")),
        format!("--ssl-cert={}", file("cert.pem")),
        format!("--ssl-key={}", file("key.pem")),
    ];
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let running = start(&mariadb_10_11(), &scratch, &args);
    let mut session = running.session().unwrap();
    session
        .run("CREATE USER a@'%' IDENTIFIED BY 'x' REQUIRE X509")
        .unwrap();
    let mut options = over_tcp(&running, "a", "x");
    options.ssl_ca = Some(ours.join("ca.pem"));
    options.ssl_mode = SslMode::VerifyCa;
    let error = Session::open(&options).unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Refused,
        "no client certificate: {error}"
    );
    options.ssl_cert = Some(ours.join("cert.pem"));
    options.ssl_key = Some(ours.join("key.pem"));
    assert_ne!(cipher(&options), "");
    options.ssl_mode = SslMode::VerifyIdentity;
    let error = Session::open(&options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "other host: {error}");
    options.ssl_mode = SslMode::VerifyCa;
    options.ssl_ca = Some(theirs.join("ca.pem"));
    let error = Session::open(&options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "other authority: {error}");
    options.ssl_mode = SslMode::Required;
    assert_ne!(cipher(&options), "");
    options.ssl_ca = Some("/nonexistent/ca.pem".into());
    options.ssl_mode = SslMode::VerifyCa;
    let error = Session::open(&options).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/ca.pem"), "{error}");
    // Preferring TLS does not make a missing authority a reason for none.
    options.ssl_mode = SslMode::Preferred;
    assert_eq!(
        Session::open(&options).unwrap_err().kind(),
        ErrorKind::Usage
    );
}

#[test]
fn mysql_5_7_is_reached_whatever_its_tls() {
    let scratch = Scratch::new();
    let running = start(&mysql_5_7_22(), &scratch, &[]);
    let mut session = running.session().unwrap();
    session.run("CREATE USER a@'%' IDENTIFIED BY 'x'").unwrap();
    let mut found = Session::open(&over_tcp(&running, "a", "x")).unwrap();
    assert!(found.is_alive());
}
