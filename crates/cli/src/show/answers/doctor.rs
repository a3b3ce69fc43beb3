//! What `doctor` answers.

use super::Answer;
use crate::show::{Align, TextTable};
use evenkeel_op::units;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a backup of this server would need, and what each snapshot method can do here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DoctorAnswer {
    /// Whether a backup without further flags would start.
    pub ready: bool,
    /// The server's version, as it gives it.
    pub server: String,
    /// What was looked at.
    pub checks: Vec<Check>,
    /// Where the server keeps its files; missing when they cannot be covered.
    pub layout: Option<ShownLayout>,
    /// Every snapshot method, best first.
    pub methods: Vec<ShownMethod>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Check {
    /// What it is about.
    pub name: String,
    /// Whether a backup could do with it.
    pub ok: bool,
    /// Whether it is not as it should be all the same.
    pub warning: bool,
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub hints: Vec<String>,
}

/// Where a server keeps its files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShownLayout {
    /// Name and directory of each root.
    pub roots: Vec<ShownRoot>,
    /// How many files there are.
    pub files: usize,
    /// The sum of their sizes.
    pub bytes: u64,
    /// `innodb_page_size`.
    pub page_size: u32,
    /// Files of the server that a backup leaves out, and why.
    pub left_out: Vec<LeftOut>,
}

/// A directory in which the server keeps files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShownRoot {
    /// Its name in a generation.
    pub id: String,
    /// The directory.
    pub path: PathBuf,
}

/// A file that a backup leaves out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LeftOut {
    /// The file.
    pub path: PathBuf,
    /// Why it is not needed.
    pub why: String,
}

/// What a snapshot method can do for this server here.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShownMethod {
    /// `btrfs`, `reflink`, `lvm`, `copy` or `hook`.
    pub method: String,
    /// Whether it works here.
    pub usable: bool,
    /// What is point-in-time consistent: `everything`, `one file`, or `stopped` when nothing changes.
    pub instant_over: String,
    /// Whether a later run can read only what changed.
    pub reads_changed_only: bool,
    /// What it would do, or why it cannot.
    pub reason: String,
}

impl Answer for DoctorAnswer {
    const SCHEMA: &'static str = "evenkeel/doctor/1";

    fn text(&self) -> String {
        let mut text = format!("server   {}\n", self.server);
        if let Some(layout) = &self.layout {
            for root in &layout.roots {
                text.push_str(&format!("{:8} {}\n", root.id, root.path.display()));
            }
            let (files, bytes) = (layout.files, units::bytes(layout.bytes));
            text.push_str(&format!("{:8} {files}, {bytes}\n", "files"));
        }
        text.push('\n');
        for check in &self.checks {
            let mark = match (check.ok, check.warning) {
                (false, _) => "NO",
                (true, true) => "!!",
                (true, false) => "ok",
            };
            text.push_str(&format!("{mark:3} {}: {}\n", check.name, check.found));
            for hint in &check.hints {
                text.push_str(&format!("    hint: {hint}\n"));
            }
        }
        if !self.methods.is_empty() {
            text.push('\n');
            text.push_str(&self.methods().text());
        }
        let verdict = if self.ready {
            "ready for"
        } else {
            "NOT ready for"
        };
        text.push_str(&format!("\n{verdict} `evenkeel backup`\n"));
        text
    }
}

impl DoctorAnswer {
    fn methods(&self) -> TextTable {
        let columns = ["snapshot", "works", "instant over", "reads", "because"];
        let mut table = TextTable::new(&columns.map(|name| (name, Align::Left)));
        for method in &self.methods {
            table.row([
                method.method.clone(),
                if method.usable { "yes" } else { "no" }.to_owned(),
                method.instant_over.clone(),
                if method.reads_changed_only {
                    "what changed"
                } else {
                    "everything"
                }
                .to_owned(),
                method.reason.clone(),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_stands_out_and_says_what_to_do() {
        let answer = DoctorAnswer {
            ready: false,
            server: "10.11.14-MariaDB".into(),
            checks: vec![
                Check {
                    name: "privileges".into(),
                    ok: false,
                    warning: false,
                    found: "RELOAD is missing".into(),
                    hints: vec!["GRANT RELOAD ON *.* TO 'a'@'b'".into()],
                },
                Check {
                    name: "repository".into(),
                    ok: true,
                    warning: true,
                    found: "/r can be read by others".into(),
                    hints: Vec::new(),
                },
            ],
            layout: None,
            methods: vec![ShownMethod {
                method: "btrfs".into(),
                usable: false,
                instant_over: "everything".into(),
                reads_changed_only: true,
                reason: "not btrfs".into(),
            }],
        };
        let text = answer.text();
        assert!(text.contains("NO  privileges: RELOAD is missing\n    hint: GRANT RELOAD"));
        assert!(
            text.contains("!!  repository: /r can be read by others\n"),
            "{text}"
        );
        assert!(
            text.contains("btrfs     no     everything    what changed  not btrfs\n"),
            "{text}"
        );
        assert!(text.ends_with("\nNOT ready for `evenkeel backup`\n"));
    }
}
