//! What option files tell the server: for finding the data directory of one that is not running.

use super::keys::Name;
use crate::abilities::{Flavour, Version};
use crate::option_file::{self, DefaultsSpec, OptionLine};
use evenkeel_op::Result;
use std::collections::BTreeMap;

/// Returns the groups that a server reads. Without a version, those that do not depend on one.
#[must_use]
pub fn server_groups(flavour: Flavour, version: Option<Version>) -> Vec<String> {
    let names: &[&str] = match flavour {
        Flavour::MariaDb => &["mysqld", "server", "mariadb", "mariadbd"],
        Flavour::MySql => &["mysqld", "server"],
    };
    let mut groups: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    if let Some(version) = version {
        let versioned = names.iter().filter(|name| **name != "server");
        groups.extend(versioned.map(|name| format!("{name}-{}.{}", version.major, version.minor)));
    }
    if flavour == Flavour::MariaDb {
        groups.extend(["client-server", "galera"].map(str::to_owned));
    }
    groups
}

/// Returns what the option files set for a server of this flavour and version: names with `_` and
/// without `loose_`, the last value of each. An option without a value is the empty string;
/// `skip_x` sets `x` to `OFF` and itself to the empty string.
///
/// Errors: those of [`option_file::read`].
pub fn server_settings(
    spec: &DefaultsSpec,
    flavour: Flavour,
    version: Option<Version>,
) -> Result<BTreeMap<String, String>> {
    let groups = server_groups(flavour, version);
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    Ok(settings_of(option_file::read(spec, &groups)?.options))
}

/// Returns what options set, in the order in which the server applies them.
pub(crate) fn settings_of(
    options: impl IntoIterator<Item = OptionLine>,
) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for option in options {
        let key = option.key();
        let name = Name::of(&key);
        if name.negated {
            settings.insert(option_file::key(&name.key), "OFF".to_owned());
        }
        let own = key.strip_prefix("loose_").unwrap_or(&key).to_owned();
        settings.insert(own, option.value.unwrap_or_default());
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_the_right_groups_counts() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("my.cnf");
        let text = "[mysqld]\ndatadir=/a\nloose-innodb_log-group-home-dir=/redo\n[mariadb-10.11]\n\
                    datadir=/b\n[mariadb-10.6]\ndatadir=/c\n[client]\ndatadir=/d\n\
                    [server]\nskip-log-bin\n";
        std::fs::write(&file, text).unwrap();
        let spec = DefaultsSpec {
            defaults_file: Some(file),
            ..DefaultsSpec::default()
        };
        let version = Some(Version::new(10, 11, 14));
        let maria = server_settings(&spec, Flavour::MariaDb, version).unwrap();
        assert_eq!(maria["datadir"], "/b");
        assert_eq!(maria["innodb_log_group_home_dir"], "/redo");
        assert_eq!(maria["log_bin"], "OFF");
        let mysql = server_settings(&spec, Flavour::MySql, None).unwrap();
        assert_eq!(mysql["datadir"], "/a");
    }
}
