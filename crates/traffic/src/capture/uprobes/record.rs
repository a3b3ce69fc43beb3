//! What the programs in the kernel write, as `server.bpf.c` lays it out.

/// Bytes before a record's text.
const HEAD: usize = 56;
/// Bytes of each name of a login.
const NAME: usize = 256;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A command begins.
    Begin,
    /// The next piece of a text.
    More,
    /// The values of an execution whose parameters were taken apart.
    Values,
    /// A command ends.
    End,
    /// An account logged in, or took over a session.
    Login,
    /// A thread made a number for a session.
    Number,
    /// A statement has its number.
    Prepared,
    /// The text of an execution.
    Logged,
    /// The default schema is to change.
    Schema,
    /// It did, or not.
    SchemaSet,
    /// A session was removed.
    Gone,
}

/// A record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) what: What,
    /// By the monotonic clock.
    pub(super) at_ns: u64,
    /// The address of the server's structure.
    pub(super) session: u64,
    pub(super) command: u8,
    /// Bytes of the complete text.
    pub(super) length: u64,
    pub(super) number: u64,
    pub(super) other: u64,
    pub(super) thread: u32,
    /// Where `data` is in the text.
    pub(super) offset: u32,
    pub(super) is_unreadable: bool,
    /// The parameters have types; without, they are those of the execution before.
    pub(super) has_types: bool,
    pub(super) data: &'a [u8],
}

impl<'a> Record<'a> {
    /// Reads a record; `None` for what is none.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let long = |at: usize| {
            let bytes = bytes.get(at..)?.first_chunk::<8>()?;
            Some(u64::from_ne_bytes(*bytes))
        };
        let short = |at: usize| {
            let bytes = bytes.get(at..)?.first_chunk::<4>()?;
            Some(u32::from_ne_bytes(*bytes))
        };
        let size = short(44)? as usize;
        Some(Self {
            at_ns: long(0)?,
            session: long(8)?,
            length: long(16)?,
            number: long(24)?,
            other: long(32)?,
            thread: short(40)?,
            what: match *bytes.get(48)? {
                1 => What::Begin,
                2 => What::More,
                3 => What::Values,
                4 => What::End,
                5 => What::Login,
                6 => What::Number,
                7 => What::Prepared,
                8 => What::Logged,
                9 => What::Schema,
                10 => What::SchemaSet,
                11 => What::Gone,
                _ => return None,
            },
            command: *bytes.get(49)?,
            is_unreadable: bytes.get(50)? & 1 == 1,
            has_types: bytes.get(50)? & 2 == 2,
            offset: short(52)?,
            data: bytes.get(HEAD..)?.get(..size)?,
        })
    }

    /// Returns how a login is written, and the names in it; `None` where there are none.
    pub(super) fn names(&self) -> Option<[&'a [u8]; 5]> {
        let name = |number: usize| {
            let name = self.data.get(number * NAME..(number + 1) * NAME)?;
            name.split(|byte| *byte == 0).next()
        };
        Some([name(0)?, name(1)?, name(2)?, name(3)?, name(4)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn anything_may_come(bytes in prop::collection::vec(any::<u8>(), 0..1500), kind in 0_u8..14, size in 0_u32..1500) {
            let mut bytes = bytes;
            if bytes.len() > HEAD {
                bytes[48] = kind;
                bytes[44..48].copy_from_slice(&size.to_ne_bytes());
            }
            if let Some(record) = Record::read(&bytes) {
                prop_assert_eq!(record.data.len(), size as usize);
                record.names();
            }
        }
    }
}
