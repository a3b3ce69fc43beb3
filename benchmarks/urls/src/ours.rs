//! Tables of `evenkeel url`.

use crate::codec::Codec;
use anyhow::{Context, Result};
use evenkeel_op::{Cancel, Silent};
use evenkeel_urlcodec::{CodeTable, MAX_LEN, Mode, Training, train};
use std::path::Path;

pub(crate) struct Ours(pub(crate) CodeTable);

/// Trains a table, or takes the one that is kept from an earlier call.
pub(crate) fn trained(
    mode: Mode,
    bytes: usize,
    texts: &[Vec<u8>],
    keep: Option<&Path>,
) -> Result<Ours> {
    let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
    let table = train(&texts, Training { mode, bytes }, &Silent, &Cancel::new())?;
    if let Some(keep) = keep {
        let name = format!("{mode:?}-{bytes}.urltable").to_lowercase();
        std::fs::write(keep.join(name), table.file())?;
    }
    Ok(Ours(table))
}

impl Codec for Ours {
    fn table_bytes(&self) -> usize {
        self.0.file().len()
    }

    fn pack(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<()> {
        *out = self.0.compress(text).context("a string is too long")?;
        Ok(())
    }

    fn unpack(&mut self, code: &[u8], out: &mut Vec<u8>) -> Result<()> {
        *out = self.0.decompress(code, MAX_LEN)?;
        Ok(())
    }
}
