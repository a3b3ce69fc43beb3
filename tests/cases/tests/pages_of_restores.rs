//! Do the commands of the pages about restores and repairs work as they stand there, and print what is shown?

use evenkeel_cases::checking::{damage, leaf};
use evenkeel_cases::house::House;
use evenkeel_cases::pages::Page;
use std::collections::BTreeSet;

const PROGRAM: &str = env!("CARGO_BIN_EXE_evenkeel-under-test");

/// What runs `make demo`, and compares what it shows.
const DEMO: &str = "tests/cases/tests/pages_of_demos.rs";

/// Says where packages are installed, and what was built from source: in no house, which has no network and no
/// compiler's cache.
fn installs_elsewhere(page: &mut Page) {
    let packages = "dist/try-inside";
    page.elsewhere(
        "apt-get install",
        packages,
        "apt-get -qq -y install \"$1\"/",
    );
    page.elsewhere("make build", "xtask/pages/tests/install.rs", "dist/install");
}

/// A host with a server.
fn host() -> House {
    let house = House::new("db1", PROGRAM);
    house.start_mariadb();
    house
}

#[test]
fn start() {
    let house = House::with_program_at("/srv/evenkeel", "db1", PROGRAM);
    house.run("ln -s /srv/evenkeel evenkeel");
    house.start_mariadb();
    let mut page = Page::open(&house, "start.md");
    installs_elsewhere(&mut page);
    // As the page says: by rpm, and on Debian.
    page.elsewhere("dnf install", "dist/try-inside", "rpm $force --nodeps -i");
    page.run("apt-get install");
    page.run("evenkeel doctor");
    page.pass("make demo", DEMO, "\"start.md\", \"make demo\"");
    page.end();
}

#[test]
fn readme() {
    let house = House::with_program_at("/srv/evenkeel", "db1", PROGRAM);
    house.run("ln -s /srv/evenkeel evenkeel; ln -s /srv/evenkeel /usr/local/bin/evenkeel");
    house.start_mariadb();
    house.back_up(1);
    house.work();
    let mut page = Page::open(&house, "README.md");
    installs_elsewhere(&mut page);
    page.before("cp evenkeel", "rm /usr/local/bin/evenkeel");
    page.run("apt-get install");
    page.run("# evenkeel backup");
    serve_restored(&house, page.printed());
    page.run("# evenkeel verify");
    page.pass("generation  kind", DEMO, "shows(\"generation  kind\")");
    page.end();
}

#[test]
fn restore() {
    let house = host();
    house.back_up(12);
    let mut page = Page::open(&house, "tasks/restore.md");
    page.run("evenkeel generations");
    serve_restored(&house, page.printed());
    page.run("evenkeel verify");
    page.end();
}

/// Fails unless all below `/srv/restored` is whose it was, with its modes, and the server's account can start a server
/// on it with what `restore` said and nothing else of its settings.
fn serve_restored(house: &House, said: &str) {
    let entries = |root: &str| {
        let list = house.run(&format!("cd {root} && find . -printf '%p %u:%g %m\n'"));
        list.lines()
            .map(str::to_owned)
            .collect::<BTreeSet<String>>()
    };
    let (restored, original) = (entries("/srv/restored"), entries("/var/lib/mysql"));
    assert!(
        restored.contains("./ibdata1 mysql:mysql 660"),
        "{restored:?}"
    );
    let otherwise: Vec<&String> = restored.difference(&original).collect();
    assert!(
        otherwise.is_empty(),
        "{otherwise:?} is not among {original:?}"
    );
    let account = "setpriv --reuid=mysql --regid=mysql --init-groups";
    let options = named_server(said);
    let socket = "/run/mysqld/restored.sock";
    let command = format!("{account} mariadbd --no-defaults {options} --socket={socket}");
    serve(house, &command, socket);
}

