//! All steps of all sessions, in a file without a name: a capture may be larger than memory.
//!
//! Steps lie in the order in which they were seen. Each says where its session's next one is, so that a session is
//! read on its own, and memory holds one place for each session. The file is this process's and ends with it; its
//! format is nobody else's.

use super::step::Step;
use evenkeel_op::{Error, Result};
use evenkeel_wire::Checksum;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are written at once.
const PIECE: usize = 1 << 20;
/// Bytes that are read at once: more than most steps have.
const AHEAD: usize = 1 << 10;
/// Bytes that are read at once where a session's steps lie close together: a call for each costs more than the bytes.
const AHEAD_OF_MANY: usize = 16 << 10;
/// What is close.
const NEAR: u64 = AHEAD_OF_MANY as u64 / 8;
/// next 8, when 8, class 4, number of steps waited for 4, text 4, what 1, transaction 1, then what it did:
/// known 1, failed with 2, time 8, rows 8, changed 8, checksums 16, what to expect of rows 1,
/// prepared statement 4, values 4.
const HEAD: usize = 8 + 8 + 4 + 4 + 4 + 1 + 1 + 1 + 2 + 5 * 8 + 1 + 4 + 4;
/// A session and the number of its step.
const WAIT: usize = 8;

/// Where a step lies.
pub(super) type StepOffset = u64;
/// There is no next one. Nothing else lies there: the first step does, and it is nobody's next.
const NONE: StepOffset = 0;

/// Steps that are written.
#[derive(Debug)]
pub(super) struct Spool {
    file: File,
    /// What is not in the file yet.
    rest: Vec<u8>,
    written: u64,
}

fn failed(error: io::Error) -> Error {
    Error::failed("failed to write the statements to a temporary file")
        .because(error)
        .hint("free some space, or set --tmpdir to a directory with room for all statements")
}

fn not_made(directory: &Path, error: io::Error) -> Error {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    let is_wrong = [
        NotADirectory,
        NotFound,
        PermissionDenied,
        ReadOnlyFilesystem,
    ]
    .contains(&error.kind());
    match is_wrong {
        false => failed(error),
        true => Error::usage(format!(
            "failed to make a temporary file in {}",
            directory.display()
        ))
        .because(error)
        .hint("set --tmpdir to a directory that exists and may be written, with room for all statements"),
    }
}

impl Spool {
    /// Makes the file in a directory.
    ///
    /// Errors: `Failed` where that is not possible.
    pub(super) fn new(directory: &Path) -> Result<Self> {
        Ok(Self {
            file: tempfile::tempfile_in(directory).map_err(|error| not_made(directory, error))?,
            rest: Vec::with_capacity(PIECE),
            written: 0,
        })
    }

    /// Adds a step with its text and its values; `before` is where its session's last one lies.
    ///
    /// Errors: `Failed` where there is no space.
    pub(super) fn add(
        &mut self,
        before: Option<StepOffset>,
        step: &Step,
        [text, values]: [&[u8]; 2],
    ) -> Result<StepOffset> {
        let place = self.written + self.rest.len() as u64;
        if let Some(before) = before {
            self.link(before, place)?;
        }
        let did = &step.did;
        let sum = did.checksum;
        let known = [
            did.total_ns,
            did.rows,
            did.affected,
            sum.map(|sum| sum.in_order),
            sum.map(|sum| sum.any_order),
        ];
        let bits = (0..).zip(known).fold(0, |bits, (bit, value)| {
            bits | u8::from(value.is_some()) << bit
        });
        let bits = bits | u8::from(did.is_error_known) << 7;
        let out = &mut self.rest;
        out.extend_from_slice(&NONE.to_le_bytes());
        out.extend_from_slice(&step.at_ns.to_le_bytes());
        out.extend_from_slice(&step.class.to_le_bytes());
        out.extend_from_slice(&(step.after.len() as u32).to_le_bytes());
        out.extend_from_slice(&(text.len() as u32).to_le_bytes());
        out.extend_from_slice(&[step.what as u8, u8::from(step.in_transaction), bits]);
        out.extend_from_slice(&did.error.unwrap_or(0).to_le_bytes());
        for value in known {
            out.extend_from_slice(&value.unwrap_or(0).to_le_bytes());
        }
        out.push(did.returns as u8);
        out.extend_from_slice(&step.statement.to_le_bytes());
        out.extend_from_slice(&(values.len() as u32).to_le_bytes());
        for (session, number) in &step.after {
            out.extend_from_slice(&session.to_le_bytes());
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(text);
        out.extend_from_slice(values);
        if out.len() >= PIECE {
            self.flush()?;
        }
        Ok(place)
    }

    fn link(&mut self, before: StepOffset, place: StepOffset) -> Result<()> {
        let bytes = place.to_le_bytes();
        if before >= self.written {
            let at = (before - self.written) as usize;
            self.rest[at..at + bytes.len()].copy_from_slice(&bytes);
            return Ok(());
        }
        self.file.write_all_at(&bytes, before).map_err(failed)
    }

    fn flush(&mut self) -> Result<()> {
        let file = &self.file;
        file.write_all_at(&self.rest, self.written)
            .map_err(failed)?;
        self.written += self.rest.len() as u64;
        self.rest.clear();
        Ok(())
    }

    /// Ends writing; now steps can be read.
    ///
    /// Errors: as [`Spool::add`].
    pub(super) fn end(mut self) -> Result<Spooled> {
        self.flush()?;
        Ok(Spooled { file: self.file })
    }
}

/// A part of the file, for one reader to keep from step to step.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// Where it begins in the file.
    from: StepOffset,
    /// The step that was read last.
    last: StepOffset,
}

