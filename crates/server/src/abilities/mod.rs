//! What a server can do. The only place that knows which version can do what: everything else asks
//! [`Abilities`].

mod dialect;
mod hot_copy;
mod privileges;
mod recorded;
mod start;
mod version;

pub use dialect::{Mark, TableDialect};
pub use hot_copy::HotCopyTool;
pub use privileges::{Privilege, missing_privileges};
pub use recorded::Recorded;
pub use start::StartReads;
pub use version::{Flavour, Version};

use crate::connect::Ask;
use evenkeel_op::{Context, Error, Result};

/// How a server names its place in the binary log, beyond file and position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GtidKind {
    /// It does not: MySQL with `gtid_mode=OFF`.
    None,
    /// `domain-server-sequence`.
    MariaDb,
    /// Sets of `uuid:interval`.
    MySql,
}

/// How the InnoDB redo log lies on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedoLayout {
    /// One `ib_logfile0` with the header of MariaDB 10.8 and later.
    SingleFile,
    /// `ib_logfile0` … `ib_logfileN` as a ring with the classic header.
    TwoFilesClassic,
    /// One `ib_logfile0` with the classic header: MariaDB 10.5 to 10.7.
    SingleFileOld,
    /// A directory `#innodb_redo` of `#ib_redoN` files: MySQL 8.0.30 and later.
    Directory,
}

impl RedoLayout {
    /// Returns the layout that a version of a flavour uses.
    #[must_use]
    pub fn of(flavour: Flavour, version: Version) -> Self {
        match flavour {
            Flavour::MariaDb if version >= Version::new(10, 8, 0) => Self::SingleFile,
            Flavour::MariaDb if version >= Version::new(10, 5, 0) => Self::SingleFileOld,
            Flavour::MySql if version >= Version::new(8, 0, 30) => Self::Directory,
            _ => Self::TwoFilesClassic,
        }
    }
}

/// What one server can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abilities {
    /// Whose server it is.
    pub flavour: Flavour,
    /// Its version, for showing and for recording; ask the other fields what it means.
    pub version: Version,
    /// `VERSION()` as the server gives it.
    pub version_text: String,
    /// `version_comment`: the distributor.
    pub version_comment: String,
    /// `BACKUP STAGE START … END`.
    pub backup_stage: bool,
    /// `LOCK INSTANCE FOR BACKUP`.
    pub instance_lock: bool,
    /// `FLUSH ENGINE LOGS`.
    pub flush_engine_logs: bool,
    /// `FLUSH TABLES WITH READ LOCK` waits until each open table was closed once by all who use it (a running SELECT, a
    /// session with `LOCK TABLES … READ`), and whoever opens such a table meanwhile waits for them, too: also after the
    /// request has timed out. Seen on MySQL 5.7.22, 8.0.15 and 9.7.4. Where MariaDB has `BACKUP STAGE`, it is got beside
    /// readers (seen on 10.11 and 11.8). On all of them, statements that write make it wait before it closes anything.
    pub global_lock_flushes: bool,
    /// The kind of GTID it has switched on.
    pub gtid: GtidKind,
    /// `SHOW BINARY LOG STATUS` replaces `SHOW MASTER STATUS`.
    pub show_binary_log_status: bool,
    /// `SHOW REPLICA STATUS` is understood; else `SHOW SLAVE STATUS`.
    pub show_replica_status: bool,
    /// `SHOW ALL SLAVES STATUS`: several replication sources, MariaDB's way.
    pub show_all_replicas_status: bool,
    /// By GTID, relay logs are deleted when a thread starts while both stand.
    pub gtid_start_deletes_relay_logs: bool,
    /// `STOP REPLICA`, `START REPLICA` and so on; else `SLAVE`.
    pub replica_statements: bool,
    /// `CHANGE REPLICATION SOURCE TO`; else `CHANGE MASTER TO`.
    pub change_replication_source: bool,
    /// A replica may ask its source for the key that a password is sent under, without TLS.
    pub source_public_key: bool,
    /// `CHANGE MASTER TO … MASTER_USE_GTID`: MariaDB, since 10.0.2. Else `MASTER_AUTO_POSITION`.
    pub master_use_gtid: bool,
    /// An account whose replica connects without TLS has to be made with `mysql_native_password`: MySQL before it knew
    /// `GET_SOURCE_PUBLIC_KEY` (8.0.23).
    pub native_password_for_replicas: bool,
    /// Replication channels are rows of `mysql.slave_master_info`: MySQL, since 5.6.2. MariaDB keeps them in files.
    pub channels_in_tables: bool,
    /// The server's own GTID set holds what it applied as a replica: MySQL. MariaDB has `gtid_slave_pos` beside it.
    pub own_gtids_hold_applied: bool,
    /// `gtid_mode` and `enforce_gtid_consistency`, which have to fit what is applied: MySQL, since 5.6.9.
    pub gtid_mode: bool,
    /// Parallel workers may leave transactions out that `UNTIL SQL_AFTER_MTS_GAPS` makes up for.
    pub parallel_gaps: bool,
    /// `performance_schema.log_status` gives all coordinates in one read.
    pub log_status: bool,
    /// A consistent snapshot knows its own place in the binary log: MariaDB, since 5.3.
    pub binlog_snapshot: bool,
    /// In a consistent view, a read of a range that ends at rows which the view does not see makes the next read of the
    /// same opened table, by whatever session, end after one row: MySQL 5.7 (seen on 5.7.22; not on 8.0.15). Reads in
    /// descending order do not cause it, and suffer it once.
    pub sticky_range_ends: bool,
    /// How the redo log lies on disk.
    pub redo_layout: RedoLayout,
    /// The data dictionary is InnoDB tables in `mysql.ibd`; else `.frm` files.
    pub dictionary_in_innodb: bool,
    /// The doublewrite buffer is `#ib_*.dblwr` files; else inside `ibdata1`.
    pub doublewrite_files: bool,
    /// Undo tablespaces are made and dropped with SQL.
    pub undo_tablespaces_by_sql: bool,
    /// The Aria engine is there, and system tables use it.
    pub aria: bool,
    /// `SET PERSIST` keeps variables in `mysqld-auto.cnf`.
    pub persisted_variables: bool,
    /// `innodb_directories` says where tablespaces are that moved: MySQL, since 8.0.4. Others open them at the path that
    /// the redo log names.
    pub innodb_directories: bool,
    /// `log_error_verbosity`, without which notes are not logged: MySQL, since 5.7.2.
    pub log_error_verbosity: bool,
    /// `information_schema.COLUMN_STATISTICS` lists histograms: MySQL, since 8.0.3.
    pub column_statistics: bool,
    /// `character_set_collations` says which collation a character set means: MariaDB (since 11.2.1; before that it cannot
    /// be another). Else `default_collation_for_utf8mb4` (MySQL, since 8.0.11).
    pub character_set_collations: bool,
    /// `CREATE SEQUENCE`: MariaDB, since 10.3.0.
    pub sequences: bool,
    /// `CREATE PACKAGE`: MariaDB, since 10.3.5.
    pub packages: bool,
    /// `INSTALL SONAME` takes all plugins of a library at once: MariaDB.
    pub install_soname: bool,
    /// The tool that copies its files while it runs.
    pub hot_copy_tool: HotCopyTool,
    /// How it reads the definition of a table.
    pub table_dialect: TableDialect,
    /// `SELECT … FOR UPDATE SKIP LOCKED`.
    pub skip_locked: bool,
    /// A binary log is being written.
    pub binary_log_enabled: bool,
}

