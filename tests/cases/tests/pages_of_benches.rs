//! Do the commands of the pages about measurements work as they stand there, and print what is shown?

use evenkeel_cases::house::House;
use evenkeel_cases::pages::Page;
use evenkeel_testkit::servers::mysql_5_7_22;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// A host with a server.
fn host() -> House {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    house
}

/// Fails unless these files are there with something in them.
#[track_caller]
fn assert_files(house: &House, files: &[&str]) {
    for file in files {
        house.run(&format!("test -s {file}"));
    }
}

#[test]
fn tpcc() {
    let house = host();
    let mut page = Page::open(&house, "tasks/tpcc.md");
    page.say("load -w 10", "load -w 2 --tiny");
    page.say("-c 16 -r 30 -l 300", "-c 4 -r 0 -l 1");
    page.say("-c 4 -r 5 -l 20 -i 2", "-c 4 -r 1 -l 3 -i 1");
    // Of a few hundred transactions a few more or less of a kind stand when the time is over.
    page.varies("Payment: ");
    page.run("evenkeel bench tpcc load");
    assert_files(&house, &["tpcc.svg"]);
    house.run("rm tpcc.svg");
    page.run("# evenkeel bench tpcc run");
    assert_files(&house, &["tpcc.svg"]);
    page.end();
}

#[test]
fn oltp() {
    let house = host();
    let mut page = Page::open(&house, "tasks/oltp.md");
    page.say("--table-size 50000", "--table-size 1000");
    page.say("--time 60", "--time 1 --ramp-up 0");
    page.say("--time 10 --ramp-up 2", "--time 2 --ramp-up 1");
    page.run("evenkeel bench oltp load");
    assert_files(&house, &["oltp.html"]);
    house.run("rm oltp.html");
    page.run("# evenkeel bench oltp run");
    assert_files(&house, &["oltp.html"]);
    page.end();
}

/// Backs up by the server's own tool, and puts it back.
const OWN_BACKUP: &str = "#!/bin/sh\nexec mariadb-backup --no-defaults --backup -u root -S $1 --datadir=$2 --target-dir=$3\n";
const OWN_RESTORE: &str = "#!/bin/sh\nmariadb-backup --no-defaults --prepare --target-dir=$1 && \
     mariadb-backup --no-defaults --copy-back --target-dir=$1 --datadir=$2\n";

/// What measures all the ways of the page's table.
const FAIR: &str = "tests/cases/tests/showdowns_are_fair.rs";
const ALL: &str = "\"mariadb-dump-replica\",
        \"mydumper\",
        \"evenkeel-dump\",
        \"mariadb-backup\",
        \"evenkeel-reflink\",
        \"evenkeel-engine\",
";

#[test]
fn showdown() {
    let house = host();
    let tiny = "--tiny -w 1 -c 2 -r 300ms -l 1 --buffer-pool 64M --repeat 1";
    // The tables are loaded once for all of them.
    let kept = format!("{tiny} --work /srv/t");
    let mut page = Page::open(&house, "tasks/showdown.md");
    page.say(
        "showdown --quick",
        &format!("showdown --quick {kept} --only none"),
    );
    page.say(
        "-w 4 -c 8 -r 5 -l 45 --every 15",
        &format!("{kept} --every 500ms --only evenkeel-dump"),
    );
    page.say(
        "--report all.html",
        &format!("--report all.html {tiny} --filesystem-size 2G --only evenkeel-reflink"),
    );
    page.run("evenkeel bench showdown --quick");
    assert_files(&house, &["all.html"]);
    page.elsewhere("--seed 20261123", FAIR, ALL);
    page.run("evenkeel bench showdown --filesystem xfs");
    house.write("~/backup.sh", OWN_BACKUP, "755");
    house.write("~/restore.sh", OWN_RESTORE, "755");
    page.say(
        "--only evenkeel-reflink",
        &format!("{kept} --only evenkeel-reflink"),
    );
    page.run("evenkeel bench showdown --only");
    let proved = |line: &&str| line.starts_with("mine ") && line.ends_with(" sound");
    let mine = page.printed().lines().find(proved);
    assert!(mine.is_some(), "{}", page.printed());
    page.end();
}

/// Returns what five runs answered with `--json`, as far as a comparison looks at it.
fn five_runs(transactions: [f64; 5], p95_ms: [f64; 5], p99_ms: [f64; 5]) -> String {
    let runs = (0..5).map(|run| {
        let [many, p95, p99] = [transactions[run], p95_ms[run], p99_ms[run]];
        format!(
            "{{\"schema\": \"evenkeel/bench-oltp/1\", \"transactions_per_s\": {many}, \
             \"p95_ms\": {p95}, \"p99_ms\": {p99}}}\n"
        )
    });
    runs.collect()
}

