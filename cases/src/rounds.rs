//! Rounds of the crash-consistency loop: write load, freeze, boot a throwaway server on the frozen
//! files, look whether they are a bank of one instant.

use crate::leftovers::assert_at_most_the_base;
use crate::{Site, quiet};
use evenkeel_backup::backup::{BackupRequest, HeldImage, hold};
use evenkeel_op::Cancel;
use evenkeel_server::files::relative_path;
use evenkeel_server::launch::Running;
use std::fs::{self, File};
use std::path::Path;

/// Options that make a server write pages, not only redo, all the time, and grow no large files.
pub const RESTLESS: [&str; 5] = [
    "--innodb-buffer-pool-size=24M",
    "--innodb-max-dirty-pages-pct=1",
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

/// Returns how many rounds each provider is put through on each server: `EVENKEEL_ROUNDS`, or 34,
/// which are a hundred and two for each provider on the three servers.
#[must_use]
pub fn rounds() -> u32 {
    let set = std::env::var("EVENKEEL_ROUNDS").ok();
    set.map_or(34, |text| {
        text.parse().expect("EVENKEEL_ROUNDS is a number")
    })
}

/// Puts a site through rounds; `request` says how to freeze. Panics at the first image that is
/// not of one instant.
pub fn go_round(site: &Site, request: &BackupRequest, rounds: u32) {
    let copy = site.fs.join("copy");
    for round in 1..=rounds {
        // Only while it is needed: the throwaway server is to have the processors afterwards.
        let traffic = site
            .bank
            .start(&site.running().connect_options(), 4)
            .expect("traffic");
        traffic.wait_for(u64::from(7 + round * 13 % 40));
        let before = traffic.marks();
        let image = hold(request, quiet(&Cancel::new()))
            .unwrap_or_else(|e| panic!("round {round}: {}", e.chain()));
        let after = traffic.marks();
        assert_eq!(
            traffic.lost(),
            Vec::<String>::new(),
            "no client was disturbed"
        );
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
        drop(session);
        running.kill();
        fs::remove_dir_all(&copy).expect("the copy goes");
    }
    assert_at_most_the_base(site.fs.path(), "after the rounds");
}

/// Starts a throwaway server on a copy.
#[must_use]
pub fn boot(site: &Site, copy: &Path) -> Running {
    let mut launch = site.launch.clone();
    launch.datadir = copy.join("data");
    launch.extra_args.extend(FLEETING.map(str::to_owned));
    site.server.run(&launch)
}

/// Makes data directories out of an image, by clones: below `to`, by generation name.
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
        let from = File::open(&frozen).expect("a frozen file");
        let to = File::create(&target).expect("a file");
        rustix::fs::ioctl_ficlone(&to, &from)
            .unwrap_or_else(|e| panic!("failed to clone {}: {e}", frozen.display()));
    }
}
