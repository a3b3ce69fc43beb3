//! The file: unpacked by a thread of its own, a few pieces ahead, and never all of it.

use evenkeel_op::{Cancel, Error, Result};
use memchr::memchr;
use std::io::{self, BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// How large a piece is, in bytes.
const PIECE: usize = 512 << 10;
/// How many pieces may lie ready.
const AHEAD: usize = 4;
/// What some editors put in front of UTF-8.
const MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];
/// How often a silent source looks whether it should stop.
const TICK: Duration = Duration::from_millis(200);

/// A file of statements.
pub struct Input {
    /// What it is called, for messages.
    pub name: String,
    /// How long it is, packed as it is, in bytes; `None` when it comes through a pipe.
    pub bytes: Option<u64>,
    /// Where it is; `None` when it comes through a pipe. What it names is looked for beside it.
    pub path: Option<PathBuf>,
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
pub(super) fn unpacked(mut from: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
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
    /// The thread has said that nothing more comes.
    ended: bool,
    cancel: Cancel,
    /// How much of the packed file was read, in bytes.
    pub(super) read: Arc<AtomicU64>,
}

impl Ahead {
    /// Starts to read. The thread ends with the input, or when this value is gone. A mark in front of UTF-8 is
    /// left out; unless the file is `binary`, lines that end as Windows has them end as all others.
    pub(super) fn start(input: Input, binary: bool, cancel: &Cancel) -> Result<Self> {
        let (sender, pieces) = sync_channel(AHEAD);
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted {
            from: input.from,
            read: Arc::clone(&read),
        };
        std::thread::Builder::new()
            .name("import-read".to_owned())
            .spawn(move || {
                if let Err(error) = feed(counted, binary, &sender) {
                    // Nobody listens any more: the import has ended.
                    let _ = sender.send(Err(error));
                }
            })
            .map_err(|e| Error::failed("failed to start a thread").because(e))?;
        Ok(Self {
            pieces,
            piece: Cursor::default(),
            ended: false,
            cancel: cancel.clone(),
            read,
        })
    }
}

/// Makes `\r\n` a `\n`, also where it lies in two pieces.
#[derive(Default)]
struct LineEnds {
    /// The last piece ended with `\r`, which is still to come.
    held: bool,
}

impl LineEnds {
    fn convert(&mut self, piece: &mut Vec<u8>) {
        if std::mem::take(&mut self.held) {
            piece.insert(0, b'\r');
        }
        if piece.len() > 1 && piece.last() == Some(&b'\r') {
            piece.pop();
            self.held = true;
        }
        let Some(first) = memchr(b'\r', piece) else {
            return;
        };
        let (mut to, mut at) = (first, first);
        while at < piece.len() {
            let run = memchr(b'\r', &piece[at + 1..]).map_or(piece.len(), |next| at + 1 + next);
            let skip = usize::from(piece.get(at + 1) == Some(&b'\n'));
            piece.copy_within(at + skip..run, to);
            to += run - at - skip;
            at = run;
        }
        piece.truncate(to);
    }
}

fn feed(counted: Counted, binary: bool, to: &SyncSender<io::Result<Vec<u8>>>) -> io::Result<()> {
    let mut from = unpacked(Box::new(counted))?;
    let (mut ends, mut begun) = (LineEnds::default(), false);
    loop {
        let mut piece = Vec::with_capacity(PIECE + 1);
        let done = (&mut from).take(PIECE as u64).read_to_end(&mut piece);
        let read = piece.len();
        if !std::mem::replace(&mut begun, true) && piece.starts_with(&MARK) {
            piece.drain(..MARK.len());
        }
        if !binary {
            ends.convert(&mut piece);
        }
        // What was unpacked before an error is good.
        if !piece.is_empty() && to.send(Ok(piece)).is_err() {
            return Ok(());
        }
        done?;
        if read == 0 {
            // Silence alone could be that of a thread that broke off.
            let _ = to.send(Ok(Vec::new()));
            return Ok(());
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.piece.read(into)?;
            if read > 0 || into.is_empty() || self.ended {
                return Ok(read);
            }
            match self.pieces.recv_timeout(TICK) {
                Ok(piece) => {
                    let piece = piece?;
                    self.ended = piece.is_empty();
                    self.piece = Cursor::new(piece);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("what reads it broke off before its end"));
                }
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
        read_as(bytes, true)
    }

    fn read_as(bytes: Vec<u8>, binary: bool) -> io::Result<Vec<u8>> {
        let input = Input {
            name: "x".to_owned(),
            bytes: None,
            path: None,
            from: Box::new(Cursor::new(bytes)),
        };
        let mut text = Vec::new();
        let mut ahead = Ahead::start(input, binary, &Cancel::new()).unwrap();
        ahead.read_to_end(&mut text).map(|_| text)
    }

    fn packed(text: &[u8]) -> [Vec<u8>; 2] {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(1));
        gz.write_all(text).unwrap();
        [gz.finish().unwrap(), zstd::encode_all(text, 1).unwrap()]
    }

    #[test]
    fn compressed_files_are_decompressed_and_cut_ones_noticed() {
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

    /// Breaks off after its first bytes.
    struct Broken(bool);

    impl Read for Broken {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            assert!(!std::mem::replace(&mut self.0, true), "broken on purpose");
            into.fill(b'x');
            Ok(into.len())
        }
    }

    #[test]
    fn a_thread_that_breaks_off_is_no_end() {
        let input = Input {
            name: "x".to_owned(),
            bytes: None,
            path: None,
            from: Box::new(Broken(false)),
        };
        let mut ahead = Ahead::start(input, true, &Cancel::new()).unwrap();
        let error = ahead.read_to_end(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("broke off"), "{error}");
    }

    #[test]
    fn lines_end_as_the_clients_have_it() {
        let windows = [&MARK[..], b"a\r\nb\rc\r\r\n\r\n"].concat();
        let wanted = b"a\nb\rc\r\n\n";
        assert_eq!(read_as(windows.clone(), false).unwrap(), wanted);
        assert_eq!(read_as(windows.clone(), true).unwrap(), windows[3..]);
        assert_eq!(read_as(b"a\r".to_vec(), false).unwrap(), b"a\r");
        // Around the end of a piece.
        for length in [PIECE - 2, PIECE - 1, PIECE] {
            let long = [vec![b'x'; length], b"\r\ny\r\n".to_vec()].concat();
            let wanted = [vec![b'x'; length], b"\ny\n".to_vec()].concat();
            assert!(read_as(long, false).unwrap() == wanted, "{length}");
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
        let thread = std::thread::spawn(move || feed(from, false, &sender));
        assert!(pieces.recv().is_ok());
        drop(pieces);
        thread.join().unwrap().unwrap();
        assert!(read.load(Ordering::Relaxed) <= (AHEAD as u64 + 4) * PIECE as u64);
    }
}
