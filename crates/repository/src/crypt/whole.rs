//! Objects that are encrypted as a whole, as `age` does it: whoever has the identity can also decrypt them without us.

use super::credentials::{Credentials, Recipient};
use crate::store::{NewObject, StoredObject};
use age::stream::{StreamReader, StreamWriter};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

/// What every file of age begins with.
const MAGIC: &[u8] = b"age-encryption.org/v1";

/// Returns whether something that begins like this was encrypted by age.
#[must_use]
pub fn is_begun_by_age(first: &[u8]) -> bool {
    first.starts_with(MAGIC)
}

/// Has an object encrypted for `recipients` while it is written.
///
/// # Errors
///
/// `Usage` where nobody is named; `Failed` where its beginning cannot be written.
pub fn encrypted(
    object: Box<dyn NewObject>,
    recipients: &[Recipient],
) -> Result<Box<dyn NewObject>> {
    let all = recipients.iter().map(|one| &one.0 as &dyn age::Recipient);
    let encryptor = age::Encryptor::with_recipients(all)
        .map_err(|error| Error::usage(format!("nobody can be encrypted for: {error}")))?;
    let out = encryptor
        .wrap_output(Plain(object))
        .context(|| "failed to begin an encrypted file")?;
    Ok(Box::new(Encrypted(out)))
}

/// Opens an object that was encrypted for one of the identities.
///
/// # Errors
///
/// `WrongKey` where no identity opens it; `Failed` where it cannot be read. `name` stands in messages.
pub fn decrypted(
    object: Box<dyn StoredObject>,
    credentials: &Credentials,
    name: &str,
) -> Result<Box<dyn StoredObject>> {
    let wrong = |why: &str| {
        Error::new(
            ErrorKind::WrongKey,
            format!("{name} is encrypted, and {why}"),
        )
        .hint("give a file with the identity that it was encrypted for: --identity FILE")
    };
    if credentials.identities.is_empty() {
        return Err(wrong("no identity was given"));
    }
    let failed = || format!("failed to decrypt {name}");
    let decryptor = match age::Decryptor::new(Cursor { object, at: 0 }) {
        Err(age::DecryptError::Io(error)) => return Err(error).context(failed),
        other => other.map_err(|error| Error::failed(failed()).because(error))?,
    };
    let identities = credentials.identities.iter();
    let reader = decryptor.decrypt(identities.map(|one| one as &dyn age::Identity));
    let mut reader = match reader {
        Err(age::DecryptError::Io(error)) => return Err(error).context(failed),
        Err(age::DecryptError::NoMatchingKeys) => return Err(wrong("the identity is not the one")),
        other => other.map_err(|error| Error::failed(failed()).because(error))?,
    };
    let size = reader.seek(SeekFrom::End(0)).context(failed)?;
    Ok(Box::new(Decrypted {
        size,
        reader: Mutex::new(reader),
    }))
}

/// The bytes of a new object.
struct Plain(Box<dyn NewObject>);

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Encrypted(StreamWriter<Plain>);

impl NewObject for Encrypted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.finish()?.0.finish()
    }
}

/// A finished object, read from front to back.
struct Cursor {
    object: Box<dyn StoredObject>,
    at: u64,
}

impl Read for Cursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.object.size().saturating_sub(self.at);
        let length = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        self.object.read_exact_at(self.at, &mut buffer[..length])?;
        self.at += length as u64;
        Ok(length)
    }
}

impl Seek for Cursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.object.size().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = to.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

struct Decrypted {
    size: u64,
    reader: Mutex<StreamReader<Cursor>>,
}

impl StoredObject for Decrypted {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        reader.seek(SeekFrom::Start(offset))?;
        reader.read_exact(buffer)
    }
}
