//! `forget`.

use super::waiting;
use crate::args::{Forget as Typed, KeepRules as TypedRules};
use crate::show::Ui;
use crate::show::answers::ForgetAnswer;
use evenkeel_backup::facts::Facts;
use evenkeel_op::{Error, Result, exit};
use evenkeel_repository::{Forget, KeepRules, Repository};
use std::collections::BTreeSet;
use std::time::Duration;

/// Runs the command.
pub fn run(args: &Typed, ui: &Ui) -> Result<u8> {
    waiting::for_others(&args.waiting, ui, || forget(args, ui))
}

fn forget(args: &Typed, ui: &Ui) -> Result<u8> {
    let repository = Repository::open(ui.repository(&args.repository)?)?;
    let what = match args.generation.as_slice() {
        [] => {
            let mut rules = rules(&args.keep, &repository)?;
            if let Some(sound) = newest_sound(&repository)? {
                rules.these.insert(sound);
                ui.note(&format!(
                    "generation {sound} is kept in any case: all later generations have corrupt pages"
                ));
            }
            Forget::Except(rules)
        }
        numbers => Forget::These(numbers.to_vec()),
    };
    let plan = repository.plan_forget(&what, false)?;
    if args.execute {
        repository.perform_forget(&plan, Duration::ZERO)?;
    }
    ui.answer(&ForgetAnswer::new(&plan, args.execute));
    Ok(exit::DONE)
}

/// Refuses rules that were given and keep nothing.
pub(super) fn refuse_nothing(typed: &TypedRules) -> Result<()> {
    let numbers = [
        typed.keep_last,
        typed.keep_hourly,
        typed.keep_daily,
        typed.keep_weekly,
        typed.keep_monthly,
        typed.keep_yearly,
    ];
    let keeps = typed.keep_within.is_some() || numbers.iter().flatten().any(|number| *number > 0);
    match typed.is_any() && !keeps {
        true => Err(nothing_to_keep()),
        false => Ok(()),
    }
}

fn nothing_to_keep() -> Error {
    Error::usage("no keep rule was given")
        .hint("give keep rules, for example --keep-daily 7 --keep-weekly 5")
}

/// Turns what was typed into rules; it is an error when nothing was.
pub(super) fn rules(typed: &TypedRules, repository: &Repository) -> Result<KeepRules> {
    let number = |value: Option<usize>| value.map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX));
    let rules = KeepRules {
        last: number(typed.keep_last),
        hourly: number(typed.keep_hourly),
        daily: number(typed.keep_daily),
        weekly: number(typed.keep_weekly),
        monthly: number(typed.keep_monthly),
        yearly: number(typed.keep_yearly),
        these: match typed.keep_within {
            Some(within) => younger(repository, within)?,
            None => BTreeSet::new(),
        },
        time_zone: jiff::tz::TimeZone::system(),
    };
    let none = KeepRules {
        time_zone: rules.time_zone.clone(),
        ..KeepRules::default()
    };
    if rules == none && typed.keep_within.is_none() {
        return Err(nothing_to_keep().hint("or name generations to forget with --generation N"));
    }
    Ok(rules)
}

/// Returns the newest generation without corrupt pages, where newer ones have some: it may be the last that
/// those pages can be healed from.
fn newest_sound(repository: &Repository) -> Result<Option<u32>> {
    let generations = repository.generations()?;
    for (newer, one) in generations.iter().rev().enumerate() {
        let Ok(manifest) = repository.manifest(one.generation) else {
            continue;
        };
        if Facts::of(&manifest)?.pages_corrupt == 0 {
            return Ok((newer > 0).then_some(one.generation));
        }
    }
    Ok(None)
}

/// Returns the generations made within a time from now.
fn younger(repository: &Repository, within: Duration) -> Result<BTreeSet<u32>> {
    let since = jiff::Timestamp::now()
        .checked_sub(within)
        .map_err(|error| Error::usage("--keep-within goes too far back in time").because(error))?;
    let young = |created: jiff::Timestamp| created >= since;
    Ok(repository
        .generations()?
        .iter()
        .filter(|one| one.about.as_ref().is_none_or(|about| young(about.created)))
        .map(|one| one.generation)
        .collect())
}
