//! Does HAProxy send nobody to a server that evenkeel says is down, where its own checks send clients there?

mod proxied;

use evenkeel_server::connect::Session;
use evenkeel_testkit::until;
use proxied::{Asks, OURS, Pool};
use rustix::process::Signal;

/// No check of HAProxy's own logs in as a client with rights, and none asks what the server is.
const THEIRS: [&str; 2] = ["by_port", "by_login"];

#[test]
fn a_server_that_freezes_has_no_connection_left_or_is_killed() {
    let mut pool = Pool::start();
    pool.members[0].send(Signal::STOP);
    pool.nobody_goes_to_the_first();
    // The port is open: to look at it shows nothing.
    pool.wait("by_login", 1, false);
    assert!(pool.is_used("by_port", 1));
    pool.members[0].send(Signal::CONT);
    pool.both_are_used();

    let mut taken: Vec<Session> = Vec::new();
    pool.nobody_goes_to_the_first_once(|member| {
        // Others leave meanwhile.
        while let Ok(session) = member.session("app") {
            taken.push(session);
        }
    });
    until("the login of HAProxy's check is refused", || {
        while let Ok(session) = pool.members[0].session("app") {
            taken.push(session);
        }
        !pool.is_used("by_login", 1)
    });
    assert!(pool.is_used("by_port", 1));
    drop(taken);
    pool.both_are_used();

    pool.members[0].kill_server();
    pool.nobody_goes_to_the_first();
    for backend in THEIRS {
        pool.wait(backend, 1, false);
    }
    pool.end();
}

#[test]
fn a_server_that_has_the_wrong_role_is_stuck_or_drained() {
    let mut pool = Pool::start();
    pool.members[0].sql("SET GLOBAL read_only = ON");
    pool.nobody_goes_to_the_first();
    for backend in THEIRS {
        pool.still_used_after_checks(backend, 1);
    }
    pool.members[0].sql("SET GLOBAL read_only = OFF");
    pool.both_are_used();

    // A table that clients need, and that answers nobody.
    let mut lock = pool.members[0].session("root").unwrap();
    lock.run("LOCK TABLES shop.orders WRITE").unwrap();
    pool.nobody_goes_to_the_first();
    for backend in THEIRS {
        pool.still_used_after_checks(backend, 1);
    }
    drop(lock);
    pool.both_are_used();

    let mut connected = pool.connect_to_the_first();
    pool.members[0].order("drain");
    pool.nobody_goes_to_the_first();
    // Who is there stays there.
    let number = connected.value("SELECT @@server_id").unwrap();
    assert_eq!(number.as_deref(), Some("1"));
    pool.members[0].order("undrain");
    pool.both_are_used();

    // Of a prober that is gone, HAProxy keeps the agent's last word; over HTTP it counts as down.
    pool.members[0].kill_prober();
    pool.wait(OURS[Asks::Http as usize], 1, false);
    pool.still_used_after_checks(OURS[Asks::Agent as usize], 1);
    pool.members[0].probe();
    pool.both_are_used();
    pool.end();
}
