//! What is reported about each verb: fields of its answer's JSON document, by their places there.

use serde_json::Value;

/// Metrics of one verb.
#[derive(Debug)]
pub(super) struct VerbMetrics {
    /// What each name begins with.
    pub(super) prefix: &'static str,
    /// What the run is called in the help of its metrics.
    pub(super) run: &'static str,
    /// What is reported about the last run that had an answer.
    pub(super) facts: &'static [Fact],
    /// Labels of the one metric that has words for values, by the fields of the document.
    pub(super) words: &'static [&'static str],
    /// What a run with this exit code and an answer is.
    pub(super) is_success: fn(u8) -> bool,
}

/// One metric.
#[derive(Debug)]
pub(super) struct Fact {
    pub(super) name: &'static str,
    /// Where the document has it; empty for what is reported while the run continues.
    place: &'static str,
    pub(super) help: &'static str,
}

impl Fact {
    /// Returns its value in a document: of a list, how long it is.
    pub(super) fn of(&self, document: &Value) -> Option<f64> {
        let value = document
            .pointer(self.place)
            .filter(|_| !self.place.is_empty())?;
        match value {
            Value::Array(list) => Some(list.len() as f64),
            Value::Bool(is) => Some(f64::from(u8::from(*is))),
            other => other.as_f64(),
        }
    }

    /// Whether a run that has ended says nothing of it, so that what was reported before stays.
    pub(super) fn stays(&self) -> bool {
        self.place.is_empty()
    }
}

const fn fact(name: &'static str, place: &'static str, help: &'static str) -> Fact {
    Fact { name, place, help }
}

/// When the repository last had everything that the server had sent.
pub(super) const CAUGHT_UP: &str = "caught_up_timestamp_seconds";

/// A backup counts as one wherever it made a generation.
pub(super) const BACKUP: VerbMetrics = VerbMetrics {
    prefix: "evenkeel_backup_",
    run: "run that made a generation",
    facts: &[
        fact("generation", "/generation", "The newest generation."),
        fact("files", "/files", "Files that the generation holds."),
        fact(
            "bytes_logical",
            "/bytes_logical",
            "Sum of the sizes of those files.",
        ),
        fact("bytes_read", "/bytes_read", "Bytes read from the snapshot."),
        fact(
            "bytes_changed",
            "/bytes_changed",
            "Bytes in blocks that differ from the generation before.",
        ),
        fact(
            "bytes_stored",
            "/bytes_stored",
            "Bytes added to the repository.",
        ),
        fact(
            "pages_checked",
            "/pages_checked",
            "InnoDB pages whose checksum was checked.",
        ),
        fact(
            "pages_torn",
            "/pages_torn",
            "Torn InnoDB pages of which the doublewrite buffer has a good copy.",
        ),
        fact(
            "pages_corrupt",
            "/pages_corrupt",
            "InnoDB pages that failed their checksum.",
        ),
        fact("seconds", "/seconds", "How long the backup took."),
        fact(
            "rested_s",
            "/rested_s",
            "How long reading rested for a busy server, in seconds.",
        ),
        fact(
            "lock_ms",
            "/lock_ms",
            "How long any lock was held, in milliseconds.",
        ),
        fact(
            "write_pause_ms",
            "/write_pause_ms",
            "How long commits were paused, in milliseconds.",
        ),
        fact(
            "applier_ms",
            "/applier_ms",
            "How long a replica's SQL thread was stopped, in milliseconds.",
        ),
        fact(
            "forgotten",
            "/forgotten/remove",
            "Generations that were forgotten after the backup.",
        ),
    ],
    words: &["source", "kind", "snapshot"],
    is_success: |_| true,
};

pub(super) const VERIFY: VerbMetrics = VerbMetrics {
    prefix: "evenkeel_verify_",
    run: "run that found no damage",
    facts: &[
        fact("findings", "/findings", "What is damaged."),
        fact(
            "unchecked",
            "/unchecked",
            "What could not be checked without keys.",
        ),
        fact("blocks", "/blocks", "Blocks read and found intact."),
        fact(
            "bytes_read",
            "/bytes_read",
            "Bytes of objects read, as stored.",
        ),
        fact("seconds", "/seconds", "How long reading took."),
        fact(
            "boot_proven",
            "/boot/proven",
            "Whether a server started on the generation and its tables passed.",
        ),
        fact(
            "boot_generation",
            "/boot/generation",
            "The generation that a server was started on.",
        ),
        fact(
            "boot_recovery_seconds",
            "/boot/recovery_seconds",
            "How long that server took to start.",
        ),
        fact(
            "boot_tables_checked",
            "/boot/tables_checked",
            "Tables that it checked.",
        ),
    ],
    words: &[],
    is_success: |code| code == evenkeel_op::exit::DONE,
};

const EXECUTED: Fact = fact("executed", "/executed", "Whether the plan was carried out.");

pub(super) const FORGET: VerbMetrics = VerbMetrics {
    prefix: "evenkeel_forget_",
    run: "run that succeeded",
    facts: &[
        EXECUTED,
        fact(
            "forgotten",
            "/remove",
            "Generations that no keep rule keeps.",
        ),
        fact("kept", "/keep", "Generations that are kept."),
    ],
    words: &[],
    is_success: |code| code == evenkeel_op::exit::DONE,
};

pub(super) const PRUNE: VerbMetrics = VerbMetrics {
    prefix: "evenkeel_prune_",
    run: "run that succeeded",
    facts: &[
        EXECUTED,
        fact(
            "bytes_freed",
            "/bytes_freed",
            "Bytes freed; an estimate if it was only planned.",
        ),
        fact("removed", "/remove", "Objects removed."),
        fact(
            "rewritten",
            "/rewrite",
            "Packs rewritten without unneeded blocks.",
        ),
    ],
    words: &[],
    is_success: |code| code == evenkeel_op::exit::DONE,
};

pub(super) const ARCHIVE: VerbMetrics = VerbMetrics {
    prefix: "evenkeel_binlog_archive_",
    run: "run that succeeded",
    facts: &[
        fact(
            CAUGHT_UP,
            "",
            "When the repository last had everything that the server had sent.",
        ),
        fact("segments", "/segments", "Segments written."),
        fact("transactions", "/transactions", "Transactions in them."),
        fact("bytes", "/bytes", "Bytes of the log in them."),
        fact("bytes_stored", "/bytes_stored", "Bytes that they take."),
        fact(
            "reconnected",
            "/reconnected",
            "How often the connection to the server was lost and restored.",
        ),
        fact("gaps", "/gaps", "Gaps that were allowed."),
    ],
    words: &["source", "timeline"],
    is_success: |code| code == evenkeel_op::exit::DONE,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_whatever_the_document_has() {
        let document = serde_json::json!({"a": [1, 2], "b": {"c": true, "d": 2.5, "e": null}});
        let value = |place| fact("x", place, "").of(&document);
        assert_eq!(value("/a"), Some(2.0));
        assert_eq!(value("/b/c"), Some(1.0));
        assert_eq!(value("/b/d"), Some(2.5));
        for nothing in ["/b/e", "/z", ""] {
            assert_eq!(value(nothing), None, "{nothing}");
        }
    }
}
