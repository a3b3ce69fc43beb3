//! The rules of the house that a machine can check.

mod circles;
mod code;
mod columns;
mod files;
mod flavours;
mod layers;
mod links;
mod text;
mod type_names;
mod words;

pub use files::Tracked;
#[cfg(test)]
pub(crate) use files::tracked;

use anyhow::{Result, bail};
use std::path::Path;

/// Checks every rule on the checkout at `root`; the error lists all violations.
pub fn check(root: &Path) -> Result<()> {
    let found = violations(root)?;
    if !found.is_empty() {
        bail!(
            "{} rule(s) of the house broken:\n{}",
            found.len(),
            found.join("\n")
        );
    }
    Ok(())
}

/// Returns a table of the circles of modules in each crate; or of one crate, who uses what of whom in the large ones.
pub fn circles(root: &Path, name: Option<&str>) -> Result<String> {
    circles::table(&files::tracked(root)?, name)
}

/// Returns every violation as `path:line: what is wrong`.
pub fn violations(root: &Path) -> Result<Vec<String>> {
    let files = files::tracked(root)?;
    let mut found = layers::check(&layers::metadata(root)?);
    found.extend(circles::check(&files));
    found.extend(files::check_style(&files));
    for file in &files {
        found.extend(files::check_name(&file.path));
        let Some(text) = &file.text else { continue };
        found.extend(text::check(&file.path, text));
        found.extend(words::check(&file.path, text));
        found.extend(columns::check(&file.path, text));
        if file.path.ends_with(".rs") {
            found.extend(code::check(&file.path, text));
            found.extend(flavours::check(&file.path, text));
            found.extend(type_names::check(&file.path, text));
        }
        if file.path.ends_with(".md") {
            found.extend(links::check(root, &file.path, text));
        }
    }
    found.extend(crate::sabotage::check(root));
    found.sort();
    Ok(found)
}
