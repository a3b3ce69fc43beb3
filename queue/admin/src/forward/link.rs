//! Two sessions, and a batch's way from one to the other.

use super::Forward;
use super::batch::Columns;
use super::ledger::{Ledger, Sent};
use crate::live::{consumers, engine, no_queue, reported};
use crate::name::QueueName;
use evenkeel_op::{Cancel, Error, ErrorKind, Result};
use evenkeel_server::connect::{Row, Session, quote};
use std::time::{Duration, Instant};

/// Bytes of a batch as text, about. A queue writes a statement in pieces from 8 MiB on, and only the first has the
/// source id; so many rows are never sent at once, but for a single one.
const BATCH_BYTES: usize = 3 << 20;

/// How long a consumer that is gone may still seem to be there, and a run that was killed.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A batch is in the target, and gone from the source.
    Sent {
        /// Its rows.
        rows: u64,
        /// It had been sent before, and nobody knew whether it arrived.
        was_in_doubt: bool,
    },
    /// There was no row.
    Empty,
}

/// Both servers, the columns, and what is known of the last batch.
#[derive(Debug)]
pub(super) struct Link {
    source: Session,
    target: Session,
    from: QueueName,
    to: QueueName,
    argument: String,
    columns: Columns,
    ledger: Ledger,
    slot: u8,
    batch: u64,
    into_queue: bool,
    /// It is not known whether the ledger's batch arrived.
    in_doubt: bool,
}

impl Link {
    /// Connects, and makes sure that nothing can be lost or come twice.
    ///
    /// Errors: as [`super::forward`].
    pub(super) fn open(plan: &Forward, reset: bool, cancel: &Cancel) -> Result<Self> {
        let mut source = Session::open(&plan.source)?;
        let mut target = Session::open(&plan.target)?;
        if is_itself(&mut source, &mut target, plan)? {
            return Err(Error::usage(format!(
                "{} cannot be forwarded to itself",
                plan.from
            )));
        }
        let into_queue = keeps_the_promise(&mut source, &mut target, plan)?;
        for session in [&mut source, &mut target] {
            session.run("SET SESSION autocommit = 1, time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'")?;
        }
        alone_in_the_slot(&mut target, plan)?;
        let name = source.value("SELECT CONCAT(@@hostname, ':', @@port)")?;
        let name = format!("{}/{}", name.unwrap_or_default(), plan.from);
        let ledger = Ledger::open(&mut target, &plan.to, plan.slot, &name, reset)?;
        until_nobody_consumes(&mut source, &plan.from, cancel)?;
        let columns = Columns::read(&mut source, &plan.from)?;
        Ok(Self {
            argument: plan.from.argument()?,
            from: plan.from.clone(),
            to: plan.to.clone(),
            slot: plan.slot,
            batch: u64::from(plan.batch),
            in_doubt: ledger.last.is_some(),
            source,
            target,
            columns,
            ledger,
            into_queue,
        })
    }

    /// Sends the batch in doubt if there is one, else the next.
    pub(super) fn step(&mut self, patience_s: f64) -> Result<Step> {
        if self.in_doubt {
            let settled = self.settle()?;
            self.in_doubt = false;
            if let Some(rows) = settled {
                return Ok(Step::Sent {
                    rows,
                    was_in_doubt: true,
                });
            }
        }
        let mut most = self.batch;
        loop {
            let Some((first, rows)) = self.claim(most, patience_s)? else {
                return Ok(Step::Empty);
            };
            let bytes = self.columns.bytes(&rows);
            if bytes > BATCH_BYTES && rows.len() > 1 {
                self.give_back()?;
                most = (rows.len() * BATCH_BYTES / bytes / 2).max(1) as u64;
                continue;
            }
            if let Some(last) = self
                .ledger
                .last
                .as_ref()
                .filter(|last| first <= last.bound())
            {
                let bound = last.bound();
                return Err(self.came_late(first, bound));
            }
            let sent = Sent {
                first,
                rows: rows.len() as u64,
                digest: self.columns.digest(&rows),
            };
            self.send(&sent, &rows)?;
            return Ok(Step::Sent {
                rows: sent.rows,
                was_in_doubt: false,
            });
        }
    }

