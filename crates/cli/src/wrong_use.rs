//! What is wrong with a command line, in the words of the other failures.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use evenkeel_op::Error;
use std::ffi::OsString;

/// What stands for a password in what will be said.
const HIDDEN: &str = "the word after -p";

/// Returns what is wrong as one of our failures: the sentence, and what to do as its hints.
pub(crate) fn failure(error: &clap::Error) -> Error {
    let failure = Error::usage(sentence(error));
    tips(error).into_iter().fold(failure, Error::hint)
}

/// Returns what to do, where we know it better than the parser.
pub(crate) fn tips(error: &clap::Error) -> Vec<String> {
    match error.kind() {
        ErrorKind::ValueValidation => said_of_value(error)
            .map(|ours| ours.hints().into_iter().map(str::to_owned).collect())
            .unwrap_or_default(),
        ErrorKind::MissingRequiredArgument if lacks(error, "--target ") => vec![
            "name a new or an empty directory: --target /restored".to_owned(),
            "to restore a volume to its device or file, use --onto PATH".to_owned(),
        ],
        ErrorKind::UnknownArgument if is_hidden(error) => vec![
            "-p alone asks for it".to_owned(),
            "--password= is the empty password".to_owned(),
        ],
        _ => Vec::new(),
    }
}

/// Says how an option takes a value that begins with a dash, where one follows it as a word of its own. The parser's
/// own tip would make it a file.
pub(crate) fn begins_with_a_dash(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let wrong = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(wrong)) if error.kind() == ErrorKind::UnknownArgument => wrong,
        _ => return None,
    };
    // Of `-xyz`, the parser names only the first letter.
    let pair = words
        .windows(2)
        .take_while(|pair| pair[0] != "--")
        .find(|pair| {
            pair[1]
                .to_str()
                .is_some_and(|word| word.starts_with(wrong.as_str()))
        })?;
    let (option, value) = (pair[0].to_str()?, pair[1].to_str()?);
    let name = option.strip_prefix("--")?;
    let command = crate::command();
    let verb = words.iter().skip(1).fold(&command, |at, word| {
        let below = word.to_str().and_then(|word| at.find_subcommand(word));
        below.unwrap_or(at)
    });
    let takes_one = verb
        .get_arguments()
        .any(|argument| argument.get_long() == Some(name) && argument.get_action().takes_values());
    takes_one.then(|| format!("to pass '{value}' as the value of {option}, write {option}={value}"))
}

/// Whether an argument that begins so was needed, and was not given.
fn lacks(error: &clap::Error, begin: &str) -> bool {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(all)) => all.iter().any(|one| one.starts_with(begin)),
        _ => false,
    }
}

fn is_hidden(error: &clap::Error) -> bool {
    matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(text)) if text == HIDDEN)
}

/// What one of our own parsers said of a value.
fn said_of_value(error: &clap::Error) -> Option<&Error> {
    std::error::Error::source(error)?.downcast_ref()
}

/// Returns what is wrong in one sentence, without a full stop.
pub(crate) fn sentence(error: &clap::Error) -> String {
    if is_hidden(error) {
        return "a password must follow -p without a space: -pSECRET".to_owned();
    }
    if let Some(text) = wrong_value(error) {
        return text;
    }
    let shown = error.render().to_string();
    let first = shown.lines().next().unwrap_or_default();
    first.trim_start_matches("error: ").to_owned()
}

/// Returns all that should be said, for standard error: the sentence, then what the parser
/// suggests.
pub(crate) fn text(error: &clap::Error) -> String {
    let shown = error.render().to_string();
    if !shown.starts_with("error: ") {
        return shown;
    }
    let rest = shown.split_once('\n').map_or("", |(_, rest)| rest);
    format!("evenkeel: {}\n{rest}", sentence(error))
}

/// Where a password was given as a word of its own (`-p SECRET`), which the parser cannot place, takes it out of
/// what will be said.
pub(crate) fn hide_password(error: &mut clap::Error, words: &[OsString]) {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let is_one = error.kind() == ErrorKind::UnknownArgument
        && words
            .windows(2)
            .any(|pair| pair[0] == "--password" && pair[1] == wrong.as_str());
    if is_one {
        let instead = ContextValue::String(HIDDEN.to_owned());
        error.insert(ContextKind::InvalidArg, instead);
    }
}