#[test]
fn baseline() {
    let house = host();
    house.write(
        "/usr/local/bin/docker",
        "#!/bin/sh\nexec systemctl $1 mariadb\n",
        "755",
    );
    let mut page = Page::open(&house, "tasks/baseline.md");
    page.run("evenkeel baseline save");
    house.sql("DROP TABLE shop.orders");
    page.run("evenkeel baseline rollback");
    let orders = house.sql("SELECT COUNT(*) FROM shop.orders");
    assert_eq!(orders.trim(), "4000");
    page.run("evenkeel baseline rollback");
    page.end();
}

#[test]
fn check() {
    let house = host();
    for table in ["customers", "products", "orders"] {
        house.flush(&format!("shop.{table}"));
    }
    house.run("evenkeel check");
    house.back_up(2);
    let orders = house.path("/var/lib/mysql/shop/orders.ibd");
    house.flush("shop.orders");
    damage(&orders, leaf(&orders, true));
    let mut page = Page::open(&house, "tasks/check.md");
    page.code("evenkeel check", 4);
    page.run("evenkeel check");
    page.shows("/var/lib/mysql:");
    house.sql("ALTER TABLE `shop`.`orders` FORCE");
    house.flush("shop.orders");
    house.run("evenkeel check && evenkeel backup /backup/shop");
    damage(&orders, leaf(&orders, false));
    page.run("systemctl stop mariadb");
    page.shows("…");
    house.run("evenkeel check --datadir /var/lib/mysql --heal-from /backup/shop --execute");
    house.run("systemctl start mariadb");
    let sound = house.sql("CHECK TABLE shop.orders EXTENDED");
    assert!(sound.contains("OK"), "{sound}");
    page.end();
}

#[test]
fn point_in_time() {
    let house = host();
    let account = "CREATE USER backup@'%' IDENTIFIED BY 'correct horse'";
    let rights = "RELOAD, PROCESS, BINLOG MONITOR, REPLICATION SLAVE";
    house.sql(&format!("{account}; GRANT {rights} ON *.* TO backup@'%'"));
    house.run("evenkeel backup /backup/shop");
    let second = house.run("date +%s");
    house.until(&format!("[ $(date +%s) -gt {} ]", second.trim()));
    let value = |sql: &str| house.sql(sql).trim().to_owned();
    let gtid = || value("SELECT @@gtid_binlog_pos");
    house.work();
    let (before, time) = (gtid(), value("SELECT NOW()"));
    let place = value("SHOW MASTER STATUS").replacen('\t', ":", 1);
    house.work();
    let after = gtid();
    let mut page = Page::open(&house, "tasks/point-in-time.md");
    let archived = "evenkeel binlog list /backup/shop | grep -q 'any point from'";
    page.briefly("evenkeel binlog archive /backup/shop$", archived);
    page.run("evenkeel binlog archive");
    let plugin = "tests/cases/tests/acknowledged_is_archived.rs";
    let installs = "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'";
    page.elsewhere("INSTALL PLUGIN", plugin, installs);
    let enables = "SET GLOBAL rpl_semi_sync_{which}_{setting}";
    page.elsewhere("rpl_semi_sync_source_enabled", plugin, enables);
    let waits = "mariadb -N -e \"SHOW STATUS LIKE 'Rpl_semi_sync_master_clients'\" | grep -w 1";
    page.briefly("--semi-sync", waits);
    page.run("SET GLOBAL");
    house.run("cp -a /backup/shop /backup/before");
    fail_over(&house);
    let gone_on = "evenkeel binlog list /backup/shop | grep -q 'continues '";
    page.briefly("-h db2", gone_on);
    page.run("evenkeel binlog archive");
    page.does("evenkeel binlog list /backup/before", 0);
    page.shows("mariadb-7");
    page.say("2026-11-20 10:41:07", &time);
    page.say("0-7-4711", &after);
    page.say("0-7-4710", &before);
    page.say(
        "binlog.000042:81234",
        place.split('\t').next().expect("a place"),
    );
    page.before("evenkeel restore", "rm -rf /srv/restored");
    page.run("evenkeel restore");
    page.end();
}

