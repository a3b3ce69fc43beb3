//! One repair at a time among all replicas of a source, wherever healers run: a lock on the source that its session
//! has. It needs no table and writes nothing, and ends with its holder, however that ends.

use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// The lock's name.
const NAME: &str = "evenkeel: heal";
/// How long the source may take to say that it is held.
const ANSWER: Duration = Duration::from_secs(5);

/// The lease. It ends with this value.
#[derive(Debug)]
pub(super) struct SourceLease(Option<Session>);

impl SourceLease {
    /// Takes it, if the source answers in time.
    ///
    /// Errors: those of sessions; `Busy` while another healer has it.
    pub(super) fn take(options: &ConnectOptions) -> Result<Self> {
        let limit = options.connect_timeout + ANSWER;
        let options = options.clone();
        let (tell, told) = sync_channel(1);
        std::thread::Builder::new()
            .name("lease".to_owned())
            // A lease that nobody waits for any more ends there.
            .spawn(move || tell.send(Self::ask(&options)))
            .map_err(|error| Error::failed("failed to start a thread").because(error))?;
        let silent = |_| Err(Error::failed("the source does not answer"));
        told.recv_timeout(limit).unwrap_or_else(silent)
    }

    fn ask(options: &ConnectOptions) -> Result<Self> {
        let mut session = Session::open(options)?;
        session.run("SET SESSION wait_timeout = 28800")?;
        let got = session.value(&format!("SELECT GET_LOCK('{NAME}', 0)"))?;
        if got.as_deref() == Some("1") {
            return Ok(Self(Some(session)));
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

    /// Fails when it is lost, or the source does not say in time that it is not: nothing more may be done then.
    pub(super) fn check(&mut self) -> Result<()> {
        let lost = || Error::failed("the lease on the source is lost: another healer may have it");
        let mut session = self.0.take().ok_or_else(lost)?;
        let (tell, told) = sync_channel(1);
        std::thread::Builder::new()
            .name("lease".to_owned())
            .spawn(move || {
                let sql = format!("SELECT IS_USED_LOCK('{NAME}') = CONNECTION_ID()");
                let answer = session.value(&sql);
                let _ = tell.send((session, answer));
            })
            .map_err(|error| Error::failed("failed to start a thread").because(error))?;
        let Ok((session, answer)) = told.recv_timeout(ANSWER) else {
            return Err(Error::failed(
                "the source does not answer any more, so nothing more is done",
            ));
        };
        match answer?.as_deref() {
            Some("1") => {
                self.0 = Some(session);
                Ok(())
            }
            _ => Err(lost()),
        }
    }
}
