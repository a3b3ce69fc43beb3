//! Forgets generations: from then on they cannot be restored. Their blocks stay until a prune
//! finds that nobody needs them.

use crate::fault::{not_forgotten, refused};
use crate::head::{Head, Live};
use crate::heal;
use crate::keep::{KeepRules, reasons};
use crate::locks;
use crate::manifest::GenerationRef;
use crate::names::{self, FILES};
use crate::repository::{Repository, Summary, no_generation};
use crate::store::Store;
use evenkeel_op::{Error, ErrorKind, Result};
use std::time::Duration;

/// What to forget.
#[derive(Debug, Clone)]
pub enum Forget {
    /// Whatever no rule keeps.
    Except(KeepRules),
    /// These, by number.
    These(Vec<u32>),
}

/// What forgetting would do.
#[derive(Debug)]
pub struct ForgetPlan {
    /// Generations that stay, and which rules keep them.
    pub keep: Vec<(Summary, Vec<String>)>,
    /// Generations that go.
    pub remove: Vec<Summary>,
    /// Bytes freed at once; blocks follow with a prune.
    pub bytes_freed: u64,
    sequence: u64,
}

impl Repository {
    /// Plans to forget generations. It is an error if none would be left, unless `allow_all`.
    pub fn plan_forget(&self, what: &Forget, allow_all: bool) -> Result<ForgetPlan> {
        let sequence = self.head()?.sequence;
        let all = self.generations()?;
        let kept = match what {
            Forget::Except(rules) => {
                let times = all.iter().map(|one| {
                    let created = one.about.as_ref().map(|about| about.created);
                    (one.generation, created)
                });
                reasons(rules, &times.collect::<Vec<_>>())
            }
            Forget::These(numbers) => {
                let unknown = numbers
                    .iter()
                    .find(|number| all.iter().all(|one| one.generation != **number));
                if let Some(number) = unknown {
                    return Err(no_generation(&**self.store(), *number));
                }
                let others = all.iter().map(|one| one.generation);
                let others = others.filter(|number| !numbers.contains(number));
                others.map(|number| (number, Vec::new())).collect()
            }
        };
        let (keep, remove): (Vec<Summary>, Vec<Summary>) = all
            .into_iter()
            .partition(|one| kept.contains_key(&one.generation));
        if keep.is_empty() && !remove.is_empty() && !allow_all {
            return Err(Error::usage("this would forget every generation")
                .hint("keep at least one, for example the newest"));
        }
        let keep = keep
            .into_iter()
            .map(|one| {
                let why = kept.get(&one.generation).cloned();
                (one, why.unwrap_or_default())
            })
            .collect();
        let mut bytes_freed = 0;
        for one in &remove {
            let name = names::object(one.generation, FILES);
            // A damaged generation may lack it; that is no reason to keep it.
            bytes_freed += self.store().open(&name).map_or(0, |object| object.size());
        }
        Ok(ForgetPlan {
            keep,
            remove,
            bytes_freed,
            sequence,
        })
    }

    /// Forgets what the plan says. Busy if the repository has changed since it was made.
    pub fn perform_forget(&self, plan: &ForgetPlan, wait: Duration) -> Result<()> {
        let store = self.store();
        let _locks = locks::remover(&**store, wait)?;
        let mut head = self.head()?;
        check_sequence(&head, plan.sequence)?;
        let healed = heal::heal(store, self.id(), self.keys(), &mut head)?;
        healed.check_known(&**store)?;
        let mut kept = healed.refused;
        if plan.remove.is_empty() {
            return Ok(());
        }
        let goes = |number: u32| plan.remove.iter().any(|one| one.generation == number);
        let (gone, live) = head.live.drain(..).partition(|live| goes(live.generation));
        head.live = live;
        head.retired.extend(gone.iter().map(|live| GenerationRef {
            generation: live.generation,
            manifest: live.manifest,
        }));
        head.retired.sort_by_key(|one| one.generation);
        head.write(&**store)?;
        let mut stay = Vec::new();
        for live in gone {
            let (before, folder) = (kept.len(), names::folder(live.generation));
            let name = names::object(live.generation, FILES);
            heal::remove_if_allowed(&**store, &name, &mut kept)?;
            heal::sync(&**store, &folder)?;
            if kept.len() > before {
                stay.push(live);
            }
        }
        match (stay.is_empty(), kept.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => Err(refused(&kept)),
            (false, _) => Err(take_back(&mut head, stay, &**store)?),
        }
    }
}

/// Puts back into the head what the store does not let go: a generation whose `files` is there was not
/// forgotten. Returns the error that says so.
fn take_back(head: &mut Head, stay: Vec<Live>, store: &dyn Store) -> Result<Error> {
    let numbers: Vec<u32> = stay.iter().map(|live| live.generation).collect();
    head.retired
        .retain(|one| !numbers.contains(&one.generation));
    head.live.extend(stay);
    head.live.sort_by_key(|live| live.generation);
    head.write(store)?;
    Ok(not_forgotten(&numbers))
}

/// Fails if the head is not the one a plan was made for.
pub(crate) fn check_sequence(head: &Head, sequence: u64) -> Result<()> {
    if head.sequence == sequence {
        return Ok(());
    }
    Err(changed())
}

/// Makes the error for a plan that was made for another state of the repository.
pub(crate) fn changed() -> Error {
    Error::new(
        ErrorKind::Busy,
        "the repository has changed since the plan was made",
    )
    .hint("run the command again")
}
