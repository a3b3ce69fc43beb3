//! Errors as they were written down: a command that goes wrong, its exit code and all that it said, in a
//! text file that people read in a review. With `EVENKEEL_WRITE_ERRORS=1` the files are rewritten.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The files of one folder, and how what changes from run to run is called in them.
#[derive(Debug)]
pub struct WrittenDown {
    program: PathBuf,
    folder: PathBuf,
    /// What is here, and what it is called: paths and ports.
    names: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    seen: BTreeSet<String>,
    wrong: Vec<String>,
}

impl WrittenDown {
    /// Reads those of a folder of `tests/cases/tests/errors`. `program` is the one under test.
    #[must_use]
    pub fn of(folder: &str, program: &str) -> Self {
        let all = evenkeel_testkit::checkout().join("tests/cases/tests/errors");
        Self {
            program: program.into(),
            folder: all.join(folder),
            names: Vec::new(),
            environment: Vec::new(),
            seen: BTreeSet::new(),
            wrong: Vec::new(),
        }
    }

    /// Calls something by another name, in command lines and in what is said.
    pub fn call(&mut self, what: impl ToString, name: &str) {
        self.names.push((what.to_string(), name.to_owned()));
    }

    /// Sets variables of every run to come, which command lines do not show.
    pub fn set(&mut self, environment: Vec<(String, String)>) {
        self.environment = environment;
    }

    /// Plans a run by a command line as a person types it: variables, then words. It knows nothing of this
    /// host's servers and stores.
    #[must_use]
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let shown = name.to_string_lossy();
            if ["AWS_", "MYSQL_", "EVENKEEL_"]
                .iter()
                .any(|begin| shown.starts_with(begin))
            {
                command.env_remove(&name);
            }
        }
        command
            .env("HOME", "/nonexistent")
            .env("LC_ALL", "C")
            .env("TZ", "UTC");
        command.envs(self.environment.iter().cloned());
        let mut is_first = true;
        for word in line.split_whitespace() {
            let here = self
                .names
                .iter()
                .fold(word.to_owned(), |word, (what, name)| {
                    word.replace(name, what)
                });
            match here
                .split_once('=')
                .filter(|(name, _)| is_first && is_variable(name))
            {
                Some((name, "")) => command.env_remove(name),
                Some((name, value)) => command.env(name, value),
                None => {
                    is_first = false;
                    command.arg(here)
                }
            };
        }
        command
    }

    /// Runs a command that is to go well.
    #[track_caller]
    pub fn prepare(&self, line: &str) {
        let output = self.command(line).output().expect("the program runs");
        assert!(output.status.success(), "{line}: {output:?}");
    }

    /// Runs a command that goes wrong, and compares what it said with the file of this name.
    pub fn say(&mut self, name: &str, line: &str) {
        let output = self.command(line).output().expect("the program runs");
        let mut text = format!("$ {}\n", shown(line));
        match output.status.code() {
            Some(code) => text.push_str(&format!("exit code {code}\n\n")),
            None => text.push_str("killed\n\n"),
        }
        // An answer besides has times in it, and is for other tests.
        let said =
            String::from_utf8_lossy(&output.stderr).replace("evenkeel-under-test", "evenkeel");
        let said = self
            .names
            .iter()
            .fold(said, |said, (what, name)| said.replace(what, name));
        text.push_str(&said);
        self.seen.insert(format!("{name}.txt"));
        let path = self.folder.join(format!("{name}.txt"));
        if std::env::var_os("EVENKEEL_WRITE_ERRORS").is_some() {
            fs::create_dir_all(&self.folder).expect("a folder");
            fs::write(&path, &text).expect("a file");
            return;
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        if text != expected {
            let path = path.display();
            self.wrong
                .push(format!("{path} has\n{expected}\nand it said\n{text}"));
        }
    }

    /// Fails unless all was said as it is written down, and nothing is written down that was not said.
    #[track_caller]
    pub fn assert_all(self) {
        let entries = fs::read_dir(&self.folder).expect("the folder of the errors");
        let there: BTreeSet<String> = entries
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        assert!(
            self.wrong.is_empty(),
            "{}\nEVENKEEL_WRITE_ERRORS=1 rewrites them",
            self.wrong.join("\n")
        );
        assert_eq!(there, self.seen, "files in {}", self.folder.display());
    }
}

/// The command line with the program's name, behind the variables.
fn shown(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_set = |word: &&&str| {
        word.split_once('=')
            .is_some_and(|(name, _)| is_variable(name))
    };
    let variables = words.iter().take_while(is_set).count();
    let (variables, words) = words.split_at(variables);
    [variables, &["evenkeel"], words].concat().join(" ")
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// A port at which nobody listens.
#[must_use]
pub fn closed_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A port that answers as an SSH server does.
#[must_use]
pub fn port_of_ssh() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    // Ends with the test's process.
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            // Whoever asked may have gone.
            let _ = client.write_all(b"SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n");
            let _ = std::io::copy(&mut client, &mut std::io::sink());
        }
    });
    port
}
