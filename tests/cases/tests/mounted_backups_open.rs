//! Does a mounted backup hold what a restore gives, does a server start on it, and does the scratch
//! become a full restore, while the repository stays as it is?

use evenkeel_cases::Site;
use evenkeel_cases::mounting::Mounting;
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_op::Cancel;
use evenkeel_server::launch::{Launch, Running};
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::make_server_dir;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, Marks, TestServer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const GIB: u64 = 1 << 30;

type MakeServer = fn() -> TestServer;

struct Case {
    site: Site,
    evenkeel: Evenkeel,
    /// Before and after each generation.
    taken: Vec<(Marks, Marks)>,
}

/// Names and digests of all files below a directory. Sockets are left out, and locks: they are made
/// when they are first taken.
fn tree(top: &Path) -> BTreeMap<PathBuf, (u64, u64)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let entry = entry.expect("an entry");
            let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file() && path.extension().is_none_or(|end| end != "lock") {
                let name = path.strip_prefix(top).expect("below").to_owned();
                found.insert(name, digest(&path));
            }
        }
    }
    found
}

/// Length and a hash of a file, as FNV-1a but by words of eight bytes, and turned so that no bit of them stays
/// where it is: by single bytes it takes as long as a restore.
fn digest(path: &Path) -> (u64, u64) {
    let mut file = File::open(path).expect("a file");
    let (mut length, mut hash) = (0, 0xcbf2_9ce4_8422_2325u64);
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        // All of it but at the end, however little a read gives: words begin at the same places in every copy.
        let read = (&mut file).take(1 << 20).read_to_end(&mut buffer);
        let read = read.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        if read == 0 {
            return (length, hash);
        }
        length += read as u64;
        for bytes in buffer.chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01b3);
            hash = hash.rotate_left(29);
        }
    }
}

impl Case {
    /// Two generations, taken while the bank was open.
    fn start(server: TestServer) -> Self {
        let mut site = Site::start(server, LoopFs::xfs(4 * GIB), 1_000, &[]);
        let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
        let traffic = site.traffic(2);
        let mut taken = Vec::new();
        for generation in 1..=2 {
            traffic.wait_for(50);
            let before = traffic.marks();
            assert_eq!(run(evenkeel.backup(&site, &[])).generation(), generation);
            taken.push((before, traffic.marks()));
        }
        drop(traffic.stop());
        site.kill();
        Self {
            site,
            evenkeel,
            taken,
        }
    }

    fn mount(&self, flags: &[&str]) -> Mounting {
        let mountpoint = self.site.fs.join("mnt");
        Mounting::start(&self.evenkeel, &self.site.repository(), &mountpoint, flags)
    }

    fn scratch(&self) -> String {
        self.site.fs.join("scratch").display().to_string()
    }

    fn launch(&self, datadir: &Path, options: Vec<String>) -> Launch {
        let mut launch = self.site.server.plan(datadir, &[]);
        launch.extra_args = options;
        launch
            .extra_args
            .push("--innodb-buffer-pool-size=64M".into());
        // Past the cache of whoever mounts it, as servers are set up.
        launch
            .extra_args
            .push("--innodb-flush-method=O_DIRECT".into());
        launch
    }

    /// Starts a server, checks that its bank is that of a generation, and works on it.
    fn open(&self, datadir: &Path, options: Vec<String>, generation: usize) -> Running {
        let launch = self.launch(datadir, options);
        let running = launch
            .start(SERVER_DEADLINE, &Cancel::new())
            .unwrap_or_else(|e| panic!("{}: {}", self.site.server.name, e.chain()));
        let mut session = running.session().expect("a session");
        let state = self
            .site
            .bank
            .check(&mut session)
            .expect("the bank is in order");
        let (before, after) = &self.taken[generation - 1];
        state
            .check_between(before, after)
            .expect("exactly what was committed");
        for sql in [
            "CREATE DATABASE opened",
            "CREATE TABLE opened.notes (id INT PRIMARY KEY, t LONGTEXT) ENGINE=InnoDB",
            "INSERT INTO opened.notes SELECT id, REPEAT('n', 3000) FROM bank.accounts_0",
            "ALTER TABLE bank.accounts_1 ADD COLUMN seen INT NOT NULL DEFAULT 1, ALGORITHM=COPY",
            "UPDATE bank.accounts_1 SET seen = 2",
            "RENAME TABLE bank.accounts_2 TO opened.accounts_2",
            "RENAME TABLE opened.accounts_2 TO bank.accounts_2",
            "CREATE TABLE opened.old (id INT PRIMARY KEY) ENGINE=MyISAM",
            "INSERT INTO opened.old VALUES (1), (2)",
            "TRUNCATE TABLE bank.accounts_3",
        ] {
            session
                .run(sql)
                .unwrap_or_else(|e| panic!("{sql}: {}", e.chain()));
        }
        running
    }

