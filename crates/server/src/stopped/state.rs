//! Small files that a server keeps of itself in its data directory.

use rustix::fs::{self as sys, Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// No such file is longer, in bytes.
const LONGEST: u64 = 1 << 20;

/// Reads one; nothing where there is none that is a regular file. The server's account can put a link there, or a
/// pipe that nobody writes to.
pub(super) fn read(datadir: &Path, name: &str) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(sys::open(datadir.join(name), flags, Mode::empty()).ok()?);
    let mut bytes = Vec::new();
    match file.metadata().ok()?.is_file() {
        true => file.take(LONGEST).read_to_end(&mut bytes).ok()?,
        false => return None,
    };
    Some(bytes)
}

/// Returns the name that MySQL, from 5.6 on, gave itself: `server_uuid`, as `auto.cnf` has it.
#[must_use]
pub fn server_uuid(datadir: &Path) -> Option<String> {
    let bytes = read(datadir, "auto.cnf")?;
    let text = String::from_utf8(bytes).ok()?;
    let value = |line: &str| {
        let (name, value) = line.split_once('=')?;
        let is_it = matches!(name.trim(), "server-uuid" | "server_uuid");
        is_it.then(|| value.trim().to_owned())
    };
    text.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uuid_is_read_from_a_regular_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(server_uuid(dir.path()), None);
        let (real, elsewhere) = (dir.path().join("auto.cnf"), dir.path().join("elsewhere"));
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        std::fs::write(&real, format!("[auto]\nserver-uuid={uuid}\n")).unwrap();
        assert_eq!(server_uuid(dir.path()).as_deref(), Some(uuid));
        std::fs::rename(&real, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &real).unwrap();
        assert_eq!(server_uuid(dir.path()), None);
        std::fs::remove_file(&real).unwrap();
        // Whoever opens it for reading would wait for a writer.
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &real,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(server_uuid(dir.path()), None);
    }
}
