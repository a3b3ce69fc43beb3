//! What was found.

use super::catalogue::{Class, Failure};
use crate::survey::{Answered, Facts};
use evenkeel_server::connect::{quote, quote_name};
use evenkeel_server::replication::{Channel, of_channel};

/// Something that is wrong with a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The server, by its place among those that were asked.
    pub server: usize,
    /// The channel, where it is one's.
    pub channel: Option<String>,
    /// What is wrong.
    pub failure: Failure,
    /// Who may repair it: the failure's class, or a stricter one.
    pub class: Class,
    /// What says so.
    pub evidence: Vec<String>,
    /// What repairs it, step by step.
    pub repair: Vec<Step>,
}

/// A step that repairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where: a server's name, or the address of one that was not asked.
    pub on: String,
    /// The statement, unless it is no single statement.
    pub sql: Option<String>,
    /// What it is for, or what to do.
    pub says: String,
}

impl Finding {
    pub(super) fn new(server: usize, channel: Option<&Channel>, failure: Failure) -> Self {
        Self {
            server,
            channel: channel.map(|channel| channel.name.clone()),
            failure,
            class: failure.entry().class,
            evidence: Vec::new(),
            repair: Vec::new(),
        }
    }

    pub(super) fn seen(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    /// Adds a step that is a statement.
    pub(super) fn sql(mut self, on: &str, sql: impl Into<String>, says: &str) -> Self {
        self.repair.push(Step {
            on: on.to_owned(),
            sql: Some(sql.into()),
            says: says.to_owned(),
        });
        self
    }

    /// Adds a step that is none.
    pub(super) fn step(mut self, on: &str, says: impl Into<String>) -> Self {
        self.repair.push(Step {
            on: on.to_owned(),
            sql: None,
            says: says.into(),
        });
        self
    }

    pub(super) fn at_least(mut self, class: Class) -> Self {
        self.class = self.class.max(class);
        self
    }
}

/// One channel of one server, and what it is called.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) server: usize,
    pub(super) name: &'a str,
    pub(super) facts: &'a Facts,
    pub(super) channel: &'a Channel,
}

impl<'a> Subject<'a> {
    /// Returns the channels of all servers that answered.
    pub(super) fn all(servers: &'a [Answered]) -> impl Iterator<Item = Self> {
        let each = servers.iter().enumerate();
        each.flat_map(|(server, one)| {
            let facts = one.facts.as_ref().ok();
            let channels = facts.into_iter().flat_map(|facts| {
                let each = facts.channels.iter();
                each.map(move |channel| (facts, channel))
            });
            channels.map(move |(facts, channel)| Self {
                server,
                name: &one.name,
                facts,
                channel,
            })
        })
    }

    pub(super) fn finding(&self, failure: Failure) -> Finding {
        Finding::new(self.server, Some(self.channel), failure)
    }

    /// Returns the finding for an error that has no name here; `start` continues.
    pub(super) fn other_error(&self, start: String) -> Finding {
        self.finding(Failure::OtherError)
            .step(
                self.name,
                "find the cause in the error's text, and remove it",
            )
            .sql(self.name, start, "go on")
    }

    /// Returns a statement for this channel.
    pub(super) fn order(&self, verb: &str, what: &str) -> String {
        let is_only = self.facts.channels.len() == 1 && self.channel.name.is_empty();
        let channel = (!is_only).then_some(self.channel.name.as_str());
        of_channel(verb, what, channel, &self.facts.abilities)
    }

    /// Returns the statement that starts the applier again.
    pub(super) fn start_applier(&self) -> String {
        self.order("START", "SQL_THREAD")
    }

    /// Returns the statement that makes the channel continue where its applier is, by file and position.
    pub(super) fn fetch_again(&self) -> Option<String> {
        let at = self.channel.executed.as_ref()?;
        let is_renamed = self.facts.abilities.change_replication_source;
        let (verb, word) = match is_renamed {
            true => ("CHANGE REPLICATION SOURCE TO", "SOURCE"),
            false => ("CHANGE MASTER TO", "MASTER"),
        };
        let (file, position) = (quote(&at.file), at.position);
        let place = format!("{word}_LOG_FILE={file}, {word}_LOG_POS={position}");
        let name = quote(&self.channel.name);
        let is_mariadb = self.facts.abilities.show_all_replicas_status;
        Some(match (self.channel.name.is_empty(), is_mariadb) {
            (true, _) => format!("{verb} {place}"),
            (false, true) => format!("CHANGE MASTER {name} TO {place}"),
            (false, false) => format!("{verb} {place} FOR CHANNEL {name}"),
        })
    }
}

/// Returns a table's name as SQL has it.
pub(super) fn quoted((database, table): &(String, String)) -> String {
    format!("{}.{}", quote_name(database), quote_name(table))
}