    /// Finds out whether the ledger's batch is still at the source, and if so sends it once more, under the id that it
    /// had: its rows, or nothing.
    fn settle(&mut self) -> Result<Option<u64>> {
        let Some(last) = self.ledger.last.clone() else {
            return Ok(None);
        };
        let Some((first, rows)) = self.claim(last.rows, 0.0)? else {
            return Ok(None);
        };
        if first > last.bound() {
            // It was ended, so it had arrived.
            self.give_back()?;
            return Ok(None);
        }
        if first != last.first {
            return Err(self.came_late(first, last.bound()));
        }
        if rows.len() as u64 != last.rows || self.columns.digest(&rows) != last.digest {
            self.give_back()?;
            return Err(Error::refused(format!(
                "rows from {first} on were being sent, and have changed: another consumer takes \
                 rows of {}",
                self.from
            ))
            .hint(RESET));
        }
        match self.into_queue {
            true => self.send(&last, &rows)?,
            // The ledger is in the same transaction.
            false => self.end()?,
        }
        Ok(Some(last.rows))
    }

    /// Owns rows, in their order: the id of the first, and all.
    fn claim(&mut self, most: u64, patience_s: f64) -> Result<Option<(u64, Vec<Row>)>> {
        let sql = format!(
            "SELECT queue_wait_n({}, {most}, {patience_s})",
            self.argument
        );
        let answer = self
            .source
            .value(&sql)
            .map_err(|error| reported(error, &self.from))?;
        match answer.as_deref() {
            Some("1") => {}
            Some(_) => {
                self.give_back()?;
                return Ok(None);
            }
            None => return Err(no_queue(&self.from)),
        }
        let id = self.source.value("SELECT queue_rowid()")?;
        let rows = self.source.rows(&self.columns.select(&self.from))?;
        match id
            .and_then(|id| id.parse().ok())
            .filter(|_| !rows.is_empty())
        {
            Some(id) => Ok(Some((id, rows))),
            None => Err(Error::failed(format!(
                "the source delivered rows of {}, but they are not in the queue",
                self.from
            ))),
        }
    }

    fn send(&mut self, sent: &Sent, rows: &[Row]) -> Result<()> {
        let insert = self.columns.insert(&self.to, rows)?;
        let remember = self.ledger.remember(sent);
        let hint = format!(
            "nothing was sent, and the rows are in {} still: make {} take them, then run this again",
            self.from, self.to
        );
        let refused = |error: Error| match error.kind() {
            ErrorKind::Failed => error.hint(&hint),
            _ => error,
        };
        if self.into_queue {
            // Before the rows: whatever happens then, it is known which they were.
            self.target.run(&remember)?;
            fail::fail_point!("forward::remembered");
            self.target.run(&format!(
                "SELECT queue_set_srcid({}, 'a', {})",
                self.slot,
                self.ledger.source_id(sent)
            ))?;
            self.target.run(&insert).map_err(refused)?;
        } else {
            for sql in ["START TRANSACTION", &insert, &remember, "COMMIT"] {
                self.target.run(sql).map_err(refused)?;
            }
        }
        fail::fail_point!("forward::sent");
        self.ledger.last = Some(sent.clone());
        self.end()?;
        fail::fail_point!("forward::ended");
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.source.run("SELECT queue_end()")
    }

    fn give_back(&mut self) -> Result<()> {
        self.source.run("SELECT queue_abort()")
    }

    /// Gives rows back that were not there when later ones were sent: to send them now would be to pass over them.
    fn came_late(&mut self, first: u64, bound: u64) -> Error {
        if let Err(error) = self.give_back() {
            return error;
        }
        Error::refused(format!(
            "row {first} of {} appeared after row {bound} was sent: another consumer returned \
             it, or the queue was re-created",
            self.from
        ))
        .hint(RESET)
    }
}

const RESET: &str = "stop all other consumers of this queue; then --reset sends everything in \
     it, as if nothing had been sent";

