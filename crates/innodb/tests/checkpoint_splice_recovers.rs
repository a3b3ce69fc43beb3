//! Does a data directory cloned file by file from a running server recover, if and only if the
//! redo log's saved checkpoint is put over the log's clone?

use evenkeel_innodb::redo::{RedoFormat, RedoHeader, capacity, log_end, wrapped};
use evenkeel_innodb::{PageHeader, Probe, SpaceFormat, Verdict, verify};
use evenkeel_server::connect::Session;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::{draw, is_full, rounds};
use evenkeel_testkit::servers::{
    SERVER_DEADLINE, give_to_server, mariadb_10_11, mysql_5_7_22, mysql_8_0_15,
};
use evenkeel_testkit::traffic::Random;
use evenkeel_testkit::wait::until_within;
use evenkeel_testkit::{Bank, BankTraffic, LoopFs, Scratch, TestServer};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Few pages in memory and no patience with dirty ones: checkpoints follow each other closely.
const BUSY: &[&str] = &[
    "--innodb-buffer-pool-size=8M",
    "--innodb-max-dirty-pages-pct=0",
    "--innodb-max-dirty-pages-pct-lwm=0",
    "--innodb-flush-log-at-trx-commit=2",
];
const CLIENTS: u32 = 4;
const LIMIT: Duration = Duration::from_secs(60);

struct Subject {
    server: TestServer,
    layout: RedoFormat,
    /// Makes the log so small that it wraps soon.
    small_log: &'static [&'static str],
    /// What every start of it needs.
    options: Vec<String>,
    /// The keys of an encrypted log.
    _keys: Option<Scratch>,
}

fn mariadb() -> Subject {
    Subject {
        server: mariadb_10_11(),
        layout: RedoFormat::SingleFile,
        small_log: &["--innodb-log-file-size=4M"],
        options: Vec::new(),
        _keys: None,
    }
}

fn mariadb_encrypted() -> Subject {
    let keys = Scratch::new();
    let file = keys.join("keys");
    let key = "770A8A65DA156D24EE2A093277530142770A8A65DA156D24EE2A093277530142";
    fs::write(&file, format!("1;{key}\n")).unwrap();
    Subject {
        options: vec![
            "--plugin-load-add=file_key_management".to_owned(),
            format!("--file-key-management-filename={}", file.display()),
            "--innodb-encrypt-log=ON".to_owned(),
        ],
        _keys: Some(keys),
        ..mariadb()
    }
}

fn mysql(server: TestServer) -> Subject {
    Subject {
        server,
        layout: RedoFormat::Classic,
        small_log: &["--innodb-log-file-size=4M", "--innodb-log-files-in-group=2"],
        options: Vec::new(),
        _keys: None,
    }
}

fn mysql_8_0() -> Subject {
    mysql(mysql_8_0_15())
}

fn mysql_5_7() -> Subject {
    mysql(mysql_5_7_22())
}

/// A sample takes one of each vendor.
const SUBJECTS: [fn() -> Subject; 4] = [mariadb, mysql_8_0, mariadb_encrypted, mysql_5_7];

#[test]
fn recovers_from_spliced_clones() {
    for subject in draw("servers that are cloned", &SUBJECTS, 2) {
        spliced_clones_recover(&subject());
    }
}

#[test]
fn wrapping_is_noticed() {
    for subject in draw("servers whose log wraps", &SUBJECTS, 2) {
        notices_wrapping(&subject());
    }
}

