//! The servers of the test matrix.

use evenkeel_op::Cancel;
use evenkeel_server::abilities::Flavour;
use evenkeel_server::launch::{Account, Binary, Launch, Running};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// How long a test waits for a server to be made, started or stopped. Only hangs take that long.
pub const SERVER_DEADLINE: Duration = Duration::from_secs(120);

/// The account that `testkit/setup` makes.
const ACCOUNT_NAME: &str = "evenkeel-test";

/// MySQL instruments itself unless told otherwise, with room for thousands of clients: 280 MB that each start
/// has to clear, a third of what a start costs. It stays on, with room for the clients of a test.
const SMALL_INSTRUMENTS: &[&str] = &[
    "--performance-schema-max-thread-instances=200",
    "--performance-schema-digests-size=1000",
    "--performance-schema-events-statements-history-long-size=1000",
    "--performance-schema-events-stages-history-long-size=100",
    "--performance-schema-events-transactions-history-long-size=100",
    "--performance-schema-events-waits-history-long-size=100",
    "--performance-schema-accounts-size=50",
    "--performance-schema-hosts-size=50",
    "--performance-schema-users-size=50",
    // MySQL 5.7 does not know it.
    "--loose-performance-schema-error-size=1",
];

/// One server of the matrix.
#[derive(Debug, Clone)]
pub struct TestServer {
    /// A name to show: `MariaDB 10.11`.
    pub name: &'static str,
    /// A short name for files: `mariadb-10.11`.
    pub id: &'static str,
    /// The program.
    pub binary: Binary,
}

/// Returns every server of the matrix. Panics when one is missing.
#[must_use]
pub fn servers() -> Vec<TestServer> {
    vec![mariadb_10_11(), mysql_8_0_15(), mysql_5_7_22()]
}

/// Returns the servers that came after those of the matrix; at least one case of each command
/// runs on them. Panics when one is missing.
#[must_use]
pub fn newer_servers() -> Vec<TestServer> {
    vec![mariadb_11_8(), mysql_9()]
}

/// Returns Debian's MariaDB.
#[must_use]
pub fn mariadb_10_11() -> TestServer {
    test_server(
        "MariaDB 10.11",
        "mariadb-10.11",
        Path::new("/usr/sbin/mariadbd"),
    )
}

/// Returns MySQL 8.0.15.
#[must_use]
pub fn mysql_8_0_15() -> TestServer {
    let program = cache().join("mysql-8.0.15/bin/mysqld");
    test_server("MySQL 8.0.15", "mysql-8.0.15", &program)
}

/// Returns MySQL 5.7.22.
#[must_use]
pub fn mysql_5_7_22() -> TestServer {
    let program = cache().join("mysql-5.7.22/bin/mysqld");
    test_server("MySQL 5.7.22", "mysql-5.7.22", &program)
}

/// Returns MariaDB 11.4: not among the newer servers, two cases run on it.
#[must_use]
pub fn mariadb_11_4() -> TestServer {
    let program = cache().join("mariadb-11.4/bin/mariadbd");
    test_server("MariaDB 11.4", "mariadb-11.4", &program)
}

/// Returns MariaDB 11.8.
#[must_use]
pub fn mariadb_11_8() -> TestServer {
    let program = cache().join("mariadb-11.8/usr/sbin/mariadbd");
    test_server("MariaDB 11.8", "mariadb-11.8", &program)
}

/// Returns MySQL 9, of the minor version that Debian had when the cache was filled: 9.7 or later.
#[must_use]
pub fn mysql_9() -> TestServer {
    let program = cache().join("mysql-9/usr/sbin/mysqld");
    test_server("MySQL 9", "mysql-9", &program)
}

/// Returns the directory of fetched servers and of data directories to copy.
#[must_use]
pub fn cache() -> PathBuf {
    std::env::var_os("EVENKEEL_TEST_CACHE")
        .filter(|set| !set.is_empty())
        .map_or_else(|| PathBuf::from("/var/cache/evenkeel-test"), PathBuf::from)
}

fn test_server(name: &'static str, id: &'static str, program: &Path) -> TestServer {
    let binary = Binary::inspect(program)
        .unwrap_or_else(|e| panic!("{name} is missing ({}): run testkit/setup", e.chain()));
    TestServer { name, id, binary }
}

impl TestServer {
    /// Makes a data directory at `datadir` and plans a server on it, with `args` for both.
    ///
    /// Making one takes seconds, so it is made once for each set of options, kept in the cache, and
    /// copied.
    #[must_use]
    pub fn prepare(&self, datadir: &Path, args: &[&str]) -> Launch {
        let template = self.template(args);
        copy_tree(&template, datadir);
        // Two servers with one UUID could not replicate from each other.
        let _ = std::fs::remove_file(datadir.join("auto.cnf"));
        self.plan(datadir, args)
    }

