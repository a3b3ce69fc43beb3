//! The bytes of both directions of a connection in the order in which they were said, whatever order packets came
//! in. What a side acknowledges it had before it spoke, so nothing is handed out before what it answers. What
//! does not come is waited for over a few packets, then reported missing.

use super::frame::Segment;
use evenkeel_wire::watch::Side;
use std::collections::VecDeque;

/// Segments that wait, of both directions, before what they wait for is given up.
const MOST_WAITING: usize = 64;
/// Bytes that wait.
const MOST_BYTES: usize = 1 << 20;
/// How long they wait, by the capture's own time.
const LONGEST_WAIT_NS: i64 = 1_000_000_000;
/// Numbers farther apart than this are not one connection's: its ports were used again.
const FARTHEST: i32 = 64 << 20;

/// What comes out.
#[derive(Debug)]
pub(super) enum Out<'a> {
    Bytes(Side, i64, &'a [u8]),
    /// That many bytes never came.
    Gap(Side, u32),
}

#[derive(Debug)]
struct Waiting {
    side: Side,
    at_ns: i64,
    sequence: u32,
    acknowledged: Option<u32>,
    is_fin: bool,
    payload: Vec<u8>,
    cut: u32,
}

#[derive(Debug, Default, Clone, Copy)]
struct Direction {
    /// The number of the next byte, once any was seen.
    next: Option<u32>,
    is_done: bool,
}

/// Orders one connection's segments.
#[derive(Debug, Default)]
pub(super) struct Order {
    directions: [Direction; 2],
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

/// Returns how far `to` lies behind `from`, in numbers that wrap.
fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from) as i32
}

fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

impl Order {
    /// The direction begins behind this number, unless it has begun.
    pub(super) fn begin_once(&mut self, side: Side, sequence: u32) {
        let next = &mut self.directions[side as usize].next;
        next.get_or_insert(sequence.wrapping_add(1));
    }

    /// Returns whether a segment cannot be of the connection that was seen so far.
    pub(super) fn is_foreign(&self, side: Side, segment: &Segment<'_>) -> bool {
        let next = self.directions[side as usize].next;
        next.is_some_and(|next| distance(next, segment.sequence).unsigned_abs() > FARTHEST as u32)
    }

