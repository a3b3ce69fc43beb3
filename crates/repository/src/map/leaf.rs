//! A leaf's body: runs of blocks that lie one after another, then their hashes.
//!
//! ```text
//! changes only: generation, offset, length of the full leaf      varints
//! blocks                                                         varint
//! runs                                                           varint
//! per run: gap since the last run's end                          varint
//!          kind: 0 hole, 1 zeros, 2 data, 3 data and tail hole   1
//!          blocks                                                varint
//!          data: generation, pack, frame, first slot             varints
//! hash of every data block of all runs, in order                 16 each
//! ```
//! In a full leaf the runs cover all blocks; in one of changes, what they do not cover is as in
//! the full leaf.

use super::{BlockAddress, Entry, FAN_OUT, RecordRef};
use crate::format::bytes::{Cursor, Malformed, put_varint};
use crate::ids::BlockHash;

const HOLE: u8 = 0;
const ZERO: u8 = 1;
const DATA: u8 = 2;
const DATA_TAIL_HOLE: u8 = 3;

/// Returns the body of a full leaf. Every entry must be known.
pub(crate) fn encode_full(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_runs(&mut out, entries, |_| true);
    out
}

/// Returns the body of a leaf given as changes to `full`, whose entries are `old`.
pub(crate) fn encode_changes(full: RecordRef, old: &[Entry], entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, u64::from(full.generation));
    put_varint(&mut out, full.offset);
    put_varint(&mut out, u64::from(full.length));
    encode_runs(&mut out, entries, |i| old.get(i) != Some(&entries[i]));
    out
}

/// Returns how many of `entries` differ from `old`.
pub(crate) fn count_changes(old: &[Entry], entries: &[Entry]) -> usize {
    (0..entries.len())
        .filter(|&i| old.get(i) != Some(&entries[i]))
        .count()
}

fn encode_runs(out: &mut Vec<u8>, entries: &[Entry], given: impl Fn(usize) -> bool) {
    put_varint(out, entries.len() as u64);
    let mut runs = Vec::new();
    let mut hashes = Vec::new();
    let (mut count, mut done, mut at) = (0, 0, 0);
    while at < entries.len() {
        if !given(at) {
            at += 1;
            continue;
        }
        let mut end = at + 1;
        while end < entries.len() && given(end) && follows(&entries[at], end - at, &entries[end]) {
            end += 1;
        }
        put_varint(&mut runs, (at - done) as u64);
        let (kind, place) = match entries[at] {
            // The builder refuses unknown entries before it comes here.
            Entry::Hole | Entry::Absent => (HOLE, None),
            Entry::Zero => (ZERO, None),
            Entry::Data {
                place,
                tail_hole: false,
                ..
            } => (DATA, Some(place)),
            Entry::Data { place, .. } => (DATA_TAIL_HOLE, Some(place)),
        };
        runs.push(kind);
        put_varint(&mut runs, (end - at) as u64);
        if let Some(place) = place {
            put_varint(&mut runs, u64::from(place.generation));
            put_varint(&mut runs, u64::from(place.pack));
            put_varint(&mut runs, u64::from(place.frame));
            put_varint(&mut runs, u64::from(place.slot));
        }
        for entry in &entries[at..end] {
            if let Entry::Data { hash, .. } = entry {
                hashes.extend_from_slice(&hash.0);
            }
        }
        count += 1;
        done = end;
        at = end;
    }
    put_varint(out, count);
    out.extend_from_slice(&runs);
    out.extend_from_slice(&hashes);
}

/// Whether `entry`, `distance` blocks after `first`, continues the run that `first` begins.
fn follows(first: &Entry, distance: usize, entry: &Entry) -> bool {
    match (first, entry) {
        (Entry::Hole, Entry::Hole) | (Entry::Zero, Entry::Zero) => true,
        (
            Entry::Data {
                place: a,
                tail_hole: tail_a,
                ..
            },
            Entry::Data {
                place: b,
                tail_hole: tail_b,
                ..
            },
        ) => {
            tail_a == tail_b
                && (a.generation, a.pack, a.frame) == (b.generation, b.pack, b.frame)
                && usize::from(a.slot) + distance == usize::from(b.slot)
        }
        _ => false,
    }
}

/// A leaf as read: complete, or changes to another.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeafBody {
    /// The full leaf that [`Entry::Absent`] entries are taken from.
    pub(crate) full: Option<RecordRef>,
    pub(crate) entries: Vec<Entry>,
}

