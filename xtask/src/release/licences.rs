//! The licences of what the program is built of, which its packages have to hold.

use crate::cargo;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The systems that it is built for.
const TARGET: &str = "x86_64-unknown-linux-gnu";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    /// Where it came from; nowhere, when it is ours.
    source: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Need>,
}

#[derive(Deserialize)]
struct Need {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

/// Returns the text: who has which licence, and what the licences say, each once.
pub(super) fn of(root: &Path, product: &str) -> Result<String> {
    let reported = cargo()
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            TARGET,
        ])
        .current_dir(root)
        .output()
        .context("failed to run cargo metadata")?;
    let why = String::from_utf8_lossy(&reported.stderr);
    ensure!(reported.status.success(), "cargo metadata failed: {why}");
    let metadata: Metadata = serde_json::from_slice(&reported.stdout)?;
    let needed = needed(&metadata, product)?;
    let mut text = String::from("evenkeel is built of these, under these licences.\n\n");
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in metadata
        .packages
        .iter()
        .filter(|one| needed.contains(&*one.id))
    {
        let name = format!("{} {}", package.name, package.version);
        let licence = package.license.as_deref().unwrap_or("see below");
        text += &format!("{name}: {licence}\n");
        for said in said(package)? {
            texts.entry(said).or_default().push(name.clone());
        }
    }
    for (said, names) in texts {
        text += &format!(
            "\n{}\n{}\n\n{}\n",
            "-".repeat(80),
            names.join(", "),
            said.trim_end()
        );
    }
    Ok(text)
}

/// The packages of others that end up in the product: not what only builds or tests it.
fn needed<'a>(metadata: &'a Metadata, product: &str) -> Result<BTreeSet<&'a str>> {
    let nodes: BTreeMap<&str, &Node> = metadata
        .resolve
        .nodes
        .iter()
        .map(|one| (&*one.id, one))
        .collect();
    let first = metadata.packages.iter().find(|one| one.name == product);
    let mut open = vec![&*first.with_context(|| format!("there is no {product}"))?.id];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            let needs = nodes.get(id).into_iter().flat_map(|node| &node.deps);
            let kept = needs.filter(|need| need.dep_kinds.iter().any(|one| one.kind.is_none()));
            open.extend(kept.map(|need| &*need.pkg));
        }
    }
    let ours = metadata.packages.iter().filter(|one| one.source.is_none());
    for package in ours {
        seen.remove(&*package.id);
    }
    Ok(seen)
}

/// The licence files of a package.
fn said(package: &Package) -> Result<Vec<String>> {
    let directory = package.manifest_path.parent().unwrap_or(Path::new("/"));
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_licence = [
            "LICENSE",
            "LICENCE",
            "COPYING",
            "COPYRIGHT",
            "NOTICE",
            "UNLICENSE",
        ]
        .iter()
        .any(|begin| name.starts_with(begin));
        if is_licence && entry.file_type()?.is_file() {
            found.push(String::from_utf8_lossy(&fs::read(entry.path())?).into_owned());
        }
    }
    Ok(found)
}
