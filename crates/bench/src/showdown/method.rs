//! Ways to back up a server, as data: what is run, what it leaves, how that is restored.

use evenkeel_op::{Error, Result};
use evenkeel_server::abilities::Flavour;
use serde::Serialize;
use std::path::Path;

/// What a backup leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Leaves {
    /// Nothing that is restored here.
    Nothing,
    /// Rows, which are put into a server that runs.
    Rows,
    /// The server's files, on which a server is started.
    Files,
}

/// What the filesystem below the data directory has to be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Anything.
    Any,
    /// Files that share blocks.
    Reflinks,
    /// Snapshots of btrfs.
    Btrfs,
    /// A logical volume.
    Lvm,
}

/// From which server is backed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// From the one that takes the load.
    Source,
    /// From a replica of it, on the same machine.
    Replica,
}

/// One way to back up.
#[derive(Debug, Clone)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// Programs without which it is left out.
    pub programs: Vec<String>,
    /// What the filesystem has to be able to do.
    pub filesystem: Needs,
    /// Whose servers it is for; none: anybody's.
    pub flavour: Option<Flavour>,
    /// The backup, for a shell; none: nothing is done.
    pub backup: Option<String>,
    /// The restore, for a shell; none: it is not restored.
    pub restore: Option<String>,
    /// What it leaves.
    pub leaves: Leaves,
    /// Whether each backup continues from the last one, in the same directory.
    pub is_incremental: bool,
    /// From which server.
    pub from: From,
    /// Whether it is evenkeel's backup of files, which the bars are for.
    pub is_ours: bool,
}

/// The undisturbed server, which everything else is compared with.
pub const NONE: &str = "none";

const CLIENT: &str = "--no-defaults -u root -S {socket}";

impl Method {
    /// Begins one that leaves nothing that is restored here.
    #[must_use]
    pub fn new(name: &str, backup: &str) -> Self {
        Self {
            name: name.to_owned(),
            programs: Vec::new(),
            filesystem: Needs::Any,
            flavour: None,
            backup: Some(backup.replace("{client}", CLIENT)),
            restore: None,
            leaves: Leaves::Nothing,
            is_incremental: false,
            from: From::Source,
            is_ours: false,
        }
    }

    /// Sets how it is restored: into a running server where the command names a `{socket}`, into a
    /// directory where it names a `{target}`.
    ///
    /// Errors: `Usage` for a command that names neither.
    pub fn restored_by(mut self, command: &str) -> Result<Self> {
        let command = command.replace("{client}", CLIENT);
        self.leaves = match (command.contains("{target}"), command.contains("{socket}")) {
            (true, _) => Leaves::Files,
            (false, true) => Leaves::Rows,
            (false, false) => {
                return Err(Error::usage(format!(
                    "the restore command of {} uses neither {{socket}} nor {{target}}",
                    self.name
                ))
                .hint("{target} is the empty directory to restore into, {socket} the server to load into"));
            }
        };
        self.restore = Some(command);
        Ok(self)
    }

    fn needing(mut self, programs: &[&str]) -> Self {
        self.programs = programs.iter().map(|&name| name.to_owned()).collect();
        self
    }

    fn of(mut self, flavour: &str) -> Self {
        self.flavour = Some(flavour.parse().expect("it is one of the two"));
        self
    }

    /// Evenkeel's own backup, by one kind of snapshot.
    fn ours(snapshot: &str, filesystem: Needs) -> Self {
        let backup = format!("{{evenkeel}} backup {{output}} --snapshot {snapshot} {{client}}");
        let mut method = Self::new(&format!("evenkeel-{snapshot}"), &backup)
            .restored_by("{evenkeel} restore {output} --target {target}")
            .expect("it names the target");
        method.filesystem = filesystem;
        method.is_incremental = true;
        method.is_ours = true;
        method
    }

    /// Returns all that are known, in the order in which they are shown.
    #[must_use]
    pub fn known() -> Vec<Self> {
        let undisturbed = Self {
            backup: None,
            ..Self::new(NONE, "")
        };
        let mut all = vec![undisturbed];
        all.extend(Self::of_rows());
        all.extend(Self::of_files());
        all
    }

