//! The side that the user sees: has the repository, and lets the other host work.

use crate::link::{Link, LinkTimeouts, SessionId, Traffic};
use crate::message::{self, Lane, Order, Word};
use crate::program::Program;
use crate::ssh::{self, Refusal, Ssh};
use crate::store::{Access, StoreServer};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use evenkeel_op::{Cancel, Error, ErrorKind, Result};
use evenkeel_repository::store::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long between two attempts to connect again.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a person may take to log in.
const LOGIN: Duration = Duration::from_secs(120);
/// How often a wish to stop is looked at.
const TICK: Duration = Duration::from_millis(100);

/// One order for another host.
pub struct Near<'a> {
    /// How to get there.
    pub ssh: &'a Ssh,
    /// How long to tolerate silence, on both sides.
    pub timeouts: LinkTimeouts,
    /// The repository's objects, and what may be done to them; `None` where there is none.
    pub repository: Option<(Arc<dyn Store>, Access)>,
    /// Asks to stop.
    pub cancel: &'a Cancel,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code on the other host, or the failure.
    pub result: Result<u8>,
    /// What it cost.
    pub traffic: Traffic,
    /// How often the repository was asked something that the other host may have waited for.
    pub questions: u64,
}

impl Near<'_> {
    /// Pushes the program, gives the order and hands on everything that is said until it is done.
    /// Connects again when the connection breaks; `Unreachable` when that takes too long.
    pub fn run(
        &self,
        order: &Order,
        hear: &mut dyn FnMut(Word),
        note: &(dyn Fn(String) + Sync),
    ) -> Result<Outcome> {
        let session = random()?;
        let program = Program::read(&self.ssh.program)?;
        let first = self.first(session, &program, note)?;
        // Only now: how long a login and the program's way take is no loss of a connection.
        let link = Link::new(session, self.timeouts);
        link.attach(first);
        link.send(message::encode(Lane::Control, order, &[])?)?;
        let done = AtomicBool::new(false);
        let questions = AtomicU64::new(0);
        let (ended, going_on) = crossbeam_channel::bounded::<()>(0);
        let result = std::thread::scope(|scope| {
            scope.spawn(|| self.stay_connected((&link, session), &program, &done, note));
            scope.spawn(|| self.hand_on_cancel(&link, &going_on));
            let result = self.serve(&link, hear, &done, &questions);
            done.store(true, Ordering::SeqCst);
            link.abort("it was closed");
            drop(ended);
            result
        });
        Ok(Outcome {
            result: result?,
            traffic: link.traffic(),
            questions: questions.into_inner(),
        })
    }

    /// Another run that ends may take the directory away that we were about to use: so twice.
    fn first(
        &self,
        session: SessionId,
        program: &Program,
        note: &(dyn Fn(String) + Sync),
    ) -> Result<crate::Carrier> {
        let arguments = self.arguments(session, true);
        let give_up = || self.cancel.is_cancelled();
        let limit = self.timeouts.loss.max(LOGIN);
        let connect = || ssh::connect(self.ssh, program, &arguments, limit, &give_up, &note);
        let again = match connect() {
            Err(Refusal::Gone) => connect(),
            other => other,
        };
        self.cancel.check()?;
        again.map_err(|refusal| match refusal {
            Refusal::Failed(error) | Refusal::Never(error) | Refusal::Unfit(error) => error,
            Refusal::Gone => self.gone(),
        })
    }

    fn arguments(&self, session: SessionId, start: bool) -> Vec<String> {
        let session: String = session.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut arguments = vec![
            format!("--session={session}"),
            format!("--stall={}", self.timeouts.stall.as_millis()),
            format!("--loss={}", self.timeouts.loss.as_millis()),
        ];
        if start {
            arguments.push("--start".to_owned());
        }
        arguments
    }

    fn serve(
        &self,
        link: &Link,
        hear: &mut dyn FnMut(Word),
        done: &AtomicBool,
        questions: &AtomicU64,
    ) -> Result<Result<u8>> {
        let server = match &self.repository {
            Some((store, access)) => Some(StoreServer::start(store.clone(), *access, link)?),
            None => None,
        };
        let mut result = None;
        let served = loop {
            match link.receive() {
                Ok(Some(bytes)) => {
                    let (lane, head, body) = message::split(&bytes)?;
                    match lane {
                        Lane::Ask => match &server {
                            Some(server) => server.ask(head, body)?,
                            None => break Err(Error::failed("there is no repository to query")),
                        },
                        Lane::Control => match message::head(head)? {
                            Word::Done { outcome } => {
                                // From here on a lost connection is an end as good as any.
                                done.store(true, Ordering::SeqCst);
                                result = Some(outcome.map_err(message::Failure::error));
                            }
                            word => hear(word),
                        },
                        Lane::Reply => {}
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if let Some(server) = server {
            questions.store(server.questions(), Ordering::Relaxed);
            server.end();
        }
        match (result, served) {
            (Some(result), _) => Ok(result),
            (None, Ok(())) => Err(self.gone()),
            (None, Err(error)) => Err(error),
        }
    }

    /// Connects again whenever the connection breaks, until the link is lost or done.
    fn stay_connected(
        &self,
        (link, session): (&Link, SessionId),
        program: &Program,
        done: &AtomicBool,
        note: &(dyn Fn(String) + Sync),
    ) {
        let arguments = self.arguments(session, false);
        let host = &self.ssh.destination;
        let mut reported = false;
        while link.wait_for_loss() {
            if done.load(Ordering::SeqCst) {
                link.abort("it was closed");
                return;
            }
            if !reported {
                note(format!("lost the connection to {host}: reconnecting"));
                reported = true;
            }
            let give_up = || link.is_ended() || done.load(Ordering::SeqCst);
            let stall = self.timeouts.stall;
            // What becomes of the program was said when it got there.
            let unsaid = |_| ();
            match ssh::connect(self.ssh, program, &arguments, stall, &give_up, &unsaid) {
                Ok(carrier) => {
                    link.attach(carrier);
                    if link.wait_for_hello() {
                        note(format!("connected to {host} again"));
                        reported = false;
                        continue;
                    }
                }
                Err(Refusal::Gone) => {
                    link.abort(&format!("the helper on {host} has exited"));
                    return;
                }
                Err(Refusal::Failed(_) | Refusal::Never(_) | Refusal::Unfit(_)) => {}
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn hand_on_cancel(&self, link: &Link, going_on: &Receiver<()>) {
        while going_on.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = self.cancel.check() {
                let signal = match error.kind() {
                    ErrorKind::Terminated => 15,
                    _ => 2,
                };
                let order = message::encode(Lane::Control, &Order::Cancel { signal }, &[]);
                // On a link that is lost the other side stops by itself.
                let _ = order.and_then(|order| link.send(order));
                return;
            }
        }
    }

    fn gone(&self) -> Error {
        let host = &self.ssh.destination;
        Error::new(
            ErrorKind::Unreachable,
            format!("the helper on {host} exited too early"),
        )
        .hint("run again: the next run cleans up after this one")
    }
}

fn random() -> Result<SessionId> {
    use evenkeel_op::Context;
    use std::io::Read;
    let mut bytes = [0; 16];
    let mut file = std::fs::File::open("/dev/urandom").context(|| "failed to open /dev/urandom")?;
    file.read_exact(&mut bytes)
        .context(|| "failed to read /dev/urandom")?;
    Ok(bytes)
}
