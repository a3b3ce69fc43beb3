//! What opens an encrypted repository: files that were named, read here.

use crate::args::{BinlogArchive, Connection, EncryptTo, Keys};
use crate::opened::{self, Waiting};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Cancel, Error, ErrorKind, Result};
use evenkeel_repository::secrecy::SecretString;
use evenkeel_repository::{Credentials, Encrypt, Location};
use std::io::Read;
use std::path::{Path, PathBuf};

/// No identity file or passphrase is longer.
const LENGTH_MAX: u64 = 64 << 10;

/// Returns the place with what opens it: what was typed, else what the option files say under
/// `[evenkeel]` and the verb's own group.
pub fn unlock(place: Location, typed: &Keys, verb: &str, cancel: &Cancel) -> Result<Location> {
    let files = Connection::default();
    Ok(place.opened_with(credentials(typed, &files, verb, cancel)?))
}

/// Does the same for an archiver, which may make the repository, and reads the option files that its
/// connection names.
pub fn unlock_archive(place: Location, args: &BinlogArchive, cancel: &Cancel) -> Result<Location> {
    let opens = credentials(&args.keys, &args.connection, "binlog", cancel)?;
    made_for(place.opened_with(opens), &args.keys, &args.encrypt, cancel)
}

/// Does the same for a verb that may make the repository.
pub fn unlock_or_encrypt(
    place: Location,
    typed: &Keys,
    to: &EncryptTo,
    verb: &str,
    cancel: &Cancel,
) -> Result<Location> {
    made_for(unlock(place, typed, verb, cancel)?, typed, to, cancel)
}

fn made_for(place: Location, typed: &Keys, to: &EncryptTo, cancel: &Cancel) -> Result<Location> {
    // Over a link, the other side has made it.
    if typed.session_keys.is_some() {
        return Ok(place);
    }
    Ok(place.encrypted_for(encrypt(to, cancel)?))
}

/// Returns for whom a new repository must be encrypted.
pub fn encrypt(typed: &EncryptTo, cancel: &Cancel) -> Result<Encrypt> {
    let passphrase = typed.encrypt_passphrase_file.as_deref();
    Ok(Encrypt {
        readers: typed.encrypt_to.clone(),
        writers: Vec::new(),
        passphrase: passphrase
            .map(|path| passphrase_in(path, cancel))
            .transpose()?,
    })
}

fn credentials(
    typed: &Keys,
    files: &Connection,
    verb: &str,
    cancel: &Cancel,
) -> Result<Credentials> {
    if let Some(keys) = &typed.session_keys {
        let mut credentials = Credentials::default();
        credentials.add_session(SecretString::from(keys.0.clone()));
        return Ok(credentials);
    }
    let (identities, passphrase) = match typed.identity.is_empty() {
        true if typed.passphrase_file.is_none() => from_files(files, verb)?,
        _ => (typed.identity.clone(), typed.passphrase_file.clone()),
    };
    let mut credentials = self::identities(&identities, cancel)?;
    if let Some(path) = passphrase {
        credentials.add_passphrase(passphrase_in(&path, cancel)?);
    }
    Ok(credentials)
}

/// Returns what is in identity files.
pub fn identities(paths: &[PathBuf], cancel: &Cancel) -> Result<Credentials> {
    let mut credentials = Credentials::default();
    for path in paths {
        let text = read(path, cancel)?;
        credentials.add_identities(&path.display().to_string(), &text)?;
    }
    Ok(credentials)
}

/// What the option files of this user say.
fn from_files(files: &Connection, verb: &str) -> Result<(Vec<PathBuf>, Option<PathBuf>)> {
    // Of a verb that talks to a server, they were read with what was typed.
    if verb == "backup" {
        return Ok((Vec::new(), None));
    }
    let own = super::resolved(files, verb)?.own;
    let path = |name: &str| {
        let mut all = own.iter();
        let found = all.find(|(known, _)| known.as_str() == name)?;
        found.1.value.as_ref().map(PathBuf::from)
    };
    Ok((
        path("identity").into_iter().collect(),
        path("passphrase-file"),
    ))
}

/// Returns the first line of a file.
pub fn passphrase_in(path: &Path, cancel: &Cancel) -> Result<SecretString> {
    let text = read(path, cancel)?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        return Err(Error::new(
            ErrorKind::WrongKey,
            format!("{} holds no passphrase", path.display()),
        )
        .hint("its first line is the passphrase"));
    }
    Ok(SecretString::from(line.to_owned()))
}

/// Reads a small file of text; the memory it is in is overwritten afterwards.
fn read(path: &Path, cancel: &Cancel) -> Result<zeroize::Zeroizing<String>> {
    let failed = |error: std::io::Error| {
        // No key was tried: the command line is wrong.
        if error.kind() == std::io::ErrorKind::NotFound {
            return unreadable("key file", path, error);
        }
        Error::new(
            ErrorKind::WrongKey,
            format!("failed to read the key file {}", path.display()),
        )
        .because(error)
        .hint("name a file that this user may read")
    };
    let mut text = zeroize::Zeroizing::new(String::new());
    let from = opened::open(path).map_err(failed)?;
    let read = Waiting { from, cancel }
        .take(LENGTH_MAX)
        .read_to_string(&mut text);
    cancel.check()?;
    read.map_err(failed)?;
    Ok(text)
}
