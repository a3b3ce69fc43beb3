//! The way into a house from elsewhere: ssh, as an administrator sets it up.

use super::House;

impl House {
    /// Lets root in by ssh with root's own key, under every name that `/etc/hosts` has.
    pub fn start_sshd(&self) {
        self.run(
            "install -d -m 700 .ssh /run/sshd && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519 && \
             cp .ssh/id_ed25519.pub .ssh/authorized_keys && ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/house_key && \
             printf 'StrictHostKeyChecking accept-new\\nLogLevel ERROR\\n' >.ssh/config",
        );
        self.start(
            "sshd",
            "/usr/sbin/sshd -D -e -f /dev/null -h /etc/ssh/house_key -o UsePAM=no -o PidFile=none \
             -o PermitRootLogin=yes -o MaxStartups=100",
        );
        self.until("ssh root@db1 true");
    }
}
