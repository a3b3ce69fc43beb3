//! Which hot-copy tool fits a server, and where it is.

use evenkeel_op::paths::absent;
use evenkeel_op::{Error, Result};
use evenkeel_server::abilities::{Abilities, HotCopyTool, Version};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A tool that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// What to run: a path, or a name that is looked for as usual.
    pub program: PathBuf,
    /// `mariadb-backup` or `xtrabackup`.
    pub name: &'static str,
    /// The version that it says it is of.
    pub version: Version,
}

/// What a tool has to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The tool that copies the server.
    pub tool: HotCopyTool,
    /// The server's version.
    pub version: Version,
}

impl Wanted {
    /// Reads what a server said of itself: `10.11.19-MariaDB-…`, `8.0.36`.
    pub fn of(version_text: &str) -> Result<Self> {
        Ok(Self::by(&Abilities::of_version(version_text, "")?))
    }

    /// Returns what a server needs.
    #[must_use]
    pub fn by(server: &Abilities) -> Self {
        Self {
            tool: server.hot_copy_tool,
            version: server.version,
        }
    }

    /// Returns the name of the tool of its vendor.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.tool.name()
    }

    /// Finds the tool: `given`, or one of its usual names. Refused, with what to do, when there is
    /// none or it is of another series.
    pub fn find(self, given: Option<&Path>) -> Result<Tool> {
        if let Some(program) = given {
            return self.inspect(program)?.ok_or_else(|| {
                absent("program", program).hint("name a program with --engine-tool")
            });
        }
        for name in self.tool.programs() {
            if let Some(tool) = self.inspect(Path::new(name))? {
                return Ok(tool);
            }
        }
        let (name, series) = (self.name(), self.version.series());
        Err(Error::refused(format!(
            "{name}, the hot-copy tool of {}, is not installed here",
            self.shown()
        ))
        .hint(format!(
            "install {} of series {series}",
            self.tool.package()
        ))
        .hint("or name its path: --engine-tool PATH"))
    }

    /// Asks a program for its version; `None` when there is no such program.
    fn inspect(self, program: &Path) -> Result<Option<Tool>> {
        let shown = program.display();
        let asked = Command::new(program)
            .args(["--no-defaults", "--version"])
            .stdin(Stdio::null())
            .output();
        let output = match asked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            asked => asked
                .map_err(|error| Error::refused(format!("failed to run {shown}")).because(error))?,
        };
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let version = version(&said).ok_or_else(|| {
            Error::refused(format!(
                "{shown} does not report its version: {}",
                said.trim()
            ))
            .hint("name mariadb-backup or xtrabackup with --engine-tool")
        })?;
        let tool = Tool {
            program: program.to_owned(),
            name: self.name(),
            version,
        };
        self.check(&tool, HotCopyTool::of_output(&said))?;
        Ok(Some(tool))
    }

    /// Another series has other file formats, or other locks: its copy need not be whole.
    fn check(self, tool: &Tool, found: HotCopyTool) -> Result<()> {
        if found == self.tool && tool.version.series() == self.version.series() {
            return Ok(());
        }
        let maker = found.server();
        Err(Error::refused(format!(
            "{} is for {maker} {}, but the data is from {}",
            tool.program.display(),
            tool.version,
            self.shown()
        ))
        .hint(format!(
            "use {} of series {}: --engine-tool PATH",
            self.name(),
            self.version.series()
        )))
    }

    fn shown(self) -> String {
        format!("{} {}", self.tool.server(), self.version)
    }
}

/// Reads the version out of what the tools print: `… based on MariaDB server 10.11.19-MariaDB …`,
/// `xtrabackup version 8.0.35-30 based on MySQL server 8.0.35 …`.
fn version(said: &str) -> Option<Version> {
    let (_, rest) = said.split_once(" based on ")?;
    let (_, rest) = rest.split_once("server ")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::ErrorKind;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn wanted(text: &str) -> Wanted {
        Wanted::of(text).unwrap()
    }

    #[test]
    fn versions_are_read_from_what_the_tools_say() {
        let of = |said: &str| version(said).map(|found| found.to_string());
        let maria =
            "mariadb-backup based on MariaDB server 10.11.19-MariaDB debian-linux-gnu (x86_64)";
        assert_eq!(of(maria).as_deref(), Some("10.11.19"));
        let percona = "xtrabackup version 8.0.35-30 based on MySQL server 8.0.35 Linux (x86_64) (revision id: 6beb4b49)";
        assert_eq!(of(percona).as_deref(), Some("8.0.35"));
        assert_eq!(of("hello"), None);
    }

    #[test]
    fn a_tool_of_another_series_or_maker_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tool");
        let script = "#!/bin/sh\necho 'tool based on MariaDB server 10.11.19-MariaDB Linux'\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let tool = wanted("10.11.3-MariaDB-log").find(Some(&path)).unwrap();
        assert_eq!((tool.name, tool.version.patch), ("mariadb-backup", 19));
        for other in ["11.8.6-MariaDB", "10.6.1-MariaDB", "8.0.36", "10.11.19"] {
            let error = wanted(other).find(Some(&path)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused, "{other}");
            assert!(error.hints()[0].contains("--engine-tool"), "{other}");
        }
    }

    #[test]
    fn what_is_no_tool_is_refused_with_what_to_do() {
        let says = |path: &str| {
            wanted("10.11.3-MariaDB")
                .find(Some(Path::new(path)))
                .unwrap_err()
        };
        assert_eq!(says("/no/such/tool").kind(), ErrorKind::Usage);
        assert!(
            says("/bin/true")
                .chain()
                .contains("does not report its version")
        );
        assert!(says("/etc/passwd").chain().contains("failed to run"));
    }
}
