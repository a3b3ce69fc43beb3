//! Where a replica is in its source's binary log, and what to say to a server that is to continue
//! from there.

use super::statements::word;
use super::status::{Channel, Position, Positioning};
use crate::abilities::{Abilities, Flavour};
use crate::connect::quote;
use crate::coordinates::Coordinates;
use evenkeel_op::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What stands where a password or a number has to be filled in.
const PASSWORD: &str = "<password>";
const USER: &str = "<user>";
const SERVER_ID: &str = "<a number that no other server has>";

/// Where a replica was in the binary log of one of its sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCoordinates {
    /// Name of the channel or connection; empty for the default one.
    pub channel: String,
    /// Host of the source.
    pub host: String,
    /// Port of the source.
    pub port: Option<u16>,
    /// Account at the source.
    pub user: String,
    /// `gtid`: the replica knows by itself where to continue. `file`: it needs the position.
    pub positioning: String,
    /// File of the source's binary log; none when it is not known for this image.
    pub binlog_file: Option<String>,
    /// Byte position in it.
    pub binlog_position: Option<u64>,
    /// MariaDB: `gtid_slave_pos`. MySQL: the GTIDs executed. None when they are not known for this
    /// image, or are not what counts.
    pub gtid: Option<String>,
    /// The connection to the source must be encrypted.
    #[serde(default)]
    pub tls: bool,
    /// The replica asks for the source's public key.
    #[serde(default)]
    pub public_key: bool,
}

impl SourceCoordinates {
    /// Describes a channel, without a place.
    #[must_use]
    pub fn of(channel: &Channel) -> Self {
        Self {
            channel: channel.name.clone(),
            host: channel.host.clone(),
            port: channel.port,
            user: channel.user.clone(),
            positioning: match channel.positioning {
                Positioning::File => "file".to_owned(),
                Positioning::Gtid => "gtid".to_owned(),
            },
            binlog_file: None,
            binlog_position: None,
            gtid: None,
            tls: channel.tls,
            public_key: channel.public_key,
        }
    }

    /// Adds the place in the source's binary log.
    #[must_use]
    pub fn at(mut self, place: Option<Position>) -> Self {
        if let Some(place) = place {
            self.binlog_file = Some(place.file);
            self.binlog_position = Some(place.position);
        }
        self
    }

    /// Adds the GTIDs, where they count: a MariaDB replica that goes by file and position may have
    /// some that it only received.
    #[must_use]
    pub fn with_gtid(mut self, gtid: Option<&str>, abilities: &Abilities) -> Self {
        if self.goes_by_gtid() || abilities.flavour == Flavour::MySql {
            self.gtid = gtid.map(str::to_owned);
        }
        self
    }

    /// Whether the replica tells its source the GTIDs that it has.
    #[must_use]
    pub fn goes_by_gtid(&self) -> bool {
        self.positioning == "gtid"
    }

    /// Whether a server with this image can continue from where it is.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.goes_by_gtid() || self.binlog_file.is_some() && self.binlog_position.is_some()
    }
}

/// How a restored server becomes a replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Seeding {
    /// `source`: of the same source as the server that was backed up. `itself`: of that server.
    pub of: &'static str,
    /// Files of the restored data directory to remove before the first start.
    pub remove: Vec<String>,
    /// Options of the first start, besides those that the files need.
    pub start_options: Vec<String>,
    /// What to run on it then, in order. `<…>` must be filled in.
    pub statements: Vec<String>,
    /// What has to be known besides.
    pub notes: Vec<String>,
}

