//! How the command line is shown: `--help` has the options that are used most, `--help-all` has all of them,
//! and lines are broken once, for the terminal that they are shown on.

use clap::{Arg, Command};
use std::io::{stderr, stdin, stdout};

/// Lines are never longer than this, however wide the terminal is.
pub(crate) const COLUMNS_MAX: usize = 100;

/// What belongs to an example stands below it, this far in.
const BELOW: &str = "      ";

/// Options, by their long names, that few ever need: left out of `--help`, whatever the verb.
const RARE: &[&str] = &[
    // How to answer.
    "log-format",
    "log-timestamps",
    // How to reach a server.
    "connect-timeout",
    "defaults-extra-file",
    "defaults-group-suffix",
    "login-path",
    "no-defaults",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    // Another host.
    "compress-at",
    "no-ssh-keep-program",
    "ssh-command",
    "ssh-keep-program",
    "ssh-timeout",
    "ssh-program",
    // How to freeze, read and lock it.
    "audit",
    "engine-tool",
    "hook",
    "hook-release",
    "keep-corrupt",
    "kill-long-queries",
    "level",
    "lock-deadline",
    "lock-hold-limit",
    "long-query-threshold",
    "long-query-wait",
    "new-source",
    "snapshot-dir",
    "snapshot-size",
    "stop",
    "stop-applier",
    // What to keep, and where.
    "encrypt-passphrase-file",
    "keep-hourly",
    "keep-monthly",
    "keep-within",
    "keep-yearly",
    "storage-class",
    // Restores and proofs.
    "cache",
    "scratch",
    "times-go-back",
    // Tables as files.
    "chunk-size",
    "collation",
    "definer",
    "max-lag",
    "max-threads-running",
    "no-events",
    "no-routines",
    "no-sequences",
    "no-triggers",
    "no-views",
    "overwrite-unfinished",
    "tell-line-every",
    "throttle-host",
    // Commands of the user's own.
    "run-after",
    "run-before",
    "run-failed",
    // Starts and measurements.
    "buffer-pool",
    "catch-up-deadline",
    "filesystem-size",
    "flush-log",
    "interval",
    "like-tpcc-mysql",
    "max-failures",
    "max-seconds",
    "reader",
    "seed",
    "server-option",
    "start-deadline",
    "stop-deadline",
];

/// Verbs that are about what is rare elsewhere: their options of this heading are all shown.
const ITS_MATTER: &[(&str, &str)] = &[
    ("clone", "Snapshot"),
    ("lock", "Locking"),
    ("forget", "Keep rules"),
    ("qps", "Watching"),
    ("top", "Watching"),
];

/// Returns how wide the terminal is that we write to, or a page where there is none.
pub(crate) fn columns() -> usize {
    terminal_columns().min(COLUMNS_MAX)
}

/// Returns how wide the terminal is, or a page where there is none.
pub(crate) fn terminal_columns() -> usize {
    let sizes = [
        rustix::termios::tcgetwinsize(stdout()),
        rustix::termios::tcgetwinsize(stdin()),
        rustix::termios::tcgetwinsize(stderr()),
    ];
    let known = sizes.into_iter().flatten();
    let columns = known
        .map(|size| usize::from(size.ws_col))
        .find(|it| *it > 0);
    columns.unwrap_or(COLUMNS_MAX)
}

/// Arranges the help of a command and all its verbs for so many columns.
pub(crate) fn arrange(command: Command, columns: usize) -> Command {
    let name = command.get_name().to_owned();
    let about_what = ITS_MATTER.iter().find(|(verb, _)| *verb == name);
    let is_rare = |arg: &Arg| {
        let its_matter =
            about_what.is_some_and(|(_, heading)| arg.get_help_heading() == Some(heading));
        arg.get_long().is_some_and(|long| RARE.contains(&long)) && !its_matter
    };
    let mut left_out = 0;
    let mut command = command.term_width(columns).mut_args(|arg| {
        if !is_rare(&arg) {
            return arg;
        }
        left_out += 1;
        // Man pages have no other text for what is not in brief help.
        let text = arg.get_long_help().or(arg.get_help());
        let text = text.cloned().unwrap_or_default();
        arg.hide_short_help(true).long_help(text)
    });
    if let Some(text) = command.get_after_help().map(ToString::to_string) {
        let text = reflow(&text, columns);
        let brief = match left_out {
            0 => text.clone(),
            _ => format!(
                "{}: --help-all\n\n{text}",
                evenkeel_op::units::count(left_out, "more option")
            ),
        };
        command = command.after_help(brief).after_long_help(text);
    }
    command.mut_subcommands(|verb| arrange(verb, columns))
}

