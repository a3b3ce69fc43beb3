//! What is wrong with a command line, and which verb may have been meant.

use super::failure::Document;
use super::log::Log;
use super::ui::print_json;
use crate::args::{LogFormat, Output};
use crate::wrong_use;
use clap::error::{ContextKind, ContextValue, ErrorKind as Wrong};
use evenkeel_op::{Error, ErrorKind, exit};
use std::ffi::OsString;
use std::process::ExitCode;

/// Words by which other programs do what verbs of ours do. What is only misspelt, the parser sees by itself.
const MEANT: &[(&[&str], &str)] = &[
    (&["version", "ver"], "--version"),
    (
        &[
            "list",
            "ls",
            "show",
            "info",
            "status",
            "snapshots",
            "backups",
            "history",
        ],
        "generations",
    ),
    (
        &["status", "ping", "test", "selftest", "diagnose"],
        "doctor",
    ),
    (&["test", "validate", "prove"], "verify"),
    (&["list", "status"], "queue status"),
    (&["recover", "recovery", "extract", "pitr"], "restore"),
    (&["delete", "remove", "rm", "drop", "expire"], "forget"),
    (
        &[
            "delete", "gc", "clean", "cleanup", "purge", "compact", "vacuum",
        ],
        "prune",
    ),
    (
        &["create", "init", "run", "save", "full", "incremental"],
        "backup",
    ),
    (&["copy", "cp", "sync", "replicate"], "repository copy"),
    (&["rebuild"], "repository rebuild"),
    (
        &["config", "configuration", "options", "variables"],
        "settings",
    ),
    (&["export", "mysqldump", "mydumper"], "dump"),
    (&["myloader"], "load"),
    (&["source", "mysql", "mariadb", "sql"], "import"),
    (&["rollback", "save"], "baseline"),
    (&["archive", "binlogs", "binlog-archive"], "binlog archive"),
    (&["heal", "repair", "innochecksum"], "check"),
    (&["heal"], "replica heal"),
    (&["resync", "reseed", "reclone"], "replica resync"),
    (&["key", "encrypt"], "keys"),
    (
        &["benchmark", "tpcc", "oltp", "sysbench", "showdown"],
        "bench",
    ),
    (&["plugins", "install", "uninstall"], "plugin"),
    (&["queues"], "queue"),
    (&["umount", "unmount", "fuse"], "mount"),
    (&["rates", "rate", "vmstat"], "qps"),
    (&["innotop", "mytop", "monitor", "processlist"], "top"),
    (&["schedule", "timer"], "cron"),
    (&["servers"], "fleet"),
];

/// Shows what is wrong with a command line, or the help that it asked for.
#[must_use]
pub fn usage(mut error: clap::Error, words: &[OsString]) -> ExitCode {
    let verbs = meant(&error, words).into_iter();
    let mut tips: Vec<String> = verbs
        .map(|verb| format!("did you mean 'evenkeel {verb}'?"))
        .collect();
    wrong_use::hide_password(&mut error, words);
    tips.extend(wrong_use::tips(&error));
    tips.extend(wrong_use::begins_with_a_dash(&error, words));
    let wanted_json = words
        .iter()
        .take_while(|word| *word != "--")
        .any(|word| word == "--json");
    let log = asked_log(words);
    if error.use_stderr() && (wanted_json || log.is_json()) {
        let error = Error::new(ErrorKind::Usage, wrong_use::sentence(&error));
        let error = tips.into_iter().fold(error, Error::hint);
        let error = error.hint("evenkeel --help shows every option");
        if log.is_json() {
            eprint!("{}", log.failure(&error));
        }
        if wanted_json {
            print_json(&Document::of(&error));
        }
        return ExitCode::from(exit::USAGE);
    }
    if !tips.is_empty() {
        // A likeness of letters is worth less than a likeness of meaning.
        error.remove(ContextKind::SuggestedSubcommand);
        let tips = tips.into_iter().map(Into::into).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    if error.use_stderr() {
        eprint!("{}", wrong_use::text(&error));
        return ExitCode::from(exit::USAGE);
    }
    // A reader of the help that went away has seen enough.
    let _ = error.print();
    ExitCode::SUCCESS
}

/// Returns how the log was wanted on a command line that was not understood.
fn asked_log(words: &[OsString]) -> Log {
    let ours: Vec<&OsString> = words.iter().take_while(|word| *word != "--").collect();
    let is_json = ours.iter().any(|word| *word == "--log-format=json")
        || ours
            .windows(2)
            .any(|two| two[0] == "--log-format" && two[1] == "json");
    let mut output = Output::default();
    if is_json {
        output.log_format = LogFormat::Json;
    }
    Log::of(&output)
}

/// Returns which verbs may have been meant, where a word stands in the place of the verb that is none.
fn meant(error: &clap::Error, words: &[OsString]) -> Vec<&'static str> {
    // What stands further behind is a verb's own.
    let first = words.iter().skip(1).find(|word| {
        let bytes = word.as_encoded_bytes();
        !bytes.starts_with(b"-")
    });
    match (
        error.kind(),
        error.get(ContextKind::InvalidSubcommand),
        first,
    ) {
        (Wrong::InvalidSubcommand, Some(ContextValue::String(wrong)), Some(first))
            if first == wrong.as_str() =>
        {
            let wrong = wrong.to_ascii_lowercase();
            let known = MEANT.iter().filter(|(names, _)| names.contains(&&*wrong));
            known.map(|(_, verb)| *verb).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_that_is_suggested_is_there_and_no_word_is_a_verb() {
        let command = crate::command();
        for (names, verb) in MEANT {
            let mut at = &command;
            for part in verb.split(' ').filter(|part| !part.starts_with("--")) {
                at = at.find_subcommand(part).unwrap_or_else(|| panic!("{verb}"));
            }
            for name in *names {
                assert!(command.find_subcommand(name).is_none(), "{name}");
            }
        }
    }
}
