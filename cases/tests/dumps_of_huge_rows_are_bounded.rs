//! Does a dump need little memory for rows of 64 MiB that sixteen connections read at once?

use evenkeel_cases::dumps::{dump, load, manifest};
use evenkeel_cases::program::{Evenkeel, peak};
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{Scratch, TestServer};
use std::process::Command;

/// What the program may have, in bytes.
const CAP: u64 = 200 << 20;
/// Rows, and bytes in each.
const ROWS: usize = 18;
const ROW: usize = 64 << 20;

const ARGS: [&str; 4] = [
    "--max-allowed-packet=1G",
    "--innodb-buffer-pool-size=64M",
    "--key-buffer-size=8M",
    "--performance-schema=OFF",
];

fn running(server: &TestServer, scratch: &Scratch, name: &str) -> Running {
    server.start(&scratch.join(name), &ARGS)
}

#[test]
fn of_sixteen_connections() {
    let (server, scratch) = (mariadb_10_11(), Scratch::new());
    let source = running(&server, &scratch, "source");
    let mut session = source.session().unwrap();
    // MyISAM: a gigabyte is written once.
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.huge (id INT PRIMARY KEY, a TEXT, b LONGBLOB, c INT) ENGINE=MyISAM",
    ] {
        session.run(sql).unwrap();
    }
    for id in 0..ROWS {
        let sql = format!(
            "INSERT INTO d.huge VALUES ({id}, 'a\\tb', REPEAT(X'00FF0A5C09{id:02X}4142', {}), {id})",
            ROW / 8
        );
        session.run(&sql).unwrap();
    }
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let output = scratch.join("d");
    let flags = ["--threads=16", "--chunk-size=1M"];
    let (ended, most) = peak(dump(&program, &source, &output, &flags));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    println!("directory: peak {} MiB", most >> 20);
    assert!(most > 0 && most < CAP, "directory: {most} bytes");
    let chunks = manifest(&output)["tables"][0]["chunks"]
        .as_array()
        .unwrap()
        .len();
    assert!(chunks >= 16, "{chunks} chunks: not all connections had one");

    let mut script = Command::new("sh");
    let to_nobody = "exec \"$@\" > /dev/null";
    script.args(["-c", to_nobody, "sh"]);
    let dump = program.command(&["dump", "--no-defaults", "-u", "root", "-o", "-", "-S"]);
    script.arg(dump.get_program()).args(dump.get_args());
    script.arg(source.socket()).args(flags);
    let (ended, most) = peak(script);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    println!("script: peak {} MiB", most >> 20);
    assert!(most > 0 && most < CAP, "script: {most} bytes");

    let sums = |running: &Running| {
        let row = running
            .session()
            .unwrap()
            .one("CHECKSUM TABLE d.huge")
            .unwrap();
        row.and_then(|row| row.at(1).map(str::to_owned)).unwrap()
    };

    let target = running(&server, &scratch, "target");
    load(&output, &target);
    assert_eq!(sums(&target), sums(&source));
}