fn spliced_clones_recover(subject: &Subject) {
    let seed = seed();
    println!("{}: seed {seed}", subject.server.name);
    let mut random = Random::new(seed);
    let fs = LoopFs::xfs(2 << 30);
    let live = Live::start(subject, &fs, &[], seed);
    for round in 0..rounds("spliced clones", 1, 50) {
        let image = fs.join(format!("image-{round}"));
        let taken = live.clone_slowly(&image, &mut random);
        let name = format!("{} round {round}, seed {seed}", subject.server.name);
        // The control: without the splice, changes before the newer checkpoint are lost.
        let unspliced = fs.join(format!("unspliced-{round}"));
        clone_tree(&image, &unspliced);
        assert!(
            live.boot(&unspliced).is_err(),
            "{name}: it was consistent without the splice, so this test proves nothing"
        );
        splice(&image, &taken.saved);
        let state = live
            .boot(&image)
            .unwrap_or_else(|why| panic!("{name}: {why}"));
        state
            .check_between(&taken.before, &taken.after)
            .expect(&name);
        for dir in [image, unspliced] {
            fs::remove_dir_all(dir).expect("failed to remove an image");
        }
    }
}

fn notices_wrapping(subject: &Subject) {
    let seed = seed();
    println!("{}: seed {seed}", subject.server.name);
    let fs = LoopFs::xfs(1 << 30);
    let live = Live::start(subject, &fs, subject.small_log, seed);
    let saved = live.header();
    let logs = live.logs(&live.datadir);
    let room = capacity(&logs, &saved).unwrap();
    let frozen = fs.join("frozen");
    assert!(!wrapped(&saved, room, saved.checkpoint_lsn()));
    let mut churner = live.running.session().unwrap();
    let mut reached = |lsn: u64| {
        until_within(LIMIT, "the log went on", || {
            let churn =
                "UPDATE bank.churn SET note = REPEAT(CHAR(97 + 25 * RAND()), 200) LIMIT 500";
            churner.run(churn).unwrap();
            lsn_now(&mut churner) >= lsn
        });
    };
    // Half way round everything is still there.
    reached(saved.checkpoint_lsn() + room / 2);
    clone_logs(&logs, &frozen);
    let end = log_end(&live.logs(&frozen), &saved).unwrap();
    assert!(end > saved.checkpoint_lsn() + room / 4, "{end}");
    reached(saved.checkpoint_lsn() + room + (64 << 10));
    clone_logs(&logs, &frozen);
    let error = log_end(&live.logs(&frozen), &saved).unwrap_err();
    assert!(error.chain().contains("wrapped"), "{}", error.chain());
    assert!(wrapped(&saved, room, lsn_now(&mut churner)));
    live.ends_where_the_server_says(&frozen);
}

/// What was known while an image was taken.
struct Taken {
    saved: RedoHeader,
    before: evenkeel_testkit::Marks,
    after: evenkeel_testkit::Marks,
}

/// A server under load.
struct Live<'a> {
    subject: &'a Subject,
    datadir: PathBuf,
    bank: Bank,
    traffic: BankTraffic,
    running: Running,
}

impl<'a> Live<'a> {
    fn start(subject: &'a Subject, fs: &LoopFs, more: &[&str], seed: u64) -> Self {
        let datadir = fs.join("live");
        let own = subject.options.iter().map(String::as_str);
        let args: Vec<&str> = BUSY.iter().chain(more).copied().chain(own).collect();
        let running = subject.server.start(&datadir, &args);
        let mut session = running.session().unwrap();
        let bank = Bank::load(&mut session, 20_000).unwrap();
        for sql in [
            "CREATE TABLE bank.churn (id INT PRIMARY KEY, note VARCHAR(200)) ENGINE=InnoDB",
            "INSERT INTO bank.churn SELECT id, note FROM bank.accounts_0",
        ] {
            session.run(sql).unwrap();
        }
        let options = running.connect_options();
        let traffic = match is_full() {
            true => bank.rush_seeded(&options, CLIENTS, seed),
            false => bank.start(&options, CLIENTS),
        };
        let traffic = traffic.unwrap();
        traffic.wait_for(100);
        Self {
            subject,
            datadir,
            bank,
            traffic,
            running,
        }
    }

    fn header(&self) -> RedoHeader {
        RedoHeader::read(&self.datadir.join("ib_logfile0"), self.subject.layout).unwrap()
    }

