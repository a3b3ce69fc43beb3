//! The words for it, in each server's dialect.

use super::status::Position;
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

/// Returns the statement that starts the applier of one channel, to stop by itself at a place in its source's log.
/// The receiver is never named: with GTIDs, MariaDB drops what it has received when both threads start.
pub(super) fn start_until(channel: &str, to: &Position, abilities: &Abilities) -> String {
    let (name, file) = (quote(channel), quote(&to.file));
    let position = to.position;
    let word = word(abilities);
    if abilities.show_all_replicas_status {
        return format!(
            "START SLAVE {name} SQL_THREAD UNTIL MASTER_LOG_FILE={file}, MASTER_LOG_POS={position}"
        );
    }
    let prefix = match abilities.change_replication_source {
        true => "SOURCE",
        false => "MASTER",
    };
    format!(
        "START {word} SQL_THREAD UNTIL {prefix}_LOG_FILE={file}, {prefix}_LOG_POS={position} \
         FOR CHANNEL {name}"
    )
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
    fn an_applier_stops_where_it_is_told() {
        let to = Position {
            file: "b.000002".to_owned(),
            position: 7,
        };
        let said =
            |version: &str| start_until("e", &to, &Abilities::of_version(version, "").unwrap());
        assert_eq!(
            said("10.11.19-MariaDB"),
            "START SLAVE 'e' SQL_THREAD UNTIL MASTER_LOG_FILE='b.000002', MASTER_LOG_POS=7"
        );
        assert_eq!(
            said("8.0.15"),
            "START SLAVE SQL_THREAD UNTIL MASTER_LOG_FILE='b.000002', MASTER_LOG_POS=7 FOR CHANNEL 'e'"
        );
        assert_eq!(
            said("9.7.4"),
            "START REPLICA SQL_THREAD UNTIL SOURCE_LOG_FILE='b.000002', SOURCE_LOG_POS=7 FOR CHANNEL 'e'"
        );
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