impl Window {
    /// Returns the bytes from `place` on, as many as there are.
    fn at(&self, place: StepOffset) -> &[u8] {
        let skip = place.checked_sub(self.from);
        let skip = skip.and_then(|skip| usize::try_from(skip).ok());
        skip.and_then(|skip| self.bytes.get(skip..)).unwrap_or(&[])
    }
}

/// Steps that can be read, by several threads at a time.
#[derive(Debug)]
pub(super) struct Spooled {
    file: File,
}

impl Spooled {
    /// Has at least `count` bytes from `place` on in the window.
    ///
    /// Errors: `Failed` where the file cannot be read.
    fn fill(&self, window: &mut Window, place: StepOffset, count: usize) -> Result<()> {
        if window.at(place).len() >= count {
            return Ok(());
        }
        let failed =
            |error| Error::failed("failed to read the statements' temporary file").because(error);
        let is_near = place.saturating_sub(window.last) < NEAR;
        let ahead = if is_near { AHEAD_OF_MANY } else { AHEAD };
        window.bytes.resize(ahead.max(count), 0);
        window.from = place;
        let mut have = 0;
        while have < count {
            let rest = &mut window.bytes[have..];
            match self.file.read_at(rest, place + have as u64) {
                Ok(0) => return Err(failed(io::ErrorKind::UnexpectedEof.into())),
                Ok(bytes) => have += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        window.bytes.truncate(have);
        Ok(())
    }

    /// Reads a step into `step`, and returns where its session's next one lies. `window` is for the caller to keep.
    ///
    /// Errors: `Failed` where the file cannot be read.
    pub(super) fn read(
        &self,
        place: StepOffset,
        step: &mut Step,
        window: &mut Window,
    ) -> Result<Option<StepOffset>> {
        self.fill(window, place, HEAD)?;
        let mut head = Fields(&window.at(place)[..HEAD]);
        let next = u64::from_le_bytes(head.take());
        step.at_ns = i64::from_le_bytes(head.take());
        step.class = u32::from_le_bytes(head.take());
        let waits = u32::from_le_bytes(head.take()) as usize;
        let text = u32::from_le_bytes(head.take()) as usize;
        let [what, in_transaction, bits] = head.take();
        step.what = what.into();
        step.in_transaction = in_transaction != 0;
        step.did.error = Some(u16::from_le_bytes(head.take())).filter(|number| *number != 0);
        let mut known = |bit: u8| {
            let value = u64::from_le_bytes(head.take());
            (bits >> bit & 1 == 1).then_some(value)
        };
        step.did.total_ns = known(0);
        step.did.rows = known(1);
        step.did.affected = known(2);
        step.did.checksum = known(3)
            .zip(known(4))
            .map(|(in_order, any_order)| Checksum {
                in_order,
                any_order,
            });
        let [returns] = head.take();
        step.did.returns = returns.into();
        step.statement = u32::from_le_bytes(head.take());
        let values = u32::from_le_bytes(head.take()) as usize;
        step.did.is_error_known = bits >> 7 & 1 == 1;
        let whole = HEAD + waits * WAIT + text + values;
        self.fill(window, place, whole)?;
        window.last = place;
        let (waited, rest) = window.at(place)[HEAD..whole].split_at(waits * WAIT);
        let (text, values) = rest.split_at(text);
        step.after.clear();
        step.after.extend(waited.chunks_exact(WAIT).map(|wait| {
            let mut wait = Fields(wait);
            (
                u32::from_le_bytes(wait.take()),
                u32::from_le_bytes(wait.take()),
            )
        }));
        step.text.clear();
        step.text.extend_from_slice(text);
        step.values.clear();
        step.values.extend_from_slice(values);
        Ok((next != NONE).then_some(next))
    }
}

/// Takes fields off their front; there are as many bytes as are taken.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("a field of the head");
        self.0 = rest;
        *field
    }
}
