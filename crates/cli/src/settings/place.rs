//! Where a repository is: a path of this host, or the URL of an object store with what the
//! environment and the store's own files say about it.

use evenkeel_objects::{StoreLocation, StoreOptions, Tell};
use evenkeel_op::Result;
use evenkeel_repository::Location;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the variables of the stores' own tools begin.
const PREFIXES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// Whether `word` names an object store.
#[must_use]
pub fn is_url(word: &Path) -> bool {
    word.to_str().is_some_and(StoreLocation::is_url)
}

/// Returns what others may be shown of a place: a URL without the secrets that one may hold, which is a name with a
/// password, and what stands behind a question mark.
pub fn shown_place(word: &Path) -> String {
    let text = word.display().to_string();
    let Some((scheme, rest)) = text.split_once("://") else {
        return text;
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = match rest.split_once('/') {
        Some((host, path)) => (host, format!("/{path}")),
        None => (rest, String::new()),
    };
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

/// Returns the place that `word` names, in the storage class that is asked for. `tell` hears that a store cannot
/// be reached for now.
pub fn location(word: &Path, storage_class: Option<&str>, tell: Tell) -> Result<Location> {
    let Some(url) = word.to_str().filter(|word| StoreLocation::is_url(word)) else {
        return Ok(Location::from(word));
    };
    let store_options = StoreOptions {
        storage_class: storage_class.map(str::to_owned),
        tell,
        ..StoreOptions::default()
    };
    let store = StoreLocation::parse(url, options())?.open(store_options)?;
    Ok(Location::on(Arc::new(store)))
}

/// What the environment says; where it says nothing about AWS, its shared files.
fn options() -> BTreeMap<String, String> {
    let all = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut options: BTreeMap<String, String> = all
        .filter(|(name, value)| {
            !value.is_empty() && PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
        .collect();
    let variable = |name: &str| options.get(name).cloned();
    let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let file = |name: &str, default: &str| {
        let path = variable(name).map_or_else(|| home.join(default), PathBuf::from);
        std::fs::read_to_string(path).unwrap_or_default()
    };
    let config = file("AWS_CONFIG_FILE", ".aws/config");
    let credentials = file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials");
    let sections = match profile.as_str() {
        "default" => vec!["default".to_owned()],
        other => vec![format!("profile {other}"), other.to_owned()],
    };
    // Credentials belong together: some of here and some of there are nobody's.
    let has_key = options.contains_key("AWS_ACCESS_KEY_ID");
    for (key, value) in section(&config, &sections).chain(section(&credentials, &sections)) {
        let name = match key {
            "region" | "endpoint_url" => format!("AWS_{}", key.to_ascii_uppercase()),
            "aws_access_key_id" | "aws_secret_access_key" | "aws_session_token" if !has_key => {
                key.to_ascii_uppercase()
            }
            _ => continue,
        };
        options.entry(name).or_insert_with(|| value.to_owned());
    }
    options
}

/// Returns the pairs of the sections of these names.
fn section<'a>(
    text: &'a str,
    names: &'a [String],
) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
    let mut wanted = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            wanted = names.iter().any(|one| one == name.trim());
            return None;
        }
        let (key, value) = line.split_once('=').filter(|_| wanted)?;
        Some((key.trim(), value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_its_own_section() {
        let text =
            "[default]\nregion = a\n[profile x]\nregion=b\n endpoint_url = http://c\n[y]\nregion=d";
        let names = ["profile x".to_owned(), "x".to_owned()];
        let found: Vec<_> = section(text, &names).collect();
        assert_eq!(found, [("region", "b"), ("endpoint_url", "http://c")]);
    }
}
