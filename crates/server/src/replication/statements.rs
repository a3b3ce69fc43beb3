//! The words for it, in each server's dialect.

use crate::abilities::Abilities;
use crate::connect::quote;

/// What to do with an applier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Start,
    Stop,
    /// Start it, to stop by itself when no transaction is missing between those that are there.
    CloseGaps,
}

/// Returns the statement for the applier of one channel.
pub(super) fn applier(order: Order, channel: &str, abilities: &Abilities) -> String {
    let (verb, what) = match order {
        Order::Stop => ("STOP", "SQL_THREAD"),
        Order::Start => ("START", "SQL_THREAD"),
        Order::CloseGaps => ("START", "SQL_THREAD UNTIL SQL_AFTER_MTS_GAPS"),
    };
    of_channel(verb, what, Some(channel), abilities)
}

/// Returns the statement that starts, stops or resets (`verb`) replication or a part of it (`what`: `SQL_THREAD`, `ALL`
/// or nothing) in the server's dialect. Without a channel, MariaDB means the default one, MySQL all of them.
#[must_use]
pub fn of_channel(verb: &str, what: &str, channel: Option<&str>, abilities: &Abilities) -> String {
    let word = word(abilities);
    let channel = channel.map(quote);
    let words = match (abilities.show_all_replicas_status, &channel) {
        (true, Some(channel)) => vec![verb, "SLAVE", channel, what],
        (false, Some(channel)) => vec![verb, word, what, "FOR CHANNEL", channel],
        (_, None) => vec![verb, word, what],
    };
    let words = words.into_iter().filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the server's word for a replica.
pub(super) fn word(abilities: &Abilities) -> &'static str {
    if abilities.replica_statements {
        "REPLICA"
    } else {
        "SLAVE"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(version: &str, order: Order) -> String {
        applier(order, "east", &Abilities::of_version(version, "").unwrap())
    }

    #[test]
    fn each_server_has_its_words() {
        assert_eq!(
            said("10.11.19-MariaDB", Order::Stop),
            "STOP SLAVE 'east' SQL_THREAD"
        );
        assert_eq!(
            said("5.7.22", Order::Start),
            "START SLAVE SQL_THREAD FOR CHANNEL 'east'"
        );
        assert_eq!(
            said("9.7.4", Order::CloseGaps),
            "START REPLICA SQL_THREAD UNTIL SQL_AFTER_MTS_GAPS FOR CHANNEL 'east'"
        );
        let of = |version: &str| {
            let abilities = Abilities::of_version(version, "").unwrap();
            of_channel("RESET", "", None, &abilities)
        };
        assert_eq!(of("9.7.4"), "RESET REPLICA");
        assert_eq!(of("10.11.19-MariaDB"), "RESET SLAVE");
    }
}
