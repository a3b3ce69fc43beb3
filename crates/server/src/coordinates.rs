//! Where in the binary log a server is.

use crate::abilities::{Abilities, GtidKind};
use crate::connect::Session;
use evenkeel_op::Result;
use serde::{Deserialize, Serialize};

/// A binary log position and the GTIDs executed up to it; all absent when the log is off.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coordinates {
    /// File name without directory: `binlog.000042`.
    pub binlog_file: Option<String>,
    /// Byte position in it.
    pub binlog_position: Option<u64>,
    /// MariaDB: `0-1-99`. MySQL: `uuid:1-99`. Without white space.
    pub gtid: Option<String>,
}

impl Coordinates {
    /// Asks the server. The answer holds for an image only if nothing commits meanwhile.
    pub fn read(session: &mut Session, abilities: &Abilities) -> Result<Self> {
        let statement = if abilities.show_binary_log_status {
            "SHOW BINARY LOG STATUS"
        } else {
            "SHOW MASTER STATUS"
        };
        let Some(row) = session.one(statement)? else {
            return Ok(Self::default());
        };
        let gtid = match abilities.gtid {
            GtidKind::None => None,
            GtidKind::MariaDb => session.value("SELECT @@gtid_binlog_pos")?,
            GtidKind::MySql => session.value("SELECT @@global.gtid_executed")?,
        };
        let squeeze = |text: String| text.split_whitespace().collect::<String>();
        Ok(Self {
            binlog_file: row.at(0).map(str::to_owned),
            binlog_position: row.at(1).and_then(|text| text.parse().ok()),
            gtid: gtid.map(squeeze).filter(|text| !text.is_empty()),
        })
    }
}
