//! Measures a queue on this machine's disk: `measure DIRECTORY [ROWS [each]]`. Memory and stalls for a
//! backlog of so many rows, how long opening takes, how long waking does. With `each`, each group is made
//! durable.

use evenkeel_queue::io::Disk;
use evenkeel_queue::{Options, Queue, Session, Store, Sync, Wanted};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("give a directory")?;
    let rows: u64 = arguments
        .next()
        .map_or(Ok(1_000_000), |rows| rows.parse())?;
    let sync = match arguments.next().as_deref() {
        Some("each") => Sync::Each,
        _ => Sync::Never,
    };
    let dir = Path::new(&dir);
    let store = Store::new(Arc::new(Disk), &dir.join("queue"))?;
    let anchor = dir.join("measure.que");
    store.create(&anchor, b"")?;
    let options = Options {
        rows: sync,
        removals: sync,
        ..Options::default()
    };
    let (table, _) = store.open(&anchor, options)?;
    fill(&table, rows)?;
    println!(
        "backlog of {rows} rows: {} MB of memory",
        table.stats().memory / 1_000_000
    );
    stalls(&table, rows)?;
    wakes(&table)?;
    table.sync()?;
    drop(table);
    let start = Instant::now();
    let (table, _) = store.open(&anchor, options)?;
    println!(
        "opened {} rows in {:?}",
        table.stats().rows,
        start.elapsed()
    );
    let id = store.drop_table(&anchor, Some(&table))?;
    store.remove_rows(id);
    Ok(())
}

fn fill(table: &Queue, rows: u64) -> Outcome {
    let start = Instant::now();
    for _ in 0..rows / 1000 {
        table.append(vec![vec![7; 92]; 1000], None)?;
    }
    println!(
        "appended {rows} rows in {:?}, 1000 a statement",
        start.elapsed()
    );
    Ok(())
}

/// Removes most of the oldest rows, and compacts while one row after the other is appended.
fn stalls(table: &Arc<Queue>, rows: u64) -> Outcome {
    let most = usize::try_from(rows / 2)?;
    for id in table.take(1, None, most)?.chunks(1000) {
        table.remove(1, &id[..900.min(id.len())])?;
    }
    table.give_back(1, &table.owned_by(1));
    let compacting = table.clone();
    let other = std::thread::spawn(move || {
        let start = Instant::now();
        compacting.compact(true).map(|()| start.elapsed())
    });
    let (mut appends, mut removals) = (Vec::new(), Vec::new());
    while !other.is_finished() {
        let start = Instant::now();
        table.append(vec![vec![7; 92]], None)?;
        appends.push(start.elapsed());
        let start = Instant::now();
        let ids = table.take(2, None, 1)?;
        table.remove(2, &ids)?;
        removals.push(start.elapsed());
    }
    let took = other.join().map_err(|_| "compaction panicked")??;
    println!(
        "compaction took {took:?}; meanwhile of {} rows",
        appends.len()
    );
    for (what, mut all) in [("append", appends), ("removal", removals)] {
        all.sort_unstable();
        let slow = all.iter().rev().take(5).collect::<Vec<_>>();
        println!("  the slowest {what}s took {slow:?}");
    }
    Ok(())
}

fn wakes(table: &Arc<Queue>) -> Outcome {
    let wanted = [Wanted {
        table: table.clone(),
        condition: Some(evenkeel_queue::Condition::new(|row| row.len() == 16)),
    }];
    // The condition's first look at the backlog is not what is measured.
    Session::new().wait(&wanted, 1, Duration::ZERO, &|| false)?;
    let (say, hear) = std::sync::mpsc::channel();
    let sleeper = std::thread::spawn(move || {
        let mut session = Session::new();
        for _ in 0..500 {
            session
                .wait(&wanted, 1, Duration::from_secs(60), &|| false)
                .ok();
            if say.send(Instant::now()).is_err() {
                return;
            }
        }
    });
    let mut took = Vec::new();
    for _ in 0..500 {
        while table.stats().waiters == 0 {
            std::thread::yield_now();
        }
        let start = Instant::now();
        table.append(vec![vec![7; 16]], None)?;
        took.push(hear.recv()?.saturating_duration_since(start));
    }
    sleeper.join().map_err(|_| "the sleeper panicked")?;
    took.sort_unstable();
    println!(
        "from append to wake: p50 {:?}, p99 {:?}",
        took[250], took[495]
    );
    Ok(())
}
