//! The file: unpacked by a thread of its own, a few pieces ahead, and never all of it.

use evenkeel_op::{Cancel, Error, Result};
use std::io::{self, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How large a piece is, in bytes.
const PIECE: usize = 512 << 10;
/// How many pieces may lie ready.
const AHEAD: usize = 4;
/// How often a silent source looks whether it is to stop.
const TICK: Duration = Duration::from_millis(200);

/// A file of statements.
pub struct Input {
    /// What it is called, for messages.
    pub name: String,
    /// How long it is, packed as it is, in bytes; `None` when it comes through a pipe.
    pub bytes: Option<u64>,
    /// Its bytes, packed as they are.
    pub from: Box<dyn Read + Send>,
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Input {}", self.name)
    }
}

/// Counts what is read.
struct Counted {
    from: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// What a file's first bytes say about how it is packed.
fn unpacked(mut from: Counted) -> io::Result<Box<dyn Read + Send>> {
    let mut first = Vec::new();
    (&mut from).take(6).read_to_end(&mut first)?;
    let packed = match first.as_slice() {
        [0x1F, 0x8B, ..] => 'g',
        [0x28, 0xB5, 0x2F, 0xFD, ..] => 'z',
        [0xFD, b'7', b'z', b'X', b'Z', 0] => 'x',
        _ => ' ',
    };
    let whole = Cursor::new(first).chain(from);
    Ok(match packed {
        'g' => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        'z' => Box::new(zstd::Decoder::new(whole)?),
        'x' => Box::new(lzma_rust2::XzReader::new(BufReader::new(whole), true)),
        _ => Box::new(whole),
    })
}

/// The unpacked bytes of an input.
pub(super) struct Ahead {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Cursor<Vec<u8>>,
    cancel: Cancel,
    /// How much of the packed file was read, in bytes.
    pub(super) read: Arc<AtomicU64>,
}

impl Ahead {
    /// Starts to read. The thread ends with the input, or when this value is gone.
    pub(super) fn start(input: Input, cancel: &Cancel) -> Result<Self> {
        let (sender, pieces) = sync_channel(AHEAD);
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted {
            from: input.from,
            read: Arc::clone(&read),
        };
        std::thread::Builder::new()
            .name("import-read".to_owned())
            .spawn(move || {
                if let Err(error) = feed(counted, &sender) {
                    // Nobody listens any more: the import has ended.
                    let _ = sender.send(Err(error));
                }
            })
            .map_err(|e| Error::failed("failed to start a thread").because(e))?;
        Ok(Self {
            pieces,
            piece: Cursor::default(),
            cancel: cancel.clone(),
            read,
        })
    }
}

fn feed(counted: Counted, to: &SyncSender<io::Result<Vec<u8>>>) -> io::Result<()> {
    let mut from = unpacked(counted)?;
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let done = (&mut from).take(PIECE as u64).read_to_end(&mut piece);
        let read = piece.len();
        // What was unpacked before an error is good.
        if read > 0 && to.send(Ok(piece)).is_err() {
            return Ok(());
        }
        done?;
        if read == 0 {
            return Ok(());
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.piece.read(into)?;
            if read > 0 || into.is_empty() {
                return Ok(read);
            }
            match self.pieces.recv_timeout(TICK) {
                Ok(piece) => self.piece = Cursor::new(piece?),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) if self.cancel.is_cancelled() => {
                    return Err(io::Error::other("stopped on request"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let input = Input {
            name: "x".to_owned(),
            bytes: None,
            from: Box::new(Cursor::new(bytes)),
        };
        let mut text = Vec::new();
        let mut ahead = Ahead::start(input, &Cancel::new()).unwrap();
        ahead.read_to_end(&mut text).map(|_| text)
    }

    fn packed(text: &[u8]) -> [Vec<u8>; 2] {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
        gz.write_all(text).unwrap();
        [gz.finish().unwrap(), zstd::encode_all(text, 1).unwrap()]
    }

    #[test]
    fn packed_files_are_unpacked_and_cut_ones_noticed() {
        let text: Vec<u8> = (0..3_000_000u32)
            .map(|n| (n.wrapping_mul(n) >> 7) as u8)
            .collect();
        assert!(read(text.clone()).unwrap() == text);
        for whole in packed(&text) {
            // Files of several parts, as parallel packers write them.
            assert!(read([whole.clone(), whole.clone()].concat()).unwrap() == text.repeat(2));
            for cut in [whole.len() - 1, whole.len() / 2] {
                assert!(read(whole[..cut].to_vec()).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn little_is_read_ahead() {
        let from = Counted {
            from: Box::new(io::repeat(b'x')),
            read: Arc::default(),
        };
        let read = Arc::clone(&from.read);
        let (sender, pieces) = sync_channel(AHEAD);
        let thread = std::thread::spawn(move || feed(from, &sender));
        assert!(pieces.recv().is_ok());
        drop(pieces);
        thread.join().unwrap().unwrap();
        assert!(read.load(Ordering::Relaxed) <= (AHEAD as u64 + 4) * PIECE as u64);
    }
}
