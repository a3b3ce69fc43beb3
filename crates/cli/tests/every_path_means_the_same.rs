//! Does every path on the command line mean the same however it is spelled: absolute, relative, with blanks,
//! with letters of other alphabets, through a symbolic link?

mod paths;

use clap::builder::ValueParser;
use clap::{Arg, Command};
use evenkeel_cli::args::MappedRoot;
use paths::rows::{Row, connections, keys, others};
use paths::{elsewhere, run_all};
use std::any::TypeId;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Returns whether an argument is a path, or holds one.
fn is_path(arg: &Arg) -> bool {
    let of = |parser: &ValueParser| parser.type_id();
    of(arg.get_value_parser()) == TypeId::of::<PathBuf>()
        || of(arg.get_value_parser()) == TypeId::of::<MappedRoot>()
}

/// Collects the paths of a verb and of those below it: `backup --metrics`, `generations repository`.
fn paths_of(verb: &Command, words: &str, found: &mut BTreeSet<String>) {
    for arg in verb.get_arguments().filter(|arg| is_path(arg)) {
        let name = match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => format!("--{long}"),
            (None, Some(short)) => format!("-{short}"),
            (None, None) => arg.get_id().to_string(),
        };
        assert!(found.insert(format!("{words} {name}")));
    }
    // What is hidden is started by ourselves, with paths that we have made.
    for below in verb.get_subcommands().filter(|below| !below.is_hide_set()) {
        let words = format!("{words} {}", below.get_name());
        paths_of(below, words.trim_start(), found);
    }
}

fn every_path() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    paths_of(&evenkeel_cli::command(), "", &mut found);
    found
}

#[test]
fn every_path_has_a_row_and_every_row_a_path() {
    let rows: Vec<Row> = [connections(), keys(), others()].concat();
    let run: BTreeSet<String> = rows.iter().map(|row| row.of.clone()).collect();
    let listed: BTreeSet<String> = elsewhere::PATHS.map(|(of, _)| of.to_owned()).into();
    let missing: Vec<String> = every_path()
        .into_iter()
        .filter(|of| !run.contains(of) && !listed.contains(of))
        .collect();
    assert!(missing.is_empty(), "say how to run them: {missing:#?}");
    let known = every_path();
    let unused: Vec<&String> = run
        .union(&listed)
        .filter(|of| !known.contains(*of))
        .collect();
    assert!(unused.is_empty(), "there are no such paths: {unused:#?}");
    let twice: Vec<&String> = run.intersection(&listed).collect();
    assert!(twice.is_empty(), "they are run here: {twice:#?}");
}

#[test]
fn what_needs_a_server_has_a_test_elsewhere() {
    let cases = evenkeel_testkit::checkout().join("tests/cases/tests");
    for (of, test) in elsewhere::PATHS {
        let text = std::fs::read_to_string(cases.join(test).with_extension("rs"));
        let text = text.unwrap_or_else(|error| panic!("{of}: {test}: {error}"));
        let name = of.rsplit_once(' ').map_or(of, |(_, name)| name);
        let word = if name.starts_with('-') {
            name
        } else {
            &of[..of.len() - name.len()]
        };
        let word = word.trim().rsplit(' ').next().unwrap_or_default();
        assert!(text.contains(word), "{test} has no {word}, for {of}");
    }
}

#[test]
fn those_that_lead_to_a_server() {
    run_all(&connections());
}

#[test]
fn those_that_open_a_repository() {
    run_all(&keys());
}

#[test]
fn all_others() {
    run_all(&others());
}
