//! Which generations should be copied.

use super::request::{Chosen, CopyTo};
use crate::catalog::Catalog;
use crate::crypt::Access;
use crate::crypt::no_key;
use crate::repository::no_generation;
use evenkeel_op::Result;

/// What was made of what was asked for, oldest first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) wanted: Vec<u32>,
    pub(super) present: Vec<u32>,
    pub(super) left_out: Vec<u32>,
}

/// Chooses among the live generations. `has` tells which are there, `newest` the newest of them
/// that is or was there.
pub(super) fn choose(
    source: &Catalog,
    how: &CopyTo,
    newest: Option<u32>,
    has: impl Fn(u32) -> bool,
) -> Result<Choice> {
    let mut live: Vec<u32> = source.head.live.iter().map(|one| one.generation).collect();
    if let Chosen::These(numbers) = &how.chosen {
        if let Some(unknown) = numbers.iter().find(|number| !live.contains(number)) {
            return Err(no_generation(&*source.store, *unknown));
        }
        live.retain(|number| numbers.contains(number));
    }
    if let Some(name) = &how.source {
        if source.keys.access() == Access::Locked {
            return Err(no_key());
        }
        source.prepare(live.iter().copied());
        let mut own = Vec::new();
        for number in live {
            if source.generation(number)?.manifest.source == *name {
                own.push(number);
            }
        }
        live = own;
    }
    if let Chosen::Latest(count) = how.chosen {
        live.drain(..live.len().saturating_sub(count as usize));
    }
    let mut choice = Choice::default();
    for number in live {
        let is_old = how.chosen == Chosen::New && newest.is_some_and(|newest| number <= newest);
        match (has(number), is_old) {
            (true, _) => choice.present.push(number),
            (false, true) => choice.left_out.push(number),
            (false, false) => choice.wanted.push(number),
        }
    }
    Ok(choice)
}
