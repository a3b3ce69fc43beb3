//! How far a load has come, in a schema of the target: what is noted of a chunk commits with its rows.
//! docs/src/design/load.md says why.

use super::source::Source;
use crate::objects::Phase;
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::connect::{Session, quote, quote_name};
use std::collections::{BTreeMap, BTreeSet};

/// The schema.
pub(super) const SCHEMA: &str = "evenkeel_load";
/// How long to wait for another load's end, in seconds: the server takes a moment to notice that a
/// client was killed.
const WAIT_S: u32 = 10;
/// The version of its tables.
const VERSION: &str = "4";

/// What an earlier run noted.
#[derive(Debug)]
pub(super) struct LoadState {
    /// The load that it belongs to.
    pub(super) id: String,
    /// The dump, however it is loaded.
    pub(super) dump: String,
    /// The options that it was begun with.
    pub(super) choices: String,
    /// What the run that began it said that this server does not keep: only it tried the tables.
    pub(super) lost: Vec<String>,
    /// Numbers of chunks whose rows are in.
    pub(super) chunks: BTreeSet<u64>,
    /// Names of phases that are done.
    pub(super) phases: BTreeSet<String>,
    /// Everything is there; only the state had still to go.
    pub(super) finished: bool,
}

fn table(name: &str) -> String {
    format!("{}.{name}", quote_name(SCHEMA))
}

/// Returns the statement that notes a chunk: the first of its transaction, so that nobody else has
/// the chunk in hand until that ends.
pub(super) fn note_chunk(number: u64) -> String {
    format!("INSERT INTO {} (chunk) VALUES ({number})", table("chunks"))
}

/// Returns the statement that adds what came in with a chunk: how many rows, and what the file's
/// bytes were, for files of which nobody wrote that down.
pub(super) fn note_taken(number: u64, rows: u64, hash: &str) -> String {
    format!(
        "UPDATE {} SET taken = {rows}, blake3 = {} WHERE chunk = {number}",
        table("chunks"),
        quote(hash)
    )
}

/// Returns what came in with each chunk: its number, how many rows, the hash of the file.
pub(super) fn taken(session: &mut Session) -> Result<BTreeMap<u64, (u64, String)>> {
    let rows = session.rows(&format!(
        "SELECT chunk, taken, blake3 FROM {} WHERE taken IS NOT NULL",
        table("chunks")
    ))?;
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
    Ok(rows
        .iter()
        .filter_map(|row| {
            let hash = row.at(2).unwrap_or_default().to_owned();
            Some((number(row.at(0))?, (number(row.at(1))?, hash)))
        })
        .collect())
}

/// Returns a phase's name in the state.
pub(super) fn phase_name(phase: Phase) -> String {
    format!("{phase:?}")
}

impl LoadState {
    /// Reads what an earlier run left; `None` when there is nothing.
    pub(super) fn read(session: &mut Session) -> Result<Option<Self>> {
        let there = session.value(&format!(
            "SELECT COUNT(*) FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = {} AND TABLE_NAME = 'run'",
            quote(SCHEMA)
        ))?;
        if there.as_deref() != Some("1") {
            return Ok(None);
        }
        let version = session.value(&format!("SELECT version FROM {}", table("run")))?;
        let Some(version) = version else {
            return Ok(None);
        };
        if version != VERSION {
            return Err(Error::refused(format!(
                "{SCHEMA} on this server was written by another version of evenkeel"
            ))
            .hint(format!(
                "finish that load with the version of evenkeel that began it, or drop the database {SCHEMA} and load again with --replace"
            )));
        }
        let sql = format!(
            "SELECT id, finished, dump, choices, lost FROM {}",
            table("run")
        );
        let Some(run) = session.one(&sql)? else {
            return Ok(None);
        };
        let text = |at: usize| run.at(at).unwrap_or_default().to_owned();
        let mut list = |name: &str| -> Result<Vec<String>> {
            let rows = session.rows(&format!("SELECT * FROM {}", table(name)))?;
            Ok(rows
                .iter()
                .filter_map(|row| row.at(0).map(str::to_owned))
                .collect())
        };
        Ok(Some(Self {
            id: text(0),
            dump: text(2),
            choices: text(3),
            lost: serde_json::from_str(&text(4)).map_err(|error| {
                Error::failed(format!(
                    "{SCHEMA} on this server is damaged: its list of what is lost"
                ))
                .because(Error::failed(error.to_string()))
            })?,
            chunks: list("chunks")?
                .iter()
                .filter_map(|number| number.parse().ok())
                .collect(),
            phases: list("phases")?.into_iter().collect(),
            finished: text(1) == "1",
        }))
    }

