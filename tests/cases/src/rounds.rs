//! Rounds of the crash-consistency loop: write load, freeze, boot a throwaway server on the frozen
//! files, check whether they are a bank from one point in time.

use crate::leftovers::{assert_at_most_the_base, is_stopped};
use crate::{Site, quiet};
use evenkeel_backup::backup::{BackupRequest, HeldImage, hold};
use evenkeel_innodb::redo::{RedoFormat, RedoHeader};
use evenkeel_op::Cancel;
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::files::relative_path;
use evenkeel_server::launch::Running;
use evenkeel_testkit::bank::BankState;
use evenkeel_testkit::servers::give_to_server;
use evenkeel_testkit::wait::until_within;
use evenkeel_testkit::{BankTraffic, Marks};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Where a splice is between the clones of the data and of the log.
const DATA_CLONED: &str = "backup::freeze::data_cloned";

/// How long a checkpoint may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Options that make a server write pages, not only redo, and checkpoint all the time, and grow no
/// large files.
pub const RESTLESS: [&str; 6] = [
    "--innodb-buffer-pool-size=24M",
    "--innodb-max-dirty-pages-pct=0",
    "--innodb-max-dirty-pages-pct-lwm=0",
    "--innodb-io-capacity=2000",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--sync-binlog=0",
];

/// Options of a server that lives only for a look: it need not survive the next power cut.
const FLEETING: [&str; 3] = [
    "--innodb-flush-method=nosync",
    "--innodb-buffer-pool-load-at-startup=OFF",
    "--sync-binlog=0",
];

/// Puts a site through rounds; `request` says how to freeze. Panics at the first image that is
/// not from one point in time.
pub fn go_round(site: &Site, request: &BackupRequest, rounds: u32) {
    let copy = site.fs.join("copy");
    let others = not_transfers(site, &mut site.running().session().expect("a session"));
    for round in 1..=rounds {
        // Only while it is needed: the throwaway server is to have the processors afterwards.
        let traffic = Arc::new(site.rush(4));
        traffic.wait_for(u64::from(7 + round * 13 % 40));
        let before = Arc::new(Mutex::new(traffic.marks()));
        meanwhile(site, &traffic, &before);
        let image = hold(request, quiet(&Cancel::new()))
            .unwrap_or_else(|e| panic!("round {round}: {}", e.chain()));
        fail::remove(DATA_CLONED);
        let before = before.lock().expect("marks").clone();
        let after = traffic.marks();
        // What reads the live files instead of the frozen ones finds these.
        traffic.wait_for(5);
        traffic.assert_undisturbed();
        drop(traffic);
        clone_image(&image, &copy);
        // The others start from the first one, as most backups start from another.
        let ended = match round {
            1 => image.keep(),
            _ => image.release(),
        };
        ended.expect("an end");
        let running = boot(site, &copy);
        let mut session = running.session().expect("a session");
        let state = site
            .bank
            .check(&mut session)
            .unwrap_or_else(|e| panic!("{}, round {round}: {}", site.server.name, e.chain()));
        state
            .check_between(&before, &after)
            .unwrap_or_else(|e| panic!("{}, round {round}: {}", site.server.name, e.chain()));
        assert_eq!(
            logged(&mut session) - transfers(&state),
            others,
            "{}, round {round}: binary log and tables do not tell of the same transfers",
            site.server.name
        );
        drop(session);
        running.kill();
        fs::remove_dir_all(&copy).expect("the copy goes");
    }
    assert_at_most_the_base(site.fs.path(), "after the rounds");
}

/// Returns how many transactions are in a server's log that are no transfers: the same at any instant,
/// for once the bank is open nothing else is logged.
fn not_transfers(site: &Site, session: &mut Session) -> i64 {
    let state = site.bank.check(session).expect("a bank");
    logged(session) - transfers(&state)
}

fn transfers(state: &BankState) -> i64 {
    state.transfers.try_into().expect("a small number")
}

/// Returns how many transactions a server's binary log tells of.
pub fn logged(session: &mut Session) -> i64 {
    let abilities = Abilities::probe(session).expect("abilities");
    let at = Coordinates::read(session, &abilities).expect("coordinates");
    transactions(&at.gtid.expect("GTIDs"))
}

