//! Decides how the image becomes point-in-time consistent: a pure function of what the server and the snapshot
//! can do, so that every combination is a unit test.

use crate::backup::request::LockWish;
use evenkeel_op::{Error, Result};
use evenkeel_snapshot::Atomicity;
use std::collections::BTreeMap;

/// What decides.
#[derive(Debug, Clone, Copy)]
pub(in crate::backup) struct Facts {
    /// A server runs on the data directory.
    pub(in crate::backup) running: bool,
    /// What the snapshot provider is atomic over.
    pub(in crate::backup) atomicity: Atomicity,
    /// BACKUP STAGE exists.
    pub(in crate::backup) backup_stage: bool,
    /// LOCK INSTANCE FOR BACKUP exists.
    pub(in crate::backup) instance_lock: bool,
    /// The redo log's layout is one that a checkpoint can be spliced into.
    pub(in crate::backup) spliceable: bool,
    /// There are tables outside the system schemas whose engine has no transactions.
    pub(in crate::backup) nontransactional: bool,
    /// Some of them are Aria's.
    pub(in crate::backup) aria: bool,
    /// What is on disk of a commit that the server has acknowledged.
    pub(in crate::backup) durability: Durability,
    /// The user wants the server process stopped.
    pub(in crate::backup) stop: bool,
    /// The user's wish for a lock.
    pub(in crate::backup) lock: LockWish,
}

/// What is on disk of a commit that the server has acknowledged, where redo log and binary log have to
/// tell of the same ones: else recovery takes the binary log's word for what the redo log lacks, and
/// GTIDs and coordinates lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backup) enum Durability {
    /// Both logs are synced before, or there is no binary log.
    Synced,
    /// Both are written, at least one of them is not synced.
    Written,
    /// The redo log is still in the server's memory.
    Buffered,
}

impl Durability {
    /// Reads it from a server's variables.
    pub(in crate::backup) fn of(settings: &BTreeMap<String, String>) -> Self {
        let says = |name: &str| settings.get(name).map_or("", String::as_str);
        if !matches!(says("log_bin"), "ON" | "1") {
            return Self::Synced;
        }
        match says("innodb_flush_log_at_trx_commit") {
            "0" => Self::Buffered,
            // 3 is MariaDB's: at prepare too.
            "1" | "3" if says("sync_binlog") == "1" => Self::Synced,
            _ => Self::Written,
        }
    }
}

/// How files are brought to one point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backup) enum Method {
    /// Nothing writes: the server is stopped.
    Still,
    /// The snapshot is the point in time.
    Atomic,
    /// Data files are cloned while the server writes, the logs in the moment, and the checkpoint
    /// from before the first clone is put over the cloned log.
    Splice,
    /// The server process is stopped while everything is cloned.
    Pause,
}

/// What is paused for the moment in which coordinates and logs are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backup) enum Moment {
    /// Nothing needs to: the snapshot is atomic, coordinates are read from the image.
    None,
    /// BACKUP STAGE BLOCK_COMMIT: commits wait.
    BlockCommit,
    /// The same, and SIGSTOP of the server process while files are cloned.
    BlockCommitAndStop,
    /// FLUSH TABLES WITH READ LOCK: writes wait, and it waits for running statements.
    GlobalRead,
    /// SIGSTOP of the server process.
    Stop,
}

impl Moment {
    /// Whether the server is asked to let something wait.
    pub(in crate::backup) fn is_locked(self) -> bool {
        matches!(
            self,
            Self::BlockCommit | Self::BlockCommitAndStop | Self::GlobalRead
        )
    }

    /// Whether the server's process is stopped.
    pub(in crate::backup) fn is_stopped(self) -> bool {
        matches!(self, Self::Stop | Self::BlockCommitAndStop)
    }
}

/// How, and what is paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::backup) struct Choice {
    pub(in crate::backup) method: Method,
    pub(in crate::backup) moment: Moment,
}

