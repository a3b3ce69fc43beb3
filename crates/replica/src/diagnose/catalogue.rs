//! The failures that have a name: what each is, who may repair it, and what must not be tried.

use serde::Serialize;

/// Who may repair a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// It repairs itself.
    Wait,
    /// Repairing it can do no harm.
    Automatic,
    /// A person looks at the plan first.
    Planned,
    /// Only a person can know what is right.
    Never,
}

impl Class {
    /// Returns the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Automatic => "automatic",
            Self::Planned => "planned",
            Self::Never => "never",
        }
    }
}

/// A failure of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
    /// The source updated a row that is not here.
    MissingRowUpdated,
    /// The source deleted a row that is not here.
    MissingRowDeleted,
    /// The source inserted a row whose primary key is taken here.
    KeyTaken,
    /// The source wrote a value that another row has here, in another unique key.
    UniqueValueTaken,
    /// A row is missing in a table that has no unique key.
    MissingRowWithoutKey,
    /// A table or column is not as it is at the source.
    DefinitionDiffers,
    /// The applier gave up waiting for a lock.
    LockWait,
    /// The source does not answer.
    SourceUnreachable,
    /// The source does not let the replica in.
    LoginRefused,
    /// The source does not have the binary log any more that comes next.
    LogPurged,
    /// The source has another history than the replica.
    HistoryDiffers,
    /// A server that could stand in for the source lacks transactions in its binary log.
    DonorIncomplete,
    /// The replica has transactions that its source never had.
    OwnTransactions,
    /// The position by GTID is ahead of what was applied.
    GtidPositionAhead,
    /// What was fetched and not applied would be deleted by a restart of both threads.
    FetchedLogsAtRisk,
    /// The relay log cannot be read.
    RelayLogDamaged,
    /// What the applier is about to apply was applied before.
    AppliedAlready,
    /// The relay log is not where the replica looks for it.
    RelayLogGone,
    /// Parallel workers left gaps between applied transactions.
    AppliedWithGaps,
    /// A disk is full.
    DiskFull,
    /// Two servers have the same number.
    ServerIdTwice,
    /// The replica has the number of its source.
    ServerIdOfSource,
    /// Rows differ, and nothing says so.
    RowsDiffer,
    /// A secondary index is damaged.
    IndexDamaged,
    /// A table is damaged.
    TableDamaged,
    /// A repair was interrupted.
    RepairInterrupted,
    /// The source accepts connections and says nothing.
    SourceFrozen,
    /// Another session blocks the applier.
    ApplierBlocked,
    /// Somebody stopped it.
    Stopped,
    /// It stopped with an error that has no name here.
    OtherError,
    /// The server does not answer.
    NoAnswer,
}

/// What is known about a failure.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Who may repair it.
    pub class: Class,
    /// What it is.
    pub what: &'static str,
    /// What must not be tried, and why; empty for nothing.
    pub avoid: &'static str,
}

impl Failure {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns whether it may be over in a moment by itself.
    #[must_use]
    pub fn is_momentary(self) -> bool {
        matches!(
            self,
            Self::SourceUnreachable | Self::SourceFrozen | Self::ApplierBlocked | Self::NoAnswer
        )
    }

    /// Returns what is known about it.
    #[must_use]
    pub fn entry(self) -> Entry {
        match self {
            Self::MissingRowUpdated
            | Self::MissingRowDeleted
            | Self::KeyTaken
            | Self::UniqueValueTaken
            | Self::MissingRowWithoutKey
            | Self::DefinitionDiffers
            | Self::RowsDiffer
            | Self::IndexDamaged
            | Self::TableDamaged => self.of_data(),
            Self::OwnTransactions
            | Self::GtidPositionAhead
            | Self::FetchedLogsAtRisk
            | Self::AppliedAlready
            | Self::AppliedWithGaps => self.of_positions(),
            Self::SourceUnreachable
            | Self::LoginRefused
            | Self::LogPurged
            | Self::HistoryDiffers
            | Self::DonorIncomplete
            | Self::ServerIdTwice
            | Self::ServerIdOfSource
            | Self::SourceFrozen => self.of_sources(),
            _ => self.of_progress(),
        }
    }

