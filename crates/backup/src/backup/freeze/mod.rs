//! Brings the files to one point in time: lock, snapshot, unlock.
//!
//! *Splice*: data files are cloned while the server writes. Recovery makes them whole if it starts
//! at a checkpoint from before the first clone and finds all redo since. So the checkpoint is saved
//! first, the redo log is cloned last, and the saved checkpoint is put over the clone's. That only
//! holds if the log did not wrap meanwhile, which is checked.

mod applier;
mod current;
pub(super) mod hold;
mod image;
mod order;

use super::request::{BackupRequest, Source};
use super::source_file::{source, sources};
use super::survey::method::{Choice, Method, Moment};
use super::survey::{self, Survey, redo_layout};
use crate::tables::{self, TableRecord};
use applier::Applier;
use evenkeel_innodb::redo::{self, RedoHeader};
use evenkeel_op::{Context, Error, ErrorKind, Result, Run};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::files::{self, FileClass, FoundFile, ServerFiles};
use evenkeel_server::lock::{Held, Locker};
use evenkeel_server::replication::SourceCoordinates;
use evenkeel_server::tables::ServerTables;
use evenkeel_snapshot::{Made, Opened, Sealed, pause};
use order::{early_files, late_files};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

/// A frozen image.
pub(super) struct Frozen {
    pub(super) snapshot: Sealed,
    pub(super) files: ServerFiles,
    pub(super) coordinates: Coordinates,
    pub(super) source_coordinates: Vec<SourceCoordinates>,
    pub(super) applier_stood: Duration,
    pub(super) held: Held,
    pub(super) choice: Choice,
    pub(super) instant: Moments,
    /// The tables that are in it, as far as that is known.
    pub(super) tables: Option<TableRecord>,
}

/// Between which moments of this process's clock the image's point in time lies.
#[derive(Debug, Clone, Copy)]
pub struct Moments {
    /// What was acknowledged before is in the image.
    pub begin: Instant,
    /// What was begun after is not.
    pub end: Instant,
}

impl Moments {
    /// Returns what this host's clock said at the end, if it says anything that can be written down.
    pub(super) fn ended_at(&self) -> Option<jiff::Timestamp> {
        let ago = jiff::SignedDuration::try_from(self.end.elapsed()).ok()?;
        jiff::Timestamp::now().checked_sub(ago).ok()
    }
}

/// How often a freeze is tried when it has to be tried again.
const TRIES: u32 = 10;
/// How often of them after the redo log wrapped.
const TRIES_WRAPPED: u32 = 3;

/// Why a freeze has to be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// The redo log came round to the saved checkpoint.
    Wrapped,
    /// Files came or went just then.
    Changed,
}

impl Again {
    fn note(self) -> &'static str {
        match self {
            Self::Wrapped => "the redo log wrapped during the clone: trying again",
            Self::Changed => "files were created or removed during the snapshot: trying again",
        }
    }

    fn error(self) -> Error {
        match self {
            Self::Wrapped => {
                Error::failed("the redo log wrapped while the files were cloned, three times")
                    .hint("make the redo log larger (innodb_log_file_size)")
                    .hint("or add --stop, which pauses the server process during the clone")
            }
            Self::Changed => {
                Error::failed("tables kept being created or dropped during the snapshot")
                    .hint("run again when there is less DDL, or add --lock ftwrl, which blocks it")
            }
        }
    }
}

/// Freezes the image.
pub(super) fn freeze(
    survey: Survey,
    request: &BackupRequest,
    base_token: Option<&str>,
    run: Run<'_>,
) -> Result<Frozen> {
    let mut wrapped = 0;
    for number in 1.. {
        let again = match attempt(&survey, request, base_token, run)? {
            Attempt::Frozen(frozen) => return Ok(*frozen),
            Attempt::Again(again) => again,
            Attempt::LostAFile(_) if number < TRIES => Again::Changed,
            Attempt::LostAFile(error) => return Err(error),
        };
        wrapped += u32::from(again == Again::Wrapped);
        if number == TRIES || wrapped == TRIES_WRAPPED {
            return Err(again.error());
        }
        run.cancel.check()?;
        run.progress.note(again.note().to_owned());
    }
    Err(Error::failed("there is no end to the tries"))
}

/// What a try came to.
enum Attempt {
    Frozen(Box<Frozen>),
    Again(Again),
    /// It failed over a file that went meanwhile.
    LostAFile(Error),
}

