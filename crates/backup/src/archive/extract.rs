//! Archived files, as files again.

use evenkeel_op::own_directory::make_private;
use evenkeel_op::{Context, Error, Result};
use evenkeel_repository::{Location, Repository};
use std::fs;
use std::path::Path;

/// Writes every archived binary log file of one source into a directory that is empty or does not
/// exist, as the server wrote it; of the newest timeline where none is named. Returns their names.
///
/// Errors: `Usage` where several sources are archived and none is named.
pub fn extract(
    repository: &Location,
    source: Option<&str>,
    timeline: Option<&str>,
    into: &Path,
) -> Result<Vec<String>> {
    let logs = Repository::open(repository)?.logs();
    let mut found = logs.timelines(source)?;
    found.retain(|one| timeline.is_none_or(|wanted| wanted == one.id));
    let mut sources: Vec<&str> = found.iter().map(|one| one.source.as_str()).collect();
    sources.dedup();
    if sources.len() > 1 {
        return Err(
            Error::usage("binary logs of several servers are archived here")
                .hint(format!("name one with --source: {}", sources.join(", "))),
        );
    }
    let newest = found
        .last()
        .ok_or_else(|| Error::refused("no such binary log is archived here"))?;
    let failed = || format!("failed to write in {}", into.display());
    let is_empty = match fs::read_dir(into) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        entries => entries.context(failed)?.next().is_none(),
    };
    if !is_empty {
        return Err(
            Error::usage(format!("{} is not empty", into.display())).hint("name a new directory")
        );
    }
    let dir = make_private(into)?;
    let mut names: Vec<String> = Vec::new();
    for segment in &newest.segments {
        let bytes = logs.read(segment)?;
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(dir.anchor().join(&segment.file))
            .context(failed)?;
        std::io::Write::write_all(&mut file, &bytes).context(failed)?;
        if names.last() != Some(&segment.file) {
            names.push(segment.file.clone());
        }
    }
    Ok(names)
}