    fn of_data(self) -> Entry {
        match self {
            Self::MissingRowUpdated => Entry {
                name: "missing-row-updated",
                class: Class::Planned,
                what: "the source updated a row that this replica does not have",
                avoid: "Skipping drops the whole transaction, with its other rows. \
                        slave_exec_mode=IDEMPOTENT leaves the row missing, with every status green.",
            },
            Self::MissingRowDeleted => Entry {
                name: "missing-row-deleted",
                class: Class::Planned,
                what: "the source deleted a row that this replica does not have",
                avoid: "Skipping drops the whole transaction, with its other rows.",
            },
            Self::KeyTaken => Entry {
                name: "key-taken",
                class: Class::Planned,
                what: "the source inserted a row whose primary key another row has here",
                avoid: "Skipping, or an empty transaction with the same GTID, keeps the wrong row and drops the \
                        transaction's other rows, with every status green.",
            },
            Self::UniqueValueTaken => Entry {
                name: "unique-value-taken",
                class: Class::Planned,
                what: "the source wrote a value that another row has here, in a unique key",
                avoid: "slave_exec_mode=IDEMPOTENT deletes the other row, and tells nobody.",
            },
            Self::MissingRowWithoutKey => Entry {
                name: "missing-row-without-key",
                class: Class::Never,
                what: "the source changed a row that this replica does not have, in a table without a unique key",
                avoid: "Among equal rows nobody can tell which one is meant: do not insert or delete by hand.",
            },
            Self::DefinitionDiffers => Entry {
                name: "definition-differs",
                class: Class::Never,
                what: "a table or column is not as it is at the source",
                avoid: "An empty table in the place of a missing one lacks its rows for ever, with every status green. \
                        CREATE TABLE over a table that exists replaces it on MariaDB \
                        (slave_ddl_exec_mode=IDEMPOTENT): its data are lost.",
            },
            Self::RowsDiffer => Entry {
                name: "rows-differ",
                class: Class::Planned,
                what: "rows differ from the source's, and no status says so",
                avoid: "Threads that run and a lag of 0 say nothing about rows. Statements on the source repair nothing: \
                        by rows, what does not change there is not logged. See 'evenkeel replica repair'.",
            },
            Self::IndexDamaged => Entry {
                name: "index-damaged",
                class: Class::Planned,
                what: "a secondary index is damaged; the rows themselves can be read",
                avoid: "DROP INDEX and ADD INDEX in one ALTER TABLE do nothing: the index stays damaged.",
            },
            _ => Entry {
                name: "table-damaged",
                class: Class::Never,
                what: "a table is damaged",
                avoid: "Do not dump the table and load it again: rows that cannot be read are lost.",
            },
        }
    }

    fn of_sources(self) -> Entry {
        match self {
            Self::SourceUnreachable => Entry {
                name: "source-unreachable",
                class: Class::Wait,
                what: "the source cannot be reached; the replica tries again by itself",
                avoid: "Do not promote a replica because one observer cannot reach the source.",
            },
            Self::LoginRefused => Entry {
                name: "login-refused",
                class: Class::Planned,
                what: "the source does not let the replica in",
                avoid: "Waiting is not enough once the IO thread has stopped (MySQL 8.4 and later give up after 10 tries).",
            },
            Self::LogPurged => Entry {
                name: "log-purged",
                class: Class::Planned,
                what: "the source does not have the binary log any more that this replica needs next",
                avoid: "Do not start at the source's first log: what was purged would be missing for ever. \
                        The SQL thread still says Yes.",
            },
            Self::HistoryDiffers => Entry {
                name: "history-differs",
                class: Class::Never,
                what: "the source does not have what this replica has: it was reset, replaced, or lost its end",
                avoid: "Do not reset the replica's GTIDs: only a person knows which history is true.",
            },
            Self::DonorIncomplete => Entry {
                name: "donor-incomplete",
                class: Class::Never,
                what: "this server's binary log lacks transactions: it cannot stand in for the source",
                avoid: "A replica that continues there stays green without the missing transactions.",
            },
            Self::ServerIdTwice => Entry {
                name: "server-id-twice",
                class: Class::Never,
                what: "two servers have the same number (server_id) or UUID: they take each other's place at the source",
                avoid: "It looks like a network that fails now and then: no status has an error.",
            },
            Self::ServerIdOfSource => Entry {
                name: "server-id-of-source",
                class: Class::Never,
                what: "the replica has the same number (server_id) or UUID as its source",
                avoid: "replicate_same_server_id would make it apply its own transactions again.",
            },
            _ => Entry {
                name: "source-frozen",
                class: Class::Wait,
                what: "the source accepts connections and says nothing",
                avoid: "For its first half minute every status is green with a lag of 0. Do not promote a replica: \
                        the source may continue at any moment.",
            },
        }
    }

