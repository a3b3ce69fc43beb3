//! What cannot be made new this way.

use super::beside::Beside;
use super::broken::Broken;
use super::{ResyncRequest, Sibling, SiblingChannel};
use evenkeel_op::{Context, Error, ErrorKind, Result};
use evenkeel_server::abilities::{Abilities, Flavour};
use evenkeel_server::connect::Session;
use evenkeel_server::files::ServerFiles;
use evenkeel_server::launch::Binary;
use evenkeel_server::options::ConnectOptions;
use evenkeel_server::replication::SourceCoordinates;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// What `statfs` says of btrfs, and the number of a subvolume's root there.
const BTRFS: i64 = 0x9123_683E;
const SUBVOLUME: u64 = 256;

/// Refuses a directory that cannot be renamed, or not be removed afterwards.
pub(super) fn unfit(beside: &Beside) -> Result<()> {
    let place = beside.datadir.display();
    mounts(&beside.datadir)?;
    let open = beside.data()?;
    let failed = || format!("failed to look at {place}");
    let stat = open.stat().context(failed)?;
    let filesystem = rustix::fs::fstatfs(&open)
        .map_err(std::io::Error::from)
        .context(failed)?;
    if filesystem.f_type as i64 == BTRFS && stat.st_ino == SUBVOLUME {
        return Err(Error::refused(format!(
            "{place} is a btrfs subvolume, and the new files would be an ordinary directory"
        ))
        .hint("clone the sibling into a new subvolume: evenkeel clone --target DIR"));
    }
    if stat.st_uid == 0 {
        return Err(Error::refused(format!(
            "{place} belongs to root, and evenkeel starts no server as root"
        ))
        .hint("give it to the account that the server runs as"));
    }
    Ok(())
}

/// Refuses a directory that is a mount point, or has one in it.
pub(super) fn mounts(directory: &Path) -> Result<()> {
    let text = fs::read("/proc/self/mountinfo").context(|| "failed to list mounts")?;
    let Some(mount) = mount_in(&text, directory) else {
        return Ok(());
    };
    let place = directory.display();
    Err(match mount == directory {
        true => Error::refused(format!(
            "{place} is a mount point, which cannot be exchanged for another directory"
        ))
        .hint("keep the data in a directory below the mount point, and name that one"),
        false => Error::refused(format!("{} is mounted in {place}", mount.display()))
            .hint("unmount it first: the old files are removed in the end"),
    })
}

fn mount_in(mountinfo: &[u8], directory: &Path) -> Option<PathBuf> {
    let lines = mountinfo.split(|byte| *byte == b'\n');
    let places = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4).map(unescaped));
    places
        .into_iter()
        .find(|mount| mount.starts_with(directory))
}

