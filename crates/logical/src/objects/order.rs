//! In which order views can be made.

use super::text::mentions;
use super::{Database, SchemaObjectKind, View};
use std::collections::{BTreeSet, HashMap, HashSet};

/// A view with its schema.
pub(super) type Placed<'a> = (&'a Database, &'a View);

/// The order of all views.
pub(super) struct ViewOrder<'a> {
    /// Those that others could need before their time: something with the same columns has to stand
    /// in their place first.
    pub(super) placeholders: Vec<Placed<'a>>,
    /// All views: each after those that it is made of; the broken ones last.
    pub(super) views: Vec<Placed<'a>>,
}

/// Orders the views of all schemas.
///
/// A server wants to see what a view reads when it is made, through other views and also through
/// functions, whose bodies nobody reads here. So where a view calls a function all views get a
/// placeholder, as they do when there are `grants` on them; else only those that a circle of names
/// runs through (names are guessed from the text, and a column may be called like a view).
pub(super) fn view_order(databases: &[Database], grants: bool) -> ViewOrder<'_> {
    let placed: Vec<Placed<'_>> = databases
        .iter()
        .flat_map(|database| database.views.iter().map(move |view| (database, view)))
        .collect();
    let key = |database: &str, name: &str| (database.to_lowercase(), name.to_lowercase());
    let by_name: HashMap<(String, String), usize> = placed
        .iter()
        .enumerate()
        .map(|(at, (database, view))| (key(&database.name, &view.program.name), at))
        .collect();
    let functions: HashSet<(String, String)> = databases
        .iter()
        .flat_map(|database| {
            let routines = database.routines.iter();
            let called = routines.filter(|one| {
                matches!(
                    one.kind,
                    SchemaObjectKind::Function | SchemaObjectKind::Package
                )
            });
            called.map(move |one| key(&database.name, &one.name))
        })
        .collect();
    let mut all = grants;
    let needs: Vec<Vec<usize>> = placed
        .iter()
        .enumerate()
        .map(|(at, (database, view))| {
            let names = meant(database, view);
            all |= names.iter().any(|name| functions.contains(name));
            let others = names.iter().filter_map(|name| by_name.get(name).copied());
            others.filter(|other| *other != at).collect()
        })
        .collect();
    let (order, circular) = sorted(&needs);
    let has_columns = |at: &usize| {
        let view = placed[*at].1;
        view.broken.is_none() && !view.columns.is_empty()
    };
    let early: Vec<usize> = match all {
        true => (0..placed.len()).collect(),
        false => circular.into_iter().collect(),
    };
    let (whole, broken): (Vec<usize>, Vec<usize>) = order
        .into_iter()
        .partition(|at| placed[*at].1.broken.is_none());
    ViewOrder {
        placeholders: early
            .into_iter()
            .filter(has_columns)
            .map(|at| placed[at])
            .collect(),
        views: whole
            .into_iter()
            .chain(broken)
            .map(|at| placed[at])
            .collect(),
    }
}

/// Returns the schemas and names that a view's text could mean.
fn meant(database: &Database, view: &View) -> BTreeSet<(String, String)> {
    let own = database.name.to_lowercase();
    let mut names = BTreeSet::new();
    for (first, second) in mentions(&view.program.create) {
        if let Some(first) = first {
            // `view`.`column` as well as `schema`.`view`.
            names.insert((own.clone(), first.clone()));
            names.insert((first, second));
        } else {
            names.insert((own.clone(), second));
        }
    }
    names
}

/// Returns an order in which each comes after what it needs, and those that were needed too early
/// because a circle runs through them.
fn sorted(needs: &[Vec<usize>]) -> (Vec<usize>, BTreeSet<usize>) {
    #[derive(Clone, Copy, PartialEq)]
    enum Visited {
        New,
        Open,
        Done,
    }
    let mut states = vec![Visited::New; needs.len()];
    let (mut order, mut circular) = (Vec::new(), BTreeSet::new());
    for start in 0..needs.len() {
        if states[start] != Visited::New {
            continue;
        }
        states[start] = Visited::Open;
        let mut path = vec![(start, 0)];
        while let Some((at, next)) = path.pop() {
            let Some(&other) = needs[at].get(next) else {
                states[at] = Visited::Done;
                order.push(at);
                continue;
            };
            path.push((at, next + 1));
            match states[other] {
                Visited::New => {
                    states[other] = Visited::Open;
                    path.push((other, 0));
                }
                Visited::Open => drop(circular.insert(other)),
                Visited::Done => {}
            }
        }
    }
    (order, circular)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_needed_comes_first() {
        let (order, circular) = sorted(&[vec![2], vec![0], vec![]]);
        assert_eq!((order, circular.len()), (vec![2, 0, 1], 0));
        let (order, circular) = sorted(&[vec![1], vec![0]]);
        assert_eq!((order.len(), circular.into_iter().collect()), (2, vec![0]));
    }

    proptest! {
        #[test]
        fn only_those_in_circles_come_too_late(
            needs in proptest::collection::vec(proptest::collection::vec(0..12_usize, 0..4), 12),
        ) {
            let (order, circular) = sorted(&needs);
            prop_assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), needs.len());
            let place = |wanted: usize| order.iter().position(|at| *at == wanted).unwrap();
            for (at, wanted) in needs.iter().enumerate() {
                for other in wanted.iter().filter(|other| !circular.contains(other)) {
                    prop_assert!(place(*other) < place(at), "{needs:?}");
                }
            }
        }
    }
}
