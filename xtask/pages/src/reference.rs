//! The command reference as one Markdown page.

use clap::Command;
use std::fmt::Write as _;

/// Returns the page: each command's long help, as a terminal of 100 columns shows it.
pub(super) fn page(command: &Command) -> String {
    let mut command = command.clone().term_width(100);
    command.build();
    let mut page = String::from(
        "# Commands\n\nThis page is what `--help-all` says. It is generated: \
         `cargo pages reference --write`.\n",
    );
    section(&mut page, &mut command, &["evenkeel".to_owned()]);
    page
}

fn section(page: &mut String, command: &mut Command, path: &[String]) {
    let title = path.join(" ");
    let help = command.render_long_help().to_string();
    let mut tidy: String = help
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect();
    tidy.truncate(tidy.trim_end().len());
    // Writing to a String cannot fail.
    let _ = write!(page, "\n## {title}\n\n```text\n{tidy}\n```\n");
    for sub in command.get_subcommands_mut() {
        if sub.get_name() == "help" || sub.is_hide_set() {
            continue;
        }
        let mut below = path.to_vec();
        below.push(sub.get_name().to_owned());
        section(page, sub, &below);
    }
}
