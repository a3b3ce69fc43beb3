//! The options with which a server starts on restored files.

use std::collections::BTreeMap;
use std::path::Path;

/// Settings that must be as they were, or the server refuses the files.
const CARRIED: [&str; 9] = [
    "innodb_page_size",
    "innodb_data_file_path",
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
/// `roots` are the roots outside the data directory, with where they are now.
pub(super) fn start_options<'a>(
    settings: &BTreeMap<String, String>,
    roots: impl Iterator<Item = (&'a str, &'a Path)>,
) -> Vec<String> {
    let mut options: Vec<String> = CARRIED
        .iter()
        .filter_map(|name| Some((name, settings.get(*name)?)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("--{}={value}", name.replace('_', "-")))
        .collect();
    let mut log_dir = None;
    let mut outside = Vec::new();
    for (id, path) in roots {
        // MySQL 8 looks for tablespaces that moved in these directories.
        if id.starts_with("tablespaces-") || id.starts_with("schema-") {
            outside.push(path.display().to_string());
            continue;
        }
        let option = match id {
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

    #[test]
    fn moved_tablespaces_are_told_to_mysql_8_alone() {
        let at = |version: &str| {
            let settings = [("version".to_owned(), version.to_owned())].into();
            start_options(&settings, [("tablespaces-1", Path::new("/t"))].into_iter())
        };
        assert_eq!(at("8.0.15-log"), ["--innodb-directories=/t"]);
        assert!(at("5.7.22").is_empty());
        assert!(at("10.11.19-MariaDB").is_empty());
    }

    #[test]
    fn settings_and_roots_become_options() {
        let settings: BTreeMap<String, String> = [
            ("innodb_page_size", "8192"),
            ("log_bin", "ON"),
            ("log_bin_basename", "/var/log/mysql/binlog"),
            ("max_connections", "500"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
        let roots = [
            ("redo", Path::new("/r")),
            ("tablespaces-1", Path::new("/t")),
        ];
        assert_eq!(
            start_options(&settings, roots.into_iter()),
            [
                "--innodb-page-size=8192",
                "--innodb-log-group-home-dir=/r",
                "--log-bin=binlog"
            ]
        );
    }
}
