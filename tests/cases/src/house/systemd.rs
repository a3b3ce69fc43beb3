//! The systemd of a house: units lie where it looks for them, and it is what starts them.

use super::House;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where control groups may be: in one hierarchy, or in one for systemd beside those of an older kernel's kind.
const HIERARCHIES: [&str; 3] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/systemd",
];

/// Returns a name for a control group that no other house has.
pub(super) fn new_group() -> String {
    static HOUSES: AtomicU32 = AtomicU32::new(0);
    let number = HOUSES.fetch_add(1, Ordering::Relaxed);
    format!("house-{}-{number}", std::process::id())
}

/// Removes the groups of a house where nothing runs any more.
pub(super) fn remove_group(name: &str) {
    for hierarchy in HIERARCHIES {
        remove_groups(&Path::new(hierarchy).join(name));
    }
}

/// A group can be removed once it has no other below it; its files are not there.
fn remove_groups(group: &Path) {
    let below = fs::read_dir(group).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.path().is_dir()) {
        remove_groups(&entry.path());
    }
    let _ = fs::remove_dir(group);
}

impl House {
    pub(super) fn wait_for_systemd(&self) {
        self.until("systemctl is-system-running --wait | grep -Eq 'running|degraded'");
    }

    /// Puts a unit where `make install` puts it, and has it start the program that `make install` puts beside it.
    pub fn bring_unit(&self, name: &str) {
        let unit = evenkeel_testkit::checkout().join("dist/systemd").join(name);
        let text = fs::read_to_string(&unit).unwrap_or_else(|e| panic!("{}: {e}", unit.display()));
        let text = text.replace("/usr/bin/evenkeel", "/usr/local/bin/evenkeel");
        let place = format!("/usr/local/lib/systemd/system/{name}");
        self.write(&place, &text, "644");
        self.run("systemctl daemon-reload");
    }
}
