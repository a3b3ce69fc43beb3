//! The options with which a server starts on restored files.

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
pub(crate) fn start_options(
    settings: &BTreeMap<String, String>,
    was: &BTreeMap<String, String>,
    places: &BTreeMap<String, PathBuf>,
) -> Vec<String> {
    let mut options: Vec<String> = CARRIED
        .iter()
        .filter_map(|name| Some((name, settings.get(*name)?)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("--{}={value}", name.replace('_', "-")))
        .collect();
    let system = settings.get("innodb_data_file_path");
    let whole_paths = system.and_then(|spec| moved_system_tablespace(spec, was, places));
    if let Some(spec) = whole_paths
        .as_ref()
        .or(system)
        .filter(|spec| !spec.is_empty())
    {
        options.push(format!("--innodb-data-file-path={spec}"));
    }
    if whole_paths.is_some() {
        // Put before every path, whole ones too.
        options.push("--innodb-data-home-dir=".to_owned());
    }
    let mut log_dir = None;
    let mut outside = Vec::new();
    for (id, path) in places.iter().filter(|(id, _)| *id != super::DATA) {
        let (id, path) = (id.as_str(), path.as_path());
        // MySQL 8 looks for tablespaces that moved in these directories.
        if id.starts_with("tablespaces-") || id.starts_with("schema-") {
            outside.push(path.display().to_string());
            continue;
        }
        let option = match id {
            "innodb-home" if whole_paths.is_some() => continue,
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
    if !outside.is_empty() && is_mysql_8(settings) {
        options.push(format!("--innodb-directories={}", outside.join(";")));
    }
    // Without its binary log a server cannot decide about transactions that were being committed.
    if let Some(base) = log_base(settings) {
        let path = log_dir.map_or_else(|| Path::new(base).to_owned(), |dir| dir.join(base));
        options.push(format!("--log-bin={}", path.display()));
    }
    options
}

/// Returns the files of a system tablespace that are named by their whole paths as they are named
/// now; `None` where none is, and a home directory is enough. A server that was told the old paths
/// would take the original files.
fn moved_system_tablespace(
    spec: &str,
    was: &BTreeMap<String, String>,
    places: &BTreeMap<String, PathBuf>,
) -> Option<String> {
    let parts: Vec<(&str, &str)> = spec
        .split(';')
        .filter(|part| !part.is_empty())
        .map(|part| part.split_once(':').unwrap_or((part, "")))
        .collect();
    if !parts.iter().any(|(path, _)| path.starts_with('/')) {
        return None;
    }
    let homes = || {
        places
            .iter()
            .filter(|(id, _)| id.starts_with("innodb-home"))
    };
    let moved = parts.iter().map(|(path, size)| {
        let (path, name) = (Path::new(path), Path::new(path).file_name()?);
        if !path.is_absolute() {
            let place = places.get(super::DATA)?.join(path);
            return Some(format!("{}:{size}", place.display()));
        }
        let in_root = was
            .iter()
            .find(|(_, root)| path.parent() == Some(Path::new(root)));
        let place = match in_root {
            Some((id, _)) => places.get(id)?,
            // It was named through a link; where it led is known if there is one such place.
            None => homes().next().filter(|_| homes().count() == 1)?.1,
        };
        Some(format!("{}:{size}", place.join(name).display()))
    });
    let moved: Option<Vec<String>> = moved.collect();
    Some(moved?.join(";"))
}

/// Whether the server keeps its dictionary in InnoDB: only those know the option.
pub(super) fn is_mysql_8(settings: &BTreeMap<String, String>) -> bool {
    let version = settings.get("version").map_or("", String::as_str);
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    !version.contains("MariaDB") && major.is_some_and(|major| (8..10).contains(&major))
}

/// The name part of `log_bin_basename`, when the binary log is on.
fn log_base(settings: &BTreeMap<String, String>) -> Option<&str> {
    let on = settings
        .get("log_bin")
        .is_some_and(|v| matches!(v.as_str(), "ON" | "1"));
    let base = settings.get("log_bin_basename").filter(|_| on)?;
    Path::new(base).file_name()?.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map<V: From<&'static str>>(pairs: &[(&str, &'static str)]) -> BTreeMap<String, V> {
        let pair = |(key, value): &(&str, &'static str)| ((*key).to_owned(), V::from(*value));
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn moved_tablespaces_are_told_to_mysql_8_alone() {
        let at = |version: &'static str| {
            let settings = map(&[("version", version)]);
            start_options(&settings, &map(&[]), &map(&[("tablespaces-1", "/t")]))
        };
        assert_eq!(at("8.0.15-log"), ["--innodb-directories=/t"]);
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
            start_options(&settings, &map(&[]), &places),
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
            start_options(&settings, &was, &places),
            [
                "--innodb-data-file-path=/h/a:12M;/h/b:8M;/d/c:8M;/d/sub/d:8M:autoextend",
                "--innodb-data-home-dir="
            ]
        );
    }
}
