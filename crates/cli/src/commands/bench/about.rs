//! Reports to pass on: what was measured with which command, on what.

use super::parts::create;
use evenkeel_bench::machine;
use evenkeel_op::{Context, Result};
use evenkeel_report::{About, Fact, Page};
use evenkeel_server::connect::{Session, server_behind};
use evenkeel_server::options::ConnectOptions;
use jiff::Zoned;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A report that will be written when there is something to tell. Made before the measurement: a file
/// that cannot be written is reported then, and a server that does not survive has reported its
/// settings.
pub(super) struct Draft {
    file: File,
    path: PathBuf,
    server: Vec<Fact>,
    /// The server's files, where they are on this machine.
    datadir: Option<PathBuf>,
}

impl Draft {
    /// Begins one; `None` when none is wanted.
    pub(super) fn begin(path: Option<&Path>, options: &ConnectOptions) -> Result<Option<Self>> {
        let Some(path) = path else {
            return Ok(None);
        };
        let file = create(path)?;
        let mut session = Session::open(options)?;
        let is_here = server_behind(options).is_some();
        let datadir = session.variable("datadir")?.filter(|_| is_here);
        Ok(Some(Self {
            file,
            path: path.to_owned(),
            server: machine::server(&mut session)?,
            datadir: datadir.map(PathBuf::from),
        }))
    }

    /// Writes it; with the seed, even if nobody typed it.
    pub(super) fn write(
        mut self,
        seed: Option<u64>,
        page: impl FnOnce(About) -> Page,
    ) -> Result<()> {
        let about = about(seed, self.datadir.as_deref(), self.server);
        let html = page(about).to_html();
        self.file
            .write_all(html.as_bytes())
            .context(|| format!("failed to write {}", self.path.display()))
    }
}

/// What there is to say of a measurement on this machine.
pub(super) fn about(seed: Option<u64>, datadir: Option<&Path>, server: Vec<Fact>) -> About {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    About {
        command: command(words.skip(1), seed),
        seed,
        when: Zoned::now().strftime("%-d %B %Y, %H:%M %Z").to_string(),
        program: format!("evenkeel {}", env!("CARGO_PKG_VERSION")),
        machine: machine::here(datadir),
        server,
    }
}

/// Returns the command line that does it again: without passwords, with the seed.
pub(in crate::commands) fn command(
    words: impl Iterator<Item = String>,
    seed: Option<u64>,
) -> String {
    let is_password =
        |word: &String| word.starts_with("--password=") || word.len() > 2 && word.starts_with("-p");
    let mut kept: Vec<String> = words.filter(|word| !is_password(word)).collect();
    let names_seed = |word: &String| word == "--seed" || word.starts_with("--seed=");
    if let Some(seed) = seed.filter(|_| !kept.iter().any(names_seed)) {
        kept.extend(["--seed".to_owned(), seed.to_string()]);
    }
    format!("evenkeel {}", shell_words::join(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tells_no_password_and_the_seed() {
        let of = |words: &[&str], seed| command(words.iter().map(|&w| w.to_owned()), seed);
        let words = [
            "bench",
            "tpcc",
            "-psecret",
            "--password=x",
            "--database",
            "a b",
        ];
        assert_eq!(
            of(&words, Some(7)),
            "evenkeel bench tpcc --database 'a b' --seed 7"
        );
        assert_eq!(of(&["--seed", "8"], Some(8)), "evenkeel --seed 8");
        assert_eq!(of(&["--seed=8"], Some(8)), "evenkeel '--seed=8'");
        assert_eq!(of(&["-p"], None), "evenkeel -p");
    }
}
