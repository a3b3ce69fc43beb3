//! From options, as files write them, to the variables that a running server would show.

use super::Maker;
use crate::abilities::{Flavour, Version};
use crate::option_file::OptionLine;
use crate::options::settings_of;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

type Variables = BTreeMap<String, String>;

/// Returns the variables that options set, and those that follow from them.
pub(super) fn variables(
    options: &[OptionLine],
    datadir: &Path,
    maker: Option<&Maker>,
) -> Variables {
    let mut variables = settings_of(options.iter().cloned());
    let is_loaded = variables.get("persisted_globals_load");
    if is_loaded.is_none_or(|value| is_on(value)) {
        variables.extend(persisted(datadir));
    }
    variables.insert("datadir".to_owned(), datadir.display().to_string());
    if let Some(version) = maker.and_then(Maker::version_text) {
        variables.insert("version".to_owned(), version);
    }
    if let Some(bytes) = variables
        .get("innodb_page_size")
        .and_then(|text| size(text))
    {
        variables.insert("innodb_page_size".to_owned(), bytes.to_string());
    }
    binary_log(&mut variables, datadir, maker);
    relay_log(&mut variables, datadir);
    variables
}

/// What `SET PERSIST` left: it comes after the option files.
fn persisted(datadir: &Path) -> Variables {
    let mut found = Variables::new();
    let text = super::state::read(datadir, "mysqld-auto.cnf").unwrap_or_default();
    if let Ok(serde_json::Value::Object(top)) = serde_json::from_slice(&text) {
        collect(&top, &mut found);
    }
    found
}

/// Its sections differ from version to version; what is in each of them does not.
fn collect(section: &serde_json::Map<String, serde_json::Value>, found: &mut Variables) {
    for (name, inner) in section
        .iter()
        .filter_map(|(name, v)| Some((name, v.as_object()?)))
    {
        match inner.get("Value").and_then(serde_json::Value::as_str) {
            Some(value) => {
                found.insert(name.clone(), value.to_owned());
            }
            None => collect(inner, found),
        }
    }
}

fn binary_log(variables: &mut Variables, datadir: &Path, maker: Option<&Maker>) {
    let by_default = maker.is_some_and(|maker| {
        let from = Version::new(8, 0, 3);
        maker.flavour == Flavour::MySql && maker.version.is_none_or(|v| v >= from)
    });
    let named = variables.get("log_bin").cloned();
    let is_off = named.as_deref() == Some("OFF");
    if is_off || (named.is_none() && !by_default) {
        variables.insert("log_bin".to_owned(), "OFF".to_owned());
        return;
    }
    let default = match by_default {
        true => "binlog".to_owned(),
        false => format!("{}-bin", host(variables)),
    };
    let name = named.filter(|name| !name.is_empty()).unwrap_or(default);
    log(variables, "log_bin", &datadir.join(name));
    variables.insert("log_bin".to_owned(), "ON".to_owned());
}

fn relay_log(variables: &mut Variables, datadir: &Path) {
    let named = variables.get("relay_log").filter(|name| !name.is_empty());
    let name = named.cloned();
    let name = name.unwrap_or_else(|| format!("{}-relay-bin", host(variables)));
    log(variables, "relay_log", &datadir.join(name));
}

/// Sets the base name and the index of a log. What looks like an extension is not part of a base
/// name; an index without one gets it.
fn log(variables: &mut Variables, log: &str, named: &Path) {
    let stem = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.split('.').next().unwrap_or_default().to_owned();
        path.with_file_name(stem)
    };
    let base = stem(named);
    let index = variables.get(&format!("{log}_index")).cloned();
    let index = match index.filter(|index| !index.is_empty()) {
        Some(index) => named_index(variables, &index),
        None => PathBuf::from(format!("{}.index", base.display())),
    };
    let put = |variables: &mut Variables, name: &str, path: &Path| {
        variables.insert(format!("{log}_{name}"), path.display().to_string());
    };
    put(variables, "basename", &base);
    put(variables, "index", &index);
}

fn named_index(variables: &Variables, index: &str) -> PathBuf {
    let datadir = variables.get("datadir").map_or("", String::as_str);
    let path = Path::new(datadir).join(index);
    match path.extension() {
        Some(_) => path,
        None => path.with_extension("index"),
    }
}

/// The name that logs begin with when nobody names them.
fn host(variables: &Variables) -> String {
    let named = variables
        .get("log_basename")
        .filter(|name| !name.is_empty());
    let node = rustix::system::uname();
    let node = node.nodename().to_string_lossy();
    let name = named.map_or(&*node, String::as_str);
    name.split('.').next().unwrap_or_default().to_owned()
}

fn is_on(value: &str) -> bool {
    !["0", "off", "false"]
        .iter()
        .any(|off| value.eq_ignore_ascii_case(off))
}

/// Reads a size as the servers do: `16384`, `16k`, `1M`.
fn size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => (&text[..text.len() - 1], 1 << 10),
        b'm' => (&text[..text.len() - 1], 1 << 20),
        b'g' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