    /// Whether what [`Case::open`] wrote is there.
    fn assert_opened(&self, running: &Running) {
        let mut session = running.session().expect("a session");
        for (sql, expected) in [
            (
                "SELECT COUNT(*) FROM opened.notes WHERE LENGTH(t) = 3000",
                "250",
            ),
            ("SELECT SUM(seen) FROM bank.accounts_1", "500"),
            ("SELECT COUNT(*) FROM opened.old", "2"),
            ("SELECT COUNT(*) FROM bank.accounts_3", "0"),
        ] {
            let found = session.value(sql).expect("an answer");
            assert_eq!(found.as_deref(), Some(expected), "{sql}");
        }
    }

    /// Every byte of the repository is sound, and there are the generations that there were.
    fn assert_repository_is(&self, before: &BTreeMap<PathBuf, (u64, u64)>) {
        assert!(
            tree(&self.site.repository()) == *before,
            "the repository was changed"
        );
        let mut verify = self.evenkeel.command(&["verify", "--all"]);
        verify.arg(self.site.repository());
        assert_eq!(run(verify).code, Some(0));
    }
}

/// All generations are shown, byte for byte what restores give; a dead mount is taken away.
fn shows_everything(server: TestServer) {
    let case = Case::start(server);
    let before = tree(&case.site.repository());
    let mounting = case.mount(&[]);
    let shown = |mounting: &Mounting| {
        let mut sources = fs::read_dir(&mounting.mountpoint).expect("it is shown");
        sources.next().expect("a source").expect("an entry").path()
    };
    let source = shown(&mounting);
    assert_eq!(
        fs::read_link(source.join("latest")).unwrap(),
        Path::new("2")
    );
    for generation in 1..=2u32 {
        let name = format!("restored-{generation}");
        let restored = case
            .site
            .restore(Some(generation), &name)
            .expect("a restore");
        let data = source.join(generation.to_string()).join("data");
        assert!(
            tree(&data) == tree(&restored.target),
            "generation {generation}"
        );
        let written = File::create(data.join("new")).unwrap_err();
        assert_eq!(written.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }
    let forget = |code| {
        let mut forget = case
            .evenkeel
            .command(&["forget", "--generation=1", "--execute"]);
        forget.arg(case.site.repository());
        assert_eq!(run(forget).code, Some(code));
    };
    forget(11);
    mounting.kill();
    let dead = rustix::fs::statvfs(case.site.fs.join("mnt")).map(drop);
    assert_eq!(dead, Err(rustix::io::Errno::NOTCONN));
    let again = case.mount(&["--generation=latest"]);
    assert_eq!(again.ready["healed"], Value::Bool(true));
    let data = again.mountpoint.join("data");
    assert!(tree(&data) == tree(&case.site.fs.join("restored-2")));
    let (end, code) = again.end();
    assert_eq!((&end["state"], code), (&Value::from("ended"), Some(0)));
    assert_eq!(fs::read_dir(case.site.fs.join("mnt")).unwrap().count(), 0);
    case.assert_repository_is(&before);
    forget(0);
}

/// A server starts on a mount, works and stops; nothing stays.
fn opens(server: TestServer) {
    let case = Case::start(server);
    let before = tree(&case.site.repository());
    let scratch = case.scratch();
    let mounting = case.mount(&["--writable-scratch", &scratch, "--generation=1"]);
    let (data, options) = (mounting.mountpoint.join("data"), mounting.start_options());
    let running = case.open(&data, options.clone(), 1);
    running.stop(SERVER_DEADLINE).expect("it stops");
    let again = case.launch(&data, options.clone());
    let running = again
        .start(SERVER_DEADLINE, &Cancel::new())
        .expect("it starts again");
    case.assert_opened(&running);
    // Killed under a server, the scratch goes with the next mount.
    mounting.kill();
    running.kill();
    let mounting = case.mount(&["--writable-scratch", &scratch]);
    assert_eq!(mounting.ready["healed"], Value::Bool(true));
    let running = case.open(&data, options, 2);
    // Asked to end while a server uses it, it does when that has stopped.
    mounting.ask();
    case.assert_opened(&running);
    running.stop(SERVER_DEADLINE).expect("it stops");
    let (end, code) = mounting.finish();
    assert_eq!((&end["scratch"], code), (&Value::from("removed"), Some(0)));
    assert!(!Path::new(&scratch).exists());
    case.assert_repository_is(&before);
}

/// The scratch becomes a full restore: of what a server wrote meanwhile, and over a kill.
fn fills(server: TestServer) {
    let case = Case::start(server);
    let before = tree(&case.site.repository());
    let scratch = case.scratch();
    let flags = ["--writable-scratch", scratch.as_str(), "--fill"];
    let slow = [flags.as_slice(), &["--rate=64K"]].concat();
    let mounting = case.mount(&slow);
    let (data, options) = (mounting.mountpoint.join("data"), mounting.start_options());
    let running = case.open(&data, options.clone(), 2);
    // The process is killed, not the host: what the server was told to be written is.
    mounting.kill();
    running.kill();
    let mounting = case.mount(&slow);
    assert_eq!(mounting.ready["resumed"], Value::Bool(true));
    let (end, code) = mounting.end();
    assert_eq!((&end["scratch"], code), (&Value::from("kept"), Some(3)));
    let mounting = case.mount(&flags);
    let running = case
        .launch(&data, options)
        .start(SERVER_DEADLINE, &Cancel::new());
    let running = running.expect("it starts again");
    case.assert_opened(&running);
    let filled = mounting.next();
    assert_eq!(filled["state"], "filled", "{filled}");
    // From now on it does without the repository.
    let away = case.site.fs.join("away");
    fs::rename(case.site.repository(), &away).unwrap();
    case.assert_opened(&running);
    running.stop(SERVER_DEADLINE).expect("it stops");
    let (end, code) = mounting.end();
    assert_eq!((&end["scratch"], code), (&Value::from("restored"), Some(0)));
    fs::rename(&away, case.site.repository()).unwrap();
    let target = PathBuf::from(end["target"].as_str().expect("a target"));
    assert_eq!(target, Path::new(&scratch).join("data"));
    let options = end["start_options"].as_array().expect("options");
    let options = options
        .iter()
        .map(|o| o.as_str().unwrap().to_owned())
        .collect();
    let running = case.launch(&target, options);
    let running = running
        .start(SERVER_DEADLINE, &Cancel::new())
        .expect("it starts");
    case.assert_opened(&running);
    running.stop(SERVER_DEADLINE).expect("it stops");
    case.assert_repository_is(&before);
}

/// Owner, group and mode of a directory and of all below it.
fn rights(top: &Path) -> BTreeMap<PathBuf, (u32, u32, u32)> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(&path).expect("an entry");
        if meta.is_dir() {
            let below = fs::read_dir(&path).expect("a directory");
            waiting.extend(below.map(|entry| entry.expect("an entry").path()));
        }
        let name = path.strip_prefix(top).expect("below").to_owned();
        found.insert(name, (meta.uid(), meta.gid(), meta.mode() & 0o7777));
    }
    found
}

