//! What nextest's JUnit file says of each test. Only as much XML as nextest writes: text in which
//! a tag could hide is escaped there.

use anyhow::{Context, Result};

/// One test that was run.
#[derive(Debug, PartialEq)]
pub(super) struct Test {
    /// Package and file: `evenkeel-cases::loads_resume`; the package alone for tests beside the code.
    pub(super) suite: String,
    pub(super) seconds: f64,
}

/// Reads every test of the file.
pub(super) fn read(text: &str) -> Result<Vec<Test>> {
    let tags = text.split("<testcase ").skip(1);
    tags.map(|tag| {
        let suite = attribute(tag, "classname").context("a test without a classname")?;
        let time = attribute(tag, "time").context("a test without a time")?;
        let seconds = time
            .parse()
            .with_context(|| format!("'{time}' is no time"))?;
        Ok(Test { suite, seconds })
    })
    .collect()
}

/// Returns the value of an attribute of the tag whose name was just read.
fn attribute(tag: &str, wanted: &str) -> Option<String> {
    let mut rest = tag.trim_start();
    while !rest.starts_with(['>', '/']) {
        let (name, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, after) = value[1..].split_once(quote)?;
        if name.trim() == wanted {
            return Some(plain(value));
        }
        rest = after.trim_start();
    }
    None
}

/// Resolves the entities that XML has by itself.
fn plain(value: &str) -> String {
    value
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="nextest-run" tests="3" failures="1" errors="0" uuid="x" timestamp="2026-01-01T00:00:00Z" time="12.5">
    <testsuite name="evenkeel-cases::loads_resume" tests="1" disabled="0" errors="0" failures="1">
        <testcase name="a &gt; b=&quot;c&quot; time" classname="evenkeel-cases::loads_resume" timestamp="2026-01-01T00:00:00Z" time="10.250">
            <failure message="said &lt;testcase time=&quot;9&quot;" type="test failure">&lt;testcase </failure>
            <system-out>time="99"</system-out>
        </testcase>
    </testsuite>
    <testsuite name="evenkeel-cli" tests="2" disabled="0" errors="0" failures="0">
        <testcase name='one' classname='evenkeel-cli' time='0.004'/>
        <testcase name="two" classname="evenkeel-cli" timestamp="2026-01-01T00:00:00Z" time="1"></testcase>
    </testsuite>
</testsuites>
"#;

    fn test(suite: &str, seconds: f64) -> Test {
        Test {
            suite: suite.into(),
            seconds,
        }
    }

    #[test]
    fn every_test_is_read() {
        assert_eq!(
            read(RUN).unwrap(),
            [
                test("evenkeel-cases::loads_resume", 10.25),
                test("evenkeel-cli", 0.004),
                test("evenkeel-cli", 1.0),
            ]
        );
    }

    #[test]
    fn what_is_no_run_is_reported() {
        assert!(read("").unwrap().is_empty());
        for wrong in [
            "<testcase time='1'>",
            "<testcase classname='a'>",
            "<testcase classname='a' time='soon'>",
            "<testcase classname='a' time='1",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
