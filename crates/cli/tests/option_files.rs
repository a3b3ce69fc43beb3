//! Do option files say what the server and the verb are, and does what is typed win?

use std::fs;
use std::process::{Command, Output};

fn evenkeel(file: &str, words: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("my.cnf");
    fs::write(&path, file).unwrap();
    let (verb, rest) = words.split_first().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    for name in [
        "MYSQL_HOST",
        "MYSQL_TCP_PORT",
        "MYSQL_UNIX_PORT",
        "MYSQL_PWD",
    ] {
        command.env_remove(name);
    }
    command.env("MYSQL_TEST_LOGIN_FILE", "/nonexistent");
    command
        .arg(verb)
        .arg("--defaults-file")
        .arg(&path)
        .args(rest)
        .output()
        .unwrap()
}

fn settings(file: &str, words: &[&str]) -> Vec<(String, String, String)> {
    let output = evenkeel(file, &[&["settings", "--json"], words].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "evenkeel/settings/1", "{json}");
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let shown = json["settings"].as_array().unwrap();
    shown
        .iter()
        .map(|s| (text(&s["name"]), text(&s["value"]), text(&s["origin"])))
        .collect()
}

fn one(settings: &[(String, String, String)], name: &str) -> (String, String) {
    let found = settings.iter().find(|(known, ..)| known == name).unwrap();
    (found.1.clone(), found.2.clone())
}

#[test]
fn each_setting_names_its_line_and_what_is_typed_wins() {
    let file =
        "[client]\nuser = alice\nhost = db1\npassword = hunter2\n[evenkeel-backup]\nuser=bob\n";
    let typed = settings(file, &["--for", "backup", "-h", "db2"]);
    let (user, origin) = one(&typed, "user");
    assert_eq!(user, "bob");
    assert!(
        origin.ends_with("my.cnf, line 6 [evenkeel-backup]"),
        "{origin}"
    );
    assert_eq!(one(&typed, "host"), ("db2".into(), "command line".into()));
    assert_eq!(one(&typed, "password").0, "***");
    assert_eq!(one(&settings(file, &[]), "user").0, "alice");
}

#[test]
fn a_misspelt_option_of_ours_is_refused() {
    let output = evenkeel("[evenkeel]\nraet = 5M\n", &["settings"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("raet"));
}

#[test]
fn an_option_of_the_verb_may_stand_in_a_file() {
    // The lock named in the file does not go with the statement that is typed.
    let words = ["lock", "--before", "SELECT 1", "--", "true"];
    let output = evenkeel("[evenkeel-lock]\nlock = ftwrl\n", &words);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("the command line does not fit the options in the option files: "),
        "{said}"
    );
    // What is typed wins: the file's value alone would be refused as wrong usage.
    let file = "[evenkeel-lock]\nlock-deadline = never\n";
    let bad = evenkeel(file, &["lock", "-S", "/nonexistent/socket", "--", "true"]);
    assert_eq!(bad.status.code(), Some(2));
    let file = "[evenkeel-lock]\nlock = none\n";
    let typed = [
        "lock",
        "-S",
        "/nonexistent/socket",
        "--lock",
        "ftwrl",
        "--",
        "true",
    ];
    assert_eq!(evenkeel(file, &typed).status.code(), Some(13));
}

/// Whom `doctor` calls ready is who will do the backup.
#[test]
fn doctor_looks_with_the_account_of_backup() {
    let file = "[client]\nuser = app\n[evenkeel-backup]\nuser = keeper\nkeep-daily = 7\n\
                socket = /nonexistent/keepers\n";
    let of = |file: &str, verb: &str| one(&settings(file, &["--for", verb]), "user").0;
    assert_eq!(of(file, "backup"), "keeper");
    assert_eq!(of(file, "doctor"), "keeper");
    assert_eq!(of(file, "dump"), "app");
    // Itself, it goes where the backup would, and an option that it has not is no matter.
    let refused = evenkeel(file, &["doctor"]);
    assert_eq!(refused.status.code(), Some(13), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("/nonexistent/keepers"), "{said}");
    // What is said for itself holds, before or behind.
    let own = "[evenkeel-doctor]\nuser = visitor\n";
    for both in [format!("{file}{own}"), format!("{own}{file}")] {
        assert_eq!(of(&both, "doctor"), "visitor", "{both}");
        assert_eq!(of(&both, "backup"), "keeper", "{both}");
    }
}
