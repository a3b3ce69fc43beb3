//! Which files have pages, and what tells how new a page may be.

use super::bound::Bound;
use super::request::Target;
use super::shape::Shape;
use super::walk;
use evenkeel_innodb::redo::{self, RedoFormat, RedoRange};
use evenkeel_innodb::{PageSize, Probe, SpaceFormat};
use evenkeel_op::{Context, Error, Result};
use evenkeel_repository::{FileKind, FileRecord, Reader, Repository};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::files::{self, FileClass, FoundFile, ServerFiles};
use evenkeel_server::options::ConnectOptions;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A file with pages.
pub(super) struct Subject {
    /// Its name in a generation, or its path.
    pub(super) name: String,
    /// Where it is.
    pub(super) place: FileLocation,
    /// Its length in bytes when it was looked for.
    pub(super) size: u64,
    /// How its pages look, found out by whoever reads it first.
    pub(super) shape: OnceLock<Shape>,
}

/// Where a file is.
pub(super) enum FileLocation {
    /// On this host.
    Path(PathBuf),
    /// In a generation.
    Stored(Box<FileRecord>),
}

/// A log with no more than this behind its checkpoint is that of a server that was shut down: what is
/// there is the shutdown's own note.
const QUIET: u64 = 512;

/// Everything that a check stands on.
pub(super) struct CheckContext {
    pub(super) target: &'static str,
    pub(super) place: String,
    pub(super) subjects: Vec<Subject>,
    pub(super) bound: Bound,
    /// A running server whose files they are, and which may be asked for names.
    pub(super) server: Option<ConnectOptions>,
    /// The generation that is checked, open.
    pub(super) reader: Option<Reader>,
    /// A stopped server's log.
    pub(super) redo: Option<RedoRange>,
    /// The files with copies of pages: the system tablespace's first, then those of their own.
    pub(super) doublewrite: Vec<PathBuf>,
    pub(super) page_size: Option<PageSize>,
    /// The data directory, when it is a stopped server's.
    pub(super) datadir: Option<PathBuf>,
    pub(super) notes: Vec<String>,
}

impl CheckContext {
    fn new(target: &'static str, place: String) -> Self {
        Self {
            target,
            place,
            subjects: Vec::new(),
            bound: Bound::Unknown,
            server: None,
            reader: None,
            redo: None,
            doublewrite: Vec::new(),
            page_size: None,
            datadir: None,
            notes: Vec::new(),
        }
    }

    pub(super) fn is_live(&self) -> bool {
        self.server.is_some()
    }

    /// Whether the server was shut down as it should be: all its pages are written, and no recovery
    /// takes place when it starts.
    pub(super) fn was_shut_down(&self) -> bool {
        self.redo
            .is_some_and(|redo| redo.end - redo.checkpoint <= QUIET)
    }
}

/// Finds the files of a target.
pub(super) fn survey(target: &Target) -> Result<CheckContext> {
    let context = match target {
        Target::Live(options) => live(options)?,
        Target::Stopped { datadir, settings } => stopped(datadir, settings)?,
        Target::Paths(paths) => of_paths(paths)?,
        Target::Generation(place, number) => generation(Repository::open(place)?, *number)?,
    };
    if context.subjects.is_empty() {
        return Err(
            Error::usage(format!("there are no InnoDB files in {}", context.place))
                .hint("name a data directory, or files that end in .ibd"),
        );
    }
    Ok(context)
}

fn live(options: &ConnectOptions) -> Result<CheckContext> {
    let mut session = Session::open(options)?;
    let abilities = Abilities::probe(&mut session)?;
    let found = files::discover(&mut session, &abilities)?;
    let mut context = of_server("live", &found);
    context.server = Some(options.clone());
    context.bound = Bound::of_server(session)?;
    Ok(context)
}

fn stopped(datadir: &Path, settings: &BTreeMap<String, String>) -> Result<CheckContext> {
    let found = files::discover_stopped(datadir, settings)?;
    let mut context = of_server("stopped", &found);
    context.datadir = Some(found.datadir.clone());
    let log = found.files.iter();
    let log = log.filter(|file| file.class == FileClass::InnodbRedo);
    add_redo(&mut context, log.map(|file| file.path.clone()).collect());
    Ok(context)
}

fn of_server(target: &'static str, found: &ServerFiles) -> CheckContext {
    let mut context = CheckContext::new(target, found.datadir.display().to_string());
    context.page_size = PageSize::new(found.page_size);
    let system = found.system_tablespace();
    let of_class = |class| found.files.iter().filter(move |file| file.class == class);
    let is_system = |file: &FoundFile| system.iter().any(|one| one.name == file.name);
    let plain = of_class(FileClass::InnodbData).filter(|file| !is_system(file));
    context.subjects = plain.map(subject).collect();
    let system: Vec<Subject> = system.into_iter().map(subject).collect();
    if let Some(FileLocation::Path(path)) = system.first().map(|file| &file.place) {
        context.doublewrite.push(path.clone());
    }
    let copies = of_class(FileClass::InnodbDoublewrite);
    context
        .doublewrite
        .extend(copies.map(|file| file.path.clone()));
    context.subjects.extend(continued(system));
    context
}

fn subject(file: &FoundFile) -> Subject {
    Subject {
        name: file.name.clone(),
        place: FileLocation::Path(file.path.clone()),
        size: file.size,
        shape: OnceLock::new(),
    }
}

