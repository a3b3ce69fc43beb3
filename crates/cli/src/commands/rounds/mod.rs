//! `replay --rounds`: the same capture again and again, on one server or on two variants in turn.

mod others;
mod server;
mod variables;

use super::digest::about;
use super::page_file::PageFile;
use super::replay::{choice, open, options, planned};
use crate::args;
use crate::show::Ui;
use crate::show::answers::{RoundsAnswer, RoundsPlanAnswer};
use evenkeel_op::{Error, Result, Run, exit};
use evenkeel_traffic::replay::rounds::{self, Rounds};
use evenkeel_traffic::replay::{self, Plan};
use server::RoundServer;
pub use server::RoundServerPlan;

/// Runs the command.
pub(super) fn run(args: &args::Replay, count: usize, ui: &Ui) -> Result<u8> {
    let wanted = &args.rounds;
    if wanted.baseline.is_none() && !args.read_only {
        return Err(Error::usage(
            "each round of writes would find what the round before has written",
        )
        .hint("name the state to begin with: --baseline NAME; evenkeel baseline save saves one")
        .hint("or replay only what reads: --read-only"));
    }
    let choice = choice(args)?;
    let mut grounds = RoundServer::all(args, ui)?;
    if wanted.baseline.is_some() && !wanted.execute {
        let plans = grounds
            .iter()
            .map(RoundServer::plan)
            .collect::<Result<_>>()?;
        refuse_one_server(&grounds)?;
        ui.answer(&RoundsPlanAnswer::new(count, plans));
        return Ok(exit::DONE);
    }
    for ground in &mut grounds {
        ground.check(ui)?;
    }
    refuse_one_server(&grounds)?;
    let input = open(args, ui)?;
    let taken = std::iter::once(&args.file);
    let html = args.html.as_deref();
    let html = html.map(|path| PageFile::begin(path, taken)).transpose()?;
    let (file, plan) = planned(args, choice, input, ui)?;
    let is_whole = file.is_whole();
    let options = options(args);
    let run = Run {
        progress: ui.progress(),
        cancel: ui.cancel(),
    };
    let variants = grounds.len();
    let rounds = rounds::rounds(&plan, count, variants, |turn| {
        ui.note(&format!(
            "round {} of {count}, variant {}",
            turn.round,
            turn.letter()
        ));
        grounds[turn.variant].once(turn, run, |connect| {
            replay::play(&plan, connect, &options, run)
        })
    })?;
    let names: Vec<String> = grounds.iter().map(RoundServer::name).collect();
    let top = usize::from(args.top);
    let page = html.map(|html| {
        let page = rounds::page(&plan, &rounds, &names, top, about());
        (html, page.to_html())
    });
    let code = code(&plan, &rounds, is_whole);
    let states = states(&grounds, &rounds);
    ui.answer(&RoundsAnswer::new(file, &plan, &rounds, names, states, top));
    if let Some((html, page)) = page {
        html.write(&page)?;
    }
    Ok(code)
}

/// Refuses variants that are called differently and are one server.
fn refuse_one_server(grounds: &[RoundServer]) -> Result<()> {
    match grounds {
        [first, second] => second.refuse_the_same(first),
        _ => Ok(()),
    }
}

/// Says what each data directory has now. Two variants of one server have one: that of the last run.
fn states(grounds: &[RoundServer], rounds: &Rounds) -> Vec<String> {
    let last = rounds.turns.last().map(|turn| turn.variant);
    let is_shared = grounds.iter().any(RoundServer::shares_the_server);
    let all = grounds.iter().enumerate();
    let all = all.filter(|(variant, _)| !is_shared || Some(*variant) == last);
    all.filter_map(|(_, ground)| ground.state_at_end())
        .collect()
}

fn code(plan: &Plan, rounds: &Rounds, is_whole: bool) -> u8 {
    let differ = rounds.differences() > 0 || rounds.other_results().next().is_some();
    let is_all = is_whole && rounds.lost == 0 && plan.left.is_empty();
    match (differ, is_all) {
        (true, _) => exit::DIFFERS,
        (false, false) => exit::PARTIAL,
        (false, true) => exit::DONE,
    }
}
