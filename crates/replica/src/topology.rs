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
            // Not known before it has connected for the first time since its start.
            let is_its_id = channel.source_id.is_none_or(|id| id == facts.identity.id);
            is_its_id
                && channel.port == Some(facts.identity.port)
                && is_its_host(one, facts, &channel.host)
        })
    };
    if let Some((at, _)) = others().find(|(_, one)| is_addressed(one, channel)) {
        return Some(at);
    }
    let mut found = others().filter(|(_, one)| is_it(one));
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Some(at),
        _ => None,
    }
}

/// Whether the channel has the address by which we reach the server.
fn is_addressed(server: &Answered, channel: &Channel) -> bool {
    let address = server.address.as_ref();
    address.is_some_and(|(host, port)| {
        is_same_host(host, &channel.host) && Some(*port) == channel.port
    })
}

/// Whether a host may be the server's: by the name that it gives itself, or because both are this very host.
fn is_its_host(server: &Answered, facts: &Facts, host: &str) -> bool {
    // Only where one of them has no domain: db1.east is not db1.west.
    let is_same_name = |a: &str, b: &str| {
        let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
        let short = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        a == b || (!a.contains('.') || !b.contains('.')) && short(&a) == short(&b)
    };
    let reached = server.address.as_ref().map(|(host, _)| host.as_str());
    is_same_name(host, &facts.identity.hostname) || is_local(host) && reached.is_none_or(is_local)
}

/// Whether an address is of the host itself.
#[must_use]
pub fn is_local(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: std::net::IpAddr| address.is_loopback();
    bare.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(is_loopback)
}

/// Whether two names or addresses are the same.
fn is_same_host(a: &str, b: &str) -> bool {
    let address = |host: &str| {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<std::net::IpAddr>().ok()
    };
    match (address(a), address(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a.eq_ignore_ascii_case(b),
    }
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
        Some(port) if channel.host.contains(':') => format!("[{}]:{port}", channel.host),
        Some(port) => format!("{}:{port}", channel.host),
        None => channel.host.clone(),
    }
}
