//! Writes the rows that are whole as a table: parts, as compaction would, and an empty log behind them.

use super::scan::Scan;
use crate::error::{During, Error, Result};
use crate::io::Io;
use crate::log::Name;
use crate::log::frame::Origin;
use crate::log::kept;
use crate::log::rows::{self, ROW_HEADER};
use crate::log::segment::{self, START};
use crate::log::times;
use crate::plain::Directory;
use crate::table::{Checkpoint, DataFile, Tail};
use std::path::Path;

/// Bytes of one frame, roughly.
const SLICE: usize = 1 << 20;

/// Bytes of one part, roughly.
const PART: u64 = 64 << 20;

/// Writes the rows of a scan into a directory that is made for it.
pub(super) fn rows(io: &dyn Io, scan: &Scan, table: u128, dir: &Path) -> Result<()> {
    io.make_dir(dir).during("make", dir)?;
    // Other names than the old files have, so that no mixture of both can be taken for a table.
    let (generation, number) = (scan.generation + 1, scan.last_segment + 1);
    let mut parts = Parts {
        io,
        dir,
        table,
        generation,
        done: Vec::new(),
        file: None,
        said: 0,
        frame: Frame::default(),
    };
    let mut reader = Reader {
        dir: &scan.dir,
        open: None,
    };
    for (id, place) in &scan.rows {
        let file = scan.files[place.file as usize];
        let row = reader.row(file, *id, place.offset as usize)?;
        parts.put(*id, scan.came(*id, place), row)?;
    }
    let parts = parts.finish()?;
    Tail::start(io, dir, table, (number, 0), &scan.state)?;
    let checkpoint = Checkpoint {
        table,
        generation,
        first_segment: number,
        parts,
    };
    checkpoint.write(io, dir)
}

/// The file that rows are read from: most follow each other.
struct Reader<'a> {
    dir: &'a Directory,
    open: Option<(Name, Vec<u8>)>,
}

impl Reader<'_> {
    fn row(&mut self, file: Name, id: u64, offset: usize) -> Result<&[u8]> {
        let path = &self.dir.path.join(file.file());
        if self.open.as_ref().is_none_or(|(open, _)| *open != file) {
            let bytes = self.dir.read(&file.file()).during("read", path)?;
            self.open = Some((file, bytes));
        }
        let bytes = self.open.as_ref().map_or(&[][..], |(_, bytes)| bytes);
        let changed = || {
            let what = "it changed while it was read: stop what writes to it";
            Error::corrupt(path, offset as u64, what)
        };
        let head = bytes.get(offset..offset + ROW_HEADER);
        let head = head.ok_or_else(changed)?;
        let (len, crc) = rows::header(head.try_into().expect("eight bytes"));
        let start = offset + ROW_HEADER;
        let row = bytes.get(start..start + len as usize);
        let row = row.filter(|row| rows::is_whole(id, crc, row));
        row.ok_or_else(changed)
    }
}

/// Rows that become one frame.
#[derive(Default)]
struct Frame {
    first: u64,
    count: u32,
    body: Vec<u8>,
    /// The rows' ids, and when they came.
    came: Vec<(u64, u64)>,
}

struct Parts<'a> {
    io: &'a dyn Io,
    dir: &'a Path,
    table: u128,
    generation: u32,
    done: Vec<(Name, u64)>,
    /// The one that is written to, and its end.
    file: Option<(DataFile, u64)>,
    /// The time of the last of its rows.
    said: u64,
    frame: Frame,
}

impl Parts<'_> {
    fn put(&mut self, id: u64, came: u64, row: &[u8]) -> Result<()> {
        if self.frame.count == 0 {
            self.frame.first = id;
        }
        self.frame.count += 1;
        self.frame.came.push((id, came));
        rows::put_numbers(&mut self.frame.body, &[id]);
        rows::put(&mut self.frame.body, id, row);
        match self.frame.body.len() >= SLICE {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        let gathered = std::mem::take(&mut self.frame);
        if gathered.count == 0 {
            return Ok(());
        }
        if self.file.as_ref().is_some_and(|(_, end)| *end >= PART) {
            self.seal()?;
        }
        let (file, start) = match self.file.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        let pairs = times::changes(&mut self.said, gathered.came);
        let rows = (gathered.first, gathered.count);
        let origin = Origin::new(self.table, file.name.id());
        let (out, _) = kept::encode((origin, start), &pairs, (rows, &gathered.body));
        file.io.write_at(&out, start).during("write", &file.path)?;
        self.file = Some((file, start + out.len() as u64));
        Ok(())
    }

    fn begin(&mut self) -> Result<(DataFile, u64)> {
        self.said = 0;
        let name = Name::Part {
            generation: self.generation,
            index: self.done.len() as u32,
        };
        let file = DataFile::create(self.io, self.dir, name)?;
        let header = segment::header(self.table, name, 0);
        file.io.write_at(&header, 0).during("write", &file.path)?;
        Ok((file, START as u64))
    }

    fn seal(&mut self) -> Result<()> {
        if let Some((file, end)) = self.file.take() {
            file.io.sync().during("sync", &file.path)?;
            self.done.push((file.name, end));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<(Name, u64)>> {
        self.flush()?;
        self.seal()?;
        Ok(self.done)
    }
}
