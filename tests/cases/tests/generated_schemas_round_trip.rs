//! Does every row of a schema that chance has drawn come back, byte for byte, between each two servers?

use evenkeel_cases::SMALL;
use evenkeel_cases::dumps::{done, dump, load_into};
use evenkeel_cases::generated::Generated;
use evenkeel_cases::loads::{assert_same_rows, objects};
use evenkeel_cases::program::{Evenkeel, run};
use evenkeel_logical::objects::{Closeness, differences};
use evenkeel_server::connect::quote_name;
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::{mariadb_10_11, mysql_5_7_22, mysql_8_0_15};
use evenkeel_testkit::{Scratch, TestServer};
use std::time::{SystemTime, UNIX_EPOCH};

/// Drawn in each run; one more is drawn each time.
const SEEDS: [u64; 2] = [1, 2];

/// A server that is dumped, and one of the same version that is loaded.
struct Pair {
    server: TestServer,
    source: Running,
    target: Running,
}

impl Pair {
    fn start(server: TestServer, scratch: &Scratch) -> Self {
        let start =
            |role: &str| server.start(&scratch.join(format!("{role}-{}", server.id)), &SMALL);
        let (source, target) = (start("source"), start("target"));
        Self {
            server,
            source,
            target,
        }
    }
}

fn program() -> Evenkeel {
    Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"))
}

#[test]
fn between_all_servers() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let scratch = Scratch::new();
    let pairs =
        [mariadb_10_11(), mysql_8_0_15(), mysql_5_7_22()].map(|one| Pair::start(one, &scratch));
    for seed in SEEDS.into_iter().chain([now.as_secs()]) {
        eprintln!("seed {seed}");
        let drawn = Generated::draw(seed);
        for from in &pairs {
            let mut session = from.source.session().unwrap();
            drawn.make(&mut session);
            let dir = scratch.join(format!("{seed}-{}", from.server.id));
            let flags = ["--chunk-size=64K", "--threads=2"];
            done(run(dump(&program(), &from.source, &dir, &flags)));
            for to in &pairs {
                let name = format!("seed {seed}, {} to {}", from.server.name, to.server.name);
                // Of others, --verify would tell that MariaDB has no negative zero.
                let verify = ["--verify"];
                let flags = &verify[..usize::from(from.server.id == to.server.id)];
                let ended = run(load_into(&program(), &to.target, &dir, flags));
                assert_eq!(
                    ended.code,
                    Some(0),
                    "{name}: {} {}",
                    ended.message(),
                    ended.answer
                );
                let mut other = to.target.session().unwrap();
                let tables = assert_same_rows((&mut session, &mut other), &drawn.schema, &name);
                assert!(tables > 5, "{name}: {tables} tables");
                if from.server.id == to.server.id {
                    let found = differences(
                        &objects(&from.source),
                        &objects(&to.target),
                        Closeness::Same,
                    );
                    assert!(found.is_empty(), "{name}: {}", found.join("\n\n"));
                }
                let schema = quote_name(&drawn.schema);
                other.run(&format!("DROP DATABASE {schema}")).unwrap();
            }
            session
                .run(&format!("DROP DATABASE {}", quote_name(&drawn.schema)))
                .unwrap();
        }
    }
}
