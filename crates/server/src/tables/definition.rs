//! The engine of a table, out of its definition's file.

use super::engines;
use evenkeel_op::{Context, Result};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// What a definition is of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Definition {
    /// A table of this engine; an engine that is there by a number only is `engine number N`.
    Table(String),
    /// A view, or something else that keeps no rows.
    NoTable,
}

/// No definition that a server reads is longer.
const LENGTH_MAX: u64 = 16 << 20;
/// What stands at the beginning of a table's `.frm`.
const MAGIC: [u8; 2] = [0xfe, 0x01];
/// What stands for the engine of partitions, which says the real one elsewhere.
const PARTITIONED: u8 = 20;

/// Reads a `.frm` or `.sdi` file; `None` for a file of another kind, and for one that is gone.
pub fn definition(name: &str, path: &Path) -> Result<Option<Definition>> {
    let read: fn(File) -> std::io::Result<Definition> = match name.rsplit_once('.') {
        Some((_, "frm")) => frm,
        Some((_, "sdi")) => sdi,
        _ => return Ok(None),
    };
    match File::open(path).and_then(read) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found
            .map(Some)
            .context(|| format!("failed to read the definition {}", path.display())),
    }
}

fn frm(mut file: File) -> std::io::Result<Definition> {
    let mut head = [0; 64];
    let mut length = 0;
    while length < head.len() {
        match file.read(&mut head[length..])? {
            0 => return Ok(Definition::NoTable),
            more => length += more,
        }
    }
    // Views and triggers' files are text.
    if head[..2] != MAGIC {
        return Ok(Definition::NoTable);
    }
    // The name counts, as for the server; a partitioned table has it of each partition.
    let named = name_in_frm(&mut file, &head)?.filter(|name| name != "partition");
    let number = match head[3] {
        PARTITIONED => head[61],
        own => own,
    };
    let known = || engines::of_frm(number).map(|known| known.name.to_owned());
    let engine = named.or_else(known);
    Ok(Definition::Table(
        engine.unwrap_or_else(|| format!("engine number {number}")),
    ))
}

/// The name is behind the default row: a connection string, then the engine, each with its length before it.
fn name_in_frm(file: &mut File, head: &[u8; 64]) -> std::io::Result<Option<String>> {
    let two = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let four = |at: usize| {
        u64::from(u32::from_le_bytes([
            head[at],
            head[at + 1],
            head[at + 2],
            head[at + 3],
        ]))
    };
    let keys = match two(14) {
        0xffff => four(47),
        short => short,
    };
    if four(55) == 0 {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(two(6) + keys + two(16)))?;
    let mut more = Vec::new();
    file.take(four(55).min(LENGTH_MAX)).read_to_end(&mut more)?;
    let text = |at: usize| {
        let length = more.get(at..at + 2)?;
        let begin = at + 2;
        let end = begin + usize::from(u16::from_le_bytes([length[0], length[1]]));
        Some((more.get(begin..end)?, end))
    };
    let engine = text(0).and_then(|(_, end)| text(end)).map(|(name, _)| name);
    let is_name = |name: &&[u8]| {
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        !name.is_empty() && name.iter().all(plain)
    };
    Ok(engine
        .filter(is_name)
        .map(|name| String::from_utf8_lossy(name).into_owned()))
}

fn sdi(file: File) -> std::io::Result<Definition> {
    let mut text = Vec::new();
    file.take(LENGTH_MAX).read_to_end(&mut text)?;
    let Ok(said) = serde_json::from_slice::<serde_json::Value>(&text) else {
        return Ok(Definition::Table(
            "a definition that cannot be read".to_owned(),
        ));
    };
    // A schema has one as well.
    let engine = said
        .get("dd_object")
        .and_then(|object| object.get("engine"));
    Ok(match engine.and_then(serde_json::Value::as_str) {
        Some(engine) => Definition::Table(engine.to_owned()),
        None => Definition::NoTable,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, bytes: &[u8]) -> Option<Definition> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        definition(name, &path).unwrap()
    }

    /// A table's `.frm` of an engine's number and name, with a default row of 5 bytes.
    fn made(number: u8, partitions: u8, name: &str) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..2].copy_from_slice(&MAGIC);
        bytes[3] = number;
        bytes[6] = 64;
        bytes[14] = 3;
        bytes[16] = 5;
        bytes[55] = (4 + name.len()) as u8;
        bytes[61] = partitions;
        bytes.extend([0; 3 + 5 + 2]);
        bytes.push(name.len() as u8);
        bytes.push(0);
        bytes.extend(name.as_bytes());
        bytes
    }

    #[test]
    fn frm_files_tell_engines() {
        for (file, engine) in [
            (made(12, 0, "InnoDB"), "InnoDB"),
            (made(20, 9, "partition"), "MyISAM"),
            (made(46, 0, "ROCKSDB"), "ROCKSDB"),
            (made(42, 0, "Aria"), "Aria"),
            (made(20, 42, "partition"), "Aria"),
            (made(42, 0, "TokuDB"), "TokuDB"),
            (made(9, 0, "Falcon"), "Falcon"),
            (made(14, 0, ""), "engine number 14"),
            (made(77, 0, "no name"), "engine number 77"),
        ] {
            let expected = Definition::Table(engine.to_owned());
            assert_eq!(of("t.frm", &file), Some(expected));
        }
        assert_eq!(of("v.frm", &[b'T'; 99]), Some(Definition::NoTable));
        assert_eq!(of("cut.frm", &MAGIC), Some(Definition::NoTable));
        let mut broken = vec![0xff; 64];
        broken[..2].copy_from_slice(&MAGIC);
        let number = Definition::Table("engine number 255".to_owned());
        assert_eq!(of("t.frm", &broken), Some(number));
    }

    #[test]
    fn sdi_files_tell_engines() {
        let table = br#"{"dd_object_type":"Table","dd_object":{"name":"t","engine":"CSV"}}"#;
        assert_eq!(
            of("t_3.sdi", table),
            Some(Definition::Table("CSV".to_owned()))
        );
        let schema = br#"{"dd_object_type":"Schema","dd_object":{"name":"s"}}"#;
        assert_eq!(of("s_3.sdi", schema), Some(Definition::NoTable));
        assert_eq!(of("t.ibd", b""), None);
    }
}
