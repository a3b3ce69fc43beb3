//! Are tables of engines other than InnoDB, and the server's own, intact and point-in-time consistent in
//! every image that a provider freezes under load?

use evenkeel_backup::backup::SnapshotChoice;
use evenkeel_cases::Site;
use evenkeel_cases::engines::{ALL, RESTLESS, go_round, write_to_aria_while_it_is_cloned};
use evenkeel_testkit::effort::{draw, rounds};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer};

const GIB: u64 = 1 << 30;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Clones with the checkpoint's splice.
    Splice,
    /// The same where no table of a user is Aria's, so that no process is paused.
    SpliceWithoutAria,
    /// Clones while the server's process is stopped.
    Pause,
    Btrfs,
    Hook,
}

fn case(server: TestServer, fs: LoopFs, way: Way, sample: u32, (part, of): (u32, u32)) {
    let rounds = rounds("other engines", sample, (ALL * part).div_ceil(of));
    let aria = way != Way::SpliceWithoutAria;
    let scenario = fail::FailScenario::setup();
    let site = Site::start(server, fs, 100, &RESTLESS);
    let top = site.fs.path().display();
    let snapshot = match way {
        Way::Splice | Way::SpliceWithoutAria | Way::Pause => SnapshotChoice::Reflink,
        Way::Btrfs => SnapshotChoice::Btrfs,
        Way::Hook => SnapshotChoice::Hook {
            command: format!(
                "btrfs -q subvolume snapshot -r {top} {top}/taken && echo {top}/taken/data"
            ),
            release: Some(format!("btrfs -q subvolume delete {top}/taken")),
        },
    };
    let mut request = site.request(snapshot);
    request.stop_server = way == Way::Pause;
    if site.server.id.starts_with("mariadb") {
        write_to_aria_while_it_is_cloned(&site, aria);
    }
    go_round(&site, &request, &site.fs.join("copy"), rounds, aria);
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
                let way = concat!("other engines by ", stringify!($way));
                if is_turn(way, $cases, stringify!($name)) {
                    case($server(), LoopFs::$fs(4 * GIB), Way::$way, $sample, ($part, $all));
                }
            })*
        )*
    };
}

cases! {
    SPLICES by Splice {
        mariadb_splice: mariadb_10_11 on xfs, 3 or 2 of 4;
        mysql8_splice: mysql_8_0_15 on xfs, 1 or 1 of 8;
        mariadb_11_8_splice: mariadb_11_8 on xfs, 1 or 1 of 8;
    }
    SPLICES_WITHOUT_ARIA by SpliceWithoutAria {
        mariadb_splice_without_aria: mariadb_10_11 on xfs, 2 or 1 of 4;
    }
    PAUSES by Pause {
        mysql57_pause: mysql_5_7_22 on xfs, 1 or 1 of 5;
        mariadb_pause: mariadb_10_11 on xfs, 1 or 2 of 5;
        mysql9_pause: mysql_9 on xfs, 1 or 1 of 5;
        mysql8_pause: mysql_8_0_15 on xfs, 1 or 1 of 5;
    }
    SNAPSHOTS by Btrfs {
        mysql8_btrfs: mysql_8_0_15 on btrfs, 1 or 1 of 3;
        mysql57_btrfs: mysql_5_7_22 on btrfs, 1 or 1 of 3;
        mariadb_btrfs: mariadb_10_11 on btrfs, 1 or 1 of 3;
    }
    HOOKS by Hook {
        mariadb_hook: mariadb_10_11 on btrfs, 1 or 2 of 3;
        mysql57_hook: mysql_5_7_22 on btrfs, 1 or 1 of 3;
    }
}
