//! Does one session read and consume hundreds of thousands of rows that it owns? Where each row costs a look at all
//! of them, this does not come to its end.

mod scene;

use evenkeel_queue::io::simulated::Simulated;
use evenkeel_queue::{Options, Session, Sync, Waited, Wanted};
use std::time::Duration;

const ROWS: usize = 400_000;

#[test]
fn read_and_consumed_by_halves() {
    let options = Options {
        rows: Sync::Never,
        removals: Sync::Never,
        ..Options::default()
    };
    let table = scene::create(&Simulated::new(), options);
    for _ in 0..ROWS / 1000 {
        table.append(vec![vec![7]; 1000], None).unwrap();
    }
    let mut session = Session::new();
    let wanted = [Wanted {
        table: table.clone(),
        condition: None,
    }];
    let waited = session.wait(&wanted, ROWS, Duration::ZERO, &|| false);
    let Ok(Waited::Rows(0, ids)) = waited else {
        panic!("{waited:?}");
    };
    assert_eq!(ids.len(), ROWS);
    let (mut seen, mut from) = (Vec::new(), 0);
    while let Some(id) = table.next_visible(from, Some(session.owner())) {
        seen.push(id);
        from = id + 1;
    }
    assert_eq!(seen, ids);
    let (odd, even): (Vec<u64>, Vec<u64>) = ids.iter().partition(|id| *id % 2 == 1);
    session.consume(&odd).unwrap();
    assert_eq!(session.held().unwrap().1, even);
    session.consume(&even).unwrap();
    assert_eq!(table.stats().rows, 0);
}
