//! Is what is loaded what was dumped, between each two servers, cell by cell as a client reads it; and is all
//! told that the other server does not hold?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into};
use evenkeel_cases::exact::{Drawn, LIMITS, Only, Reading};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_server::connect::quote_name;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort;
use evenkeel_testkit::servers::{
    mariadb_10_11, mariadb_11_4, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9,
};
use evenkeel_testkit::{Scratch, TestServer};
use std::collections::BTreeMap;

/// Pairs of servers.
const PAIRS: u32 = 36;
/// How often `make soak` goes through all pairs.
const TURNS: u32 = 3;

/// The seed of the sample: a run of other tests is not to fail by what chance finds here. `make soak` draws others.
const SAMPLE: u64 = 443_393;

/// A server that runs.
struct Site {
    server: TestServer,
    running: Running,
}

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

/// Starts those that take part; returns them by their places.
fn sites(scratch: &Scratch, takes_part: impl Fn(usize) -> bool) -> BTreeMap<usize, Site> {
    let servers = [
        mariadb_10_11(),
        mysql_5_7_22(),
        mariadb_11_8(),
        mysql_8_0_15(),
        mariadb_11_4(),
        mysql_9(),
    ];
    let start = |server: TestServer| {
        let mut args = SMALL.to_vec();
        if server.id == mysql_9().id {
            args.retain(|arg| !arg.starts_with("--innodb-log-file-size"));
        }
        Site {
            running: server.start(&scratch.join(server.id), &args),
            server,
        }
    };
    // Two at a time: there may be as many processors.
    let mut sites = BTreeMap::new();
    let mut left = (0..).zip(servers).filter(|(nth, _)| takes_part(*nth));
    while let Some(first) = left.next() {
        let second = left.next();
        std::thread::scope(|scope| {
            let starting = [Some(first), second]
                .into_iter()
                .flatten()
                .map(|(nth, server)| (nth, scope.spawn(|| start(server))));
            for (nth, one) in starting.collect::<Vec<_>>() {
                sites.insert(nth, one.join().expect("a server"));
            }
        });
    }
    sites
}

/// Returns the pairs of a round, by their places: one that none of a whole turn's others is.
fn pair(round: u32, seed: u64) -> (usize, usize) {
    let round = round as usize;
    let apart = (round / 6 + seed as usize) % 6;
    (round % 6, (round + apart) % 6)
}

fn drop_schema(running: &Running, schema: &str) {
    let mut session = running.session().expect("a session");
    let drop = format!("DROP DATABASE IF EXISTS {}", quote_name(schema));
    session
        .run(&drop)
        .unwrap_or_else(|e| panic!("{}", e.chain()));
}

/// Sends a schema that chance draws from one server to another in each format, and returns what came out
/// otherwise.
fn round_trip(seed: u64, from: &Site, to: &Site, scratch: &Scratch) -> Vec<String> {
    let mut here = from.running.session().expect("a session");
    let mut there = to.running.session().expect("a session");
    let drawn = Drawn::draw(seed, (&from.server, &mut here), (&to.server, &mut there));
    drawn.make(&mut here);
    let before = Reading::of(&from.running, &drawn.schema);
    let (tables, rows) = before.size();
    assert!(tables > 25 && rows > 300, "{tables} tables, {rows} rows");
    let formats = ["tab", "sql"];
    let dir = |format: &str| {
        scratch.join(format!(
            "{seed}-{}-{}-{format}",
            from.server.id, to.server.id
        ))
    };
    for format in formats {
        let flags = ["--format", format, "--threads=2", "--chunk-size=64K"];
        done(run(dump(&program(), &from.running, &dir(format), &flags)));
    }
    drop_schema(&from.running, &drawn.schema);
    let mut found = Vec::new();
    for format in formats {
        let ended = run(load_into(
            &program(),
            &to.running,
            &dir(format),
            &["--verify"],
        ));
        let name = format!(
            "{} to {}, {format}, seed {seed}",
            from.server.name, to.server.name
        );
        if ended.code == Some(0) {
            let after = Reading::of(&to.running, &drawn.schema);
            let differences = before.differences(&after);
            found.extend(differences.into_iter().map(|one| format!("{name}: {one}")));
        } else {
            found.push(format!("{name}: {} {}", ended.message(), ended.answer));
        }
        drop_schema(&to.running, &drawn.schema);
        drop_schema(&to.running, "evenkeel_load");
        let _ = std::fs::remove_dir_all(dir(format));
    }
    found
}

