//! Writes good copies over damaged pages of a stopped server, where that is proven right.
//!
//! Before a page is overwritten, what was there is kept in a file of its own and synced. A page's write
//! is not atomic: killed in the midst, it leaves a mixture of the damaged page and the copy, which is
//! still found damaged and still healed by the same command.

use super::copies::{Copies, PageCopy, path_of};
use super::pages::Pages;
use super::prove::prove;
use super::report::{Finding, HealReport, HealedPage, Severity};
use super::survey::CheckContext;
use super::tally::{Raw, What};
use evenkeel_innodb::{SpaceFormat, Verdict, verify};
use evenkeel_op::own_directory::{OwnDirectory, make_private, shown};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use rustix::fs::{Advice, FlockOperation};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const PLANNED: &str = "planned";
const HEALED: &str = "healed";
const REFUSED: &str = "refused";

/// What should be done about damaged pages.
pub(super) struct HealPlan {
    report: HealReport,
    /// The work of each planned page, by its place in the report.
    writes: Vec<(usize, PageWrite)>,
    /// Whether damaged pages are kept where nobody said, beside the data.
    beside_data: bool,
}

/// One page to be written.
struct PageWrite {
    path: PathBuf,
    offset: u64,
    number: u32,
    format: SpaceFormat,
    damaged: Vec<u8>,
    copy: Vec<u8>,
}

/// Plans what to do about each damaged page.
pub(super) fn plan(
    raws: &[Raw],
    findings: &[Finding],
    copies: &[Copies],
    context: &CheckContext,
    keep_in: Option<&Path>,
) -> Result<HealPlan> {
    let kept_in = match (keep_in, &context.datadir) {
        (Some(dir), _) => dir.to_owned(),
        (None, Some(datadir)) => beside(datadir),
        (None, None) => PathBuf::new(),
    };
    let mut plan = HealPlan {
        report: HealReport {
            executed: false,
            kept_in,
            pages: Vec::new(),
        },
        writes: Vec::new(),
        beside_data: keep_in.is_none(),
    };
    for ((raw, finding), copies) in raws.iter().zip(findings).zip(copies) {
        let (Severity::Damage, Some(number)) = (raw.severity, raw.page) else {
            continue;
        };
        let chosen = choose(raw, copies, context)?;
        let mut page = HealedPage {
            file: finding.file.clone(),
            page: u64::from(number),
            outcome: REFUSED,
            from: None,
            lsn: None,
            why: String::new(),
            instead: Vec::new(),
            kept: None,
        };
        match chosen {
            Ok((copy, damaged, why)) => {
                page.outcome = PLANNED;
                page.from = Some(copy.from());
                page.lsn = Some(copy.lsn());
                page.why = why.to_owned();
                let path = path_of(context, raw)
                    .map(Path::to_owned)
                    .unwrap_or_default();
                let write = PageWrite {
                    path,
                    offset: raw.offset,
                    number,
                    format: copy.format,
                    damaged,
                    copy: copy.bytes.clone(),
                };
                plan.writes.push((plan.report.pages.len(), write));
            }
            Err(why) => {
                page.why = why;
                page.instead = instead(finding, copies);
            }
        }
        plan.report.pages.push(page);
    }
    Ok(plan)
}

/// What speaks for a page: the copy, the page as it is, the proof.
type Chosen<'c> = (&'c PageCopy, Vec<u8>, &'static str);

/// Returns the copy to write and what proves it right, or why there is none.
fn choose<'c>(
    raw: &Raw,
    copies: &'c Copies,
    context: &CheckContext,
) -> Result<std::result::Result<Chosen<'c>, String>> {
    match raw.what {
        What::FutureLsn => {
            return Ok(Err(
                "the page is intact: its LSN, or the log, is wrong".to_owned()
            ));
        }
        What::CutOff => return Ok(Err("the file ends inside the page".to_owned())),
        What::Unreadable(_) => {
            return Ok(Err(
                "the page cannot be read, so its version is not known".to_owned()
            ));
        }
        _ => {}
    }
    let subject = &context.subjects[raw.subject];
    let Some(pages) = Pages::open(context, subject)? else {
        return Ok(Err("the file cannot be read page by page".to_owned()));
    };
    let damaged = pages.at(raw.offset)?;
    let mut why = "no good copy was found".to_owned();
    // The buffer's first: it is never older than a generation.
    let known = [&copies.doublewrite, &copies.same, &copies.newest];
    for copy in known.into_iter().flatten() {
        if let Some(end) = context.bound.end()
            && copy.lsn() > end
        {
            why = format!(
                "the copy's LSN {} is after the redo log's end {end}",
                copy.lsn()
            );
            continue;
        }
        match prove(&damaged, &copy.bytes, pages.format()) {
            Ok(proof) => return Ok(Ok((copy, damaged, proof))),
            Err(not) => why = not,
        }
    }
    Ok(Err(why))
}

