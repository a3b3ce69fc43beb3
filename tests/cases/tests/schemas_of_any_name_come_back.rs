//! Do schemas and tables come back that are called like files which servers, or evenkeel, treat specially?

use evenkeel_backup::backup::SnapshotChoice;
use evenkeel_cases::{Site, back_up};
use evenkeel_server::connect::Session;
use evenkeel_server::files::special_names;
use evenkeel_testkit::effort::{Part, draw, share};
use evenkeel_testkit::servers::{mariadb_10_11, mariadb_11_8, mysql_5_7_22, mysql_8_0_15, mysql_9};
use evenkeel_testkit::{LoopFs, TestServer};
use std::path::Path;

/// Names that other rules know than those about files: our own, the servers' and InnoDB's for what comes and goes.
const OTHERS: [&str; 21] = [
    "ndbinfo",
    "#queue",
    ".evenkeel-baselines",
    ".evenkeel-baselines-0123456789abcdef",
    ".evenkeel-rollback",
    "evenkeel-relay",
    "evenkeel-relay.000001",
    "relay-log-east.info",
    "worker-relay-log.info.1",
    "binlog",
    "binlog.000001",
    "binlog.state",
    "binlog.index",
    "FTS_news",
    "fts_news_config",
    "#sql",
    "#sql-ib12",
    "t#P#p0#TMP#",
    "aria_log",
    "ib_logfile_imports",
    "x.sock",
];

/// What files and directories are called that a rule knows: each whole name and each beginning by itself, each
/// end behind something; and, as the second list, both with a number or with another's end.
fn names() -> (Vec<String>, Vec<String>) {
    let special = special_names();
    let stems = special.stems.iter().chain(&special.prefixes).chain(&OTHERS);
    let stems: Vec<&str> = stems.copied().collect();
    let ends = special.suffixes.iter();
    let mut plain: Vec<String> = ends.map(|end| format!("x{end}")).collect();
    plain.extend(stems.iter().map(|stem| (*stem).to_owned()));
    let mut more = Vec::new();
    for (stem, end) in stems.iter().zip(special.suffixes.iter().cycle()) {
        more.push(format!("{stem}1"));
        more.push(format!("{stem}{end}"));
    }
    plain.sort();
    plain.dedup();
    more.sort();
    more.dedup();
    more.retain(|name| !plain.contains(name));
    (plain, more)
}

fn tables(session: &mut Session) -> Vec<String> {
    let rows = session
        .rows(
            "SELECT CONCAT(table_schema, ' / ', table_name) FROM information_schema.tables \
             WHERE table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') \
             ORDER BY 1",
        )
        .unwrap();
    rows.iter()
        .map(|row| row.at(0).unwrap().to_owned())
        .collect()
}

/// Makes a schema, unless the server does not allow its name.
fn make_schema(session: &mut Session, schema: &str) -> bool {
    match session.run(&format!("CREATE DATABASE `{schema}`")) {
        Ok(()) => true,
        Err(why) if why.chain().contains("Incorrect database name") => false,
        Err(why) => panic!("{schema}: {}", why.chain()),
    }
}

/// Whether a server does not start any more with a schema of this name: it looks for its redo log by numbers.
fn keeps_from_starting(name: &str, datadir: &Path) -> bool {
    let is_numbered = name.strip_prefix("ib_logfile").is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    is_numbered && !datadir.join("#innodb_redo").exists()
}

/// Makes a table of each name in a schema of the same name; in another one where the server has a file of that
/// name already, or does not allow it. Returns which it made. Engines take turns: their files end otherwise.
fn make(session: &mut Session, datadir: &Path, names: &[String]) -> Vec<(String, String)> {
    let mut made = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let is_free = !datadir.join(name).exists() && !keeps_from_starting(name, datadir);
        let own = is_free && make_schema(session, name);
        let schema = if own { name } else { "named" };
        let engine = if at % 4 == 3 { "MyISAM" } else { "InnoDB" };
        let place = format!("`{schema}`.`{name}`");
        for sql in [
            format!("CREATE TABLE {place} (what VARCHAR(140) PRIMARY KEY) ENGINE={engine}"),
            format!("INSERT INTO {place} VALUES ('{schema}/{name}')"),
        ] {
            let done = session.run(&sql);
            done.unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
        }
        made.push((schema.to_owned(), name.clone()));
    }
    made
}

fn case(server: TestServer, part: Part) {
    let mut site = Site::start(server, LoopFs::xfs(4 << 30), 50, &[]);
    let mut session = site.running().session().unwrap();
    session.run("CREATE DATABASE named").unwrap();
    let (mut all, more) = names();
    all.extend(share("names", &more, part));
    let made = make(&mut session, &site.launch.datadir, &all);
    for name in ["core", "ndbinfo", ".evenkeel-baselines"] {
        let pair = (name.to_owned(), name.to_owned());
        assert!(made.contains(&pair), "{made:?}");
    }
    let expected = tables(&mut session);
    let done = back_up(&site.request(SnapshotChoice::Reflink));
    let done = done.unwrap_or_else(|why| panic!("{}", why.chain()));
    drop(session);
    site.kill();
    let restored = site.restore(Some(done.report.generation), "restored");
    let mut launch = site.launch.clone();
    launch.datadir = restored.expect("a restore").target;
    let running = site.server.run(&launch);
    let mut session = running.session().unwrap();
    assert_eq!(tables(&mut session), expected, "{}", site.server.name);
    // Each table holds its name, and so tells whether it is the right one.
    for (schema, table) in &made {
        let sql = format!("SELECT what FROM `{schema}`.`{table}`");
        let found = session.value(&sql);
        let found = found.unwrap_or_else(|why| panic!("{sql}: {}", why.chain()));
        assert_eq!(found, Some(format!("{schema}/{table}")), "{sql}");
    }
}

/// How many servers a sample has: they share the names with numbers and ends.
const SOME: usize = 2;

#[test]
fn on_each_server() {
    let servers = [
        mariadb_10_11(),
        mysql_8_0_15(),
        mariadb_11_8(),
        mysql_5_7_22(),
        mysql_9(),
    ];
    let servers = draw("servers with odd names", &servers, SOME);
    for (nth, server) in servers.into_iter().enumerate() {
        case(server, Part::new(nth % SOME, SOME));
    }
}
