//! Do we read the login path files that `mysql_config_editor` writes?
//!
//! The file is encrypted by the `openssl` program, so that reader and writer share no code.

use evenkeel_op::ErrorKind;
use evenkeel_server::login_path::read;
use evenkeel_server::option_file::DefaultsSpec;
use evenkeel_server::options::{Given, Origin, Sources, resolve};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const TEXT: &str = "[client]\nuser = \"everyday\"\npassword = \"pass#word\"\n\
                    [prod]\nuser = \"backup\"\npassword = \"it's \\\"secret\\\"\"\nhost = \"db1\"\n\
                    port = 3307\n[other]\nuser = \"nobody\"\n";

/// Encrypts one line as `openssl enc -aes-128-ecb` does.
fn encrypted(line: &str, key: [u8; 16]) -> Vec<u8> {
    let key: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut child = Command::new("openssl")
        .args(["enc", "-aes-128-ecb", "-nosalt", "-K", &key])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the openssl program has to be installed");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(line.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

fn login_file(dir: &Path) -> PathBuf {
    let material: Vec<u8> = (0..20u8)
        .map(|n| n.wrapping_mul(37).wrapping_add(11))
        .collect();
    let mut key = [0u8; 16];
    key.copy_from_slice(&material[..16]);
    for (at, byte) in material[16..].iter().enumerate() {
        key[at] ^= byte;
    }
    let mut bytes = [&[0u8; 4][..], &material].concat();
    for line in TEXT.split_inclusive('\n') {
        let line = encrypted(line, key);
        bytes.extend((line.len() as u32).to_le_bytes());
        bytes.extend(line);
    }
    let path = dir.join(".mylogin.cnf");
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path
}

#[test]
fn groups_asked_for_are_read_in_order() {
    let scratch = tempfile::tempdir().unwrap();
    let path = login_file(scratch.path());
    let found = read(&path, &["client", "prod"]).unwrap();
    let values: Vec<_> = found
        .options
        .iter()
        .map(|o| format!("{}.{}={}", o.group, o.name, o.value.as_deref().unwrap()))
        .collect();
    let expected = [
        "client.user=everyday",
        "client.password=pass#word",
        "prod.user=backup",
        "prod.password=it's \"secret\"",
        "prod.host=db1",
        "prod.port=3307",
    ];
    assert_eq!(values, expected);
    assert_eq!(read(&path, &[]).unwrap().options, []);
}

#[test]
fn a_named_login_path_beats_option_files_and_not_the_command_line() {
    let scratch = tempfile::tempdir().unwrap();
    let options = scratch.path().join("my.cnf");
    fs::write(&options, "[client]\nuser=a\nhost=h\nsocket=/s\n").unwrap();
    let mut sources = Sources {
        login_file: Some(login_file(scratch.path())),
        login_path: Some("prod".to_owned()),
        defaults: DefaultsSpec {
            defaults_file: Some(options),
            ..DefaultsSpec::default()
        },
        given: Given {
            port: Some(3308),
            ..Given::default()
        },
        ..Sources::default()
    };
    let resolved = resolve(&sources, &["backup"], &[]).unwrap();
    assert_eq!(resolved.connect.user.as_deref(), Some("backup"));
    assert_eq!(resolved.connect.host.as_deref(), Some("db1"));
    assert_eq!(resolved.connect.port, Some(3308));
    assert_eq!(resolved.connect.socket, Some("/s".into()));
    let user = resolved.settings.iter().find(|s| s.name == "user").unwrap();
    assert_eq!(user.origin, Origin::LoginPath("prod".to_owned()));
    sources.login_path = None;
    let resolved = resolve(&sources, &["backup"], &[]).unwrap();
    assert_eq!(resolved.connect.user.as_deref(), Some("everyday"));
}

#[test]
fn a_file_that_others_may_read_is_ignored() {
    let scratch = tempfile::tempdir().unwrap();
    let path = login_file(scratch.path());
    fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    let found = read(&path, &["client"]).unwrap();
    assert!(found.options.is_empty());
    assert_eq!(found.warnings.len(), 1);
}

#[test]
fn absent_is_empty_and_damaged_is_an_error() {
    let scratch = tempfile::tempdir().unwrap();
    let path = login_file(scratch.path());
    let absent = read(&scratch.path().join("none"), &["client"]).unwrap();
    assert!(absent.options.is_empty() && absent.warnings.is_empty());
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let error = read(&path, &["client"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}
