//! Who kills clients at random.

use super::shared::Soak;
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::traffic::Random;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

pub(super) fn kill(soak: &Soak, options: &ConnectOptions, mut random: Random) {
    let Ok(mut session) = Session::open(options) else {
        return;
    };
    while soak.continues() {
        sleep(Duration::from_millis(u64::from(10 + random.below(60))));
        let connections = soak.connections.lock().expect("no client panics").clone();
        let nth = random.below(connections.len().max(1) as u32) as usize;
        let Some(id) = connections.values().nth(nth) else {
            continue;
        };
        let what = ["QUERY", "QUERY", "CONNECTION"][random.below(3) as usize];
        soak.counts.kills.fetch_add(1, Ordering::Relaxed);
        let sql = format!("KILL {what} {id}");
        if let Err(why) = session.run(&sql) {
            // Its client may have another by now.
            if !why.chain().contains("ERROR 1094 (") {
                soak.allow(&sql, &why);
            }
        }
    }
}
