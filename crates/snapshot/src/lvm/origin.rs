//! Which logical volume files are on, and where in it.

use super::mount;
use super::report::{self, Lv};
use super::tool;
use crate::volume::{self, VolumeKind, device_number};
use crate::{Layout, filesystem};
use evenkeel_op::{Context, Error, Result};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A volume of which a snapshot should be made.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) lv: Lv,
    /// Where its filesystem is mounted; none for a volume that is backed up as it is.
    pub(super) mounts: Option<Mounts>,
    /// The volume as it was named, if it is backed up as it is.
    pub(super) raw: Option<PathBuf>,
}

/// The places at which one filesystem is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mounts {
    pub(super) kind: String,
    device: u64,
    /// Mount point, and which directory of the filesystem should be seen there.
    places: Vec<(PathBuf, PathBuf)>,
}

impl Mounts {
    /// Returns where a path (without links) is in the filesystem.
    pub(super) fn inside(&self, path: &Path) -> Result<PathBuf> {
        let place = self
            .places
            .iter()
            .filter(|(point, _)| path.starts_with(point))
            .max_by_key(|(point, _)| point.as_os_str().len());
        let outside = || {
            Error::refused(format!(
                "{} is on another filesystem than the snapshot's",
                path.display()
            ))
        };
        let (point, root) = place.ok_or_else(outside)?;
        let below = path.strip_prefix(point).map_err(|_| outside())?;
        let root = root.strip_prefix("/").unwrap_or(root);
        Ok(root.join(below))
    }

    /// Fails when a path is on another filesystem, as something mounted below a mount point is.
    pub(super) fn require(&self, path: &Path) -> Result<()> {
        let facts = path
            .metadata()
            .context(|| format!("failed to find {}", path.display()))?;
        if facts.dev() == self.device {
            return Ok(());
        }
        Err(Error::refused(format!(
            "{} is on another filesystem than the snapshot's",
            path.display()
        )))
    }
}

/// Returns the volumes that a layout is on: the one that all directories of a server are on, or every
/// volume that should be backed up as it is. And all volumes of the host, as they are now.
pub(super) fn find(layout: &Layout) -> Result<(Vec<Origin>, Vec<Lv>)> {
    let devices = layout
        .volumes
        .iter()
        .map(|path| Ok(volume::kind(path)? == VolumeKind::Device))
        .collect::<Result<Vec<bool>>>()?;
    if devices.iter().any(|is_device| *is_device) {
        if !devices.iter().all(|is_device| *is_device) {
            return Err(
                Error::refused("files and block devices cannot be frozen together")
                    .hint("back them up one by one, each into its own repository"),
            );
        }
        let each = layout.volumes.iter().map(|path| {
            let facts = path
                .metadata()
                .context(|| format!("failed to find {}", path.display()))?;
            Ok((path.clone(), facts.rdev()))
        });
        return raw(each.collect::<Result<_>>()?);
    }
    let (origin, all) = mounted(layout)?;
    Ok((vec![origin], all))
}

fn raw(volumes: Vec<(PathBuf, u64)>) -> Result<(Vec<Origin>, Vec<Lv>)> {
    for (path, device) in &volumes {
        require_logical(*device, path)?;
    }
    let all = report::volumes()?;
    let origin = |(path, device): (PathBuf, u64)| {
        Ok(Origin {
            lv: by_device(&all, device, &path)?.clone(),
            mounts: None,
            raw: Some(path),
        })
    };
    let origins = volumes.into_iter().map(origin).collect::<Result<_>>()?;
    Ok((origins, all))
}

fn mounted(layout: &Layout) -> Result<(Origin, Vec<Lv>)> {
    let mut first: Option<(&Path, u64)> = None;
    for directory in [&layout.datadir].into_iter().chain(&layout.dirs) {
        let facts = directory
            .metadata()
            .context(|| format!("failed to find {}", directory.display()))?;
        match first {
            None => {
                require_logical(facts.dev(), directory)?;
                first = Some((directory, facts.dev()));
            }
            Some((other, device)) if device != facts.dev() => {
                return Err(Error::refused(format!(
                    "{} and {} are not on one volume, so no snapshot covers both at one point in time",
                    other.display(),
                    directory.display()
                )));
            }
            Some(_) => {}
        }
    }
    let (directory, device) = first.ok_or_else(|| Error::failed("there is no directory"))?;
    let mounts = mounts_of(device, directory)?;
    mount::require(&mounts.kind)?;
    let all = report::volumes()?;
    let origin = Origin {
        lv: by_device(&all, device, directory)?.clone(),
        mounts: Some(mounts),
        raw: None,
    };
    Ok((origin, all))
}