#[test]
fn compare() {
    let house = host();
    house.run("evenkeel bench oltp load --table-size 1000");
    let mut page = Page::open(&house, "tasks/compare.md");
    page.say("--time 10 --repeat 5", "--time 1 --ramp-up 0 --repeat 2");
    page.run("evenkeel bench oltp run");
    // Runs on a machine at work would say now this, now that.
    let text = five_runs(
        [12_000.0, 15_000.0, 16_014.0, 21_000.0, 22_000.0],
        [0.1, 0.11, 0.114, 0.12, 0.13],
        [1.9, 2.1, 2.489, 2.6, 2.8],
    );
    let prepared = five_runs(
        [13_000.0, 16_000.0, 19_704.0, 20_000.0, 23_000.0],
        [0.09, 0.105, 0.11, 0.125, 0.13],
        [1.8, 2.0, 2.121, 2.7, 2.9],
    );
    house.write("~/text.json", &text, "644");
    house.write("~/prepared.json", &prepared, "644");
    page.run("# evenkeel bench compare");
    page.end();
}

/// A minute of a shop's slow query log, in which one for orders takes so long.
fn shop_log(day: &str, orders_ms: f64) -> String {
    let mut log = String::new();
    for second in 0..60 {
        let statements = [
            (
                orders_ms,
                format!("SELECT * FROM orders WHERE customer = {second} ORDER BY day LIMIT 10"),
            ),
            (
                2.0,
                format!("UPDATE stock SET left_over = left_over - 1 WHERE item IN ({second}, 5)"),
            ),
            (
                0.4,
                format!("SELECT name FROM customers WHERE id = {second}"),
            ),
        ];
        for (ms, sql) in statements {
            let ms = ms + f64::from(second * 7 % 13) / 10.0;
            log.push_str(&format!(
                "# Time: 2026-11-{day}T08:00:{second:02}.900000Z\n# User@Host: shop[shop] @ web1 [10.0.0.7]  Id:  7\n\
                 # Query_time: {:.6}  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 10\nuse shop;\n\
                 SET timestamp=1795853835;\n{sql};\n",
                ms / 1000.0
            ));
        }
    }
    log
}

#[test]
fn digest() {
    let house = host();
    for (name, orders_ms) in [("shop", 24.0), ("monday", 24.0), ("tuesday", 31.0)] {
        house.write(&format!("~/{name}.log"), &shop_log("28", orders_ms), "644");
    }
    let mut page = Page::open(&house, "tasks/digest.md");
    page.say("sleep 600", "mariadb -e 'SELECT 1'; sleep 0");
    page.run("mariadb -e \"SET GLOBAL slow_query_log_file");
    assert_files(&house, &["digest.html"]);
    page.run("# evenkeel digest shop.log");
    page.run("evenkeel digest monday.log");
    page.run("# evenkeel digest tuesday.log");
    house.start_another(
        "db2",
        8,
        "--performance-schema=ON --performance-schema-consumer-events-statements-current=ON \
         --performance-schema-consumer-events-statements-history-long=ON",
    );
    house.sql_of(
        "db2",
        "CREATE USER root@db1; GRANT ALL ON *.* TO root@db1; CREATE DATABASE shop",
    );
    house.sql_of(
        "db2",
        "CREATE TABLE shop.orders (customer INT, day DATE); CREATE TABLE shop.customers (id INT PRIMARY KEY, name TEXT)",
    );
    page.say("--for 10m", "--for 2s");
    page.run("evenkeel digest --server db2");
    house.run("cp shop.log slow.log");
    page.run("evenkeel digest slow.log --explain db2");
    page.end();
}

#[test]
fn yesterday() {
    let house = host();
    house.start_another("db2", 8, "");
    house.sql_of("db2", "CREATE USER root@db1; GRANT ALL ON *.* TO root@db1");
    for (name, day, orders_ms) in [("monday", "23", 24.0), ("tuesday", "24", 31.0)] {
        house.write(&format!("~/{name}.log"), &shop_log(day, orders_ms), "644");
    }
    // A day without statements would add no period.
    house.run(
        "mkdir -p /var/log/mysql /var/lib/evenkeel && \
         sed s/2026-11-24/$(date -d yesterday +%F)/ tuesday.log > /var/log/mysql/slow.log",
    );
    let mut page = Page::open(&house, "tasks/yesterday.md");
    page.run("# evenkeel digest monday.log --history");
    page.run("# evenkeel digest tuesday.log --history");
    page.run("# evenkeel digest --history shop.db --periods");
    page.run("evenkeel digest --history shop.db --period 2026-11-24");
    assert_files(&house, &["tuesday.html", "shop.db"]);
    page.run("evenkeel digest /var/log/mysql/slow.log --history /var/lib/evenkeel/shop.db --since yesterday");
    page.run(
        "evenkeel digest /var/log/mysql/slow.log --history /var/lib/evenkeel/shop.db --no-add",
    );
    page.run("evenkeel digest --history shop.db --forget 2");
    page.run("evenkeel digest monday.log --history mysql://db2/history");
    page.end();
}