/// Makes another server one that has everything, and takes the first one away.
fn fail_over(house: &House) {
    house.start_another("db2", 8, "--log-slave-updates");
    house.sql_of(
        "db2",
        "CHANGE MASTER TO MASTER_HOST='db1', MASTER_USER='backup', MASTER_PASSWORD='correct horse', \
         MASTER_USE_GTID=slave_pos; START SLAVE",
    );
    let last = house.sql("SELECT @@gtid_binlog_pos");
    let waits = format!("SELECT MASTER_GTID_WAIT('{}', 30)", last.trim());
    assert_eq!(house.sql_of("db2", &waits).trim(), "0");
    house.sql_of("db2", "STOP SLAVE");
    house.run("systemctl stop mariadb");
    let account = "[evenkeel]\nuser = backup\npassword = correct horse\n";
    house.write("~/.my.cnf", account, "600");
}

#[test]
fn mount() {
    let house = host();
    house.run("touch /var/lib/mysql/my.cnf");
    house.back_up(9);
    let mut page = Page::open(&house, "tasks/mount.md");
    let mounted = "mountpoint -q /mnt/backup && grep -q . /var/log/staying-*.out";
    page.stays("--writable-scratch /var/tmp/scratch", mounted);
    page.run("mkdir /mnt/backup");
    page.shows("generation 12 mounted");
    let command = named_server(page.printed());
    serve(&house, command, "/mnt/backup/data/mount.sock");
    page.stop("--writable-scratch /var/tmp/scratch", 0);
    page.stays("--fill", "grep -q 'is complete' /var/log/staying-*.out");
    page.run("evenkeel mount");
    page.stop("--fill", 0);
    house.run("test -f /srv/restored/data/ibdata1");
    page.stays("evenkeel mount /backup/shop /mnt/backup$", mounted);
    page.run("evenkeel mount");
    page.stop("evenkeel mount", 0);
    page.run("evenkeel verify");
    page.end();
}

/// Returns what a mount or a restore says that a server starts with.
fn named_server(said: &str) -> &str {
    let mut lines = said.lines().map(str::trim);
    let command = lines.find_map(|line| line.strip_prefix("a server starts on it with: "));
    command.expect("a command")
}

/// Starts a server beside the other one, asks it for the shop's orders, and stops it.
fn serve(house: &House, command: &str, socket: &str) {
    let pid = "/run/mysqld/beside.pid";
    house.start(
        "beside",
        // The other server has the port.
        &format!("{command} --port=3307 --pid-file={pid}"),
    );
    let client = format!("mariadb -S {socket}");
    house.until(&format!("{client} -e 'SELECT 1'"));
    let orders = house.run(&format!(
        "{client} -N -e 'SELECT COUNT(*) FROM shop.orders'"
    ));
    assert_eq!(orders.trim(), "4000");
    let server = house.run(&format!("cat {pid}"));
    house.run(&format!("{client} -e SHUTDOWN"));
    house.until(&format!("! kill -0 {}", server.trim()));
}

#[test]
fn diagnose() {
    let house = House::new("db2", PROGRAM);
    house.start_another("db1", 1, "--binlog-format=ROW");
    house.sql_of(
        "db1",
        "CREATE USER repl@'%' IDENTIFIED BY 's3cret'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'; \
         CREATE DATABASE stock; CREATE TABLE stock.orders (id INT PRIMARY KEY, state INT); \
         INSERT INTO stock.orders VALUES (1, 1)",
    );
    house.start_mariadb();
    house.sql("RESET MASTER");
    house.sql(
        "CHANGE MASTER TO MASTER_HOST='db1', MASTER_USER='repl', MASTER_PASSWORD='s3cret', \
         MASTER_USE_GTID=slave_pos; START SLAVE",
    );
    house.until("mariadb -e 'SELECT * FROM stock.orders' | grep 1");
    let mut page = Page::open(&house, "tasks/diagnose.md");
    let account = page.take("CREATE USER");
    house.sql_of("db1", &account);
    house.until("mariadb -u monitor -p'correct horse' -e 'SELECT 1'");
    page.write("[client]", "~/.my.cnf", "600");
    page.run("evenkeel replica status");
    page.before(
        "evenkeel replica diagnose",
        "mariadb --no-defaults -e 'SET sql_log_bin=0; DELETE FROM stock.orders'
         mariadb --no-defaults -h db1 -e 'UPDATE stock.orders SET state = 2'
         until mariadb --no-defaults -e 'SHOW SLAVE STATUS\\G' | grep -q 'Slave_SQL_Running: No'; do sleep 0.1; done",
    );
    page.code("evenkeel replica diagnose", 4);
    page.run("evenkeel replica diagnose");
    page.end();
}

