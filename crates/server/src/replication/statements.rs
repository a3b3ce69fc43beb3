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
    let verb = match order {
        Order::Stop => "STOP",
        Order::Start | Order::CloseGaps => "START",
    };
    let name = quote(channel);
    if abilities.show_all_replicas_status {
        return format!("{verb} SLAVE {name} SQL_THREAD");
    }
    let word = word(abilities);
    let until = match order {
        Order::CloseGaps => " UNTIL SQL_AFTER_MTS_GAPS",
        Order::Start | Order::Stop => "",
    };
    format!("{verb} {word} SQL_THREAD{until} FOR CHANNEL {name}")
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
    }
}
