//! A file that was named: whether it can be a tablespace at all.

use super::shape::is_unborn;
use evenkeel_innodb::{Probe, SpaceFormat};
use evenkeel_op::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How much of a file tells its format, in bytes.
const START: u64 = 1 << 20;

/// Refuses a file, not called like a tablespace, that has nothing of one in it: to call it damaged would
/// be wrong. One that cannot be read says so when its pages are read.
pub(super) fn refuse_other_files(path: &Path) -> Result<()> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(START).read_to_end(&mut start));
    if read.is_err() || has_pages_in(&start) {
        return Ok(());
    }
    let path = path.display();
    Err(Error::usage(format!("{path} is not an InnoDB tablespace"))
        .hint("name a data directory, or files that end in .ibd"))
}

fn has_pages_in(start: &[u8]) -> bool {
    let first = &start[..start.len().min(65536)];
    match SpaceFormat::parse(first) {
        Probe::Checkable(_) => true,
        Probe::NotCheckable(_) => is_unborn(start) || SpaceFormat::guess(start).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_tell() {
        let dir = tempfile::tempdir().unwrap();
        let text = "root:x:0:0:root:/root:/bin/bash\n".repeat(100);
        for (name, content, is_one) in [
            ("passwd", text.as_bytes(), false),
            ("empty", b"", false),
            ("new", &[0; 65536], true),
        ] {
            let path = dir.path().join(name);
            std::fs::write(&path, content).unwrap();
            assert_eq!(refuse_other_files(&path).is_ok(), is_one, "{name}");
        }
    }
}
