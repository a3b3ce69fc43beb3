//! Do a dump, its load and an import need little memory for huge rows and sixteen connections?

use evenkeel_cases::dumps::{dump, load_into, manifest};
use evenkeel_cases::program::{Evenkeel, peak};
use evenkeel_server::launch::Running;
use evenkeel_testkit::servers::mariadb_10_11;
use evenkeel_testkit::{Scratch, TestServer, effort};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::Command;

/// What the program may have, in bytes.
const CAP: u64 = 200 << 20;
/// Tables of one row each, and bytes in each row. A table without transactions is loaded by one connection.
const TABLES: usize = 18;
const ROW: usize = 64 << 20;
/// In a sample, those that are not imported are smaller: sixteen of them are twice what the program may have.
const SAMPLE_ROW: usize = 24 << 20;
/// How many of the rows are imported as well.
const IMPORTED: usize = 3;

const ARGS: [&str; 4] = [
    "--max-allowed-packet=1G",
    "--innodb-buffer-pool-size=64M",
    "--key-buffer-size=8M",
    "--performance-schema=OFF",
];

fn row(id: usize) -> usize {
    match effort::is_full() || id < IMPORTED {
        true => ROW,
        false => SAMPLE_ROW,
    }
}

fn running(server: &TestServer, scratch: &Scratch, name: &str) -> Running {
    server.start(&scratch.join(name), &ARGS)
}

#[test]
fn of_sixteen_connections() {
    let (server, scratch) = (mariadb_10_11(), Scratch::new());
    let source = running(&server, &scratch, "source");
    let mut session = source.session().unwrap();
    // MyISAM: a gigabyte is written once.
    session.run("CREATE DATABASE d").unwrap();
    for id in 0..TABLES {
        let table = format!(
            "CREATE TABLE d.huge{id} (id INT PRIMARY KEY, a TEXT, b LONGBLOB, c INT) ENGINE=MyISAM"
        );
        let row = format!(
            "INSERT INTO d.huge{id} VALUES ({id}, 'a\\tb', REPEAT(X'00FF0A5C09{id:02X}4142', {}), {id})",
            row(id) / 8
        );
        session.run(&table).unwrap();
        session.run(&row).unwrap();
    }
    let program = Evenkeel::new(env!("CARGO_BIN_EXE_evenkeel-under-test"));
    let output = scratch.join("d");
    let flags = ["--threads=16", "--chunk-size=1M"];
    let (ended, most) = peak(dump(&program, &source, &output, &flags));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    println!("directory: peak {} MiB", most >> 20);
    assert!(most > 0 && most < CAP, "directory: {most} bytes");
    let tables = manifest(&output)["tables"].as_array().unwrap().len();
    assert_eq!(tables, TABLES, "not all connections had one");

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

    imports_are_bounded(&program, &server, &scratch, &source);

    let target = running(&server, &scratch, "target");
    let (ended, most) = peak(load_into(&program, &target, &output, &["--threads=16"]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    println!("load: peak {} MiB", most >> 20);
    assert!(most > 0 && most < CAP, "load: {most} bytes");
    assert_eq!(sums(&target), sums(&source));
}

/// Rows as text are up to twice as long; a table with transactions is loaded by all connections.
fn imports_are_bounded(
    program: &Evenkeel,
    server: &TestServer,
    scratch: &Scratch,
    source: &Running,
) {
    let script = scratch.join("rows.sql");
    let head = b"CREATE DATABASE d; USE d;\nCREATE TABLE huge (id INT PRIMARY KEY, b LONGBLOB) ENGINE=InnoDB;\n";
    let mut file = BufWriter::new(File::create(&script).unwrap());
    file.write_all(head).unwrap();
    for id in 0..IMPORTED {
        write!(file, "INSERT INTO huge VALUES ({id},0x").unwrap();
        let digits = format!("00FF0A5C09{id:02X}4142").repeat(4096);
        for _ in 0..ROW / 8 / 4096 {
            file.write_all(digits.as_bytes()).unwrap();
        }
        file.write_all(b");\n").unwrap();
    }
    file.flush().unwrap();
    let target = running(server, scratch, "imported");
    let mut import = program.command(&["import", "--no-defaults", "-u", "root", "--threads=16"]);
    import.arg("-S").arg(target.socket()).arg(&script);
    let (ended, most) = peak(import);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    println!("import: peak {} MiB", most >> 20);
    assert!(most > 0 && most < CAP, "import: {most} bytes");
    let mut there = target.session().unwrap();
    let mut here = source.session().unwrap();
    for id in 0..IMPORTED {
        let digest = |table: &str| format!("SELECT MD5(b) FROM d.{table} WHERE id = {id}");
        let imported = there.value(&digest("huge")).unwrap();
        assert!(imported.is_some(), "row {id} is missing");
        assert_eq!(imported, here.value(&digest(&format!("huge{id}"))).unwrap());
    }
}

fn sums(running: &Running) -> Vec<Option<String>> {
    let mut session = running.session().unwrap();
    let mut sum = |id| {
        let row = session.one(&format!("CHECKSUM TABLE d.huge{id}")).unwrap();
        row.and_then(|row| row.at(1).map(str::to_owned))
    };
    let all: Vec<Option<String>> = (0..TABLES).map(&mut sum).collect();
    assert!(all.iter().all(Option::is_some), "{all:?}");
    all
}
