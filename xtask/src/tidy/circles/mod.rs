//! Modules of a crate do not use each other in large circles: none of them could be understood, or moved, alone.
//!
//! A module uses another where it names what that one defines: in an import or in its code, through re-exports. Tests
//! do not count, nor what a parent shows of its children; what a child takes from its parent's own file does.

mod edges;
mod source;

use super::Tracked;
use anyhow::{Context, Result};
use edges::Edges;
use source::Path;
use std::collections::{BTreeMap, BTreeSet};

/// So many modules may use each other.
const CIRCLE_MAX: usize = 3;

/// The modules of a crate, and how they use each other.
struct Graph {
    name: String,
    edges: Edges,
    /// Those that use each other, two or more, the largest circle first.
    circles: Vec<BTreeSet<Path>>,
}

/// Checks all crates.
pub(super) fn check(files: &[Tracked]) -> Vec<String> {
    violations(&graphs(files))
}

/// Returns a table of all crates; or of one, who uses what of whom in its large circles.
pub(super) fn table(files: &[Tracked], name: Option<&str>) -> Result<String> {
    let graphs = graphs(files);
    if let Some(name) = name {
        let graph = graphs.iter().find(|graph| graph.name == name);
        let graph = graph.with_context(|| format!("no crate is called {name}: see --circles"))?;
        return Ok(graph.details());
    }
    let mut text = "| crate | modules | in its circles |\n|---|---:|---|\n".to_owned();
    for graph in &graphs {
        let sizes = list(&graph.sizes(1));
        text += &format!("| {} | {} | {sizes} |\n", graph.name, graph.edges.len());
    }
    Ok(text)
}

fn graphs(files: &[Tracked]) -> Vec<Graph> {
    let roots = files.iter().filter_map(|file| {
        let library = file.path.strip_suffix("/src/lib.rs");
        let program = || file.path.ends_with("/src/main.rs").then_some(&*file.path);
        Some((library.or_else(program)?, &file.path))
    });
    let graph = |(name, root): (&str, &String)| Graph::of(name, root, files);
    roots.map(graph).collect()
}

fn violations(graphs: &[Graph]) -> Vec<String> {
    let mut found = Vec::new();
    for graph in graphs {
        let (name, sizes) = (&graph.name, graph.sizes(CIRCLE_MAX));
        if !sizes.is_empty() {
            found.push(format!(
                "{name}:1: modules use each other in circles of {}, {CIRCLE_MAX} are allowed: move what they share \
                 below them ('cargo xtask tidy --circles {name}' shows it)",
                list(&sizes),
            ));
        }
    }
    found
}

fn list(sizes: &[usize]) -> String {
    if sizes.is_empty() {
        return "none".to_owned();
    }
    let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
    sizes.join(", ")
}

impl Graph {
    fn of(name: &str, root: &str, files: &[Tracked]) -> Self {
        let edges = edges::edges(&source::modules(root, files));
        let circles = circles(&edges);
        Self {
            name: name.to_owned(),
            edges,
            circles,
        }
    }

    /// Returns how many modules are in each circle of more than `above`.
    fn sizes(&self, above: usize) -> Vec<usize> {
        let sizes = self.circles.iter().map(BTreeSet::len);
        sizes.filter(|size| *size > above).collect()
    }

    /// Says of each large circle who uses what of whom.
    fn details(&self) -> String {
        let mut text = String::new();
        for circle in self.circles.iter().filter(|one| one.len() > CIRCLE_MAX) {
            text += &format!("{} modules:\n", circle.len());
            for (from, to) in self.edges.iter().filter(|(from, _)| circle.contains(*from)) {
                text += &format!("  {}\n", shown(from));
                for (to, names) in to.iter().filter(|(to, _)| circle.contains(*to)) {
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    text += &format!("    uses {}: {}\n", shown(to), names.join(", "));
                }
            }
        }
        text
    }
}

fn shown(path: &Path) -> String {
    match path.is_empty() {
        true => "crate".to_owned(),
        false => path.join("::"),
    }
}

/// Returns the sets of modules each of which leads to every other of its set.
fn circles(edges: &Edges) -> Vec<BTreeSet<Path>> {
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = edges
        .keys()
        .map(|from| (from, reached(edges, from)))
        .collect();
    let mut found: Vec<BTreeSet<Path>> = Vec::new();
    for (from, to) in &reached {
        let leads_back = |to: &&&Path| reached.get(**to).is_some_and(|all| all.contains(from));
        let circle: BTreeSet<Path> = to
            .iter()
            .filter(leads_back)
            .map(|one| (*one).clone())
            .collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

/// Returns all modules that one leads to.
fn reached<'e>(edges: &'e Edges, from: &Path) -> BTreeSet<&'e Path> {
    let mut reached = BTreeSet::new();
    let next = |one: &Path| edges.get(one).into_iter().flat_map(BTreeMap::keys);
    let mut open: Vec<&Path> = next(from).collect();
    while let Some(one) = open.pop() {
        if reached.insert(one) {
            open.extend(next(one));
        }
    }
    reached
}

#[cfg(test)]
mod tests;
