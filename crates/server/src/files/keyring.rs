//! Files that hold encryption keys: without them encrypted tables are lost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Variables of MySQL's keyring plugins and MariaDB's key management that name a file of keys.
const VARIABLES: [&str; 3] = [
    "keyring_file_data",
    "keyring_encrypted_file_data",
    "file_key_management_filename",
];

/// Configuration files of MySQL's keyring components, which came after the plugins.
const COMPONENTS: [&str; 2] = [
    "component_keyring_file.cnf",
    "component_keyring_encrypted_file.cnf",
];

/// Returns the key files that a server's variables and components name, without symbolic links.
/// One may be missing: it is made with the first key.
pub(super) fn files(datadir: &Path, variables: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let named = VARIABLES
        .iter()
        .filter_map(|name| variables.get(*name))
        .filter(|path| !path.is_empty())
        .map(|path| datadir.join(path));
    let plugins = variables.get("plugin_dir").map(|dir| datadir.join(dir));
    // A component may say that its real configuration is in the data directory: look at both.
    let components = [Some(datadir.to_owned()), plugins]
        .into_iter()
        .flatten()
        .flat_map(|dir| COMPONENTS.map(|name| dir.join(name)))
        .filter_map(|file| component_path(&file))
        .map(|path| datadir.join(path));
    let resolved = |path: PathBuf| std::fs::canonicalize(&path).unwrap_or(path);
    named.chain(components).map(resolved).collect()
}

/// Reads `{"path": "/var/lib/mysql-keyring/keys", …}`.
fn component_path(file: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(file).ok()?;
    let config: serde_json::Value = serde_json::from_str(&text).ok()?;
    let path = config.get("path")?.as_str()?;
    (!path.is_empty()).then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_and_components_name_their_files() {
        let data = tempfile::tempdir().unwrap();
        let plugins = tempfile::tempdir().unwrap();
        let config = plugins.path().join("component_keyring_file.cnf");
        std::fs::write(config, r#"{"path": "/keys/component", "read_only": false}"#).unwrap();
        let local = data.path().join("component_keyring_encrypted_file.cnf");
        std::fs::write(local, r#"{"read_local_config": true}"#).unwrap();
        let variables = [
            ("keyring_file_data", "keys/plugin"),
            ("keyring_encrypted_file_data", ""),
            ("plugin_dir", plugins.path().to_str().unwrap()),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
        let found = files(data.path(), &variables);
        assert_eq!(
            found,
            [
                data.path().join("keys/plugin"),
                PathBuf::from("/keys/component")
            ]
        );
    }
}