/// A path as the kernel shows it: `\040` for a space.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let digits = text.get(at + 1..at + 4).filter(|_| text[at] == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                at += 4;
            }
            None => {
                bytes.push(text[at]);
                at += 1;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// Refuses a server with files outside of its data directory.
pub(super) fn outside(files: &ServerFiles) -> Result<()> {
    let outside: Vec<String> = files
        .roots
        .iter()
        .filter(|root| root.id != "data")
        .map(|root| format!("{} ({})", root.path.display(), root.id))
        .collect();
    if outside.is_empty() {
        return Ok(());
    }
    Err(Error::refused(format!(
        "files of the broken server lie outside its data directory: {}",
        outside.join(", ")
    ))
    .hint("clone the sibling with 'evenkeel clone', and start a server on that"))
}

/// Refuses a sibling that is none, or is not well.
pub(super) fn sibling(sibling: &Sibling, broken: &Broken) -> Result<()> {
    let name = &sibling.server;
    let [channel] = sibling.channels.as_slice() else {
        let count = sibling.channels.len();
        return Err(Error::refused(format!(
            "the sibling {name} replicates from {count} sources, and it must be one"
        ))
        .hint(
            "name another replica of the source; for a replica of a source itself: evenkeel clone",
        ));
    };
    let same = |one: &Option<String>, other: &Option<String>| one.is_some() && one == other;
    let number = |one: Option<u64>| one.is_some() && one == broken.server_id;
    if same(&sibling.server_uuid, &broken.server_uuid) {
        return Err(Error::refused(format!(
            "the sibling {name} is the broken server itself: both have the UUID {}",
            broken.server_uuid.as_deref().unwrap_or_default()
        )));
    }
    if number(sibling.server_id) {
        return Err(Error::refused(format!(
            "the sibling {name} has the broken server's server_id: it is that server, or its double"
        ))
        .hint("each server needs a server_id of its own: SELECT @@server_id"));
    }
    if same(&channel.source_server_uuid, &broken.server_uuid) || number(channel.source_server_id) {
        return Err(Error::refused(format!(
            "the sibling {name} replicates from the server that should be replaced: that is its source"
        ))
        .hint("a source is never touched"));
    }
    if channel.filtered {
        return Err(Error::refused(format!(
            "the sibling {name} does not apply all that its source has: it has replication filters"
        ))
        .hint("name a replica without filters, or clone it: evenkeel clone"));
    }
    let is_well = |thread: &str| thread == "running";
    if !is_well(&channel.io_thread) || !is_well(&channel.sql_thread) {
        return Err(Error::refused(format!(
            "the sibling {name} is not healthy: IO thread {}, SQL thread {}",
            channel.io_thread, channel.sql_thread
        ))
        .hint("'evenkeel replica diagnose' says what is wrong with it")
        .hint("or name another replica of the same source"));
    }
    Ok(())
}

/// Refuses a replica of another source, of which all would be lost, and one of several.
pub(super) fn other_source(request: &ResyncRequest, broken: &Broken) -> Result<()> {
    if broken.channels > 1 {
        return Err(Error::refused(format!(
            "the broken server replicates from {} sources, and it must be one",
            broken.channels
        ))
        .hint("what comes from the others would be lost"));
    }
    let Some(channel) = request.sibling.channels.first() else {
        return Ok(());
    };
    if request.other_source || is_same_source(channel, broken) {
        return Ok(());
    }
    let sibling = &request.sibling.server;
    let theirs = &channel.source;
    if broken.source.is_empty() {
        return Err(Error::refused(format!(
            "it cannot be seen from whom the stopped server on {} replicates: it may be a source itself",
            request.datadir.display()
        ))
        .hint("start it, if it starts, with --skip-slave-start: then it can be asked")
        .hint(format!(
            "if it shall become a replica of {theirs}, give --other-source: all that it has is replaced"
        )));
    }
    Err(Error::refused(format!(
        "the broken server replicates from {}, and the sibling {sibling} from {theirs}",
        broken.source
    ))
    .hint("name a replica of the same source")
    .hint(format!(
        "if {theirs} is the same server, or shall be the source from now on, give --other-source: all that the \
         broken server has is replaced"
    )))
}

/// Whether both have one source. Numbers tell sources apart, but are the same in many clusters.
fn is_same_source(channel: &SiblingChannel, broken: &Broken) -> bool {
    let uuids = channel
        .source_server_uuid
        .as_ref()
        .zip(broken.source_server_uuid.as_ref());
    if let Some((theirs, ours)) = uuids {
        return theirs == ours;
    }
    let numbers = channel.source_server_id.zip(broken.source_server_id);
    numbers.is_none_or(|(theirs, ours)| theirs == ours) && channel.source == broken.source
}

/// Refuses a clone that was replicating from another server than was said.
pub(super) fn other_place(sibling: &Sibling, place: &SourceCoordinates) -> Result<()> {
    let found = format!("{}:{}", place.host, place.port.unwrap_or(3306));
    match sibling.channels.first() {
        Some(channel) if channel.source == found => Ok(()),
        _ => Err(Error::refused(format!(
            "the clone replicates from {found}, which the sibling {} did not say",
            sibling.server
        ))
        .hint("run it again, if the sibling was given another source meanwhile")),
    }
}

/// Refuses a sibling whose files the broken server's program may not be able to read.
pub(super) fn other_version(sibling: &Sibling, broken: &Broken) -> Result<()> {
    let (Some(theirs), Some(ours)) = (&sibling.version, &broken.version) else {
        return Ok(());
    };
    match series(theirs) == series(ours) {
        true => Ok(()),
        false => Err(Error::refused(format!(
            "the sibling's version is {theirs}, and the broken server's is {ours}"
        ))
        .hint("name a sibling of the same version")),
    }
}

/// Whose a version is, and its first two numbers: `10.11` of `10.11.19-MariaDB-log`.
fn series(version: &str) -> (Option<Flavour>, Vec<&str>) {
    let numbers = version.split(['.', '-']).take(2).collect();
    let known = Abilities::of_version(version, "").ok();
    (known.map(|known| known.flavour), numbers)
}

/// Refuses a server of which is not known that it is a replica: it may be the source.
pub(super) fn no_replica(request: &ResyncRequest, broken: &Broken) -> Result<()> {
    if broken.ran {
        if broken.channels > 0 {
            return Ok(());
        }
        let why = match broken.replicas {
            0 => "has no source configured",
            _ => "has no source configured, but replicas: it may be a source",
        };
        return Err(Error::refused(format!(
            "the server on {} is not a replica: it {why}",
            request.datadir.display()
        ))
        .hint("for a new replica: evenkeel clone"));
    }
    // Of a stopped one, its source says so.
    Ok(())
}

/// Refuses the socket of another server: at that of one that does not run, nobody answers.
pub(super) fn answering(options: &ConnectOptions, socket: &Path) -> Result<()> {
    match Session::open(options) {
        Err(error) if error.kind() == ErrorKind::Unreachable => Ok(()),
        _ => Err(Error::refused(format!(
            "the broken server does not run, but a server answers at {}: it is another one's socket",
            socket.display()
        ))
        .hint("name the socket at which the broken server will answer: --broken-socket FILE")),
    }
}

/// Refuses a program that is not one of the sibling's kind of server.
pub(super) fn other_program(binary: &Binary, sibling: &Sibling) -> Result<()> {
    let version = sibling.version.as_deref().unwrap_or_default();
    match Abilities::of_version(version, "") {
        Ok(known) if !binary.is_of(known.flavour) => Err(Error::refused(format!(
            "{} is {}, and the sibling is {version}",
            binary.path.display(),
            binary.version
        ))),
        Ok(known) if !reads(&binary.version.to_string(), version, &known) => {
            Err(Error::refused(format!(
                "{} is {}, and the sibling is {version}: it may not be able to read the sibling's files",
                binary.path.display(),
                binary.version
            ))
            .hint("name a sibling of the same version, or a program with --server-binary"))
        }
        _ => Ok(()),
    }
}

/// Whether a program reads files of a version: one of the same series, and of MySQL 8 and later, which change their
/// files within a series, none that is older.
fn reads(program: &str, files: &str, known: &Abilities) -> bool {
    let patch = |version: &str| -> Option<u32> {
        let mut numbers = version.split(['.', '-']);
        numbers.nth(2)?.parse().ok()
    };
    let major = files
        .split('.')
        .next()
        .and_then(|text| text.parse::<u32>().ok());
    let is_mariadb = known.show_all_replicas_status;
    let is_strict = !is_mariadb && major.is_some_and(|major| major >= 8);
    let numbers = |version: &str| -> Vec<String> {
        version
            .split(['.', '-'])
            .take(2)
            .map(str::to_owned)
            .collect()
    };
    numbers(program) == numbers(files) && (!is_strict || patch(program) >= patch(files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_a_series_are_alike() {
        assert_eq!(series("10.11.19-MariaDB-log"), series("10.11.6-MariaDB"));
        assert_ne!(series("8.0.15"), series("8.4.1"));
        assert_ne!(series("11.8.1-MariaDB"), series("11.8.1"));
    }

    #[test]
    fn older_programs_do_not_read_newer_files() {
        let reads = |program: &str, files: &str| {
            let known = Abilities::of_version(files, "").unwrap();
            reads(program, files, &known)
        };
        assert!(reads("8.0.36", "8.0.15"));
        assert!(!reads("8.0.15", "8.0.36"));
        assert!(reads("5.7.22", "5.7.44"));
        assert!(reads("10.11.6", "10.11.19-MariaDB"));
        assert!(!reads("10.6.22", "10.11.19-MariaDB"));
    }

    #[test]
    fn mounts_are_found_by_their_names() {
        let text =
            b"36 35 98:0 / /srv/my\\040data/a rw - xfs /dev/a rw\n37 35 98:0 / /srv/other rw\n";
        let found = |path: &str| mount_in(text, Path::new(path));
        assert_eq!(found("/srv/my data"), Some(PathBuf::from("/srv/my data/a")));
        assert_eq!(found("/srv/other"), Some(PathBuf::from("/srv/other")));
        assert_eq!(found("/srv/oth"), None);
        assert_eq!(found("/srv/my data/a/b"), None);
    }
}
