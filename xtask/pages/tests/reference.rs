//! Is the command reference in the book what `--help` says, and is every option documented?

use clap::Command;

#[test]
fn the_page_is_what_help_says() {
    evenkeel_pages::check_reference(&evenkeel_pages::root()).unwrap();
}

fn undocumented(command: &Command, found: &mut Vec<String>) {
    for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        if help.trim().len() < 4 {
            found.push(format!("{} {}", command.get_name(), arg.get_id()));
        }
    }
    for sub in command
        .get_subcommands()
        .filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
    {
        if sub.get_about().is_none() {
            found.push(format!("{} has no description", sub.get_name()));
        }
        if sub.get_after_long_help().or(sub.get_after_help()).is_none() {
            found.push(format!("{} shows no example", sub.get_name()));
        }
        undocumented(sub, found);
    }
}

#[test]
fn every_option_is_documented_and_every_command_has_an_example() {
    let mut command = evenkeel_cli::command();
    command.build();
    let mut found = Vec::new();
    undocumented(&command, &mut found);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn man_pages_and_completions_are_written() {
    let out = std::env::temp_dir().join(format!("evenkeel-pages-{}", std::process::id()));
    evenkeel_pages::write_man(&out).unwrap();
    evenkeel_pages::write_completions(&out).unwrap();
    let page = std::fs::read_to_string(out.join("evenkeel-backup.1")).unwrap();
    assert!(
        page.contains("Certificate authorities to trust"),
        "what brief help leaves out"
    );
    assert!(out.join("_evenkeel").exists());
    std::fs::remove_dir_all(&out).unwrap();
}