/// A value that an option cannot take: where a number belongs, the parser has only a programmer's words for it.
fn wrong_value(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, value) = (
        text(ContextKind::InvalidArg)?,
        text(ContextKind::InvalidValue)?,
    );
    let why = std::error::Error::source(error)?.to_string();
    let is_below = value.starts_with('-');
    Some(match why.as_str() {
        "invalid digit found in string" if is_below => {
            format!("'{value}' is below zero: {option} takes a whole number, 0 or more")
        }
        "invalid digit found in string" => {
            format!("'{value}' is not a number: {option} takes a whole number")
        }
        "invalid float literal" => format!("'{value}' is not a number: {option} takes one"),
        "cannot parse integer from empty string" | "cannot parse float from empty string" => {
            format!("{option} takes a number, and nothing was given")
        }
        "number too large to fit in target type" => {
            format!("{value} is too large a number for {option}")
        }
        "number too small to fit in target type" => {
            format!("{value} is too small a number for {option}")
        }
        other => match out_of_range(value, option, other) {
            Some(text) => text,
            // What we say ourselves begins with the value.
            None if other.starts_with(&format!("'{value}'")) => format!("{option}: {other}"),
            None => format!("{option}: '{value}' is not valid: {other}"),
        },
    })
}

fn out_of_range(value: &str, option: &str, why: &str) -> Option<String> {
    let (_, range) = why.split_once(" is not in ")?;
    let (least, most) = range.split_once("..=").or_else(|| range.split_once(".."))?;
    let most = match most {
        "" => "or more".to_owned(),
        most => format!("to {most}"),
    };
    Some(format!(
        "{value} is out of range: {option} takes {least} {most}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> String {
        let words = words.iter().map(Into::into).collect();
        sentence(&crate::parse(words).expect_err("a wrong command line"))
    }

    #[test]
    fn a_password_apart_is_not_repeated() {
        for secret in ["hunter2", ""] {
            let run = ["evenkeel", "bench", "tpcc", "run", "-p", secret, "-w1"];
            let words = crate::argv::spell_out(run.map(Into::into).to_vec());
            let mut error = crate::parse(words.clone()).expect_err("a word too many");
            hide_password(&mut error, &words);
            assert_eq!(
                sentence(&error),
                "a password must follow -p without a space: -pSECRET"
            );
            assert_eq!(tips(&error).len(), 2);
            assert!(!text(&error).contains("hunter2"), "{}", text(&error));
        }
        let words: Vec<OsString> = ["evenkeel", "settings", "-uroot", "hunter2"]
            .map(Into::into)
            .to_vec();
        let mut error = crate::parse(words.clone()).expect_err("a word too many");
        hide_password(&mut error, &words);
        assert_eq!(sentence(&error), "unexpected argument 'hunter2' found");
    }

    #[test]
    fn a_value_with_a_dash_is_told_from_a_file() {
        let tip = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(Into::into).collect();
            let error = crate::parse(words.clone()).expect_err("a wrong command line");
            begins_with_a_dash(&error, &words)
        };
        for (option, value) in [("--user", "-x"), ("--match", "-xyz"), ("--host", "-1")] {
            assert_eq!(
                tip(&["evenkeel", "digest", option, value, "slow.log"]),
                Some(format!(
                    "to pass '{value}' as the value of {option}, write {option}={value}"
                ))
            );
        }
        assert_eq!(tip(&["evenkeel", "digest", "--periods", "-x"]), None);
        assert_eq!(tip(&["evenkeel", "digest", "slow.log", "-x"]), None);
    }

    #[test]
    fn numbers_are_called_numbers() {
        for (option, expected) in [
            (
                "--keep-last=seven",
                "'seven' is not a number: --keep-last <N> takes a whole number",
            ),
            (
                "--keep-last=-1",
                "'-1' is below zero: --keep-last <N> takes a whole number, 0 or more",
            ),
            (
                "--keep-last=",
                "--keep-last <N> takes a number, and nothing was given",
            ),
            (
                "--threads=0",
                "0 is out of range: --threads <N> takes 1 to 256",
            ),
            (
                "--max-impact=500",
                "500 is out of range: --max-impact <PERCENT> takes 1 to 100",
            ),
        ] {
            assert_eq!(said(&["evenkeel", "backup", "/r", option]), expected);
        }
        assert_eq!(
            said(&["evenkeel", "backup", "/r", "--no-such"]),
            "unexpected argument '--no-such' found"
        );
    }
}
