//! Do the commands of the pages about rows on their way (dumps, loads, imports, moves) work as they stand there, and
//! print what is shown?

use evenkeel_cases::house::House;
use evenkeel_cases::pages::Page;
use evenkeel_testkit::Seaweed;
use evenkeel_testkit::servers::mysql_5_7_22;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// Takes away what a dump is to bring back.
const DROP: &str = "mariadb -e 'DROP DATABASE shop'";

/// A host with a server.
fn host() -> House {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    house
}

/// Fails unless the shop has all its orders, by this client.
#[track_caller]
fn assert_whole(house: &House, client: &str) {
    let orders = house.run(&format!(
        "{client} -N -e 'SELECT COUNT(*) FROM shop.orders'"
    ));
    assert_eq!(orders.trim(), "4000");
}

#[test]
fn dump() {
    let house = host();
    house.start_store(&["backups"]);
    house.start_another("db2", 8, "");
    house.sql_of("db2", "CREATE USER root@db1; GRANT ALL ON *.* TO root@db1");
    let mut page = Page::open(&house, "tasks/dump.md");
    page.run("evenkeel dump --output /backup/shop.dump");
    page.before("--history", "rm -r /backup/shop.dump");
    page.run("--history");
    page.run("/backup/shop.dev");
    page.run("umask 077");
    page.before(
        "--resume",
        "rm -r /backup/shop.dump; \
         EVENKEEL_KILL_AT=dump.range-done#2 evenkeel dump --output /backup/shop.dump --database shop && exit 1; \
         test -d /backup/shop.dump -a ! -e /backup/shop.dump/manifest.json",
    );
    page.run("--resume");
    let keys = [Seaweed::KEY, Seaweed::SECRET];
    page.export(&format!(
        "AWS_ENDPOINT_URL={} AWS_ALLOW_HTTP=true AWS_ACCESS_KEY_ID={} AWS_SECRET_ACCESS_KEY={}",
        House::STORE,
        keys[0],
        keys[1]
    ));
    page.before("evenkeel load s3", DROP);
    page.run("s3://backups/shop.dump");
    assert_whole(&house, "mariadb");
    page.run("--output -");
    assert_whole(&house, "mariadb -h db2");
    page.end();
}

#[test]
fn load() {
    let house = host();
    house.run("evenkeel dump --output /backup/shop.dump --database shop");
    house.run(
        "mydumper --user root --socket /run/mysqld/mysqld.sock --database shop --outputdir /backup/mydumper-directory",
    );
    let mut page = Page::open(&house, "tasks/load.md");
    page.before("load /backup/shop.dump", DROP);
    page.before("/backup/mydumper-directory", DROP);
    page.run("evenkeel load /backup/shop.dump");
    assert_whole(&house, "mariadb");
    page.before("--table", DROP);
    page.run("--table");
    assert_whole(&house, "mariadb");
    page.run("--into shop=shop_copy");
    let copy = house.run("mariadb -N -e 'SELECT COUNT(*) FROM shop_copy.orders'");
    assert_eq!(copy.trim(), "4000");
    // MySQL Shell is not on the machines of the tests.
    let shell = "tests/cases/tests/other_programs_dumps_load.rs";
    page.elsewhere(
        "/backup/mysqlsh-directory",
        shell,
        "fn what_the_shell_writes",
    );
    page.run("/backup/mydumper-directory");
    assert_whole(&house, "mariadb");
    page.end();
}

#[test]
fn import() {
    let house = host();
    house.run("mariadb-dump shop >shop.sql && gzip -k shop.sql");
    let mut page = Page::open(&house, "tasks/import.md");
    page.run("evenkeel import shop.sql.gz");
    assert_whole(&house, "mariadb");
    house.run(
        "(cat shop.sql; echo \"INSERT INTO products VALUES (3, 'again');\") | gzip >shop.sql.gz",
    );
    page.does("evenkeel import shop.sql.gz --database shop", 3);
    page.shows("evenkeel: stopped at line");
    page.end();
}