/// Tries once to freeze the image.
fn attempt(
    survey: &Survey,
    request: &BackupRequest,
    base_token: Option<&str>,
    run: Run<'_>,
) -> Result<Attempt> {
    let opened = evenkeel_snapshot::open(
        survey.snapshot,
        &survey.layout,
        &survey.settings,
        base_token,
    )?;
    let choice = survey::choose(survey, request, opened.atomicity())?;
    let mut freezer = Freezer {
        survey,
        request,
        choice,
        opened,
        run,
        listed: None,
        applier: Applier::default(),
        server_tables: None,
        ddl_blocked: false,
        tables: None,
    };
    let turn = freezer.turn();
    let Freezer {
        opened,
        listed,
        applier,
        tables,
        ..
    } = freezer;
    let sealed = match turn {
        Ok(Turn::Again(again)) => {
            opened.abandon()?;
            return Ok(Attempt::Again(again));
        }
        Ok(Turn::Done(done)) => {
            let (files, coordinates, held, instant, made) = *done;
            let sealed = opened.seal(made);
            sealed.map(|snapshot| (snapshot, files, coordinates, held, instant))
        }
        Err(error) => {
            // The first error is the one to report; a leftover is healed by the next run.
            let _ = opened.abandon();
            Err(error)
        }
    };
    match sealed {
        Ok((snapshot, files, coordinates, held, instant)) => {
            let (source_coordinates, applier_stood) = applier.places(&coordinates, run);
            Ok(Attempt::Frozen(Box::new(Frozen {
                snapshot,
                files,
                coordinates,
                source_coordinates,
                applier_stood,
                held,
                choice,
                instant,
                tables,
            })))
        }
        Err(error) if lost_a_file(listed.as_ref(), &error) => Ok(Attempt::LostAFile(error)),
        Err(error) => Err(error),
    }
}

/// Whether a try came to nothing because of a file that went meanwhile.
fn lost_a_file(listed: Option<&ServerFiles>, error: &Error) -> bool {
    listed
        .is_some_and(|listed| current::vanished(listed) || current::is_about_a_missing_file(error))
}

/// What the files and the server came to, before the snapshot is sealed.
enum Turn {
    Done(Box<Outcome>),
    Again(Again),
}

type Outcome = (ServerFiles, Coordinates, Held, Moments, Made);

struct Freezer<'a> {
    survey: &'a Survey,
    request: &'a BackupRequest,
    choice: Choice,
    /// Outlives every lock: what it leaves is removed when nobody waits any more.
    opened: Opened,
    run: Run<'a>,
    /// The files that had to be frozen.
    listed: Option<ServerFiles>,
    applier: Applier,
    /// What the server says that it has.
    server_tables: Option<ServerTables>,
    /// Whether no table could be made or dropped meanwhile.
    ddl_blocked: bool,
    /// What of it the image has: all.
    tables: Option<TableRecord>,
}

