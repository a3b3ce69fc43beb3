//! The statements, filled in for a server and a database.

use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::quote_name;
use serde::Serialize;

/// How the comment of each of our routines begins.
pub(crate) const MARK: &str = "evenkeel queue ";

/// What a routine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RoutineKind {
    /// It is called.
    Procedure,
    /// It is part of an expression.
    Function,
}

impl RoutineKind {
    /// Returns what statements call it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Procedure => "PROCEDURE",
            Self::Function => "FUNCTION",
        }
    }
}

/// One routine, before it is filled in.
pub(crate) struct Routine {
    /// Its name.
    pub(crate) name: &'static str,
    text: &'static str,
}

macro_rules! routines {
    ($($name:literal),* $(,)?) => {
        [$(Routine {
            name: $name,
            text: include_str!(concat!("../../../sql/", $name, ".sql")),
        }),*]
    };
}

/// All of them. None is needed by one before it when it is made.
pub(crate) const ROUTINES: [Routine; 31] = routines![
    "queue_low",
    "queue_high",
    "evenkeel_queue_inside",
    "evenkeel_queue_outside",
    "evenkeel_queue_owner",
    "evenkeel_queue_tidy",
    "evenkeel_queue_release",
    "evenkeel_queue_consume",
    "evenkeel_queue_check",
    "evenkeel_queue_find",
    "evenkeel_queue_ask",
    "evenkeel_queue_take",
    "evenkeel_queue_stand",
    "evenkeel_queue_wait",
    "evenkeel_queue_name",
    "evenkeel_queue_known",
    "evenkeel_queue_show",
    "queue_wait",
    "queue_wait_n",
    "queue_end",
    "queue_abort",
    "queue_rowid",
    "queue_set_srcid",
    "queue_insert_from",
    "queue_create",
    "queue_drop",
    "queue_rename",
    "queue_alter",
    "queue_truncate",
    "queue_compact",
    "queue_stats",
];

/// The tables that the routines keep, and what makes them.
pub(crate) const TABLES: [(&str, &str); 2] = [
    (
        "evenkeel_queues",
        "(name VARCHAR(64) NOT NULL PRIMARY KEY, base VARCHAR(64) NOT NULL, tag BIGINT UNSIGNED NOT NULL UNIQUE) \
         ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT='evenkeel queue: their tables'",
    ),
    (
        "evenkeel_queue_sources",
        "(tag BIGINT UNSIGNED NOT NULL, slot TINYINT UNSIGNED NOT NULL, last_id BIGINT, PRIMARY KEY (tag, slot)) \
         ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin COMMENT='evenkeel queue: what was relayed last'",
    ),
];

impl Routine {
    /// The text for a server that can do this, with no database and no stamp yet.
    fn for_server(&self, abilities: &Abilities) -> String {
        let (skip, impatient, patient) = match abilities.skip_locked {
            true => (" SKIP LOCKED", "", ""),
            // The least that there is: a second.
            false => (
                "",
                "SET @evq_patience = @@SESSION.innodb_lock_wait_timeout; \
                 SET SESSION innodb_lock_wait_timeout = 1;",
                "SET SESSION innodb_lock_wait_timeout = @evq_patience;",
            ),
        };
        self.text
            .replace("{skip}", skip)
            .replace("{impatient}", impatient)
            .replace("{patient}", patient)
    }

    /// The statement that makes it in a database.
    pub(crate) fn statement(&self, abilities: &Abilities, database: &str, stamp: &str) -> String {
        // The name last: it may hold anything.
        self.for_server(abilities)
            .replace("{stamp}", stamp)
            .replace("{db}", &quote_name(database))
    }
}

/// The comment of each routine for a server: it changes when one of them does.
pub(crate) fn stamp(abilities: &Abilities) -> String {
    let mut hasher = blake3::Hasher::new();
    for routine in &ROUTINES {
        hasher.update(routine.for_server(abilities).as_bytes());
    }
    format!("{MARK}{}", &hasher.finalize().to_hex()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_filled_in() {
        let old = Abilities::of_version("5.7.22", "").unwrap();
        let new = Abilities::of_version("8.0.15", "").unwrap();
        assert_ne!(stamp(&old), stamp(&new));
        for routine in &ROUTINES {
            for abilities in [&old, &new] {
                let sql = routine.statement(abilities, "a`b", "stamp");
                assert!(sql.contains(&format!(" `a``b`.{}(", routine.name)), "{sql}");
                assert!(
                    sql.contains("SQL SECURITY INVOKER COMMENT 'stamp'"),
                    "{sql}"
                );
                assert!(!sql.contains('{'), "{sql}");
            }
        }
        // Cargo runs a test in its package's directory.
        let files = std::fs::read_dir("../sql");
        assert_eq!(files.unwrap().count(), ROUTINES.len());
    }
}
