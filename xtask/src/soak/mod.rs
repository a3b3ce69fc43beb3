//! The long loops in full: every test that can be run for hours, one after the other or several at once, with a
//! record of what was done when. A run that is cut short goes on where it was.

mod find;
mod line;
mod log;
mod table;

use crate::record::{self, Record};
use crate::stop::{Limit, Stop};
use crate::workspace::Workspace;
use anyhow::{Context, Result, anyhow, bail, ensure};
use find::Entry;
use line::{Line, Outcome};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What `cargo nextest` exits with when a test failed; `cargo xtask machine` as every check of ours.
const TESTS_FAILED: i32 = 100;

/// How to soak.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// Parts of the names of the entries to run; all of them when left out.
    filters: Vec<String>,
    /// Where all chance comes from; by default that of the run that did not end at this commit, else
    /// a new one.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run those as well that have passed at this commit.
    #[arg(long)]
    again: bool,
    /// Leave out those that have passed at this commit or a later one, too.
    #[arg(long, value_name = "REF")]
    since: Option<String>,
    /// Only show what there is, and what became of it.
    #[arg(long)]
    list: bool,
    /// Begin nothing more after this time.
    #[arg(long, value_name = "N")]
    limit_minutes: Option<u64>,
    /// Run so many entries at once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
}

/// Runs the entries and prints their record. Returns whether none failed.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    let workspace = Workspace::read(root)?;
    let all = find::entries(&workspace)?;
    let is_wanted = |entry: &&Entry| {
        let name = entry.to_string();
        let mut filters = options.filters.iter();
        options.filters.is_empty() || filters.any(|part| name.contains(part))
    };
    let wanted: Vec<&Entry> = all.iter().filter(is_wanted).collect();
    ensure!(
        !wanted.is_empty(),
        "no test that asks how long to go on is called like {:?}",
        options.filters
    );
    let room = workspace.target_directory.join("soak");
    let record = Record::at(root.join(crate::git::RECORDS).join("soak.jsonl"));
    if options.list {
        print!("{}", table::page(&wanted, &record.read()?));
        return Ok(true);
    }
    let stop = Stop::on_signals()?;
    let limit = Limit::after(options.limit_minutes);
    let lines = record.read()?;
    let commit = crate::git::commit(root)?;
    let commits = crate::git::since(root, &commit, options.since.as_deref())?;
    let seed = match options.seed {
        Some(seed) => seed,
        None => line::unfinished(&lines, &commits, &all)
            .unwrap_or_else(|| record::now().as_second().unsigned_abs()),
    };
    let todo: Vec<&Entry> = wanted
        .iter()
        .copied()
        .filter(|entry| options.again || !line::has_passed(&lines, &commits, entry, options.seed))
        .collect();
    println!(
        "{} of {} to run, at {}, --seed {seed}; the record is {}",
        todo.len(),
        wanted.len(),
        crate::git::short(&commit),
        record.path().display()
    );
    let soak = Soak {
        root,
        seed,
        room,
        stop,
        limit,
        record,
        todo,
        progress: Mutex::default(),
    };
    let progress = soak.run(options.jobs.max(1))?;
    let left = soak.todo.len() - progress.begun;
    if left > 0 {
        println!("the time is over: {left} are left, so this soak is not whole");
    }
    print!("\n{}", table::page(&wanted, &soak.record.read()?));
    Ok(progress.failed == 0)
}

/// What is run, and what became of it.
struct Soak<'a> {
    root: &'a Path,
    seed: u64,
    /// Where the output of tests goes.
    room: PathBuf,
    stop: Stop,
    limit: Limit,
    record: Record,
    todo: Vec<&'a Entry>,
    progress: Mutex<Progress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    begun: usize,
    ended: usize,
    failed: usize,
}

