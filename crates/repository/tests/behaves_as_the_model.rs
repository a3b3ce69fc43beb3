//! Does any mixture of writing, backing up, forgetting, pruning and restoring give back what was
//! there?

mod support;

use evenkeel_repository::{Repository, RunKind};
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::memory::MemoryStore;
use support::way::Way;
use support::{
    Block, Model, ModelFile, assert_sound, back_up, back_up_streamed, check, forget, prune,
};

#[derive(Debug, Clone)]
enum Step {
    Create {
        file: u8,
        blocks: u16,
        size_log: u8,
    },
    CreateSparse {
        file: u8,
        blocks: u32,
    },
    Write {
        file: u8,
        at: u32,
        count: u16,
        seed: u64,
    },
    Set {
        file: u8,
        at: u32,
        block: Block,
    },
    Resize {
        file: u8,
        size: u32,
        seed: u64,
    },
    Rename {
        file: u8,
        to: u8,
    },
    Drop {
        file: u8,
    },
    BackUp {
        only_changes: bool,
    },
    BackUpFull,
    BackUpStreamed,
    BackUpAgainst {
        which: u8,
        only_changes: bool,
    },
    Forget {
        which: u8,
        count: u8,
    },
    Prune {
        live_share_min: f64,
    },
    Verify,
    Restore {
        which: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let file = || 0..4u8;
    let block = prop_oneof![
        Just(Block::Hole),
        Just(Block::Bytes(0)),
        (any::<u64>(), 1..500usize).prop_map(|(seed, front)| Block::Front(seed | 1, front)),
    ];
    prop_oneof![
        3 => (file(), 0..700u16, 9..12u8)
            .prop_map(|(file, blocks, size_log)| Step::Create { file, blocks, size_log }),
        1 => (file(), 65_000..66_500u32).prop_map(|(file, blocks)| Step::CreateSparse { file, blocks }),
        6 => (file(), any::<u32>(), 1..90u16, any::<u64>())
            .prop_map(|(file, at, count, seed)| Step::Write { file, at, count, seed: seed | 1 }),
        3 => (file(), any::<u32>(), block).prop_map(|(file, at, block)| Step::Set { file, at, block }),
        3 => (file(), 0..400_000u32, any::<u64>(), any::<bool>())
            .prop_map(|(file, size, seed, whole)| Step::Resize { file, size: if whole { size & !4095 } else { size }, seed: seed | 1 }),
        1 => (file(), file()).prop_map(|(file, to)| Step::Rename { file, to }),
        1 => file().prop_map(|file| Step::Drop { file }),
        6 => any::<bool>().prop_map(|only_changes| Step::BackUp { only_changes }),
        1 => Just(Step::BackUpFull),
        3 => Just(Step::BackUpStreamed),
        2 => (any::<u8>(), any::<bool>())
            .prop_map(|(which, only_changes)| Step::BackUpAgainst { which, only_changes }),
        2 => (any::<u8>(), 1..4u8).prop_map(|(which, count)| Step::Forget { which, count }),
        2 => (0.0..1.0f64).prop_map(|live_share_min| Step::Prune { live_share_min }),
        1 => Just(Step::Verify),
        1 => any::<u8>().prop_map(|which| Step::Restore { which }),
    ]
}

struct World {
    repo: Repository,
    now: Model,
    generations: BTreeMap<u32, Model>,
}

impl World {
    fn file(&mut self, file: u8) -> Option<&mut ModelFile> {
        self.now
            .get_mut(&name(file))
            .filter(|file| !file.blocks.is_empty())
    }

    fn pick(&self, which: u8) -> Option<u32> {
        let count = self.generations.len().max(1);
        self.generations
            .keys()
            .nth(usize::from(which) % count)
            .copied()
    }

    fn back_up(&mut self, kind: RunKind, base: Option<u32>, only_changes: bool) {
        let before = base
            .filter(|_| only_changes)
            .map(|base| &self.generations[&base]);
        let done = back_up(&self.repo, kind, &self.now, before).unwrap();
        assert_eq!(done.based_on, base);
        self.generations.insert(done.generation, self.now.clone());
    }