impl Abilities {
    /// Asks a server what it is.
    ///
    /// Errors: those of the session; `Refused` for a version that makes no sense.
    pub fn probe(session: &mut dyn Ask) -> Result<Self> {
        let version_text = session
            .value("SELECT VERSION()")?
            .ok_or_else(|| Error::refused("the server does not report its version"))?;
        let comment = session.variable("version_comment")?.unwrap_or_default();
        let mut abilities = Self::of_version(&version_text, &comment)
            .context(|| format!("failed to find out what {} can do", session.place()))?;
        abilities.binary_log_enabled = is_on(session.variable("log_bin")?.as_deref());
        if abilities.gtid == GtidKind::MySql {
            let mode = session.variable("gtid_mode")?;
            if mode.is_none_or(|mode| mode.eq_ignore_ascii_case("OFF")) {
                abilities.gtid = GtidKind::None;
            }
        }
        Ok(abilities)
    }

    /// Returns what a version can do as far as the version alone tells: for a server that is not
    /// running. The binary log counts as off, and GTIDs as on where the flavour has them.
    ///
    /// Errors: `Refused` for a text that is no version.
    pub fn of_version(version_text: &str, version_comment: &str) -> Result<Self> {
        Ok(Self {
            version_text: version_text.to_owned(),
            version_comment: version_comment.to_owned(),
            ..Self::known(
                Flavour::of(version_text, version_comment),
                version_text.parse()?,
            )
        })
    }