    /// Begins a state. Its last row makes it one.
    pub(super) fn begin(
        session: &mut Session,
        source: &Source,
        choices: &str,
        lost: Vec<String>,
    ) -> Result<Self> {
        let ascii = "CHARACTER SET ascii COLLATE ascii_bin";
        session.run(&format!(
            "CREATE DATABASE IF NOT EXISTS {} {ascii}",
            quote_name(SCHEMA)
        ))?;
        // Without this one the others are nobody's.
        session.run(&format!("DROP TABLE IF EXISTS {}", table("run")))?;
        for (name, columns) in [
            (
                "chunks",
                "chunk BIGINT UNSIGNED PRIMARY KEY, taken BIGINT UNSIGNED, blake3 CHAR(64)",
            ),
            ("phases", "phase VARCHAR(32) PRIMARY KEY"),
            (
                "run",
                "id CHAR(64) PRIMARY KEY, version VARCHAR(8) NOT NULL, finished TINYINT NOT NULL, \
                 local_infile VARCHAR(8), dump CHAR(64) NOT NULL, \
                 choices LONGTEXT CHARACTER SET utf8mb4 NOT NULL, lost LONGTEXT CHARACTER SET utf8mb4 NOT NULL, \
                 began_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP",
            ),
        ] {
            session.run(&format!("DROP TABLE IF EXISTS {}", table(name)))?;
            session.run(&format!(
                "CREATE TABLE {} ({columns}) ENGINE=InnoDB {ascii}",
                table(name)
            ))?;
        }
        let (id, dump) = (&source.id, &source.dump);
        session.run(&format!(
            "INSERT INTO {} (id, version, finished, dump, choices, lost) \
             VALUES ('{id}', '{VERSION}', 0, '{dump}', {}, {})",
            table("run"),
            quote(choices),
            quote(&serde_json::json!(lost).to_string())
        ))?;
        Ok(Self {
            id: id.clone(),
            dump: dump.clone(),
            choices: choices.to_owned(),
            lost,
            chunks: BTreeSet::new(),
            phases: BTreeSet::new(),
            finished: false,
        })
    }

    /// Returns whether a phase is done.
    pub(super) fn has(&self, phase: Phase) -> bool {
        self.phases.contains(&phase_name(phase))
    }

    /// Ends a state: from the first statement on, the load is done.
    pub(super) fn end(session: &mut Session) -> Result<()> {
        session.run(&format!("UPDATE {} SET finished = 1", table("run")))?;
        fail::fail_point!("load::finished");
        // In one statement, which the server ends whoever is killed: the others are of no use without each other.
        let all = ["run", "chunks", "phases"].map(table).join(", ");
        session.run(&format!("DROP TABLE IF EXISTS {all}"))?;
        let left = session.value(&format!(
            "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = {}",
            quote(SCHEMA)
        ))?;
        match left.as_deref() {
            Some("0") => session.run(&format!("DROP DATABASE IF EXISTS {}", quote_name(SCHEMA))),
            _ => Ok(()),
        }
    }
}

/// Notes that a phase is done.
pub(super) fn note_phase(session: &mut Session, phase: Phase) -> Result<()> {
    let name = phase_name(phase);
    session.run(&format!(
        "INSERT IGNORE INTO {} VALUES ('{name}')",
        table("phases")
    ))
}

/// Forgets what was noted of chunks.
pub(super) fn forget_chunks(session: &mut Session, numbers: &[u64]) -> Result<()> {
    for some in numbers.chunks(1000) {
        let list: Vec<String> = some.iter().map(u64::to_string).collect();
        let list = list.join(", ");
        session.run(&format!(
            "DELETE FROM {} WHERE chunk IN ({list})",
            table("chunks")
        ))?;
    }
    Ok(())
}

/// Returns the `local_infile` that was there before a run of this load switched it on.
pub(super) fn local_infile_before(session: &mut Session) -> Result<Option<String>> {
    session.value(&format!("SELECT local_infile FROM {}", table("run")))
}

/// Notes the `local_infile` to come back to; `None` once it is back.
pub(super) fn note_local_infile(session: &mut Session, before: Option<&str>) -> Result<()> {
    let before = before.map_or_else(|| "NULL".to_owned(), quote);
    session.run(&format!(
        "UPDATE {} SET local_infile = {before}",
        table("run")
    ))
}

/// Keeps every other load away from the server until the session ends.
///
/// Errors: `Busy`.
pub(super) fn only_one(session: &mut Session) -> Result<()> {
    let got = session.value(&format!("SELECT GET_LOCK({}, {WAIT_S})", quote(SCHEMA)))?;
    match got.as_deref() {
        Some("1") => Ok(()),
        _ => Err(
            Error::new(ErrorKind::Busy, "another load is running on this server").hint(
                "wait for it; a load that was killed holds on until the server has ended its \
                 last statement (SHOW PROCESSLIST)",
            ),
        ),
    }
}