    fn logs(&self, datadir: &Path) -> Vec<PathBuf> {
        let count = match self.subject.layout {
            RedoFormat::Classic => 2,
            _ => 1,
        };
        (0..count)
            .map(|number| datadir.join(format!("ib_logfile{number}")))
            .collect()
    }

    /// Clones one file after another in a random order, and lets the server write and checkpoint
    /// in the middle of it.
    fn clone_slowly(&self, image: &Path, random: &mut Random) -> Taken {
        let before = self.traffic.marks();
        let saved = self.header();
        let (dirs, mut files) = tree(&self.datadir);
        for dir in dirs {
            fs::create_dir_all(image.join(dir)).unwrap();
        }
        files.retain(|file| !is_log(file) && !is_passing(file));
        for last in (1..files.len()).rev() {
            files.swap(last, random.below(last as u32 + 1) as usize);
        }
        // The accounts first, the ledger later: torn apart by the pause if nothing repairs it.
        files.sort_by_key(|file| !is_accounts(file));
        let mut accounts = self.bank.tables;
        for file in &files {
            clone_file(&self.datadir.join(file), &image.join(file));
            accounts -= u32::from(is_accounts(file));
            if is_accounts(file) && accounts == 0 {
                self.traffic.wait_for(50);
                self.checkpoint_passes();
            }
        }
        clone_logs(&self.logs(&self.datadir), image);
        self.lengthen(image, &files);
        // The clone of the log is newer than any of the data.
        let after = self.traffic.marks();
        let end = log_end(&self.logs(image), &saved).unwrap();
        assert!(end >= saved.checkpoint_lsn());
        pages_are_sound(image, &files, end);
        Taken {
            saved,
            before,
            after,
        }
    }

    /// Gives clones of files that have grown meanwhile the length that the files have by now, as a
    /// backup does: MySQL's recovery takes a page behind the end for damage.
    fn lengthen(&self, image: &Path, files: &[PathBuf]) {
        let length = |path: PathBuf| fs::metadata(path).map_or(0, |found| found.len());
        for file in files {
            let now = length(self.datadir.join(file));
            if now > length(image.join(file)) {
                let clone = fs::OpenOptions::new().write(true).open(image.join(file));
                clone.unwrap().set_len(now).unwrap();
            }
        }
    }

    /// Waits until everything that was changed by now is in the data files.
    fn checkpoint_passes(&self) {
        let mut session = self.running.session().unwrap();
        let goal = lsn_now(&mut session);
        until_within(LIMIT, "a checkpoint passed", || {
            self.header().checkpoint_lsn() >= goal
        });
    }

    /// Starts a second server on an image and looks at the bank.
    fn boot(&self, image: &Path) -> Result<evenkeel_testkit::BankState, String> {
        give_to_server(image);
        let cancel = evenkeel_op::Cancel::new();
        let options: Vec<&str> = self.subject.options.iter().map(String::as_str).collect();
        let launch = self.subject.server.plan(image, &options);
        let running = launch
            .start(SERVER_DEADLINE, &cancel)
            .map_err(|error| error.chain())?;
        let looked = running
            .session()
            .and_then(|mut session| self.bank.check(&mut session));
        let state = looked.map_err(|error| error.chain());
        running.kill();
        state
    }

    /// Stops the clients and compares the end of the log with what the server says.
    fn ends_where_the_server_says(self, frozen: &Path) {
        let _marks = self.traffic.stop();
        let mut session = self.running.session().unwrap();
        until_within(LIMIT, "the server came to rest", || {
            let before = lsn_now(&mut session);
            session.run("FLUSH ENGINE LOGS").unwrap();
            let saved =
                RedoHeader::read(&self.datadir.join("ib_logfile0"), self.subject.layout).unwrap();
            let logs: Vec<PathBuf> = match self.subject.layout {
                RedoFormat::Classic => vec!["ib_logfile0".into(), "ib_logfile1".into()],
                _ => vec!["ib_logfile0".into()],
            };
            let live: Vec<PathBuf> = logs.iter().map(|log| self.datadir.join(log)).collect();
            clone_logs(&live, frozen);
            let copies: Vec<PathBuf> = logs.iter().map(|log| frozen.join(log)).collect();
            let end = log_end(&copies, &saved).unwrap();
            lsn_now(&mut session) == before && end == before
        });
    }
}

