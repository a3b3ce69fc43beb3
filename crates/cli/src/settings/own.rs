//! Options of a verb that stand in option files, in the groups `[evenkeel]` and `[evenkeel-VERB]`. `doctor` reads
//! those of `backup` too, and passes over what only that knows.
//!
//! They are put in front of what was typed and parsed with it, so a file may hold any option that
//! the command line may, with the same checks, and what is typed later wins.

use crate::args::{Cli, Connection, Verb};
use crate::wrong_use;
use clap::Args as _;
use evenkeel_op::{Error, Result};
use std::ffi::OsString;
use std::sync::OnceLock;

/// Options that say where to read options, or how to answer: not for option files.
const ONLY_TYPED: [&str; 12] = [
    "help",
    "help-all",
    "with-text",
    "json",
    "log-format",
    "log-timestamps",
    "version",
    "defaults-file",
    "defaults-extra-file",
    "defaults-group-suffix",
    "no-defaults",
    "for",
];

/// Returns the names of all options that `[evenkeel]` groups may hold. They are collected once: that takes as long as
/// a command line of its own, and a list of servers asks for each.
#[must_use]
pub(super) fn known() -> &'static [String] {
    static KNOWN: OnceLock<Vec<String>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let command = crate::command();
        let names = command
            .get_subcommands()
            .flat_map(names)
            .collect::<std::collections::BTreeSet<_>>();
        names.into_iter().collect()
    })
}

/// Returns the names of all options of a verb, those too that only the command line may have.
#[must_use]
pub(super) fn names_of(verb: &str) -> Vec<String> {
    let command = crate::command();
    let arguments = command.find_subcommand(verb).into_iter();
    arguments
        .flat_map(clap::Command::get_arguments)
        .flat_map(spellings)
        .map(str::to_owned)
        .collect()
}

/// Returns the names of all options that say how to reach a server.
#[must_use]
pub(super) fn names_of_connections() -> Vec<String> {
    let command = Connection::augment_args(clap::Command::new("connect"));
    let options = command.get_arguments().flat_map(spellings);
    options.map(str::to_owned).collect()
}

/// Returns an option's name and those that it had in earlier versions: what a script or a file may hold.
fn spellings(arg: &clap::Arg) -> Vec<&str> {
    let earlier = arg.get_all_aliases().unwrap_or_default();
    arg.get_long().into_iter().chain(earlier).collect()
}

/// Returns the names of a command's options that may stand in a file.
fn names(command: &clap::Command) -> Vec<String> {
    command
        .get_arguments()
        .flat_map(spellings)
        .filter(|name| !ONLY_TYPED.contains(name))
        .map(str::to_owned)
        .collect()
}

fn connection(verb: &Verb) -> Option<(&'static str, &Connection)> {
    match verb {
        Verb::Backup(args) => Some(("backup", &args.connection)),
        Verb::Clone(args) => Some(("clone", &args.connection)),
        Verb::Check(args) => Some(("check", &args.connection)),
        Verb::Dump(args) => Some(("dump", &args.connection)),
        Verb::Load(args) => Some(("load", &args.connection)),
        Verb::Import(args) => Some(("import", &args.connection)),
        Verb::Lock(args) => Some(("lock", &args.connection)),
        Verb::Doctor(args) => Some(("doctor", &args.connection)),
        _ => None,
    }
}

/// Parses the words again with what option files say about the verb, and returns what was parsed
/// and the words it was parsed from. Verbs that talk to no server read no option files, and those
/// that work on another host read them there.
pub fn with_files(typed: Cli, words: &[OsString]) -> Result<(Cli, Vec<OsString>)> {
    match typed.verb.remote() {
        Some(remote) if remote.ssh.is_some() => Ok((typed, words.to_vec())),
        _ => with_files_here(typed, words),
    }
}

/// Does the same on the host that is worked on.
pub fn with_files_here(typed: Cli, words: &[OsString]) -> Result<(Cli, Vec<OsString>)> {
    let Some((verb, connection)) = connection(&typed.verb) else {
        return Ok((typed, words.to_vec()));
    };
    let own = super::resolved(connection, verb)?.own;
    let command = crate::command();
    let names = command.find_subcommand(verb).map(names).unwrap_or_default();
    let mut extra = Vec::new();
    for (name, option) in own.iter().filter(|(name, _)| names.contains(name)) {
        extra.push(OsString::from(match &option.value {
            Some(value) => format!("--{name}={value}"),
            None => format!("--{name}"),
        }));
    }
    let Some(at) = words
        .iter()
        .position(|word| word == verb)
        .filter(|_| !extra.is_empty())
    else {
        return Ok((typed, words.to_vec()));
    };
    let (before, after) = words.split_at(at + 1);
    let whole = [before, &extra, after].concat();
    let parsed = crate::parse(whole.clone()).map_err(|error| {
        Error::usage("the command line does not fit the options in the option files")
            .because(wrong_use::failure(&error))
            .hint(format!(
                "'evenkeel settings --for {verb}' shows what comes from where"
            ))
    })?;
    Ok((parsed, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_known_by_the_names_that_they_had() {
        for line in [
            "backup /r --workers 2 --snapshot-hook x --deadline 1s --hold-limit 1s",
            "restore /r --target /d --workers 2",
            "restore /r --output /d",
            "check --workers 2",
            "repository copy /r /s --latest 1 --workers 2",
            "queue salvage /d --into /e",
            "dump --target /d",
        ] {
            let words = std::iter::once("evenkeel").chain(line.split(' '));
            let parsed = crate::parse(words.map(OsString::from).collect());
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn files_may_hold_options_of_any_verb_but_not_where_to_read_them() {
        let known = known();
        for name in ["rate", "lock-deadline", "deadline", "snapshot", "keep-last"] {
            assert!(known.iter().any(|known| known == name), "{name}");
        }
        assert!(
            !known
                .iter()
                .any(|name| name == "defaults-file" || name == "json")
        );
    }
}
