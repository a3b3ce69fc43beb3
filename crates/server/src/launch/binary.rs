//! Server programs: what they are, and what they need beside them.

use crate::abilities::{Abilities, Flavour, Version};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Context, Error, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a data directory for this server is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Install {
    /// MariaDB's `mariadb-install-db`, where it was found.
    Script(Option<PathBuf>),
    /// `mysqld --initialize-insecure`.
    InitializeInsecure,
}

/// A server program.
#[derive(Debug, Clone)]
pub struct Binary {
    /// Where it is.
    pub path: PathBuf,
    /// Whose it is.
    pub flavour: Flavour,
    /// Which version it is.
    pub version: Version,
    /// A directory of libraries for it alone (`LD_LIBRARY_PATH`), when it brings its own.
    pub lib_dir: Option<PathBuf>,
    /// Its messages and character sets, when they are not where it was built to look.
    pub share_dir: Option<PathBuf>,
    /// How to make a data directory for it.
    pub install: Install,
}

impl Binary {
    /// Asks the program at `path` what it is. A server unpacked into a folder of its own finds its
    /// libraries and messages there.
    pub fn inspect(path: &Path) -> Result<Self> {
        let path = std::fs::canonicalize(path)
            .map_err(|error| unreadable("server program", path, error))?;
        let lib_dir = own_libraries(&path);
        let mut command = command(&path, lib_dir.as_deref());
        command.args(["--no-defaults", "--version"]);
        let output = command
            .output()
            .context(|| format!("failed to run {}", path.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let Some((flavour, version)) = read_version(&text) else {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = format!("{} {}", text.trim(), said.trim());
            let reported = match said.trim() {
                "" => "nothing".to_owned(),
                said => format!("'{}'", said.lines().next().unwrap_or_default()),
            };
            let path = path.display();
            return Err(Error::refused(format!(
                "{path} is not a MySQL or MariaDB server: it printed {reported} for --version"
            ))
            .hint("name the server's program: mariadbd or mysqld"));
        };
        let install = match flavour {
            Flavour::MariaDb => Install::Script(install_script(&path)),
            Flavour::MySql => Install::InitializeInsecure,
        };
        Ok(Self {
            share_dir: own_share(&path),
            lib_dir,
            install,
            flavour,
            version,
            path,
        })
    }

    /// Finds the installed server: the first of `candidates` that is one. A candidate is a program,
    /// or a directory to look into for `mariadbd` and `mysqld`.
    pub fn find(candidates: &[PathBuf]) -> Result<Self> {
        let mut failure = None;
        for candidate in candidates {
            let programs = if candidate.is_dir() {
                vec![candidate.join("mariadbd"), candidate.join("mysqld")]
            } else {
                vec![candidate.clone()]
            };
            for program in programs.iter().filter(|p| p.is_file()) {
                match Self::inspect(program) {
                    Ok(binary) => return Ok(binary),
                    Err(error) => failure = Some(error),
                }
            }
        }
        Err(failure.unwrap_or_else(|| {
            Error::refused("no MariaDB or MySQL server program was found")
                .hint("install mariadb-server, or name the server program")
        }))
    }

    /// Whether nobody but root can change what is run when the program at `path` is: the program, and
    /// each directory above it. Where others may add names but remove only their own, as in `/tmp`, they
    /// can change nothing of root's.
    #[must_use]
    pub fn is_roots_alone(path: &Path) -> bool {
        const STICKY: u32 = 0o1000;
        let Ok(path) = std::fs::canonicalize(path) else {
            return false;
        };
        path.ancestors().all(|one| {
            std::fs::metadata(one).is_ok_and(|found| {
                let closed = found.mode() & 0o022 == 0;
                found.uid() == 0 && (closed || found.is_dir() && found.mode() & STICKY != 0)
            })
        })
    }

    /// Whether it is of a flavour.
    #[must_use]
    pub fn is_of(&self, flavour: Flavour) -> bool {
        self.flavour == flavour
    }

    /// Returns what it can do, as far as its version says so.
    #[must_use]
    pub fn abilities(&self) -> Abilities {
        Abilities::known(self.flavour, self.version)
    }

    /// Returns the folder it was unpacked into, when it is not where it was built to be.
    #[must_use]
    pub fn base_dir(&self) -> Option<&Path> {
        self.share_dir.as_ref().and_then(|_| base(&self.path))
    }

    /// Returns a command that runs it with its libraries, without arguments yet.
    #[must_use]
    pub fn command(&self) -> Command {
        command(&self.path, self.lib_dir.as_deref())
    }
}

fn command(path: &Path, lib_dir: Option<&Path>) -> Command {
    let mut command = Command::new(path);
    command.stdin(Stdio::null());
    if let Some(lib_dir) = lib_dir {
        command.env("LD_LIBRARY_PATH", lib_dir);
    }
    command
}

/// Reads `mysqld  Ver 8.0.15 for linux-glibc2.12 on x86_64 (MySQL Community Server - GPL)`.
fn read_version(text: &str) -> Option<(Flavour, Version)> {
    let mut words = text.split_whitespace().skip_while(|word| *word != "Ver");
    let version = words.nth(1)?;
    let flavour = if text.contains("MariaDB") {
        Flavour::MariaDb
    } else {
        Flavour::MySql
    };
    Some((flavour, version.parse().ok()?))
}

/// The folder a tarball or package was unpacked into: the parent of `bin` or `sbin`.
fn base(program: &Path) -> Option<&Path> {
    program.parent()?.parent()
}

fn own_libraries(program: &Path) -> Option<PathBuf> {
    let lib = base(program)?.join("lib");
    let names = std::fs::read_dir(&lib).ok()?;
    // A system's /usr/lib holds a libssl too, but as a directory of its architecture below it.
    let brings_tls = names
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .any(|name| name.starts_with("libssl.so"));
    brings_tls.then_some(lib)
}

fn own_share(program: &Path) -> Option<PathBuf> {
    let base = base(program)?;
    if base == Path::new("/usr") {
        return None; // Where packages put it, it finds its messages by itself.
    }
    ["share", "share/mariadb", "share/mysql"]
        .map(|share| base.join(share))
        .into_iter()
        .find(|share| share.join("english/errmsg.sys").is_file())
}

fn install_script(program: &Path) -> Option<PathBuf> {
    let beside = program.parent()?;
    let base = base(program)?;
    [beside.to_owned(), base.join("bin"), base.join("scripts")]
        .iter()
        .flat_map(|dir| [dir.join("mariadb-install-db"), dir.join("mysql_install_db")])
        .find(|script| script.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_servers_print() {
        let mysql = "/x/bin/mysqld  Ver 5.7.22 for linux-glibc2.12 on x86_64 (MySQL Community)";
        let (flavour, version) = read_version(mysql).unwrap();
        assert_eq!(flavour, Flavour::MySql);
        assert_eq!(version, Version::new(5, 7, 22));
        let maria = "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64";
        let (flavour, version) = read_version(maria).unwrap();
        assert_eq!(flavour, Flavour::MariaDb);
        assert_eq!(version, Version::new(10, 11, 19));
        assert!(read_version("bash, version 5.2").is_none());
    }

    #[test]
    fn an_unpacked_tree_is_known_by_its_messages() {
        let tree = tempfile::tempdir().unwrap();
        let program = tree.path().join("usr/sbin/mariadbd");
        assert_eq!(own_share(&program), None);
        let share = tree.path().join("usr/share/mariadb");
        std::fs::create_dir_all(share.join("english")).unwrap();
        std::fs::write(share.join("english/errmsg.sys"), "").unwrap();
        assert_eq!(own_share(&program), Some(share));
        assert_eq!(own_share(Path::new("/usr/sbin/mariadbd")), None);
    }

    #[test]
    fn a_program_that_others_can_change_is_not_roots_alone() {
        use std::os::unix::fs::{PermissionsExt, chown};
        assert!(Binary::is_roots_alone(Path::new("/bin/ls")));
        assert!(
            rustix::process::geteuid().is_root(),
            "only root can give files away"
        );
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("bin/mysqld");
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        std::fs::write(&program, "").unwrap();
        assert!(Binary::is_roots_alone(&program));
        chown(&program, Some(4242), None).unwrap();
        assert!(!Binary::is_roots_alone(&program));
        chown(&program, Some(0), None).unwrap();
        let open = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(dir.path().join("bin"), open).unwrap();
        assert!(!Binary::is_roots_alone(&program));
        assert!(!Binary::is_roots_alone(&dir.path().join("none")));
    }

    #[test]
    fn a_program_that_is_no_server_is_refused() {
        let error = Binary::inspect(Path::new("/bin/ls")).unwrap_err();
        assert_eq!(error.kind(), evenkeel_op::ErrorKind::Refused);
    }

    #[test]
    fn finding_nothing_says_what_to_install() {
        let error = Binary::find(&[PathBuf::from("/nonexistent")]).unwrap_err();
        assert!(error.hints()[0].contains("mariadb-server"));
    }
}
