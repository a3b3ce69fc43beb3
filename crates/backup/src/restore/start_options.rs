//! The options with which a server starts on restored files.

use super::places::{plain, stays_below};
use crate::facts::Facts;
use evenkeel_op::{Error, Result};
use evenkeel_server::abilities::Recorded;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Settings that must be as they were, or the server refuses the files.
const CARRIED: [&str; 8] = [
    "innodb_page_size",
    "innodb_undo_tablespaces",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "innodb_checksum_algorithm",
    "lower_case_table_names",
    "server_id",
    "innodb_default_row_format",
];

/// Returns `--option=value` for everything that differs from a server's own defaults or may.
///
/// `was` and `places` are the directories of all roots, as they were and as they are now.
///
/// Errors: `Refused` for a system tablespace that is in none of them.
pub(crate) fn start_options(
    settings: &BTreeMap<String, String>,
    was: &BTreeMap<String, String>,
    places: &BTreeMap<String, PathBuf>,
) -> Result<Vec<String>> {
    let mut options: Vec<String> = CARRIED
        .iter()
        .filter_map(|name| Some((name, settings.get(*name)?)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("--{}={value}", name.replace('_', "-")))
        .collect();
    let system = system_tablespace(settings, was, places)?;
    let has_whole_paths = system.as_ref().is_some_and(|system| system.is_whole);
    options.extend(system.map(|system| format!("--innodb-data-file-path={}", system.spec)));
    if has_whole_paths {
        // Put before every path, whole ones too.
        options.push("--innodb-data-home-dir=".to_owned());
    }
    let mut log_dir = None;
    let mut outside = Vec::new();
    for (id, path) in places.iter().filter(|(id, _)| *id != super::DATA) {
        let (id, path) = (id.as_str(), path.as_path());
        // Where it is known to, the server looks for tablespaces that moved in these directories.
        if id.starts_with("tablespaces-") || id.starts_with("schema-") {
            outside.push(path.display().to_string());
            continue;
        }
        let option = match id {
            "innodb-home" if has_whole_paths => continue,
            "redo" => "innodb-log-group-home-dir",
            "undo" => "innodb-undo-directory",
            "innodb-home" => "innodb-data-home-dir",
            "doublewrite" => "innodb-doublewrite-dir",
            "aria-log" => "aria-log-dir-path",
            "binlog" => {
                log_dir = Some(path);
                continue;
            }
            _ => continue,
        };
        options.push(format!("--{option}={}", path.display()));
    }
    if !outside.is_empty() && finds_moved(settings) {
        options.push(format!("--innodb-directories={}", outside.join(";")));
    }
    // Without its binary log a server cannot decide about transactions that were being committed.
    if let Some(base) = log_base(settings) {
        let path = log_dir.map_or_else(|| Path::new(base).to_owned(), |dir| dir.join(base));
        options.push(format!("--log-bin={}", path.display()));
    }
    Ok(options)
}

/// Refuses a generation whose system tablespace is in none of its directories, before anything is read of it.
pub(crate) fn leads_nowhere_else(facts: &Facts) -> Result<()> {
    let roots = facts.roots.iter();
    let roots = roots.map(|(id, root)| (id.clone(), PathBuf::from(root)));
    system_tablespace(&facts.settings, &facts.roots, &roots.collect()).map(drop)
}

/// The setting of a server's system tablespace.
struct SystemTablespace {
    spec: String,
    /// Whether its files are named by their whole paths.
    is_whole: bool,
}

/// Returns the files of a system tablespace as they are named now. Where all have plain names, a home
/// directory is enough. Else all get their whole paths: a server with the old ones would take the
/// original files, or whatever else the repository names.
fn system_tablespace(
    settings: &BTreeMap<String, String>,
    was: &BTreeMap<String, String>,
    places: &BTreeMap<String, PathBuf>,
) -> Result<Option<SystemTablespace>> {
    let Some(spec) = settings.get("innodb_data_file_path") else {
        return Ok(None);
    };
    let parts: Vec<(&str, &str)> = spec
        .split(';')
        .filter(|part| !part.is_empty())
        .map(|part| part.split_once(':').unwrap_or((part, "")))
        .collect();
    let is_size = |size: &str| {
        let mut signs = size.bytes();
        signs.all(|sign| sign.is_ascii_alphanumeric() || sign == b':') && !size.ends_with("raw")
    };
    if let Some((path, _)) = parts.iter().find(|(_, size)| !is_size(size)) {
        return Err(nowhere(path));
    }
    if parts.iter().all(|(path, _)| stays_below(path.as_bytes())) {
        let spec = (!parts.is_empty()).then(|| spec.clone());
        return Ok(spec.map(|spec| SystemTablespace {
            spec,
            is_whole: false,
        }));
    }
    let mut moved = Vec::new();
    for (path, size) in &parts {
        let place = moved_file(path, settings, was, places).ok_or_else(|| nowhere(path))?;
        moved.push(format!("{}:{size}", place.display()));
    }
    Ok(Some(SystemTablespace {
        spec: moved.join(";"),
        is_whole: true,
    }))
}

/// Returns where a file of the system tablespace is now; `None` when that is in no root.
fn moved_file(
    path: &str,
    settings: &BTreeMap<String, String>,
    was: &BTreeMap<String, String>,
    places: &BTreeMap<String, PathBuf>,
) -> Option<PathBuf> {
    let said = |name: &str| settings.get(name).map(PathBuf::from);
    let data = was.get(super::DATA).map(PathBuf::from);
    let home = said("innodb_data_home_dir").filter(|home| home.is_absolute());
    let base = home.or_else(|| data.clone()).unwrap_or_default();
    let whole = plain(&base.join(path));
    let name = whole.file_name()?;
    // The data directory may have been called by a link to it.
    let data = said("datadir")
        .filter(|dir| dir.is_absolute())
        .map(|dir| (super::DATA, dir));
    let roots = was.iter();
    let roots = roots.map(|(id, root)| (id.as_str(), PathBuf::from(root)));
    let below = roots.chain(data).filter_map(|(id, root)| {
        let rest = whole
            .strip_prefix(&root)
            .ok()
            .filter(|rest| rest.is_relative())?;
        Some((root.as_os_str().len(), places.get(id)?.join(rest)))
    });
    if let Some((_, place)) = below.max_by_key(|(length, _)| *length) {
        return Some(place);
    }
    // It was named through a link; where it led is known if there is one such place.
    let mut homes = places
        .iter()
        .filter(|(id, _)| id.starts_with("innodb-home"));
    match (homes.next(), homes.next()) {
        (Some((_, home)), None) => Some(home.join(name)),
        _ => None,
    }
}

fn nowhere(path: &str) -> Error {
    let path: String = path.chars().take(200).collect();
    Error::refused(format!(
        "the generation's system tablespace names {}, which is in none of its directories: a \
         server would open the file there",
        path.escape_debug()
    ))
    .hint("evenkeel does not write that: check who can write to the repository")
    .hint("you can still read its files: evenkeel mount")
}

/// Whether the server of a backup finds tablespaces that moved.
fn finds_moved(settings: &BTreeMap<String, String>) -> bool {
    let version = settings.get("version").map(String::as_str);
    Recorded::of(version).could(|server| server.innodb_directories)
}

/// The name part of `log_bin_basename`, when the binary log is on.
fn log_base(settings: &BTreeMap<String, String>) -> Option<&str> {
    let on = settings
        .get("log_bin")
        .is_some_and(|v| matches!(v.as_str(), "ON" | "1"));
    let base = settings.get("log_bin_basename").filter(|_| on)?;
    Path::new(base).file_name()?.to_str()
}

/// The redo log names tables outside the data directory by the path that they had, and crash
/// recovery opens them there: it would not start without them, and would write to whatever else is
/// at that place, the original server's own tables perhaps. Only some look elsewhere first.
/// Returns the root and place of each directory of such tables.
pub(crate) fn bound_to_their_place(facts: &Facts) -> impl Iterator<Item = (&str, &Path)> {
    let bound = !finds_moved(&facts.settings);
    facts
        .roots
        .iter()
        .filter(move |(id, _)| bound && id.starts_with("tablespaces-"))
        .map(|(id, place)| (id.as_str(), Path::new(place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map<V: From<&'static str>>(pairs: &[(&str, &'static str)]) -> BTreeMap<String, V> {
        let pair = |(key, value): &(&str, &'static str)| ((*key).to_owned(), V::from(*value));
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn moved_tablespaces_are_reported_where_they_are_looked_for() {
        let at = |version: &'static str| {
            let settings = map(&[("version", version)]);
            start_options(&settings, &map(&[]), &map(&[("tablespaces-1", "/t")])).unwrap()
        };
        for version in ["8.0.15-log", "9.7.0", "10.0.1", "12.4.0-log"] {
            assert_eq!(at(version), ["--innodb-directories=/t"], "{version}");
        }
        assert!(at("5.7.22").is_empty());
        assert!(at("10.11.19-MariaDB").is_empty());
    }

    #[test]
    fn settings_and_roots_become_options() {
        let settings = map(&[
            ("innodb_page_size", "8192"),
            ("innodb_data_file_path", "ibdata1:12M:autoextend"),
            ("log_bin", "ON"),
            ("log_bin_basename", "/var/log/mysql/binlog"),
            ("max_connections", "500"),
        ]);
        let places = map(&[("redo", "/r"), ("tablespaces-1", "/t"), ("data", "/d")]);
        assert_eq!(
            start_options(&settings, &map(&[]), &places).unwrap(),
            [
                "--innodb-page-size=8192",
                "--innodb-data-file-path=ibdata1:12M:autoextend",
                "--innodb-log-group-home-dir=/r",
                "--log-bin=binlog"
            ]
        );
    }

    #[test]
    fn whole_paths_of_the_system_tablespace_follow_their_roots() {
        let spec = "/one/a:12M;/link/b:8M;/var/lib/mysql/c:8M;sub/d:8M:autoextend";
        let settings = map(&[("innodb_data_file_path", spec)]);
        let was = map(&[("data", "/var/lib/mysql"), ("innodb-home", "/one")]);
        let places = map(&[("data", "/d"), ("innodb-home", "/h")]);
        assert_eq!(
            start_options(&settings, &was, &places).unwrap(),
            [
                "--innodb-data-file-path=/h/a:12M;/h/b:8M;/d/c:8M;/d/sub/d:8M:autoextend",
                "--innodb-data-home-dir="
            ]
        );
    }

    #[test]
    fn a_system_tablespace_that_is_nowhere_is_refused() {
        let was = map(&[("data", "/var/lib/mysql"), ("redo", "/redo")]);
        let places = map(&[("data", "/d"), ("redo", "/r")]);
        let at = |spec: &'static str, more: &[(&str, &'static str)]| {
            let mut settings = map(&[("innodb_data_file_path", spec)]);
            settings.extend(map::<String>(more));
            start_options(&settings, &was, &places).map(|options| options[0].clone())
        };
        for spec in [
            "/live/ibdata1:12M:autoextend",
            "ibdata1:12M;/live/b:12M",
            "../live/ibdata1:12M",
            "a/../../live/ibdata1:12M",
            "/var/lib/mysql/../live/ibdata1:12M",
            "/var/lib/mysql-live/ibdata1:12M",
            "..:12M",
            "/:12M",
            "ibdata1:12Mnewraw",
            "ibdata1:12M:autoextend --plugin-load=x",
        ] {
            let error = at(spec, &[]).unwrap_err();
            assert_eq!(error.kind(), evenkeel_op::ErrorKind::Refused, "{spec}");
            assert!(!error.hints().is_empty());
        }
        let option = |spec: &str| format!("--innodb-data-file-path={spec}");
        assert_eq!(at("./a:1M", &[]).unwrap(), option("./a:1M"));
        assert_eq!(at("../mysql/a:1M", &[]).unwrap(), option("/d/a:1M"));
        assert_eq!(at("../../../redo/a:1M", &[]).unwrap(), option("/r/a:1M"));
        // Both are called by links.
        let link = [("datadir", "/link/")];
        assert_eq!(at("/link/a:1M", &link).unwrap(), option("/d/a:1M"));
        let home = [("innodb_data_home_dir", "/redo/x")];
        assert_eq!(at("../a:1M", &home).unwrap(), option("/r/a:1M"));
    }
}