/// Filled without a server, it is what a restore gives, and belongs to whom the original belongs to, or to whom it
/// was given.
fn fills_alone(server: TestServer) {
    let case = Case::start(server);
    let scratch = case.scratch();
    let mounting = case.mount(&["--writable-scratch", &scratch, "--fill"]);
    assert_eq!(mounting.next()["state"], "filled");
    let (end, code) = mounting.end();
    assert_eq!((&end["scratch"], code), (&Value::from("restored"), Some(0)));
    let restored = case.site.restore(Some(2), "restored").expect("a restore");
    assert!(tree(&Path::new(&scratch).join("data")) == tree(&restored.target));
    let top: Vec<_> = fs::read_dir(&scratch)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(top, ["data"]);

    let filled = rights(&Path::new(&scratch).join("data"));
    assert!(filled == rights(&restored.target), "{filled:?}");
    let original = fs::metadata(&case.site.launch.datadir).unwrap();
    let own = (original.uid(), original.gid(), original.mode() & 0o7777);
    assert!(own.0 > 0 && own.1 > 0, "{own:?}");
    assert_eq!(filled[Path::new("")], own);

    let theirs = case.site.fs.join("theirs");
    let given = ["--fill", "--owner=nobody", "--writable-scratch"];
    let mounting = case.mount(&[&given[..], &[theirs.to_str().unwrap()]].concat());
    assert_eq!(mounting.next()["state"], "filled");
    assert_eq!(mounting.end().1, Some(0));
    for (name, found) in rights(&theirs.join("data")) {
        let mode = filled[&name].2;
        assert_eq!(found, (65534, 65534, mode), "{}", name.display());
    }
}

