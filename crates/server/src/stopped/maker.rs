//! Whose files they are: what the files of a data directory say about the server that wrote them.
//!
//! ```text
//! mysql.ibd         MySQL from 8.0: bytes 8 to 11 of page 0 are its version, 80015 for 8.0.15
//! redo log          bytes 16 to 47 of its first file: "MariaDB 10.11.19", "MySQL 5.7.22",
//!                   "Backup 10.11.19" (mariadb-backup)
//! *_upgrade_info    "10.11.19-MariaDB", "5.7.22"
//! aria_log_control  MariaDB
//! ```

use crate::abilities::{Flavour, Version};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The server that wrote a data directory's files last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maker {
    /// Whose server it is.
    pub flavour: Flavour,
    /// Its version; `None` when the files tell only whose they are.
    pub version: Option<Version>,
    /// The file that tells.
    pub told_by: PathBuf,
}

impl Maker {
    /// Asks the files in a data directory and the directory of the redo log; nothing when none of
    /// them tells. Where two tell of versions of one flavour, the newer one was there last.
    #[must_use]
    pub fn of_files(datadir: &Path, redo_dir: &Path) -> Option<Self> {
        let reported = [
            dictionary(&datadir.join("mysql.ibd")),
            redo_log(redo_dir),
            upgrade_info(&datadir.join("mariadb_upgrade_info")),
            upgrade_info(&datadir.join("mysql_upgrade_info")),
            aria(&datadir.join("aria_log_control")),
        ];
        let mut reported = reported.into_iter().flatten();
        let first = reported.next()?;
        Some(reported.fold(first, |best, next| {
            let is_newer = next.flavour == best.flavour && next.version > best.version;
            if is_newer { next } else { best }
        }))
    }

    /// Returns what `VERSION()` would say, as far as it is known.
    #[must_use]
    pub fn version_text(&self) -> Option<String> {
        let version = self.version?;
        Some(match self.flavour {
            Flavour::MariaDb => format!("{version}-MariaDB"),
            Flavour::MySql => version.to_string(),
        })
    }
}

/// MySQL's dictionary tablespace.
fn dictionary(path: &Path) -> Option<Maker> {
    let mut field = [0; 4];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut field, 8));
    let number = u32::from_be_bytes(field);
    let part = |number: u32| u16::try_from(number).ok();
    let version = match read {
        // What came before 8.0 has no such file.
        Ok(()) if (80_000..1_000_000).contains(&number) => Some(Version::new(
            part(number / 10_000)?,
            part(number / 100 % 100)?,
            part(number % 100)?,
        )),
        Ok(()) => None,
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => None,
        Err(_) => return None,
    };
    Some(Maker {
        flavour: Flavour::MySql,
        version,
        told_by: path.to_owned(),
    })
}

/// The redo log: one file that is always there, or the first of those that come and go.
fn redo_log(dir: &Path) -> Option<Maker> {
    let fixed = dir.join("ib_logfile0");
    if let Some(maker) = creator(&fixed) {
        return Some(maker);
    }
    let moving = std::fs::read_dir(dir.join("#innodb_redo")).ok()?;
    let mut files: Vec<PathBuf> = moving.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| !path.to_string_lossy().ends_with("_tmp"));
    files.sort();
    files.iter().find_map(|file| creator(file))
}

fn creator(path: &Path) -> Option<Maker> {
    let mut header = [0; 48];
    File::open(path).ok()?.read_exact_at(&mut header, 0).ok()?;
    let name = &header[16..];
    let end = name
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(name.len());
    let name = std::str::from_utf8(&name[..end]).ok()?;
    let (who, version) = name.split_once(' ')?;
    let flavour = match who {
        "MariaDB" | "Backup" => Flavour::MariaDb,
        "MySQL" => Flavour::MySql,
        _ => return None,
    };
    Some(Maker {
        flavour,
        version: Some(version.trim().parse().ok()?),
        told_by: path.to_owned(),
    })
}

/// What the program that brings system tables up to date left.
fn upgrade_info(path: &Path) -> Option<Maker> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(100).read_to_string(&mut text).ok()?;
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    Some(Maker {
        flavour: Flavour::of(text, ""),
        version: Some(text.parse().ok()?),
        told_by: path.to_owned(),
    })
}

fn aria(path: &Path) -> Option<Maker> {
    path.is_file().then(|| Maker {
        flavour: Flavour::MariaDb,
        version: None,
        told_by: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(creator: &str) -> Vec<u8> {
        let mut bytes = vec![0; 4096];
        bytes[16..16 + creator.len()].copy_from_slice(creator.as_bytes());
        bytes
    }

    fn reported(files: &[(&str, &[u8])]) -> Option<(Flavour, Option<Version>)> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("#innodb_redo")).unwrap();
        for (name, bytes) in files {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let maker = Maker::of_files(dir.path(), dir.path())?;
        Some((maker.flavour, maker.version))
    }

    #[test]
    fn each_file_tells() {
        let maria = |patch| Some((Flavour::MariaDb, Some(Version::new(10, 11, patch))));
        let mysql = |a, b, c| Some((Flavour::MySql, Some(Version::new(a, b, c))));
        let redo = header("MariaDB 10.11.19");
        assert_eq!(reported(&[("ib_logfile0", &redo)]), maria(19));
        let redo = header("Backup 10.11.7");
        assert_eq!(reported(&[("ib_logfile0", &redo)]), maria(7));
        let redo = header("MySQL 9.7.4");
        assert_eq!(
            reported(&[("#innodb_redo/#ib_redo5", &redo)]),
            mysql(9, 7, 4)
        );
        assert_eq!(reported(&[("#innodb_redo/#ib_redo5_tmp", &redo)]), None);
        let mut page = vec![0; 16384];
        page[8..12].copy_from_slice(&80_015_u32.to_be_bytes());
        assert_eq!(reported(&[("mysql.ibd", &page)]), mysql(8, 0, 15));
        assert_eq!(
            reported(&[("mysql_upgrade_info", b"5.7.22")]),
            mysql(5, 7, 22)
        );
        let info = b"10.11.19-MariaDB\n\0";
        assert_eq!(reported(&[("mariadb_upgrade_info", info)]), maria(19));
        assert_eq!(
            reported(&[("aria_log_control", b"")]),
            Some((Flavour::MariaDb, None))
        );
        assert_eq!(
            reported(&[("ib_logfile0", &header("somebody 1.2.3"))]),
            None
        );
        assert_eq!(reported(&[("ib_logfile0", b"short")]), None);
    }

    #[test]
    fn the_newest_of_one_flavour_was_there_last() {
        let redo = header("MariaDB 10.6.2");
        let info = b"10.11.19-MariaDB";
        let both: [(&str, &[u8]); 2] = [("ib_logfile0", &redo), ("mysql_upgrade_info", info)];
        assert_eq!(
            reported(&both),
            Some((Flavour::MariaDb, Some(Version::new(10, 11, 19))))
        );
    }
}
