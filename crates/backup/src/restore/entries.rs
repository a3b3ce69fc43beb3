//! Directories and links of restored files.

use super::names;
use super::places::Places;
use super::plan::Plan;
use super::staging::Staging;
use crate::facts::Facts;
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Result};
use evenkeel_repository::FileKind;
use std::fs;
use std::path::{Path, PathBuf};

/// Creates a directory; an existing one is the root itself.
pub(crate) fn make_dir(path: &Path) -> Result<()> {
    fs::create_dir_all(path).context(|| format!("failed to create {}", shown(path).display()))
}

/// Where the roots of a generation are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// Where they were backed up.
    Source,
    /// Where they are written, until they are shown.
    Staged,
    /// Where they will be.
    Target,
}

impl Where {
    fn of(self, plan: &Plan, id: &str) -> Option<PathBuf> {
        match self {
            Self::Source => plan.facts.roots.get(id).map(PathBuf::from),
            Self::Staged => Some(plan.roots.get(id)?.place().to_owned()),
            Self::Target => Some(plan.roots.get(id)?.target().to_owned()),
        }
    }
}

/// Points `.isl` files, indexes of logs and links of schemas, which lead to where the roots are `from`,
/// at where they are then.
pub(super) fn relink(plan: &Plan, from: Where, to: Where) -> Result<()> {
    let places = places(plan, from, to)?;
    for record in plan.reader.files() {
        let record = record?;
        if record.meta.kind == FileKind::File && names_places(&record.meta.name, &plan.facts)? {
            let (staging, relative) = names::place(&plan.roots, &record.meta.name)?;
            places.repoint(&staging.path(&relative))?;
        }
    }
    let data = plan.roots.get(super::DATA).map(Staging::dir);
    let places = plan.roots.iter().map(|(id, staging)| match to {
        Where::Staged => (id.as_str(), staging.place()),
        Where::Source | Where::Target => (id.as_str(), staging.target()),
    });
    let again = from != Where::Source;
    data.map_or(Ok(()), |data| link_schemas(data, places, again))
}

/// Pairs the places of the roots. Where they were there may have been links to them, so that files are
/// also known by their names.
fn places(plan: &Plan, from: Where, to: Where) -> Result<Places> {
    let ids = plan.facts.roots.keys();
    let mut places =
        Places::new(ids.filter_map(|id| Some((id.clone(), from.of(plan, id)?, to.of(plan, id)?))));
    if from == Where::Source && plan.roots.len() > 1 {
        for record in plan.reader.files() {
            let record = record?;
            let (id, _) = names::split(&record.meta.name)?;
            if let Some(root) = to.of(plan, id).filter(|_| id != super::DATA) {
                places.know(&record.meta.name, &root)?;
            }
        }
    }
    Ok(places)
}

/// Makes the links of schemas that lie elsewhere, in the data directory `data`; `again` when they are
/// there and lead to other places.
pub(crate) fn link_schemas<'a>(
    data: &Path,
    roots: impl Iterator<Item = (&'a str, &'a Path)>,
    again: bool,
) -> Result<()> {
    for (id, place) in roots {
        if let Some(schema) = id.strip_prefix("schema-") {
            let link = data.join(schema);
            if again {
                fs::remove_file(&link)
                    .context(|| format!("failed to move {}", shown(&link).display()))?;
            }
            std::os::unix::fs::symlink(place, &link)
                .context(|| format!("failed to create the link {}", shown(&link).display()))?;
        }
    }
    Ok(())
}

/// Whether a file of a generation holds paths of its server's files.
pub(crate) fn names_places(name: &str, facts: &Facts) -> Result<bool> {
    let (_, relative) = names::split(name)?;
    Ok(names::has_extension(&relative, "isl") || is_log_index(&relative, facts))
}

/// Whether a file lists binary or relay logs. A server that found the old paths in it would read,
/// and purge, the logs of the server that was backed up.
fn is_log_index(relative: &Path, facts: &Facts) -> bool {
    let named = |setting: &str| {
        let path = facts.settings.get(setting).map(Path::new);
        path.and_then(Path::file_name)
            .is_some_and(|name| relative.as_os_str() == name)
    };
    let on_top = relative.components().count() == 1;
    on_top && names::has_extension(relative, "index")
        || named("log_bin_index")
        || named("relay_log_index")
}
