//! One producer, one consumer: the statements of each way.

use crate::request::{POLL, Server, Way};
use anyhow::{Result, bail, ensure};
use evenkeel_op::Cancel;
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::Connection;
use std::time::Instant;

/// Deadlock; a wait for a lock took too long. Clients of InnoDB try again.
const AGAIN: [u16; 2] = [1213, 1205];

/// How long a consumer waits before it is asked whether to go on, in seconds.
const WAIT_S: f64 = 0.3;

pub(crate) fn connect(server: &Server) -> Result<Connection> {
    let options = ConnectOptions::over_socket(&server.socket, "root");
    let mut connection = Connection::open(&options, &Cancel::new()).map_err(reported)?;
    connection.run("USE bench").map_err(reported)?;
    Ok(connection)
}

pub(crate) fn reported(error: evenkeel_op::Error) -> anyhow::Error {
    anyhow::anyhow!("{}", error.chain())
}

/// Puts messages in.
pub(crate) struct Producer {
    connection: Connection,
    body: String,
}

impl Producer {
    /// `bytes` are those of each message's text.
    pub(crate) fn new(server: &Server, bytes: usize) -> Result<Self> {
        Ok(Self {
            connection: connect(server)?,
            body: "x".repeat(bytes),
        })
    }

    pub(crate) fn put(&mut self, id: u64) -> Result<()> {
        let sql = format!("INSERT INTO jobs VALUES ({id}, '{}')", self.body);
        self.connection.run(&sql).map_err(reported)?;
        Ok(())
    }
}

/// Takes messages out.
pub(crate) struct Consumer {
    connection: Connection,
    way: Way,
    wait: String,
    take: String,
    ids: Vec<u64>,
    /// How often InnoDB gave up.
    pub(crate) again: u64,
    /// When the last look for messages was answered.
    pub(crate) received: Instant,
}

impl Consumer {
    /// One that takes up to `batch` messages at once.
    pub(crate) fn new(server: &Server, way: Way, batch: u32) -> Result<Self> {
        let mut connection = connect(server)?;
        let call = match batch {
            1 => format!("queue_wait('jobs', {WAIT_S})"),
            many => format!("queue_wait_n('jobs', {many}, {WAIT_S})"),
        };
        let take = match way {
            Way::Queue => format!("SELECT id, body FROM jobs WHERE {call}"),
            Way::QueueTwo => "SELECT id, body FROM jobs".to_owned(),
            Way::SkipLocked => {
                let both = [
                    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                    "SET SESSION autocommit = 0",
                ];
                for sql in both {
                    connection.run(sql).map_err(reported)?;
                }
                format!(
                    "SELECT id, body FROM jobs ORDER BY id LIMIT {batch} FOR UPDATE SKIP LOCKED"
                )
            }
        };
        let wait = format!("SELECT {call}");
        Ok(Self {
            connection,
            way,
            wait,
            take,
            ids: Vec::new(),
            again: 0,
            received: Instant::now(),
        })
    }

    /// Takes what is there, or waits for a moment; returns how many.
    pub(crate) fn take(&mut self) -> Result<u64> {
        match self.way {
            Way::Queue => self.read()?,
            Way::QueueTwo => {
                self.connection.run(&self.wait).map_err(reported)?;
                self.read()?;
            }
            Way::SkipLocked => {
                if !self.locked()? {
                    self.again += 1;
                    self.connection.run("ROLLBACK").map_err(reported)?;
                    return Ok(0);
                }
                if self.ids.is_empty() {
                    std::thread::sleep(POLL);
                }
            }
        }
        Ok(self.ids.len() as u64)
    }

    /// Reads rows, deletes them, commits. False: InnoDB gave up, and it has to be tried again.
    fn locked(&mut self) -> Result<bool> {
        if let Err(error) = self.read() {
            return self.gave_up(error);
        }
        if self.ids.is_empty() {
            return Ok(true);
        }
        let ids: Vec<String> = self.ids.iter().map(u64::to_string).collect();
        let delete = match &ids[..] {
            [one] => format!("DELETE FROM jobs WHERE id = {one}"),
            all => format!("DELETE FROM jobs WHERE id IN ({})", all.join(",")),
        };
        for sql in [delete.as_str(), "COMMIT"] {
            if let Err(error) = self.connection.run(sql) {
                return self.gave_up(reported(error));
            }
        }
        Ok(true)
    }

    fn gave_up(&self, error: anyhow::Error) -> Result<bool> {
        match self.connection.refusal() {
            Some(number) if AGAIN.contains(&number) => Ok(false),
            _ => Err(error),
        }
    }

    fn read(&mut self) -> Result<()> {
        self.ids.clear();
        let mut rows = self.connection.query(&self.take).map_err(reported)?;
        while let Some(row) = rows.next().map_err(reported)? {
            let mut cells = row.cells();
            let (Ok(Some(id)), Ok(Some(body))) = (cells.next(), cells.next()) else {
                bail!("a row came back without its id or its body");
            };
            ensure!(!body.is_empty(), "a body came back empty");
            self.ids.push(std::str::from_utf8(id)?.parse()?);
        }
        self.received = Instant::now();
        Ok(())
    }

    /// Consumes what was taken last, where taking alone does not.
    pub(crate) fn end(&mut self) -> Result<()> {
        if self.way != Way::SkipLocked {
            self.connection
                .run("SELECT queue_end()")
                .map_err(reported)?;
        }
        Ok(())
    }
}
