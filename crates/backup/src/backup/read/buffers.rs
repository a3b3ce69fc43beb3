//! Memory that files are read into, at addresses that a device can write to directly.

use std::sync::{Mutex, PoisonError};

/// Where reads past the page cache begin and end. What a device with larger blocks refuses is read through it.
pub(super) const ALIGNMENT: usize = 4096;

/// Bytes at an aligned address. Its memory is kept and not cleared when it is used again.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    memory: Vec<u8>,
}

impl Buffer {
    /// Returns room for `length` bytes, and for the rest of a device's block behind them. What is in it is what
    /// was there before.
    pub(crate) fn room(&mut self, length: usize) -> &mut [u8] {
        let whole = length.next_multiple_of(ALIGNMENT);
        if length == 0 {
            return &mut [];
        }
        if self.memory.len() < whole + ALIGNMENT {
            self.memory.resize(whole + ALIGNMENT, 0);
        }
        let skip = self.skip();
        &mut self.memory[skip..skip + whole]
    }

    /// Returns its first `length` bytes. Panics where there was never room for them.
    pub(crate) fn bytes(&self, length: usize) -> &[u8] {
        if length == 0 {
            return &[];
        }
        let skip = self.skip();
        &self.memory[skip..skip + length]
    }

    fn skip(&self) -> usize {
        self.memory.as_ptr().align_offset(ALIGNMENT)
    }
}

/// Large buffers that are used again and again: new memory has to be cleared by the kernel first.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    free: Mutex<Vec<Buffer>>,
}

impl Buffers {
    /// Lends one for `length` bytes. One that has room for `usual` bytes goes to whoever needs half of that.
    pub(super) fn take(&self, length: usize, usual: usize) -> Buffer {
        let mut buffer = Buffer::default();
        if length > usual / 2 {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            buffer = free.pop().unwrap_or_default();
            drop(free);
            buffer.room(usual);
        }
        buffer
    }

    /// Takes one back, if it has room for `usual` bytes.
    pub(super) fn give(&self, buffer: Buffer, usual: usize) {
        if buffer.memory.len() >= usual {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_aligned_and_what_was_read_stays() {
        let mut buffer = Buffer::default();
        assert!(buffer.room(0).is_empty() && buffer.bytes(0).is_empty());
        for length in [1, 4096, 5000, 1 << 20, 16] {
            let room = buffer.room(length);
            assert_eq!(room.as_ptr().align_offset(ALIGNMENT), 0);
            assert!(room.len() >= length && room.len() % ALIGNMENT == 0);
            room[length - 1] = 7;
            assert_eq!(buffer.bytes(length)[length - 1], 7);
        }
    }
}
