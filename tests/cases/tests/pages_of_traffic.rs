//! Do the commands of the pages about statements of clients work as they stand there, and print what is shown?

use evenkeel_cases::house::House;
use evenkeel_cases::pages::Page;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// Succeeds when a capture on an interface listens, and a statement went by.
const KEPT: &str =
    "[ $(wc -l </proc/net/packet) -gt 1 ] && mariadb -h db2 -e 'SELECT 1' && sleep 0.3";

const REMEMBERING: &str = "--performance-schema=ON --performance-schema-consumer-events-statements-current=ON \
    --performance-schema-consumer-events-statements-history=ON \
    --performance-schema-consumer-events-statements-history-long=ON";

/// The server `db2` logs each statement.
fn log_slow(house: &House) {
    house.run("ln -s /var/lib/db2/slow.log slow.log");
    house.sql_of(
        "db2",
        "SET GLOBAL slow_query_log_file = 'slow.log', long_query_time = 0, slow_query_log = ON",
    );
    house.run("mariadb -h db2 -e 'SELECT COUNT(*) FROM shop.orders'");
}

fn through_taps(house: &House, page: &mut Page<'_>) {
    house.run("mariadb -e 'CREATE USER app@localhost'");
    page.briefly(
        "--tap :3307",
        "mariadb -h 127.0.0.1 -P 3307 -u app --skip-ssl -e 'SELECT 1'",
    );
    page.briefly(
        "--tap ./tap.sock",
        "mariadb -S ./tap.sock -u app -e 'SELECT 1'",
    );
    page.briefly(
        "--tap 0.0.0.0",
        "mariadb -h 127.0.0.1 -P 3307 --ssl -e 'SELECT 1'",
    );
    page.code("--tap", 143);
    page.before(
        "--tap 0.0.0.0",
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=tap -keyout tap-key.pem -out tap.pem",
    );
    page.run("evenkeel capture --tap :3307");
    page.run("evenkeel capture --tap 0.0.0.0");
}

#[test]
fn capture() {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    house.start_another("db2", 8, REMEMBERING);
    house.sql_of("db2", "CREATE USER root@db1; GRANT ALL ON *.* TO root@db1");
    house.sql_of(
        "db2",
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT)",
    );
    let mut page = Page::open(&house, "tasks/capture.md");
    let seen = |file: &str| {
        format!(
            "mariadb -h db2 -e 'SELECT COUNT(*) FROM shop.orders' && grep -aq 'FROM shop.orders' {file}"
        )
    };
    page.briefly(
        "--interface any",
        "[ $(wc -l </proc/net/packet) -gt 1 ] && mariadb -h db2 -e 'SELECT 1'",
    );
    page.code("--interface any", 143);
    page.say("--for 10s", "--for 200ms");
    page.run("evenkeel capture --interface any");
    // Until somebody ends it; here after some packets of a busy client.
    page.say("-U -w -", "-U -c 40 -w -");
    page.before(
        "evenkeel capture --pcap -$",
        // They begin when tcpdump listens: it lacks no packet of their first connection.
        "(until [ $(wc -l </proc/net/packet) -gt 1 ]; do sleep 0.05; done; sleep 0.2
          until [ -e enough ]; do mariadb -h db2 -e 'SELECT COUNT(*) FROM shop.orders'; done
          touch ended) >/dev/null 2>&1 &",
    );
    page.run("tcpdump -i any -s 0 -U");
    // The next capture sees no connection that began before it.
    house.run("touch enough; until [ -e ended ]; do sleep 0.05; done");
    assert!(page.printed().contains("SELECT COUNT(*) FROM shop.orders"));
    page.briefly("-w shop.pcap", &seen("shop.pcap"));
    page.code("-w shop.pcap", 0);
    page.run("tcpdump -i any -s 0 -w shop.pcap");
    let found = house.run("grep -c 'FROM shop.orders' shop.log");
    assert_ne!(found.trim(), "0");
    // Until somebody ends it: here when a statement went by that is not kept yet.
    page.briefly("--directory shop.capture", KEPT);
    page.code("--directory shop.capture", 143);
    page.run("evenkeel capture --interface any --directory");
    through_taps(&house, &mut page);
    page.run("evenkeel capture --uprobes");
    log_slow(&house);
    page.briefly("--follow", "mariadb -h db2 -e 'SELECT 1' && sleep 0.3");
    page.code("--follow", 143);
    page.before("slow.log.1.gz", "gzip -c slow.log > slow.log.1.gz");
    page.run("evenkeel capture --log slow.log");
    page.say("--for 1m", "--for 2s");
    page.run("evenkeel capture --server db2");
    page.end();
}