impl Freezer<'_> {
    /// Takes an image, and compares it with what the server listed.
    fn turn(&mut self) -> Result<Turn> {
        let turn = self.run()?;
        match self.settle(&turn) {
            Ok(()) => Ok(turn),
            Err(error) => Err(self.lost(&turn, error)),
        }
    }

    /// Compares an image with what the server listed.
    fn settle(&mut self, turn: &Turn) -> Result<()> {
        let Turn::Done(done) = turn else {
            return Ok(());
        };
        let (files, .., made) = &**done;
        let place = |file: &FoundFile| self.opened.frozen_path(made, &source(file));
        match (&self.server_tables, &self.request.source) {
            (Some(listed), Source::Live(options)) => {
                let checked = tables::of_server(listed, files, place)?;
                let mut lacking = checked.lacking;
                if !lacking.is_empty() && !self.ddl_blocked {
                    let limits = &self.request.limits;
                    tables::keep_lacking(&mut lacking, files, || {
                        tables::listed_now(options, limits)
                    })?;
                }
                if !lacking.is_empty() {
                    return Err(tables::lacking(&lacking, files));
                }
                self.tables = Some(checked.record);
            }
            (_, Source::Volumes(_)) => {}
            _ => self.tables = tables::of_files(files, place)?,
        }
        Ok(())
    }

    /// Says that the snapshot was lost, where that is why it could not be read.
    fn lost(&self, turn: &Turn, error: Error) -> Error {
        let Turn::Done(done) = turn else {
            return error;
        };
        match self.opened.stayed_frozen(&done.4) {
            Err(lost) if error.kind() == ErrorKind::Failed => lost.because(error),
            _ => error,
        }
    }

    fn run(&mut self) -> Result<Turn> {
        match (&self.request.source, self.choice.method) {
            (Source::Live(options), method) if method != Method::Still => {
                let limits = self.request.limits.clone();
                let found = &self.survey.files;
                self.applier = Applier::meet(self.request, options, found, self.run)?;
                let turn = Locker::open(options, limits, self.run.progress, self.run.cancel)
                    .and_then(|locker| self.live(locker));
                // Also when nothing came of it; the first error is the one to report.
                let went_on = self.applier.resume();
                let turn = turn?;
                went_on.map(|()| turn)
            }
            _ => self.still().map(|done| Turn::Done(Box::new(done))),
        }
    }

    fn still(&mut self) -> Result<Outcome> {
        let begin = Instant::now();
        self.opened.take(&sources(&self.survey.files.files))?;
        let made = self.opened.instant()?;
        let from_image = self.coordinates_of_image(&self.survey.files, &made)?;
        let coordinates = image::agree(None, from_image)?;
        let instant = Moments {
            begin,
            end: Instant::now(),
        };
        Ok((
            self.survey.files.clone(),
            coordinates,
            Held::default(),
            instant,
            made,
        ))
    }

    fn live(&mut self, mut locker: Locker<'_>) -> Result<Turn> {
        let ddl_blocked = self.request.lock.allows_ddl_block() && locker.block_ddl()?;
        fail::fail_point!("backup::freeze::ddl_blocked");
        // Only now does the list of files no longer change, as far as possible.
        let abilities = locker.abilities().clone();
        let mut listed = match ddl_blocked {
            true => ServerTables::read(locker.session(), &abilities)?,
            false => self.tables_now()?,
        };
        let files = survey::without_keys(files::discover(locker.session(), &abilities)?);
        if !files.keyring.is_empty() {
            self.run.progress.warn(format!(
                "encryption keys are not in the backup, and a restored server needs them: {}",
                files.keyring.join(", ")
            ));
        }
        self.listed = Some(files.clone());
        self.prepare(&files);
        let spliced = match self.choice.method {
            Method::Splice => Some(self.clone_data(&files, &abilities)?),
            _ => None,
        };
        self.run.cancel.check()?;
        let begin = Instant::now();
        let moment = self.moment(&mut locker, files, ddl_blocked)?;
        let end = Instant::now();
        let Some((files, coordinates, stopped, made)) = moment else {
            locker.release()?;
            return Ok(Turn::Again(Again::Changed));
        };
        if let Some(header) = &spliced
            && self.wrapped(&mut locker, &files, header, &made)?
        {
            locker.release()?;
            return Ok(Turn::Again(Again::Wrapped));
        }
        if let Some(header) = &spliced
            && header.layout() == redo::RedoFormat::Classic
        {
            self.lengthen(&files, &made)?;
        }
        fail::fail_point!("backup::freeze::before_release");
        let mut held = locker.release()?;
        held.writes_stopped = held.writes_stopped.max(stopped);
        self.applier.resume()?;
        if !ddl_blocked {
            listed.keep_common(&self.tables_now()?);
        }
        self.server_tables = Some(listed);
        self.ddl_blocked = ddl_blocked;
        if let Some(header) = spliced {
            self.splice(&files, &header, &made)?;
        }
        let from_image = self.coordinates_of_image(&files, &made)?;
        let coordinates = image::agree(coordinates, from_image)?;
        Ok(Turn::Done(Box::new((
            files,
            coordinates,
            held,
            Moments { begin, end },
            made,
        ))))
    }

    /// What the server lists by now, where DDL continues: the lock's session would not wait for it.
    fn tables_now(&self) -> Result<ServerTables> {
        match &self.request.source {
            Source::Live(options) => tables::listed_now(options, &self.request.limits),
            _ => Ok(ServerTables::default()),
        }
    }

    /// Does beforehand what would take time while the server is paused.
    fn prepare(&mut self, files: &ServerFiles) {
        let files = match self.choice.method {
            Method::Splice => late_files(files),
            Method::Pause => files.files.clone(),
            Method::Atomic if self.choice.moment == Moment::Stop => files.files.clone(),
            Method::Atomic | Method::Still => return,
        };
        self.opened.prepare(&sources(&files));
    }

    /// Saves the checkpoint, then clones everything that recovery brings up to date.
    fn clone_data(&mut self, files: &ServerFiles, abilities: &Abilities) -> Result<RedoHeader> {
        let layout = redo_layout(abilities.redo_layout)
            .ok_or_else(|| Error::refused("this server's redo log cannot be spliced"))?;
        let header = RedoHeader::read(&first_redo_file(files)?.path, layout)?;
        self.opened.take(&sources(&early_files(files)))?;
        fail::fail_point!("backup::freeze::data_cloned");
        Ok(header)
    }

    /// The moment in which coordinates and logs are taken. Returns the files, the coordinates as
    /// the server says them (if it was asked), and how long the process was stopped; `None` when
    /// files came or went meanwhile.
    #[allow(clippy::type_complexity)]
    fn moment(
        &mut self,
        locker: &mut Locker<'_>,
        files: ServerFiles,
        ddl_blocked: bool,
    ) -> Result<Option<(ServerFiles, Option<Coordinates>, Duration, Made)>> {
        let mut asked = None;
        match self.choice.moment {
            Moment::BlockCommit | Moment::BlockCommitAndStop => locker.stop_commits()?,
            Moment::GlobalRead => locker.stop_writes()?,
            Moment::Stop | Moment::None => {}
        }
        if self.choice.moment.is_locked() {
            locker.flush_engine_logs()?;
            asked = Some(locker.coordinates()?);
            self.applier.look(locker, self.run);
        }
        fail::fail_point!("backup::freeze::moment");
        let limit = self.request.limits.hold;
        let (files, stopped, made) = match (self.choice.method, self.choice.moment) {
            (Method::Splice, Moment::Stop | Moment::BlockCommitAndStop) => {
                let target = self.target()?;
                let opened = &mut self.opened;
                let paused = pause::paused(&target, limit, || {
                    let now = with_its_logs(files)?;
                    opened.take(&sources(&late_files(&now)))?;
                    Ok((now, opened.instant()?))
                })?;
                let (files, made) = paused.value;
                (files, paused.lasted, made)
            }
            (Method::Splice, _) => {
                let files = with_its_logs(files)?;
                self.opened.take(&sources(&late_files(&files)))?;
                let made = self.opened.instant()?;
                if current::logs_changed(&files)? {
                    return Ok(None);
                }
                (files, Duration::ZERO, made)
            }
            (Method::Pause, _) => {
                let target = self.target()?;
                let opened = &mut self.opened;
                // Nothing stops DDL on some servers, so the list is made while the process stands.
                let paused = pause::paused(&target, limit, || {
                    let now = rescan(&files)?;
                    opened.take(&sources(&now.files))?;
                    Ok((now, opened.instant()?))
                })?;
                let (files, made) = paused.value;
                (files, paused.lasted, made)
            }
            (Method::Atomic | Method::Still, _) => match self.whole(files, ddl_blocked)? {
                Some(taken) => taken,
                None => return Ok(None),
            },
        };
        fail::fail_point!("backup::freeze::taken");
        Ok(Some((files, asked, stopped, made)))
    }

    /// Takes a snapshot that is consistent by itself. Returns the files and how long the server
    /// was paused for it, apart from locks; `None` when files came or went meanwhile.
    fn whole(
        &mut self,
        files: ServerFiles,
        ddl_blocked: bool,
    ) -> Result<Option<(ServerFiles, Duration, Made)>> {
        // A list from before the lock may lack a table that was made since.
        let files = if ddl_blocked {
            with_its_logs(files)?
        } else {
            rescan(&files)?
        }
        .without_moving_redo();
        self.listed = Some(files.clone());
        self.opened.take(&sources(&files.files))?;
        let (stopped, made) = self.snapshot()?;
        let files = self.with_redo_of_image(files, &made)?;
        let same = ddl_blocked
            || current::same_tables(&files, &rescan(&files)?)
                && current::image_has_tables(&files, &self.opened, &made)?;
        if !same || current::logs_changed(&files)? {
            return Ok(None);
        }
        Ok(Some((files, stopped, made)))
    }

    /// Makes the snapshot; returns how long the server was paused for it, apart from locks.
    fn snapshot(&mut self) -> Result<(Duration, Made)> {
        if self.choice.moment == Moment::Stop {
            let target = self.target()?;
            let opened = &mut self.opened;
            let paused = pause::paused(&target, self.request.limits.hold, || opened.instant())?;
            return Ok((paused.lasted, paused.value));
        }
        let begun = Instant::now();
        let made = self.opened.instant()?;
        let stopped = match self.choice.moment {
            Moment::None => begun.elapsed(),
            _ => Duration::ZERO,
        };
        Ok((stopped, made))
    }

    /// Adds the redo log files that no lock holds still, as the snapshot has them.
    fn with_redo_of_image(&mut self, files: ServerFiles, made: &Made) -> Result<ServerFiles> {
        let opened = &mut self.opened;
        let files = files.with_moving_redo(|dir| opened.frozen_dir(made, dir))?;
        let moving = files.files.iter().filter(|file| file.is_moving_redo());
        opened.take(&moving.map(source).collect::<Vec<_>>())?;
        Ok(files)
    }

    fn target(&self) -> Result<pause::Target> {
        let pid = self
            .survey
            .files
            .pid
            .ok_or_else(|| Error::failed("the server has no pid"))?;
        let target = pause::Target::now(pid)?;
        files::refuse_strangers(pid, &self.survey.files.datadir)?;
        Ok(target)
    }

    /// Whether the log has come round to the saved checkpoint.
    fn wrapped(
        &self,
        locker: &mut Locker<'_>,
        files: &ServerFiles,
        header: &RedoHeader,
        made: &Made,
    ) -> Result<bool> {
        let lsn_now = locker.session().lsn()?;
        let clones: Vec<_> = redo_files(files)
            .map(|file| self.opened.frozen_path(made, &source(file)))
            .collect();
        let capacity = redo::capacity(&clones, header)?;
        // A log that was resized or replaced meanwhile is another log.
        let first = source(first_redo_file(files)?);
        let first = self.opened.frozen_path(made, &first);
        let again = RedoHeader::read(&first, header.layout())?;
        Ok(redo::wrapped(header, capacity, lsn_now) || !header.is_same_log(&again))
    }

    /// Gives clones of tablespaces that have grown meanwhile the length that the files have by now.
    /// The log has all of the new pages, but not that the file is longer: MySQL makes it longer
    /// first and logs that later, so its recovery takes a page behind the end for damage. (MariaDB's
    /// makes the file longer itself.) A file that is longer than it need be does no harm. Nothing
    /// may drop a table meanwhile.
    fn lengthen(&mut self, files: &ServerFiles, made: &Made) -> Result<()> {
        let length = |path: &Path| match fs::metadata(path) {
            // An undo log that is just being truncated.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            found => found
                .map(|found| found.len())
                .context(|| format!("failed to stat {}", path.display())),
        };
        for file in &files.files {
            if file.class != FileClass::InnodbData {
                continue;
            }
            let wanted = source(file);
            let now = length(&file.path)?;
            if now > length(&self.opened.frozen_path(made, &wanted))? {
                self.opened.patch(made, &wanted, now - 1, &[0])?;
            }
        }
        Ok(())
    }

    fn splice(&mut self, files: &ServerFiles, header: &RedoHeader, made: &Made) -> Result<()> {
        let first = source(first_redo_file(files)?);
        self.opened
            .patch(made, &first, header.offset(), header.bytes())
    }

    fn coordinates_of_image(
        &self,
        files: &ServerFiles,
        made: &Made,
    ) -> Result<Option<image::Ended>> {
        image::coordinates(files, |file| self.opened.frozen_path(made, &source(file)))
    }
}

fn rescan(files: &ServerFiles) -> Result<ServerFiles> {
    files.rescan().map(survey::without_keys)
}

/// Lists the files again if logs are others by now: one may have been begun or purged.
fn with_its_logs(files: ServerFiles) -> Result<ServerFiles> {
    if current::logs_changed(&files)? {
        rescan(&files)
    } else {
        Ok(files)
    }
}

fn redo_files(files: &ServerFiles) -> impl Iterator<Item = &FoundFile> {
    files
        .files
        .iter()
        .filter(|file| file.class == FileClass::InnodbRedo)
}

fn first_redo_file(files: &ServerFiles) -> Result<&FoundFile> {
    redo_files(files)
        .find(|file| file.name.ends_with("/ib_logfile0"))
        .ok_or_else(|| Error::failed("the server has no ib_logfile0"))
}
