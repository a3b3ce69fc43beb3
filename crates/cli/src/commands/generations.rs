//! `generations`.

use crate::args::Generations;
use crate::settings;
use crate::show::Face;
use crate::show::answers::{GenerationAnswer, GenerationsAnswer, ListedGeneration};
use evenkeel_backup::facts::{Facts, report_of};
use evenkeel_op::{Result, exit};
use evenkeel_repository::{Repository, Summary};

/// Runs the command.
pub fn run(args: &Generations, face: &Face) -> Result<u8> {
    let repository = Repository::open(settings::unlock(
        face.repository(&args.repository)?,
        &args.keys,
        "generations",
    )?)?;
    let summaries = repository.generations()?;
    let listed = |summary: &Summary| listed(&repository, summary);
    match args.generation {
        None => {
            let generations = summaries.iter().map(listed).collect::<Result<Vec<_>>>()?;
            face.answer(&GenerationsAnswer { generations });
        }
        Some(number) => {
            let manifest = repository.manifest(number)?;
            let facts = Facts::of(&manifest)?;
            let summary = summaries
                .iter()
                .find(|summary| summary.generation == number);
            // `manifest` has refused a number that does not exist.
            if let Some(summary) = summary {
                face.answer(&GenerationAnswer {
                    listed: listed(summary)?,
                    server_version: facts.server_version,
                    roots: facts.roots,
                    settings: facts.settings,
                    corrupt: facts.corrupt,
                });
            }
        }
    }
    Ok(exit::DONE)
}

fn listed(repository: &Repository, summary: &Summary) -> Result<ListedGeneration> {
    let manifest = repository.manifest(summary.generation)?;
    Ok(ListedGeneration {
        created: second(manifest.created),
        proven: summary.proven.as_ref().map(|proof| second(proof.at)),
        report: report_of(&manifest)?,
    })
}

/// A time to the second, in UTC.
fn second(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
