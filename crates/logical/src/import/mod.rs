//! Any SQL file, statement by statement, into a server: in parallel where order cannot matter.
//!
//! | file | what |
//! |---|---|
//! | `request` | how to import |
//! | `source` | the file, unpacked a little ahead |
//! | `split` | a stream of SQL cut into statements |
//! | `classify`, `values` | what a statement is to the order of things |
//! | `facts` | what the server says about a table |
//! | `batch` | rows of many statements in one |
//! | `settings` | which settings of the file are in force for rows |
//! | `order`, `work` | what may begin when, and the connections that run it |
//! | `files`, `places`, `obey` | the files that are run, one within the other, and the clients' commands in them |
//! | `driver`, `later` | the file from its first statement to its last; indexes that come after rows |
//! | `session`, `transactions` | what the file sets, and what it may take back |
//! | `end` | how an import ended, and how to continue |

mod batch;
mod classify;
mod driver;
mod end;
mod facts;
mod files;
mod later;
mod obey;
mod order;
mod places;
mod request;
mod session;
mod settings;
mod source;
pub mod split;
mod transactions;
mod values;
mod work;

pub use request::{FailedStatement, Request};
pub use source::Input;

use driver::Driver;
use evenkeel_op::{Cancel, Error, Progress, Result, Unit};
use evenkeel_server::options::ConnectOptions;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use work::{Pool, Worker};

/// What was imported.
#[derive(Debug, Clone)]
pub struct Report {
    /// Bytes of the file as it lies there, packed.
    pub bytes: u64,
    /// Statements of the file that were run.
    pub statements: u64,
    /// Statements of rows as they went to the server.
    pub inserts_sent: u64,
    /// Rows in statements that were spread over the connections.
    pub rows: u64,
    /// Statements whose rows were there already, as after an interruption.
    pub already_there: u64,
    /// Tables that got rows so.
    pub tables: u64,
    /// Statements and commands that failed, where it continued.
    pub failed: u64,
    /// The first of them.
    pub failures: Vec<FailedStatement>,
    /// Wall clock time in seconds.
    pub seconds: f64,
}

/// Imports a file. What was run before an error stays.
///
/// Errors: `Partial` names the line of the statement that failed and says how to continue;
/// `Unreachable`, `Refused`, `LockTimeout` and interruptions keep their kinds; `Failed` when nothing
/// was run.
pub fn import(
    options: &ConnectOptions,
    request: &Request,
    input: Input,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Report> {
    let begun = Instant::now();
    let pool = Pool::new(
        request.threads.max(1),
        request.from_line > 1,
        request.force,
        cancel,
    );
    let mut connections = Vec::new();
    for _ in 0..pool.threads {
        connections.push(work::open(options, cancel)?);
    }
    let mut driver = Driver::new(options, request, &input.name, progress, &pool)?;
    if let Some(database) = &request.database {
        driver.use_database(database, &database.replace('`', "``"))?;
    }
    progress.phase("importing", input.bytes, Unit::Bytes);
    let outcome = std::thread::scope(|scope| {
        let workers: Vec<_> = connections
            .into_iter()
            .map(|connection| {
                let worker = Worker::new(&pool, connection);
                scope.spawn(|| worker.work())
            })
            .collect();
        // A panic that left this scope would wait for the connections, and they for what comes next.
        let outcome = catch_unwind(AssertUnwindSafe(|| driver.run(input)));
        let outcome = outcome.unwrap_or_else(|_| Err(panicked()));
        pool.close(!matches!(outcome, Ok(true)));
        let broken = workers.into_iter().filter_map(|worker| worker.join().err());
        match broken.count() {
            0 => outcome,
            _ => Err(panicked()),
        }
    });
    progress.end();
    let outcome = match outcome {
        Ok(true) => driver.foreign_keys(),
        other => other,
    };
    match outcome {
        Ok(true) => {
            let counts = pool.counts();
            Ok(Report {
                bytes: driver.bytes,
                statements: driver.statements,
                inserts_sent: counts.sent,
                rows: counts.rows,
                already_there: counts.already_there,
                tables: driver.tables_with_rows(),
                failed: driver.failed,
                failures: driver.failures,
                seconds: begun.elapsed().as_secs_f64(),
            })
        }
        Ok(false) => Err(end::failed(&driver, None)),
        Err(error) => Err(end::failed(&driver, Some(error))),
    }
}

fn panicked() -> Error {
    Error::failed("a thread of the import panicked")
        .hint("this is a bug in evenkeel: report it with the messages above and the statement at that place")
}
