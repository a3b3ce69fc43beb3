//! What the machine told of each test. What it did not tell of has failed.

use super::built::Test;
use anyhow::Result;
use std::path::Path;

/// What `timeout` ends with when the time is over.
const TIMED_OUT: &str = "124";

/// Prints what became of each test. Returns whether all passed, and the machine came to its end.
pub(super) fn judge(wanted: &[Test], reported: &str, seconds: u64) -> Result<bool> {
    let mut passed = 0;
    println!();
    for test in wanted {
        let (word, took) = match reported.lines().find_map(|line| about(test, line)) {
            Some(("0", took)) => {
                passed += 1;
                ("ok", took)
            }
            Some((TIMED_OUT, took)) => ("TIMED OUT", took),
            Some((_, took)) => ("FAILED", took),
            None => ("NOT RUN", "-"),
        };
        println!("{word:>9} {took:>4} s  {test}");
    }
    let is_whole = reported.lines().last() == Some("done");
    if !is_whole {
        println!("the machine did not come to its end: {reported:?}");
    }
    println!(
        "{passed} of {} tests passed in the machine, in {seconds} s",
        wanted.len()
    );
    Ok(is_whole && passed == wanted.len())
}

/// Reads what a line tells of a test: its exit code, and how many seconds it took.
fn about<'a>(test: &Test, line: &'a str) -> Option<(&'a str, &'a str)> {
    let mut fields = line.split('\t');
    let (code, took) = (fields.next()?, fields.next()?);
    let is_it = fields.next().map(Path::new) == Some(&test.program)
        && fields.next() == Some(&test.name)
        && fields.next().is_none();
    is_it.then_some((code, took))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> [Test; 2] {
        ["one", "two"].map(|name| Test {
            program: "/t/lvm-12ab".into(),
            name: name.into(),
        })
    }

    fn is_good(reported: &str) -> bool {
        judge(&wanted(), reported, 1).unwrap()
    }

    #[test]
    fn all_passed_and_the_end_was_reached() {
        assert!(is_good(
            "0\t3\t/t/lvm-12ab\tone\n0\t4\t/t/lvm-12ab\ttwo\ndone\n"
        ));
    }

    #[test]
    fn anything_less_is_a_failure() {
        for reported in [
            "",
            "done\n",
            "0\t3\t/t/lvm-12ab\tone\ndone\n",
            "0\t3\t/t/lvm-12ab\tone\n101\t4\t/t/lvm-12ab\ttwo\ndone\n",
            "0\t3\t/t/lvm-12ab\tone\n124\t4\t/t/lvm-12ab\ttwo\ndone\n",
            "0\t3\t/t/lvm-12ab\tone\n0\t4\t/t/lvm-12ab\ttwo\n",
            "0\t3\t/t/lvm-12ab\tone\n0\t4\t/t/other-12ab\ttwo\ndone\n",
        ] {
            assert!(!is_good(reported), "{reported:?}");
        }
    }
}
