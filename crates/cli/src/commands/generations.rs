//! `generations`.

use crate::args::Generations;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{
    DamagedGeneration, GenerationAnswer, GenerationsAnswer, ListedGeneration,
};
use evenkeel_backup::facts::{Facts, report_of};
use evenkeel_op::{Result, exit};
use evenkeel_repository::{Repository, Summary};

/// Runs the command.
pub fn run(args: &Generations, ui: &Ui) -> Result<u8> {
    let repository = Repository::open(settings::unlock(
        ui.repository(&args.repository)?,
        &args.keys,
        "generations",
        ui.cancel(),
    )?)?;
    let summaries = repository.generations()?;
    match args.generation {
        None => list(&repository, &summaries, ui),
        Some(number) => one(&repository, number, &summaries, ui),
    }
}

/// Lists what can be read. What cannot is named, and is no reason to hide the others.
fn list(repository: &Repository, summaries: &[Summary], ui: &Ui) -> Result<u8> {
    let mut generations = Vec::new();
    let mut damaged = Vec::new();
    for summary in summaries {
        match listed(repository, summary) {
            Ok(one) => generations.push(one),
            Err(error) => damaged.push(DamagedGeneration {
                generation: summary.generation,
                damage: error.chain(),
            }),
        }
    }
    let code = match damaged.is_empty() {
        true => exit::DONE,
        false => exit::PARTIAL,
    };
    ui.answer(&GenerationsAnswer {
        generations,
        damaged,
    });
    Ok(code)
}

fn one(repository: &Repository, number: u32, summaries: &[Summary], ui: &Ui) -> Result<u8> {
    let manifest = repository.manifest(number)?;
    let facts = Facts::of(&manifest)?;
    let mut summaries = summaries.iter();
    // `manifest` has refused a number that does not exist.
    if let Some(summary) = summaries.find(|summary| summary.generation == number) {
        ui.answer(&GenerationAnswer {
            listed: listed(repository, summary)?,
            server_version: facts.server_version,
            roots: facts.roots,
            settings: facts.settings,
            corrupt: facts.corrupt,
        });
    }
    Ok(exit::DONE)
}

fn listed(repository: &Repository, summary: &Summary) -> Result<ListedGeneration> {
    let manifest = repository.manifest(summary.generation)?;
    Ok(ListedGeneration {
        created: second(manifest.created),
        proven: summary.proven.as_ref().map(|proof| second(proof.at)),
        report: report_of(&manifest)?,
        sealed: Facts::are_sealed(&manifest),
    })
}

/// A time to the second, in UTC.
fn second(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