/// What else can be done about a page.
fn instead(finding: &Finding, copies: &Copies) -> Vec<String> {
    let mut ways = Vec::new();
    if let Some(sql) = &finding.rebuild_sql {
        ways.push(format!("start the server and run: {sql}"));
        return ways;
    }
    match &copies.newest {
        Some(copy) => {
            ways.push(format!(
                "restore generation {} elsewhere, up to a point in time with archived logs (`restore --to`), and move the table over",
                copy.generation
            ));
            ways.push(format!(
                "or open generation {} with 'evenkeel mount' and copy the missing rows",
                copy.generation
            ));
        }
        None => {
            ways.push("restore the table from a backup that is older than the damage".to_owned())
        }
    }
    ways
}

fn beside(datadir: &Path) -> PathBuf {
    let mut name = datadir.as_os_str().to_owned();
    name.push(".damaged-pages");
    PathBuf::from(name)
}

impl HealPlan {
    /// Returns the plan without doing anything.
    pub(super) fn into_report(self) -> HealReport {
        self.report
    }

    /// Does what was planned. Fails at the first page that could not be kept, written or read back; what
    /// was done before stays done.
    pub(super) fn perform(mut self, context: &CheckContext) -> Result<HealReport> {
        if self.writes.is_empty() {
            return Ok(self.report);
        }
        let hold = Hold::of(context)?;
        let kept_in = self.report.kept_in.clone();
        let dir = match self.beside_data {
            // Whoever owns the directory above the data may have put anything under that name.
            true => OwnDirectory::make(&kept_in, 0o700)?,
            false => make_private(&kept_in)?,
        };
        for (place, write) in &self.writes {
            let page = &mut self.report.pages[*place];
            let what = || format!("failed to heal page {} of {}", page.page, page.file);
            let kept = keep(&dir, &page.file, write).context(what)?;
            fail::fail_point!("check::heal::kept");
            write.perform(&hold).context(what)?;
            fail::fail_point!("check::heal::written");
            page.kept = Some(kept);
            page.outcome = HEALED;
        }
        self.report.executed = true;
        Ok(self.report)
    }
}

/// Keeps a server from starting meanwhile: servers lock the same file in the same way.
struct Hold {
    path: PathBuf,
    file: File,
}

impl Hold {
    fn of(context: &CheckContext) -> Result<Self> {
        let path = context.doublewrite.first().cloned();
        let path = path.ok_or_else(|| Error::refused("there is no system tablespace to lock"))?;
        let file = File::options()
            .read(true)
            .write(true)
            .open(&path)
            .context(|| format!("failed to open {}", path.display()))?;
        rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(
            |error| {
                Error::new(
                    ErrorKind::Busy,
                    format!("{} is locked: a server runs on it", path.display()),
                )
                .because(std::io::Error::from(error))
                .hint("stop the server first: pages can be written only while it is stopped")
            },
        )?;
        Ok(Self { path, file })
    }
}

impl PageWrite {
    fn perform(&self, hold: &Hold) -> Result<()> {
        // Any other descriptor of the locked file would take the lock with it when it is closed.
        if self.path == hold.path {
            return self.write(&hold.file);
        }
        let file = File::options().read(true).write(true).open(&self.path);
        self.write(&file.context(|| format!("failed to open {}", self.path.display()))?)
    }

    fn write(&self, file: &File) -> Result<()> {
        let mut now = vec![0; self.damaged.len()];
        file.read_exact_at(&mut now, self.offset)
            .context(|| "failed to read the page again")?;
        if now != self.damaged {
            return Err(Error::failed("the page changed while it was checked")
                .hint("is a server running on these files?"));
        }
        file.write_all_at(&self.copy, self.offset)
            .context(|| "failed to write the page")?;
        file.sync_all().context(|| "failed to sync the page")?;
        // From the disk, not from what was just written.
        let length = std::num::NonZeroU64::new(self.copy.len() as u64);
        let _ = rustix::fs::fadvise(file, self.offset, length, Advice::DontNeed);
        file.read_exact_at(&mut now, self.offset)
            .context(|| "failed to read the page back")?;
        if now != self.copy || verify(&now, self.number, &self.format) != Verdict::Good {
            return Err(Error::failed("the written page reads back differently")
                .hint("check the disk: the old page is kept"));
        }
        Ok(())
    }
}

/// Writes the damaged page to a file of its own, and returns its path. What an earlier run kept is
/// never overwritten.
fn keep(dir: &OwnDirectory, name: &str, write: &PageWrite) -> Result<PathBuf> {
    let stem = format!("{}.page-{}", name.replace('/', "."), write.number);
    for attempt in 0_u32.. {
        let path = dir.anchor().join(match attempt {
            0 => stem.clone(),
            more => format!("{stem}.{more}"),
        });
        let place = shown(&path);
        let what = || format!("failed to keep the damaged page in {}", place.display());
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match opened {
            Ok(mut file) => {
                file.write_all(&write.damaged).context(what)?;
                file.sync_all().context(what)?;
                rustix::fs::fsync(dir)
                    .map_err(std::io::Error::from)
                    .context(what)?;
                return Ok(place);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                if fs::read(&path).is_ok_and(|kept| kept == write.damaged) {
                    return Ok(place);
                }
            }
            Err(error) => return Err(error).context(what),
        }
    }
    Err(Error::failed(
        "no free file name is left for the damaged page",
    ))
}
