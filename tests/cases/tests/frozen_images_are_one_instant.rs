//! Does a server recover from every image that a provider freezes under load, and is the image one
//! of a single instant?

use evenkeel_backup::backup::SnapshotChoice;
use evenkeel_cases::Site;
use evenkeel_cases::rounds::{RESTLESS, clone_only_while_stopped, go_round};
use evenkeel_testkit::effort::{draw, rounds};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{LoopFs, TestServer};

const GIB: u64 = 1 << 30;
/// Rounds of each provider in full, shared out over the servers.
const ALL: u32 = 200;

#[derive(Clone, Copy)]
enum Way {
    /// Clones with the checkpoint's splice.
    Splice,
    /// Clones while the server's process is stopped.
    Pause,
    Btrfs,
    Hook,
}

/// Every provider's rounds are shared out over the servers that it works with; those that start faster
/// take more of them.
fn case(server: TestServer, fs: LoopFs, way: Way, sample: u32, (part, of): (u32, u32)) {
    let rounds = rounds("frozen images", sample, (ALL * part).div_ceil(of));
    let scenario = fail::FailScenario::setup();
    let site = Site::start(server, fs, 10_000, &RESTLESS);
    let top = site.fs.path().display();
    let snapshot = match way {
        Way::Splice | Way::Pause => SnapshotChoice::Reflink,
        Way::Btrfs => SnapshotChoice::Btrfs,
        Way::Hook => SnapshotChoice::Hook {
            command: format!(
                "btrfs -q subvolume snapshot -r {top} {top}/taken && echo {top}/taken/data"
            ),
            release: Some(format!("btrfs -q subvolume delete {top}/taken")),
        },
    };
    let mut request = site.request(snapshot);
    request.stop_server = matches!(way, Way::Pause);
    if request.stop_server {
        clone_only_while_stopped(&site);
    }
    go_round(&site, &request, rounds);
    scenario.teardown();
}

/// Whether it is this case's turn among those that freeze in the same way: a sample takes one of them.
fn is_turn(way: &str, cases: &[&str], case: &str) -> bool {
    let drawn = draw(way, cases, 1);
    println!("{case}: of {drawn:?}");
    drawn.contains(&case)
}

macro_rules! cases {
    ($($cases:ident by $way:ident {
        $($name:ident: $server:ident on $fs:ident, $sample:literal or $part:literal of $all:literal;)*
    })*) => {
        $(
            const $cases: &[&str] = &[$(stringify!($name)),*];
            $(#[test]
            fn $name() {
                let way = concat!("images by ", stringify!($way));
                if is_turn(way, $cases, stringify!($name)) {
                    case($server(), LoopFs::$fs(4 * GIB), Way::$way, $sample, ($part, $all));
                }
            })*
        )*
    };
}

cases! {
    SPLICES by Splice {
        mariadb_splice: mariadb_10_11 on xfs, 5 or 3 of 4;
        mysql8_splice: mysql_8_0_15 on xfs, 3 or 1 of 4;
        mariadb_11_8_splice: mariadb_11_8 on xfs, 2 or 1 of 12;
    }
    PAUSES by Pause {
        mysql57_pause: mysql_5_7_22 on xfs, 2 or 1 of 3;
        mariadb_pause: mariadb_10_11 on xfs, 2 or 1 of 3;
        mysql8_pause: mysql_8_0_15 on xfs, 2 or 1 of 3;
    }
    SNAPSHOTS by Btrfs {
        mysql8_btrfs: mysql_8_0_15 on btrfs, 2 or 1 of 3;
        mysql57_btrfs: mysql_5_7_22 on btrfs, 2 or 1 of 3;
        mariadb_btrfs: mariadb_10_11 on btrfs, 2 or 1 of 3;
    }
    HOOKS by Hook {
        mariadb_hook: mariadb_10_11 on btrfs, 2 or 1 of 3;
        mysql57_hook: mysql_5_7_22 on btrfs, 2 or 1 of 3;
        mysql8_hook: mysql_8_0_15 on btrfs, 2 or 1 of 3;
    }
}
