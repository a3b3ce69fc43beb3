//! One repair at a time among all replicas of a source, wherever healers run: a lock on the source that its session
//! has. It needs no table and writes nothing, and ends with its holder, however that ends.

use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

/// The lock's name.
const NAME: &str = "evenkeel: heal";
/// How long the source may take to say that it is held.
const ANSWER: Duration = Duration::from_secs(5);
/// A session that says nothing for so long is ended by the source, and the lease with it: without that, a healer whose
/// host has lost power would have it for hours.
const IDLE_S: u64 = 60;
/// How often it says something.
const WORD: Duration = Duration::from_secs(15);

/// The lease. It ends with this value.
#[derive(Debug)]
pub(super) struct SourceLease {
    /// Asks the thread that has the session whether it is still held; the session ends with it.
    ask: Option<Sender<SyncSender<Result<()>>>>,
    /// Says by its end that the session has ended.
    ended: Receiver<()>,
}

impl SourceLease {
    /// Takes it, if the source answers in time.
    ///
    /// Errors: those of sessions; `Busy` while another healer has it.
    pub(super) fn take(options: &ConnectOptions) -> Result<Self> {
        let limit = options.connect_timeout + ANSWER;
        let options = options.clone();
        let (tell, told) = sync_channel(1);
        let (ask, asked) = channel();
        let (ends, ended) = sync_channel(0);
        std::thread::Builder::new()
            .name("lease".to_owned())
            .spawn(move || {
                let _ends = ends;
                match get(&options) {
                    // Where nobody waits for it any more, it ends here.
                    Err(error) => drop(tell.send(Err(error))),
                    Ok(session) => {
                        if tell.send(Ok(())).is_ok() {
                            hold(session, &asked);
                        }
                    }
                }
            })
            .map_err(|error| Error::failed("failed to start a thread").because(error))?;
        let silent = |_| Err(Error::failed("the source does not answer"));
        let got = told.recv_timeout(limit).unwrap_or_else(silent);
        let ask = Some(ask);
        got.map(|()| Self { ask, ended })
    }

    /// Fails when it is lost, or the source does not say in time that it is not: nothing more may be done then.
    pub(super) fn check(&mut self) -> Result<()> {
        let ask = self.ask.as_ref().ok_or_else(lost)?;
        let (tell, told) = sync_channel(1);
        let answer = match ask.send(tell) {
            Err(_) => Err(lost()),
            Ok(()) => match told.recv_timeout(ANSWER) {
                Ok(answer) => answer,
                Err(RecvTimeoutError::Disconnected) => Err(lost()),
                Err(RecvTimeoutError::Timeout) => Err(Error::failed(
                    "the source does not answer any more, so nothing more is done",
                )),
            },
        };
        if answer.is_err() {
            // Not asked again: what is lost stays lost.
            self.ask = None;
        }
        answer
    }
}

impl Drop for SourceLease {
    fn drop(&mut self) {
        self.ask = None;
        // The next repair finds it free; a source that is hung is not waited for.
        let _ = self.ended.recv_timeout(ANSWER);
    }
}

fn lost() -> Error {
    Error::failed("the lease on the source is lost: another healer may have it")
}

fn get(options: &ConnectOptions) -> Result<Session> {
    let mut session = Session::open(options)?;
    session.run(&format!("SET SESSION wait_timeout = {IDLE_S}"))?;
    let got = session.value(&format!("SELECT GET_LOCK('{NAME}', 0)"))?;
    if got.as_deref() == Some("1") {
        return Ok(session);
    }
    let holder = session.value(&format!("SELECT IS_USED_LOCK('{NAME}')"))?;
    let place = session.place();
    let message = format!("another healer is at work on the replicas of {place}");
    let error = Error::new(ErrorKind::Busy, message).hint("wait until it is done");
    Err(match holder {
        Some(id) => error.hint(format!(
            "it is session {id} there: SHOW PROCESSLIST names its host"
        )),
        None => error,
    })
}

/// Says something now and then, and whether the lease is still held when it is asked; until nobody asks any more.
fn hold(mut session: Session, asked: &Receiver<SyncSender<Result<()>>>) {
    loop {
        let teller = match asked.recv_timeout(WORD) {
            Ok(teller) => Some(teller),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let sql = format!("SELECT IS_USED_LOCK('{NAME}') = CONNECTION_ID()");
        let is_held = match session.value(&sql) {
            Ok(answer) if answer.as_deref() == Some("1") => Ok(()),
            Ok(_) => Err(lost()),
            Err(error) => Err(error),
        };
        let is_over = is_held.is_err();
        if let Some(teller) = teller {
            let _ = teller.send(is_held);
        }
        if is_over {
            return;
        }
    }
}
