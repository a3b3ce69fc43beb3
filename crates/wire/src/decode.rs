//! What packets are made of. Nothing here panics, and nothing is believed that the bytes do not
//! hold.

use std::fmt;

/// The bytes are not what the protocol says they must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server sent an invalid packet")
    }
}

impl std::error::Error for Malformed {}

/// Takes a packet apart from its beginning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Takes an unsigned number of `count` bytes, at most eight.
    pub(crate) fn number(&mut self, count: usize) -> Result<u64, Malformed> {
        let mut wide = [0; 8];
        wide.get_mut(..count)
            .ok_or(Malformed)?
            .copy_from_slice(self.take(count)?);
        Ok(u64::from_le_bytes(wide))
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn short(&mut self) -> Result<u16, Malformed> {
        Ok(self.number(2)? as u16)
    }

    /// Takes a length-encoded number; `None` is SQL's NULL.
    #[inline]
    pub(crate) fn length(&mut self) -> Result<Option<u64>, Malformed> {
        match self.byte()? {
            small @ 0..=0xFA => Ok(Some(u64::from(small))),
            0xFB => Ok(None),
            0xFC => self.number(2).map(Some),
            0xFD => self.number(3).map(Some),
            0xFE => self.number(8).map(Some),
            0xFF => Err(Malformed),
        }
    }

    /// Takes a length-encoded string; `None` is SQL's NULL.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.length()? {
            None => Ok(None),
            Some(length) => {
                let length = usize::try_from(length).map_err(|_| Malformed)?;
                self.take(length).map(Some)
            }
        }
    }

    /// Takes a length-encoded string that must be there, as text.
    fn text(&mut self) -> Result<String, Malformed> {
        let bytes = self.string()?.ok_or(Malformed)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    /// Takes a string that ends in a zero byte, or with the packet.
    pub(crate) fn until_zero(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let taken = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = end.map_or(&[], |end| &self.0[end + 1..]);
        taken
    }
}

/// More results follow this one.
const MORE_RESULTS: u16 = 0x0008;

/// How a result or a statement without one ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ending {
    /// Rows changed.
    pub affected: u64,
    /// The first AUTO_INCREMENT value, 0 when there is none.
    pub insert_id: u64,
    /// How many warnings there are to SHOW.
    pub warnings: u16,
    /// Whether another result follows.
    pub more: bool,
    /// How the session is.
    pub session: SessionState,
}

/// What the server says of the session with each result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionState {
    /// A transaction is open.
    pub in_transaction: bool,
    /// Each statement is a transaction of its own, unless one is begun.
    pub autocommit: bool,
    /// `NO_BACKSLASH_ESCAPES` is in `sql_mode`.
    pub no_backslash: bool,
}

impl SessionState {
    fn of(status: u16) -> Self {
        Self {
            in_transaction: status & 0x0001 != 0,
            autocommit: status & 0x0002 != 0,
            no_backslash: status & 0x0200 != 0,
        }
    }
}

impl Ending {
    /// Reads an OK packet, whose first byte is 0x00 or 0xFE.
    pub fn of_ok(packet: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(packet);
        bytes.byte()?;
        let affected = bytes.length()?.ok_or(Malformed)?;
        let insert_id = bytes.length()?.ok_or(Malformed)?;
        let status = bytes.short()?;
        Ok(Self {
            affected,
            insert_id,
            warnings: bytes.short()?,
            more: status & MORE_RESULTS != 0,
            session: SessionState::of(status),
        })
    }

    /// Reads an EOF packet, as servers send it to clients that want them.
    pub fn of_eof(packet: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(packet);
        bytes.byte()?;
        let warnings = bytes.short()?;
        let status = bytes.short()?;
        Ok(Self {
            warnings,
            more: status & MORE_RESULTS != 0,
            session: SessionState::of(status),
            ..Self::default()
        })
    }
}