#[test]
fn heal() {
    let house = House::new("db2", PROGRAM);
    house.start_another("db1", 1, "--binlog-format=ROW");
    house.sql_of(
        "db1",
        "CREATE USER repl@'%' IDENTIFIED BY 's3cret'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'; \
         CREATE DATABASE stock; CREATE TABLE stock.orders (id INT PRIMARY KEY, state INT); \
         INSERT INTO stock.orders VALUES (1, 1)",
    );
    house.start_mariadb();
    house.sql("DROP DATABASE shop; RESET MASTER; SET GLOBAL read_only = ON");
    house.sql("SET GLOBAL innodb_lock_wait_timeout = 1, slave_transaction_retries = 0");
    house.sql(
        "CHANGE MASTER TO MASTER_HOST='db1', MASTER_USER='repl', MASTER_PASSWORD='s3cret', \
         MASTER_USE_GTID=slave_pos; START SLAVE",
    );
    house.until("mariadb -e 'SELECT * FROM stock.orders' | grep 1");
    let mut page = Page::open(&house, "tasks/heal.md");
    let account = page.take("CREATE USER");
    house.sql_of("db1", &account);
    house.until("mariadb -u healer -p'correct horse' -e 'SELECT 1'");
    page.write("[client]", "~/.my.cnf", "600");
    house.run(
        "mariadb --no-defaults -e 'BEGIN; UPDATE stock.orders SET state = 7; SELECT SLEEP(5)' &
         sleep 0.5
         mariadb --no-defaults -h db1 -e 'UPDATE stock.orders SET state = 2'
         wait
         until mariadb --no-defaults -e 'SHOW SLAVE STATUS\\G' | grep -q 'Slave_SQL_Running: No'; do sleep 0.1; done",
    );
    page.code("--allow restart db1 db2", 4);
    page.run("--allow restart db1 db2");
    page.run("--execute");
    let healer = "tests/cases/tests/replicas_are_healed.rs";
    page.pass("evenkeel replica heal --fleet", healer, "--every=5s");
    page.run("--history");
    page.end();
}

#[test]
fn replica() {
    let house = House::new("db2", PROGRAM);
    house.start_another("db1", 1, "");
    house.sql_of(
        "db1",
        "CREATE USER repl@'%' IDENTIFIED BY 's3cret'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'",
    );
    house.start_mariadb();
    // It has written nothing of its own into its log.
    house.sql("RESET MASTER");
    house.sql(
        "CHANGE MASTER TO MASTER_HOST='db1', MASTER_USER='repl', MASTER_PASSWORD='s3cret', \
         MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4, MASTER_USE_GTID=no; START SLAVE",
    );
    house.sql_of(
        "db1",
        "CREATE DATABASE blog; CREATE TABLE blog.posts (id INT PRIMARY KEY)",
    );
    house.until("mariadb -e 'SELECT * FROM blog.posts'");
    let mut page = Page::open(&house, "tasks/replica.md");
    page.run("# evenkeel backup");
    page.run("# evenkeel restore");
    page.end();
}

