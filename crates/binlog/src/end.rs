//! How far a file goes: the end of its last complete transaction, and its GTIDs.
//!
//! A frozen data directory carries its binary log, and crash recovery makes the engines agree with
//! it. So the coordinates of an image can be read from the image itself, without any lock on the
//! server it came from. Only headers and the beginnings of bodies are read: such a log may be large,
//! and a torn end is no damage here, whatever it reads as.

use crate::{
    Event, Format, Groups, Gtid, GtidSet, HEADER, Header, MAGIC, MAGIC_ENCRYPTED, body, kind,
};
use evenkeel_op::{Context, Error, Result};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// Body bytes that are ever needed: a query's start, a GTID. Lists of GTIDs are read whole.
const BODY_READ: u64 = 4096;
/// A list of GTIDs larger than this is taken for damage, in bytes.
const LIST_LIMIT: u64 = 64 << 20;

/// How far a binary log file goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Byte position after the last complete transaction.
    pub position: u64,
    /// Byte position behind which there are only MariaDB's checkpoints up to `position`: the server writes
    /// those by itself, also while commits wait.
    pub changes_until: u64,
    /// GTIDs executed up to there, as the server prints them; `None` when it has none.
    pub gtid: Option<String>,
    /// Bytes after `position`: a group that a crash cut off.
    pub cut_off: u64,
}

/// Reads the end of one binary log file.
///
/// Errors: `Refused` for an encrypted log and for one with tagged GTIDs; `Failed` for a file that is
/// no binary log.
pub fn end_of_file(path: &Path) -> Result<End> {
    let file = File::open(path).context(|| format!("failed to open {}", path.display()))?;
    let size = file
        .metadata()
        .context(|| format!("failed to stat {}", path.display()))?
        .len();
    let mut reader = BufReader::with_capacity(256 << 10, file);
    let mut magic = [0; MAGIC.len()];
    reader
        .read_exact(&mut magic)
        .context(|| format!("failed to read {}", path.display()))?;
    match magic {
        MAGIC => end_of(&mut reader, size)
            .context(|| format!("failed to read the binary log {}", path.display())),
        MAGIC_ENCRYPTED => Err(Error::refused(format!(
            "the binary log {} is encrypted, so its coordinates cannot be read from the image",
            path.display()
        ))
        .hint("take the backup with a lock (--lock ftwrl), so that the server reports them")),
        _ => Err(Error::failed(format!(
            "{} is not a binary log",
            path.display()
        ))),
    }
}

/// Returns the last log file that an index file lists, as the server wrote it (often relative to
/// the data directory), or `None` for an empty index.
pub fn last_in_index(index: &Path) -> Result<Option<PathBuf>> {
    let text = std::fs::read(index).context(|| format!("failed to read {}", index.display()))?;
    let text = String::from_utf8_lossy(&text);
    Ok(text
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .map(PathBuf::from))
}

/// Walks a file from behind its magic.
fn end_of<R: Read + Seek>(reader: &mut BufReader<R>, size: u64) -> Result<End> {
    let mut format = None;
    let mut groups = Groups::default();
    let mut executed = GtidSet::default();
    let mut complete = MAGIC.len() as u64;
    let mut changes_until = complete;
    let mut at = complete;
    while let Some(event) = next_event(reader, at, size)? {
        at += u64::from(event.header.length);
        let content = body(&event.bytes, format.as_ref());
        let damaged = || {
            Error::failed(format!(
                "the list of GTIDs at {} is damaged",
                event.position
            ))
        };
        match event.header.kind {
            kind::FORMAT_DESCRIPTION => format = Some(Format::parse(&event.bytes)?),
            kind::MARIADB_START_ENCRYPTION => {
                return Err(Error::refused("the binary log is encrypted"));
            }
            kind::GTID_TAGGED => return Err(Error::refused("the binary log has tagged GTIDs")),
            kind::PREVIOUS_GTIDS => {
                executed = GtidSet::parse_previous(content).ok_or_else(damaged)?;
            }
            kind::MARIADB_GTID_LIST => {
                executed = GtidSet::parse_list(content).ok_or_else(damaged)?;
            }
            _ => {}
        }
        if let Some(format) = &format
            && let Some(gtid) = groups.step(&event, format)?.and_then(|group| group.gtid)
        {
            executed.add(&gtid);
        }
        if groups.unfinished().is_none() {
            complete = at;
            if event.header.kind != kind::MARIADB_CHECKPOINT {
                changes_until = at;
            }
        }
    }
    Ok(End {
        position: complete,
        changes_until,
        gtid: position(&executed),
        cut_off: size - complete,
    })
}

/// MySQL's set as it is; of MariaDB's, the last transaction of each domain, from where a replica
/// continues.
fn position(executed: &GtidSet) -> Option<String> {
    let lasts = executed.lasts();
    let text = match lasts.is_empty() {
        true => executed.to_string(),
        false => lasts
            .iter()
            .map(Gtid::to_string)
            .collect::<Vec<_>>()
            .join(","),
    };
    Some(text).filter(|text| !text.is_empty())
}

/// Reads the event at `at`, of most no more than its header; `None` at the end, also where a crash
/// cut the last event off.
fn next_event<R: Read + Seek>(
    reader: &mut BufReader<R>,
    at: u64,
    size: u64,
) -> Result<Option<Event>> {
    if at + HEADER as u64 > size {
        return Ok(None);
    }
    let failed = || "failed to read an event";
    let mut head = [0; HEADER];
    reader.read_exact(&mut head).context(failed)?;
    // Room that was allocated ahead reads as zeros, which is no header.
    let Ok(header) = Header::parse(&head) else {
        return Ok(None);
    };
    let length = u64::from(header.length);
    if at + length > size {
        return Ok(None);
    }
    let content = length - HEADER as u64;
    let wanted = match header.kind {
        kind::PREVIOUS_GTIDS | kind::MARIADB_GTID_LIST if content > LIST_LIMIT => {
            return Err(Error::failed(format!(
                "the list of GTIDs at {at} is damaged"
            )));
        }
        kind::PREVIOUS_GTIDS | kind::MARIADB_GTID_LIST => content,
        kind::FORMAT_DESCRIPTION | kind::QUERY | kind::GTID | kind::MARIADB_GTID => {
            content.min(BODY_READ)
        }
        _ => 0,
    };
    let mut bytes = head.to_vec();
    bytes.resize(HEADER + wanted as usize, 0);
    reader.read_exact(&mut bytes[HEADER..]).context(failed)?;
    reader
        .seek_relative((content - wanted) as i64)
        .context(failed)?;
    Ok(Some(Event {
        position: at,
        header,
        bytes,
    }))
}
