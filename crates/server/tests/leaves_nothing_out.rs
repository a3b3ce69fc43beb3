//! Is no file of a server left out, or taken for another's, for what stands beside it or what it is called?

use evenkeel_op::Result;
use evenkeel_server::files::{ServerFiles, discover_stopped};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};

/// A data directory that an account owns, and a place outside of it.
struct Ground {
    room: tempfile::TempDir,
    settings: BTreeMap<String, String>,
}

const SOMEBODY: u32 = 4242;

impl Ground {
    fn new() -> Self {
        let room = tempfile::tempdir().unwrap();
        let ground = Self {
            room,
            settings: BTreeMap::new(),
        };
        for dir in ["data/shop", "outside"] {
            fs::create_dir_all(ground.at(dir)).unwrap();
        }
        ground.file("data/ibdata1");
        for dir in ["data", "data/shop", "outside"] {
            chown(ground.at(dir), Some(SOMEBODY), None).unwrap();
        }
        ground
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
    let ground = Ground::new();
    ground.file("data/shop/p#P#p1.MYD");
    ground.file("data/bin.000001");
    for (to, link) in [
        ("ibdata1", "data/aaa"),
        ("ibdata1", "data/zzz"),
        ("p#P#p1.MYD", "data/shop/old.MYD"),
        ("../ibdata1", "data/shop/x.ibd"),
    ] {
        ground.link(to, link);
    }
    let names = ground.names();
    has(&names, &["data/ibdata1", "data/shop/p#P#p1.MYD"]);
    assert_eq!(names.len(), 3, "{names:?}");
    let left_out = ground.left_out();
    for link in [
        "data/aaa",
        "data/zzz",
        "data/shop/old.MYD",
        "data/shop/x.ibd",
    ] {
        let told = left_out.iter().find(|(path, _)| *path == ground.at(link));
        assert!(told.unwrap().1.contains("own name"), "{link}");
    }
}

/// Servers look for certificates under either name.
#[test]
fn small_files_have_both_names() {
    let ground = Ground::new();
    ground.file("data/ca.pem");
    ground.file("data/ib_buffer_pool");
    ground.link("ca.pem", "data/server.pem");
    ground.link("ib_buffer_pool", "data/aa");
    has(
        &ground.names(),
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
    let mut ground = Ground::new();
    ground.set("log_bin_basename", "outside/bin");
    ground.set("log_bin_index", "outside/bin.index");
    ground.file("outside/bin.000001");
    ground.file("outside/bin.index");
    ground.link("../outside/bin.000001", "data/current");
    has(
        &ground.names(),
        &["binlog/bin.000001", "binlog/bin.index", "data/ibdata1"],
    );
}

#[test]
fn tablespaces_and_logs_may_have_any_name() {
    let mut ground = Ground::new();
    ground.settings.insert(
        "innodb_data_file_path".into(),
        "ibdata1:12M;more.err:12M".into(),
    );
    ground.set("log_bin_basename", "data/core");
    ground.set("log_bin_index", "data/core.pid");
    // Written to by nobody, but named.
    ground.set("general_log_file", "data/shop/t.ibd");
    let kept = [
        "data/.evenkeel-ts1.ibd",
        "data/.nfs2.ibd",
        "data/core.000001",
        "data/core.pid",
        "data/more.err",
        "data/shop/t.ibd",
    ];
    for name in kept.into_iter().chain(["data/core.77", "data/x.pid"]) {
        ground.file(name);
    }
    let names = ground.names();
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
        let mut ground = Ground::new();
        fs::create_dir(ground.at("secret")).unwrap();
        fs::write(ground.at(value), "root's").unwrap();
        ground.set(setting, value);
        if setting == "innodb_data_file_path" {
            let path = format!("ibdata1:12M;{}:12M", ground.at(value).display());
            ground.settings.insert(setting.to_owned(), path);
        }
        let error = ground.look().unwrap_err();
        assert_eq!(error.kind(), evenkeel_op::ErrorKind::Refused);
        assert!(error.to_string().contains("settings name"), "{error}");
        chown(ground.at(value), Some(SOMEBODY), None).unwrap();
        let files = ground.look().unwrap();
        let is_it = |path: &Path| path == ground.at(value);
        assert!(files.files.iter().any(|file| is_it(&file.path)));
    }
}

/// What a directory is called says nothing of a file, and a schema's name nothing of an engine.
#[test]
fn schemas_may_be_called_like_logs_and_engines() {
    let mut ground = Ground::new();
    ground.settings.insert("version".into(), "9.7.0".into());
    let schemas = ["ib_logfile0", "ib_logfile1", "ndbinfo", "core"];
    for schema in schemas {
        fs::create_dir(ground.at(&format!("data/{schema}"))).unwrap();
        ground.file(&format!("data/{schema}/t.ibd"));
    }
    let names = ground.names();
    for schema in schemas {
        has(&names, &[&format!("data/{schema}/t.ibd")]);
    }
}

/// A server that finds its log by numbers does not start with such a schema, here or where it is restored.
#[test]
fn schemas_that_keep_a_server_from_starting_are_named() {
    let mut ground = Ground::new();
    let version = "10.11.19-MariaDB".to_owned();
    ground.settings.insert("version".into(), version);
    ground.file("data/ib_logfile0");
    fs::create_dir(ground.at("data/ib_logfile1")).unwrap();
    let error = ground.look().unwrap_err();
    assert!(error.to_string().contains("ib_logfile1"), "{error}");
    assert!(error.hints()[0].contains("rename"), "{:?}", error.hints());
}