/// Joins the lines of each paragraph, to be broken once where the terminal ends, and puts what is said of an
/// example below it where both are too long for a line.
fn reflow(text: &str, columns: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut continues = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ');
        match lines.last_mut() {
            Some(last) if is_prose && continues => {
                last.push(' ');
                last.push_str(line);
            }
            _ if is_prose => lines.push(line.to_owned()),
            _ => lines.extend(example(line, columns)),
        }
        continues = is_prose && !line.ends_with(':');
    }
    lines.join("\n")
}

/// Returns the line or lines of an example: `  command     what it does`.
fn example(line: &str, columns: usize) -> Vec<String> {
    if line.chars().count() <= columns {
        return vec![line.to_owned()];
    }
    let indent = line.len() - line.trim_start().len();
    let gap = line[indent..].find("   ").map(|at| at + indent);
    let (command, reported) = line.split_at(gap.unwrap_or(line.len()));
    let mut lines = cut(command, columns);
    if !reported.is_empty() {
        lines.push(format!("{BELOW}{}", reported.trim_start()));
    }
    lines
}

/// Cuts a command that is too long for a line in front of options, as a shell takes it.
fn cut(command: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = command.to_owned();
    while rest.chars().count() > columns {
        let may_end = |at: &usize| {
            let quotes = rest[..*at].matches('\'').count();
            rest[..*at].chars().count() <= columns - 2 && quotes.is_multiple_of(2)
        };
        let places = rest.match_indices(" -").chain(rest.match_indices(" |"));
        let Some(at) = places.map(|(at, _)| at).filter(may_end).max() else {
            break;
        };
        if rest[..at].trim().is_empty() {
            break;
        }
        lines.push(format!("{} \\", &rest[..at]));
        rest = format!("{BELOW}{}", &rest[at + 1..]);
    }
    lines.push(rest);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every verb that people type, those of verbs too.
    fn all(command: &Command) -> Vec<&Command> {
        let below = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        [command].into_iter().chain(below.flat_map(all)).collect()
    }

    #[test]
    fn paragraphs_are_joined_and_examples_stand() {
        let text = "Examples:\n  evenkeel a          What a does\n  evenkeel b\n\nOne sentence that\nwas cut. \
                    And\nmore.";
        let wide = "Examples:\n  evenkeel a          What a does\n  evenkeel b\n\nOne sentence that was cut. \
                    And more.";
        assert_eq!(reflow(text, 80), wide);
        let narrow = wide.replace("a          What", "a\n      What");
        assert_eq!(reflow(text, 20), narrow);
        let cut = cut("  evenkeel b --hook './take -a' --release x", 31);
        assert_eq!(
            cut,
            [
                "  evenkeel b \\",
                "      --hook './take -a' \\",
                "      --release x"
            ]
        );
    }

    #[test]
    fn no_line_of_help_is_longer_than_the_terminal_or_broken_twice() {
        for columns in [80, 100] {
            let mut command = crate::parser::command_for(columns);
            command.build();
            for verb in all(&command) {
                let mut verb = verb.clone().term_width(columns);
                for help in [verb.render_help(), verb.render_long_help()] {
                    let help = help.to_string();
                    let lines = help.lines().filter(|line| !line.starts_with("Usage:"));
                    for line in lines {
                        assert!(
                            line.chars().count() <= columns,
                            "{}: {line}",
                            verb.get_name()
                        );
                    }
                }
                let after = verb.get_after_long_help().map(ToString::to_string);
                let after = after.unwrap_or_default();
                for line in after.lines().filter(|line| line.starts_with(' ')) {
                    assert!(
                        line.chars().count() <= columns,
                        "{}: {line}",
                        verb.get_name()
                    );
                }
            }
        }
    }

    #[test]
    fn every_rare_option_is_one_and_backups_help_is_brief() {
        let command = crate::command();
        let all = all(&command);
        for rare in RARE {
            let mut known = all.iter().flat_map(|verb| verb.get_arguments());
            assert!(known.any(|arg| arg.get_long() == Some(rare)), "{rare}");
        }
        let mut backup = crate::parser::command_for(80);
        backup.build();
        let backup = backup.find_subcommand_mut("backup").unwrap();
        let help = backup.render_help().to_string();
        assert!(help.lines().count() <= 120, "{help}");
        assert!(
            help.contains("--keep-last") && !help.contains("--ssl-ca"),
            "{help}"
        );
        assert!(help.contains("--help-all"), "{help}");
    }

    #[test]
    fn one_thing_has_one_name() {
        for (former, name) in [
            ("workers", "threads"),
            ("latest", "last"),
            ("into", "output"),
            ("deadline", "lock-deadline"),
        ] {
            for verb in all(&crate::command()) {
                let mut options = verb.get_arguments();
                // Of `load` it names databases, and nothing that is written.
                let is_other = (verb.get_name(), former) == ("load", "into");
                let is_there = options.any(|arg| arg.get_long() == Some(former)) && !is_other;
                assert!(
                    !is_there,
                    "{} --{former}: it is called --{name}",
                    verb.get_name()
                );
            }
        }
    }
}
