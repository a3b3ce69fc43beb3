//! The list of tables that a generation keeps.

use evenkeel_op::{Context, Error, Result};
use evenkeel_server::tables::TableId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::Read;

/// The tables and schemas of a generation, packed: tens of thousands have to fit beside a few facts that are
/// read whenever generations are listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableRecord {
    /// How many tables.
    pub tables: u64,
    /// How many schemas, empty ones too, as far as they were listed.
    pub schemas: u64,
    /// Hexadecimal digits of zstd of schema, NUL, table, NUL, over and over; an empty table stands for the
    /// schema itself.
    pub packed: String,
}

/// No record is longer when it is unpacked: a length beyond it is damage.
const LENGTH_MAX: u64 = 256 << 20;
const LEVEL: i32 = 6;

impl TableRecord {
    /// Packs a list.
    pub(super) fn of(schemas: &BTreeSet<String>, tables: &BTreeSet<TableId>) -> Result<Self> {
        let mut text = Vec::new();
        let empty = schemas.iter().map(|schema| (schema.as_str(), ""));
        let named = tables
            .iter()
            .map(|one| (one.schema.as_str(), one.name.as_str()));
        for (schema, table) in empty.chain(named) {
            text.extend_from_slice(schema.as_bytes());
            text.push(0);
            text.extend_from_slice(table.as_bytes());
            text.push(0);
        }
        let packed = zstd::encode_all(text.as_slice(), LEVEL)
            .context(|| "failed to compress the list of tables")?;
        Ok(Self {
            tables: tables.len() as u64,
            schemas: schemas.len() as u64,
            packed: packed.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    /// Unpacks it: schemas, and tables.
    pub fn names(&self) -> Result<(BTreeSet<String>, BTreeSet<TableId>)> {
        let damaged = || Error::failed("the generation's list of tables is not valid");
        let digits = self.packed.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let packed: Option<Vec<u8>> = digits.map(byte).collect();
        let packed = packed.ok_or_else(damaged)?;
        let mut text = String::new();
        let reader = zstd::Decoder::new(packed.as_slice()).map_err(|_| damaged())?;
        let read = reader.take(LENGTH_MAX).read_to_string(&mut text);
        read.map_err(|error| damaged().because(error))?;
        let (mut schemas, mut tables) = (BTreeSet::new(), BTreeSet::new());
        let mut parts = text.split_terminator('\0');
        while let Some(schema) = parts.next() {
            let name = parts.next().ok_or_else(damaged)?;
            match name {
                "" => schemas.insert(schema.to_owned()),
                name => tables.insert(TableId {
                    schema: schema.to_owned(),
                    name: name.to_owned(),
                }),
            };
        }
        match tables.len() as u64 == self.tables && schemas.len() as u64 == self.schemas {
            true => Ok((schemas, tables)),
            false => Err(damaged()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_stay_small_and_come_back() {
        let schemas = ["shop".to_owned(), "empty\nand 'odd'".to_owned()].into();
        let table = |number: u32| TableId {
            schema: "shop".into(),
            name: format!("orders_of_customer_{number}"),
        };
        let tables: BTreeSet<TableId> = (0..30_000).map(table).collect();
        let record = TableRecord::of(&schemas, &tables).unwrap();
        assert!(record.packed.len() < 200_000, "{}", record.packed.len());
        assert_eq!(record.names().unwrap(), (schemas, tables));
    }

    #[test]
    fn damaged_records_are_errors() {
        let tables = [TableId {
            schema: "a".into(),
            name: "b".into(),
        }];
        let record = TableRecord::of(&BTreeSet::new(), &tables.into()).unwrap();
        let with = |packed: &str, tables| TableRecord {
            packed: packed.to_owned(),
            tables,
            schemas: 0,
        };
        for broken in [
            with("zz", 1),
            with("00ff", 1),
            with(&record.packed[..10], 1),
            with(&record.packed, 2),
        ] {
            assert!(broken.names().is_err(), "{broken:?}");
        }
    }
}