    fn apply(&mut self, step: &Step) {
        match step.clone() {
            Step::Create {
                file,
                blocks,
                size_log,
            } => {
                let size = (u64::from(blocks) << size_log) / 3;
                let new = ModelFile::new(1 << size_log, size, u64::from(blocks));
                self.now.insert(name(file), new);
            }
            Step::CreateSparse { file, blocks } => {
                let mut new = ModelFile::new(512, u64::from(blocks) * 512 - 100, 3);
                new.blocks.fill(Block::Hole);
                self.now.insert(name(file), new);
            }
            Step::Write {
                file,
                at,
                count,
                seed,
            } => {
                if let Some(file) = self.file(file) {
                    let at = at as usize % file.blocks.len();
                    let end = (at + usize::from(count)).min(file.blocks.len());
                    for (i, block) in file.blocks[at..end].iter_mut().enumerate() {
                        *block = Block::Bytes(seed.wrapping_add(2 * i as u64));
                    }
                }
            }
            Step::Set { file, at, block } => {
                if let Some(file) = self.file(file) {
                    let at = at as usize % file.blocks.len();
                    file.blocks[at] = block;
                }
            }
            Step::Resize { file, size, seed } => {
                if let Some(file) = self.now.get_mut(&name(file)) {
                    file.resize(u64::from(size), seed);
                }
            }
            Step::Rename { file, to } => {
                if let Some(moved) = self.now.remove(&name(file)) {
                    self.now.insert(name(to), moved);
                }
            }
            Step::Drop { file } => {
                self.now.remove(&name(file));
            }
            repository => self.apply_to_repository(&repository),
        }
    }

    fn apply_to_repository(&mut self, step: &Step) {
        match step.clone() {
            Step::BackUp { only_changes } => {
                let base = self.generations.keys().last().copied();
                self.back_up(RunKind::Incremental, base, only_changes);
            }
            Step::BackUpFull => self.back_up(RunKind::Full, None, false),
            Step::BackUpStreamed => {
                let done = back_up_streamed(&self.repo, RunKind::Incremental, &self.now).unwrap();
                self.generations.insert(done.generation, self.now.clone());
            }
            Step::BackUpAgainst {
                which,
                only_changes,
            } => {
                if let Some(base) = self.pick(which) {
                    self.back_up(RunKind::Against(base), Some(base), only_changes);
                }
            }
            Step::Forget { which, count } => {
                for _ in 0..count {
                    if let Some(gone) = self.pick(which) {
                        forget(&self.repo, &[gone]).unwrap();
                        self.generations.remove(&gone);
                    }
                }
            }
            Step::Prune { live_share_min } => {
                prune(&self.repo, live_share_min).unwrap();
            }
            Step::Verify => assert_sound(&self.repo),
            Step::Restore { which } => {
                if let Some(generation) = self.pick(which) {
                    check(&self.repo, generation, &self.generations[&generation]).unwrap();
                }
            }
            files => unreachable!("{files:?} was applied to the files"),
        }
    }
}

fn name(file: u8) -> String {
    format!("data/{file}.ibd")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_generation_stays_what_it_was(
        steps in prop::collection::vec(step(), 1..50),
        way in prop_oneof![Just(Way::Plain), Just(Way::Sealed)],
    ) {
        let store = MemoryStore::default();
        let repo = way.create(store.clone()).unwrap();
        let mut world = World { repo, now: Model::new(), generations: BTreeMap::new() };
        for step in &steps {
            world.apply(step);
        }
        for (generation, model) in &world.generations {
            check(&world.repo, *generation, model).unwrap();
        }
        assert_sound(&world.repo);
        // With everything forgotten and pruned nothing is left.
        let all: Vec<u32> = world.generations.keys().copied().collect();
        forget(&world.repo, &all).unwrap();
        prune(&world.repo, 0.5).unwrap();
        let left: Vec<String> = store.objects().into_keys().collect();
        let expected: &[&str] = match way {
            Way::Plain => &["head", "repository"],
            Way::Sealed => &["head", "keys", "keys.copy", "repository"],
        };
        prop_assert_eq!(left, expected);
    }
}
