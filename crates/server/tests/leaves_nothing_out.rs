//! Is no file of a server left out, or taken for another's, for what stands beside it or what it is called?

use evenkeel_op::Result;
use evenkeel_server::files::{ServerFiles, discover_stopped};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};

/// A data directory that an account owns, and a place outside of it.
struct Fixture {
    room: tempfile::TempDir,
    settings: BTreeMap<String, String>,
}

const SOMEBODY: u32 = 4242;

impl Fixture {
    fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        let fixture = Self {
            room,
            settings: BTreeMap::new(),
        };
        for dir in ["data/shop", "outside"] {
            fs::create_dir_all(fixture.at(dir)).unwrap();
        }
        fixture.file("data/ibdata1");
        for dir in ["data", "data/shop", "outside"] {
            chown(fixture.at(dir), Some(SOMEBODY), None).unwrap();
        }
        fixture
    }

    fn at(&self, name: &str) -> PathBuf {
        self.room.path().canonicalize().unwrap().join(name)
    }

    fn file(&self, name: &str) {
        fs::write(self.at(name), name).unwrap();
        chown(self.at(name), Some(SOMEBODY), None).unwrap();
    }

    fn link(&self, to: &str, name: &str) {
        symlink(to, self.at(name)).unwrap();
        std::os::unix::fs::lchown(self.at(name), Some(SOMEBODY), None).unwrap();
    }

    fn set(&mut self, name: &str, path: &str) {
        let path = self.at(path).display().to_string();
        self.settings.insert(name.to_owned(), path);
    }

    fn look(&self) -> Result<ServerFiles> {
        discover_stopped(&self.at("data"), &self.settings)
    }

    fn names(&self) -> Vec<String> {
        let files = self.look().unwrap_or_else(|e| panic!("{}", e.chain()));
        files.files.into_iter().map(|file| file.name).collect()
    }

    fn left_out(&self) -> Vec<(PathBuf, &'static str)> {
        self.look().unwrap().excluded
    }
}

#[track_caller]
fn has(names: &[String], wanted: &[&str]) {
    for name in wanted {
        let count = names.iter().filter(|known| known == name).count();
        assert_eq!(count, 1, "{name} in {names:?}");
    }
}

#[test]
fn a_link_to_a_file_takes_nothing_from_the_file() {
    let fixture = Fixture::new();
    fixture.file("data/shop/p#P#p1.MYD");
    fixture.file("data/bin.000001");
    for (to, link) in [
        ("ibdata1", "data/aaa"),
        ("ibdata1", "data/zzz"),
        ("p#P#p1.MYD", "data/shop/old.MYD"),
        ("../ibdata1", "data/shop/x.ibd"),
    ] {
        fixture.link(to, link);
    }
    let names = fixture.names();
    has(&names, &["data/ibdata1", "data/shop/p#P#p1.MYD"]);
    assert_eq!(names.len(), 3, "{names:?}");
    let left_out = fixture.left_out();
    for link in [
        "data/aaa",
        "data/zzz",
        "data/shop/old.MYD",
        "data/shop/x.ibd",
    ] {
        let reported = left_out.iter().find(|(path, _)| *path == fixture.at(link));
        assert!(reported.unwrap().1.contains("own name"), "{link}");
    }
}

/// Servers look for certificates under either name.
#[test]
fn small_files_have_both_names() {
    let fixture = Fixture::new();
    fixture.file("data/ca.pem");
    fixture.file("data/ib_buffer_pool");
    fixture.link("ca.pem", "data/server.pem");
    fixture.link("ib_buffer_pool", "data/aa");
    has(
        &fixture.names(),
        &[
            "data/ca.pem",
            "data/server.pem",
            "data/ib_buffer_pool",
            "data/aa",
        ],
    );
}

