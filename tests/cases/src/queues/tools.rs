//! Programs that come with a server.

use super::QueueSite;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// A program that comes with the server; where that one is not here, Debian's. They look for each other beside
/// themselves.
///
/// # Panics
///
/// They are nowhere.
#[must_use]
pub fn tool(site: &QueueSite, name: &str) -> Command {
    let (bin, usr) = (site.launch.datadir.with_extension("bin"), Path::new("/usr"));
    let own = site.launch.binary.path.parent().and_then(Path::parent);
    fs::create_dir_all(&bin).expect("a directory");
    for name in [
        "mariadb",
        "mariadb-check",
        "mariadb-dump",
        "mariadb-upgrade",
    ] {
        let places = [own.unwrap_or(usr), usr].map(|place| place.join("bin").join(name));
        let place = places.into_iter().find(|path| path.exists());
        let _ = symlink(place.expect("the clients of MariaDB"), bin.join(name));
    }
    let mut command = Command::new(bin.join(name));
    command
        .args(["--no-defaults", "-u", "root", "-S"])
        .arg(site.running.socket());
    command
}
