//! Answer of `replica status`.

use crate::show::answers::{Answer, Failure};
use crate::show::obeyed::is_obeyed;
use crate::show::{Align, TextTable};
use evenkeel_op::units;
use evenkeel_replica::lag::Lag;
use evenkeel_replica::survey::{Answered, Facts};
use evenkeel_replica::topology::{Branch, address, lay_out, source_of};
use evenkeel_server::replication::{Channel, Position, Positioning, ThreadState};
use serde::Serialize;

/// Who replicates from whom.
#[derive(Debug, Serialize)]
pub struct ReplicaStatusAnswer {
    servers: Vec<ShownServer>,
    /// Each server below the one that it replicates from.
    tree: Vec<ShownBranch>,
}

/// One server.
#[derive(Debug, Serialize)]
struct ShownServer {
    server: String,
    version: Option<String>,
    server_id: Option<u64>,
    server_uuid: Option<String>,
    writable: Option<bool>,
    gtid_applied: Option<String>,
    binlog: Option<Position>,
    channels: Vec<ShownChannel>,
    /// What it did not answer, each with the reason.
    not_answered: Vec<String>,
    failure: Option<Failure>,
}

/// What a server replicates from one source.
#[derive(Debug, Serialize)]
struct ShownChannel {
    name: String,
    /// `HOST:PORT`.
    source: String,
    /// The name of the source among the servers that were asked.
    source_server: Option<String>,
    /// What the source said of itself, if it ever answered.
    source_server_id: Option<u64>,
    source_server_uuid: Option<String>,
    /// `running`, `connecting`, `stopped` or `unknown`.
    io_thread: &'static str,
    sql_thread: &'static str,
    io_thread_does: String,
    sql_thread_does: String,
    io_error: Option<ShownError>,
    sql_error: Option<ShownError>,
    by_gtid: bool,
    received: Option<Position>,
    executed: Option<Position>,
    received_gtid: Option<String>,
    /// Seconds that it waits on purpose.
    delay_s: u64,
    filtered: bool,
    workers: u64,
    lag: Lag,
}

/// An error of a server.
#[derive(Debug, Serialize)]
struct ShownError {
    number: u32,
    message: String,
}

/// A server in the tree.
#[derive(Debug, Serialize)]
struct ShownBranch {
    server: String,
    /// It was asked.
    asked: bool,
    /// The channel that leads to the server above.
    channel: Option<String>,
    /// It stands elsewhere too, with what is below it.
    again: bool,
    replicas: Vec<ShownBranch>,
}

impl ReplicaStatusAnswer {
    /// Describes what servers said.
    #[must_use]
    pub fn new(servers: &[Answered]) -> Self {
        let each = servers.iter().enumerate();
        Self {
            servers: each
                .map(|(at, server)| shown(servers, at, server))
                .collect(),
            tree: lay_out(servers)
                .iter()
                .map(|branch| shown_branch(servers, branch))
                .collect(),
        }
    }

    /// Whether every server answered everything.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let is_whole = |one: &ShownServer| one.failure.is_none() && one.not_answered.is_empty();
        self.servers.iter().all(is_whole)
    }

    /// Returns what was not answered, by server.
    #[must_use]
    pub fn refused(&self) -> Vec<String> {
        let of = |one: &ShownServer| {
            let name = one.server.clone();
            let each = one.not_answered.clone().into_iter();
            each.map(move |why| format!("{name}: {why}"))
        };
        self.servers.iter().flat_map(of).collect()
    }

    fn rows(&self, branch: &ShownBranch, indent: &str, hook: &str, table: &mut TextTable) {
        let name = format!("{indent}{hook}{}", branch.server);
        let again = if branch.again { " (see above)" } else { "" };
        let Some(server) = self
            .servers
            .iter()
            .find(|one| one.server == branch.server && branch.asked)
        else {
            table.row([name, "not asked".to_owned()]);
            return self.below(branch, indent, hook, table);
        };
        let channel = branch.channel.as_ref();
        let channel = channel.and_then(|name| server.channels.iter().find(|one| one.name == *name));
        let role = match (server.writable, &server.failure) {
            (_, Some(_)) => "no answer",
            (Some(true), _) => "writable",
            (Some(false), _) => "read-only",
            (None, None) => "",
        };
        let of = |what: fn(&ShownChannel) -> String| channel.map(what).unwrap_or_default();
        table.row([
            format!("{name}{again}"),
            server.version.clone().unwrap_or_default(),
            role.to_owned(),
            of(|channel| channel.io_thread.to_owned()),
            of(|channel| channel.sql_thread.to_owned()),
            of(ShownChannel::behind),
            of(ShownChannel::trouble),
        ]);
        self.below(branch, indent, hook, table);
    }

    fn below(&self, branch: &ShownBranch, indent: &str, hook: &str, table: &mut TextTable) {
        let indent = match hook {
            "" => String::new(),
            "├─ " => format!("{indent}│  "),
            _ => format!("{indent}   "),
        };
        for (at, replica) in branch.replicas.iter().enumerate() {
            let is_last = at + 1 == branch.replicas.len();
            let hook = if is_last { "└─ " } else { "├─ " };
            self.rows(replica, &indent, hook, table);
        }
    }
}

impl Answer for ReplicaStatusAnswer {
    const SCHEMA: &'static str = "evenkeel/replica-status/1";

