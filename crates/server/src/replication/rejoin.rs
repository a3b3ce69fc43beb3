//! What a server on the clone of a replica is told, so that it replicates from the same source under the same
//! account: the settings came with the clone, and only the place is new.

use super::seed::SourceCoordinates;
use super::statements::of_channel;
use crate::abilities::Abilities;
use crate::connect::quote;

/// Returns the statements that put a cloned replica's channel to the place of the image, in order. Neither host
/// nor account nor password is named: they stay as they are. Nothing starts. Empty when the place is not known.
#[must_use]
pub fn rejoining(source: &SourceCoordinates, abilities: &Abilities) -> Vec<String> {
    if !source.is_known() {
        return Vec::new();
    }
    let mariadb = abilities.show_all_replicas_status;
    // Of relay logs that did not come along.
    let mut all = vec![of_channel("RESET", "", Some(&source.channel), abilities)];
    if let (true, true, Some(gtid)) = (mariadb, source.goes_by_gtid(), &source.gtid) {
        all.push(format!("SET GLOBAL gtid_slave_pos = {}", quote(gtid)));
    }
    all.push(change(source, abilities));
    all
}

fn change(source: &SourceCoordinates, abilities: &Abilities) -> String {
    let mariadb = abilities.show_all_replicas_status;
    let prefix = match abilities.change_replication_source {
        true => "SOURCE",
        false => "MASTER",
    };
    let mut parts = Vec::new();
    match (&source.binlog_file, source.binlog_position) {
        _ if source.goes_by_gtid() && mariadb => parts.push("MASTER_USE_GTID=slave_pos".to_owned()),
        _ if source.goes_by_gtid() => parts.push(format!("{prefix}_AUTO_POSITION=1")),
        (Some(file), Some(position)) => {
            parts.push(format!("{prefix}_LOG_FILE={}", quote(file)));
            parts.push(format!("{prefix}_LOG_POS={position}"));
            parts.extend(mariadb.then(|| "MASTER_USE_GTID=no".to_owned()));
        }
        _ => {}
    }
    let (parts, channel) = (parts.join(", "), quote(&source.channel));
    match (mariadb, abilities.change_replication_source) {
        (true, _) => format!("CHANGE MASTER {channel} TO {parts}"),
        (_, true) => format!("CHANGE REPLICATION SOURCE TO {parts} FOR CHANNEL {channel}"),
        (_, false) => format!("CHANGE MASTER TO {parts} FOR CHANNEL {channel}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(version: &str, positioning: &str) -> Vec<String> {
        let source = SourceCoordinates {
            channel: String::new(),
            host: "db1".to_owned(),
            port: Some(3306),
            user: "repl".to_owned(),
            positioning: positioning.to_owned(),
            binlog_file: Some("bin.000003".to_owned()),
            binlog_position: Some(597),
            gtid: Some("0-1-28".to_owned()),
            tls: false,
            public_key: false,
        };
        rejoining(&source, &Abilities::of_version(version, "").unwrap())
    }

    #[test]
    fn only_the_place_is_said() {
        assert_eq!(
            said("10.11.19-MariaDB", "gtid"),
            [
                "RESET SLAVE ''",
                "SET GLOBAL gtid_slave_pos = '0-1-28'",
                "CHANGE MASTER '' TO MASTER_USE_GTID=slave_pos"
            ]
        );
        assert_eq!(
            said("10.11.19-MariaDB", "file")[1],
            "CHANGE MASTER '' TO MASTER_LOG_FILE='bin.000003', MASTER_LOG_POS=597, MASTER_USE_GTID=no"
        );
        assert_eq!(
            said("5.7.22", "file"),
            [
                "RESET SLAVE FOR CHANNEL ''",
                "CHANGE MASTER TO MASTER_LOG_FILE='bin.000003', MASTER_LOG_POS=597 FOR CHANNEL ''"
            ]
        );
        assert_eq!(
            said("9.7.4", "gtid"),
            [
                "RESET REPLICA FOR CHANNEL ''",
                "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION=1 FOR CHANNEL ''"
            ]
        );
    }
}
