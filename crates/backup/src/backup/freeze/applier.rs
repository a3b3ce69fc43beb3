//! The applier of a replica, while its files are frozen.
//!
//! What an image of a replica holds is a place in its source's binary log. While the applier stands,
//! that place is what its status says. While it continues, only tables that are written in the
//! applied transactions themselves can tell, and only while commits wait; where that is not so, the
//! place is left out rather than guessed. A replica that goes by GTIDs needs none: its image knows
//! by itself.

use crate::backup::request::{ApplierWish, BackupRequest};
use evenkeel_op::{Error, ErrorKind, Result, Run};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::coordinates::Coordinates;
use evenkeel_server::files::{FoundFile, ServerFiles};
use evenkeel_server::lock::Locker;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::{
    Replication, SourceCoordinates, StopLimits, Stopped, applied_under_lock,
};
use std::time::Duration;

/// The appliers of a server that is being frozen.
#[derive(Debug, Default)]
pub(in crate::backup) struct Applier {
    /// Set while they stand.
    stopped: Option<Stopped>,
    sources: Vec<SourceCoordinates>,
    stood: Duration,
    /// The server's own binary log has what it applies: its GTIDs are those of the image.
    logs_what_it_applies: bool,
}

impl Applier {
    /// Looks at the replication of a server, and stops it where that is wanted. Before any lock.
    pub(in crate::backup) fn meet(
        request: &BackupRequest,
        options: &ConnectOptions,
        files: &ServerFiles,
        run: Run<'_>,
    ) -> Result<Self> {
        let ApplierWish::Stop(program) = &request.applier else {
            return Self::look_on(options, files, run);
        };
        let pid = files.pid.ok_or_else(|| {
            Error::refused(
                "the server's process was not found, so a later run could not tell that its SQL \
                 thread was left stopped",
            )
            .hint("run evenkeel on the server's own host, as root or as its user")
        })?;
        let limits = StopLimits {
            deadline: request.limits.deadline,
            // The locks are waited for and held meanwhile.
            hold: request.limits.deadline + request.limits.hold,
        };
        let stopped = Stopped::stop(
            options,
            Some(pid),
            program,
            &limits,
            run.progress,
            run.cancel,
        )?;
        let Some(stopped) = stopped else {
            run.progress
                .note("this server is not a replica: it has no SQL thread to stop".to_owned());
            return Ok(Self::default());
        };
        fail::fail_point!("backup::applier_stopped");
        Ok(Self {
            sources: stopped.coordinates(),
            stopped: Some(stopped),
            ..Self::default()
        })
    }

    fn look_on(options: &ConnectOptions, files: &ServerFiles, run: Run<'_>) -> Result<Self> {
        let mut session = Session::open(options)?;
        let abilities = Abilities::probe(&mut session)?;
        let found = match Replication::read(&mut session, &abilities) {
            // Most servers are no replicas, and an account for backups need not look.
            Err(error) if error.kind() == ErrorKind::Refused => {
                if looks_like_a_replica(files) {
                    run.progress.note(format!(
                        "the server seems to be a replica; its source and position are not known: {}",
                        error.chain()
                    ));
                }
                return Ok(Self::default());
            }
            found => found?,
        };
        if found.channels.is_empty() {
            return Ok(Self::default());
        }
        let mut logs = false;
        for name in ["log_slave_updates", "log_replica_updates"] {
            let value = session.variable(name)?;
            logs |= value.is_some_and(|value| value.eq_ignore_ascii_case("ON"));
        }
        Ok(Self {
            sources: found.channels.iter().map(SourceCoordinates::of).collect(),
            logs_what_it_applies: logs && abilities.own_gtids_hold_applied,
            ..Self::default()
        })
    }

    /// Reads what can be known of appliers that continue. While commits wait.
    pub(in crate::backup) fn look(&mut self, locker: &mut Locker<'_>, run: Run<'_>) {
        if self.stopped.is_some() || self.sources.is_empty() {
            return;
        }
        let abilities = locker.abilities().clone();
        let applied = match applied_under_lock(locker.session(), &abilities) {
            Ok(applied) => applied,
            // An account for backups need not read these tables. A lost connection is noticed when
            // the lock is released.
            Err(error) => {
                let why = error.chain();
                run.progress.note(format!(
                    "the position of the SQL thread cannot be read: {why}"
                ));
                return;
            }
        };
        for source in &mut self.sources {
            if source.goes_by_gtid() {
                source.gtid.clone_from(&applied.gtid);
                continue;
            }
            let place = applied.positions.iter();
            let place = place.filter(|(channel, _)| *channel == source.channel);
            let place = place.map(|(_, place)| place.clone()).next();
            *source = source.clone().at(place);
        }
    }

    /// Lets appliers continue that were stopped. Fails when they did not stand all the time.
    pub(in crate::backup) fn resume(&mut self) -> Result<()> {
        let Some(stopped) = self.stopped.take() else {
            return Ok(());
        };
        self.stood = stopped.stood();
        stopped.start()
    }

    /// Returns the places in the sources' binary logs that belong to an image at `own`, and how
    /// long the appliers stood.
    pub(in crate::backup) fn places(
        &self,
        own: &Coordinates,
        run: Run<'_>,
    ) -> (Vec<SourceCoordinates>, Duration) {
        let mut sources = self.sources.clone();
        for source in &mut sources {
            if self.logs_what_it_applies {
                source.gtid.clone_from(&own.gtid);
            }
            if !source.is_known() {
                run.progress.note(format!(
                    "the position of this image in the binary log of {} is not known: add \
                     --stop-applier to seed replicas from it",
                    source.host
                ));
            }
        }
        (sources, self.stood)
    }
}

/// Whether there is what only a server leaves that replicates, or did so.
fn looks_like_a_replica(files: &ServerFiles) -> bool {
    // `relay-log.info`, for a named connection `relay-log-NAME.info`.
    let is_state = |name: &str| name.starts_with("relay-log") && name.ends_with(".info");
    let of_file = |file: &FoundFile| {
        file.path
            .file_name()
            .is_some_and(|name| is_state(&name.to_string_lossy()))
    };
    files.files.iter().any(of_file)
}
