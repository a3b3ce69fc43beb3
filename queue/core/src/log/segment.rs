//! A file of frames: its header, and the walk over it.

use super::Name;
use super::frame::{self, ALIGN, Header, Origin};

/// Bytes before the first frame.
pub(crate) const START: usize = 64;

const MAGIC: [u8; 8] = *b"EVKQLOG\n";
/// In files of the first version nobody knows when rows came. Who knows only that one refuses the second, and does
/// not take frames of a kind that it does not know for torn ones.
const VERSIONS: [u32; 2] = [1, 2];

/// What stands at the start of a file. It says where the one before it ended: a file that lost its
/// tail is noticed.
pub(crate) fn header(table: u128, name: Name, previous_end: u64) -> [u8; START] {
    let mut bytes = [0; START];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSIONS[1].to_le_bytes());
    bytes[16..32].copy_from_slice(&table.to_le_bytes());
    bytes[32..40].copy_from_slice(&name.id().to_le_bytes());
    bytes[40..48].copy_from_slice(&previous_end.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[..START - 4]);
    bytes[START - 4..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn version(file: &[u8]) -> u32 {
    let bytes = file.get(8..12).unwrap_or_default();
    bytes.try_into().map_or(0, u32::from_le_bytes)
}

/// Whether frames of this file may say when rows came.
pub(crate) fn tells_times(file: &[u8]) -> bool {
    version(file) == VERSIONS[1]
}

/// Checks a file's header and returns where the file before it ended.
pub(crate) fn check(file: &[u8], table: u128, name: Name) -> Result<u64, &'static str> {
    let head = file.get(..START).ok_or("the file ends within its header")?;
    if head[..8] != MAGIC {
        return Err("this is not a file of a queue");
    }
    let crc = crc32c::crc32c(&head[..START - 4]).to_le_bytes();
    if head[START - 4..] != crc {
        return Err("the checksum of the file's header does not match");
    }
    if !VERSIONS.contains(&version(file)) {
        return Err("the file is of an unknown version: use a newer plugin");
    }
    if head[16..32] != table.to_le_bytes() || head[32..40] != name.id().to_le_bytes() {
        return Err("the file belongs to another table or has another number");
    }
    Ok(u64::from_le_bytes(
        head[40..48].try_into().expect("eight bytes"),
    ))
}

/// A frame that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
    /// Where the next whole frame starts.
    pub(crate) next: Option<usize>,
    /// Whether a later frame says that this one had been durable, so no crash tore it.
    pub(crate) was_durable: bool,
}

/// Visits the frames from `from` on. A visitor's error means that the frame is broken all the same.
/// Returns where the good frames end, and what comes there if it is not the end of the file. With
/// `is_filled`, zeros up to its end are space that was filled beforehand, behind a first frame.
pub(crate) fn walk<'a>(
    file: &'a [u8],
    origin: Origin,
    (from, is_filled): (usize, bool),
    mut visit: impl FnMut(usize, &Header, &'a [u8]) -> Result<(), &'static str>,
) -> (usize, Option<Broken>) {
    let mut at = from;
    while at < file.len() {
        let seen = frame::read(file, origin, at)
            .and_then(|(header, body)| visit(at, &header, body).map(|()| header));
        match seen {
            Ok(header) => at += frame::size(u64::from(header.len)) as usize,
            Err(_) if is_filled && at > START && file[at..].iter().all(|byte| *byte == 0) => {
                return (at, None);
            }
            Err(what) => return (at, Some(behind(file, origin, at, what))),
        }
    }
    (at.min(file.len()), None)
}

/// Looks at what follows a broken frame.
fn behind(file: &[u8], origin: Origin, at: usize, what: &'static str) -> Broken {
    let mut broken = Broken {
        at,
        what,
        next: None,
        was_durable: false,
    };
    let mut here = at + ALIGN;
    while here < file.len() {
        let Ok((header, _)) = frame::read(file, origin, here) else {
            here += ALIGN;
            continue;
        };
        broken.next.get_or_insert(here);
        if header.durable as usize > at {
            broken.was_durable = true;
            break;
        }
        here += frame::size(u64::from(header.len)) as usize;
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::super::frame::{FrameKind, encode};
    use super::*;

    const NAME: Name = Name::Segment(4);

    fn file(frames: &[(u32, &[u8])]) -> (Vec<u8>, Origin) {
        let origin = Origin::new(9, NAME.id());
        let mut out = header(9, NAME, 1234).to_vec();
        for (durable, body) in frames {
            let header = Header {
                kind: FrameKind::Rows,
                len: 0,
                first: 1,
                count: 1,
                durable: *durable,
            };
            let at = out.len() as u64;
            encode(&mut out, (origin, at), header, |out| out.extend(*body));
        }
        (out, origin)
    }

    #[test]
    fn a_header_belongs_to_one_file_of_one_table() {
        let bytes = header(9, NAME, 1234);
        assert_eq!(check(&bytes, 9, NAME), Ok(1234));
        assert!(check(&bytes, 8, NAME).is_err());
        assert!(check(&bytes, 9, Name::Segment(5)).is_err());
        for bit in 0..START * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&bytes, 9, NAME).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn what_broke_after_it_was_durable_is_told_from_what_a_crash_tore() {
        let all = |_: usize, _: &Header, _: &[u8]| Ok(());
        let (whole, origin) = file(&[(64, b"aaaaaaaa"), (104, b"bbbbbbbb"), (104, b"cccccccc")]);
        assert_eq!(
            walk(&whole, origin, (START, false), all),
            (whole.len(), None)
        );
        // The second was not durable when the third was written.
        let mut torn = whole.clone();
        torn[104 + 33] ^= 1;
        let (end, broken) = walk(&torn, origin, (START, false), all);
        let broken = broken.unwrap();
        assert_eq!(
            (end, broken.next, broken.was_durable),
            (104, Some(144), false)
        );
        // The first was.
        let mut rotten = whole;
        rotten[START + 33] ^= 1;
        let (end, broken) = walk(&rotten, origin, (START, false), all);
        assert_eq!((end, broken.unwrap().was_durable), (START, true));
    }

    #[test]
    fn zeros_are_the_end_behind_a_frame_where_space_is_filled_and_nowhere_else() {
        let all = |_: usize, _: &Header, _: &[u8]| Ok(());
        let (whole, origin) = file(&[(64, b"aaaaaaaa"), (104, b"bbbbbbbb")]);
        let mut filled = [&whole[..], &[0; 4096]].concat();
        assert_eq!(
            walk(&filled, origin, (START, true), all),
            (whole.len(), None)
        );
        assert!(walk(&filled, origin, (START, false), all).1.is_some());
        filled[whole.len() + 4000] = 1;
        assert!(walk(&filled, origin, (START, true), all).1.is_some());
        let empty = [&whole[..START], &[0; 4096]].concat();
        assert!(walk(&empty, origin, (START, true), all).1.is_some());
    }
}
