//! What the tool writes down beside the data: where in the binary log its copy is.

use evenkeel_op::{Error, Result};
use evenkeel_server::coordinates::Coordinates;
use std::collections::BTreeMap;
use std::path::Path;

/// Files with the coordinates, by the names that the tools have given them so far.
const BINLOG_INFO: [&str; 2] = ["xtrabackup_binlog_info", "mariadb_backup_binlog_info"];
/// The longest note that is kept in memory, in bytes: GTID sets can be long.
pub(super) const NOTE_MAX: usize = 1 << 20;

/// Whether a file of the stream is such a note.
pub(super) fn is_note(path: &str) -> bool {
    BINLOG_INFO.contains(&path)
}

/// Reads the coordinates: `binlog.000002<TAB>1234<TAB>0-1-99`. None without a binary log.
pub(super) fn coordinates(notes: &BTreeMap<String, Vec<u8>>) -> Result<Coordinates> {
    let Some(text) = BINLOG_INFO.iter().find_map(|name| notes.get(*name)) else {
        return Ok(Coordinates::default());
    };
    let text = String::from_utf8_lossy(text);
    let mut fields = text.trim_end().split('\t').map(str::trim);
    let file = fields.next().filter(|file| !file.is_empty());
    let position = fields.next().and_then(|position| position.parse().ok());
    let (Some(file), Some(position)) = (file, position) else {
        let text = text.trim_end();
        return Err(Error::failed(format!(
            "the tool's coordinates are not valid: '{text}'"
        )));
    };
    // A set of MySQL's continues over several lines.
    let gtid: String = fields.collect::<String>().split_whitespace().collect();
    Ok(Coordinates {
        binlog_file: Path::new(file)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned()),
        binlog_position: Some(position),
        gtid: Some(gtid).filter(|gtid| !gtid.is_empty()),
    })
}

/// The copy's place must lie between where the server was before and after it.
pub(super) fn check(copy: &Coordinates, before: &Coordinates, after: &Coordinates) -> Result<()> {
    let (Some(from), Some(to)) = (place(before), place(after)) else {
        return Ok(());
    };
    let failed = |found: &str| {
        Err(Error::failed(format!(
            "the tool reports {found} for its copy, but the server was between {} and {}",
            shown(before),
            shown(after)
        ))
        .hint("nothing was stored; check that the tool works with this server's version"))
    };
    match place(copy) {
        Some(at) if (from..=to).contains(&at) => Ok(()),
        Some(_) => failed(&format!("position {}", shown(copy))),
        None => failed("no binary log position"),
    }
}

/// Binary logs are numbered: `binlog.000009` comes before `binlog.000010` and `binlog.1000000`.
fn place(coordinates: &Coordinates) -> Option<(u64, u64)> {
    let (_, number) = coordinates.binlog_file.as_ref()?.rsplit_once('.')?;
    Some((number.parse().ok()?, coordinates.binlog_position?))
}

fn shown(coordinates: &Coordinates) -> String {
    let file = coordinates.binlog_file.as_deref().unwrap_or("?");
    format!("{file}:{}", coordinates.binlog_position.unwrap_or_default())
}

/// Returns the settings for a server on the restored files: all of them lie in one directory.
pub(super) fn settings(settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut settings = settings.clone();
    if let Some(spec) = settings.get_mut("innodb_data_file_path") {
        let on_top = |part: &str| match part.split_once(':') {
            Some((path, size)) => {
                let name = Path::new(path).file_name().unwrap_or_default();
                format!("{}:{size}", name.to_string_lossy())
            }
            None => part.to_owned(),
        };
        let parts: Vec<String> = spec.split(';').map(on_top).collect();
        *spec = parts.join(";");
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(text: &str) -> Result<Coordinates> {
        let name = "xtrabackup_binlog_info".to_owned();
        coordinates(&[(name, text.as_bytes().to_vec())].into())
    }

    fn at(file: &str, position: u64) -> Coordinates {
        Coordinates {
            binlog_file: Some(file.to_owned()),
            binlog_position: Some(position),
            gtid: None,
        }
    }

    #[test]
    fn coordinates_are_read_as_both_tools_write_them() {
        let maria = noted("binlog.000002\t1234\t0-1-99,1-2-3\n").unwrap();
        assert_eq!(
            (maria.binlog_file.as_deref(), maria.binlog_position),
            (Some("binlog.000002"), Some(1234))
        );
        assert_eq!(maria.gtid.as_deref(), Some("0-1-99,1-2-3"));
        assert_eq!(
            noted("binlog.000002\t1234\t\n").unwrap(),
            at("binlog.000002", 1234)
        );
        assert_eq!(noted("/log/b.000002\t4\n").unwrap(), at("b.000002", 4));
        let mysql = noted("b.1\t4\taaaa-bb:1-3,\ncccc-dd:1-9\n").unwrap();
        assert_eq!(mysql.gtid.as_deref(), Some("aaaa-bb:1-3,cccc-dd:1-9"));
        assert!(noted("nonsense").is_err());
        assert_eq!(
            coordinates(&BTreeMap::new()).unwrap(),
            Coordinates::default()
        );
    }

    #[test]
    fn a_place_outside_the_run_is_an_error() {
        let (before, after) = (at("b.000009", 500), at("b.000010", 100));
        for (copy, fits) in [
            (at("b.000009", 500), true),
            (at("b.000009", 900), true),
            (at("b.000010", 100), true),
            (at("b.000009", 499), false),
            (at("b.000010", 101), false),
            (at("b.000008", 900), false),
            (Coordinates::default(), false),
        ] {
            assert_eq!(check(&copy, &before, &after).is_ok(), fits, "{copy:?}");
        }
        let off = Coordinates::default();
        assert!(check(&off, &off, &off).is_ok());
    }

    #[test]
    fn the_system_tablespace_is_on_top() {
        let was = [(
            "innodb_data_file_path".to_owned(),
            "/a/ibdata1:12M;sub/b:8M:autoextend".to_owned(),
        )];
        assert_eq!(
            settings(&was.into())["innodb_data_file_path"],
            "ibdata1:12M;b:8M:autoextend"
        );
    }
}
