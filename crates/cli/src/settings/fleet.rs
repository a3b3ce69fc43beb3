//! A list of servers, and the command line that each of them means.

use crate::args::{Connection, Fleet, Verb};
use crate::opened;
use crate::wrong_use;
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Cancel, Context, Error, Result};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use toml::Value;

/// The verbs that are run for many servers.
const VERBS: [&str; 6] = [
    "backup",
    "generations",
    "verify",
    "forget",
    "prune",
    "doctor",
];

/// A server, and the words of its command without the program's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetMember {
    /// Its name in the list.
    pub name: String,
    /// What should be done for it.
    pub words: Vec<OsString>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    every: BTreeMap<String, Value>,
    #[serde(default)]
    server: Vec<Server>,
}

#[derive(Deserialize)]
struct Server {
    name: String,
    #[serde(flatten)]
    options: BTreeMap<String, Value>,
}

/// Reads the list and returns the command line of each server that is meant. Every one of them is
/// checked before the first is run.
pub fn fleet(typed: &Fleet, cancel: &Cancel) -> Result<Vec<FleetMember>> {
    let path = typed.file.display();
    let list = read(&typed.file, cancel)?;
    members(&list, &typed.command, &typed.only).context(|| format!("{path} and the command"))
}

fn read(path: &Path, cancel: &Cancel) -> Result<List> {
    let text = opened::read(path, "list of servers", cancel)?;
    let text = String::from_utf8(text).map_err(|_| {
        let error = io::Error::new(
            io::ErrorKind::InvalidData,
            "stream did not contain valid UTF-8",
        );
        unreadable("list of servers", path, error)
    })?;
    list_in(&path.display().to_string(), &text)
}

/// Reads the list and returns how each server that is meant is reached from this host, by its name. Options that
/// are about something else are passed over.
pub(super) fn connections(
    path: &Path,
    only: &[String],
    cancel: &Cancel,
) -> Result<Vec<(String, Connection)>> {
    let list = read(path, cancel)?;
    connections_in(&list, only).context(|| path.display().to_string())
}

fn connections_in(list: &List, only: &[String]) -> Result<Vec<(String, Connection)>> {
    let mut found = Vec::new();
    let mut elsewhere = Vec::new();
    let known = KnownOptions::all();
    for (server, options) in distinct(list)? {
        if !only.is_empty() && !only.contains(&server.name) {
            continue;
        }
        if options.contains_key("ssh") {
            elsewhere.push(server.name.as_str());
        }
        let of_server = connection_of(&server.name, &options, &known);
        found.push((
            server.name.clone(),
            of_server.context(|| format!("server '{}'", server.name))?,
        ));
    }
    if !elsewhere.is_empty() {
        return Err(Error::usage(format!(
            "reached over ssh, where connection options mean another host's: {}",
            elsewhere.join(", ")
        ))
        .hint(
            "name other servers of the list, or use a list whose servers have 'host' and no 'ssh'",
        ));
    }
    let names = found.iter().map(|(name, _)| name);
    refuse_unknown(only, &names.collect())?;
    match found.is_empty() {
        true => Err(no_servers()),
        false => Ok(found),
    }
}

/// The names of options that a list may have. To find them takes long, so that a long list asks once.
struct KnownOptions {
    of_verbs: Vec<String>,
    of_connections: Vec<String>,
}

impl KnownOptions {
    fn all() -> Self {
        Self {
            of_verbs: VERBS.into_iter().flat_map(super::own::names_of).collect(),
            of_connections: super::own::names_of_connections(),
        }
    }
}

/// Returns the connection options among those of a server.
fn connection_of(
    name: &str,
    options: &BTreeMap<String, Value>,
    known: &KnownOptions,
) -> Result<Connection> {
    let mut line: Vec<OsString> = vec!["evenkeel".into(), "settings".into()];
    for (option, value) in options {
        match option.as_str() {
            "password" => return Err(no_password()),
            option if known.of_connections.iter().any(|one| one == option) => {
                line.extend(spelled(option, value, name)?);
            }
            "repository" => {}
            option if known.of_verbs.iter().any(|one| one == option) => {}
            option => return Err(unknown_option(option)),
        }
    }
    match crate::parse(line)
        .map_err(|error| wrong_use::failure(&error))?
        .verb
    {
        Verb::Settings(settings) => Ok(settings.connection),
        _ => Err(Error::usage("these are not connection options")),
    }
}

/// Returns each server with all its options.
fn distinct(list: &List) -> Result<Vec<(&Server, BTreeMap<String, Value>)>> {
    let mut names = BTreeSet::new();
    let each = list.server.iter().map(|server| {
        let name = &server.name;
        if !is_plain(name) || !names.insert(name) {
            return Err(Error::usage(format!("server '{name}'"))
                .hint("give each server its own name of letters, digits, '.', '-' and '_'"));
        }
        let mut options = list.every.clone();
        options.extend(server.options.clone());
        Ok((server, options))
    });
    each.collect()
}