/// Binary logs that lay outside the data directory are found where they are shown, then where they
/// are restored, and never where they were.
fn follows_its_roots(server: TestServer) {
    let fs = LoopFs::xfs(4 * GIB);
    let logs = fs.join("logs");
    make_server_dir(&logs);
    let log_bin = format!("--log-bin={}", logs.join("binlog").display());
    let mut site = Site::start(server, fs, 200, &[&log_bin]);
    let evenkeel = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    assert_eq!(run(evenkeel.backup(&site, &[])).generation(), 1);
    site.kill();
    let old = tree(&logs);
    let (mountpoint, scratch) = (site.fs.join("mnt"), site.fs.join("scratch"));
    let flags = ["--fill", "--writable-scratch", scratch.to_str().unwrap()];
    let mounting = Mounting::start(&evenkeel, &site.repository(), &mountpoint, &flags);
    let start = |top: &Path, options: Vec<String>| {
        let index = fs::read_to_string(top.join("binlog/binlog.index")).expect("an index");
        let below = top.join("binlog").display().to_string();
        assert!(
            index.lines().all(|line| line.starts_with(&below)),
            "{index}"
        );
        let mut launch = site.server.plan(&top.join("data"), &[]);
        launch.extra_args = options;
        let running = launch.start(SERVER_DEADLINE, &Cancel::new());
        let running = running.unwrap_or_else(|e| panic!("{}", e.chain()));
        let mut session = running.session().expect("a session");
        site.bank.check(&mut session).expect("the bank is in order");
        session.run("FLUSH LOGS").expect("a new log");
        running.stop(SERVER_DEADLINE).expect("it stops");
    };
    start(&mountpoint, mounting.start_options());
    assert_eq!(mounting.next()["state"], "filled");
    let (end, code) = mounting.end();
    assert_eq!((&end["scratch"], code), (&Value::from("restored"), Some(0)));
    let options = end["start_options"].as_array().expect("options");
    let options = options.iter().map(|o| o.as_str().unwrap().to_owned());
    start(&scratch, options.collect());
    assert!(tree(&logs) == old, "the original logs were touched");
}

/// The proof by a server that starts needs no full restore.
fn proves(server: TestServer) {
    let case = Case::start(server);
    let program = case.site.server.binary.path.display().to_string();
    let mut verify = case
        .evenkeel
        .command(&["verify", "--boot", "--mount", "--server-binary"]);
    verify.arg(program).arg(case.site.repository());
    let ended = run(verify);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.answer["boot"]["proven"], Value::Bool(true));
    assert!(ended.answer["boot"]["tables_checked"].as_u64() > Some(4));
    let left: Vec<_> = fs::read_dir(case.site.fs.path()).unwrap().collect();
    let names: Vec<_> = left.into_iter().map(|e| e.unwrap().file_name()).collect();
    assert!(
        !names
            .iter()
            .any(|name| name.to_string_lossy().contains("boot")),
        "{names:?}"
    );
}

/// Puts a question to one server in a sample, and to all of them in full.
fn on_some(what: &str, servers: &[MakeServer], question: fn(TestServer)) {
    for server in draw(what, servers, 1) {
        question(server());
    }
}

#[test]
fn is_shown() {
    let servers: [MakeServer; 3] = [mariadb_10_11, mysql_8_0_15, mysql_5_7_22];
    on_some("servers that are shown", &servers, shows_everything);
}

#[test]
fn opens_where_it_is_shown() {
    let servers: [MakeServer; 3] = [mysql_8_0_15, mysql_5_7_22, mariadb_10_11];
    on_some("servers that open", &servers, opens);
}

#[test]
fn fills_while_it_is_open() {
    let servers: [MakeServer; 3] = [mysql_5_7_22, mariadb_10_11, mysql_8_0_15];
    on_some("servers that are filled", &servers, fills);
}

#[test]
fn mariadb_fills_alone() {
    fills_alone(mariadb_10_11());
}

#[test]
fn roots_are_followed() {
    let servers: [MakeServer; 2] = [mysql_8_0_15, mariadb_10_11];
    on_some("servers with roots", &servers, follows_its_roots);
}

#[test]
fn is_proved() {
    let servers: [MakeServer; 3] = [mysql_5_7_22, mariadb_10_11, mysql_8_0_15];
    on_some("servers that are proved", &servers, proves);
}
