//! `digest --history`: digests are kept as periods, and periods are compared.

use super::asked::{about, filter, key, rules};
use super::plans::Explainer;
use crate::args;
use crate::commands::page_file::PageFile;
use crate::settings;
use crate::show::Ui;
use crate::show::answers::{
    DigestAnswer, DigestedFile, ForgetPeriodsAnswer, PeriodsAnswer, ShownHistory, rules_name,
};
use evenkeel_op::{Error, Result, exit};
use evenkeel_traffic::digest::{self, Earlier, Summary};
use evenkeel_traffic::history::{About, Added, History, Period, Wanted, chosen, meant};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// A history to which a digest is added.
pub(super) struct Kept {
    history: History,
}

impl Kept {
    /// Opens the history, if one is named.
    pub(super) fn open(args: &args::Digest, ui: &Ui) -> Result<Option<Self>> {
        if args.kept.history.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            history: open(args, ui)?,
        }))
    }

    /// Returns the classes of a period, or of what is in a file.
    pub(super) fn or_earlier(
        &mut self,
        typed: &Path,
        args: &args::Digest,
        file: impl FnOnce(&Path) -> Result<Vec<Earlier>>,
    ) -> Result<Vec<Earlier>> {
        let text = typed.to_str().unwrap_or_default();
        if wanted(text).is_err() {
            return file(typed);
        }
        let (_, summary) = periods(&mut self.history, text, args)?;
        Ok(Earlier::all(&summary))
    }

    /// Adds what came out, and removes what is too old.
    pub(super) fn add(
        mut self,
        args: &args::Digest,
        logs: &[PathBuf],
        files: &[DigestedFile],
        summary: &Summary,
        ui: &Ui,
    ) -> Result<ShownHistory> {
        if args.kept.no_add {
            return Ok(ShownHistory::only_read(self.history.place()));
        }
        let mut shown = ShownHistory::of(self.history.place());
        match period(args, logs, files, summary)? {
            Some(about) => {
                let Added { number, is_new } = self.history.add(&about, summary)?;
                shown.add(number, is_new, about);
            }
            None => {
                let hint = match logs.is_empty() {
                    true => "",
                    false => {
                        ": if the log was rotated, name its parts together (slow.log.1 slow.log)"
                    }
                };
                let place = self.history.place();
                ui.warn(&format!(
                    "there was no statement to add, so the history in {place} has no new period{hint}"
                ));
            }
        }
        shown.removed = expire(&mut self.history, args)?;
        Ok(shown)
    }
}

pub(super) fn two_periods_and_logs() -> Error {
    Error::usage("two periods are compared with each other, so no log is read").hint(
        "to compare a log with one period, name the log first: digest slow.log --compare yesterday",
    )
}