fn refuse_unknown(only: &[String], names: &BTreeSet<&String>) -> Result<()> {
    match only.iter().find(|only| !names.contains(only)) {
        Some(unknown) => Err(Error::usage(format!(
            "there is no server '{unknown}' in the list"
        ))),
        None => Ok(()),
    }
}

fn no_servers() -> Error {
    Error::usage("the list has no servers").hint(LIST_SHOWN)
}

fn unknown_option(option: &str) -> Error {
    Error::usage(format!("no command has an option '{option}'"))
}

/// What to do about a list that is none.
const LIST_SHOWN: &str = "'evenkeel fleet --help' shows a list";

/// Reads a list; `name` is its file, for messages.
fn list_in(name: &str, text: &str) -> Result<List> {
    toml::from_str(text).map_err(|error| {
        // The parser shows the line with marks below it, which is much for a file that is something else.
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(String::new(), |before| {
            format!(", line {}", before.matches('\n').count() + 1)
        });
        Error::usage(format!("{name}{line}: {}", error.message())).hint(LIST_SHOWN)
    })
}

fn members(list: &List, command: &[OsString], only: &[String]) -> Result<Vec<FleetMember>> {
    let (verb, typed) = split(command)?;
    let mut members = Vec::new();
    let mut own = BTreeSet::new();
    for (server, options) in distinct(list)? {
        let name = &server.name;
        let words = Words { name, verb }
            .of(&options, typed)
            .context(|| format!("server '{name}'"))?;
        for option in ["repository", "metrics"] {
            let value = options.get(option);
            let Some(value) = value.map(|value| filled(value, name)).transpose()? else {
                continue;
            };
            if !own.insert((option, value)) {
                return Err(Error::usage(format!(
                    "server '{name}' has the same {option} as another"
                ))
                .hint("each server needs its own; use {name} in the path for the server's name"));
            }
        }
        members.push(FleetMember {
            name: name.clone(),
            words,
        });
    }
    let names = members.iter().map(|member| &member.name);
    refuse_unknown(only, &names.collect())?;
    members.retain(|member| only.is_empty() || only.contains(&member.name));
    match members.is_empty() {
        true => Err(no_servers()),
        false => Ok(members),
    }
}

/// Splits a command into its verb and the rest.
fn split(command: &[OsString]) -> Result<(&'static str, &[OsString])> {
    let (verb, rest) = command
        .split_first()
        .ok_or_else(|| Error::usage("there is no command"))?;
    let known = VERBS.into_iter().find(|known| verb == known);
    let verb = known.ok_or_else(|| {
        Error::usage(format!("fleet cannot run '{}'", verb.display()))
            .hint(format!("what is: {}", VERBS.join(", ")))
    })?;
    let is_password = |word: &OsString| {
        let word = word.to_string_lossy();
        word.starts_with("--password") || (word.starts_with("-p") && !word.starts_with("--"))
    };
    if rest.iter().any(is_password) {
        return Err(no_password());
    }
    Ok((verb, rest))
}

fn no_password() -> Error {
    Error::usage("other users could see a password in the process list")
        .hint("put it in an option file that only you can read: defaults-file = \"…\"")
}

/// A name is part of paths.
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    !name.is_empty() && !name.starts_with(['.', '-']) && name.chars().all(plain)
}

/// One server's words.
struct Words<'a> {
    name: &'a str,
    verb: &'static str,
}

impl Words<'_> {
    fn of(&self, options: &BTreeMap<String, Value>, typed: &[OsString]) -> Result<Vec<OsString>> {
        let known: Vec<String> = VERBS.into_iter().flat_map(super::own::names_of).collect();
        let own = super::own::names_of(self.verb);
        let mut words: Vec<OsString> = vec![self.verb.into()];
        for (option, value) in options {
            match option.as_str() {
                "repository" => words.push(filled(value, self.name)?.into()),
                "password" => return Err(no_password()),
                "json" | "with-text" | "quiet" | "help" | "help-all" => {
                    return Err(Error::usage(format!(
                        "'{option}' cannot be set for one server"
                    )));
                }
                option if own.iter().any(|one| one == option) => {
                    words.extend(spelled(option, value, self.name)?);
                }
                // Another verb's: one list serves them all.
                option if known.iter().any(|one| one == option) => {}
                option => return Err(unknown_option(option)),
            }
        }
        words.extend_from_slice(typed);
        let line = [&[OsString::from("evenkeel")], words.as_slice()].concat();
        crate::parse(line).map_err(|error| wrong_use::failure(&error))?;
        Ok(words)
    }
}

/// Spells an option as on a command line; `true` is a flag, a list repeats it.
fn spelled(option: &str, value: &Value, name: &str) -> Result<Vec<OsString>> {
    Ok(match value {
        Value::Boolean(true) => vec![format!("--{option}").into()],
        Value::Boolean(false) => Vec::new(),
        Value::Array(values) => {
            let each = values.iter().map(|value| spelled(option, value, name));
            each.collect::<Result<Vec<_>>>()?.concat()
        }
        value => vec![format!("--{option}={}", filled(value, name)?).into()],
    })
}

