//! What opens an encrypted repository: files that were named, read here.

use crate::args::{BinlogArchive, Connection, EncryptTo, Keys};
use evenkeel_op::paths::unreadable;
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_repository::secrecy::SecretString;
use evenkeel_repository::{Credentials, Encrypt, Location};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// No identity file or passphrase is longer.
const LENGTH_MAX: u64 = 64 << 10;

/// Returns the place with what opens it: what was typed, else what the option files say under
/// `[evenkeel]` and the verb's own group.
pub fn unlock(place: Location, typed: &Keys, verb: &str) -> Result<Location> {
    let files = Connection::default();
    Ok(place.opened_with(credentials(typed, &files, verb)?))
}

/// Does the same for an archiver, which may make the repository, and reads the option files that its
/// connection names.
pub fn unlock_archive(place: Location, args: &BinlogArchive) -> Result<Location> {
    let opens = credentials(&args.keys, &args.connection, "binlog")?;
    made_for(place.opened_with(opens), &args.keys, &args.encrypt)
}

/// Does the same for a verb that may make the repository.
pub fn unlock_or_encrypt(
    place: Location,
    typed: &Keys,
    to: &EncryptTo,
    verb: &str,
) -> Result<Location> {
    made_for(unlock(place, typed, verb)?, typed, to)
}

fn made_for(place: Location, typed: &Keys, to: &EncryptTo) -> Result<Location> {
    // Over a link, the other side has made it.
    if typed.session_keys.is_some() {
        return Ok(place);
    }
    Ok(place.encrypted_for(encrypt(to)?))
}

/// Returns for whom a new repository must be encrypted.
pub fn encrypt(typed: &EncryptTo) -> Result<Encrypt> {
    let passphrase = typed.encrypt_passphrase_file.as_deref();
    Ok(Encrypt {
        readers: typed.encrypt_to.clone(),
        writers: Vec::new(),
        passphrase: passphrase.map(passphrase_in).transpose()?,
    })
}

fn credentials(typed: &Keys, files: &Connection, verb: &str) -> Result<Credentials> {
    if let Some(keys) = &typed.session_keys {
        let mut credentials = Credentials::default();
        credentials.add_session(SecretString::from(keys.0.clone()));
        return Ok(credentials);
    }
    let (identities, passphrase) = match typed.identity.is_empty() {
        true if typed.passphrase_file.is_none() => from_files(files, verb)?,
        _ => (typed.identity.clone(), typed.passphrase_file.clone()),
    };
    let mut credentials = self::identities(&identities)?;
    if let Some(path) = passphrase {
        credentials.add_passphrase(passphrase_in(&path)?);
    }
    Ok(credentials)
}

/// Returns what is in identity files.
pub fn identities(paths: &[PathBuf]) -> Result<Credentials> {
    let mut credentials = Credentials::default();
    for path in paths {
        let text = read(path)?;
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
pub fn passphrase_in(path: &Path) -> Result<SecretString> {
    let text = read(path)?;
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
fn read(path: &Path) -> Result<zeroize::Zeroizing<String>> {
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
    let file = File::open(path).map_err(failed)?;
    let read = file.take(LENGTH_MAX).read_to_string(&mut text);
    read.map_err(failed)?;
    Ok(text)
}