    fn of_positions(self) -> Entry {
        match self {
            Self::OwnTransactions => Entry {
                name: "own-transactions",
                class: Class::Never,
                what: "this replica has transactions that its source never had",
                avoid: "Empty transactions at the source, or a reset of GTIDs, hide the difference between the rows.",
            },
            Self::GtidPositionAhead => Entry {
                name: "gtid-position-ahead",
                class: Class::Planned,
                what: "gtid_slave_pos is ahead of what was applied, because the IO thread of a replica by file and \
                       position was restarted",
                avoid: "Switching to GTID now skips transactions, with every status green.",
            },
            Self::FetchedLogsAtRisk => Entry {
                name: "fetched-logs-at-risk",
                class: Class::Automatic,
                what: "transactions were fetched and not applied, and their source is gone",
                avoid: "On MariaDB with GTIDs, a start of either thread while both stand deletes the relay logs. \
                        While the IO thread tries to connect, start the SQL thread only.",
            },
            Self::AppliedAlready => Entry {
                name: "applied-already",
                class: Class::Planned,
                what: "what the SQL thread is about to apply was applied before: its position is older than the data",
                avoid: "Do not delete the rows in the way: they are right. Updates would be applied twice, unnoticed.",
            },
            _ => Entry {
                name: "applied-with-gaps",
                class: Class::Automatic,
                what: "parallel workers left gaps between applied transactions",
                avoid: "Do not use its position for another replica: what is behind the gaps would be applied twice.",
            },
        }
    }

    fn of_progress(self) -> Entry {
        match self {
            Self::LockWait => Entry {
                name: "lock-wait",
                class: Class::Automatic,
                what: "the SQL thread gave up waiting for a lock that another session holds",
                avoid: "",
            },
            Self::RelayLogDamaged => Entry {
                name: "relay-log-damaged",
                class: Class::Automatic,
                what: "the relay log cannot be read",
                avoid: "A plain restart reads the same relay log again, except on MariaDB with GTIDs.",
            },
            Self::RelayLogGone => Entry {
                name: "relay-log-gone",
                class: Class::Planned,
                what: "the relay log is not where the replica looks for it; no status has an error",
                avoid: "No error number does not mean that it is well: START fails.",
            },
            Self::DiskFull => Entry {
                name: "disk-full",
                class: Class::Planned,
                what: "a thread waits until a disk has space again",
                avoid: "SHOW REPLICA STATUS, SHOW GLOBAL STATUS and STOP REPLICA hang until then: each try leaves a session.",
            },
            Self::RepairInterrupted => Entry {
                name: "repair-interrupted",
                class: Class::Automatic,
                what: "a repair was interrupted",
                avoid: "",
            },
            Self::ApplierBlocked => Entry {
                name: "sql-thread-blocked",
                class: Class::Planned,
                what: "the SQL thread waits for a lock that another session holds",
                avoid: "It is no slow disk. The lag grows until that session ends.",
            },
            Self::Stopped => Entry {
                name: "stopped",
                class: Class::Planned,
                what: "replication was stopped, without an error",
                avoid: "Somebody may have stopped it on purpose: for a backup, or for maintenance.",
            },
            Self::NoAnswer => Entry {
                name: "no-answer",
                class: Class::Never,
                what: "this server does not answer",
                avoid: "It may be recovering from a crash: that takes minutes. Do not replace it meanwhile.",
            },
            _ => Entry {
                name: "other-error",
                class: Class::Never,
                what: "replication stopped with an error",
                avoid: "Do not skip what fails before you know what it would have changed.",
            },
        }
    }
}
