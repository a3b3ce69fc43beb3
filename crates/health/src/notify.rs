//! What systemd is told (`sd_notify(3)`): ready, how it is, still alive. Only the loop that probes says that it is
//! alive: a thread with a timer would say so of a prober that is stuck.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest status.
const STATUS_CHARS: usize = 200;

/// Whom to tell; nobody, where no service manager asked.
#[derive(Debug, Default)]
pub struct Notify {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// How often it wants to hear that we are alive.
    every: Option<Duration>,
    last: Option<Instant>,
}

impl Notify {
    /// Takes the values of `NOTIFY_SOCKET` and `WATCHDOG_USEC`.
    #[must_use]
    pub fn to(socket: Option<&str>, watchdog_us: Option<u64>) -> Self {
        let address = socket.and_then(|name| match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name).ok(),
            None => SocketAddr::from_pathname(Path::new(name)).ok(),
        });
        let own = UnixDatagram::unbound().and_then(|own| {
            own.set_nonblocking(true)?;
            Ok(own)
        });
        Self {
            to: own.ok().zip(address),
            every: watchdog_us.map(|us| Duration::from_micros(us) / 3),
            last: None,
        }
    }

    fn send(&self, text: &str) {
        if let Some((own, to)) = &self.to {
            // A service manager that does not listen is not waited for.
            let _ = own.send_to_addr(text.as_bytes(), to);
        }
    }

    /// Says that it serves.
    pub fn ready(&self) {
        self.send("READY=1");
    }

    /// Says that it ends.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    /// Says how it is, in one line.
    pub fn status(&self, text: &str) {
        let text: String = text.chars().take(STATUS_CHARS).collect();
        self.send(&format!("STATUS={}", text.replace('\n', " ")));
    }

    /// Says that it is alive, if it is time.
    pub fn alive(&mut self, now: Instant) {
        let Some(every) = self.every else { return };
        if self.last.is_none_or(|last| now - last >= every) {
            self.last = Some(now);
            self.send("WATCHDOG=1");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_arrives_and_not_more_often_than_asked() {
        let name = format!("evenkeel-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        manager.set_nonblocking(true).unwrap();
        let mut notify = Notify::to(Some(&format!("@{name}")), Some(3_000_000));
        let heard = || {
            let mut buffer = [0; 512];
            let length = manager.recv(&mut buffer).ok()?;
            Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
        };
        notify.ready();
        notify.status("a\nb");
        let now = Instant::now();
        notify.alive(now);
        notify.alive(now + Duration::from_millis(900));
        notify.alive(now + Duration::from_millis(1100));
        let all: Vec<String> = std::iter::from_fn(heard).collect();
        assert_eq!(all, ["READY=1", "STATUS=a b", "WATCHDOG=1", "WATCHDOG=1"]);
        let mut nobody = Notify::to(None, None);
        nobody.ready();
        nobody.alive(now);
    }
}
