//! A command that waits for its answer.

use crate::sums::Checksum;

/// What is known of it so far.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) command: u8,
    /// When it was complete.
    pub(super) at_ns: i64,
    /// What follows the command's number: as it came, later as text.
    pub(super) text: Vec<u8>,
    /// The values of an execution in binary, if they are kept.
    pub(super) sent: Vec<u8>,
    pub(super) has_sent: bool,
    /// The length of the whole of it.
    pub(super) length: u64,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    pub(super) first_ns: Option<i64>,
    pub(super) last_ns: Option<i64>,
    pub(super) rows: u64,
    pub(super) affected: u64,
    pub(super) warnings: u64,
    pub(super) error: Option<u16>,
    pub(super) checksum: Option<Checksum>,
    /// The prepared statement's number.
    pub(super) statement: Option<u32>,
    /// Its text, or some of its values, were not seen.
    pub(super) is_unseen: bool,
}

/// Text buffers larger than this are not kept for the next command.
const KEPT: usize = 16 << 10;

impl Pending {
    /// Makes this one another command's, with the memory it has.
    pub(super) fn reuse(&mut self, command: u8, at_ns: i64) {
        let emptied = |buffer: &mut Vec<u8>| {
            let mut buffer = std::mem::take(buffer);
            buffer.clear();
            match buffer.capacity() > KEPT {
                true => Vec::new(),
                false => buffer,
            }
        };
        *self = Self {
            command,
            at_ns,
            text: emptied(&mut self.text),
            sent: emptied(&mut self.sent),
            ..Self::default()
        };
    }
}
