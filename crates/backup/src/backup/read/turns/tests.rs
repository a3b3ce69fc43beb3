use super::*;
use evenkeel_op::{Event, Progress};
use std::thread;

/// Collects warnings.
#[derive(Default)]
struct Reported(Mutex<Vec<String>>);

impl Progress for Reported {
    fn event(&self, event: Event) {
        if let Event::Warning(text) = event {
            self.0.lock().unwrap().push(text);
        }
    }
}

fn turns() -> Turns {
    Turns {
        gate: Arc::new(Gate::default()),
    }
}

/// Watches on a thread as `start` does, without a server.
fn watched_by(
    turns: &Turns,
    count: impl FnMut() -> Result<u64> + Send + 'static,
) -> thread::JoinHandle<()> {
    let gate = Arc::clone(&turns.gate);
    thread::spawn(move || run(&gate, Pace::new(5), count))
}

/// Counts 5 000 statements a second.
fn busy() -> impl FnMut() -> Result<u64> {
    let begun = Instant::now();
    move || Ok((begun.elapsed().as_secs_f64() * 5000.0) as u64)
}

#[test]
fn reading_rests_for_a_busy_server_once_all_is_read_that_was_ordered() {
    let (reported, never) = (Reported::default(), Cancel::new());
    let whole = Run {
        progress: &reported,
        cancel: &never,
    };
    let turns = turns();
    let watching = watched_by(&turns, busy());
    let ahead = Ahead::new(100);
    ahead.order(1, &never, &never).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            while turns.gate.lock().rested.is_zero() {
                turns.wait(&ahead, &never, whole).unwrap();
            }
        });
        while !turns.gate.is_resting() {
            thread::yield_now();
        }
        ahead.stored(1);
        waiting.join().unwrap();
    });
    assert!(turns.end(whole) > Duration::ZERO);
    watching.join().unwrap();
    assert!(reported.0.into_inner().unwrap().is_empty());
}

#[test]
fn reading_never_rests_for_an_idle_server() {
    let turns = turns();
    let gate = Arc::clone(&turns.gate);
    let mut looks = 0;
    let watching = watched_by(&turns, move || {
        looks += 1;
        if looks == 10 {
            gate.lock().give_up(None);
        }
        Ok(looks / 3)
    });
    while !watching.is_finished() {
        assert!(!turns.gate.is_resting());
        thread::yield_now();
    }
    watching.join().unwrap();
}

#[test]
fn a_server_that_does_not_answer_is_reported_once_and_not_waited_for() {
    for good in [0, 1, 2, 3] {
        let (reported, never) = (Reported::default(), Cancel::new());
        let whole = Run {
            progress: &reported,
            cancel: &never,
        };
        let turns = turns();
        let mut count = busy();
        let mut left = good;
        let watching = watched_by(&turns, move || {
            if left == 0 {
                return Err(Error::failed("lost"));
            }
            left -= 1;
            count()
        });
        while !watching.is_finished() {
            turns.wait(&Ahead::new(100), &never, whole).unwrap();
        }
        watching.join().unwrap();
        turns.wait(&Ahead::new(100), &never, whole).unwrap();
        turns.end(whole);
        let reported = reported.0.into_inner().unwrap();
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].contains("lost"), "{reported:?}");
    }
}

#[test]
fn a_rest_ends_with_the_run() {
    let (reported, cancel) = (Reported::default(), Cancel::new());
    let whole = Run {
        progress: &reported,
        cancel: &cancel,
    };
    let turns = turns();
    turns.gate.lock().resting = true;
    let (ahead, never) = (Ahead::new(100), Cancel::new());
    ahead.order(1, &never, &cancel).unwrap();
    cancel.cancel(15);
    turns.wait(&ahead, &never, whole).unwrap_err();
    // The device still had something to read, so it never came to a rest.
    assert!(!turns.gate.lock().at_rest);
    ahead.stored(1);
    turns.wait(&ahead, &never, whole).unwrap_err();
    assert!(turns.gate.lock().at_rest);
}

#[test]
fn dropped_it_ends_the_watching() {
    let turns = turns();
    let watching = watched_by(&turns, busy());
    drop(turns);
    watching.join().unwrap();
}
