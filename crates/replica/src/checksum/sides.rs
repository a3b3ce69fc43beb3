//! The two servers: that one is the other's source, what may be asked of them, and what never gets from one to the other.

use super::filter::Filter;
use super::request::ChecksumRequest;
use evenkeel_op::{Context, Error, Result, Run};
use evenkeel_server::abilities::{Abilities, Privilege, missing_privileges};
use evenkeel_server::connect::{Session, server_behind};
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::{Channel, ThreadState};

/// So much must a server let a row's text have: it is a few bytes longer than the row.
const PACKET_MIN: u64 = 1 << 20;

/// One server.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) options: ConnectOptions,
    pub(crate) session: Session,
    pub(crate) abilities: Abilities,
}

impl Side {
    pub(crate) fn open(options: &ConnectOptions) -> Result<Self> {
        let mut session = Session::open(options)?;
        // MySQL 8 would answer with what it knew a day ago.
        session.run(
            "SET SESSION time_zone = '+00:00' /*!80003 , information_schema_stats_expiry = 0 */",
        )?;
        let abilities = Abilities::probe(&mut session)?;
        Ok(Self {
            options: options.clone(),
            session,
            abilities,
        })
    }

    /// Refuses an account that sees only some tables: others would count as missing.
    pub(crate) fn require(&mut self, needs: &[Privilege], role: &str) -> Result<()> {
        let missing = missing_privileges(&mut self.session, needs)?;
        let place = self.session.place().to_owned();
        if let Some(first) = missing.first() {
            let (flavour, version) = (self.abilities.flavour, self.abilities.version);
            let grant = first.grant_name(flavour, version);
            return Err(
                Error::refused(format!("the account lacks {grant} on the {role} {place}"))
                    .hint(format!("GRANT {grant} ON *.* TO the account")),
            );
        }
        // Builds without a TLS library have the function, and it is NULL.
        if self.session.value("SELECT SHA2('', 256)")?.is_none() {
            return Err(Error::refused(format!(
                "the {role} {place} cannot compute SHA2()"
            )));
        }
        let most = self.session.variable("max_allowed_packet")?;
        if most
            .and_then(|most| most.parse().ok())
            .is_some_and(|most: u64| most < PACKET_MIN)
        {
            return Err(Error::refused(format!(
                "max_allowed_packet of the {role} {place} is less than 1 MiB, so it cannot sum up long rows"
            ))
            .hint("SET GLOBAL max_allowed_packet = 1048576"));
        }
        Ok(())
    }
}

/// Both servers.
#[derive(Debug)]
pub(crate) struct Sides {
    pub(crate) source: Side,
    pub(crate) replica: Side,
    /// The replica's process, if it is on this host.
    pub(crate) replica_pid: Option<i32>,
    pub(crate) channel: String,
    /// It has other sources, too.
    pub(crate) has_other_sources: bool,
    pub(crate) filter: Filter,
}

impl Sides {
    /// Connects to both.
    ///
    /// Errors: those of sessions; `Refused` when the one is not the other's source, or a privilege is missing.
    pub(crate) fn meet(request: &ChecksumRequest, run: Run<'_>) -> Result<Self> {
        let mut replica = Side::open(&request.replica)?;
        replica.require(
            &[
                Privilege::SelectAll,
                Privilege::ReplicaMonitor,
                Privilege::ReplicationAdmin,
            ],
            "replica",
        )?;
        let channels = Channel::all(&mut replica.session, &replica.abilities)?;
        let channel = choose(&channels, request, replica.session.place())?;
        runs(channel)?;
        let options = match &request.source {
            Some(options) => options.clone(),
            None => named_by(channel, &request.replica),
        };
        let mut source = Side::open(&options)
            .context(|| "failed to connect to the source")
            .map_err(|error| match request.source {
                Some(_) => error,
                None => error
                    .hint("this is where the replica fetches from; name another way with --source"),
            })?;
        let mut needs = vec![Privilege::SelectAll, Privilege::ReplicationClient];
        if !source.abilities.binlog_snapshot {
            needs.push(Privilege::Reload);
        }
        source.require(&needs, "source")?;
        is_source(&mut source, channel, &replica)?;
        let filter = Filter::read(&mut source, &mut replica, channel)?;
        for word in filter.notes() {
            run.progress.note(word);
        }
        Ok(Self {
            replica_pid: server_behind(&request.replica),
            channel: channel.name.clone(),
            has_other_sources: channels.len() > 1,
            source,
            replica,
            filter,
        })
    }
}

