//! Which module of a crate uses which: the one that defines what is named, through whatever re-exports it.

use super::source::{Module, Path, Use};
use std::collections::{BTreeMap, BTreeSet};

/// Longest chain of re-exports that is followed.
const CHAIN_MAX: usize = 20;

/// Of each module the modules that it uses, and what of them.
pub(super) type Edges = BTreeMap<Path, BTreeMap<Path, BTreeSet<String>>>;

/// Finds them. That a parent shows what a child defines is no use of it.
pub(super) fn edges(modules: &BTreeMap<Path, Module>) -> Edges {
    let names = Names(modules);
    let mut edges = Edges::new();
    for (path, module) in modules {
        let own: &mut BTreeMap<_, BTreeSet<String>> = edges.entry(path.clone()).or_default();
        let mut add = |(target, name): (Path, String)| {
            if target != *path {
                own.entry(target).or_default().insert(name);
            }
        };
        for one in &module.uses {
            let found = match one.name.as_str() {
                "*" => names.glob(path, one).map(|target| (target, "*".to_owned())),
                _ => names.definition(path, &one.path),
            };
            let is_composed = |target: &Path| one.is_shown && target.starts_with(path);
            found
                .filter(|(target, _)| !is_composed(target))
                .into_iter()
                .for_each(&mut add);
        }
        let known = module.paths.iter().filter(|one| {
            one.len() > 1 || module.uses.iter().any(|imported| imported.name == one[0])
        });
        known
            .filter_map(|one| names.definition(path, one))
            .for_each(add);
    }
    edges
}

/// A module, and the rest of a path that begins there.
type Start = (Path, Path);

struct Names<'a>(&'a BTreeMap<Path, Module>);

impl Names<'_> {
    /// Returns the module that defines what a path in the module `from` means, and its name there; `None` for a
    /// module, and for what is another crate's.
    fn definition(&self, from: &Path, path: &[String]) -> Option<(Path, String)> {
        let (base, rest) = self.start(from, path, 0)?;
        self.home(base, rest, 0)
    }

    /// Returns the module all of whose names are imported.
    fn glob(&self, from: &Path, one: &Use) -> Option<Path> {
        let (mut base, rest) = self.start(from, &[&one.path[..], &["*".to_owned()]].concat(), 0)?;
        base.extend_from_slice(&rest[..rest.len() - 1]);
        self.0.contains_key(&base).then_some(base)
    }

    /// Finds where a path begins.
    fn start(&self, from: &Path, path: &[String], steps: usize) -> Option<Start> {
        let module = self.0.get(from)?;
        let (first, rest) = path.split_first().filter(|_| steps < CHAIN_MAX)?;
        match first.as_str() {
            "crate" => return Some((Path::new(), rest.to_vec())),
            "self" => return Some((from.clone(), rest.to_vec())),
            "super" => {
                let ups = path.iter().take_while(|one| *one == "super").count();
                let base = from[..from.len().checked_sub(ups)?].to_vec();
                return Some((base, path[ups..].to_vec()));
            }
            _ => {}
        }
        if module.children.contains(first) && !rest.is_empty() {
            return Some((from.clone(), path.to_vec()));
        }
        let one = module.uses.iter().find(|one| one.name == *first)?;
        let (base, target) = self.import(from, one, steps)?;
        Some((base, [&target[..], rest].concat()))
    }

    /// Finds where the path of an import begins.
    fn import(&self, from: &Path, one: &Use, steps: usize) -> Option<Start> {
        let first = one.path.first()?;
        if *first != one.name {
            return self.start(from, &one.path, steps + 1);
        }
        // `x::x` of a module that is declared here, or of another crate.
        let is_child = self.0.get(from)?.children.contains(first);
        is_child.then(|| (from.clone(), one.path.clone()))
    }

    /// Follows a path from the module `base` on to the module that defines what it leads to.
    fn home(&self, mut base: Path, path: Path, steps: usize) -> Option<(Path, String)> {
        let module = self.0.get(&base)?;
        let (first, rest) = path.split_first().filter(|_| steps < CHAIN_MAX)?;
        let is_child = module.children.contains(first);
        if is_child && !rest.is_empty() {
            base.push(first.clone());
            return self.home(base, rest.to_vec(), steps + 1);
        }
        if module.items.contains(first) {
            return Some((base, first.clone()));
        }
        if let Some(one) = module.uses.iter().find(|one| one.name == *first) {
            let (target, middle) = self.import(&base, one, steps + 1)?;
            return self.home(target, [&middle[..], rest].concat(), steps + 1);
        }
        if is_child {
            return None;
        }
        let globs = module.uses.iter().filter(|one| one.name == "*");
        let mut targets = globs.filter_map(|one| self.glob(&base, one));
        match targets.find(|target| self.has(target, first)) {
            Some(target) => self.home(target, path, steps + 1),
            None => Some((base, first.clone())),
        }
    }

    /// Whether a module defines a name or shows it.
    fn has(&self, module: &Path, name: &str) -> bool {
        self.0.get(module).is_some_and(|module| {
            module.items.contains(name) || module.uses.iter().any(|one| one.name == name)
        })
    }
}