    /// Returns what a version of a flavour can do, as [`Abilities::of_version`] does. Its texts are empty.
    #[must_use]
    pub fn known(flavour: Flavour, version: Version) -> Self {
        let maria = |major, minor, patch| {
            flavour == Flavour::MariaDb && version >= Version::new(major, minor, patch)
        };
        let mysql = |major, minor, patch| {
            flavour == Flavour::MySql && version >= Version::new(major, minor, patch)
        };
        Self {
            flavour,
            version,
            version_text: String::new(),
            version_comment: String::new(),
            backup_stage: maria(10, 4, 1),
            instance_lock: mysql(8, 0, 3),
            flush_engine_logs: true,
            global_lock_flushes: !maria(10, 4, 1),
            gtid: match flavour {
                Flavour::MariaDb => GtidKind::MariaDb,
                Flavour::MySql => GtidKind::MySql,
            },
            show_binary_log_status: mysql(8, 2, 0),
            show_replica_status: mysql(8, 0, 22) || maria(10, 5, 1),
            show_all_replicas_status: maria(10, 0, 0),
            gtid_start_deletes_relay_logs: maria(10, 0, 2),
            replica_statements: mysql(8, 0, 22),
            change_replication_source: mysql(8, 0, 23),
            source_public_key: mysql(8, 0, 4),
            master_use_gtid: maria(10, 0, 2),
            native_password_for_replicas: mysql(0, 0, 0) && !mysql(8, 0, 23),
            channels_in_tables: mysql(5, 6, 2),
            own_gtids_hold_applied: mysql(0, 0, 0),
            gtid_mode: mysql(5, 6, 9),
            parallel_gaps: mysql(5, 6, 6),
            log_status: mysql(8, 0, 11),
            binlog_snapshot: maria(5, 3, 0),
            sticky_range_ends: mysql(5, 7, 0) && !mysql(8, 0, 0),
            redo_layout: RedoLayout::of(flavour, version),
            dictionary_in_innodb: mysql(8, 0, 0),
            doublewrite_files: mysql(8, 0, 20),
            undo_tablespaces_by_sql: mysql(8, 0, 14),
            aria: maria(5, 1, 0),
            persisted_variables: mysql(8, 0, 0),
            innodb_directories: mysql(8, 0, 4),
            log_error_verbosity: mysql(5, 7, 2),
            column_statistics: mysql(8, 0, 3),
            character_set_collations: maria(0, 0, 0),
            sequences: maria(10, 3, 0),
            packages: maria(10, 3, 5),
            install_soname: maria(0, 0, 0),
            hot_copy_tool: HotCopyTool::of(flavour),
            table_dialect: TableDialect::of(flavour),
            skip_locked: mysql(8, 0, 1) || maria(10, 6, 0),
            binary_log_enabled: false,
        }
    }
}

impl Abilities {
    /// Returns the variable that lists the transactions which the server has executed, as far as its log says so.
    #[must_use]
    pub fn executed_gtids_variable(&self) -> &'static str {
        match self.flavour {
            Flavour::MariaDb => "gtid_binlog_state",
            Flavour::MySql => "gtid_executed",
        }
    }
}

fn is_on(value: Option<&str>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("ON") || value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Abilities {
        Abilities::of_version(text, "").unwrap()
    }

    #[test]
    fn redo_layouts_follow_the_versions() {
        for (text, layout) in [
            ("10.4.34-MariaDB", RedoLayout::TwoFilesClassic),
            ("10.5.0-MariaDB", RedoLayout::SingleFileOld),
            ("10.7.8-MariaDB", RedoLayout::SingleFileOld),
            ("10.8.1-MariaDB", RedoLayout::SingleFile),
            ("11.8.2-MariaDB", RedoLayout::SingleFile),
            ("5.7.22", RedoLayout::TwoFilesClassic),
            ("8.0.29", RedoLayout::TwoFilesClassic),
            ("8.0.30", RedoLayout::Directory),
            ("9.7.0", RedoLayout::Directory),
        ] {
            assert_eq!(of(text).redo_layout, layout, "{text}");
        }
    }

    #[test]
    fn each_server_has_one_backup_lock_at_most() {
        assert!(of("10.11.14-MariaDB-0+deb12u2").backup_stage);
        assert!(!of("10.11.14-MariaDB-0+deb12u2").instance_lock);
        assert!(of("8.0.15").instance_lock);
        assert!(!of("5.7.22-log").instance_lock && !of("5.7.22-log").backup_stage);
    }

    #[test]
    fn global_locks_flush_where_there_are_no_stages() {
        for (text, flushes) in [
            ("5.7.22-log", true),
            ("8.0.15", true),
            ("9.7.4", true),
            ("10.3.39-MariaDB", true),
            ("10.11.14-MariaDB", false),
            ("11.8.2-MariaDB", false),
        ] {
            assert_eq!(of(text).global_lock_flushes, flushes, "{text}");
        }
    }

    #[test]
    fn locked_rows_are_skipped_where_that_is_known() {
        assert!(of("8.0.15").skip_locked && of("10.11.1-MariaDB").skip_locked);
        assert!(!of("5.7.22").skip_locked && !of("10.5.9-MariaDB").skip_locked);
    }

    #[test]
    fn statements_follow_the_renaming() {
        assert!(!of("8.0.15").show_replica_status);
        assert!(of("8.4.0").show_replica_status && of("8.4.0").show_binary_log_status);
        assert!(!of("10.11.1-MariaDB").show_binary_log_status);
        assert!(of("8.4.0").replica_statements && of("8.4.0").change_replication_source);
        assert!(!of("8.0.15").replica_statements && !of("11.8.2-MariaDB").replica_statements);
    }
}
