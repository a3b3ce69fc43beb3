use super::*;
use crate::abilities::Version;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A directory with a redo log that some server made.
fn made_by(creator: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut header = vec![0; 4096];
    header[16..16 + creator.len()].copy_from_slice(creator.as_bytes());
    fs::write(dir.path().join("ib_logfile0"), header).unwrap();
    dir
}

/// A place that one option file of this text says.
fn place(scratch: &TempDir, text: &str) -> DatadirSpec {
    let file = scratch.path().join("my.cnf");
    fs::write(&file, text).unwrap();
    DatadirSpec {
        datadir: None,
        defaults: DefaultsSpec {
            defaults_file: Some(file),
            ..DefaultsSpec::default()
        },
    }
}

/// The same as a file that nobody named.
fn unasked(scratch: &TempDir, text: &str, datadir: &Path) -> DatadirSpec {
    let file = place(scratch, text).defaults.defaults_file;
    DatadirSpec {
        datadir: Some(datadir.to_owned()),
        defaults: DefaultsSpec {
            default_files: file.into_iter().collect(),
            ..DefaultsSpec::default()
        },
    }
}

#[test]
fn the_groups_are_those_of_the_server_that_made_the_files() {
    let scratch = tempfile::tempdir().unwrap();
    let (maria, mysql) = (made_by("MariaDB 10.11.19"), made_by("MySQL 5.7.22"));
    for (dir, undo) in [(&maria, "/of-10.11"), (&mysql, "/of-mysqld")] {
        let text = format!(
            "[mysqld]\ndatadir={}\ninnodb-undo-directory=/of-mysqld\n[mariadb]\n\
             innodb_undo_directory=/of-mariadb\n[mariadb-10.11]\nloose-innodb_undo_directory=/of-10.11\n\
             [mariadb-10.6]\ninnodb_undo_directory=/of-10.6\n",
            dir.path().display()
        );
        let found = StoppedServer::find(&place(&scratch, &text)).unwrap();
        assert_eq!(found.datadir, dir.path().canonicalize().unwrap());
        assert_eq!(found.settings["innodb_undo_directory"], undo);
        assert!(matches!(found.datadir_from, Origin::File { line: 2, .. }));
        assert_eq!(found.pid, None);
    }
    let found = StoppedServer::find(&DatadirSpec {
        datadir: Some(maria.path().to_owned()),
        ..DatadirSpec::default()
    });
    let maker = found.unwrap().maker.unwrap();
    assert_eq!(maker.version, Some(Version::new(10, 11, 19)));
}

#[test]
fn a_version_group_may_name_another_data_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let (one, other) = (made_by("MySQL 5.7.22"), made_by("MySQL 5.7.22"));
    let text = format!(
        "[mysqld]\ndatadir={}\n[mysqld-5.7]\ndatadir={}\n",
        one.path().display(),
        other.path().display()
    );
    let found = StoppedServer::find(&place(&scratch, &text)).unwrap();
    assert_eq!(found.datadir, other.path().canonicalize().unwrap());
}

#[test]
fn the_redo_log_may_lie_elsewhere() {
    let scratch = tempfile::tempdir().unwrap();
    let redo = made_by("MySQL 8.0.15");
    let data = tempfile::tempdir().unwrap();
    let text = format!(
        "[server]\ndatadir={}\ninnodb_log_group_home_dir={}\ninnodb_page_size=4k\n",
        data.path().display(),
        redo.path().display()
    );
    let found = StoppedServer::find(&place(&scratch, &text)).unwrap();
    assert_eq!(found.settings["version"], "8.0.15");
    assert_eq!(found.settings["innodb_page_size"], "4096");
    assert_eq!(
        found.directory("innodb_log_group_home_dir"),
        redo.path().canonicalize().unwrap()
    );
    assert_eq!(found.directory("innodb_undo_directory"), found.datadir);
}

#[test]
fn option_files_of_another_server_are_passed_over_unless_they_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let (live, copy) = (made_by("MySQL 5.7.22"), made_by("MySQL 5.7.22"));
    let text = format!(
        "[mysqld]\ndatadir={}\ninnodb_undo_directory=/live/undo\n",
        live.path().display()
    );
    let found = StoppedServer::find(&unasked(&scratch, &text, copy.path())).unwrap();
    assert_eq!(found.settings.get("innodb_undo_directory"), None);
    assert!(
        found.warnings[0].contains("--defaults-file"),
        "{:?}",
        found.warnings
    );

    let found = StoppedServer::find(&unasked(&scratch, &text, live.path())).unwrap();
    assert_eq!(found.settings["innodb_undo_directory"], "/live/undo");
    assert!(found.warnings.is_empty());

    let mut named = place(&scratch, &text);
    named.datadir = Some(copy.path().to_owned());
    let found = StoppedServer::find(&named).unwrap();
    assert_eq!(found.settings["innodb_undo_directory"], "/live/undo");
    assert_eq!(found.datadir, copy.path().canonicalize().unwrap());
}