/// Gives a server's socket a directory of its own.
fn link(house: &House, name: &str) {
    house.run(&format!(
        "mkdir /run/{name} && ln -s /run/mysqld/{name}.sock /run/{name}/mysqld.sock"
    ));
}

/// Returns what a dump's manifest says, without quotes.
fn coordinate(house: &House, dump: &str, name: &str) -> String {
    let line = house.run(&format!("grep -m1 '\"{name}\":' {dump}/manifest.json"));
    let value = line.split(": ").nth(1).expect("a value");
    value.trim().trim_matches([',', '"']).to_owned()
}

#[test]
fn seed() {
    let house = House::new("db1", PROGRAM);
    let options = "--bind-address=127.0.0.1 --port=13401 --log-bin=b";
    house.start_another("source", 101, options);
    house.start_another("replica", 102, "--skip-networking");
    link(&house, "source");
    link(&house, "replica");
    house.sql_of(
        "source",
        "CREATE USER repl@'%' IDENTIFIED BY 's3cret'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'; \
         CREATE DATABASE shop; USE shop; CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20)); \
         INSERT INTO orders SELECT seq, CONCAT('order ', seq) FROM seq_1_to_20000",
    );
    let mut page = Page::open(&house, "tasks/seed.md");
    page.run("# evenkeel dump");
    house.sql_of("source", "INSERT INTO shop.orders VALUES (20001, 'later')");
    page.run("# evenkeel load");
    page.say(
        "0-101-7'",
        &format!("{}'", coordinate(&house, "seed.dump", "gtid")),
    );
    page.say("'…'", "'s3cret'");
    page.run_sql("SET GLOBAL", "mariadb -S /run/replica/mysqld.sock");
    let sums = ["source", "replica"].map(|one| house.sql_of(one, "CHECKSUM TABLE shop.orders"));
    assert_eq!(sums[0], sums[1]);
    page.end();
}

/// Starts a MySQL 5.7 as the old server, with a table of 67 rows and the account of a replica.
fn start_old(house: &House) {
    let server = mysql_5_7_22();
    let _ = server.prepare(&house.path("/var/lib/old"), &[]);
    house.run("chown -R mysql:mysql /var/lib/old && install -d -o mysql -g mysql /run/old");
    let program = server.binary.path.display();
    house.start(
        "old",
        &format!(
            "{program} --no-defaults --datadir=/var/lib/old --socket=/run/old/mysqld.sock --user=mysql \
             --bind-address=127.0.0.1 --port=13357 --log-bin=b --server-id=57 --pid-file=/run/old/mysqld.pid"
        ),
    );
    house.until("mariadb -S /run/old/mysqld.sock -e 'SELECT 1'");
    let rows: Vec<String> = (1..=67).map(|id| format!("({id}, 'order {id}')")).collect();
    old(
        house,
        &format!(
            "CREATE USER repl@'%' IDENTIFIED BY 's3cret'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'; \
             CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(20)); \
             INSERT INTO shop.orders VALUES {}",
            rows.join(", ")
        ),
    );
}

/// Runs statements in the old server.
fn old(house: &House, statements: &str) {
    house.run(&format!(
        "mariadb -S /run/old/mysqld.sock -e \"{statements}\""
    ));
}

#[test]
fn move_a_server() {
    let house = House::new("db1", PROGRAM);
    house.start_another("new", 8, "--skip-networking");
    link(&house, "new");
    start_old(&house);
    let mut page = Page::open(&house, "tasks/move.md");
    page.run("# evenkeel dump");
    old(&house, "INSERT INTO shop.orders VALUES (68, 'later')");
    page.run("# evenkeel load");
    page.say(
        "b.000002',",
        &format!("{}',", coordinate(&house, "move.dump", "binlog_file")),
    );
    page.say(
        "4009,",
        &format!("{},", coordinate(&house, "move.dump", "binlog_position")),
    );
    page.say("'…'", "'s3cret'");
    page.run_sql("CHANGE MASTER", "mariadb -S /run/new/mysqld.sock");
    let later = "SELECT COUNT(*) FROM shop.orders WHERE note = 'later'";
    assert_eq!(house.sql_of("new", later).trim(), "1");
    page.end();
}
