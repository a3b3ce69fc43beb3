//! The time zone that a server's process lives in: what `time_zone=SYSTEM` means there.
//!
//! The server itself only says an abbreviation (`system_time_zone`: `JST`, `CEST`), from which the zone
//! cannot be found again.

use std::fs;
use std::path::Path;

/// Under this name it is kept with the server's variables.
pub const HOST_TIME_ZONE: &str = "host_time_zone";

/// Where zones are, at the end of the path of the directory that holds them.
const ZONES: &str = "zoneinfo/";

/// Returns the zone of a process of this host as `TZ` takes it; `None` when that cannot be seen.
pub(super) fn of_process(pid: i32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let own = environment
        .split(|byte| *byte == 0)
        .find_map(|one| one.strip_prefix(b"TZ="));
    let zone = match own {
        Some(value) => of_variable(std::str::from_utf8(value).ok()?),
        None => of_host(Path::new(&format!("/proc/{pid}/root"))),
    }?;
    is_zone(&zone).then_some(zone)
}

/// Whether a text is one that `TZ` may be set to without leading to any file but a zone.
#[must_use]
pub fn is_zone(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-/:,.<>".contains(&byte);
    !text.is_empty()
        && text.len() <= 100
        && text.bytes().all(plain)
        && !text.starts_with(['/', ':', '.'])
        && !text.contains("..")
}

/// What a value of `TZ` means.
fn of_variable(value: &str) -> Option<String> {
    let value = value.strip_prefix(':').unwrap_or(value);
    match value.rsplit_once(ZONES) {
        Some((_, zone)) => Some(zone.to_owned()),
        None if value.is_empty() => Some("UTC".to_owned()),
        None => Some(value.to_owned()),
    }
}

/// What a host whose root is at `root` goes by.
fn of_host(root: &Path) -> Option<String> {
    let local = root.join("etc/localtime");
    if let Ok(target) = fs::read_link(&local) {
        let target = target.to_str()?;
        return target.rsplit_once(ZONES).map(|(_, zone)| zone.to_owned());
    }
    match fs::read_to_string(root.join("etc/timezone")) {
        Ok(text) => Some(text.trim().to_owned()),
        // Neither says anything: then it is UTC.
        Err(_) if !local.exists() => Some("UTC".to_owned()),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_variable_says_a_zone_in_several_ways() {
        for (value, zone) in [
            ("Asia/Tokyo", "Asia/Tokyo"),
            (":Asia/Tokyo", "Asia/Tokyo"),
            (":/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
            ("JST-9", "JST-9"),
            ("", "UTC"),
        ] {
            assert_eq!(of_variable(value).as_deref(), Some(zone), "{value}");
        }
    }

    #[test]
    fn a_host_says_it_by_a_link_or_a_name_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(of_host(root.path()).as_deref(), Some("UTC"));
        let etc = root.path().join("etc");
        fs::create_dir(&etc).unwrap();
        fs::write(etc.join("localtime"), "TZif").unwrap();
        assert_eq!(of_host(root.path()), None);
        fs::write(etc.join("timezone"), "Europe/Vienna\n").unwrap();
        assert_eq!(of_host(root.path()).as_deref(), Some("Europe/Vienna"));
        fs::remove_file(etc.join("localtime")).unwrap();
        symlink("../usr/share/zoneinfo/Asia/Tokyo", etc.join("localtime")).unwrap();
        assert_eq!(of_host(root.path()).as_deref(), Some("Asia/Tokyo"));
    }

    #[test]
    fn no_zone_leads_to_a_file_elsewhere() {
        for zone in ["UTC", "Asia/Tokyo", "CET-1CEST,M3.5.0,M10.5.0/3", "<+09>-9"] {
            assert!(is_zone(zone), "{zone}");
        }
        for other in ["", "/etc/shadow", ":/x", "../../etc/x", "a b", "a\nb"] {
            assert!(!is_zone(other), "{other}");
        }
    }
}
