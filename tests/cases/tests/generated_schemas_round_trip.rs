//! Does every row of a schema that chance has drawn come back, byte for byte, between each two servers?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into};
use evenkeel_cases::generated::Generated;
use evenkeel_cases::loads::{assert_same_rows, objects};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_logical::objects::{Closeness, differences};
use evenkeel_server::connect::quote_name;
use evenkeel_server::launch::Running;
use evenkeel_testkit::effort::draw;
use evenkeel_testkit::servers::servers;
use evenkeel_testkit::{Scratch, TestServer};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// One of them is drawn in each run, all in full; one more is drawn each time.
const SEEDS: [u64; 2] = [1, 2];

/// A server that takes part.
struct Side {
    server: TestServer,
    running: Running,
}

fn sides(servers: Vec<TestServer>, role: &str, scratch: &Scratch) -> Vec<Side> {
    let start = |server: TestServer| {
        let place = scratch.join(format!("{role}-{}", server.id));
        let running = server.start(&place, &SMALL);
        Side { server, running }
    };
    servers.into_iter().map(start).collect()
}

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

#[test]
fn between_all_servers() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let scratch = Scratch::new();
    let all = servers();
    let sources = sides(draw("servers that are dumped", &all, 1), "source", &scratch);
    let targets = sides(all, "target", &scratch);
    let seeds = draw("known schemas", &SEEDS, 1);
    for seed in seeds.into_iter().chain([now.as_secs()]) {
        eprintln!("seed {seed}");
        let drawn = Generated::draw(seed);
        for from in &sources {
            let mut session = from.running.session().unwrap();
            drawn.make(&mut session);
            let dir = scratch.join(format!("{seed}-{}", from.server.id));
            let flags = ["--chunk-size=64K", "--threads=2"];
            done(run(dump(&program(), &from.running, &dir, &flags)));
            for to in &targets {
                loads(&drawn, seed, &dir, from, to);
            }
            session
                .run(&format!("DROP DATABASE {}", quote_name(&drawn.schema)))
                .unwrap();
        }
    }
}

/// Loads what was dumped, compares, and takes it away again.
fn loads(drawn: &Generated, seed: u64, dir: &Path, from: &Side, to: &Side) {
    let name = format!("seed {seed}, {} to {}", from.server.name, to.server.name);
    let is_alike = from.server.id == to.server.id;
    // Of others, --verify would tell that MariaDB has no negative zero.
    let verify = ["--verify"];
    let flags = &verify[..usize::from(is_alike)];
    let ended = run(load_into(&program(), &to.running, dir, flags));
    assert_eq!(
        ended.code,
        Some(0),
        "{name}: {} {}",
        ended.message(),
        ended.answer
    );
    let mut session = from.running.session().unwrap();
    let mut other = to.running.session().unwrap();
    let tables = assert_same_rows((&mut session, &mut other), &drawn.schema, &name);
    assert!(tables > 5, "{name}: {tables} tables");
    if is_alike {
        let found = differences(
            &objects(&from.running),
            &objects(&to.running),
            Closeness::Same,
        );
        assert!(found.is_empty(), "{name}: {}", found.join("\n\n"));
    }
    let schema = quote_name(&drawn.schema);
    other.run(&format!("DROP DATABASE {schema}")).unwrap();
}
