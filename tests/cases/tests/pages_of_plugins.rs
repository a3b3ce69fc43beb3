//! Do the commands of the pages about what servers load work as they stand there, and print what is shown?

use evenkeel_cases::house::House;
use evenkeel_cases::pages::Page;
use evenkeel_cases::program::url_library;
use evenkeel_cases::queues::engine_library;
use evenkeel_testkit::TestServer;
use evenkeel_testkit::servers::{cache, mysql_5_7_22, mysql_8_0_15, mysql_9};

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// How many links the shop has.
const LINKS: u32 = 3000;

/// Statements that make the shop's links: some of GitHub, the others of hosts of their own.
fn links() -> String {
    let words = ["torvalds", "rust-lang", "mariadb", "debian", "tor"];
    let url = |id: u32| match id % 3 {
        0 => format!(
            "https://github.com/{}/{}",
            words[(id % 5) as usize],
            id / 15
        ),
        1 => format!("https://www.shop{}.example/items?page={id}", id % 97),
        _ => format!(
            "http://blog{}.example.org/2026/{:02}/{id}.html",
            id % 53,
            id % 12
        ),
    };
    let rows = (1..=LINKS).map(|id| format!("({id}, '{}')", url(id)));
    let rows: Vec<String> = rows.collect();
    format!(
        "CREATE DATABASE IF NOT EXISTS shop;
         CREATE TABLE shop.links (id INT PRIMARY KEY, url VARCHAR(300));
         INSERT INTO shop.links VALUES {}, (0, 'https://github.com/torvalds/linux');",
        rows.join(", ")
    )
}

#[test]
fn url_column() {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    house.bring(&url_library(), "/usr/local/lib/evenkeel/libevenkeel_url.so");
    house.write("~/links.sql", &links(), "644");
    house.run("mariadb <links.sql");
    let mut page = Page::open(&house, "tasks/url-column.md");
    page.say("LIMIT 100000", "LIMIT 2000");
    page.say("--table-size 2500K", "--table-size 250K");
    page.run("# mariadb -BNe");
    page.run("# evenkeel plugin install");
    let column = page.take("ALTER TABLE");
    house.sql(&column);
    page.run("CREATE VIEW");
    assert_eq!(
        house
            .sql("SELECT COUNT(*) FROM shop.links_read JOIN shop.links USING (id, url)")
            .trim(),
        (LINKS + 1).to_string()
    );
    page.say("SELECT … WHERE", "SELECT id FROM shop.links WHERE");
    let questions = page.take("SELECT …");
    assert_answers(&house, &questions);
    start_mysqls(&house, &column);
    plans(&house, &mut page);
    page.code("plugin install url$", 14);
    page.run("# evenkeel plugin install url");
    // Files are named in the order of their hashes.
    page.varies("would remove /usr/lib/mysql/plugin/");
    page.run("# evenkeel plugin uninstall url");
    assert_eq!(page.printed().matches("would remove").count(), 2);
    by_hand(&house, &mut page);
    page.end();
}

/// Fails unless the questions of the page find what others find without codes.
fn assert_answers(house: &House, questions: &str) {
    let first = house.sql("SELECT url FROM shop.links ORDER BY BINARY url LIMIT 20");
    let torv = house
        .sql("SELECT id FROM shop.links WHERE url LIKE 'https://github.com/torv%' ORDER BY id");
    assert!(torv.lines().count() > 100, "{torv}");
    let answers = house.sql(questions);
    let answers: Vec<&str> = answers.lines().collect();
    let (linux, others) = answers.split_first().expect("an answer");
    assert_eq!(*linux, "0");
    let (ids, urls) = others.split_at(others.len() - 20);
    let mut ids = ids.to_vec();
    ids.sort_by_key(|id| id.parse::<u32>().expect("an id"));
    assert_eq!(ids, torv.lines().collect::<Vec<_>>());
    assert_eq!(urls, first.lines().collect::<Vec<_>>());
}