/// Says how a server on an image becomes a replica: of the sources that it was taken at, or, when
/// it was taken at none, of the server that was backed up. `settings` are that server's variables,
/// `host` its host. `None` when nothing is known that it could continue from.
///
/// Errors: `Refused` for settings of a server whose version makes no sense.
pub fn seeding(
    sources: &[SourceCoordinates],
    own: &Coordinates,
    settings: &BTreeMap<String, String>,
    host: &str,
) -> Result<Option<Seeding>> {
    let Some(version) = settings.get("version") else {
        return Ok(None);
    };
    let comment = settings.get("version_comment").map_or("", String::as_str);
    let abilities = Abilities::of_version(version, comment)?;
    let on = |name: &str| settings.get(name).is_some_and(|value| value == "ON");
    let has_gtids = match abilities.flavour {
        Flavour::MariaDb => own.gtid.is_some(),
        Flavour::MySql => on("gtid_mode"),
    };
    let itself;
    let (of, sources) = if sources.is_empty() {
        itself = [SourceCoordinates {
            public_key: abilities.source_public_key,
            ..of_itself(own, settings, host, has_gtids)
        }];
        ("itself", itself.as_slice())
    } else {
        ("source", sources)
    };
    if sources.iter().all(|source| !source.is_known()) {
        return Ok(None);
    }
    let mut options = vec![
        "--skip-slave-start".to_owned(),
        format!("--server-id={SERVER_ID}"),
    ];
    let mysql = abilities.flavour == Flavour::MySql;
    if mysql && on("gtid_mode") {
        options
            .extend(["gtid-mode", "enforce-gtid-consistency"].map(|name| format!("--{name}=ON")));
    }
    Ok(Some(Seeding {
        of,
        remove: mysql.then(|| "auto.cnf".to_owned()).into_iter().collect(),
        start_options: options,
        statements: statements(sources, &abilities),
        notes: notes(sources, &abilities),
    }))
}

/// The server that was backed up, as a source.
fn of_itself(
    own: &Coordinates,
    settings: &BTreeMap<String, String>,
    host: &str,
    has_gtids: bool,
) -> SourceCoordinates {
    SourceCoordinates {
        channel: String::new(),
        host: host.to_owned(),
        port: settings.get("port").and_then(|port| port.parse().ok()),
        user: USER.to_owned(),
        positioning: if has_gtids { "gtid" } else { "file" }.to_owned(),
        binlog_file: own.binlog_file.clone(),
        binlog_position: own.binlog_position,
        gtid: own.gtid.clone(),
        tls: false,
        public_key: false,
    }
}

fn statements(sources: &[SourceCoordinates], abilities: &Abilities) -> Vec<String> {
    let mut all = Vec::new();
    let word = word(abilities);
    let mariadb = abilities.show_all_replicas_status;
    if mariadb {
        let each = sources
            .iter()
            .map(|source| format!("RESET SLAVE {} ALL;", quote(&source.channel)));
        all.extend(each);
        let gtid = sources
            .iter()
            .find_map(|source| source.gtid.as_ref().filter(|_| source.goes_by_gtid()));
        if let Some(gtid) = gtid {
            all.push(format!("SET GLOBAL gtid_slave_pos = {};", quote(gtid)));
        }
    } else {
        all.push(format!("RESET {word} ALL;"));
    }
    for source in sources.iter().filter(|source| source.is_known()) {
        all.push(change_source(source, abilities));
        let channel = quote(&source.channel);
        all.push(if mariadb {
            format!("START SLAVE {channel};")
        } else {
            format!("START {word} FOR CHANNEL {channel};")
        });
    }
    all
}

fn change_source(source: &SourceCoordinates, abilities: &Abilities) -> String {
    let mariadb = abilities.show_all_replicas_status;
    let prefix = if abilities.change_replication_source {
        "SOURCE"
    } else {
        "MASTER"
    };
    let mut parts = vec![format!("{prefix}_HOST={}", quote(&source.host))];
    let port = source.port.unwrap_or(3306);
    parts.push(format!("{prefix}_PORT={port}"));
    parts.push(format!("{prefix}_USER={}", quote(&source.user)));
    parts.push(format!("{prefix}_PASSWORD={}", quote(PASSWORD)));
    if source.tls {
        parts.push(format!("{prefix}_SSL=1"));
    }
    if source.public_key {
        parts.push(if abilities.change_replication_source {
            "GET_SOURCE_PUBLIC_KEY=1".to_owned()
        } else {
            "GET_MASTER_PUBLIC_KEY=1".to_owned()
        });
    }
    match (&source.binlog_file, source.binlog_position) {
        _ if source.goes_by_gtid() && mariadb => parts.push("MASTER_USE_GTID=slave_pos".to_owned()),
        _ if source.goes_by_gtid() => parts.push(format!("{prefix}_AUTO_POSITION=1")),
        (Some(file), Some(position)) => {
            parts.push(format!("{prefix}_LOG_FILE={}", quote(file)));
            parts.push(format!("{prefix}_LOG_POS={position}"));
            // What MariaDB would take instead since 10.10.
            parts.extend(mariadb.then(|| "MASTER_USE_GTID=no".to_owned()));
        }
        _ => {}
    }
    let parts = parts.join(", ");
    let channel = quote(&source.channel);
    if mariadb {
        format!("CHANGE MASTER {channel} TO {parts};")
    } else if abilities.change_replication_source {
        format!("CHANGE REPLICATION SOURCE TO {parts} FOR CHANNEL {channel};")
    } else {
        format!("CHANGE MASTER TO {parts} FOR CHANNEL {channel};")
    }
}