impl Soak<'_> {
    /// Runs what is to be run, so many at once.
    fn run(&self, jobs: usize) -> Result<Progress> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(|| self.work())).collect();
            let joined = threads.into_iter().map(|thread| {
                let ended = thread.join();
                ended.unwrap_or_else(|_| Err(anyhow!("a thread died")))
            });
            // All of them are waited for.
            let outcomes: Vec<Result<()>> = joined.collect();
            outcomes.into_iter().collect::<Result<()>>()
        })?;
        Ok(*self.progress())
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one entry after the other, as long as there are some.
    fn work(&self) -> Result<()> {
        while let Some(entry) = self.next() {
            let line = try_one(self.root, entry, self.seed, &self.room, &self.stop)?;
            let mut progress = self.progress();
            self.record.append(&line)?;
            progress.ended += 1;
            progress.failed += usize::from(line.outcome != Outcome::Passed);
            println!("[{}/{}] {line}", progress.ended, self.todo.len());
        }
        Ok(())
    }

    fn next(&self) -> Option<&Entry> {
        let mut progress = self.progress();
        if self.limit.is_over() || self.stop.is_reported() {
            return None;
        }
        let next = self.todo.get(progress.begun).copied();
        progress.begun += usize::from(next.is_some());
        next
    }
}

/// Runs one entry. An error when told to stop meanwhile: then nothing is known of it.
fn try_one(root: &Path, entry: &Entry, seed: u64, room: &Path, stop: &Stop) -> Result<Line> {
    let logs = room.join("logs");
    fs::create_dir_all(&logs)?;
    let path = logs.join(format!("{}.log", entry.to_string().replace("::", ".")));
    let out =
        File::create(&path).with_context(|| format!("failed to create {}", path.display()))?;
    let mut command = command(root, entry, seed);
    command.stdout(out.try_clone()?).stderr(out);
    // Somebody may commit while others run.
    let commit = crate::git::commit(root)?;
    let (started, begin) = (record::now(), Instant::now());
    let code = stop.wait(command)?;
    if stop.is_reported() {
        bail!("interrupted in {entry}; `cargo xtask soak` goes on there");
    }
    let reported = log::read(&String::from_utf8_lossy(&fs::read(&path)?));
    let outcome = match code {
        Some(0) => Outcome::Passed,
        Some(TESTS_FAILED) => Outcome::Failed,
        Some(code) if entry.is_in_a_machine() && code == i32::from(crate::FOUND) => Outcome::Failed,
        _ => Outcome::DidNotRun,
    };
    if outcome != Outcome::Passed {
        println!("{entry}: exit code {code:?}, see {}", path.display());
    }
    Ok(Line {
        commit,
        entry: entry.to_string(),
        seed,
        started,
        seconds: begin.elapsed().as_secs(),
        outcome,
        tests: reported.tests,
        efforts: reported.efforts,
    })
}

fn command(root: &Path, entry: &Entry, seed: u64) -> Command {
    let mut command = crate::cargo();
    if entry.is_in_a_machine() {
        // Every test of the file: its name, as the machine's list has it, begins so.
        let file = entry.test.as_deref().unwrap_or_default();
        command.args(["xtask", "machine", &format!("{file}::")]);
    } else {
        // Of the whole workspace: for one package alone, others would be built with fewer features, each time.
        let wanted = format!("binary_id(={entry})");
        command.args(["nextest", "run", "--locked", "--workspace", "-E", &wanted]);
        command.args(["--profile", "soak", "--success-output", "immediate"]);
    }
    command
        .current_dir(root)
        .env("CARGO_TERM_COLOR", "never")
        .env("EVENKEEL_EFFORT", "full")
        .env("EVENKEEL_SEED", seed.to_string());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(package: &str, test: Option<&str>) -> String {
        let entry = Entry {
            package: package.into(),
            test: test.map(str::to_owned),
        };
        let command = command(Path::new("/"), &entry, 7);
        let words: Vec<_> = command
            .get_args()
            .map(|word| word.to_string_lossy())
            .collect();
        let is_full = command
            .get_envs()
            .any(|(name, value)| name == "EVENKEEL_SEED" && value.is_some_and(|seed| seed == "7"));
        assert!(is_full);
        words.join(" ")
    }

    #[test]
    fn files_and_libraries_are_run_in_full() {
        assert_eq!(
            words("evenkeel-op", Some("a_is_b")),
            "nextest run --locked --workspace -E binary_id(=evenkeel-op::a_is_b) --profile soak \
             --success-output immediate"
        );
        assert!(words("evenkeel-op", None).contains("binary_id(=evenkeel-op) "));
    }

    #[test]
    fn what_needs_a_kernel_of_its_own_is_run_in_the_machine() {
        assert_eq!(
            words("evenkeel-vm", Some("a_is_b")),
            "xtask machine a_is_b::"
        );
    }
}