/// Whether rows would go where they come from. Whatever way leads to a server, it knows its own locks.
fn is_itself(source: &mut Session, target: &mut Session, plan: &Forward) -> Result<bool> {
    let id = source.value("SELECT UUID()")?.unwrap_or_default();
    let name = quote(&format!("evenkeel {id}"));
    source.run(&format!("SELECT GET_LOCK({name}, 0)"))?;
    let owner = target.value(&format!("SELECT IS_USED_LOCK({name})"))?;
    source.run(&format!("SELECT RELEASE_LOCK({name})"))?;
    if owner.is_none() {
        return Ok(false);
    }
    let folds = source.variable("lower_case_table_names")?;
    let known = |name: &QueueName| match folds.as_deref() {
        Some("0") => name.to_string(),
        _ => name.to_string().to_lowercase(),
    };
    Ok(known(&plan.from) == known(&plan.to))
}

/// Refuses tables and servers with which a row might come twice or not at all. Says whether rows go into a queue.
fn keeps_the_promise(source: &mut Session, target: &mut Session, plan: &Forward) -> Result<bool> {
    if engine(source, &plan.from)?.as_deref() != Some("QUEUE") {
        return Err(no_queue(&plan.from));
    }
    must_be(
        source,
        "queue_sync",
        "2",
        "after a crash it may lose a row that was sent, and give its id to a new row, which \
         would then not be sent",
    )?;
    must_be(
        source,
        "queue_sync_consume",
        "2",
        "after a crash it may deliver consumed rows again",
    )?;
    must_be(
        target,
        "innodb_flush_log_at_trx_commit",
        "1",
        "after a crash it may lose what was sent",
    )?;
    match engine(target, &plan.to)?.as_deref() {
        Some("QUEUE") => must_be(
            target,
            "queue_sync",
            "2",
            "after a crash it may lose rows that arrived",
        )
        .map(|()| true),
        Some("InnoDB") => Ok(false),
        Some(other) => Err(Error::refused(format!("{} is a table of {other}", plan.to))
            .hint("the target must be a queue (ENGINE=QUEUE) or an InnoDB table")),
        None => Err(Error::refused(format!(
            "there is no table {} at {}",
            plan.to,
            target.place()
        ))
        .hint("create it there, with columns of the same names")),
    }
}

/// Refuses a server whose setting breaks the promise.
fn must_be(session: &mut Session, name: &str, wanted: &str, otherwise: &str) -> Result<()> {
    match session.variable(name)? {
        Some(value) if value == wanted => Ok(()),
        value => Err(Error::refused(format!(
            "{name} is {} at {}: {otherwise}",
            value.as_deref().unwrap_or("not there"),
            session.place()
        ))
        .hint(format!("SET GLOBAL {name} = {wanted}"))),
    }
}

/// Takes the slot, for as long as the session with the target lasts.
fn alone_in_the_slot(target: &mut Session, plan: &Forward) -> Result<()> {
    // The server takes 64 characters, and names are longer.
    let digest = blake3::hash(plan.to.to_string().as_bytes()).to_hex();
    let name = quote(&format!("evenkeel forward {} {}", plan.slot, &digest[..32]));
    let sql = format!("SELECT GET_LOCK({name}, {})", GONE_WITHIN.as_secs());
    match target.value(&sql)?.as_deref() {
        Some("1") => Ok(()),
        _ => Err(Error::new(
            ErrorKind::Busy,
            format!(
                "another run forwards into {} with slot {}",
                plan.to, plan.slot
            ),
        )
        .hint("give each source a --slot of its own")),
    }
}

/// Waits until no row has an owner, and nobody waits for one: a run that was killed may do either for a moment, and
/// what it is given meanwhile comes back behind rows that were sent.
fn until_nobody_consumes(source: &mut Session, from: &QueueName, cancel: &Cancel) -> Result<()> {
    let begun = Instant::now();
    loop {
        let (rows, waiters) = consumers(source, from)?.ok_or_else(|| no_queue(from))?;
        if rows + waiters == 0 || cancel.is_cancelled() {
            return Ok(());
        }
        if begun.elapsed() > GONE_WITHIN {
            let who = match rows {
                0 => format!("{waiters} other consumers are waiting for rows of {from}"),
                rows => format!("other consumers own {rows} rows of {from}"),
            };
            return Err(Error::refused(who).hint(
                "queue forward must be the queue's only consumer: a row that another one \
                     returns later would be lost",
            ));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