    fn text(&self) -> String {
        let mut table = TextTable::new(&[
            ("server", Align::Left),
            ("version", Align::Left),
            ("clients", Align::Left),
            ("IO thread", Align::Left),
            ("SQL thread", Align::Left),
            ("behind", Align::Left),
            ("", Align::Left),
        ]);
        for branch in &self.tree {
            self.rows(branch, "", "", &mut table);
        }
        let plain = |letter| letter != '\n' && is_obeyed(letter);
        table.text().replace(plain, " ")
    }
}

impl ShownChannel {
    fn behind(&self) -> String {
        let lag = &self.lag;
        let seconds = match (lag.heartbeat_s, lag.said_s) {
            (Some(age), _) => format!("{age:.1} s"),
            (None, Some(seconds)) => format!("{seconds} s"),
            (None, None) => "-".to_owned(),
        };
        let bytes = match (lag.to_fetch_bytes, lag.to_apply_bytes) {
            (None, None) => None,
            (fetch, apply) => Some(fetch.unwrap_or(0) + apply.unwrap_or(0)),
        };
        let bytes = bytes.filter(|bytes| *bytes > 0).map(units::bytes);
        let transactions = lag.transactions.filter(|count| *count > 0);
        let transactions = transactions.map(|count| units::count(count, "transaction"));
        let parts = [Some(seconds), bytes, transactions];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn trouble(&self) -> String {
        let error = |what: &str, error: &Option<ShownError>| {
            let error = error.as_ref()?;
            let text: String = error.message.chars().take(60).collect();
            let text = text.replace('\n', " ");
            Some(format!("{what} error {}: {text}", error.number))
        };
        let channel = (!self.name.is_empty()).then(|| format!("channel '{}'", self.name));
        let delay = (self.delay_s > 0).then(|| format!("delayed by {} s", self.delay_s));
        let parts = [
            channel,
            delay,
            error("IO thread", &self.io_error),
            error("SQL thread", &self.sql_error),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

fn shown(servers: &[Answered], at: usize, server: &Answered) -> ShownServer {
    let facts = server.facts.as_ref();
    let known = facts.ok();
    let channels = known.map_or_else(Vec::new, |facts| {
        let channels = facts.channels.iter();
        channels
            .map(|channel| shown_channel(servers, at, facts, channel))
            .collect()
    });
    ShownServer {
        server: server.name.clone(),
        version: known.map(|facts| facts.identity.version.clone()),
        server_id: known.map(|facts| facts.identity.id),
        server_uuid: known.and_then(|facts| facts.identity.uuid.clone()),
        writable: known.map(|facts| !facts.identity.is_read_only),
        gtid_applied: known
            .filter(|facts| !facts.applied.is_empty())
            .map(|facts| facts.applied.to_string()),
        binlog: known.and_then(|facts| facts.log_end.clone()),
        channels,
        not_answered: known.map_or_else(Vec::new, |facts| {
            let hang = "a disk is full: the state of replication would not be answered";
            let full = facts.is_out_of_space.then(|| hang.to_owned());
            facts.refused.iter().cloned().chain(full).collect()
        }),
        failure: facts.err().map(Failure::of),
    }
}

fn shown_channel(
    servers: &[Answered],
    at: usize,
    facts: &Facts,
    channel: &Channel,
) -> ShownChannel {
    let source = source_of(servers, at, channel);
    let source_facts = source.and_then(|source| servers[source].facts.as_ref().ok());
    let error = |error: &Option<(u32, String)>| {
        error.as_ref().map(|(number, message)| ShownError {
            number: *number,
            message: message.clone(),
        })
    };
    ShownChannel {
        name: channel.name.clone(),
        source: address(channel),
        source_server: source.map(|source| servers[source].name.clone()),
        source_server_id: channel.source_id,
        source_server_uuid: channel.source_uuid.clone(),
        io_thread: word(channel.receiver),
        sql_thread: word(channel.applier),
        io_thread_does: channel.receiver_does.clone(),
        sql_thread_does: channel.applier_does.clone(),
        io_error: error(&channel.receiver_error),
        sql_error: error(&channel.applier_error),
        by_gtid: channel.positioning == Positioning::Gtid,
        received: channel.received.clone(),
        executed: channel.executed.clone(),
        received_gtid: channel.received_gtid.clone(),
        delay_s: channel.delay_s,
        filtered: channel.is_filtered,
        workers: facts.workers,
        lag: Lag::of(facts, channel, source_facts),
    }
}

fn shown_branch(servers: &[Answered], branch: &Branch) -> ShownBranch {
    let server = branch.server.as_ref();
    let channel = server.ok().zip(branch.channel).and_then(|(at, channel)| {
        let facts = servers[*at].facts.as_ref().ok()?;
        Some(facts.channels.get(channel)?.name.clone())
    });
    ShownBranch {
        server: server.map_or_else(Clone::clone, |at| servers[*at].name.clone()),
        asked: server.is_ok(),
        channel,
        again: branch.is_again,
        replicas: branch
            .replicas
            .iter()
            .map(|below| shown_branch(servers, below))
            .collect(),
    }
}

fn word(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Running => "running",
        ThreadState::Connecting => "connecting",
        ThreadState::Stopped => "stopped",
        ThreadState::Unknown => "unknown",
    }
}