/// Fails when a device is not a volume of LVM, before any program is asked.
fn require_logical(device: u64, path: &Path) -> Result<()> {
    let directory = format!("/sys/dev/block/{}", device_number(device));
    let uuid = fs::read_to_string(format!("{directory}/dm/uuid")).unwrap_or_default();
    if uuid.starts_with("LVM-") {
        return tool::require("lvs").map(|_| ());
    }
    let device = fs::read_link(&directory).ok();
    let device = device.as_deref().and_then(Path::file_name);
    let kind = filesystem::KnownFilesystem::of(path)
        .map_or_else(|_| "a filesystem".into(), |kind| kind.name());
    let what = match device {
        Some(name) => format!("on {}, which is not", name.to_string_lossy()),
        None => format!("on {kind} that is not on"),
    };
    Err(Error::refused(format!(
        "{} is {what} a logical volume",
        path.display()
    )))
}

fn by_device<'a>(all: &'a [Lv], device: u64, path: &Path) -> Result<&'a Lv> {
    let number = (rustix::fs::major(device), rustix::fs::minor(device));
    all.iter()
        .find(|lv| lv.device == Some(number))
        .ok_or_else(|| {
            Error::refused(format!(
                "lvs does not know the volume that {} is on",
                path.display()
            ))
        })
}

fn mounts_of(device: u64, directory: &Path) -> Result<Mounts> {
    let text = fs::read_to_string("/proc/self/mountinfo").context(|| "failed to list mounts")?;
    let mounts = parse_mounts(&text, &device_number(device), device);
    let mounts = mounts.ok_or_else(|| {
        Error::refused(format!("no visible mount contains {}", directory.display()))
    })??;
    Ok(mounts)
}

/// Reads `mountinfo`; nothing when no line is of the device.
fn parse_mounts(text: &str, number: &str, device: u64) -> Option<Result<Mounts>> {
    let mut found: Option<Mounts> = None;
    for line in text.lines() {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(2);
        if fields.next() != Some(number) {
            continue;
        }
        let (Some(root), Some(point)) = (fields.next(), fields.next()) else {
            continue;
        };
        let mut behind = after.split(' ');
        let (kind, options) = (behind.next()?, behind.nth(1).unwrap_or_default());
        let elsewhere =
            |option: &str| option.starts_with("rtdev=") || option.starts_with("logdev=");
        if let Some(option) = options.split(',').find(|option| elsewhere(option)) {
            return Some(Err(Error::refused(format!(
                "the filesystem at {} is not on one volume alone ({option})",
                unescaped(point).display()
            ))));
        }
        let mounts = found.get_or_insert_with(|| Mounts {
            kind: kind.to_owned(),
            device,
            places: Vec::new(),
        });
        mounts.places.push((unescaped(point), unescaped(root)));
    }
    found.map(Ok)
}

/// Resolves the octal escapes of `mountinfo`.
fn unescaped(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        let code = code.and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 1 0:21 / /proc rw - proc proc rw
30 1 253:4 / /srv rw,noatime shared:1 - xfs /dev/mapper/vg-data rw,attr2
31 1 253:4 /sub /srv/my\\040data rw - xfs /dev/mapper/vg-data rw,attr2
32 1 253:5 / /log rw - xfs /dev/mapper/vg-log rw,logdev=/dev/sdb1
";

    #[test]
    fn paths_are_found_inside_the_filesystem() {
        let mounts = parse_mounts(TEXT, "253:4", 7).unwrap().unwrap();
        assert_eq!(mounts.kind, "xfs");
        let inside = |path: &str| mounts.inside(Path::new(path)).unwrap();
        assert_eq!(inside("/srv/a/b"), PathBuf::from("a/b"));
        assert_eq!(inside("/srv/my data/c"), PathBuf::from("sub/c"));
        assert_eq!(inside("/srv"), PathBuf::from(""));
        assert!(mounts.inside(Path::new("/elsewhere")).is_err());
        assert!(parse_mounts(TEXT, "8:1", 7).is_none());
    }

    #[test]
    fn filesystems_on_two_devices_are_refused() {
        let refused = parse_mounts(TEXT, "253:5", 7).unwrap().unwrap_err();
        assert!(refused.to_string().contains("logdev"), "{refused}");
    }

    #[test]
    fn what_is_on_no_logical_volume_is_refused() {
        let layout = Layout {
            datadir: "/proc/self".into(),
            ..Layout::default()
        };
        let refused = find(&layout).unwrap_err();
        assert!(refused.to_string().contains("logical volume"), "{refused}");
    }
}
