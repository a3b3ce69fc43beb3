//! Debian's MariaDB in a house, as its package sets it up: by `/etc/mysql`, as the user `mysql`, with root of the
//! host for its root.

use super::House;
use crate::SMALL;
use evenkeel_testkit::servers::mariadb_10_11;

/// What makes it small, where an administrator would say it.
const SETTINGS: &str = "/etc/mysql/mariadb.conf.d/90-small.cnf";

/// A shop of three tables. `orders` has two indexes and some hundred pages.
const SHOP: &str = "
CREATE DATABASE shop;
USE shop;
CREATE TABLE shop.customers (id INT PRIMARY KEY, name VARCHAR(80));
INSERT INTO shop.customers SELECT seq, CONCAT('customer ', seq) FROM seq_1_to_500;
CREATE TABLE shop.products (id INT PRIMARY KEY, name VARCHAR(80));
INSERT INTO shop.products SELECT seq, CONCAT('product ', seq) FROM seq_1_to_200;
CREATE TABLE shop.orders (
  id INT AUTO_INCREMENT PRIMARY KEY, customer INT, placed DATE, note VARCHAR(200), KEY by_date (placed));
INSERT INTO shop.orders (customer, placed, note)
  SELECT seq % 500, '2026-01-01' + INTERVAL seq % 300 DAY, REPEAT(CHAR(97 + seq % 26), 120) FROM seq_1_to_4000;
";

/// Who is root of the host is root of the server, as Debian has it.
const SOCKET: &str =
    "ALTER USER root@localhost IDENTIFIED VIA mysql_native_password USING 'invalid' OR unix_socket";

impl House {
    /// Sets up a server with a database `shop`, and starts it. It has the house's name for its address.
    pub fn start_mariadb(&self) {
        self.make_datadir("mysql");
        let settings = settings("mysql", "$(hostname)", 7);
        self.run(&format!("cat >{SETTINGS} <<END\n{settings}END"));
        self.run("systemctl start mariadb");
        self.sql(SHOP);
        self.sql(SOCKET);
    }

    /// Takes backups of it into `/backup/shop` until there are so many, and works in between.
    pub fn back_up(&self, generations: u32) {
        for generation in 0..generations {
            if generation > 0 {
                self.work();
            }
            self.run("evenkeel backup /backup/shop --max-impact 100");
        }
    }

    /// Starts another server, with an empty data directory `/var/lib/NAME`, a socket `/run/mysqld/NAME.sock`, and the
    /// address and default port of the host `name`. Its program is given these options besides.
    pub fn start_another(&self, name: &str, server_id: u32, options: &str) {
        self.make_datadir(name);
        let settings = settings(name, name, server_id);
        let file = format!("/etc/mysql/{name}.cnf");
        let settings = format!("{settings}socket = /run/mysqld/{name}.sock\n");
        self.write(&file, &settings, "644");
        self.run("install -d -o mysql -g mysql /run/mysqld");
        self.start(name, &format!("mariadbd --defaults-file={file} {options}"));
        self.until(&format!("mariadb-admin -S /run/mysqld/{name}.sock ping"));
    }

    /// Runs statements in a server that [`House::start_another`] has started.
    #[track_caller]
    pub fn sql_of(&self, name: &str, statements: &str) -> String {
        let client = format!("mariadb -S /run/mysqld/{name}.sock -N -B");
        self.run(&format!(
            "{client} <<'STATEMENTS'\n{statements}\nSTATEMENTS"
        ))
    }

    fn make_datadir(&self, name: &str) {
        let datadir = format!("/var/lib/{name}");
        let _ = mariadb_10_11().prepare(&self.path(&datadir), &SMALL);
        self.run(&format!("chown -R mysql:mysql {datadir}"));
    }

    /// Changes some rows on disk, as a day does.
    pub fn work(&self) {
        self.sql("UPDATE shop.orders SET customer = customer + 1 WHERE id % 50 = 0");
        self.flush("shop.orders");
    }

    /// Brings all pages of a table to disk.
    pub fn flush(&self, table: &str) {
        self.sql(&format!("FLUSH TABLES {table} FOR EXPORT; UNLOCK TABLES"));
    }

    /// Runs statements as root by the socket, and returns rows by tabs.
    #[track_caller]
    pub fn sql(&self, statements: &str) -> String {
        self.run(&format!(
            "mariadb -N -B <<'STATEMENTS'\n{statements}\nSTATEMENTS"
        ))
    }
}

/// What an administrator would write into an option file.
fn settings(datadir: &str, address: &str, server_id: u32) -> String {
    let mut settings =
        format!("[mysqld]\nuser = mysql\ndatadir = /var/lib/{datadir}\nbind-address = {address}\n");
    for option in SMALL {
        settings += option.trim_start_matches('-');
        settings += "\n";
    }
    // Later ones win.
    settings + &format!("server-id = {server_id}\n")
}
