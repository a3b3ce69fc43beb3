//! What is no statement in a file: commands that the clients obey themselves.

use evenkeel_sql::is_blank;

/// A command of the clients, as far as an import does anything about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Take another default database.
    Use(Vec<u8>),
    /// Run another file.
    Source(Vec<u8>),
    /// The file is in this character set.
    Charset(Vec<u8>),
    /// What follows begins with another delimiter.
    Delimiter(Vec<u8>),
    /// Read this file no further.
    Quit,
    /// From here on no file must be run.
    Sandbox,
    /// Shows something, or changes how things are shown: nothing to do.
    Nothing,
    /// Not obeyed: why, in a sentence.
    Refused(String),
}

/// Which of the commands it is, before its argument is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Use,
    Source,
    Charset,
    Delimiter,
    Quit,
    Sandbox,
    /// Without an argument.
    Show,
    /// With or without one.
    Display,
    Runs,
    Reconnects,
}

/// The commands' names, the letters behind a backslash, and what they are.
const COMMANDS: [(&str, u8, Name); 28] = [
    ("use", b'u', Name::Use),
    ("source", b'.', Name::Source),
    ("charset", b'C', Name::Charset),
    ("delimiter", b'd', Name::Delimiter),
    ("quit", b'q', Name::Quit),
    ("exit", b'q', Name::Quit),
    ("sandbox", b'-', Name::Sandbox),
    ("clear", b'c', Name::Show),
    ("go", b'g', Name::Show),
    ("ego", b'G', Name::Show),
    ("print", b'p', Name::Show),
    ("status", b's', Name::Show),
    ("rehash", b'#', Name::Show),
    ("costs", b'Q', Name::Show),
    ("notee", b't', Name::Show),
    ("nopager", b'n', Name::Show),
    ("warnings", b'W', Name::Show),
    ("nowarning", b'w', Name::Show),
    ("help", b'h', Name::Display),
    ("?", b'?', Name::Display),
    ("prompt", b'R', Name::Display),
    ("pager", b'P', Name::Display),
    ("tee", b'T', Name::Display),
    ("system", b'!', Name::Runs),
    ("edit", b'e', Name::Runs),
    ("connect", b'r', Name::Reconnects),
    ("resetconnection", b'x', Name::Reconnects),
    ("query_attributes", b'\0', Name::Reconnects),
];

impl Name {
    fn takes_argument(self) -> bool {
        !matches!(self, Self::Quit | Self::Sandbox | Self::Show)
    }

    fn with(self, shown: &str, argument: &[u8]) -> Command {
        let lacks = |what: &str| Command::Refused(format!("{shown} needs a {what}"));
        let word = first_word(argument);
        match self {
            Self::Use if word.is_empty() => lacks("name of a database"),
            Self::Use => Command::Use(word),
            Self::Source if argument.is_empty() => lacks("file"),
            Self::Source => Command::Source(argument.to_vec()),
            Self::Charset if word.is_empty() => lacks("character set"),
            Self::Charset => Command::Charset(word),
            Self::Delimiter if word.is_empty() || word.contains(&b'\\') => {
                lacks("delimiter that can be used: write it as clients take it, DELIMITER ;;")
            }
            Self::Delimiter => Command::Delimiter(word),
            Self::Quit => Command::Quit,
            Self::Sandbox => Command::Sandbox,
            Self::Show | Self::Display => Command::Nothing,
            Self::Runs => Command::Refused(format!(
                "{shown} would run a program on this host, and import does not run programs"
            )),
            Self::Reconnects => Command::Refused(format!(
                "{shown} would start another session, and import does not change sessions"
            )),
        }
    }
}

/// Returns whether the name of a command stands here; what comes behind it may make it none.
pub(super) fn is_named(rest: &[u8]) -> bool {
    named(rest).is_some()
}

/// Reads a line, or what stands before a delimiter, as a command; `None` when it is a statement.
pub(super) fn of_line(line: &[u8]) -> Option<Command> {
    let (name, at) = named(line)?;
    let argument = line[at..].trim_ascii();
    (argument.is_empty() || name.takes_argument())
        .then(|| name.with(&String::from_utf8_lossy(&line[..at]), argument))
}

/// Reads what stands behind a backslash: the command, and whether the rest of the line is its argument.
pub(super) fn of_letter(letter: u8, argument: &[u8]) -> (Command, bool) {
    let found = COMMANDS.iter().find(|(_, key, _)| *key == letter);
    let shown = format!("\\{}", char::from(letter).escape_default());
    match found {
        Some((_, _, name)) => {
            let command = name.with(&shown, argument.trim_ascii());
            (command, name.takes_argument())
        }
        None => (
            Command::Refused(format!("{shown} is not a client command")),
            false,
        ),
    }
}

fn named(rest: &[u8]) -> Option<(Name, usize)> {
    let end = rest.iter().position(|byte| is_blank(*byte));
    let end = end.unwrap_or(rest.len());
    let word = &rest[..end];
    let found = COMMANDS
        .iter()
        .find(|(name, ..)| name.as_bytes().eq_ignore_ascii_case(word));
    found.map(|(_, _, name)| (*name, end))
}

/// Takes the first word of an argument out of its quotes.
fn first_word(argument: &[u8]) -> Vec<u8> {
    let quote = match argument.first() {
        Some(quote @ (b'\'' | b'"' | b'`')) => Some(*quote),
        _ => None,
    };
    let mut word = Vec::new();
    let mut rest = argument.iter().copied().skip(usize::from(quote.is_some()));
    let mut ahead = rest.next();
    while let Some(byte) = ahead {
        ahead = rest.next();
        match quote {
            _ if byte == b'\\' && ahead.is_some() => {
                word.extend(ahead);
                ahead = rest.next();
            }
            Some(quote) if byte == quote && ahead == Some(quote) => {
                word.push(quote);
                ahead = rest.next();
            }
            Some(quote) if byte == quote => return word,
            None if is_blank(byte) => return word,
            _ => word.push(byte),
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<Command> {
        of_line(text.as_bytes())
    }

    #[test]
    fn lines_are_commands_where_the_clients_say_so() {
        let name = |name: &str| Some(Command::Use(name.as_bytes().to_vec()));
        for (text, wanted) in [
            ("use db", "db"),
            ("USE\t`a b`  ", "a b"),
            ("use 'it''s' more", "it's"),
            ("use db -- c", "db"),
        ] {
            assert_eq!(line(text), name(wanted), "{text}");
        }
        assert_eq!(
            line("source a b.sql "),
            Some(Command::Source(b"a b.sql".to_vec()))
        );
        assert_eq!(line("quit"), Some(Command::Quit));
        assert_eq!(line("pager less -S"), Some(Command::Nothing));
        for statement in ["exit now", "used db", "SELECT 1", "go fish"] {
            assert_eq!(line(statement), None, "{statement}");
        }
        for refused in ["system ls", "edit", "connect a", "use", "source"] {
            assert!(
                matches!(line(refused), Some(Command::Refused(_))),
                "{refused}"
            );
        }
    }
}
