//! Pages of the book, done as they say: each block of commands is run in a house as it stands there, and what it
//! shows is compared with what was printed. A test says only what a reader brings along: which server there is, what
//! stands for `…`, and when to press Ctrl-C.

mod blocks;
mod commands;
mod shape;
mod statements;
mod staying;

use crate::house::House;
pub use blocks::Block;
use staying::Staying;
use std::collections::VecDeque;
use std::fs;
use std::panic::Location;

/// A page on its way from the first block to the last.
#[derive(Debug)]
pub struct Page<'a> {
    name: String,
    house: &'a House,
    blocks: VecDeque<Block>,
    exceptions: Vec<Exception>,
    /// `export` lines so far: they hold for what follows.
    environment: Vec<String>,
    staying: Vec<Staying>,
    /// What the last command printed, and what it said besides.
    printed: String,
    said: String,
}

/// Where a test does not do what a page says, or more.
#[derive(Debug)]
struct Exception {
    /// Part of a command, or of a file; with `$` behind it, the end of a command.
    at: String,
    what: What,
    used: bool,
}

#[derive(Debug, Clone)]
enum What {
    /// This is put in its place.
    Say(String),
    /// Shell that is run before.
    Before(String),
    /// Its exit code.
    Code(i32),
    /// It is not run here.
    Elsewhere,
    /// It stays in the foreground, and is ready when this shell succeeds.
    Stays(String),
    /// The same, and then it is stopped.
    Briefly(String),
    /// What is shown there may be otherwise: whether a difference is seen is not known before.
    Varies,
}

/// Fails unless a file of the checkout has these words: it is said to test what is not done here. One that says so of
/// itself would have them in any case.
#[track_caller]
fn assert_tested(file: &str, proof: &str) {
    let path = evenkeel_testkit::checkout().join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(text.contains(proof), "{file} has no {proof:?}");
    let here = Location::caller().file();
    assert!(!here.ends_with(file), "{file} names itself");
}

impl<'a> Page<'a> {
    /// Opens a page, named as below `docs/src`, for a walk through it in a house.
    #[must_use]
    pub fn open(house: &'a House, name: &str) -> Self {
        let path = match name {
            "README.md" => evenkeel_testkit::checkout().join(name),
            _ => evenkeel_testkit::checkout().join("docs/src").join(name),
        };
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self {
            name: name.to_owned(),
            house,
            blocks: blocks::of(&text).into(),
            exceptions: Vec::new(),
            environment: Vec::new(),
            staying: Vec::new(),
            printed: String::new(),
            said: String::new(),
        }
    }

    /// Opens a page at its block that begins with a line that has these words, which are all that is to be done.
    #[track_caller]
    #[must_use]
    pub fn part(house: &'a House, name: &str, words: &str) -> Self {
        let mut page = Self::open(house, name);
        page.blocks.retain(|block| block.first().contains(words));
        assert_eq!(
            page.blocks.len(),
            1,
            "{name}: blocks that begin with {words}"
        );
        page
    }

    /// Puts `text` where the page has `words` that stand for it.
    pub fn say(&mut self, words: &str, text: &str) {
        self.except(words, What::Say(text.to_owned()));
    }

    /// Runs some shell before each command that has these words.
    pub fn before(&mut self, words: &str, shell: &str) {
        self.except(words, What::Before(shell.to_owned()));
    }

    /// Expects that commands with these words end with an exit code other than 0.
    pub fn code(&mut self, words: &str, code: i32) {
        self.except(words, What::Code(code));
    }

    /// Commands with these words are not run here, but by what is in this file of the checkout, where `proof` stands.
    #[track_caller]
    pub fn elsewhere(&mut self, words: &str, file: &str, proof: &str) {
        assert_tested(file, proof);
        self.except(words, What::Elsewhere);
    }

    /// Commands with these words stay in the foreground; they are ready when this shell succeeds.
    pub fn stays(&mut self, words: &str, ready: &str) {
        self.except(words, What::Stays(ready.to_owned()));
    }

    /// Commands with these words stay in the foreground; when this shell succeeds, they are told to end.
    pub fn briefly(&mut self, words: &str, ready: &str) {
        self.except(words, What::Briefly(ready.to_owned()));
    }

    /// Lets lines that are shown with these words stand for any.
    pub fn varies(&mut self, words: &str) {
        self.except(words, What::Varies);
    }