    /// Plans a server on a data directory that exists.
    #[must_use]
    pub fn plan(&self, datadir: &Path, args: &[&str]) -> Launch {
        let mut launch = Launch::new(self.binary.clone(), datadir);
        launch.account = account();
        let instrumented = match self.binary.flavour {
            Flavour::MySql => SMALL_INSTRUMENTS,
            Flavour::MariaDb => &[],
        };
        // The test's own come last: they win.
        let all = instrumented.iter().chain(args);
        launch.extra_args = all.map(|arg| (*arg).to_owned()).collect();
        launch
    }

    /// Makes a data directory at `datadir` and starts a server on it.
    #[must_use]
    pub fn start(&self, datadir: &Path, args: &[&str]) -> Running {
        self.run(&self.prepare(datadir, args))
    }

    /// Starts what was planned. Panics with the server's own words when it does not start.
    #[must_use]
    pub fn run(&self, launch: &Launch) -> Running {
        launch
            .start(SERVER_DEADLINE, &Cancel::new())
            .unwrap_or_else(|e| panic!("{}: {}", self.name, e.chain()))
    }

    /// Returns a data directory to copy, made with the options among `args` that shape one.
    fn template(&self, args: &[&str]) -> PathBuf {
        let shaping: Vec<&str> = args.iter().copied().filter(|arg| shapes(arg)).collect();
        let mut hasher = DefaultHasher::new();
        shaping.hash(&mut hasher);
        // The layout of this cache: raise the number when what is made here changes.
        let name = format!(
            "template-3-{}-{:016x}",
            self.binary.version,
            hasher.finish()
        );
        let template = cache().join(&name);
        if template.exists() {
            return template;
        }
        std::fs::create_dir_all(cache()).expect("failed to create the test cache");
        // Tests run side by side, in threads or in processes of their own: one makes it.
        let lock = std::fs::File::create(cache().join(".lock")).expect("failed to create a lock");
        lock.lock().expect("failed to lock the test cache");
        if template.exists() {
            return template;
        }
        let work = cache().join(format!(".{name}"));
        let _ = std::fs::remove_dir_all(&work);
        self.plan(&work, &shaping)
            .initialise(SERVER_DEADLINE, &Cancel::new())
            .unwrap_or_else(|e| panic!("{}: {}", self.name, e.chain()));
        // Half of it and more are zeros. As holes they are not read again with each copy.
        let lean = cache().join(format!(".{name}.lean"));
        let _ = std::fs::remove_dir_all(&lean);
        copy_tree(&work, &lean);
        std::fs::remove_dir_all(&work).expect("failed to remove a data directory");
        std::fs::rename(&lean, &template).expect("failed to name a data directory");
        template
    }
}

/// Returns whether an option has to be known when the data directory is made. Options that name
/// other directories are not among them: such a server is to be made by the test itself.
fn shapes(arg: &str) -> bool {
    let name = arg.trim_start_matches('-').replace('_', "-");
    let name = name.split('=').next().unwrap_or_default();
    [
        "innodb-page-size",
        "innodb-checksum-algorithm",
        "innodb-data-file-path",
        "innodb-undo-tablespaces",
        "innodb-log-file-size",
        "innodb-log-files-in-group",
        "innodb-redo-log-capacity",
        "lower-case-table-names",
    ]
    .contains(&name)
}

/// Returns the account that the servers of tests belong to, as users' servers belong to one without rights:
/// that of `testkit/setup`, when the tests run as root.
#[must_use]
pub fn account() -> Option<Account> {
    static ACCOUNT: OnceLock<Option<Account>> = OnceLock::new();
    *ACCOUNT.get_or_init(|| {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let number = |option: &str| {
            let asked = Command::new("id").args([option, ACCOUNT_NAME]).output();
            let said = String::from_utf8_lossy(&asked.expect("id runs").stdout).into_owned();
            let number = said.trim().parse().ok();
            number.unwrap_or_else(|| panic!("no account {ACCOUNT_NAME}: run testkit/setup tests"))
        };
        Some(Account {
            uid: number("-u"),
            gid: number("-g"),
        })
    })
}

/// Gives a tree that a test has made to the servers' account.
pub fn give_to_server(tree: &Path) {
    if let Some(Account { uid, gid }) = account() {
        let mut chown = Command::new("chown");
        chown.args(["-R", "-h", &format!("{uid}:{gid}")]).arg(tree);
        crate::loopfs::run(&mut chown);
    }
}

/// Makes a directory for a server to write into.
pub fn make_server_dir(path: &Path) {
    std::fs::create_dir_all(path).expect("failed to create a directory");
    give_to_server(path);
}

/// Copies a tree with everything that matters, sharing blocks where the filesystem can.
pub fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to)
        .unwrap_or_else(|e| panic!("failed to create {}: {e}", to.display()));
    let output = Command::new("cp")
        .args(["-a", "--reflink=auto", "--sparse=always"])
        .arg(from.join("."))
        .arg(to)
        .output()
        .expect("failed to run cp");
    assert!(
        output.status.success(),
        "failed to copy {}: {}",
        from.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}