/// Reads a leaf's body.
pub(crate) fn decode(body: &[u8], is_changes: bool) -> Result<LeafBody, Malformed> {
    let mut fields = Cursor::new(body);
    let full = if is_changes {
        Some(RecordRef {
            generation: fields.small()?,
            offset: fields.varint()?,
            length: fields.small()?,
        })
    } else {
        None
    };
    let count: u16 = fields.small()?;
    if u64::from(count) > FAN_OUT {
        return Err(Malformed);
    }
    let mut entries = vec![Entry::Absent; usize::from(count)];
    let mut data = Vec::new();
    let mut at = 0usize;
    let mut covered = 0usize;
    for _ in 0..fields.varint()? {
        at = at.saturating_add(fields.small()?);
        let kind = fields.u8()?;
        let length: usize = fields.small()?;
        let end = at.saturating_add(length);
        let run = entries.get_mut(at..end).ok_or(Malformed)?;
        // A run of nothing would let the loop above run for as long as a wrong count says.
        if length == 0 {
            return Err(Malformed);
        }
        match kind {
            HOLE => run.fill(Entry::Hole),
            ZERO => run.fill(Entry::Zero),
            DATA | DATA_TAIL_HOLE => {
                let mut place = BlockAddress {
                    generation: fields.small()?,
                    pack: fields.small()?,
                    frame: fields.small()?,
                    slot: fields.small()?,
                };
                for entry in run {
                    *entry = Entry::Data {
                        place,
                        hash: BlockHash([0; 16]),
                        tail_hole: kind == DATA_TAIL_HOLE,
                    };
                    place.slot = place.slot.checked_add(1).ok_or(Malformed)?;
                }
                data.extend(at..end);
            }
            _ => return Err(Malformed),
        }
        covered += length;
        at = end;
    }
    for index in data {
        if let Entry::Data { hash, .. } = &mut entries[index] {
            *hash = BlockHash(fields.array()?);
        }
    }
    fields.end()?;
    if !is_changes && covered != entries.len() {
        return Err(Malformed);
    }
    Ok(LeafBody { full, entries })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry() -> impl Strategy<Value = Entry> {
        let place = (1..4u32, 0..2u32, 0..3u32, 0..300u16);
        prop_oneof![
            Just(Entry::Hole),
            Just(Entry::Zero),
            (place, any::<[u8; 16]>(), any::<bool>()).prop_map(|(place, hash, tail_hole)| {
                Entry::Data {
                    place: BlockAddress {
                        generation: place.0,
                        pack: place.1,
                        frame: place.2,
                        slot: place.3,
                    },
                    hash: BlockHash(hash),
                    tail_hole,
                }
            }),
        ]
    }

    proptest! {
        #[test]
        fn leaves_read_back(
            old in prop::collection::vec(entry(), 0..256),
            new in prop::collection::vec(entry(), 0..256),
            same in prop::collection::vec(any::<bool>(), 256),
        ) {
            let mut new = new;
            for i in 0..new.len().min(old.len()) {
                if same[i] {
                    new[i] = old[i];
                }
            }
            let full = decode(&encode_full(&new), false).unwrap();
            prop_assert_eq!(&full.entries, &new);
            let reference = RecordRef { generation: 2, offset: 1 << 40, length: 77 };
            let mut changes = decode(&encode_changes(reference, &old, &new), true).unwrap();
            prop_assert_eq!(changes.full, Some(reference));
            for (i, entry) in changes.entries.iter_mut().enumerate() {
                if *entry == Entry::Absent {
                    *entry = old[i];
                }
            }
            prop_assert_eq!(changes.entries, new);
        }

        #[test]
        fn nonsense_is_refused_without_harm(body in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&body, false);
            let _ = decode(&body, true);
        }
    }

    #[test]
    fn neighbours_share_a_run() {
        let entries: Vec<Entry> = (0..256)
            .map(|slot| Entry::Data {
                place: BlockAddress {
                    generation: 1,
                    pack: 0,
                    frame: 9,
                    slot,
                },
                hash: BlockHash([1; 16]),
                tail_hole: false,
            })
            .collect();
        let body = encode_full(&entries);
        assert!(body.len() < 256 * 16 + 16, "{}", body.len());
    }
}
