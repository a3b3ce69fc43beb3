//! Files of servers that are damaged, and logs that are taken away.

use evenkeel_cases::trio::Trio;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Makes a table with an index, and damages the last leaf of its newest index on the replica, or of its rows.
pub(crate) fn damage(trio: &mut Trio, table: &str, of_rows: bool) {
    trio.sql(
        0,
        &format!("CREATE TABLE shop.{table} (id INT PRIMARY KEY, t VARCHAR(200), KEY t (t)) ENGINE=InnoDB"),
    );
    trio.sql(
        0,
        &format!("INSERT INTO shop.{table} VALUES (1, REPEAT('b', 150))"),
    );
    for _ in 0..10 {
        let doubled = format!(
            "INSERT INTO shop.{table} SELECT id + (SELECT MAX(id) FROM shop.{table} x), CONCAT(id, t) FROM shop.{table} y"
        );
        trio.sql(0, &doubled);
    }
    trio.catch_up();
    trio.stop(1);
    let path = trio.datadir(1).join(format!("shop/{table}.ibd"));
    let leaves = leaves(&std::fs::read(&path).unwrap());
    let indexes = leaves.iter().map(|(index, _)| *index);
    let index = match of_rows {
        true => indexes.min(),
        false => indexes.max(),
    };
    let page = leaves.iter().rfind(|leaf| Some(leaf.0) == index).unwrap().1;
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&[0; 4000], page as u64 + 200).unwrap();
    trio.restart(1, &[]);
}

/// The leaves of a tablespace, each as the number of its index and its place: FIL_PAGE_INDEX, level 0.
fn leaves(data: &[u8]) -> Vec<(u64, usize)> {
    let number = |at: usize, bytes: usize| {
        let bytes = data[at..at + bytes].iter();
        bytes.fold(0_u64, |all, byte| all << 8 | u64::from(*byte))
    };
    (0..data.len())
        .step_by(16 << 10)
        .filter(|at| number(at + 24, 2) == 17855 && number(at + 64, 2) == 0)
        .map(|at| (number(at + 66, 8), at))
        .collect()
}

/// Which file of its binary log the source writes.
pub(crate) fn source_log(trio: &Trio) -> String {
    let rows = trio.session(0).rows("SHOW BINARY LOGS").unwrap();
    rows.last().unwrap().at(0).unwrap().to_owned()
}

/// Leaves the source only the newest file of its binary log.
pub(crate) fn purge(trio: &Trio) {
    let newest = source_log(trio);
    // What a replica that has just gone was reading is kept until the source notices, which is when it sends
    // something for the second time: with heartbeats alone, that takes half a minute.
    evenkeel_testkit::until("older logs are gone", || {
        trio.sql(0, "CREATE DATABASE IF NOT EXISTS shop");
        std::thread::sleep(Duration::from_millis(100));
        trio.sql(0, &format!("PURGE BINARY LOGS TO '{newest}'"));
        trio.session(0).rows("SHOW BINARY LOGS").unwrap().len() == 1
    });
}