/// Chooses the method that disturbs least among those that are sound.
pub(in crate::backup) fn choose(facts: Facts) -> Result<Choice> {
    if !facts.running || facts.atomicity == Atomicity::Stopped {
        return still(facts);
    }
    let method = match facts.atomicity {
        Atomicity::Whole | Atomicity::Synced => Method::Atomic,
        // Without a lock that stops DDL, files could be renamed between two clones.
        _ if facts.stop || !facts.spliceable || !(facts.backup_stage || facts.instance_lock) => {
            Method::Pause
        }
        _ => Method::Splice,
    };
    // Its flush goes from file to file: one log would have what the other does not have yet.
    let drifts = facts.atomicity == Atomicity::Synced && facts.durability != Durability::Synced;
    // Where there is BACKUP STAGE, it is what a global read lock is made of as well.
    let aria_writes_on = facts.aria && facts.backup_stage;
    let moment = match (facts.lock, method) {
        // Its statements write pages until they commit: data and log that are cloned one after the other
        // would be of two moments.
        (LockWish::Auto | LockWish::GlobalRead, Method::Splice) if aria_writes_on => {
            Moment::BlockCommitAndStop
        }
        (LockWish::GlobalRead, _) => Moment::GlobalRead,
        (LockWish::None, Method::Splice) => {
            return Err(Error::usage("a splice needs a lock that stops DDL")
                .hint("remove --lock, or add --stop"));
        }
        (LockWish::None, _) if drifts => Moment::Stop,
        (LockWish::None, _) => Moment::None,
        (LockWish::Auto, _) if facts.backup_stage => Moment::BlockCommit,
        // Tables without transactions are only whole on disk when nothing writes to them.
        (LockWish::Auto, _) if facts.nontransactional => Moment::GlobalRead,
        // No stop of the process brings to disk what is in its memory.
        (LockWish::Auto, _) if facts.durability == Durability::Buffered => Moment::GlobalRead,
        (LockWish::Auto, Method::Splice) => Moment::Stop,
        (LockWish::Auto, _) if drifts => Moment::Stop,
        (LockWish::Auto, _) => Moment::None,
    };
    Ok(Choice { method, moment })
}

/// Volumes have no server: each is from the point in time of its snapshot.
pub(in crate::backup) fn of_volumes(atomicity: Atomicity) -> Choice {
    Choice {
        method: match atomicity {
            Atomicity::Stopped => Method::Still,
            Atomicity::Whole | Atomicity::Synced | Atomicity::PerFile => Method::Atomic,
        },
        moment: Moment::None,
    }
}

