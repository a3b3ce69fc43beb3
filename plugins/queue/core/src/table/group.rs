//! Group commit: whoever comes first writes for all who came meanwhile.

use crate::sync::{Condvar, Mutex};

/// Requests that wait to be written together, and the answers that wait to be fetched.
#[derive(Debug)]
pub(crate) struct Group<R, A> {
    inside: Mutex<Inside<R, A>>,
    turn: Condvar,
    /// How many requests go into one group, at most.
    most: usize,
}

#[derive(Debug)]
struct Inside<R, A> {
    pending: Vec<(u64, R)>,
    answers: Vec<(u64, A)>,
    tickets: u64,
    is_led: bool,
    is_broken: bool,
}

impl<R, A> Group<R, A> {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            inside: Mutex::new(Inside {
                pending: Vec::new(),
                answers: Vec::new(),
                tickets: 0,
                is_led: false,
                is_broken: false,
            }),
            turn: Condvar::new(),
            most,
        }
    }

    /// Has a request written: by `lead`, here or in the thread that leads now, together with others.
    /// `lead` answers each request in its order. None if a leader panicked: it is not known what
    /// became of its group. The wait is as long as two groups take to write. There are never more
    /// requests than threads that call this.
    pub(crate) fn submit(&self, request: R, lead: impl FnOnce(Vec<R>) -> Vec<A>) -> Option<A> {
        let mut inside = self.inside.lock().expect("no one panics in here");
        inside.tickets += 1;
        let mine = inside.tickets;
        inside.pending.push((mine, request));
        let mut lead = Some(lead);
        loop {
            if let Some(at) = inside.answers.iter().position(|(to, _)| *to == mine) {
                return Some(inside.answers.swap_remove(at).1);
            }
            if inside.is_broken {
                return None;
            }
            if inside.is_led {
                inside = self.turn.wait(inside).expect("no one panics in here");
                continue;
            }
            let Some(lead) = lead.take().filter(|_| !inside.pending.is_empty()) else {
                // A leader answers itself: its own request was in its group, unless there were too many.
                inside = self.turn.wait(inside).expect("no one panics in here");
                continue;
            };
            inside.is_led = true;
            let count = inside.pending.len().min(self.most);
            // One's own request is in the group that one leads, however many came before.
            let own = inside.pending.iter().position(|(to, _)| *to == mine);
            if let Some(own) = own.filter(|own| *own >= count) {
                inside.pending.swap(own, count - 1);
            }
            let rest = inside.pending.split_off(count);
            let batch = std::mem::replace(&mut inside.pending, rest);
            drop(inside);
            let abandoned = Abandoned(self);
            let (tickets, requests): (Vec<u64>, Vec<R>) = batch.into_iter().unzip();
            let answers = lead(requests);
            std::mem::forget(abandoned);
            inside = self.inside.lock().expect("no one panics in here");
            inside.answers.extend(tickets.into_iter().zip(answers));
            inside.is_led = false;
            self.turn.notify_all();
        }
    }
}

/// Tells those who wait when a leader panics.
struct Abandoned<'a, R, A>(&'a Group<R, A>);

impl<R, A> Drop for Abandoned<'_, R, A> {
    fn drop(&mut self) {
        if let Ok(mut inside) = self.0.inside.lock() {
            inside.is_broken = true;
            inside.is_led = false;
        }
        self.0.turn.notify_all();
    }
}