#[test]
fn a_link_to_a_log_elsewhere_takes_nothing_from_it() {
    let mut fixture = Fixture::new();
    fixture.set("log_bin_basename", "outside/bin");
    fixture.set("log_bin_index", "outside/bin.index");
    fixture.file("outside/bin.000001");
    fixture.file("outside/bin.index");
    fixture.link("../outside/bin.000001", "data/current");
    has(
        &fixture.names(),
        &["binlog/bin.000001", "binlog/bin.index", "data/ibdata1"],
    );
}

#[test]
fn tablespaces_and_logs_may_have_any_name() {
    let mut fixture = Fixture::new();
    fixture.settings.insert(
        "innodb_data_file_path".into(),
        "ibdata1:12M;more.err:12M".into(),
    );
    fixture.set("log_bin_basename", "data/core");
    fixture.set("log_bin_index", "data/core.pid");
    // Written to by nobody, but named.
    fixture.set("general_log_file", "data/shop/t.ibd");
    let kept = [
        "data/.evenkeel-ts1.ibd",
        "data/.nfs2.ibd",
        "data/core.000001",
        "data/core.pid",
        "data/more.err",
        "data/shop/t.ibd",
    ];
    for name in kept.into_iter().chain(["data/core.77", "data/x.pid"]) {
        fixture.file(name);
    }
    let names = fixture.names();
    has(&names, &kept);
    assert!(!names.contains(&"data/core.77".to_owned()), "{names:?}");
    assert!(!names.contains(&"data/x.pid".to_owned()), "{names:?}");
}

/// The server says what it is set to, and a server that was taken over may say anything.
#[test]
fn a_file_of_others_that_a_setting_names_is_refused() {
    for (setting, value) in [
        ("relay_log_index", "secret/shadow"),
        ("log_bin_index", "secret/shadow"),
        ("innodb_data_file_path", "secret/shadow"),
    ] {
        let mut fixture = Fixture::new();
        fs::create_dir(fixture.at("secret")).unwrap();
        fs::write(fixture.at(value), "root's").unwrap();
        fixture.set(setting, value);
        if setting == "innodb_data_file_path" {
            let path = format!("ibdata1:12M;{}:12M", fixture.at(value).display());
            fixture.settings.insert(setting.to_owned(), path);
        }
        let error = fixture.look().unwrap_err();
        assert_eq!(error.kind(), evenkeel_op::ErrorKind::Refused);
        assert!(error.to_string().contains("settings name"), "{error}");
        chown(fixture.at(value), Some(SOMEBODY), None).unwrap();
        let files = fixture.look().unwrap();
        let is_it = |path: &Path| path == fixture.at(value);
        assert!(files.files.iter().any(|file| is_it(&file.path)));
    }
}

/// What a directory is called says nothing of a file, and a schema's name nothing of an engine.
#[test]
fn schemas_may_be_called_like_logs_and_engines() {
    let mut fixture = Fixture::new();
    fixture.settings.insert("version".into(), "9.7.0".into());
    let schemas = ["ib_logfile0", "ib_logfile1", "ndbinfo", "core"];
    for schema in schemas {
        fs::create_dir(fixture.at(&format!("data/{schema}"))).unwrap();
        fixture.file(&format!("data/{schema}/t.ibd"));
    }
    let names = fixture.names();
    for schema in schemas {
        has(&names, &[&format!("data/{schema}/t.ibd")]);
    }
}

/// A server that finds its log by numbers does not start with such a schema, here or where it is restored.
#[test]
fn schemas_that_keep_a_server_from_starting_are_named() {
    let mut fixture = Fixture::new();
    let version = "10.11.19-MariaDB".to_owned();
    fixture.settings.insert("version".into(), version);
    fixture.file("data/ib_logfile0");
    fs::create_dir(fixture.at("data/ib_logfile1")).unwrap();
    let error = fixture.look().unwrap_err();
    assert!(error.to_string().contains("ib_logfile1"), "{error}");
    assert!(error.hints()[0].contains("rename"), "{:?}", error.hints());
}