/// Servers besides, with their names in the house.
fn mysqls() -> [(&'static str, TestServer); 2] {
    [("old", mysql_5_7_22()), ("new", mysql_8_0_15())]
}

/// Starts each MySQL with the functions, the links and the column.
fn start_mysqls(house: &House, column: &str) {
    house.write("~/column.sql", column, "644");
    for (name, server) in mysqls() {
        let _ = server.prepare(&house.path(&format!("/var/lib/{name}")), &[]);
        let program = server.binary.path.display();
        house.run(&format!(
            "mkdir /srv/{name} && chown -R mysql:mysql /var/lib/{name}"
        ));
        house.start(
            name,
            &format!(
                "{program} --no-defaults --datadir=/var/lib/{name} --socket=/run/mysqld/{name}.sock --user=mysql \
                 --skip-networking --plugin-dir=/srv/{name} --pid-file=/run/mysqld/{name}.pid"
            ),
        );
    }
    for (name, _) in mysqls() {
        let client = format!("mariadb -S /run/mysqld/{name}.sock");
        house.until(&format!("{client} -e 'SELECT 1'"));
        house.run(&format!(
            "{client} <links.sql && \
             evenkeel plugin install url --table shop.urltable --no-defaults -u root -S /run/mysqld/{name}.sock && \
             {client} <column.sql && {client} -e 'ANALYZE TABLE shop.links'"
        ));
    }
}

/// Prints what the page shows of the servers' plans, and fails where the MySQLs have different ones.
const PLANS: &str = r#"
of() { mariadb $1 -t -e "EXPLAIN SELECT id FROM shop.links WHERE $2" | grep '^|'; }
shape() { tr -d ' 0-9'; }
both() {
    for condition in "$@"; do
        for server in old new; do
            found=$(of "-S /run/mysqld/$server.sock" "$condition")
            [ "$(shape <<<"${first=$found}")" = "$(shape <<<"$found")" ] || { echo "$server, $condition: $found not $first"; exit 1; }
        done
    done
    echo "$found"
    unset first
}
low="url_prefix_low('https://github.com/torv')" high="url_prefix_high('https://github.com/torv')"
between="c BETWEEN $low AND $high AND c < $high" apart="c >= $low AND c < $high"
alike="c = url_compress('https://github.com/torvalds/linux')"
mariadb -e 'ANALYZE TABLE shop.links' >/dev/null
echo "MariaDB 10.11, with BETWEEN"
of "" "$between"
echo
echo "MariaDB 10.11, c >= url_prefix_low(…) AND c < url_prefix_high(…)"
of "" "$apart"
echo
echo "MySQL 8.0.15 and 5.7.22, either form"
both "$between" "$apart"
echo
echo "c = url_compress(…): MariaDB 10.11"
of "" "$alike"
echo "c = url_compress(…): MySQL 8.0.15 and 5.7.22"
both "$alike"
"#;

fn plans(house: &House, page: &mut Page<'_>) {
    house.write("~/plans", PLANS, "755");
    page.does("bash plans", 0);
    page.shows("MariaDB 10.11, with BETWEEN");
    house.run("for name in old new; do kill $(cat /run/mysqld/$name.pid); done");
}

/// Takes all out, and puts it in again as the page says for hosts where the program does not run.
fn by_hand(house: &House, page: &mut Page<'_>) {
    let url = "https://github.com/torvalds/linux";
    let before = house.sql("SELECT HEX(c) FROM shop.links WHERE id = 0");
    house.run("evenkeel plugin uninstall url --execute");
    let plugins = house.sql("SELECT @@plugin_dir");
    let plugins = plugins.trim().trim_end_matches('/');
    house.run(&format!(
        "! ls {plugins} | grep evenkeel && \
         install -m 644 /usr/local/lib/evenkeel/libevenkeel_url.so {plugins}/evenkeel_url.so && \
         install -m 644 shop.urltable {plugins}/evenkeel.urltable"
    ));
    page.run("CREATE FUNCTION");
    let after = house.sql(&format!("SELECT HEX(url_compress('{url}'))"));
    assert_eq!(after, before);
}

/// Stands in for cargo where there is none: what it would build lies there already.
const CARGO: &str = r#"#!/bin/sh
[ "$*" = "build --release --locked --package evenkeel-queue-engine" ] &&
    install -D /srv/engine.a "$CARGO_TARGET_DIR/release/libevenkeel_queue_engine.a"
"#;

/// A host with a server, and a clone of this repository in root's home as far as queues are concerned.
fn host_of_queues() -> House {
    let checkout = evenkeel_testkit::checkout().display();
    let parts = ["Makefile", "dist", "queue"];
    let parts = parts.map(|part| format!("{checkout}/{part}={}/{part}", House::HOME));
    let program = format!("{PROGRAM}=/usr/local/bin/evenkeel");
    let house = House::showing(&[&parts[..], &[program]].concat(), "db1");
    house.write("/usr/local/bin/cargo", CARGO, "755");
    house.bring(&engine_library(), "/srv/engine.a");
    // They are fetched from Debian's archives.
    let cache = cache().display().to_string();
    house.run(&format!(
        "mkdir -p .cache/evenkeel-target && ln -s {cache}/mariadb-headers .cache/evenkeel-target/ && \
         ln -s {cache}/mysql-9-headers .cache/evenkeel-target/mysql-headers"
    ));
    house.start_mariadb();
    house
}

#[test]
fn job_queue() {
    let house = host_of_queues();
    let mut page = Page::open(&house, "tasks/job-queue.md");
    let mysqld = mysql_9().binary.path;
    page.say(
        "MYSQLD=/usr/sbin/mysqld",
        &format!("MYSQLD={}", mysqld.display()),
    );
    page.run("# make queue-plugin");
    house.run(
        "install -D -t /usr/local/lib/evenkeel .cache/evenkeel-target/release/evenkeel_queue-*.so",
    );
    let settings = "[mariadb]\nplugin_maturity=experimental\n";
    house.write("/etc/mysql/mariadb.conf.d/95-queues.cnf", settings, "644");
    house.run("systemctl stop mariadb; systemctl start mariadb");
    page.run("# evenkeel plugin install queue");
    page.run("# evenkeel plugin install queue --sql");
    page.run("CREATE TABLE");
    house.sql("CREATE TABLE shop.outbox (id INT PRIMARY KEY, what VARCHAR(200)); INSERT INTO shop.outbox VALUES (4, 'mail dora')");
    page.run("SELECT id, what");
    assert_eq!(house.sql("SELECT COUNT(*) FROM shop.outbox").trim(), "0");
    works(&house, &mut page);
    is_watched(&house, &mut page);
    is_salvaged(&house, &mut page);
    let forwarded = "tests/cases/tests/queues_forward_exactly_once.rs";
    page.pass("evenkeel queue forward", forwarded, "--target-socket");
    page.code("uninstall queue$", 14);
    page.run("# evenkeel plugin uninstall queue");
    page.end();
}

/// Hands out rows, by hand and to a worker.
fn works(house: &House, page: &mut Page<'_>) {
    page.say("… the work …", "SELECT 'the work';");
    let answers = house.sql(&page.take("SELECT queue_wait"));
    assert_eq!(answers, "1\n1\tmail anna\t0\t0\nthe work\n1\n");
    page.stays("worker.py", "grep -q dora /var/log/staying-*.out");
    page.run("# queue/workers/worker.py");
    page.stop("worker.py", 0);
    house.sql("INSERT INTO shop.jobs VALUES (1, 'mail anna', 0, 0), (2, 'mail ben', 9, 0)");
    let urgent = page.take("SELECT queue_wait");
    let answers = house.sql(&format!("{urgent} SELECT what FROM shop.jobs"));
    assert_eq!(answers, "1\nmail ben\n");
    let again = page.take("INSERT INTO shop.jobs");
    house.sql(&format!("SELECT queue_wait('shop.jobs', 0); {again}"));
    let rows = house.sql("SELECT what, tries FROM shop.jobs");
    assert_eq!(rows, "mail ben\t0\nmail anna\t1\n");
}

/// Manages a queue of some thousand rows.
fn is_watched(house: &House, page: &mut Page<'_>) {
    house.sql(
        "USE shop;
         SELECT queue_wait_n('shop.jobs', 2, 0); SELECT queue_end();
         INSERT INTO shop.jobs VALUES (1, 'mail anna', 0, 0), (2, 'mail ben', 9, 0), (3, 'mail cleo', 0, 0);
         INSERT INTO shop.jobs SELECT seq, CONCAT('mail ', seq), 0, 0 FROM seq_4_to_5000",
    );
    page.run("# evenkeel queue status");
    house.run("mkdir -p /var/lib/prometheus/node-exporter");
    page.run("# evenkeel queue status");
}

/// Damages a file of the queue, and puts what is whole in its place.
fn is_salvaged(house: &House, page: &mut Page<'_>) {
    house.run("systemctl stop mariadb; mkdir /data");
    let part = house.run("ls /var/lib/mysql/#sqlqueue/*/*.part");
    let directory = part.split('/').nth(5).expect("a directory").to_owned();
    house.run(&format!(
        "printf J | dd of='{}' conv=notrunc bs=1 status=none seek=$(grep -abo 'mail 300' '{}' | head -1 | cut -d: -f1)",
        part.trim(), part.trim()
    ));
    page.code("evenkeel queue check", 4);
    page.code("evenkeel queue salvage", 3);
    page.run("# evenkeel queue check");
    page.say("5ffbe67bf858b7e9d4170bbf19cab2bd", &directory);
    page.run("# mv");
    house.run("systemctl start mariadb");
    let rows = house.sql("SELECT COUNT(*), MAX(what = 'mail 300') FROM shop.jobs");
    assert_eq!(rows.trim(), "4999\t0");
}