/// Returns how many transactions are in `uuid:1-99:101,uuid:1-3` or up to `0-7-99`.
pub(crate) fn transactions(gtids: &str) -> i64 {
    let number = |text: &str| text.parse::<i64>().expect("a number");
    let interval = |text: &str| match text.split_once('-') {
        Some((first, last)) => number(last) - number(first) + 1,
        None => 1,
    };
    let set = |text: &str| match text.split_once(':') {
        Some((_, intervals)) => intervals.split(':').map(interval).sum(),
        None => number(text.rsplit('-').next().unwrap_or_default()),
    };
    gtids.split(',').map(set).sum()
}

/// Demands from now on that the server's process is stopped whenever files are about to be cloned.
/// The clones take milliseconds: that a page is written just then is too rare to wait for.
pub fn clone_only_while_stopped(site: &Site) {
    let pid = site.running().pid();
    fail::cfg_callback("snapshot::reflink::cloning", move || {
        assert!(is_stopped(pid), "files are cloned while the server runs");
    })
    .expect("a fail point");
}

/// Makes a splice as hard as it gets: between the clones of the data and of the log, clients go on,
/// and the server writes every page that is newer than its clone and checkpoints, so that nothing
/// but the log and the saved checkpoint makes the clones whole. What was acknowledged by then has to
/// be in the image.
fn meanwhile(site: &Site, traffic: &Arc<BankTraffic>, before: &Arc<Mutex<Marks>>) {
    let layout = match site.server.name.starts_with("MySQL") {
        true => RedoFormat::Classic,
        false => RedoFormat::SingleFile,
    };
    let log = site.launch.datadir.join("ib_logfile0");
    let options = site.running().connect_options();
    let (traffic, before) = (Arc::clone(traffic), Arc::clone(before));
    fail::cfg_callback(DATA_CLONED, move || {
        let mut session = Session::open(&options).expect("a session");
        let cloned = lsn_of(&mut session);
        traffic.wait_for(5);
        until_within(PATIENCE, "a checkpoint passed", || {
            let header = RedoHeader::read(&log, layout).expect("a redo log");
            header.checkpoint_lsn() >= cloned
        });
        *before.lock().expect("marks") = traffic.marks();
    })
    .expect("a fail point");
}

/// Returns a server's log sequence number.
fn lsn_of(session: &mut Session) -> u64 {
    let status = session.one("SHOW ENGINE INNODB STATUS").expect("a status");
    let text = status
        .as_ref()
        .and_then(|row| row.at(2))
        .unwrap_or_default();
    let number = text.split("Log sequence number").nth(1);
    let number = number.and_then(|rest| rest.split_whitespace().next());
    number.and_then(|text| text.parse().ok()).expect("a number")
}

/// Starts a throwaway server on a copy.
#[must_use]
pub fn boot(site: &Site, copy: &Path) -> Running {
    boot_with(site, copy, &[])
}

/// The same with more options.
#[must_use]
pub fn boot_with(site: &Site, copy: &Path, more: &[&str]) -> Running {
    let mut launch = site.launch.clone();
    launch.datadir = copy.join("data");
    let more = FLEETING.iter().chain(more).map(|arg| (*arg).to_owned());
    launch.extra_args.extend(more);
    site.server.run(&launch)
}

/// Makes data directories out of an image: below `to`, by generation name. By clones, unless `to` is on another
/// filesystem.
pub fn clone_image(image: &HeldImage, to: &Path) {
    let place = |name: &str| match relative_path(name) {
        Some((root, path)) => to.join(root).join(path),
        None => to.join(name),
    };
    for (name, _) in image.dirs() {
        fs::create_dir_all(place(name)).expect("a directory");
    }
    for (name, frozen) in image.files() {
        let target = place(name);
        fs::create_dir_all(target.parent().expect("a parent")).expect("a directory");
        let mut from = File::open(&frozen).expect("a frozen file");
        let mut to = File::create(&target).expect("a file");
        let cloned = match rustix::fs::ioctl_ficlone(&to, &from) {
            Err(Errno::XDEV) => io::copy(&mut from, &mut to).map(drop),
            cloned => cloned.map_err(io::Error::from),
        };
        cloned.unwrap_or_else(|e| panic!("failed to clone {}: {e}", frozen.display()));
    }
    give_to_server(to);
}
