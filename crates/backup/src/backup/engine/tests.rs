use super::*;
use evenkeel_server::abilities::Version;
use evenkeel_server::files::discover_stopped;
use evenkeel_server::options::Secret;
use evenkeel_snapshot::{Layout, Method, Settings};
use std::collections::BTreeMap;

fn survey_of(version: &str, datadir: &Path) -> Survey {
    let files = discover_stopped(datadir, &BTreeMap::new()).unwrap();
    Survey {
        layout: Layout {
            datadir: files.datadir.clone(),
            dirs: Vec::new(),
            server_running: true,
            page_bytes: 16384,
            volumes: Vec::new(),
        },
        files,
        abilities: Some(Abilities::of_version(version, "").unwrap()),
        settings: Settings::default(),
        snapshot: Method::Copy,
        engine: None,
    }
}

/// The command line for a server, and the option that names its option file.
fn line(version: &str, name: &'static str) -> (Vec<String>, String) {
    let data = tempfile::tempdir().unwrap();
    let survey = survey_of(version, data.path());
    let connect = ConnectOptions {
        password: Some(Secret::new("hush")),
        ..ConnectOptions::over_socket("/run/s", "root")
    };
    let options = OptionFile::of(&connect).unwrap();
    let tool = Tool {
        program: format!("/opt/{name}").into(),
        name,
        version: Version::new(8, 0, 36),
    };
    let source = Source::Live(Box::new(connect));
    let choice = super::super::SnapshotChoice::Engine;
    let mut request = BackupRequest::new(Path::new("/backup/shop"), source, choice);
    request.workers = 64;
    let command = command(&tool, &options, &survey, &request);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| {
        let word = word.to_string_lossy().into_owned();
        word.replace(&survey.files.datadir.display().to_string(), "DATADIR")
    });
    (words.collect(), options.option())
}

#[test]
fn mariadb_backup_is_called_without_a_secret() {
    let (words, file) = line("10.11.19-MariaDB", "mariadb-backup");
    let expected = [
        "/opt/mariadb-backup",
        file.as_str(),
        "--backup",
        "--stream=xbstream",
        "--parallel=4",
        "--target-dir=/tmp",
        "--log-innodb-page-corruption",
    ];
    assert_eq!(words, expected);
    assert!(!words.concat().contains("hush"));
}

/// As Percona documents it; xtrabackup itself was not at hand to be run.
#[test]
fn xtrabackup_is_called_by_the_same_road() {
    let (words, file) = line("8.0.36", "xtrabackup");
    let expected = [
        "/opt/xtrabackup",
        file.as_str(),
        "--backup",
        "--stream=xbstream",
        "--parallel=4",
        "--target-dir=/tmp",
        "--datadir=DATADIR",
    ];
    assert_eq!(words, expected);
}
