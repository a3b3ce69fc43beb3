//! The command line as the process was given it, with the MySQL clients' ways of passing a
//! password: `-pSECRET` glued, `-p` to be asked, and never left to see in the process list.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

const LONG: &[u8] = b"--password=";

/// Takes the process's words, blots out passwords in the process list, and returns the words with
/// `-pSECRET` spelled `--password=SECRET`.
#[must_use]
pub fn take() -> Vec<OsString> {
    let words: Vec<OsString> = std::env::args_os().collect();
    if words
        .iter()
        .any(|word| secret_offset(word.as_bytes()).is_some())
    {
        // Best effort: where /proc is missing, the warning below is all there is.
        let _ = blot_out();
    }
    help_of_h(spell_out(words))
}

/// Returns what should be said about the words themselves.
#[must_use]
pub fn warnings(words: &[OsString]) -> Vec<String> {
    let typed = ours(words)
        .iter()
        .any(|word| word.as_bytes().starts_with(LONG));
    let text = "other users can briefly see a password on the command line; use an option file, \
         a login path or -p alone (which asks)";
    typed.then(|| text.to_owned()).into_iter().collect()
}

/// The words up to `--`: what follows belongs to the command that is run.
fn ours(words: &[OsString]) -> &[OsString] {
    let end = words
        .iter()
        .position(|word| word == "--")
        .unwrap_or(words.len());
    &words[..end]
}

/// Rewrites `-h` to `-?` where nothing but verbs stands in front and nothing behind: who types it wants help. `-h HOST`
/// is the host, as for the MySQL clients. Behind anything else a host is missing: a script whose variable is empty must
/// not end well with a page of help.
fn help_of_h(mut words: Vec<OsString>) -> Vec<OsString> {
    let end = ours(&words).len();
    let Some((_, before)) = words[..end].split_last().filter(|(last, _)| *last == "-h") else {
        return words;
    };
    let command = crate::command();
    let verbs = before
        .iter()
        .skip(1)
        .try_fold(&command, |at, word| at.find_subcommand(word));
    if verbs.is_some() {
        words[end - 1] = "-?".into();
    }
    words
}

/// Rewrites `-pSECRET` to `--password=SECRET` and `-p` to `--password`, because a parser that lets
/// `-p` take a value would also take the next word, which the MySQL clients never do.
pub(crate) fn spell_out(mut words: Vec<OsString>) -> Vec<OsString> {
    let end = ours(&words).len();
    for word in words.iter_mut().take(end).skip(1) {
        let bytes = word.as_bytes();
        if let Some(secret) = bytes.strip_prefix(b"-p") {
            let long = if secret.is_empty() {
                b"--password".to_vec()
            } else {
                [LONG, secret].concat()
            };
            *word = OsString::from_vec(long);
        }
    }
    words
}

/// Returns where in a word its password begins.
fn secret_offset(word: &[u8]) -> Option<usize> {
    if word.starts_with(LONG) && word.len() > LONG.len() {
        return Some(LONG.len());
    }
    (word.starts_with(b"-p") && word.len() > 2).then_some(2)
}

/// Overwrites the passwords in this process's argument area, as the MySQL clients do.
///
/// The area is reached through `/proc/self/mem`, so no raw pointer is needed. The words were
/// copied before, and nothing reads the area again.
fn blot_out() -> std::io::Result<()> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let area = fs::read("/proc/self/cmdline")?;
    // proc(5): arg_start is field 48; fields are counted after the command name's `)`, which is 2.
    let start: Option<u64> = stat
        .rsplit_once(')')
        .and_then(|(_, fields)| fields.split_ascii_whitespace().nth(48 - 3))
        .and_then(|field| field.parse().ok());
    let Some(start) = start else {
        return Err(std::io::Error::other("no arg_start"));
    };
    let mut memory = fs::OpenOptions::new().write(true).open("/proc/self/mem")?;
    for (offset, len) in secrets(&area) {
        memory.seek(SeekFrom::Start(start + offset as u64))?;
        memory.write_all(&vec![b'x'; len])?;
    }
    Ok(())
}

/// Returns offset and length of every password in a NUL-separated argument area.
fn secrets(area: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    for (index, word) in area.split(|byte| *byte == 0).enumerate() {
        if OsStr::from_bytes(word) == "--" {
            break;
        }
        if let Some(offset) = secret_offset(word).filter(|_| index > 0) {
            found.push((at + offset, word.len() - offset));
        }
        at += word.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn glued_passwords_are_spelled_out_and_alone_p_takes_nothing() {
        let typed = words("evenkeel backup -psecret -p /srv/r -- sh -px");
        let spelled = words("evenkeel backup --password=secret --password /srv/r -- sh -px");
        assert_eq!(spell_out(typed), spelled);
    }

    #[test]
    fn h_is_help_where_no_host_follows() {
        for (typed, meant) in [
            ("evenkeel -h", "evenkeel -?"),
            ("evenkeel bench tpcc run -h", "evenkeel bench tpcc run -?"),
            ("evenkeel backup /r -h", "evenkeel backup /r -h"),
            ("evenkeel backup --full -h", "evenkeel backup --full -h"),
            ("evenkeel lock -h -- df -h", "evenkeel lock -? -- df -h"),
            ("evenkeel backup -h db1", "evenkeel backup -h db1"),
            ("evenkeel lock -- df -h", "evenkeel lock -- df -h"),
        ] {
            assert_eq!(help_of_h(words(typed)), words(meant), "{typed}");
        }
    }

    #[test]
    fn secrets_are_found_where_they_stand() {
        let area = b"evenkeel\0-pab\0--password=xyz\0--\0-pmine\0";
        assert_eq!(secrets(area), [(11, 2), (25, 3)]);
    }

    #[test]
    fn only_a_typed_password_is_warned_of() {
        assert_eq!(warnings(&words("evenkeel lock --password=x")).len(), 1);
        assert!(warnings(&words("evenkeel lock --password -- a --password=x")).is_empty());
    }
}
