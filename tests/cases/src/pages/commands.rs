//! What is typed in a block, and what it shows of the answers.

use super::{Block, Page, What};
use crate::pages::shape;
use crate::pages::staying::Staying;

/// A command of a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Typed {
    /// The line, without what explains it.
    pub(super) line: String,
    /// What the page says that it prints; `None` where the page says nothing of that.
    pub(super) shown: Option<Vec<String>>,
}

/// What root's shell writes in front of a command.
const PROMPT: &str = "# ";

/// Returns the commands of a block: each behind a prompt with what it prints below, or one a line.
pub(super) fn of(block: &Block) -> Vec<Typed> {
    let mut commands: Vec<Typed> = Vec::new();
    let prompts = block.first().starts_with(PROMPT);
    let mut lines = block.lines.iter();
    while let Some(line) = lines.next() {
        let typed = match line.strip_prefix(PROMPT) {
            Some(typed) if prompts => typed,
            None if prompts => {
                let last = commands.last_mut().and_then(|last| last.shown.as_mut());
                last.expect("a command").push(line.clone());
                continue;
            }
            _ => line,
        };
        let mut whole = typed.to_owned();
        while let Some(cut) = whole.strip_suffix('\\').map(str::trim_end) {
            let next = lines.next().map_or("", |line| line.trim());
            whole = format!("{cut} {next}");
        }
        let line = without_remark(&whole).to_owned();
        if !line.is_empty() {
            let shown = prompts.then(Vec::new);
            commands.push(Typed { line, shown });
        }
    }
    commands
}

/// Cuts off what explains a command: it stands behind two blanks or more. In a crontab's line these stand behind the
/// times as well.
fn without_remark(line: &str) -> &str {
    let line = match line.split_once("  ") {
        Some((times, command)) if is_schedule(times) => command.trim_start(),
        _ => line,
    };
    line.split("  ").next().unwrap_or_default().trim_end()
}

/// Five fields of digits and stars.
fn is_schedule(text: &str) -> bool {
    let is_field = |field: &str| field.bytes().all(|byte| b"0123456789*/,-".contains(&byte));
    text.split_whitespace().count() == 5 && text.split_whitespace().all(is_field)
}

/// Statements among commands: their first words are written large.
fn is_sql(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    first.len() > 1 && first.bytes().all(|byte| byte.is_ascii_uppercase())
}

impl Page<'_> {
    #[track_caller]
    pub(super) fn run_command(&mut self, block: &Block, command: &Typed) {
        let mut code = 0;
        let mut stays = None;
        for what in self.exceptions(&command.line) {
            match what {
                What::Elsewhere => return,
                What::Before(shell) => drop(self.house.run(&shell)),
                What::Code(expected) => code = expected,
                What::Stays(ready) => stays = Some((ready, true)),
                What::Briefly(ready) => stays = Some((ready, false)),
                What::Say(_) | What::Varies => {}
            }
        }
        let line = self.said_so(&command.line);
        if line.starts_with("export ") {
            self.environment.push(line);
        } else if is_sql(&line) {
            self.printed = self.house.sql(&line);
        } else if let Some((ready, stays)) = stays {
            let one = Staying::start(self.house, &self.environment.join("; "), &line);
            one.wait(self.house, &ready);
            (self.printed, self.said) = one.printed();
            match stays {
                true => self.staying.push(one),
                false => one.stop(self.house, code),
            }
        } else {
            self.run_line(block, &line, code);
        }
        if let Some(shown) = &command.shown {
            self.compare(block, shown);
        }
    }

    #[track_caller]
    pub(super) fn run_line(&mut self, block: &Block, line: &str, code: i32) {
        let environment = self.environment.join("; ");
        let output = self.house.output(&format!("{environment}\n{line}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (self.printed, self.said) = (text(&output.stdout), text(&output.stderr));
        assert!(
            output.status.code() == Some(code),
            "{}:{}: {line}\n{}, not {code}\n{}{}",
            self.name,
            block.line,
            output.status,
            self.printed,
            self.said
        );
    }

    /// Presses Ctrl-C, so to speak, in what stays in the foreground and has these words in its command. It has to end
    /// with this exit code.
    #[track_caller]
    pub fn stop(&mut self, words: &str, code: i32) {
        let found = self
            .staying
            .iter()
            .position(|one| one.line().contains(words));
        let found = found.unwrap_or_else(|| panic!("{}: {words} does not run", self.name));
        self.staying.remove(found).stop(self.house, code);
    }

    /// Compares what a page shows with what was printed. Lines that begin with the program's name, and hints, are
    /// among what it says beside its answer; what it says of its progress need not be shown.
    #[track_caller]
    pub(super) fn compare(&mut self, block: &Block, shown: &[String]) {
        let shown: Vec<String> = shown.iter().map(|line| self.said_otherwise(line)).collect();
        let is_beside = |line: &&str| line.starts_with("evenkeel: ") || line.starts_with("hint: ");
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        let (beside, answer): (Vec<&str>, Vec<&str>) =
            shown.iter().partition(|line| is_beside(line));
        let at = || {
            let (name, line) = (&self.name, block.line);
            format!("{name}:{line}\n{}\n{}", self.printed, self.said)
        };
        let printed: Vec<&str> = self.printed.lines().collect();
        if let Err(why) = shape::compare(&answer, &printed) {
            panic!("{why}\n{}", at());
        }
        let mut said = self.said.lines();
        for line in beside {
            assert!(
                said.any(|one| shape::is_like(line, one)),
                "it does not say {line}\n{}",
                at()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Vec<Typed> {
        of(&Block {
            language: "text".to_owned(),
            line: 1,
            lines: text.lines().map(str::to_owned).collect(),
        })
    }

    #[test]
    fn remarks_and_times_are_no_part_of_a_command() {
        let block = "evenkeel doctor      what works\na \\\n   b\n0 3 * * *  c d\n";
        let lines: Vec<String> = typed(block).into_iter().map(|one| one.line).collect();
        assert_eq!(lines, ["evenkeel doctor", "a b", "c d"]);
    }

    #[test]
    fn what_stands_below_a_prompt_is_shown_by_the_command() {
        let [first, second] = &typed("# a\nb\n  c\n# d\n")[..] else {
            panic!("two commands");
        };
        assert_eq!(first.shown.as_ref().unwrap(), &["b", "  c"]);
        assert_eq!((second.line.as_str(), &second.shown), ("d", &Some(vec![])));
    }
}
