//! Who replicates from whom.

use crate::survey::{Answered, Facts};
use evenkeel_server::replication::Channel;

/// Where a server stands among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Which server of those that were asked, or the address of one that was not.
    pub server: Result<usize, String>,
    /// Which of its channels leads to the server above, as its place; `None` at the top.
    pub channel: Option<usize>,
    /// It stands elsewhere too, with what is below it.
    pub is_again: bool,
    /// Those that replicate from it.
    pub replicas: Vec<Branch>,
}

/// Returns which server a channel leads to, if that was asked.
#[must_use]
pub fn source_of(servers: &[Answered], replica: usize, channel: &Channel) -> Option<usize> {
    let others = || servers.iter().enumerate().filter(|(at, _)| *at != replica);
    if let Some(uuid) = &channel.source_uuid {
        let has = |facts: &Facts| facts.identity.uuid.as_ref() == Some(uuid);
        return others()
            .find(|(_, one)| one.facts.as_ref().is_ok_and(has))
            .or_else(|| others().find(|(_, one)| is_addressed(one, channel)))
            .map(|(at, _)| at);
    }
    let is_it = |one: &Answered| {
        let facts = one.facts.as_ref();
        facts.is_ok_and(|facts| {
            channel.source_id == Some(facts.identity.id)
                && channel.port == Some(facts.identity.port)
                && is_its_host(one, facts, &channel.host)
        })
    };
    others()
        .find(|(_, one)| is_addressed(one, channel))
        .or_else(|| others().find(|(_, one)| is_it(one)))
        .map(|(at, _)| at)
}

/// Whether the channel has the address by which we reach the server.
fn is_addressed(server: &Answered, channel: &Channel) -> bool {
    let address = server.address.as_ref();
    address.is_some_and(|(host, port)| *host == channel.host && Some(*port) == channel.port)
}

/// Whether a host may be the server's: by the name that it gives itself, or because both are this very host.
fn is_its_host(server: &Answered, facts: &Facts, host: &str) -> bool {
    let is_local = |host: &str| matches!(host, "localhost" | "127.0.0.1" | "::1");
    let short = |name: &str| {
        name.split('.')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    let reached = server.address.as_ref().map(|(host, _)| host.as_str());
    short(host) == short(&facts.identity.hostname) || is_local(host) && reached.is_none_or(is_local)
}

/// Lays the servers out: those that follow nobody first, each with its replicas below.
#[must_use]
pub fn lay_out(servers: &[Answered]) -> Vec<Branch> {
    let mut links: Vec<(usize, usize, Result<usize, String>)> = Vec::new();
    for (replica, server) in servers.iter().enumerate() {
        let Ok(facts) = &server.facts else { continue };
        for (at, channel) in facts.channels.iter().enumerate() {
            let known = source_of(servers, replica, channel);
            let source = known.ok_or_else(|| address(channel));
            links.push((replica, at, source));
        }
    }
    let mut shown = vec![false; servers.len()];
    let mut tops = Vec::new();
    let follows = |server: usize| links.iter().any(|(replica, _, _)| *replica == server);
    for server in (0..servers.len()).filter(|server| !follows(*server)) {
        tops.push(branch(Ok(server), None, &links, &mut shown));
    }
    let mut strangers: Vec<&String> = links
        .iter()
        .filter_map(|(.., to)| to.as_ref().err())
        .collect();
    strangers.sort_unstable();
    strangers.dedup();
    for stranger in strangers {
        tops.push(branch(Err(stranger.clone()), None, &links, &mut shown));
    }
    // Who is left follows in a circle.
    for server in 0..servers.len() {
        if !shown[server] {
            tops.push(branch(Ok(server), None, &links, &mut shown));
        }
    }
    tops
}

fn branch(
    server: Result<usize, String>,
    channel: Option<usize>,
    links: &[(usize, usize, Result<usize, String>)],
    shown: &mut [bool],
) -> Branch {
    let is_again = match &server {
        Ok(at) => std::mem::replace(&mut shown[*at], true),
        Err(_) => false,
    };
    let mut replicas = Vec::new();
    if !is_again {
        for (replica, channel, _) in links.iter().filter(|(.., to)| *to == server) {
            replicas.push(branch(Ok(*replica), Some(*channel), links, shown));
        }
    }
    Branch {
        server,
        channel,
        is_again,
        replicas,
    }
}

/// Returns the address that a channel leads to.
#[must_use]
pub fn address(channel: &Channel) -> String {
    match channel.port {
        Some(port) => format!("{}:{port}", channel.host),
        None => channel.host.clone(),
    }
}
