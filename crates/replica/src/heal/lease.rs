//! One repair at a time among all replicas of a source, wherever healers run: a lock on the source that its session
//! has. It needs no table and writes nothing, and ends with its holder, however that ends.

use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;

/// The lock's name.
const NAME: &str = "evenkeel: heal";

/// The lease. It ends with this value.
#[derive(Debug)]
pub(super) struct SourceLease(Session);

impl SourceLease {
    /// Takes it.
    ///
    /// Errors: those of sessions; `Busy` while another healer has it.
    pub(super) fn take(options: &ConnectOptions) -> Result<Self> {
        let mut session = Session::open(options)?;
        session.run("SET SESSION wait_timeout = 28800")?;
        let got = session.value(&format!("SELECT GET_LOCK('{NAME}', 0)"))?;
        if got.as_deref() == Some("1") {
            return Ok(Self(session));
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

    /// Fails when it is lost: nothing more may be done then.
    pub(super) fn check(&mut self) -> Result<()> {
        let sql = format!("SELECT IS_USED_LOCK('{NAME}') = CONNECTION_ID()");
        match self.0.value(&sql)?.as_deref() {
            Some("1") => Ok(()),
            _ => Err(Error::failed(
                "the lease on the source is lost: another healer may have it",
            )),
        }
    }
}
