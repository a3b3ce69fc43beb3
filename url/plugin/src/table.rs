//! Which table the functions use: that of the library's name, or of a file beside it, or the one that
//! is built in. It is read once and never changes while the server runs.
//!
//! `evenkeel plugin install` calls the library `evenkeel_url_<build>_<table>.so`. Such a library
//! works with that table and no other: the built-in one if that is its id, else
//! `evenkeel_url_<table>.urltable`. One of any other name, copied by hand, takes `evenkeel.urltable` if
//! that lies beside it.
#![allow(unsafe_code)] // dladdr

use evenkeel_urlcodec::CodeTable;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// No table is longer, in bytes.
const FILE_MAX: u64 = 1 << 30;

/// Returns the table. What is in the way is said in few words first: the user sees 80 bytes.
pub(crate) fn used() -> Result<&'static CodeTable, String> {
    static TABLE: OnceLock<CodeTable> = OnceLock::new();
    // A failure is not kept: with a file that was repaired, the next statement works.
    static READING: Mutex<()> = Mutex::new(());
    if let Some(table) = TABLE.get() {
        return Ok(table);
    }
    let _reading = READING.lock().unwrap_or_else(PoisonError::into_inner);
    match TABLE.get() {
        Some(table) => Ok(table),
        None => {
            let table = for_library(&library()?)?;
            Ok(TABLE.get_or_init(|| table))
        }
    }
}

/// Returns where this library was loaded from.
fn library() -> Result<PathBuf, String> {
    // SAFETY: all fields may be zero.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is one of this library's; what is found lives as long as it is loaded.
    let name = unsafe {
        match libc::dladdr(library as *const libc::c_void, &mut found) {
            0 => None,
            _ if found.dli_fname.is_null() => None,
            _ => Some(CStr::from_ptr(found.dli_fname)),
        }
    };
    let name = name.ok_or_else(|| "it cannot tell where its library is".to_owned())?;
    Ok(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

fn for_library(library: &Path) -> Result<CodeTable, String> {
    let directory = library.parent().unwrap_or_else(|| Path::new("."));
    let stem = library.file_stem().and_then(OsStr::to_str);
    match stem.and_then(table_in_name) {
        Some(id) => named(directory, id),
        None => beside(directory),
    }
}

/// Returns the table's id in a library's name.
fn table_in_name(stem: &str) -> Option<&str> {
    let (build, id) = stem.strip_prefix("evenkeel_url_")?.split_once('_')?;
    let is_id = |text: &str| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    (is_id(build) && is_id(id)).then_some(id)
}

fn named(directory: &Path, id: &str) -> Result<CodeTable, String> {
    let built_in = built_in()?;
    if built_in.id() == id {
        return Ok(built_in);
    }
    let table = read(&directory.join(format!("evenkeel_url_{id}.urltable")))?
        .ok_or_else(|| format!("evenkeel_url_{id}.urltable is not beside its library"))?;
    match table.id() == id {
        true => Ok(table),
        false => Err(format!(
            "evenkeel_url_{id}.urltable holds table {}",
            table.id()
        )),
    }
}

fn beside(directory: &Path) -> Result<CodeTable, String> {
    match read(&directory.join("evenkeel.urltable"))? {
        Some(table) => Ok(table),
        None => built_in(),
    }
}

fn built_in() -> Result<CodeTable, String> {
    CodeTable::shipped().map_err(|error| error.to_string())
}

/// Reads a table, `None` where there is no file.
fn read(path: &Path) -> Result<Option<CodeTable>, String> {
    let failed = |error: std::io::Error| format!("its table cannot be read: {error}");
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_MAX)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let table = CodeTable::read(bytes).map_err(|error| {
        // Of "this is not a table for URLs: it was cut", the second half.
        let why = error.to_string();
        let why = why.split_once(": ").map_or(&*why, |(_, why)| why);
        format!("its table file is damaged: {why}")
    })?;
    Ok(Some(table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_table() {
        let name = "evenkeel_url_0123456789abcdef_fedcba9876543210";
        assert_eq!(table_in_name(name), Some("fedcba9876543210"));
        for other in ["evenkeel_url", "libevenkeel_url", "evenkeel_url_0_1"] {
            assert_eq!(table_in_name(other), None, "{other}");
        }
    }

    #[test]
    fn a_library_without_a_name_takes_what_lies_beside_it_and_never_something_else() {
        let directory = tempfile::tempdir().unwrap();
        let library = directory.path().join("evenkeel_url.so");
        let built_in = built_in().unwrap();
        assert_eq!(for_library(&library).unwrap().id(), built_in.id());
        let table = directory.path().join("evenkeel.urltable");
        std::fs::write(&table, built_in.file()).unwrap();
        assert_eq!(for_library(&library).unwrap().id(), built_in.id());
        std::fs::write(&table, &built_in.file()[..1000]).unwrap();
        let why = for_library(&library).unwrap_err();
        assert!(why.contains("truncated") && why.len() <= 80, "{why}");
        std::fs::remove_file(&table).unwrap();
        std::fs::create_dir(&table).unwrap();
        for_library(&library).unwrap_err();
    }

    #[test]
    fn a_named_table_is_there_or_nothing_works() {
        let directory = tempfile::tempdir().unwrap();
        let built_in = built_in().unwrap();
        let library = |id: &str| {
            let name = format!("evenkeel_url_0123456789abcdef_{id}.so");
            directory.path().join(name)
        };
        assert_eq!(
            for_library(&library(&built_in.id())).unwrap().id(),
            built_in.id()
        );
        let other = "00000000000000aa";
        let why = for_library(&library(other)).unwrap_err();
        assert!(why.contains("is not beside") && why.len() <= 80, "{why}");
        let file = directory
            .path()
            .join(format!("evenkeel_url_{other}.urltable"));
        std::fs::write(file, built_in.file()).unwrap();
        let why = for_library(&library(other)).unwrap_err();
        assert!(why.contains("holds table") && why.len() <= 80, "{why}");
    }
}
