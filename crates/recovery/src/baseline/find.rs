//! Which data directory it is, whether a server runs on it, and whether all of its files are there.

use super::heal::{Healed, heal};
use super::list::datadir_of;
use super::store::Store;
use super::user::user_of_datadir;
use super::{Run, Whose};
use evenkeel_op::{Error, ErrorKind, Result, units};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::files::{self, FileClass, ServerFiles};
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::Replication;
use std::path::{Path, PathBuf};

/// A data directory, at one look.
pub(super) struct Subject {
    pub(super) files: ServerFiles,
    /// The server that runs on it.
    pub(super) server: Option<Live>,
}

/// A running server.
pub(super) struct Live {
    pub(super) options: ConnectOptions,
    pub(super) session: Session,
    pub(super) abilities: Abilities,
    pub(super) pid: i32,
}

impl Subject {
    /// Looks. `Refused` when files of the server are outside its data directory: no baseline would
    /// be whole without them.
    pub(super) fn find(whose: &Whose) -> Result<Self> {
        let mut subject = match whose {
            Whose::Running(options) => Self::running(options)?,
            Whose::Stopped { datadir, settings } => {
                let files = files::discover_stopped(datadir, settings)?;
                let subject = Self {
                    files,
                    server: None,
                };
                if let Some(user) = user_of_datadir(subject.datadir())? {
                    return Err(
                        Error::refused(format!("{user} is using {}", datadir.display()))
                            .hint("stop it, or give its socket instead of the data directory"),
                    );
                }
                subject.refuse_unknown_redo()?;
                subject
            }
        };
        subject.refuse_outside()?;
        // A baseline has links as links.
        let excluded = &mut subject.files.excluded;
        excluded.retain(|(_, why)| *why != files::SECOND_NAME);
        Ok(subject)
    }

    fn running(options: &ConnectOptions) -> Result<Self> {
        let mut session = Session::open(options).map_err(|error| match error.kind() {
            ErrorKind::Unreachable => error
                .hint("for a stopped server, also after an interrupted rollback: --datadir DIR"),
            _ => error,
        })?;
        let abilities = Abilities::probe(&mut session)?;
        let files = files::discover(&mut session, &abilities)?;
        let pid = files.pid.ok_or_else(|| {
            Error::refused("the server's process cannot be seen")
                .hint("run evenkeel on the server's own host, as root or as the server's user")
        })?;
        Ok(Self {
            files,
            server: Some(Live {
                options: options.clone(),
                session,
                abilities,
                pid,
            }),
        })
    }

    /// Returns the data directory, without symbolic links.
    pub(super) fn datadir(&self) -> &Path {
        &self.files.datadir
    }

    /// Returns the bytes of its files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.files.iter().map(|file| file.size).sum()
    }

    /// Returns the server's logs for people in it, which no rollback takes back.
    pub(super) fn logs(&self) -> Vec<PathBuf> {
        let logs = self
            .files
            .excluded
            .iter()
            .filter(|(_, why)| why.ends_with("log"));
        logs.map(|(path, _)| path.clone()).collect()
    }

    fn refuse_outside(&self) -> Result<()> {
        let outside: Vec<String> = self
            .files
            .roots
            .iter()
            .filter(|root| root.id != "data")
            .map(|root| format!("{} ({})", root.path.display(), root.id))
            .collect();
        if outside.is_empty() {
            return Ok(());
        }
        Err(Error::refused(format!(
            "files of the server lie outside its data directory, and a baseline covers only that: {}",
            outside.join(", ")
        ))
        .hint("move them into the data directory, or use evenkeel backup and restore"))
    }

    /// Of a stopped server nobody may have said where it keeps its redo log.
    fn refuse_unknown_redo(&self) -> Result<()> {
        let is_redo = |file: &files::FoundFile| file.class == FileClass::InnodbRedo;
        if self.files.files.iter().any(is_redo) {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{} has no InnoDB redo log: it is not a complete data directory",
            self.datadir().display()
        ))
        .hint("start the server and give its socket: it knows where its files are"))
    }

    /// Returns what a rollback means beyond this server.
    pub(super) fn notes(&mut self) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        if self
            .files
            .files
            .iter()
            .any(|file| file.class == FileClass::Binlog)
        {
            notes.push(
                "the binary logs are in the data directory and are rolled back, too: their \
                 positions and GTIDs will be reused for other transactions"
                    .to_owned(),
            );
        }
        let Some(server) = &mut self.server else {
            return Ok(notes);
        };
        let replicas = server.session.value(
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'",
        )?;
        if let Some(count) = replicas.filter(|count| count != "0") {
            notes.push(format!(
                "{} of this server: they keep the changes that are rolled back here, so \
                 re-create them afterwards",
                units::count(count, "replica")
            ));
        }
        let channels = match Replication::read(&mut server.session, &server.abilities) {
            Ok(found) => found.channels,
            Err(error) if error.kind() == ErrorKind::Refused => {
                notes.push(
                    "it is not known whether this server is a replica: the account lacks the \
                     privilege to ask"
                        .to_owned(),
                );
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        for channel in channels {
            notes.push(format!(
                "this server replicates from {}: it will resume from its position at the save, \
                 if its source still has those logs",
                channel.host
            ));
        }
        Ok(notes)
    }
}

/// A data directory whose baselines this run has to itself.
pub(super) struct Begun {
    pub(super) store: Store,
    /// Fails when the repair before has started the server.
    pub(super) subject: Result<Subject>,
    pub(super) healed: Option<Healed>,
}

/// Locks the baselines of a data directory, repairs what a killed run left, and looks.
pub(super) fn begin(whose: &Whose, run: Run) -> Result<Begun> {
    let (datadir, seen) = match whose {
        Whose::Running(_) => {
            let subject = Subject::find(whose)?;
            (subject.files.datadir.clone(), Some(subject))
        }
        // It may be no data directory until all is in order.
        Whose::Stopped { .. } => (datadir_of(whose)?, None),
    };
    let store = Store::open(&datadir)?;
    let healed = heal(&store, run)?;
    let subject = match seen {
        Some(subject) if healed.is_none() => Ok(subject),
        _ => Subject::find(whose),
    };
    let subject = subject.map_err(|error| match &healed {
        Some(healed) => error.hint(healed.reported.clone()),
        None => error,
    });
    Ok(Begun {
        store,
        subject,
        healed,
    })
}