fn still(facts: Facts) -> Result<Choice> {
    if facts.running {
        return Err(Error::refused("a server runs on this data directory")
            .hint("stop it, or choose another --snapshot"));
    }
    Ok(Choice {
        method: Method::Still,
        moment: Moment::None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIADB_XFS: Facts = Facts {
        running: true,
        atomicity: Atomicity::PerFile,
        backup_stage: true,
        instance_lock: false,
        spliceable: true,
        nontransactional: false,
        aria: false,
        durability: Durability::Synced,
        stop: false,
        lock: LockWish::Auto,
    };

    fn chosen(facts: Facts) -> (Method, Moment) {
        let choice = choose(facts).unwrap();
        (choice.method, choice.moment)
    }

    #[test]
    fn mariadb_on_xfs_splices_under_block_commit() {
        assert_eq!(chosen(MARIADB_XFS), (Method::Splice, Moment::BlockCommit));
        assert_eq!(
            chosen(Facts {
                nontransactional: true,
                ..MARIADB_XFS
            }),
            (Method::Splice, Moment::BlockCommit)
        );
    }

    #[test]
    fn aria_stops_the_process_where_files_are_cloned_one_by_one() {
        let aria = Facts {
            nontransactional: true,
            aria: true,
            ..MARIADB_XFS
        };
        for lock in [LockWish::Auto, LockWish::GlobalRead] {
            let chosen = chosen(Facts { lock, ..aria });
            assert_eq!(chosen, (Method::Splice, Moment::BlockCommitAndStop));
        }
        let atomic = Facts {
            atomicity: Atomicity::Whole,
            ..aria
        };
        assert_eq!(chosen(atomic), (Method::Atomic, Moment::BlockCommit));
        // It has no BACKUP STAGE, and the process stands for all of the clones.
        let old = Facts {
            backup_stage: false,
            ..aria
        };
        assert_eq!(chosen(old), (Method::Pause, Moment::GlobalRead));
    }

    #[test]
    fn mysql8_stops_only_for_the_logs_unless_myisam_is_used() {
        let mysql8 = Facts {
            backup_stage: false,
            instance_lock: true,
            ..MARIADB_XFS
        };
        assert_eq!(chosen(mysql8), (Method::Splice, Moment::Stop));
        let with_myisam = Facts {
            nontransactional: true,
            ..mysql8
        };
        assert_eq!(chosen(with_myisam), (Method::Splice, Moment::GlobalRead));
    }

    #[test]
    fn mysql57_cannot_stop_ddl_so_it_is_paused() {
        let mysql57 = Facts {
            backup_stage: false,
            ..MARIADB_XFS
        };
        assert_eq!(chosen(mysql57), (Method::Pause, Moment::None));
        assert_eq!(
            chosen(Facts {
                nontransactional: true,
                ..mysql57
            })
            .1,
            Moment::GlobalRead
        );
    }

    #[test]
    fn an_atomic_snapshot_needs_no_stop() {
        let btrfs = Facts {
            atomicity: Atomicity::Whole,
            ..MARIADB_XFS
        };
        assert_eq!(chosen(btrfs), (Method::Atomic, Moment::BlockCommit));
        let mysql = Facts {
            backup_stage: false,
            instance_lock: true,
            ..btrfs
        };
        assert_eq!(chosen(mysql), (Method::Atomic, Moment::None));
        assert_eq!(
            chosen(Facts {
                lock: LockWish::None,
                ..btrfs
            }),
            (Method::Atomic, Moment::None)
        );
    }

    #[test]
    fn logs_that_are_not_synced_need_a_stop_where_only_synced_bytes_are_of_one_instant() {
        let mysql = Facts {
            backup_stage: false,
            instance_lock: true,
            atomicity: Atomicity::Synced,
            ..MARIADB_XFS
        };
        assert_eq!(chosen(mysql), (Method::Atomic, Moment::None));
        let written = Facts {
            durability: Durability::Written,
            ..mysql
        };
        assert_eq!(chosen(written), (Method::Atomic, Moment::Stop));
        let unlocked = Facts {
            lock: LockWish::None,
            ..written
        };
        assert_eq!(chosen(unlocked), (Method::Atomic, Moment::Stop));
        let whole = Facts {
            atomicity: Atomicity::Whole,
            ..written
        };
        assert_eq!(chosen(whole), (Method::Atomic, Moment::None));
        // Commits wait, so both logs are at rest.
        let mariadb = Facts {
            backup_stage: true,
            ..written
        };
        assert_eq!(chosen(mariadb), (Method::Atomic, Moment::BlockCommit));
    }

    #[test]
    fn redo_in_memory_is_flushed_under_a_lock() {
        for atomicity in [Atomicity::Whole, Atomicity::Synced, Atomicity::PerFile] {
            let mysql = Facts {
                backup_stage: false,
                instance_lock: true,
                durability: Durability::Buffered,
                atomicity,
                ..MARIADB_XFS
            };
            assert_eq!(chosen(mysql).1, Moment::GlobalRead, "{atomicity:?}");
        }
    }

    #[test]
    fn durability_is_that_of_both_logs() {
        let of = |log_bin: &str, redo: &str, binlog: &str| {
            let pairs = [
                ("log_bin", log_bin),
                ("innodb_flush_log_at_trx_commit", redo),
                ("sync_binlog", binlog),
            ];
            let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
            Durability::of(&BTreeMap::from(pairs))
        };
        assert_eq!(of("ON", "1", "1"), Durability::Synced);
        assert_eq!(of("ON", "2", "1"), Durability::Written);
        assert_eq!(of("ON", "1", "0"), Durability::Written);
        assert_eq!(of("ON", "0", "1"), Durability::Buffered);
        assert_eq!(of("OFF", "0", "0"), Durability::Synced);
    }

    #[test]
    fn what_is_not_sound_is_refused() {
        assert!(
            choose(Facts {
                lock: LockWish::None,
                ..MARIADB_XFS
            })
            .is_err()
        );
        assert!(
            choose(Facts {
                atomicity: Atomicity::Stopped,
                ..MARIADB_XFS
            })
            .is_err()
        );
        let stopped = Facts {
            running: false,
            ..MARIADB_XFS
        };
        assert_eq!(chosen(stopped), (Method::Still, Moment::None));
    }
}
