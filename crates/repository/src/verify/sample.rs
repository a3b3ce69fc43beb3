//! Which of the content a sampled verify reads.

use crate::catalog::Catalog;
use crate::format::header::ObjectKind;
use crate::map::BlockAddress;
use evenkeel_op::Result;
use serde::Serialize;

/// How much of the content is read. What describes it is read in any case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sample {
    /// About this share of it, 0 to 1; the seed decides which.
    Share {
        /// The share.
        share: f64,
        /// Repeats the choice.
        seed: u64,
    },
    /// About so many stored bytes of it; the seed decides which.
    Bytes {
        /// How many.
        bytes: u64,
        /// Repeats the choice.
        seed: u64,
    },
    /// One of so many parts, of about the same size: all of them together are everything. A frame
    /// stays in its part.
    Part {
        /// Which, from 1.
        part: u32,
        /// How many there are.
        of: u32,
    },
}

/// What a sampled verify looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SampleReport {
    /// The share of the content that had to be read, 0 to 1.
    pub share: f64,
    /// With `--seed` and this number the same is read again.
    pub seed: Option<u64>,
    /// Which part was read.
    pub part: Option<u32>,
    /// Of how many.
    pub parts: Option<u32>,
    /// Bytes of content that were looked at.
    pub bytes_checked: u64,
    /// Bytes of content that there are.
    pub bytes_total: u64,
}

/// Neighbours that are taken or left together: stores are read in pieces of some MiB.
const TOGETHER: u32 = 4;

impl Sample {
    /// Turns a number of bytes into a share of what is there.
    pub(super) fn of_all(self, catalog: &Catalog, generation: Option<u32>) -> Result<Self> {
        let Self::Bytes { bytes, seed } = self else {
            return Ok(self);
        };
        let generations: Vec<u32> = match generation {
            None => catalog
                .head
                .known()
                .iter()
                .map(|one| one.generation)
                .collect(),
            Some(one) => {
                let known = catalog.generation(one)?;
                let older = known
                    .manifest
                    .references
                    .iter()
                    .map(|older| older.generation);
                let older = older.filter(|older| catalog.head.manifest(*older).is_some());
                older.chain([one]).collect()
            }
        };
        let mut total = 0;
        for generation in generations {
            // What cannot be read is in the findings.
            if let Ok(known) = catalog.generation(generation) {
                let packs = known
                    .objects
                    .iter()
                    .filter(|((kind, _), _)| *kind == ObjectKind::Pack);
                total += packs.map(|(_, pack)| pack.info.size).sum::<u64>();
            }
        }
        let share = (bytes as f64 / total.max(1) as f64).min(1.0);
        Ok(Self::Share { share, seed })
    }

    /// Whether the frame of a place should be read.
    pub(super) fn has(self, place: &BlockAddress) -> bool {
        let draw = |seed: u64| {
            let mut hasher = blake3::Hasher::new();
            hasher.update(&seed.to_le_bytes());
            for number in [place.generation, place.pack, place.frame / TOGETHER] {
                hasher.update(&number.to_le_bytes());
            }
            let mut first = [0; 8];
            first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
            u64::from_le_bytes(first)
        };
        match self {
            Self::Share { share, seed } => {
                ((draw(seed) >> 11) as f64) < share * (1u64 << 53) as f64
            }
            // Resolved before.
            Self::Bytes { .. } => true,
            Self::Part { part, of } => draw(0) % u64::from(of.max(1)) + 1 == u64::from(part),
        }
    }

    pub(super) fn report(self, bytes_checked: u64, bytes_total: u64) -> SampleReport {
        let (share, seed, part) = match self {
            Self::Share { share, seed } => (share, Some(seed), None),
            Self::Bytes { seed, .. } => (1.0, Some(seed), None),
            Self::Part { part, of } => (1.0 / f64::from(of.max(1)), None, Some((part, of))),
        };
        SampleReport {
            share,
            seed,
            part: part.map(|(part, _)| part),
            parts: part.map(|(_, of)| of),
            bytes_checked,
            bytes_total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> impl Iterator<Item = BlockAddress> {
        (0..40_000u32).map(|number| BlockAddress {
            generation: 1 + number / 10_000,
            pack: number / 1_000 % 10,
            frame: number % 1_000,
            slot: 0,
        })
    }

    fn count(sample: Sample) -> usize {
        places().filter(|place| sample.has(place)).count()
    }

    #[test]
    fn each_frame_is_in_one_part() {
        let of = 30;
        let parts: Vec<usize> = (1..=of)
            .map(|part| count(Sample::Part { part, of }))
            .collect();
        assert_eq!(parts.iter().sum::<usize>(), 40_000);
        assert!(
            parts.iter().all(|part| (800..2_000).contains(part)),
            "{parts:?}"
        );
    }

    #[test]
    fn a_seed_chooses_a_share() {
        let share = |share, seed| Sample::Share { share, seed };
        let tenth = count(share(0.1, 7));
        assert!((3_000..5_000).contains(&tenth), "{tenth}");
        assert_eq!((count(share(0.0, 7)), count(share(1.0, 7))), (0, 40_000));
        let both = |place: &BlockAddress| share(0.1, 7).has(place) && share(0.1, 8).has(place);
        assert!(places().filter(both).count() < tenth / 3);
    }
}
