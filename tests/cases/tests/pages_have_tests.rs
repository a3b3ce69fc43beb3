//! Is each page that tells a reader what to type done by a test?

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

#[test]
fn every_task_has_one() {
    let checkout = evenkeel_testkit::checkout();
    let mut pages: BTreeSet<String> = ["README.md".to_owned(), "start.md".to_owned()].into();
    for name in names_in(&checkout.join("docs/src/tasks")) {
        pages.insert(format!("tasks/{name}"));
    }
    let tests = checkout.join("tests/cases/tests");
    let mut code = String::new();
    for name in names_in(&tests) {
        if name.starts_with("pages_of_") {
            code += &fs::read_to_string(tests.join(name)).expect("a test");
        }
    }
    let is_done = |page: &&String| code.contains(&format!("Page::open(&house, \"{page}\")"));
    let without: Vec<&String> = pages.iter().filter(|page| !is_done(page)).collect();
    assert!(without.is_empty(), "no test does {without:?}");
}
