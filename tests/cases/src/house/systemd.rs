//! What a house has in systemd's place: units lie where systemd looks for them, the real `systemctl` enables them, and
//! a stand-in for it starts them, as nothing there is the first process that systemd would be.

use super::House;
use std::fs;

/// Stands in for `systemctl`: it starts and stops the server as its unit does, and runs a service of ours as its unit
/// says.
const SYSTEMCTL: &str = include_str!("systemctl.sh");

/// Stands in for the journal of such a service.
const JOURNALCTL: &str = "#!/bin/sh\nexec cat /var/log/$2.log\n";

impl House {
    /// Puts the stand-ins where a shell finds them first.
    pub(super) fn put_systemctl(&self) {
        self.write("/usr/local/bin/systemctl", SYSTEMCTL, "755");
        self.write("/usr/local/bin/journalctl", JOURNALCTL, "755");
    }

    /// Puts a unit where `make install` puts it.
    pub fn bring_unit(&self, name: &str) {
        let unit = House::checkout().join("dist/systemd").join(name);
        let text = fs::read_to_string(&unit).unwrap_or_else(|e| panic!("{}: {e}", unit.display()));
        let place = format!("/usr/local/lib/systemd/system/{name}");
        self.write(&place, &text, "644");
    }
}