    /// Runs the next block, which begins with a line that has these words: commands, or SQL.
    #[track_caller]
    pub fn run(&mut self, words: &str) {
        let block = self.next(words);
        if block.language == "sql" {
            let text = self.said_so(&block.text());
            self.house.sql(&text);
            return;
        }
        for command in commands::of(&block) {
            self.run_command(&block, &command);
        }
    }

    /// Does what a page says in its text: runs some shell that ends with this code, for [`Page::shows`].
    #[track_caller]
    pub fn does(&mut self, line: &str, code: i32) {
        let block = Block {
            language: String::new(),
            line: 0,
            lines: vec![line.to_owned()],
        };
        self.run_line(&block, line, code);
    }

    /// Compares the next block, which begins with a line that has these words, with what was printed last.
    #[track_caller]
    pub fn shows(&mut self, words: &str) {
        let block = self.next(words);
        let expected = block.lines.clone();
        self.compare(&block, &expected);
    }

    /// Writes the next block into a file of the house.
    #[track_caller]
    pub fn write(&mut self, words: &str, path: &str, mode: &str) {
        let block = self.next(words);
        let text = self.said_so(&block.text());
        self.house.write(path, &text, mode);
    }

    /// Passes over the next block: what is in this file of the checkout tests it, where `proof` stands.
    #[track_caller]
    pub fn pass(&mut self, words: &str, file: &str, proof: &str) {
        assert_tested(file, proof);
        let _ = self.next(words);
    }

    /// Returns the text of the next block.
    #[track_caller]
    pub fn take(&mut self, words: &str) -> String {
        let block = self.next(words);
        self.said_so(&block.text())
    }

    /// Returns what the last command printed.
    #[must_use]
    pub fn printed(&self) -> &str {
        &self.printed
    }

    /// Sets variables for all commands that follow, as `export` does.
    pub fn export(&mut self, variables: &str) {
        self.environment.push(format!("export {variables}"));
    }

    /// Fails unless every block was taken and every exception was one.
    #[track_caller]
    pub fn end(self) {
        let left: Vec<&str> = self.blocks.iter().map(Block::first).collect();
        assert!(left.is_empty(), "{}: no test takes {left:?}", self.name);
        let unused: Vec<&Exception> = self.exceptions.iter().filter(|one| !one.used).collect();
        assert!(
            unused.is_empty(),
            "{}: not on the page: {unused:?}",
            self.name
        );
        let staying: Vec<&str> = self.staying.iter().map(Staying::line).collect();
        assert!(staying.is_empty(), "{}: run on: {staying:?}", self.name);
    }

    fn except(&mut self, at: &str, what: What) {
        let at = at.to_owned();
        self.exceptions.push(Exception {
            at,
            what,
            used: false,
        });
    }

    #[track_caller]
    fn next(&mut self, words: &str) -> Block {
        let block = self.blocks.pop_front();
        let block = block.unwrap_or_else(|| panic!("{}: no block is left for {words}", self.name));
        assert!(
            block.first().contains(words),
            "{}:{}: the next block begins with {:?}, the test expects {words:?}",
            self.name,
            block.line,
            block.first()
        );
        block
    }

    /// Puts what was said in its place.
    fn said_so(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for one in &mut self.exceptions {
            if let What::Say(instead) = &one.what
                && text.contains(&one.at)
            {
                text = text.replace(&one.at, instead);
                one.used = true;
            }
        }
        text
    }

    /// Returns a line that is shown, or what stands for any if it may be otherwise.
    fn said_otherwise(&mut self, line: &str) -> String {
        for one in &mut self.exceptions {
            if matches!(one.what, What::Varies) && line.contains(&one.at) {
                one.used = true;
                return "…".to_owned();
            }
        }
        line.to_owned()
    }

    /// Returns the exceptions for a command, in the order in which they were made.
    fn exceptions(&mut self, command: &str) -> Vec<What> {
        let fits = |one: &&mut Exception| match one.at.strip_suffix('$') {
            Some(end) => command.ends_with(end),
            None => command.contains(&one.at),
        };
        let fitting = self.exceptions.iter_mut().filter(fits);
        fitting
            .map(|one| {
                one.used = true;
                one.what.clone()
            })
            .collect()
    }
}