#[test]
fn query() {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    house.start_another("db2", 8, "");
    house.sql_of("db2", "CREATE USER root@db1");
    let mut page = Page::open(&house, "tasks/query.md");
    page.briefly("--directory shop.capture", KEPT);
    page.code("--directory shop.capture", 143);
    page.run("evenkeel capture --interface any --directory");
    let elsewhere = "tests/cases/tests/directories_are_as_good_as_packets.rs";
    page.pass("import duckdb", elsewhere, "read_parquet(");
    page.pass(
        "from pyspark.sql",
        elsewhere,
        "createOrReplaceTempView('statements')",
    );
    page.pass(
        "-- The digest of captures",
        elsewhere,
        "the_page_shows_what_is_shipped",
    );
    page.end();
}

#[test]
fn right_now() {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    for (name, id) in [("db2", 8), ("db3", 9)] {
        house.start_another(name, id, "");
        house.sql_of(name, "CREATE USER root@db1; GRANT ALL ON *.* TO root@db1");
    }
    let list = ["db2", "db3"].map(|name| format!("[[server]]\nname = '{name}'\nhost = '{name}'\n"));
    house.write("fleet.toml", &list.concat(), "600");
    let mut page = Page::open(&house, "tasks/right-now.md");
    page.briefly("evenkeel qps$", "sleep 2");
    page.code("evenkeel qps$", 143);
    page.say("--interval 5s --count 10", "--interval 200ms --count 2");
    page.run("evenkeel qps");
    page.run("CREATE USER monitor");
    // There is no terminal: it writes plain text until it is stopped.
    for command in ["evenkeel top$", "evenkeel top --fleet"] {
        page.briefly(command, "sleep 2");
        page.code(command, 143);
    }
    page.run("evenkeel top");
    page.briefly(
        "--interface any",
        "[ $(wc -l </proc/net/packet) -gt 1 ] && mariadb -h db2 -e 'SELECT 1'",
    );
    page.code("--interface any", 143);
    page.run("evenkeel capture --interface any");
    page.end();
}

#[test]
fn health() {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    let mut page = Page::open(&house, "tasks/health.md");
    page.run("evenkeel health check");
    page.briefly(
        "evenkeel health run",
        "curl -sf http://127.0.0.1:9200/primary",
    );
    page.code("evenkeel health run", 143);
    page.run("evenkeel health run");
    let elsewhere = "crates/cli/tests/health_answers_load_balancers.rs";
    page.pass("backend mysql", elsewhere, "down #hung: ");
    page.before("--block", "mariadb -e 'SET GLOBAL read_only = ON'");
    page.briefly("--block", "nft list table inet evenkeel_health_3306");
    page.run("evenkeel health run --block");
    page.pass(
        "[Service]",
        "crates/cli/tests/unit_files.rs",
        "CAP_NET_ADMIN",
    );
    page.pass("evenkeel health drain", elsewhere, "--maintenance");
    page.end();
}

#[test]
fn replay() {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    // As the server that is captured has it.
    house.run(
        "mariadb -e 'DROP DATABASE IF EXISTS shop; CREATE DATABASE shop;
         CREATE TABLE shop.orders (id INT PRIMARY KEY)'",
    );
    for (name, id) in [("db2", 8), ("db3", 9), ("new", 10)] {
        // The last one is on the test host.
        house.start_another(
            name,
            id,
            if name == "new" {
                "--bind-address=127.0.0.9"
            } else {
                ""
            },
        );
        house.sql_of(name, "CREATE USER root@db1; GRANT ALL ON *.* TO root@db1");
        house.sql_of(
            name,
            "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY)",
        );
    }
    let mut page = Page::open(&house, "tasks/replay.md");
    // What an application would do meanwhile, again and again until tcpdump has written some of it. It begins when
    // tcpdump listens: of a connection that it joined, it would lack the beginning.
    page.briefly(
        "-w shop.pcap",
        "[ $(wc -l </proc/net/packet) -gt 1 ] && sleep 0.5 && mariadb -h db2 shop -e 'DELETE FROM orders WHERE id < 0; SELECT COUNT(*) FROM orders' &&
         grep -aq 'FROM orders' shop.pcap",
    );
    page.code("-w shop.pcap", 0);
    page.run("tcpdump -i any -s 0 -B");
    page.code("--read-only -h db2", 3);
    page.run("replay shop.pcap --read-only");
    page.run("evenkeel baseline save before");
    for row in ["  all", "delete from", "select count", "Average of all"] {
        page.varies(row);
    }
    page.run("replay shop.pcap --allow-writes --rounds");
    assert!(house.path(House::HOME).join("ab.html").exists());
    page.run("replay shop.pcap --allow-writes -h db2");
    page.end();
}
