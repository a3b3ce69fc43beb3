//! Does doctor say what is missing and what to do about it, and is its word good?

use evenkeel_testkit::servers::newer_servers;
use evenkeel_testkit::{LoopFs, servers};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn evenkeel(verb: &str, socket: &Path, user: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command
        .args([verb, "--json", "--no-defaults", "--user", user, "--socket"])
        .arg(socket);
    command.env("MYSQL_TEST_LOGIN_FILE", "/nonexistent");
    command
}

fn doctor(socket: &Path, user: &str) -> (Option<i32>, serde_json::Value) {
    let output = evenkeel("doctor", socket, user).output().unwrap();
    let json = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), json)
}

fn check<'a>(json: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    json["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == name)
        .unwrap()
}

#[test]
fn on_xfs_every_server_is_ready_and_a_poor_account_is_reported_what_to_grant() {
    let disk = LoopFs::xfs(1 << 30);
    for server in servers().into_iter().chain(newer_servers()) {
        let running = server.start(&disk.path().join(server.id), &[]);
        let (code, json) = doctor(running.socket(), "root");
        assert_eq!(
            (code, &json["ready"]),
            (Some(0), &true.into()),
            "{}: {json:#}",
            server.name
        );
        let methods = json["methods"].as_array().unwrap();
        let usable = |name: &str| {
            methods
                .iter()
                .find(|method| method["method"] == name)
                .unwrap()["usable"]
                == true
        };
        assert!(
            usable("reflink") && !usable("btrfs") && !usable("copy"),
            "{json:#}"
        );
        let reflink = methods.iter().find(|method| method["method"] == "reflink");
        let stops = reflink.unwrap()["reason"]
            .as_str()
            .unwrap()
            .contains("process is paused while the files are cloned");
        // Neither has files that hold still without it: tables in the one, the redo log in the other.
        let has_to = matches!(server.id, "mysql-5.7.22" | "mysql-9");
        assert_eq!(stops, has_to, "{}: {json:#}", server.name);

        running
            .session()
            .unwrap()
            .run("CREATE USER poor@localhost")
            .unwrap();
        let (code, json) = doctor(running.socket(), "poor");
        assert_eq!(code, Some(4), "{}: {json:#}", server.name);
        let hint = check(&json, "privileges")["hints"][0].as_str().unwrap();
        assert!(hint.starts_with("GRANT RELOAD, PROCESS"), "{hint}");
        running
            .session()
            .unwrap()
            .run(hint.trim_end_matches(';'))
            .unwrap();
        let (code, json) = doctor(running.socket(), "poor");
        assert_eq!(code, Some(0), "{}: {json:#}", server.name);

        // Doctor's word holds: what it asked to grant is enough for a backup.
        let repository = disk.join(format!("{}-repository", server.id));
        let output = evenkeel("backup", running.socket(), "poor")
            .arg(repository)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{}: {said}", server.name);
    }
}

/// The server is over there, and the repository is not.
#[test]
fn over_ssh_the_repository_is_looked_at_here() {
    let disk = LoopFs::xfs(512 << 20);
    let running = servers::mariadb_10_11().start(&disk.path().join("data"), &[]);
    let repository = disk.join("repository");
    fs::create_dir(&repository).unwrap();
    fs::set_permissions(&repository, fs::Permissions::from_mode(0o755)).unwrap();
    // The other host is this one.
    let ssh = disk.join("ssh");
    let script = "#!/bin/sh\n: > \"$0.used\"\nfor last; do :; done\nexec sh -c \"$last\"\n";
    fs::write(&ssh, script).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let output = evenkeel("doctor", running.socket(), "root")
        .args(["--ssh=there", "--no-ssh-keep-program"])
        .arg(format!("--ssh-command={}", ssh.display()))
        .arg(&repository)
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &json["ready"]),
        (Some(0), &true.into()),
        "{json:#}"
    );
    assert!(disk.join("ssh.used").exists());
    let found = check(&json, "repository");
    assert_eq!(found["warning"], true, "{json:#}");
    let reported = found["found"].as_str().unwrap();
    assert!(
        reported.ends_with("(0755); the next backup closes it"),
        "{reported}"
    );
    let checks = json["checks"].as_array().unwrap();
    let of_it = checks.iter().filter(|one| one["name"] == "repository");
    assert_eq!(of_it.count(), 1, "{json:#}");
}

#[test]
fn where_nothing_can_freeze_files_it_says_what_else_there_is() {
    let disk = LoopFs::ext4(512 << 20);
    // Nothing here copies a MySQL.
    let server = servers::mysql_8_0_15();
    let running = server.start(&disk.path().join("mysql"), &[]);
    let (code, json) = doctor(running.socket(), "root");
    assert_eq!(code, Some(4));
    let hints = check(&json, "snapshot")["hints"].to_string();
    assert!(hints.contains("--snapshot hook"), "{hints}");
    assert!(hints.contains("hot-copy tool"), "{hints}");
    assert!(!engine(&json)["usable"].as_bool().unwrap());
    let reason = engine(&json)["reason"].as_str().unwrap();
    assert!(reason.contains("xtrabackup"), "{reason}");
}

#[test]
fn a_redo_log_that_is_not_known_is_reported_before_anything_is_copied() {
    let disk = LoopFs::xfs(512 << 20);
    let server = servers::mariadb_10_11();
    let datadir = disk.path().join("data");
    let running = server.start(&datadir, &[]);
    // As MariaDB 13 has it.
    fs::write(datadir.join("ib_0000000000003000.log"), "redo").unwrap();
    let (code, json) = doctor(running.socket(), "root");
    assert_eq!(code, Some(4), "{json:#}");
    let files = check(&json, "files");
    let found = files["found"].as_str().unwrap();
    assert!(found.contains("ib_0000000000003000.log"), "{found}");
    let hint = files["hints"][0].as_str().unwrap();
    assert!(hint.contains("innodb_log_archive = OFF"), "{hint}");
    let repository = disk.join("repository");
    let backup = evenkeel("backup", running.socket(), "root")
        .arg(&repository)
        .output()
        .unwrap();
    assert_eq!(backup.status.code(), Some(14), "{backup:?}");
    assert!(!repository.join("generations/1").exists());
}

#[test]
fn where_nothing_can_freeze_files_the_servers_own_tool_will_do() {
    let disk = LoopFs::ext4(512 << 20);
    let server = servers::mariadb_10_11();
    let running = server.start(&disk.path().join("data"), &[]);
    let (code, json) = doctor(running.socket(), "root");
    assert_eq!(code, Some(0), "{json:#}");
    assert!(engine(&json)["usable"].as_bool().unwrap());
    let reason = engine(&json)["reason"].as_str().unwrap();
    assert!(reason.starts_with("mariadb-backup 10.11."), "{reason}");
}

fn engine(json: &serde_json::Value) -> &serde_json::Value {
    let methods = json["methods"].as_array().unwrap();
    methods
        .iter()
        .find(|method| method["method"] == "engine")
        .unwrap()
}
