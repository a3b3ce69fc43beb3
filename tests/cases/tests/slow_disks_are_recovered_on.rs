//! Does a server that was killed on an emulated slow disk recover there, with nothing lost that it
//! had acknowledged; and does the disk see what it reads?

use evenkeel_mount::{Delay, Delayed, Mounted};
use evenkeel_server::launch::Launch;
use evenkeel_testkit::servers::{SERVER_DEADLINE, mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{Bank, Scratch, TestServer, until};
use std::path::{Path, PathBuf};
use std::time::Duration;

const DELAY: Delay = Delay {
    read: Duration::from_micros(300),
    write: Duration::from_micros(100),
};

/// A data directory on a disk, which is shown at another place.
struct Disk {
    shown: Option<Delayed>,
    scratch: Scratch,
}

impl Disk {
    fn mnt(&self) -> PathBuf {
        self.scratch.join("mnt")
    }

    fn mount(&mut self) {
        let shown = Mounted::delayed(&self.scratch.join("disk"), DELAY, &self.mnt());
        self.shown = Some(shown.expect("a mount"));
    }

    /// Has the kernel forget what it read.
    fn remount(&mut self) {
        let shown = self.shown.take().expect("a mount");
        // The kernel gives up what a process had a moment after the process is gone.
        until("nobody uses it", || shown.unmount().is_ok());
        shown.join().expect("it ends well");
        self.mount();
    }

    fn bytes_of(&self, path: &str) -> u64 {
        let shown = self.shown.as_ref().expect("a mount");
        shown.reads_of(Path::new(path)).bytes
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(shown) = self.shown.take() {
            let _ = shown.unmount();
        }
    }
}

fn case(server: &TestServer, more: &[&str]) {
    let scratch = Scratch::new();
    let mut args = vec![
        "--innodb-buffer-pool-size=32M",
        "--innodb-log-file-size=16M",
        "--performance-schema=OFF",
    ];
    args.extend(more);
    let datadir = scratch.join("disk/data");
    std::fs::create_dir(scratch.join("disk")).expect("a disk");
    std::fs::create_dir(scratch.join("mnt")).expect("a mount point");
    let prepared = server.prepare(&datadir, &args);
    let mut disk = Disk {
        shown: None,
        scratch,
    };
    disk.mount();
    let launch = Launch {
        datadir: disk.mnt().join("data"),
        ..prepared
    };

    let running = server.run(&launch);
    let mut session = running.session().expect("a session");
    let bank = Bank::load(&mut session, 1_000).expect("a bank");
    let traffic = bank
        .start(&running.connect_options(), 4)
        .expect("traffic on the bank");
    traffic.wait_for(300);
    let before = traffic.marks();
    running.kill();
    let after = traffic.stop();
    disk.remount();

    let running = server.run(&launch);
    let mut session = running.session().expect("a session");
    let state = bank.check(&mut session).expect("the bank is in order");
    let whole = state.check_between(&before, &after);
    whole.unwrap_or_else(|e| panic!("{}: {}", server.name, e.chain()));
    assert!(disk.bytes_of("data/ib_logfile0") > 0, "{}", server.name);
    assert!(disk.bytes_of("data/ibdata1") > 0, "{}", server.name);
    running.stop(SERVER_DEADLINE).expect("it stops");
}

#[test]
fn mariadb_past_the_page_cache() {
    case(
        &mariadb_10_11(),
        &[
            "--innodb-flush-method=O_DIRECT",
            "--innodb-use-native-aio=ON",
        ],
    );
}

#[test]
fn mysql_5_7_through_the_page_cache() {
    case(&mysql_5_7_22(), &["--innodb-use-native-aio=OFF"]);
}

#[test]
fn mysql_8_through_the_page_cache() {
    case(&mysql_8_0_15(), &["--innodb-use-native-aio=OFF"]);
}

#[test]
fn mysql_8_past_the_page_cache() {
    case(
        &mysql_8_0_15(),
        &[
            "--innodb-flush-method=O_DIRECT",
            "--innodb-use-native-aio=ON",
        ],
    );
}
