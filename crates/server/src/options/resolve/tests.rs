//! Resolving, from every source.

use super::*;
use crate::option_file::DefaultsSpec;
use crate::options::Given;
use std::fs;

/// Resolves with one option file for the verb `backup`.
fn with_file(text: &str, given: Given) -> Result<Resolved> {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("my.cnf");
    fs::write(&file, text).unwrap();
    let sources = Sources {
        defaults: DefaultsSpec {
            defaults_file: Some(file),
            ..DefaultsSpec::default()
        },
        given,
        ..Sources::default()
    };
    resolve(
        &sources,
        &["backup"],
        &["repository", "rate", "skip-verify"],
    )
}

fn setting<'a>(resolved: &'a Resolved, name: &str) -> &'a Setting {
    let found = resolved.settings.iter().find(|s| s.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {:?}", resolved.settings))
}

fn mode(text: &str) -> SslMode {
    with_file(text, Given::default()).unwrap().connect.ssl_mode
}

#[test]
fn later_and_nearer_sources_win_and_are_named() {
    let text = "[client]\nuser=a\nhost=h1\npassword=geheim\ndefault-character-set=utf8\n\
                [mysql]\nhost=wrong\n[evenkeel]\nhost = h2\nrepository=/r\n\
                [evenkeel-backup]\nrate=5M\n[evenkeel-restore]\nrate=6M\n";
    let given = Given {
        user: Some("b".to_owned()),
        ..Given::default()
    };
    let resolved = with_file(text, given).unwrap();
    assert_eq!(resolved.connect.host.as_deref(), Some("h2"));
    assert_eq!(resolved.connect.user.as_deref(), Some("b"));
    assert_eq!(resolved.connect.password, Some(Secret::new("geheim")));
    assert_eq!(setting(&resolved, "user").origin, Origin::CommandLine);
    assert_eq!(setting(&resolved, "ssl-mode").origin, Origin::Default);
    let host = setting(&resolved, "host").origin.to_string();
    assert!(host.ends_with("my.cnf, line 9 [evenkeel]"), "{host}");
    assert_eq!(setting(&resolved, "password").value_shown, "***");
    assert_eq!(setting(&resolved, "rate").value_shown, "5M");
    assert_eq!(resolved.own["repository"].value.as_deref(), Some("/r"));
    assert!(!format!("{:?}", resolved.settings).contains("geheim"));
}

#[test]
fn unknown_names_are_errors_in_our_groups_only() {
    let error = with_file("[evenkeel]\nrepositry=/r\n", Given::default()).unwrap_err();
    assert!(error.to_string().contains("line 2: [evenkeel]"), "{error}");
    assert_eq!(error.hints(), ["did you mean 'repository'?"]);
    let fine = "[client]\nrepositry=/r\n[evenkeel]\nloose-frobnicate\n";
    assert!(with_file(fine, Given::default()).is_ok());
    assert!(with_file("[Evenkeel-Backup]\nx\n", Given::default()).is_err());
    assert!(with_file("[evenkeel-restore]\nx\n", Given::default()).is_ok());
}

#[test]
fn own_names_that_begin_like_a_negation_stay_whole() {
    let resolved = with_file("[evenkeel]\nskip_verify\n", Given::default()).unwrap();
    assert!(resolved.own.contains_key("skip-verify"));
    assert!(with_file("[evenkeel]\nskip-rate\n", Given::default()).is_err());
    let loose = with_file("[evenkeel]\nloose-rate=1\n", Given::default()).unwrap();
    assert!(loose.own.contains_key("rate"));
}

#[test]
fn values_that_make_no_sense_say_where_they_are() {
    let error = with_file("[client]\nport=banana\n", Given::default()).unwrap_err();
    assert!(error.hints()[0].contains("line 2 [client]"), "{error:?}");
}

#[test]
fn tls_switches_of_both_families_mean_a_mode() {
    assert_eq!(mode("[client]\n"), SslMode::Preferred);
    assert_eq!(mode("[client]\nssl\n"), SslMode::Required);
    assert_eq!(mode("[client]\nskip-ssl\n"), SslMode::Disabled);
    assert_eq!(mode("[client]\nssl=0\n"), SslMode::Disabled);
    let verify = "[client]\nssl-verify-server-cert\n";
    assert_eq!(mode(verify), SslMode::VerifyIdentity);
    assert_eq!(mode(&format!("{verify}ssl\n")), SslMode::VerifyIdentity);
    let off = "[client]\nssl-mode=VERIFY_CA\nssl_verify_server_cert=OFF\n";
    assert_eq!(mode(off), SslMode::Required);
    assert_eq!(mode("[client]\nhost=h\nssl-ca=/c\n"), SslMode::VerifyCa);
    assert_eq!(mode("[client]\nssl-ca=/c\n"), SslMode::Preferred);
}

#[test]
fn keys_of_servers_are_named_or_asked_for() {
    let key = |text: &str| {
        with_file(text, Given::default())
            .unwrap()
            .connect
            .server_key
    };
    assert_eq!(key("[client]\n"), ServerKey::Unsaid);
    let asks = "[client]\nget-server-public-key\n";
    assert_eq!(key(asks), ServerKey::Asked);
    assert_eq!(key("[client]\nget-server-public-key=1\n"), ServerKey::Asked);
    assert_eq!(
        key("[client]\nget_server_public_key=OFF\n"),
        ServerKey::Unsaid
    );
    assert_eq!(
        key("[client]\nskip-get-server-public-key\n"),
        ServerKey::Unsaid
    );
    let named = format!("{asks}server_public_key_path=/k.pem\n");
    assert_eq!(key(&named), ServerKey::File("/k.pem".into()));
}

#[test]
fn protocol_decides_between_socket_and_tcp() {
    let host = |text: &str| with_file(text, Given::default()).unwrap().connect.host;
    assert_eq!(
        host("[client]\nprotocol=tcp\n").as_deref(),
        Some("127.0.0.1")
    );
    assert_eq!(
        host("[client]\nhost=h\nprotocol=TCP\n").as_deref(),
        Some("h")
    );
    assert_eq!(host("[client]\nhost=h\nprotocol=SOCKET\n"), None);
    assert!(with_file("[client]\nprotocol=pipe\n", Given::default()).is_err());
}

#[test]
fn a_password_without_a_value_is_asked_for() {
    let asked = with_file("[client]\npassword\n", Given::default()).unwrap();
    assert!(asked.ask_password && asked.connect.password.is_none());
    let given = Given {
        password: Some(Secret::new("x")),
        ..Given::default()
    };
    assert!(
        !with_file("[client]\npassword\n", given)
            .unwrap()
            .ask_password
    );
    let empty = with_file("[client]\npassword=\n", Given::default()).unwrap();
    assert!(!empty.ask_password && empty.connect.password.is_none());
}

#[test]
fn the_environment_is_weakest() {
    let mut sources = Sources::default();
    sources.environment.port = Some(3307);
    sources.environment.host = Some("h".to_owned());
    sources.defaults.no_defaults = true;
    let resolved = resolve(&sources, &["backup"], &[]).unwrap();
    assert_eq!(resolved.connect.port, Some(3307));
    assert_eq!(setting(&resolved, "port").origin, Origin::Environment);
    sources.given.port = Some(1);
    let resolved = resolve(&sources, &["backup"], &[]).unwrap();
    assert_eq!(resolved.connect.port, Some(1));
}