fn choose<'a>(
    channels: &'a [Channel],
    request: &ChecksumRequest,
    place: &str,
) -> Result<&'a Channel> {
    match (&request.channel, channels) {
        (_, []) => Err(Error::refused(format!("{place} is not a replica"))),
        (None, [only]) => Ok(only),
        (None, several) => {
            let names: Vec<String> = several
                .iter()
                .map(|one| format!("'{}'", one.name))
                .collect();
            Err(Error::usage(format!(
                "{place} has several sources: the channels {}",
                names.join(", ")
            ))
            .hint("name one with --channel"))
        }
        (Some(name), all) => all
            .iter()
            .find(|one| one.name == *name)
            .ok_or_else(|| Error::usage(format!("{place} has no channel '{name}'"))),
    }
}

/// Refuses a replica that will never get to the source's place.
fn runs(channel: &Channel) -> Result<()> {
    let named = match channel.name.as_str() {
        "" => String::new(),
        name => format!(" of channel '{name}'"),
    };
    if channel.applier != ThreadState::Running {
        let mut error = Error::refused(format!("the SQL thread{named} does not run"));
        if let Some((number, text)) = &channel.applier_error {
            error = error.because(Error::failed(format!("ERROR {number}: {text}")));
        }
        return Err(error.hint("'evenkeel replica diagnose' says why, and how to repair it"));
    }
    if channel.receiver != ThreadState::Running {
        let mut error = Error::refused(format!("the I/O thread{named} is not connected"));
        if let Some((number, text)) = &channel.receiver_error {
            error = error.because(Error::failed(format!("ERROR {number}: {text}")));
        }
        return Err(error.hint("'evenkeel replica diagnose' says why, and how to repair it"));
    }
    if channel.delay_s > 0 {
        return Err(Error::refused(format!(
            "the replica waits {} s on purpose before it applies anything",
            channel.delay_s
        ))
        .hint("compare another replica of that source")
        .hint("or give up its delay for that time (MASTER_DELAY=0): what it holds back is applied at once then"));
    }
    Ok(())
}

/// The source as the replica names it, with the account that was given for the replica.
fn named_by(channel: &Channel, replica: &ConnectOptions) -> ConnectOptions {
    ConnectOptions {
        host: Some(channel.host.clone()),
        port: channel.port,
        socket: None,
        ..replica.clone()
    }
}

/// Refuses a server that is not the replica's own source: positions mean nothing in other logs.
pub(crate) fn is_source(source: &mut Side, channel: &Channel, replica: &Side) -> Result<()> {
    let place = source.session.place().to_owned();
    let other = |why: String| {
        Err(Error::refused(format!(
            "{place} is not what {} replicates from: {why}",
            replica.session.place()
        ))
        .hint("compare a replica with its own source, one step at a time"))
    };
    let id: Option<u64> = source
        .session
        .value("SELECT @@server_id")?
        .and_then(|id| id.parse().ok());
    let Some(expected) = channel.source_id else {
        return other("its source has never answered".to_owned());
    };
    if id != Some(expected) {
        return other(format!("its source has the server id {expected}"));
    }
    if let Some(expected) = &channel.source_uuid {
        let uuid = source.session.variable("server_uuid")?;
        if uuid.as_ref() != Some(expected) {
            return other(format!("its source has the UUID {expected}"));
        }
    }
    if !source.abilities.binary_log_enabled {
        return other("it has no binary log".to_owned());
    }
    Ok(())
}
