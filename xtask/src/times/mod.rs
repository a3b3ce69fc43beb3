//! Where the seconds of the tests go: by crate, and the files that take longest.

mod junit;

use anyhow::{Context, Result, ensure};
use junit::Test;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Where nextest leaves what each test took, below the top of the checkout: its store is not in
/// cargo's target directory.
const JUNIT: &str = "target/nextest/default/junit.xml";
/// The page that tells of it, and between which lines.
const PAGE: &str = "CONTRIBUTING.md";
const BEGIN: &str = "<!-- times: begin -->";
const END: &str = "<!-- times: end -->";
/// How many files are named.
const LONGEST: usize = 10;

/// Prints the tables of a run, or writes them into CONTRIBUTING.md.
pub fn run(root: &Path, junit: Option<&Path>, write: bool) -> Result<()> {
    let path = junit.map_or_else(|| root.join(JUNIT), Path::to_path_buf);
    let text = fs::read_to_string(&path)
        .with_context(|| format!("failed to read {}: `make test` writes it", path.display()))?;
    let tests = junit::read(&text).with_context(|| path.display().to_string())?;
    ensure!(!tests.is_empty(), "{}: no test was run", path.display());
    let tables = tables(&tests);
    if !write {
        print!("{tables}");
        return Ok(());
    }
    let page = root.join(PAGE);
    let before = fs::read_to_string(&page).with_context(|| format!("failed to read {PAGE}"))?;
    fs::write(&page, replaced(&before, &tables)?).with_context(|| format!("failed to write {PAGE}"))
}

/// Tests of one crate or one file.
#[derive(Debug, Clone, Default)]
struct Sum {
    tests: usize,
    seconds: f64,
}

fn tables(tests: &[Test]) -> String {
    let all = Sum {
        tests: tests.len(),
        seconds: tests.iter().map(|test| test.seconds).sum(),
    };
    let mut page = String::new();
    let crates = sums(tests, |test| {
        test.suite.split("::").next().unwrap_or_default()
    });
    table(&mut page, "crate", &all, &crates);
    table(&mut page, "", &all, &[("**all**", all.clone())]);
    page.push('\n');
    let mut files = sums(tests, |test| &test.suite);
    files.truncate(LONGEST);
    table(&mut page, "test file", &all, &files);
    page
}

/// Adds rows to the page; below a head, unless that is empty.
fn table(page: &mut String, head: &str, all: &Sum, rows: &[(&str, Sum)]) {
    // Writing to a String cannot fail.
    if !head.is_empty() {
        let _ = writeln!(
            page,
            "| {head} | tests | seconds | % |\n|---|---:|---:|---:|"
        );
    }
    for (name, Sum { tests, seconds }) in rows {
        let share = seconds * 100.0 / all.seconds.max(f64::MIN_POSITIVE);
        let _ = writeln!(page, "| {name} | {tests} | {seconds:.0} | {share:.1} |");
    }
}

/// Adds up by name, longest first.
fn sums<'a>(tests: &'a [Test], name: impl Fn(&'a Test) -> &'a str) -> Vec<(&'a str, Sum)> {
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for test in tests {
        let sum = sums.entry(name(test)).or_default();
        sum.tests += 1;
        sum.seconds += test.seconds;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds));
    sums
}

/// Returns the page with the tables between its markers.
fn replaced(page: &str, tables: &str) -> Result<String> {
    let inside = page
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = inside.with_context(|| {
        format!(
            "{PAGE} does not say where the tables belong: add a line {BEGIN} and, below, a line {END}"
        )
    })?;
    Ok(format!("{before}{BEGIN}\n\n{tables}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(suite: &str, seconds: f64) -> Test {
        Test {
            suite: suite.into(),
            seconds,
        }
    }

    #[test]
    fn crates_and_files_stand_in_order_of_their_seconds() {
        let tests = [
            test("evenkeel-cli", 1.0),
            test("evenkeel-cases::loads_resume", 50.0),
            test("evenkeel-cases::url_functions_agree", 4.0),
            test("evenkeel-cases::loads_resume", 25.0),
        ];
        assert_eq!(
            tables(&tests),
            "| crate | tests | seconds | % |\n\
             |---|---:|---:|---:|\n\
             | evenkeel-cases | 3 | 79 | 98.8 |\n\
             | evenkeel-cli | 1 | 1 | 1.2 |\n\
             | **all** | 4 | 80 | 100.0 |\n\
             \n\
             | test file | tests | seconds | % |\n\
             |---|---:|---:|---:|\n\
             | evenkeel-cases::loads_resume | 2 | 75 | 93.8 |\n\
             | evenkeel-cases::url_functions_agree | 1 | 4 | 5.0 |\n\
             | evenkeel-cli | 1 | 1 | 1.2 |\n"
        );
    }

    #[test]
    fn ten_files_are_named() {
        let tests: Vec<Test> = (0..30).map(|n| test(&format!("c::t{n}"), 1.0)).collect();
        assert_eq!(tables(&tests).matches("| c::t").count(), LONGEST);
    }

    #[test]
    fn only_what_is_between_the_markers_is_replaced() {
        let page = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let once = replaced(&page, "new\n").unwrap();
        assert_eq!(once, format!("a\n{BEGIN}\n\nnew\n\n{END}\nb\n"));
        assert_eq!(replaced(&once, "new\n").unwrap(), once);
        let error = replaced("a\n", "new\n").unwrap_err().to_string();
        assert!(error.contains(BEGIN) && error.contains(END), "{error}");
    }
}