/// What the server has against a statement or a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerError {
    /// Its number: 1064.
    pub code: u16,
    /// SQLSTATE: `42000`; `HY000` where the server gives none.
    pub state: String,
    /// What it says.
    pub message: String,
}

impl ServerError {
    /// Reads an ERR packet, whose first byte is 0xFF.
    pub fn of(packet: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(packet);
        bytes.byte()?;
        let code = bytes.short()?;
        let state = match bytes.0.first() {
            Some(b'#') if bytes.0.len() >= 6 => &bytes.take(6)?[1..],
            _ => b"HY000",
        };
        Ok(Self {
            code,
            state: String::from_utf8_lossy(state).into_owned(),
            message: String::from_utf8_lossy(bytes.0).into_owned(),
        })
    }
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name or alias.
    pub name: String,
    /// The number of its collation; 63 is binary.
    pub collation: u16,
    /// The protocol's number for its type.
    pub kind: u8,
    /// The protocol's flags: 1 not null, 32 unsigned, 128 binary …
    pub flags: u16,
}

impl Column {
    /// Reads a column definition.
    pub fn of(packet: &[u8]) -> Result<Self, Malformed> {
        let mut bytes = Bytes(packet);
        // Catalog, schema, table, original table.
        for _ in 0..4 {
            bytes.string()?;
        }
        let name = bytes.text()?;
        bytes.string()?;
        // The length of what follows.
        bytes.length()?;
        let collation = bytes.short()?;
        bytes.number(4)?;
        let kind = bytes.byte()?;
        Ok(Self {
            name,
            collation,
            kind,
            flags: bytes.short()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_read_in_all_their_forms() {
        for (bytes, length) in [
            (&[0xFA][..], Some(250)),
            (&[0xFB], None),
            (&[0xFC, 1, 2], Some(0x201)),
            (&[0xFD, 1, 2, 3], Some(0x03_0201)),
            (&[0xFE, 1, 0, 0, 0, 0, 0, 0, 1], Some(0x0100_0000_0000_0001)),
        ] {
            assert_eq!(Bytes(bytes).length(), Ok(length));
            assert_eq!(Bytes(&bytes[..bytes.len() - 1]).length(), Err(Malformed));
        }
        assert_eq!(Bytes(&[0xFF]).length(), Err(Malformed));
    }

    #[test]
    fn a_string_longer_than_its_packet_is_malformed() {
        assert_eq!(Bytes(&[3, 1, 2]).string(), Err(Malformed));
        assert_eq!(
            Bytes(&[0xFE, 255, 255, 255, 255, 255, 255, 255, 255]).string(),
            Err(Malformed)
        );
    }

    #[test]
    fn errors_come_with_and_without_a_state() {
        let with = ServerError::of(b"\xff\x28\x04#42000You have").unwrap();
        assert_eq!((with.code, &*with.state), (1064, "42000"));
        assert_eq!(with.message, "You have");
        let without = ServerError::of(b"\xff\x10\x04Too many").unwrap();
        assert_eq!((without.code, &*without.state), (1040, "HY000"));
        assert_eq!(without.message, "Too many");
    }

    #[test]
    fn endings_say_whether_more_follows() {
        let ok = Ending::of_ok(&[0, 3, 9, 0x0A, 0, 2, 0]).unwrap();
        assert_eq!((ok.affected, ok.insert_id, ok.warnings), (3, 9, 2));
        assert!(ok.session.autocommit && !ok.session.in_transaction);
        assert!(ok.more);
        let eof = Ending::of_eof(&[0xFE, 1, 0, 2, 0]).unwrap();
        assert_eq!((eof.warnings, eof.more), (1, false));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Ending::of_ok(&bytes);
            let _ = Ending::of_eof(&bytes);
            let _ = ServerError::of(&bytes);
            let _ = Column::of(&bytes);
            let mut rest = Bytes(&bytes);
            while rest.string().is_ok() {}
            rest.until_zero();
        }
    }
}