#[test]
fn experiments() {
    let house = host();
    let mut page = Page::open(&house, "tasks/experiments.md");
    page.say("--rows 20000", "--rows 310 --repeat 1");
    page.say("--rows 50000", "--rows 200 --repeat 1");
    page.say(
        "--threads 4 --time 5",
        "--threads 2 --time 300ms --repeat 1",
    );
    page.say("--time 2 --repeat 3", "--time 300ms --repeat 2 --rows 500");
    page.varies("reads a second: no ");
    page.run("evenkeel bench inserts");
    assert_files(&house, &["inserts.html", "compression.html", "cache.html"]);
    page.run("# evenkeel bench compression");
    page.run("# evenkeel bench cache");
    page.end();
}

/// Leaves a MySQL 5.7 behind that was stopped once, and then killed with changes in its redo log.
fn crash_mysql(house: &House) {
    let server = mysql_5_7_22();
    let _ = server.prepare(&house.path("/srv/db"), &[]);
    house.run("chown -R mysql:mysql /srv/db");
    let start = || {
        let program = server.binary.path.display();
        house.start(
            "db",
            &format!(
                "{program} --no-defaults --datadir=/srv/db --socket=/srv/db/db.sock --user=mysql --skip-networking \
                 --pid-file=/srv/db/db.pid"
            ),
        );
        house.until("mariadb -S /srv/db/db.sock -e 'SELECT 1'");
    };
    let sql = |text: &str| house.run(&format!("mariadb -S /srv/db/db.sock -e '{text}'"));
    let stop = |signal: &str| {
        house.run(&format!(
            "cp /srv/db/db.pid /run/db.pid; kill -{signal} $(cat /run/db.pid)"
        ));
        house.until("! kill -0 $(cat /run/db.pid)");
    };
    start();
    sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, note TEXT)");
    stop("TERM");
    start();
    sql("INSERT INTO shop.orders VALUES (1, \"first\")");
    stop("KILL");
}

#[test]
fn prewarm() {
    let house = host();
    // What it shows is read in the order of the disk.
    house.make_disk_rotate();
    house.run("systemctl stop mariadb");
    crash_mysql(&house);
    let mut page = Page::open(&house, "tasks/prewarm.md");
    page.run("evenkeel prewarm");
    page.run("# evenkeel prewarm");
    house.bring_unit("evenkeel-prewarm.service");
    page.before("/etc/evenkeel/prewarm.conf", "mkdir -p /etc/evenkeel");
    page.run("systemctl enable");
    runs_before_the_server(&house);
    page.say(
        "/opt/mysql57/bin/mysqld",
        &mysql_5_7_22().binary.path.display().to_string(),
    );
    page.say("--server mariadb", "--server mariadb --tables 3 --repeat 1");
    page.say("--tables 1000", "--tables 10");
    // The kernel forgets what all on this machine have read.
    let alone = "tests/cases/tests/recoveries_are_timed.rs";
    page.elsewhere("--latency-ms 0", alone, "--latency-ms=0");
    page.run("evenkeel bench recovery");
    assert_files(&house, &["recovery.svg"]);
    page.end();
}

/// Fails unless the unit is run when the server is started, with the options of its file.
fn runs_before_the_server(house: &House) {
    for server in ["mariadb", "mysql", "mysqld"] {
        let wanted = format!("/etc/systemd/system/{server}.service.wants");
        house.run(&format!("test -L {wanted}/evenkeel-prewarm.service"));
    }
    let journal = || house.run("journalctl -u evenkeel-prewarm -o cat");
    house.run("systemctl start mariadb");
    let said = journal();
    assert!(said.contains("/var/lib/mysql: MariaDB 10.11"), "{said}");
    // Its options are those of the file, and the server starts whatever becomes of it.
    house.run("systemctl stop mariadb; echo OPTIONS=--no-such-option >/etc/evenkeel/prewarm.conf");
    house.run("systemctl start mariadb");
    let said = journal();
    assert!(said.contains("--no-such-option"), "{said}");
    house.run("systemctl stop mariadb");
}
