//! Archives of binary logs beside the files that they were made of.

use crate::Site;
use evenkeel_backup::archive::extract;
use evenkeel_repository::Location;
use std::fs;

/// Checks that every file of the archive is the server's, as far as it is there (`whole`: to its end), and
/// returns how many there are.
pub fn assert_equal(site: &Site, whole: bool) -> usize {
    let into = site.fs.join("extracted");
    let location = Location::from(site.repository());
    let names = extract(&location, None, None, &into).expect("an archive");
    for name in &names {
        let ours = fs::read(into.join(name)).expect("an extracted file");
        let mut theirs = fs::read(site.fs.join("data").join(name)).expect("the server's file");
        if !whole {
            theirs.truncate(ours.len());
        }
        // The server marks the file that it writes.
        theirs[4 + 17] &= !1;
        assert!(ours == theirs, "{}: {name} differs", site.server.name);
    }
    fs::remove_dir_all(into).expect("a directory");
    names.len()
}
