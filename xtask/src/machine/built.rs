//! What runs in the machine, built as `make test` builds it.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that the tests run, with its fail points.
const UNDER_TEST: &str = "evenkeel-under-test";

/// What cargo built.
pub(super) struct Built {
    /// The test programs, by path.
    programs: Vec<PathBuf>,
    /// The program under test.
    pub(super) under_test: PathBuf,
}

/// One test of one program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) program: PathBuf,
    pub(super) name: String,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.program.file_name().unwrap_or_default();
        let file = file.to_string_lossy();
        // Cargo puts a hash behind the name.
        let binary = file.rsplit_once('-').map_or(&*file, |(name, _)| name);
        write!(f, "{binary}::{}", self.name)
    }
}

impl Built {
    /// Builds the tests of `tests/vm/` with the features that the whole workspace has for `make test`.
    pub(super) fn make(root: &Path) -> Result<Self> {
        let mut command = crate::cargo();
        command
            .args(["build", "--locked", "--workspace", "--quiet"])
            .args(["--message-format=json-render-diagnostics"])
            .args(["--bin", UNDER_TEST]);
        for name in names(&root.join("tests/vm/tests"))? {
            command.args(["--test", &name]);
        }
        let output = command
            .current_dir(root)
            .stderr(Stdio::inherit())
            .output()
            .context("failed to run cargo build")?;
        ensure!(output.status.success(), "the tests do not compile");
        let manifest = root.join("tests/vm/Cargo.toml");
        let (mut programs, mut under_test) = (Vec::new(), None);
        for line in String::from_utf8(output.stdout)?.lines() {
            let message: Value = serde_json::from_str(line)?;
            let Some(program) = message["executable"].as_str() else {
                continue;
            };
            if message["target"]["name"] == UNDER_TEST {
                under_test = Some(program.into());
            } else if message["manifest_path"].as_str().map(Path::new) == Some(&manifest) {
                programs.push(program.into());
            }
        }
        programs.sort();
        Ok(Self {
            programs,
            under_test: under_test.with_context(|| format!("cargo built no {UNDER_TEST}"))?,
        })
    }

    /// Asks the programs for their tests, and returns those whose names contain one of `filters`.
    pub(super) fn tests(&self, filters: &[String]) -> Result<Vec<Test>> {
        let mut tests = Vec::new();
        for program in &self.programs {
            let output = Command::new(program)
                .args(["--list", "--format=terse"])
                .output()?;
            ensure!(output.status.success(), "{}: --list", program.display());
            let listed = String::from_utf8(output.stdout)?;
            tests.extend(listed.lines().filter_map(|line| {
                Some(Test {
                    program: program.clone(),
                    name: line.strip_suffix(": test")?.to_owned(),
                })
            }));
        }
        tests.retain(|test| {
            let shown = test.to_string();
            filters.is_empty() || filters.iter().any(|filter| shown.contains(filter))
        });
        Ok(tests)
    }
}

/// Returns the names of the test programs whose files lie in `directory`.
fn names(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in directory.read_dir()? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let stem = path.file_stem().unwrap_or_default();
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}