    /// Returns whether both sides have said that they are done.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.directions.iter().all(|direction| direction.is_done)
    }

    /// Takes a segment; what is in its turn goes to `each`.
    pub(super) fn take(
        &mut self,
        side: Side,
        at_ns: i64,
        segment: &Segment<'_>,
        each: &mut dyn FnMut(Out<'_>),
    ) {
        let is_empty = segment.payload.is_empty() && segment.cut == 0;
        if is_empty && !segment.is_fin {
            return;
        }
        self.learn(side, segment);
        if self.waiting.is_empty() && self.is_in_turn(side, segment.sequence, segment.acknowledged)
        {
            let (sequence, fin) = (segment.sequence, segment.is_fin);
            self.deliver(
                (side, at_ns, sequence, fin, segment.cut),
                segment.payload,
                each,
            );
            return;
        }
        self.bytes += segment.payload.len();
        self.waiting.push_back(Waiting {
            side,
            at_ns,
            sequence: segment.sequence,
            acknowledged: segment.acknowledged,
            is_fin: segment.is_fin,
            payload: segment.payload.to_vec(),
            cut: segment.cut,
        });
        self.settle(each);
        while self.is_stuck(at_ns) {
            self.give_up(each);
        }
    }

    /// Hands out all that waits: nothing more will come.
    pub(super) fn end(&mut self, each: &mut dyn FnMut(Out<'_>)) {
        while !self.waiting.is_empty() {
            self.give_up(each);
        }
    }

    /// Where the beginning was not seen: numbers from here on.
    fn learn(&mut self, side: Side, segment: &Segment<'_>) {
        let own = &mut self.directions[side as usize];
        own.next.get_or_insert(segment.sequence);
        if let Some(acknowledged) = segment.acknowledged {
            let other = &mut self.directions[other(side) as usize];
            other.next.get_or_insert(acknowledged);
        }
    }

    fn is_in_turn(&self, side: Side, sequence: u32, acknowledged: Option<u32>) -> bool {
        let own = self.directions[side as usize].next;
        let others = self.directions[other(side) as usize];
        let is_next = own.is_none_or(|next| distance(next, sequence) <= 0);
        // An end counts as a byte.
        let is_answered = match (others.next, acknowledged) {
            (Some(next), Some(acknowledged)) => {
                distance(next, acknowledged) <= i32::from(others.is_done)
            }
            _ => true,
        };
        is_next && is_answered
    }

    /// Hands out what of a segment is new.
    fn deliver(
        &mut self,
        (side, at_ns, sequence, is_fin, cut): (Side, i64, u32, bool, u32),
        payload: &[u8],
        each: &mut dyn FnMut(Out<'_>),
    ) {
        let direction = &mut self.directions[side as usize];
        let next = direction.next.unwrap_or(sequence);
        let known = distance(sequence, next).max(0) as usize;
        if let Some(fresh) = payload.get(known..)
            && !fresh.is_empty()
        {
            each(Out::Bytes(side, at_ns, fresh));
        }
        let end = sequence.wrapping_add(payload.len() as u32);
        let behind = end.wrapping_add(cut);
        let from = if distance(next, end) > 0 { end } else { next };
        let missing = distance(from, behind);
        if missing > 0 {
            each(Out::Gap(side, missing as u32));
        }
        direction.next = Some(if distance(next, behind) > 0 {
            behind
        } else {
            next
        });
        direction.is_done |= is_fin;
    }

    /// Hands out whatever is in its turn.
    fn settle(&mut self, each: &mut dyn FnMut(Out<'_>)) {
        while let Some(at) = self
            .waiting
            .iter()
            .position(|one| self.is_in_turn(one.side, one.sequence, one.acknowledged))
        {
            if let Some(one) = self.waiting.remove(at) {
                self.bytes -= one.payload.len();
                let about = (one.side, one.at_ns, one.sequence, one.is_fin, one.cut);
                self.deliver(about, &one.payload, each);
            }
        }
    }

    fn is_stuck(&self, at_ns: i64) -> bool {
        let is_old = |one: &Waiting| at_ns.saturating_sub(one.at_ns) > LONGEST_WAIT_NS;
        self.waiting.len() > MOST_WAITING
            || self.bytes > MOST_BYTES
            || self.waiting.front().is_some_and(is_old)
    }

    /// Reports missing what the first that wait need most.
    fn give_up(&mut self, each: &mut dyn FnMut(Out<'_>)) {
        // The direction whose hole was noticed first; its end is the nearest that is known.
        let Some(first) = self.waiting.front() else {
            return;
        };
        let (own, others) = (first.side, other(first.side));
        let hole = self.hole(own, first.sequence);
        let (side, missing) = match first.acknowledged.map(|known| self.hole(others, known)) {
            Some(missing) if missing > 0 => (others, missing),
            _ => (own, hole),
        };
        let direction = &mut self.directions[side as usize];
        if let Some(next) = direction.next
            && missing > 0
        {
            // What waits of this direction may begin earlier than what was acknowledged.
            let nearest = self
                .waiting
                .iter()
                .filter(|one| one.side == side)
                .map(|one| distance(next, one.sequence))
                .filter(|ahead| *ahead > 0)
                .min();
            let missing = nearest.map_or(missing, |nearest| nearest.min(missing));
            direction.next = Some(next.wrapping_add(missing as u32));
            each(Out::Gap(side, missing as u32));
        } else if let Some(one) = self.waiting.pop_front() {
            // Nothing is missing, and yet it is not in turn: it is of no use.
            self.bytes -= one.payload.len();
        }
        self.settle(each);
    }

    fn hole(&self, side: Side, number: u32) -> i32 {
        let direction = self.directions[side as usize];
        let ahead = direction.next.map_or(0, |next| distance(next, number));
        ahead - i32::from(direction.is_done && ahead > 0)
    }
}
