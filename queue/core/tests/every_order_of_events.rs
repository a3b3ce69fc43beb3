//! In every order that threads can run in: is a token won once, and is each request answered once?

/// What the two files below are compiled with here.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}

#[path = "../src/table/group.rs"]
mod group;
#[path = "../src/wait/token.rs"]
mod token;

use group::Group;
use loom::sync::Arc;
use loom::thread;
use std::time::{Duration, Instant};
use token::{Outcome, Token};

#[test]
fn a_token_is_won_once_and_its_owner_wakes() {
    loom::model(|| {
        let token = Arc::new(Token::new(1));
        let rivals = [Outcome::Granted(0), Outcome::Killed].map(|outcome| {
            let token = token.clone();
            thread::spawn(move || (token.settle(outcome), outcome))
        });
        let far = Instant::now() + Duration::from_secs(3600);
        let seen = token.wait(far, &|| false);
        let won: Vec<Outcome> = rivals
            .into_iter()
            .map(|rival| rival.join().unwrap())
            .filter_map(|(won, outcome)| won.then_some(outcome))
            .collect();
        assert_eq!(won, [seen]);
        assert_eq!(token.owner(), 1);
    });
}

#[test]
fn time_and_a_grant_do_not_both_win() {
    loom::model(|| {
        let token = Arc::new(Token::new(1));
        let table = token.clone();
        let granted = thread::spawn(move || table.settle(Outcome::Granted(3)));
        let seen = token.wait(Instant::now(), &|| false);
        let granted = granted.join().unwrap();
        assert_eq!(seen == Outcome::Granted(3), granted);
        assert!(granted || seen == Outcome::TimedOut);
    });
}

#[test]
fn whoever_leads_each_request_is_written_and_answered_once() {
    for most in [1, 2] {
        let mut orders = loom::model::Builder::new();
        // All orders of three threads take minutes; those with two switches that nobody asked for do not.
        orders.preemption_bound = Some(2);
        orders.check(move || {
            let group = Arc::new(Group::<u32, u32>::new(most));
            let written = Arc::new(loom::sync::Mutex::new(Vec::<u32>::new()));
            let submit = |request: u32| {
                let (group, written) = (group.clone(), written.clone());
                move || {
                    let answer = group.submit(request, |requests| {
                        written.lock().unwrap().extend(&requests);
                        requests.into_iter().map(|request| request * 10).collect()
                    });
                    assert_eq!(answer, Some(request * 10));
                }
            };
            let others = [1, 2].map(|request| thread::spawn(submit(request)));
            submit(3)();
            others.into_iter().for_each(|other| other.join().unwrap());
            let mut written = written.lock().unwrap().clone();
            written.sort_unstable();
            assert_eq!(written, [1, 2, 3]);
        });
    }
}