    fn of_rows() -> Vec<Self> {
        let rows = |name: &str, backup: &str, restore: &str| {
            let method = Self::new(name, backup).restored_by(restore);
            method.expect("it names the socket")
        };
        let dump = "{client} --quick --single-transaction --hex-blob --routines --triggers --events \
                    --databases {database}";
        let plain = format!("mariadb-dump {dump} --result-file={{output}}/dump.sql");
        let packed = format!("mariadb-dump {dump} | gzip -c > {{output}}/dump.sql.gz");
        let mysql = format!("{{bin}}/mysqldump {dump} --result-file={{output}}/dump.sql");
        let client = "mariadb {client} < {output}/dump.sql";
        let unpacked = "gzip -dc {output}/dump.sql.gz | mariadb {client}";
        let maria = |name: &str, backup: &str, restore: &str| {
            rows(name, backup, restore)
                .of("mariadb")
                .needing(&["mariadb-dump", "mariadb", "gzip"])
        };
        vec![
            maria("mariadb-dump", &plain, client),
            maria("mariadb-dump-gzip", &packed, unpacked),
            Self {
                from: From::Replica,
                ..maria("mariadb-dump-replica", &plain, client)
            },
            rows(
                "mysqldump",
                &mysql,
                "{bin}/mysql {client} < {output}/dump.sql",
            )
            .of("mysql")
            .needing(&["{bin}/mysqldump", "{bin}/mysql"]),
            // With its mildest lock: the tables are all InnoDB's.
            rows(
                "mydumper",
                "mydumper -u root -S {socket} -B {database} -o {output} -t {threads} -c -G -E -R \
                 --trx-consistency-only",
                "myloader -u root -S {socket} -B {database} -d {output} -t {threads} -o",
            )
            .of("mariadb")
            .needing(&["mydumper", "myloader"]),
            rows(
                "evenkeel-dump",
                "{evenkeel} dump {client} --output {output} --database {database} \
                 --threads {threads}",
                "{evenkeel} load {output} {client} --threads {threads}",
            ),
        ]
    }

    fn of_files() -> Vec<Self> {
        let hot = "mariadb-backup --no-defaults --backup -u root -S {socket} --datadir={datadir} \
                   --target-dir={output} --parallel={threads}";
        // It leaves what it copies to the kernel; who restores wants it to survive a power failure.
        let back = "mariadb-backup --no-defaults --prepare --target-dir={output} && mariadb-backup \
                    --no-defaults --copy-back --target-dir={output} --datadir={target} \
                    --parallel={threads} && sync -f {target}";
        let hot = Self::new("mariadb-backup", hot).restored_by(back);
        let hot = hot.expect("it names the target").of("mariadb");
        vec![
            hot.needing(&["mariadb-backup"]),
            Self::ours("reflink", Needs::Reflinks),
            Self::ours("btrfs", Needs::Btrfs),
            Self::ours("lvm", Needs::Lvm),
            Self::ours("engine", Needs::Any)
                .of("mariadb")
                .needing(&["mariadb-backup"]),
        ]
    }
}

/// What stands for the words in braces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<'a> {
    pub(super) evenkeel: &'a Path,
    pub(super) bin: &'a Path,
    pub(super) database: &'a str,
    pub(super) threads: usize,
    pub(super) socket: &'a Path,
    pub(super) datadir: &'a Path,
    pub(super) output: &'a Path,
    pub(super) target: &'a Path,
}

impl Words<'_> {
    /// Puts them into a command; braces around other words stay, they are the shell's.
    pub(super) fn fill(&self, command: &str) -> String {
        let paths = [
            ("{evenkeel}", self.evenkeel),
            ("{bin}", self.bin),
            ("{socket}", self.socket),
            ("{datadir}", self.datadir),
            ("{output}", self.output),
            ("{target}", self.target),
        ];
        let mut filled = command
            .replace("{database}", self.database)
            .replace("{threads}", &self.threads.to_string());
        for (word, path) in paths {
            filled = filled.replace(word, &quoted(path));
        }
        filled
    }
}

/// Writes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_braces_are_filled_in_and_others_are_the_shells() {
        let words = Words {
            evenkeel: Path::new("/opt/e k"),
            bin: Path::new("/usr/sbin"),
            database: "tpcc",
            threads: 4,
            socket: Path::new("/run/it's"),
            datadir: Path::new("/d"),
            output: Path::new("/o"),
            target: Path::new("/t"),
        };
        let filled =
            words.fill("{evenkeel} -S {socket} -t {threads} {database} ${HOME} {output}/x");
        assert_eq!(
            filled,
            r"'/opt/e k' -S '/run/it'\''s' -t 4 tpcc ${HOME} /o/x"
        );
    }

    #[test]
    fn known_methods_have_a_name_each_and_all_but_none_can_be_restored() {
        let known = Method::known();
        let mut names: Vec<&str> = known.iter().map(|method| method.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), known.len());
        for method in &known {
            assert_eq!(method.restore.is_some(), method.name != NONE, "{method:?}");
            let said = method.backup.clone().unwrap_or_default();
            assert!(!said.contains("{client}"), "{said}");
            assert_eq!(said.contains("{output}"), method.name != NONE, "{said}");
        }
    }

    #[test]
    fn a_restore_says_by_its_words_what_it_restores() {
        let of = |command: &str| Method::new("mine", "cp x {output}").restored_by(command);
        assert_eq!(of("tar x -C {target}").unwrap().leaves, Leaves::Files);
        assert_eq!(of("mysql -S {socket}").unwrap().leaves, Leaves::Rows);
        assert_eq!(
            of("true").unwrap_err().kind(),
            evenkeel_op::ErrorKind::Usage
        );
    }
}