/// Gives the later files of a tablespace their place in it.
fn continued(files: Vec<Subject>) -> Vec<Subject> {
    // A first one that cannot be read says so when its pages are read.
    if let Some(FileLocation::Path(path)) = files.first().map(|file| &file.place)
        && let Ok(file) = File::open(path)
        && let Ok(Probe::Checkable(format)) = SpaceFormat::of_file(&file)
    {
        place_later(&files, format);
    }
    files
}

fn place_later(files: &[Subject], format: SpaceFormat) {
    let mut pages = 0_u64;
    for (index, file) in files.iter().enumerate() {
        if index > 0 {
            // Nobody has read it yet.
            let _ = file.shape.set(Shape::Pages {
                format,
                first_page: u32::try_from(pages).unwrap_or(u32::MAX),
                guessed: false,
            });
        }
        pages += file.size / format.physical_size() as u64;
    }
}

/// Reads where a stopped server's log ends. A log that cannot be read is reported, but not fatal:
/// everything else can be checked without.
fn add_redo(context: &mut CheckContext, mut files: Vec<PathBuf>) {
    let number = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        digits.parse::<u64>().ok()
    };
    files.retain(|path| number(path).is_some());
    files.sort_by_key(number);
    let Some(first) = files.first() else {
        let note = "there is no redo log, so LSNs could not be compared with its end";
        context.notes.push(note.to_owned());
        return;
    };
    let is_directory = first
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("#ib_redo"));
    let layouts: &[RedoFormat] = match is_directory {
        true => &[RedoFormat::Directory],
        false => &[RedoFormat::SingleFile, RedoFormat::Classic],
    };
    let mut failed = None;
    for layout in layouts {
        match redo::log_range(&files, *layout) {
            Ok(range) => {
                context.bound = Bound::Fixed(range.end);
                context.redo = Some(range);
                return;
            }
            // The one that knows the format has more to say than that it does not.
            Err(error) if failed.is_none() || !error.chain().contains("is not known") => {
                failed = Some(error);
            }
            Err(_) => {}
        }
    }
    if let Some(error) = failed {
        let note = format!(
            "the end of the redo log could not be read, so LSNs were not compared with it: {}",
            error.chain()
        );
        context.notes.push(note);
    }
}

fn of_paths(paths: &[PathBuf]) -> Result<CheckContext> {
    let shown: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let mut context = CheckContext::new("files", shown.join(", "));
    let mut found = walk::Found::default();
    for path in paths {
        found.add(path)?;
    }
    let of_path = |path: &PathBuf, size: u64| Subject {
        name: path.display().to_string(),
        place: FileLocation::Path(path.clone()),
        size,
        shape: OnceLock::new(),
    };
    context.subjects = found
        .plain
        .iter()
        .map(|(p, size)| of_path(p, *size))
        .collect();
    for system in &found.systems {
        let files = system.iter().map(|(path, size)| of_path(path, *size));
        context.subjects.extend(continued(files.collect()));
    }
    // Of several directories, or of files alone, nothing tells which log belongs to which pages.
    if let [path] = paths
        && path.is_dir()
        && let [system] = &found.systems[..]
    {
        context
            .doublewrite
            .extend(system.first().map(|(path, _)| path.clone()));
        context.doublewrite.append(&mut found.doublewrite);
        if !found.redo.is_empty() {
            add_redo(&mut context, found.redo);
        }
        context.page_size = page_size_of(&system[0].0);
    }
    Ok(context)
}

fn page_size_of(ibdata1: &Path) -> Option<PageSize> {
    match SpaceFormat::of_file(&File::open(ibdata1).ok()?).ok()? {
        Probe::Checkable(format) => Some(format.page_size),
        Probe::NotCheckable(_) => None,
    }
}

fn generation(repository: Repository, number: Option<u32>) -> Result<CheckContext> {
    let newest = || -> Result<Option<u32>> {
        Ok(repository.generations()?.last().map(|one| one.generation))
    };
    let number = match number {
        Some(number) => number,
        None => newest()?.ok_or_else(|| Error::failed("the repository has no generation yet"))?,
    };
    let reader = repository.reader(number)?;
    let mut context = CheckContext::new("generation", repository.place());
    let mut system = Vec::new();
    for record in reader.files() {
        let record = record.context(|| "failed to list the generation")?;
        if record.meta.kind != FileKind::File || !walk::has_pages(&record.meta.name) {
            continue;
        }
        let one = Subject {
            name: record.meta.name.clone(),
            size: record.meta.size,
            place: FileLocation::Stored(Box::new(record)),
            shape: OnceLock::new(),
        };
        match walk::is_system(&one.name) {
            true => system.push(one),
            false => context.subjects.push(one),
        }
    }
    system.sort_by_key(|one| walk::number(&one.name));
    stored_system(&reader, &system)?;
    context.subjects.extend(system);
    context.reader = Some(reader);
    Ok(context)
}

/// Gives the later files of a stored system tablespace their place in it.
fn stored_system(reader: &Reader, files: &[Subject]) -> Result<()> {
    let Some(FileLocation::Stored(record)) = files.first().map(|file| &file.place) else {
        return Ok(());
    };
    let mut start = vec![0; 65536];
    let got = reader.open_file(record)?.read_at(0, &mut start)?;
    if let Probe::Checkable(format) = SpaceFormat::parse(&start[..got]) {
        place_later(files, format);
    }
    Ok(())
}