/// Shows what a history has.
pub(super) fn show(args: &args::Digest, compare: &[PathBuf], ui: &Ui) -> Result<u8> {
    let kept = &args.kept;
    let Some(place) = &kept.history else {
        return Err(Error::usage("no log is named").hint(
            "name what to read: evenkeel digest /var/log/mysql/slow.log; - is standard input",
        ));
    };
    refuse_filters(args)?;
    let names: Vec<&str> = { compare.iter() }
        .map(|one| one.to_str().unwrap_or_default())
        .collect();
    let (before, now) = match (names[..].as_ref(), kept.period.as_deref()) {
        ([before, now], None) => (Some(*before), Some(*now)),
        ([before], Some(now)) => (Some(*before), Some(now)),
        ([], now) => (None, now),
        _ => {
            return Err(Error::usage("two periods are needed to compare them")
                .hint("--compare yesterday today, or --period today --compare yesterday"));
        }
    };
    if now.is_none() && !kept.periods && kept.keep.is_none() && kept.forget.is_none() {
        return Err(
            Error::usage("no log is named, and no period of the history")
                .hint("a log is added to it: evenkeel digest slow.log --history FILE")
                .hint("see what it has: --periods, --period yesterday, --compare yesterday today"),
        );
    }
    exists(place)?;
    let mut history = open(args, ui)?;
    if let Some(period) = &kept.forget {
        return forget(&mut history, period, args, ui);
    }
    let removed = expire(&mut history, args)?;
    let Some(now) = now else {
        let all = history.periods()?;
        let name = kept.history_name.as_deref();
        let is_meant = |one: &Period| name.is_none_or(|name| one.about.name == name);
        let all: Vec<Period> = all.into_iter().filter(is_meant).collect();
        ui.answer(&PeriodsAnswer::new(history.place(), &all, removed));
        return Ok(exit::DONE);
    };
    let mut shown = ShownHistory::only_read(history.place());
    shown.removed = removed;
    let before = match before {
        None => None,
        Some(before) => {
            let (chosen, summary) = periods(&mut history, before, args)?;
            shown.compared_with(&chosen);
            Some(Earlier::all(&summary))
        }
    };
    let explainer = Explainer::of(args, ui)?;
    let (chosen, mut summary) = periods(&mut history, now, args)?;
    shown.shows(&chosen);
    let html = args.html.as_deref();
    let html = html.map(|path| PageFile::begin(path, std::iter::once(place)));
    let html = html.transpose()?;
    { &mut summary.classes }.sort_by_key(|class| Reverse(key(class, args.sort)));
    let changes = before.map(|before| digest::changes(&before, &summary));
    let top = usize::from(args.top);
    let files = vec![file_of(&chosen, history.place())];
    let plans = explainer.explain(&summary, top, ui)?;
    let answer = DigestAnswer::new(files, rules(args), &summary, changes.as_deref(), top);
    ui.answer(&answer.with_history(Some(shown)).with_plans(&plans));
    if let Some(file) = html {
        let page = digest::page(&summary, changes.as_deref(), &plans, top, about());
        file.write(&page.to_html())?;
    }
    Ok(super::plans::code(&plans))
}

/// Shows which periods are meant, and removes them if that is wanted.
fn forget(history: &mut History, typed: &str, args: &args::Digest, ui: &Ui) -> Result<u8> {
    let all = history.periods()?;
    let name = args.kept.history_name.as_deref();
    let gone = meant(&all, &wanted(typed)?, typed, name)?;
    if args.kept.execute {
        let numbers: Vec<u64> = gone.iter().map(|one| one.number).collect();
        history.forget(&numbers)?;
    }
    let gone: Vec<Period> = gone.into_iter().cloned().collect();
    ui.answer(&ForgetPeriodsAnswer::new(
        history.place(),
        &gone,
        args.kept.execute,
    ));
    Ok(exit::DONE)
}

/// What is read from a history was chosen when it was added.
fn refuse_filters(args: &args::Digest) -> Result<()> {
    let lists = [&args.users, &args.databases, &args.hosts];
    let is_filtered = lists.iter().any(|list| !list.is_empty())
        || args.since.is_some()
        || args.until.is_some()
        || args.matching.is_some();
    match is_filtered && args.kept.history.is_some() {
        true => Err(Error::usage(
            "a period of the history cannot be filtered: it has sums, not statements",
        )
        .hint("filter when the logs are added, under a name of their own: --user app --history-name app")),
        false => Ok(()),
    }
}

/// A history that is only read has to be there.
fn exists(place: &Path) -> Result<()> {
    match settings::is_server(place) || place.symlink_metadata().is_ok() {
        true => Ok(()),
        false => Err(evenkeel_op::paths::absent("history", place)
            .hint("check the path; a history is made when a log is added to it")),
    }
}

fn open(args: &args::Digest, ui: &Ui) -> Result<History> {
    let kept = &args.kept;
    let place = kept.history.as_deref().unwrap_or(Path::new(""));
    let place = settings::history(place, args.defaults_file.as_deref(), ui)?;
    History::open(&place, ui.cancel())
}

fn wanted(text: &str) -> Result<Wanted> {
    Wanted::of(text, Timestamp::now(), &TimeZone::system())
}