/// Returns a value with the server's name in the places that were left for it.
fn filled(value: &Value, name: &str) -> Result<String> {
    match value {
        Value::String(text) => Ok(text.replace("{name}", name)),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        _ => Err(Error::usage(
            "a value is a text, a number, true, false, or a list of them",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_op::ErrorKind;

    const LIST: &str = r#"
        [every]
        repository = "/backup/{name}"
        defaults-file = "/etc/evenkeel/{name}.cnf"
        keep-daily = 7
        min-live = 80
        [[server]]
        name = "shop"
        keep-daily = 14
        full = true
        snapshot-dir = ["/a", "/b"]
        [[server]]
        name = "blog"
        ssh = "root@blog"
    "#;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn lines(list: &str, command: &str, only: &[&str]) -> Result<Vec<String>> {
        let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
        let line = |member: &FleetMember| {
            let words: Vec<_> = member
                .words
                .iter()
                .map(|word| word.to_string_lossy())
                .collect();
            words.join(" ")
        };
        let found = members(&list_in("list", list)?, &words(command), &only)?;
        Ok(found.iter().map(line).collect())
    }

    #[test]
    fn each_server_has_its_own_words_before_those_that_were_typed() {
        assert_eq!(
            lines(LIST, "backup --keep-daily 3", &[]).unwrap(),
            [
                "backup --defaults-file=/etc/evenkeel/shop.cnf --full --keep-daily=14 /backup/shop \
                 --snapshot-dir=/a --snapshot-dir=/b --keep-daily 3",
                "backup --defaults-file=/etc/evenkeel/blog.cnf --keep-daily=7 /backup/blog \
                 --ssh=root@blog --keep-daily 3",
            ]
        );
    }

    #[test]
    fn what_is_of_another_verb_is_left_out() {
        let prune = lines(LIST, "prune", &["blog"]).unwrap();
        assert_eq!(prune, ["prune --min-live=80 /backup/blog"]);
        let doctor = lines(LIST, "doctor", &["shop"]).unwrap();
        assert!(
            doctor[0].starts_with("doctor --defaults-file="),
            "{doctor:?}"
        );
        assert!(doctor[0].contains(" /backup/shop "), "{doctor:?}");
    }

    #[test]
    fn connections_are_what_a_list_says_of_them() {
        let of = |list: &str, only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| (*name).to_owned()).collect();
            connections_in(&list_in("list", list).unwrap(), &only)
        };
        let shop = of(LIST, &["shop"]).unwrap();
        let [(name, connection)] = &shop[..] else {
            panic!("{shop:?}");
        };
        assert_eq!(name, "shop");
        let file = connection.defaults_file.as_deref().unwrap();
        assert_eq!(file, Path::new("/etc/evenkeel/shop.cnf"));
        for (list, only, reported) in [
            (LIST, &[][..], "reached over ssh"),
            (LIST, &["shop", "nobody"], "'nobody'"),
            ("", &[], "no servers"),
            ("[[server]]\nname='a'\npassword='x'", &[], "process list"),
            ("[[server]]\nname='a'\nhots='x'", &[], "'hots'"),
            ("[[server]]\nname='a'\nport='x'", &[], "server 'a'"),
        ] {
            let error = of(list, only).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{}", error.chain());
            assert!(
                error.chain().contains(reported),
                "{reported}: {}",
                error.chain()
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_before_anything_runs() {
        let twice = "[[server]]\nname='a'\nrepository='/r'\n[[server]]\nname='b'\nrepository='/r'";
        for (list, command, reported) in [
            (LIST, "restore", "fleet cannot run 'restore'"),
            (LIST, "backup -psecret", "process list"),
            (LIST, "backup --password", "process list"),
            (LIST, "backup --nonsense", "server 'shop'"),
            ("", "backup", "no servers"),
            ("[[server]]\nname='a/b'", "backup", "server 'a/b'"),
            (
                "[[server]]\nname='a'\n[[server]]\nname='a'",
                "doctor",
                "server 'a'",
            ),
            ("[[server]]\nname='a'", "backup", "server 'a'"),
            (
                "[[server]]\nname='a'\nrepository='/r'\npassword='x'",
                "backup",
                "process list",
            ),
            (
                "[[server]]\nname='a'\nrepository='/r'\nrepositry='/r'",
                "backup",
                "'repositry'",
            ),
            (
                "[[server]]\nname='a'\nrepository='/r'\nuser={}",
                "backup",
                "a value is",
            ),
            (
                "\n[servers]",
                "backup",
                "list, line 2: unknown field `servers`",
            ),
            (twice, "backup", "the same repository"),
            (twice, "doctor", "the same repository"),
        ] {
            let error = lines(list, command, &[]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{}", error.chain());
            assert!(
                error.chain().contains(reported),
                "{reported}: {}",
                error.chain()
            );
        }
        let error = lines(LIST, "backup", &["shop", "nobody"]).unwrap_err();
        assert!(error.chain().contains("'nobody'"), "{}", error.chain());
    }
}
