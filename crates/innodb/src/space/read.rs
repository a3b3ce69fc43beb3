//! Reading a tablespace's format from its file.

use super::{Probe, SpaceFormat};
use crate::doublewrite::Area;
use evenkeel_op::{Context, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;

impl SpaceFormat {
    /// Reads the format of the tablespace in `file`, and for the system tablespace where its
    /// doublewrite area is. Fails if the file cannot be read.
    pub fn of_file(file: &File) -> Result<Probe> {
        let mut page0 = vec![0; 65536];
        let got = read_up_to(file, &mut page0, 0).context(|| "failed to read a first page")?;
        page0.truncate(got);
        let mut probe = Self::parse(&page0);
        if let Probe::Checkable(format) = &mut probe
            && format.space_id == 0
        {
            format.doublewrite = Area::of_file(file, format.page_size)?;
        }
        Ok(probe)
    }
}

/// Reads at `offset` until `buffer` is full or the file ends; returns how much there was.
pub(crate) fn read_up_to(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match file.read_at(&mut buffer[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