/// Checks that no page of an image is torn or newer than the end of its log.
fn pages_are_sound(image: &Path, files: &[PathBuf], end: u64) {
    for file in files {
        let opened = File::open(image.join(file)).unwrap();
        let Probe::Checkable(format) = SpaceFormat::of_file(&opened).unwrap() else {
            continue;
        };
        let bytes = fs::read(image.join(file)).unwrap();
        for (page, no) in bytes.chunks_exact(format.physical_size()).zip(0..) {
            let verdict = verify(page, no, &format);
            assert!(
                !verdict.is_corrupt(),
                "{} page {no}: {verdict:?}",
                file.display()
            );
            if verdict == Verdict::Good {
                let lsn = PageHeader::read(page, &format).unwrap().lsn;
                assert!(lsn <= end, "{} page {no}: {lsn}, log {end}", file.display());
            }
        }
    }
}

/// Returns the server's own idea of its LSN.
fn lsn_now(session: &mut Session) -> u64 {
    let row = session.one("SHOW ENGINE INNODB STATUS").unwrap().unwrap();
    let text = row.at(2).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Log sequence number"))
        .unwrap();
    line.trim().parse().unwrap()
}

fn seed() -> u64 {
    std::env::var("EVENKEEL_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| u64::from(std::process::id()) << 16 | 0xb00)
}

fn splice(image: &Path, saved: &RedoHeader) {
    let file = fs::OpenOptions::new()
        .write(true)
        .open(image.join("ib_logfile0"))
        .unwrap();
    file.write_all_at(saved.bytes(), saved.offset()).unwrap();
}

fn is_log(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("ib_logfile")
}

/// Returns whether a file is not part of the data: the server re-creates it.
fn is_passing(file: &Path) -> bool {
    let name = file.to_string_lossy();
    name.contains("ibtmp") || name.contains("#innodb_temp") || name.ends_with(".pid")
}

fn is_accounts(file: &Path) -> bool {
    let name = file.to_string_lossy();
    name.contains("accounts_") && name.ends_with(".ibd")
}

fn clone_logs(logs: &[PathBuf], to: &Path) {
    fs::create_dir_all(to).unwrap();
    for log in logs {
        clone_file(log, &to.join(log.file_name().unwrap()));
    }
}

fn clone_file(from: &Path, to: &Path) {
    let source = File::open(from).unwrap();
    let target = File::create(to).unwrap();
    rustix::fs::ioctl_ficlone(&target, &source)
        .unwrap_or_else(|e| panic!("failed to clone {}: {e}", from.display()));
}

fn clone_tree(from: &Path, to: &Path) {
    let (dirs, files) = tree(from);
    for dir in dirs {
        fs::create_dir_all(to.join(dir)).unwrap();
    }
    for file in files {
        clone_file(&from.join(&file), &to.join(&file));
    }
}

/// Lists directories and regular files, relative to `root`.
fn tree(root: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut dirs, mut files) = (vec![PathBuf::new()], Vec::new());
    let mut next = 0;
    while next < dirs.len() {
        let dir = dirs[next].clone();
        for entry in fs::read_dir(root.join(&dir)).unwrap() {
            let entry = entry.unwrap();
            let path = dir.join(entry.file_name());
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => dirs.push(path),
                kind if kind.is_file() => files.push(path),
                _ => {}
            }
        }
        next += 1;
    }
    (dirs, files)
}
