use super::*;

fn graph(files: &[(&str, &str)]) -> Graph {
    let files: Vec<Tracked> = files
        .iter()
        .map(|(path, text)| Tracked {
            path: format!("crates/x/src/{path}"),
            text: Some((*text).to_owned()),
        })
        .collect();
    graphs(&files).remove(0)
}

/// Returns what each module uses, `from > to`.
fn uses(files: &[(&str, &str)]) -> Vec<String> {
    let graph = graph(files);
    let all = graph.edges.iter();
    let all = all.flat_map(|(from, to)| to.keys().map(move |to| (from, to)));
    all.map(|(from, to)| format!("{} > {}", shown(from), shown(to)))
        .collect()
}

#[test]
fn re_exports_lead_to_who_defines() {
    let all = uses(&[
        ("lib.rs", "mod a; mod b; pub use a::Thing;"),
        (
            "a/mod.rs",
            "mod deep; pub(crate) use deep::{Thing, other as another};",
        ),
        ("a/deep.rs", "pub struct Thing; pub fn other() {}"),
        (
            "b.rs",
            "use crate::a; use crate::Thing; fn f(t: &Thing) { a::another() }",
        ),
    ]);
    assert_eq!(all, ["b > a::deep"]);
}

#[test]
fn globs_lead_to_who_defines() {
    let all = uses(&[
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod deep; pub use deep::*;"),
        ("a/deep.rs", "pub struct Thing;"),
        ("b.rs", "use crate::a::Thing;"),
    ]);
    assert_eq!(all, ["b > a::deep"]);
}

#[test]
fn parents_use_what_they_call_and_not_what_they_show() {
    let shows = "mod a; pub use a::{Thing, run};";
    let child = ("a.rs", "pub struct Thing; pub fn run() {}");
    assert!(uses(&[("lib.rs", shows), child]).is_empty());
    let calls = format!("{shows} fn f() {{ let run = run(); }}");
    assert_eq!(uses(&[("lib.rs", &calls), child]), ["crate > a"]);
    let named = format!("{shows} fn f() {{ let run = 1; let x = (run, x.run()); }}");
    assert!(uses(&[("lib.rs", &named), child]).is_empty());
    assert_eq!(
        uses(&[("lib.rs", "mod a; fn f() { a::run() }"), child]),
        ["crate > a"]
    );
}

#[test]
fn children_use_their_parents_file() {
    let all = uses(&[
        ("lib.rs", "mod a;"),
        ("a.rs", "mod deep; struct Thing;"),
        (
            "a/deep.rs",
            "use super::Thing; mod inside { use super::super::Thing; }",
        ),
    ]);
    assert_eq!(all, ["a::deep > a", "a::deep::inside > a"]);
}

#[test]
fn macros_and_functions_are_looked_into() {
    let all = uses(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "pub fn run() {}"),
        ("b.rs", "fn f() { assert!(crate::a::run()); }"),
        ("c.rs", "fn f() { use crate::a::run; }"),
    ]);
    assert_eq!(all, ["b > a", "c > a"]);
}

#[test]
fn tests_and_other_crates_do_not_count() {
    let all = uses(&[
        ("lib.rs", "mod a; mod b;"),
        (
            "a.rs",
            "#[cfg(test)] use crate::b::Thing; #[cfg(test)] mod tests { use crate::b::Thing; }",
        ),
        (
            "b.rs",
            "use a::Thing as Other; use evenkeel_op::a; pub struct Thing(a::Thing); #[cfg(test)] fn f() { crate::a::x() }",
        ),
    ]);
    assert_eq!(all, [""; 0]);
}

/// Modules each of which uses the next, and the last the first.
fn ring(count: usize) -> Graph {
    let names: Vec<String> = (0..count).map(|number| format!("m{number}")).collect();
    let root: String = names.iter().map(|name| format!("mod {name};")).collect();
    let mut files = vec![("lib.rs".to_owned(), root)];
    for (number, name) in names.iter().enumerate() {
        let next = &names[(number + 1) % count];
        files.push((
            format!("{name}.rs"),
            format!("use crate::{next}::Thing; struct Thing;"),
        ));
    }
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    graph(&files)
}

#[test]
fn large_circles_are_refused() {
    let said = |count| violations(&[ring(count)]);
    assert_eq!(said(3), [""; 0]);
    let four = said(4).concat();
    assert!(four.contains("circles of 4, 3 are allowed"), "{four:?}");
    assert!(ring(4).details().contains("  m0\n    uses m1: Thing\n"));
}