#[test]
fn logs_are_where_the_servers_defaults_put_them() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = |creator| made_by(creator);
    let settings = |dir: &TempDir, text: &str| {
        let text = format!("[mysqld]\ndatadir={}\n{text}\n", dir.path().display());
        let found = StoppedServer::find(&place(&scratch, &text)).unwrap();
        let at = |name: &str| {
            let path = found.settings.get(name).map(Path::new)?;
            let below = path.strip_prefix(&found.datadir).unwrap_or(path);
            Some(below.display().to_string())
        };
        [at("log_bin"), at("log_bin_basename"), at("log_bin_index")].map(Option::unwrap_or_default)
    };
    let mysql_8 = dir("MySQL 8.0.15");
    assert_eq!(settings(&mysql_8, ""), ["ON", "binlog", "binlog.index"]);
    assert_eq!(settings(&mysql_8, "skip-log-bin"), ["OFF", "", ""]);
    let maria = dir("MariaDB 10.11.19");
    assert_eq!(settings(&maria, ""), ["OFF", "", ""]);
    assert_eq!(
        settings(&maria, "log_bin\nlog-basename=shop"),
        ["ON", "shop-bin", "shop-bin.index"]
    );
    assert_eq!(
        settings(&maria, "log-bin=/logs/bin.x\nlog_bin_index=list"),
        ["ON", "/logs/bin", "list.index"]
    );
}

#[test]
fn what_was_persisted_comes_last() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = made_by("MySQL 8.0.15");
    let text = r#"{"Version":1, "mysql_server": {
        "innodb_io_capacity": {"Value": "500", "Metadata": {"Host": ""}},
        "mysql_server_static_options": {"innodb_buffer_pool_filename": {"Value": "warm"}}}}"#;
    fs::write(dir.path().join("mysqld-auto.cnf"), text).unwrap();
    let place = |more: &str| {
        let datadir = dir.path().display();
        let text = format!("[mysqld]\ndatadir={datadir}\ninnodb_io_capacity=1\n{more}");
        StoppedServer::find(&place(&scratch, &text))
            .unwrap()
            .settings
    };
    assert_eq!(place("")["innodb_io_capacity"], "500");
    assert_eq!(place("")["innodb_buffer_pool_filename"], "warm");
    assert_eq!(
        place("persisted_globals_load=OFF")["innodb_io_capacity"],
        "1"
    );
}

#[test]
fn a_wrong_directory_is_reported_with_who_named_it() {
    let scratch = tempfile::tempdir().unwrap();
    let empty = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, "").unwrap();
    for (wrong, word) in [
        (empty.path().to_owned(), "is not a data directory"),
        (scratch.path().join("missing"), "does not exist"),
        (file, "is not a directory"),
    ] {
        let text = format!("[mysqld]\ndatadir={}\n", wrong.display());
        let error = StoppedServer::find(&place(&scratch, &text)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains(word), "{error}");
        assert!(
            error
                .hints()
                .last()
                .is_some_and(|hint| hint.contains("my.cnf, line 2")),
            "{:?}",
            error.hints()
        );
    }
}

/// Locks a file as a server does, says so, and waits.
const LOCKER: &str = r#"use Fcntl qw(F_SETLK F_WRLCK SEEK_SET); open(F, "+<", $ARGV[0]) or die;
    my $lock = pack("ssx4qqi", F_WRLCK, SEEK_SET, 0, 0, 0); fcntl(F, F_SETLK, $lock) or die;
    $| = 1; print "locked"; <STDIN>"#;

#[test]
fn a_process_that_holds_a_servers_lock_is_seen_whatever_it_is_called() {
    let dir = made_by("MariaDB 10.11.19");
    let file = dir.path().join("aria_log_control");
    fs::write(&file, "x").unwrap();
    let find = || {
        StoppedServer::find(&DatadirSpec {
            datadir: Some(dir.path().to_owned()),
            ..DatadirSpec::default()
        })
        .unwrap()
    };
    let mut process = Command::new("perl")
        .args(["-e", LOCKER])
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 6];
    process
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut said)
        .unwrap();
    let found = find();
    drop(process.stdin.take());
    process.wait().unwrap();
    assert_eq!(found.pid, i32::try_from(process.id()).ok());
    let error = found.refuse_running().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("is running on"), "{error}");
    find().refuse_running().unwrap();
}

#[test]
fn the_files_of_the_system_are_those_that_are_no_tables() {
    let dir = made_by("MySQL 5.7.22");
    for name in ["ibdata1", "undo001", "auto.cnf"] {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    for (schema, table) in [("shop", "orders"), ("mysql", "user"), ("logs", "seen")] {
        fs::create_dir(dir.path().join(schema)).unwrap();
        fs::write(dir.path().join(schema).join(format!("{table}.ibd")), "x").unwrap();
    }
    let server = StoppedServer::find(&DatadirSpec {
        datadir: Some(dir.path().to_owned()),
        ..DatadirSpec::default()
    });
    let server = server.unwrap();
    let names = |found: ServerFiles| -> Vec<PathBuf> {
        let files = found.files.into_iter().map(|file| file.path);
        let mut below: Vec<_> = files
            .map(|path| path.strip_prefix(&server.datadir).unwrap().to_owned())
            .collect();
        below.sort();
        below
    };
    let of_system = names(server.system_files().unwrap());
    let mut all = names(server.files().unwrap());
    assert_eq!(all.len(), of_system.len() + 2, "{all:?} {of_system:?}");
    all.retain(|path| !path.starts_with("shop") && !path.starts_with("logs"));
    assert_eq!(of_system, all);
    assert!(of_system.contains(&PathBuf::from("mysql/user.ibd")));
}
