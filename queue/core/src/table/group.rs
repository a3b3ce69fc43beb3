//! Group commit: whoever comes first writes for all who came meanwhile.
//!
//! Those who wait for the group that is being written and those who wait for the next one do so at two
//! places, in turn. So a leader that is done wakes those it has answers for, and one of the others, who
//! leads next: with many waiting, to wake all would cost more than to write.

use crate::sync::{Condvar, Mutex, MutexGuard};

/// Requests that wait to be written together, and the answers that wait to be fetched.
#[derive(Debug)]
pub(crate) struct Group<R, A> {
    inside: Mutex<Inside<R, A>>,
    turns: [Condvar; 2],
    /// How many requests go into one group, at most.
    most: usize,
}

#[derive(Debug)]
struct Inside<R, A> {
    pending: Vec<(u64, R)>,
    /// At which of the turns those wait whose requests are pending.
    side: usize,
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
                side: 0,
                answers: Vec::new(),
                tickets: 0,
                is_led: false,
                is_broken: false,
            }),
            turns: [Condvar::new(), Condvar::new()],
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
        let side = inside.side;
        inside.pending.push((mine, request));
        loop {
            if let Some(answer) = inside.answer(mine) {
                return Some(answer);
            }
            if inside.is_broken {
                return None;
            }
            if !inside.is_led {
                // Nobody has taken one's own request: it is pending still.
                return self.lead(inside, mine, lead);
            }
            let turn = self.turns[side].wait(inside);
            inside = turn.expect("no one panics in here");
        }
    }

    fn lead(
        &self,
        mut inside: MutexGuard<'_, Inside<R, A>>,
        mine: u64,
        lead: impl FnOnce(Vec<R>) -> Vec<A>,
    ) -> Option<A> {
        inside.is_led = true;
        let side = inside.side;
        let batch = inside.batch(mine, self.most);
        drop(inside);
        let abandoned = Abandoned(self);
        let (tickets, requests): (Vec<u64>, Vec<R>) = batch.into_iter().unzip();
        let answers = lead(requests);
        std::mem::forget(abandoned);
        let mut inside = self.inside.lock().expect("no one panics in here");
        inside.answers.extend(tickets.into_iter().zip(answers));
        inside.is_led = false;
        let answer = inside.answer(mine);
        let next = Some(inside.side).filter(|next| *next != side && !inside.pending.is_empty());
        drop(inside);
        if let Some(next) = next {
            self.turns[next].notify_one();
        }
        self.turns[side].notify_all();
        answer
    }
}

impl<R, A> Inside<R, A> {
    fn answer(&mut self, ticket: u64) -> Option<A> {
        let at = self.answers.iter().position(|(to, _)| *to == ticket)?;
        Some(self.answers.swap_remove(at).1)
    }

    /// Takes the requests of one group, with the leader's own among them.
    fn batch(&mut self, own: u64, most: usize) -> Vec<(u64, R)> {
        let count = self.pending.len().min(most);
        // However many came before.
        let at = self.pending.iter().position(|(to, _)| *to == own);
        if let Some(at) = at.filter(|at| *at >= count) {
            self.pending.swap(at, count - 1);
        }
        let rest = self.pending.split_off(count);
        if rest.is_empty() {
            // Whoever comes from now on waits elsewhere. Else those that are left are woken with this group.
            self.side ^= 1;
        }
        std::mem::replace(&mut self.pending, rest)
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
        for turn in &self.0.turns {
            turn.notify_all();
        }
    }
}