fn periods(
    history: &mut History,
    text: &str,
    args: &args::Digest,
) -> Result<(Vec<Period>, Summary)> {
    let wanted = wanted(text)?;
    let all = history.periods()?;
    let name = args.kept.history_name.as_deref();
    let chosen = chosen(&all, &wanted, text, name, rules_name(rules(args)))?;
    let summary = history.read(&chosen)?;
    Ok((chosen.into_iter().cloned().collect(), summary))
}

fn file_of(periods: &[Period], place: &str) -> DigestedFile {
    let name = periods.first().map_or("", |one| one.about.name.as_str());
    DigestedFile {
        file: format!("{name} in {place}"),
        source: "history",
        entries: periods.iter().map(|one| one.about.entries).sum(),
        unreadable: periods.iter().map(|one| one.about.unreadable).sum(),
        untimed: 0,
        own_clocks: 0,
    }
}

fn expire(history: &mut History, args: &args::Digest) -> Result<Vec<u64>> {
    let Some(keep) = args.kept.keep else {
        return Ok(Vec::new());
    };
    let before = Timestamp::now().checked_sub(keep).map_err(|error| {
        Error::usage("--keep reaches further back than time does").because(error)
    })?;
    history.expire(nanoseconds(before))
}

fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(i64::MAX)
}

/// Returns which period the statements are of: the one that was asked for, else from the first to the last of them.
/// `None` where there is no statement.
fn period(
    args: &args::Digest,
    logs: &[PathBuf],
    files: &[DigestedFile],
    summary: &Summary,
) -> Result<Option<About>> {
    let filter = filter(args)?;
    let total = &summary.total;
    let is_empty = total.first_ns > total.last_ns;
    // A log that was just rotated is empty as well: its statements are in the part before.
    if is_empty {
        return Ok(None);
    }
    let after = total.last_ns.saturating_add(1);
    // What is still to come will be another period.
    let until = filter.until_ns;
    let until = until.map(|to| to.min(nanoseconds(Timestamp::now())).max(after));
    let (from_ns, to_ns) = (
        filter.since_ns.unwrap_or(total.first_ns),
        until.unwrap_or(after),
    );
    let name = args.kept.history_name.clone();
    let shown = files.iter().map(|one| one.file.as_str());
    Ok(Some(About {
        name: name.unwrap_or_else(|| match files {
            [server] if logs.is_empty() => server.file.clone(),
            _ => name_of(logs),
        }),
        from_ns,
        to_ns,
        is_typed: [filter.since_ns.is_some(), filter.until_ns.is_some()],
        rules: rules_name(rules(args)).to_owned(),
        entries: files.iter().map(|one| one.entries).sum(),
        unreadable: files.iter().map(|one| one.unreadable).sum(),
        files: shown.collect::<Vec<_>>().join(", "),
    }))
}

/// Returns what a log is called, however often it was rotated.
fn name_of(logs: &[PathBuf]) -> String {
    let mut names: Vec<String> = Vec::new();
    for log in logs {
        let path = evenkeel_op::paths::absolute(log).display().to_string();
        let name = match log == Path::new("-") {
            true => "standard input",
            false => unrotated(&path),
        };
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names.join(", ")
}

/// Returns the path without what rotation adds: `slow.log.1.gz`, `slow.log-20261124`.
fn unrotated(path: &str) -> &str {
    let path = { [".gz", ".zst"].iter() }
        .find_map(|end| path.strip_suffix(end))
        .unwrap_or(path);
    let Some(at) = path.rfind(['.', '-']) else {
        return path;
    };
    let number = &path[at + 1..];
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match is_number && !path[..at].ends_with('/') {
        true => &path[..at],
        false => path,
    }
}

#[cfg(test)]
mod tests {
    use super::unrotated;

    #[test]
    fn rotated_logs_keep_their_name() {
        for (path, name) in [
            ("/l/slow.log", "/l/slow.log"),
            ("/l/slow.log.1", "/l/slow.log"),
            ("/l/slow.log.12.gz", "/l/slow.log"),
            ("/l/slow.log-20261124.zst", "/l/slow.log"),
            ("/l/.1", "/l/.1"),
            ("/db-1/slow", "/db-1/slow"),
        ] {
            assert_eq!(unrotated(path), name);
        }
    }
}
