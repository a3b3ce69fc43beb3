//! A private ssh daemon on loopback: this host as another host.

use crate::{Scratch, until};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running daemon that lets root of this test in, by key.
#[derive(Debug)]
pub struct Sshd {
    daemon: Child,
    port: u16,
    key: PathBuf,
    /// The other host's directory for temporary files.
    temporary: PathBuf,
    /// Where the other host's users keep what can be made again.
    cache: PathBuf,
    _scratch: Scratch,
}

impl Sshd {
    /// Starts it. What is run through it has `environment` besides, in which names may stand that are set anyhow.
    #[must_use]
    pub fn start(environment: &[(&str, &str)]) -> Self {
        let scratch = Scratch::new();
        let key = scratch.join("key");
        let host_key = scratch.join("host-key");
        for path in [&key, &host_key] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(path)
                .status();
            assert!(
                made.is_ok_and(|status| status.success()),
                "ssh-keygen failed: run testkit/setup"
            );
        }
        let temporary = scratch.join("tmp");
        fs::create_dir(&temporary).expect("a directory");
        // Where the daemon goes when it gives up its privileges.
        fs::create_dir_all("/run/sshd").expect("/run/sshd");
        let port = free_port();
        let mut lines = vec![
            format!("Port {port}"),
            "ListenAddress 127.0.0.1".to_owned(),
            format!("HostKey {}", host_key.display()),
            format!("AuthorizedKeysFile {}", key.with_extension("pub").display()),
            "UsePAM no".to_owned(),
            "StrictModes no".to_owned(),
            "PidFile none".to_owned(),
            "PermitRootLogin yes".to_owned(),
            "MaxStartups 100".to_owned(),
        ];
        let cache = scratch.join("cache");
        let (tmpdir, xdg) = (temporary.display().to_string(), cache.display().to_string());
        let mut set = vec![
            ("TMPDIR", tmpdir.as_str()),
            ("XDG_CACHE_HOME", xdg.as_str()),
        ];
        set.retain(|(name, _)| environment.iter().all(|(other, _)| name != other));
        let words = set
            .iter()
            .chain(environment)
            .map(|(name, value)| format!(" {name}={value}"));
        lines.push(format!("SetEnv{}", words.collect::<String>()));
        let config = scratch.join("config");
        fs::write(&config, lines.join("\n") + "\n").expect("a file");
        let mut daemon = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(scratch.join("log")).expect("a file"))
            .spawn()
            .expect("sshd is there: run testkit/setup");
        until("sshd listens", || {
            let ended = daemon.try_wait().expect("a child");
            let log = || fs::read_to_string(scratch.join("log")).unwrap_or_default();
            assert!(ended.is_none(), "sshd ended: {}", log());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Self {
            daemon,
            port,
            key,
            temporary,
            cache,
            _scratch: scratch,
        }
    }

    /// Returns its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the directory for temporary files of whoever comes in.
    #[must_use]
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Returns the directory in which the other host's users keep what can be made again.
    #[must_use]
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Returns the ssh command that gets in through `port`: the daemon's own, or a proxy's.
    #[must_use]
    pub fn command(&self, port: u16) -> String {
        format!(
            "ssh -F /dev/null -p {port} -i {} -o BatchMode=yes -o StrictHostKeyChecking=no \
             -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR",
            self.key.display()
        )
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}