#[test]
fn cell_by_cell_between_each_two_servers() {
    let scratch = Scratch::new();
    let is_chosen = effort::is_full() || std::env::var_os("EVENKEEL_SEED").is_some();
    let (seed, first) = match is_chosen {
        true => (effort::seed(), 0),
        // The two halves of a turn, one after the other.
        false => (SAMPLE, effort::seed() as u32 % 2 * 3),
    };
    let rounds = first..first + effort::rounds("pairs of servers", 3, PAIRS * TURNS);
    let pairs: Vec<(usize, usize)> = rounds.clone().map(|round| pair(round, seed)).collect();
    let takes_part = |nth| pairs.iter().any(|&(from, to)| from == nth || to == nth);
    let sites = sites(&scratch, takes_part);
    let mut found = Vec::new();
    for (round, (from, to)) in rounds.zip(&pairs) {
        let (from, to) = (&sites[from], &sites[to]);
        let own = seed + u64::from(round);
        println!(
            "round {round}: {} to {}, seed {own}",
            from.server.name, to.server.name
        );
        found.extend(round_trip(own, from, to, &scratch));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// One of them in each run, all of them in full.
fn turn(sites: Vec<&Site>, nth: usize) -> Vec<&Site> {
    match effort::is_full() || sites.is_empty() {
        true => sites,
        false => vec![sites[nth % sites.len()]],
    }
}

/// What one server has and another has not: it is refused, or the answer names it.
#[test]
fn what_does_not_travel_is_reported() {
    let scratch = Scratch::new();
    let sites = sites(&scratch, |_| true);
    let seed = effort::seed() as usize;
    let mut silent = Vec::new();
    // Zero is zero, whatever its sign.
    let reported = LIMITS.iter().filter(|one| one.what != Only::NegativeZero);
    for (nth, limit) in reported.enumerate() {
        let holders: Vec<&Site> = sites
            .values()
            .filter(|one| limit.is_held_by(&one.server))
            .collect();
        let count = holders.len();
        assert!(count > 0, "{:?}: nobody has it", limit.what);
        for from in turn(holders, nth + seed) {
            let drawn = Drawn::only(limit.what, &from.server);
            drawn.make(&mut from.running.session().expect("a session"));
            let before = Reading::of(&from.running, &drawn.schema);
            let dir = scratch.join(format!("{:?}-{}", limit.what, from.server.id));
            done(run(dump(&program(), &from.running, &dir, &[])));
            drop_schema(&from.running, &drawn.schema);
            let others = sites
                .values()
                .filter(|to| !limit.travels(&from.server, &to.server));
            // Each holder meets each of the others.
            for to in turn(others.collect(), nth + seed / count) {
                let ended = run(load_into(&program(), &to.running, &dir, &[]));
                let table = before.first_table();
                let named = ended.message().contains(table)
                    || ended.answer["lost"].to_string().contains(table);
                if !named {
                    let text = format!(
                        "{:?} from {} to {} ({}): exit code {:?}, {}",
                        limit.what,
                        from.server.name,
                        to.server.name,
                        limit.why,
                        ended.code,
                        ended.message()
                    );
                    let kept =
                        ended.code == Some(0) && Reading::of(&to.running, &drawn.schema) == before;
                    silent.push(format!(
                        "{text}{}",
                        if kept { ": it does travel" } else { "" }
                    ));
                }
                drop_schema(&to.running, &drawn.schema);
                drop_schema(&to.running, "evenkeel_load");
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}