fn notes(sources: &[SourceCoordinates], abilities: &Abilities) -> Vec<String> {
    let mut notes = vec![
        "without --skip-slave-start it would start replicating at once, with the settings of the \
         server that was backed up"
            .to_owned(),
    ];
    if abilities.flavour == Flavour::MySql {
        notes.push(
            "auto.cnf holds the old server's UUID: two servers with the same UUID cannot \
             replicate from the same source"
                .to_owned(),
        );
    }
    for source in sources.iter().filter(|source| !source.is_known()) {
        notes.push(format!(
            "channel '{}': its position in the binary log of {} is not known (back up with \
             --stop-applier)",
            source.channel, source.host
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(positioning: &str) -> SourceCoordinates {
        SourceCoordinates {
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
        }
    }

    fn said(version: &str, sources: &[SourceCoordinates], own: &Coordinates) -> Vec<String> {
        let settings = [("version", version), ("gtid_mode", "ON"), ("port", "3307")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let seeding = seeding(sources, own, &settings.into(), "db2").unwrap();
        seeding.map_or(Vec::new(), |seeding| seeding.statements)
    }

    #[test]
    fn each_server_is_reported_in_its_words() {
        let none = Coordinates::default();
        assert_eq!(
            said("10.11.19-MariaDB", &[source("file")], &none),
            [
                "RESET SLAVE '' ALL;",
                "CHANGE MASTER '' TO MASTER_HOST='db1', MASTER_PORT=3306, MASTER_USER='repl', \
                 MASTER_PASSWORD='<password>', MASTER_LOG_FILE='bin.000003', MASTER_LOG_POS=597, \
                 MASTER_USE_GTID=no;",
                "START SLAVE '';"
            ]
        );
        assert_eq!(
            said("10.11.19-MariaDB", &[source("gtid")], &none)[1],
            "SET GLOBAL gtid_slave_pos = '0-1-28';"
        );
        assert_eq!(
            said("9.7.4", &[source("gtid")], &none),
            [
                "RESET REPLICA ALL;",
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='db1', SOURCE_PORT=3306, \
                 SOURCE_USER='repl', SOURCE_PASSWORD='<password>', SOURCE_AUTO_POSITION=1 \
                 FOR CHANNEL '';",
                "START REPLICA FOR CHANNEL '';"
            ]
        );
    }

    #[test]
    fn a_source_seeds_its_own_replicas() {
        let own = Coordinates {
            binlog_file: Some("b.000001".to_owned()),
            binlog_position: Some(4),
            gtid: Some("0-7-9".to_owned()),
        };
        let said = said("10.11.19-MariaDB", &[], &own);
        assert_eq!(said[1], "SET GLOBAL gtid_slave_pos = '0-7-9';");
        assert!(said[2].contains("MASTER_HOST='db2', MASTER_PORT=3307"));
    }

    #[test]
    fn nothing_is_said_of_what_is_not_known() {
        let mut unknown = source("file");
        unknown.binlog_file = None;
        assert!(said("5.7.22", &[unknown], &Coordinates::default()).is_empty());
        assert!(
            said("5.7.22", &[], &Coordinates::default()).len() > 1,
            "GTIDs"
        );
    }
}