#[test]
fn clone() {
    let house = House::new("db2", PROGRAM);
    house.start_another("db1", 1, "");
    house.sql_of(
        "db1",
        "CREATE USER repl@'%' IDENTIFIED BY 's3cret'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'",
    );
    house.start_mariadb();
    house.start_sshd();
    // It has written nothing of its own into its log.
    house.sql("RESET MASTER");
    house.sql(
        "CHANGE MASTER TO MASTER_HOST='db1', MASTER_USER='repl', MASTER_PASSWORD='s3cret', \
         MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4, MASTER_USE_GTID=no; START SLAVE",
    );
    house.sql_of(
        "db1",
        "CREATE DATABASE blog; CREATE TABLE blog.posts (id INT PRIMARY KEY)",
    );
    house.until("mariadb -e 'SELECT * FROM blog.posts'");
    let mut page = Page::open(&house, "tasks/clone.md");
    page.run("--target /srv/new");
    page.run("--like /srv/new");
    page.end();
}

#[test]
fn resync() {
    let house = House::new("db3", PROGRAM);
    house.start_another("db1", 1, "");
    house.sql_of(
        "db1",
        "CREATE USER repl@'%' IDENTIFIED BY 's3cret'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'",
    );
    house.start_another("db2", 2, "");
    house.start_mariadb();
    house.sql("DROP DATABASE shop; RESET MASTER");
    house.start_sshd();
    let follow = "CHANGE MASTER TO MASTER_HOST='db1', MASTER_USER='repl', MASTER_PASSWORD='s3cret', \
         MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4, MASTER_USE_GTID=no; START SLAVE";
    house.sql_of("db2", follow);
    house.sql(follow);
    house.sql_of(
        "db1",
        "CREATE DATABASE blog; CREATE TABLE blog.posts (id INT PRIMARY KEY); INSERT INTO blog.posts VALUES (1)",
    );
    house.until("mariadb -N -e 'SELECT * FROM blog.posts' | grep 1");
    house.until("mariadb -S /run/mysqld/db2.sock -N -e 'SELECT * FROM blog.posts' | grep 1");
    house.sql("STOP SLAVE; SET sql_log_bin = 0; DELETE FROM blog.posts");
    let mut page = Page::open(&house, "tasks/resync.md");
    // Both are on one host here.
    page.say("--ssh root@db2", "--ssh root@db2 -S /run/mysqld/db2.sock");
    page.run("--ssh root@db2");
    page.run("--execute");
    assert_eq!(house.sql("SELECT COUNT(*) FROM blog.posts").trim(), "1");
    page.end();
}

#[test]
fn is_my_replica_equal() {
    let house = House::new("db2", PROGRAM);
    house.start_another("db1", 1, "");
    house.sql_of(
        "db1",
        "CREATE USER repl@'%' IDENTIFIED BY 's3cret'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'; \
         CREATE USER root@db2; GRANT ALL ON *.* TO root@db2",
    );
    house.start_mariadb();
    house.sql("DROP DATABASE shop");
    house.sql(
        "CHANGE MASTER TO MASTER_HOST='db1', MASTER_USER='repl', MASTER_PASSWORD='s3cret', \
         MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4, MASTER_USE_GTID=no; START SLAVE",
    );
    house.sql_of(
        "db1",
        "CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY, n INT); \
         INSERT INTO shop.orders VALUES (1, 1), (2, 2), (3, 3)",
    );
    house.until("mariadb -N -e 'SELECT COUNT(*) FROM shop.orders' | grep 3");
    let mut page = Page::open(&house, "tasks/is-my-replica-equal.md");
    page.run("# evenkeel replica checksum");
    page.before(
        "checksum --database shop",
        "mariadb -e 'SET sql_log_bin = 0; DELETE FROM shop.orders WHERE id = 2; \
         UPDATE shop.orders SET n = 0 WHERE id = 3'",
    );
    page.code("checksum --database shop", 4);
    page.run("--database shop");
    page.code("--output db2.plan", 4);
    page.run("--output db2.plan");
    page.run("--execute db2.plan");
    page.end();
}
