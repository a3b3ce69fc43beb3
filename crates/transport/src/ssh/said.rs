//! What ssh says on its standard error, for the message of a failure.

use super::{Refusal, Ssh};
use evenkeel_op::{Error, ErrorKind};
use std::io::{self, Read};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// So much of what ssh says is kept for the error message.
const SAID_MAX: usize = 2000;

/// What ssh says on its standard error, the last of it.
pub(super) struct Said {
    text: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
}

impl Said {
    pub(super) fn listen(child: &mut Child) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let listener = child.stderr.take().map(|mut stderr| {
            let text = text.clone();
            std::thread::spawn(move || {
                let mut buffer = [0; 1024];
                while let Ok(length) = stderr.read(&mut buffer)
                    && length > 0
                {
                    let mut text = text.lock().unwrap_or_else(|e| e.into_inner());
                    text.extend_from_slice(&buffer[..length]);
                    let surplus = text.len().saturating_sub(SAID_MAX);
                    text.drain(..surplus);
                }
            })
        });
        Self { text, listener }
    }

    /// Adds what ssh said to a failure.
    pub(super) fn explain(mut self, ssh: &Ssh, refusal: Refusal) -> Refusal {
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        let text = self.text.lock().unwrap_or_else(|e| e.into_inner());
        let text = String::from_utf8_lossy(&text);
        let text = text.trim().replace('\n', "; ");
        let wrap = |kind: ErrorKind, error: Error| {
            let message = format!(
                "failed to reach {} by {}",
                ssh.destination,
                ssh.command.join(" ")
            );
            let why = match text.is_empty() {
                true => error.chain(),
                false => format!("{}: {text}", error.chain()),
            };
            Error::new(kind, message)
                .because(io::Error::other(why))
                .hint(format!(
                    "try it yourself: {} {} true",
                    ssh.command.join(" "),
                    ssh.destination
                ))
        };
        match refusal {
            Refusal::Gone => Refusal::Gone,
            Refusal::Failed(error) => Refusal::Failed(wrap(ErrorKind::Unreachable, error)),
            Refusal::Never(error) => Refusal::Never(wrap(error.kind(), error)),
            // ssh did its part.
            unfit @ Refusal::Unfit(_) => unfit,
        }
    }
}
