//! On a full disk, does appending fail cleanly while consuming goes on and frees space?

mod scene;

use evenkeel_queue::io::simulated::Simulated;
use evenkeel_queue::{Error, Options, Queue};
use scene::{create, open, rows};

/// To remove the rows of one segment one by one takes more than what is left over elsewhere.
fn options() -> Options {
    Options {
        segment_bytes: 1 << 16,
        compact_from: 1 << 16,
        ..Options::default()
    }
}

fn fill(table: &Queue) -> usize {
    for count in 0..100_000 {
        match table.append(vec![vec![7; 100]], None) {
            Ok(_) => {}
            Err(Error::Full) => return count,
            Err(error) => panic!("after {count} rows: {error}"),
        }
    }
    panic!("the disk never was full")
}

#[test]
fn again_and_again() {
    let disk = Simulated::new();
    let table = create(&disk, options());
    disk.set_capacity(Some(disk.used() + 300_000));
    let mut filled = fill(&table);
    assert!(filled > 1000, "{filled} rows");
    for round in 0..3 {
        assert_eq!(
            rows(&table).unwrap().len(),
            filled,
            "what failed is not there"
        );
        // One by one, as the slowest consumer does.
        for row in 0..filled {
            let one = table.take(1, None, 1).unwrap();
            assert_eq!(one.len(), 1);
            let removed = table.remove(1, &one);
            removed.unwrap_or_else(|error| panic!("round {round}, row {row}: {error}"));
            while matches!(table.compact_slice(), Ok(true)) {}
        }
        assert_eq!(table.stats().rows, 0);
        assert!(disk.used() < 100_000, "{} bytes are left", disk.used());
        filled = fill(&table);
        assert!(filled > 1000, "round {round}: {filled} rows");
    }
    drop(table);
    let (table, report) = open(&disk).unwrap();
    assert_eq!(
        (rows(&table).unwrap().len(), report.torn_bytes),
        (filled, 0)
    );
}
