//! What nextest, or the machine, and the tests printed: how many tests there were, and how far each went.

/// What a log tells.
#[derive(Debug, PartialEq, Default)]
pub(super) struct Reported {
    pub(super) tests: u64,
    /// `<what>: <done> of <all>, seed <N>`
    pub(super) efforts: Vec<String>,
}

/// Reads a log.
pub(super) fn read(text: &str) -> Reported {
    Reported {
        tests: text.lines().rev().find_map(tests).unwrap_or_default(),
        efforts: text.lines().filter_map(effort).map(str::to_owned).collect(),
    }
}

/// Reads nextest's last word: `Summary [ 1.234s] 3 tests run: 3 passed, 0 skipped`. Or the machine's: `3 of 3
/// tests passed in the machine, in 60 s`.
fn tests(line: &str) -> Option<u64> {
    if let Some((counted, _)) = line.split_once(" tests passed in the machine") {
        return counted.split_once(" of ")?.1.parse().ok();
    }
    let rest = line.trim().strip_prefix("Summary [")?;
    let (_, counted) = rest.split_once(']')?;
    let digits = counted.trim_start().split(|c: char| !c.is_ascii_digit());
    digits.into_iter().next()?.parse().ok()
}

/// Reads what a test says of its loop. The name of the test may stand before it on the line.
fn effort(line: &str) -> Option<&str> {
    let (before, reported) = line.split_once("effort: ")?;
    if !before.is_empty() && !before.ends_with(char::is_whitespace) {
        return None;
    }
    let reported = reported.trim_end();
    let (rounds, seed) = reported.rsplit_once(", seed ")?;
    let (_, counted) = rounds.rsplit_once(": ")?;
    let (done, all) = counted.split_once(" of ")?;
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    (is_number(done) && is_number(all) && is_number(seed)).then_some(reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_and_tests_are_read() {
        let log = "   Compiling evenkeel-op v0.1.0\n\
            ────────────\n Nextest run ID 1 with nextest profile: soak\n\
                PASS [   0.009s] (1/2) evenkeel-op::a one\n  stdout ───\n\
            \n    running 1 test\n    effort: kills: 40 of 40, seed 7\n\
                test two ... effort: power cuts: early: 3 of 5, seed 8\n\
            no-effort: 1 of 1, seed 1\n\
            effort: half a line: 1 of\n\
            \x20    Summary [ 812.010s] 12 tests run: 12 passed, 0 skipped\n";
        assert_eq!(
            read(log),
            Reported {
                tests: 12,
                efforts: vec![
                    "kills: 40 of 40, seed 7".into(),
                    "power cuts: early: 3 of 5, seed 8".into()
                ],
            }
        );
        assert_eq!(
            read("Summary [ 1s] 2/5 tests run: 1 passed, 1 failed").tests,
            2
        );
        assert_eq!(read(""), Reported::default());
        let machine = "running 1 test\r\neffort: kills: 40 of 40, seed 7\r\ntest thin ... ok\r\n\
            \n       ok   61 s  a_is_b::thin\n3 of 4 tests passed in the machine, in 90 s\n";
        assert_eq!(
            read(machine),
            Reported {
                tests: 4,
                efforts: vec!["kills: 40 of 40, seed 7".into()],
            }
        );
    }
}
