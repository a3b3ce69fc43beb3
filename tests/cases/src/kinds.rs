//! Servers on which every kind of table is that they know.

use crate::Site;
use evenkeel_testkit::servers::make_server_dir;
use evenkeel_testkit::{LoopFs, TestServer};
use std::fs;
use std::path::PathBuf;

/// Starts a server on which every kind of table is that it knows, in schemas `kinds` and `a-b.é#x`; `nothing` is
/// an empty one.
#[must_use]
pub fn site(server: TestServer) -> Site {
    let fs = LoopFs::xfs(4 << 30);
    make_server_dir(&fs.join("tables"));
    let away = fs.join("tables").display().to_string();
    let known = format!("--innodb-directories={away}");
    let more: &[&str] = match server.id {
        "mysql-8.0.15" | "mysql-9" => &[&known],
        _ => &[],
    };
    let site = Site::start(server, fs, 50, more);
    let mut session = site.running().session().expect("a table");
    let is_maria = site.server.id.starts_with("mariadb");
    let is_before_8 = is_maria || site.server.id == "mysql-5.7.22";
    let mut all = vec![
        "CREATE DATABASE `a-b.é#x`".to_owned(),
        "CREATE DATABASE nothing".to_owned(),
        "CREATE DATABASE kinds".to_owned(),
        "CREATE TABLE `a-b.é#x`.`t$1 #Ä @0023` (a INT PRIMARY KEY) ENGINE=InnoDB".to_owned(),
        "CREATE TABLE kinds.lost (a INT PRIMARY KEY) ENGINE=InnoDB".to_owned(),
        "CREATE TABLE kinds.parts (a INT PRIMARY KEY) ENGINE=InnoDB PARTITION BY HASH (a) PARTITIONS 2".to_owned(),
        "CREATE TABLE kinds.words (a INT PRIMARY KEY, t TEXT, FULLTEXT (t)) ENGINE=InnoDB".to_owned(),
        format!("CREATE TABLE kinds.away (a INT PRIMARY KEY) ENGINE=InnoDB DATA DIRECTORY='{away}'"),
        "CREATE TABLE kinds.my (a INT PRIMARY KEY) ENGINE=MyISAM".to_owned(),
        "CREATE TABLE kinds.comma (a INT NOT NULL) ENGINE=CSV".to_owned(),
        "CREATE TABLE kinds.held (a INT) ENGINE=MEMORY".to_owned(),
        "CREATE TABLE kinds.merged (a INT PRIMARY KEY) ENGINE=MERGE UNION=(kinds.my)".to_owned(),
        "CREATE VIEW kinds.seen AS SELECT 1".to_owned(),
        "SET GLOBAL innodb_file_per_table=0".to_owned(),
        "CREATE TABLE kinds.inside (a INT PRIMARY KEY) ENGINE=InnoDB".to_owned(),
        "SET GLOBAL innodb_file_per_table=1".to_owned(),
    ];
    if is_before_8 {
        all.push("CREATE TABLE kinds.my_parts (a INT PRIMARY KEY) ENGINE=MyISAM PARTITION BY HASH (a) PARTITIONS 2".into());
    }
    match is_maria {
        true => all.extend([
            "CREATE TABLE kinds.pages (a INT PRIMARY KEY) ENGINE=Aria".to_owned(),
            "CREATE TABLE kinds.pages_parts (a INT PRIMARY KEY) ENGINE=Aria PARTITION BY HASH (a) PARTITIONS 2".to_owned(),
            "CREATE SEQUENCE kinds.counts".to_owned(),
            "CREATE TABLE kinds.history (a INT PRIMARY KEY) ENGINE=InnoDB WITH SYSTEM VERSIONING".to_owned(),
        ]),
        false => all.extend([
            "CREATE TABLE kinds.old (a INT) ENGINE=ARCHIVE".to_owned(),
            "CREATE TABLE kinds.hole (a INT) ENGINE=BLACKHOLE".to_owned(),
            "CREATE TABLESPACE many ADD DATAFILE 'many.ibd' ENGINE=InnoDB".to_owned(),
            "CREATE TABLE kinds.one_of_many (a INT PRIMARY KEY) TABLESPACE many".to_owned(),
        ]),
    }
    // A temporary table is nobody else's business, and in no backup.
    all.push("CREATE TEMPORARY TABLE kinds.passing (a INT)".into());
    all.push("FLUSH TABLES".into());
    for sql in all {
        let done = session.run(&sql);
        done.unwrap_or_else(|why| panic!("{}: {sql}: {}", site.server.name, why.chain()));
    }
    site
}

/// Whether each table has a definition's file; else the dictionary is InnoDB's.
#[must_use]
pub fn has_frm_files(site: &Site) -> bool {
    !matches!(site.server.id, "mysql-8.0.15" | "mysql-9")
}

/// A table `kinds`.`other` in an engine that no backup covers.
#[derive(Debug)]
pub struct Other {
    /// How it has to be named.
    pub named: &'static str,
    /// Its definition as the server made it, where there is no such engine here.
    whole: Option<(PathBuf, Vec<u8>)>,
}

impl Other {
    /// Makes it.
    #[must_use]
    pub fn make(site: &Site) -> Self {
        let mut session = site.running().session().expect("a table");
        if site.server.id == "mariadb-10.11" {
            for sql in [
                "INSTALL SONAME 'ha_sphinx'",
                "CREATE TABLE kinds.other (id BIGINT UNSIGNED NOT NULL, weight INT NOT NULL, query \
                 VARCHAR(3072) NOT NULL, INDEX (query)) ENGINE=SPHINX CONNECTION='sphinx://localhost:9/t'",
            ] {
                session.run(sql).expect("a table");
            }
            return Self {
                named: "`kinds`.`other` (SPHINX)",
                whole: None,
            };
        }
        let sql = "CREATE TABLE kinds.other (a INT) ENGINE=MyISAM";
        session.run(sql).expect("a table");
        let kinds = fs::read_dir(site.launch.datadir.join("kinds")).expect("a table");
        let paths = kinds.map(|entry| entry.expect("a table").path());
        let is_it = |path: &PathBuf| {
            let name = path
                .file_name()
                .expect("a table")
                .to_str()
                .expect("a table");
            name.starts_with("other") && (name.ends_with(".frm") || name.ends_with(".sdi"))
        };
        let path = paths.into_iter().find(is_it).expect("a table");
        let whole = fs::read(&path).expect("a table");
        let mut changed = whole.clone();
        let named = match has_frm_files(site) {
            true => {
                // The number of NDB: the name counts first.
                changed[3] = 14;
                "`kinds`.`other` (Falcon)"
            }
            false => "(Falcon)",
        };
        let (old, new) = (b"MyISAM", b"Falcon");
        while let Some(at) = changed.windows(old.len()).position(|some| some == old) {
            changed[at..at + new.len()].copy_from_slice(new);
        }
        fs::write(&path, changed).expect("a table");
        session.run("FLUSH TABLES").expect("a table");
        Self {
            named,
            whole: Some((path, whole)),
        }
    }

    /// Takes it away again.
    pub fn drop_from(self, site: &Site) {
        let mut session = site.running().session().expect("a table");
        if let Some((path, whole)) = self.whole {
            fs::write(path, whole).expect("a table");
            session.run("FLUSH TABLES").expect("a table");
        }
        session.run("DROP TABLE kinds.other").expect("a table");
    }
}
