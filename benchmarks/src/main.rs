//! Transfers between the accounts of `benchmarks/kit/bank.py`'s bank, as the demo's clients make them,
//! until its standard input is closed. Every 20 ms a line says, by the monotonic clock, how many
//! are done and how long the slowest of that interval took: `NANOSECONDS DONE SLOWEST_US`.

use anyhow::{Result, ensure};
use clap::Parser;
use evenkeel_drive::{Drive, Outcome, Pace, Unit, Work};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use rustix::time::{ClockId, clock_gettime};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(20);

#[derive(Parser)]
struct Args {
    /// The server's socket.
    #[arg(long)]
    socket: PathBuf,
    /// Sessions that transfer money.
    #[arg(long, default_value_t = 4)]
    clients: u32,
    /// Accounts in each table, numbered from 1.
    #[arg(long)]
    accounts: u64,
    /// Account tables: `bank.account` if 1, else `bank.account1`, `bank.account2`, …
    #[arg(long, default_value_t = 1)]
    tables: u64,
}

struct Client {
    session: Session,
    number: u32,
    transfers: u64,
    accounts: u64,
    tables: u64,
    random: fastrand::Rng,
    slowest_us: Arc<AtomicU64>,
}

impl Client {
    fn transfer(&mut self) -> evenkeel_op::Result<()> {
        let table = match self.tables {
            1 => "account".to_owned(),
            n => format!("account{}", 1 + self.random.u64(..n)),
        };
        let (debit, amount) = (
            1 + self.random.u64(..self.accounts),
            1 + self.random.u64(..100),
        );
        let credit = 1 + (debit + self.random.u64(..self.accounts - 1)) % self.accounts;
        self.transfers += 1;
        self.session.run("BEGIN")?;
        // Lower id first, so that two transfers cannot lock each other out.
        for id in [debit.min(credit), debit.max(credit)] {
            let sign = if id == debit { '-' } else { '+' };
            self.session.run(&format!(
                "UPDATE bank.{table} SET balance = balance {sign} {amount} WHERE id = {id}"
            ))?;
        }
        self.session.run(&format!(
            "INSERT INTO bank.ledger VALUES ({}, {}, {debit}, {credit}, {amount})",
            self.number, self.transfers
        ))?;
        self.session.run("COMMIT")
    }
}

impl Work for Client {
    fn once(&mut self) -> Unit {
        let begun = Instant::now();
        match self.transfer() {
            Ok(()) => {
                let us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                self.slowest_us.fetch_max(us, Ordering::Relaxed);
                Unit::done(0)
            }
            Err(_) => Unit::ended(0, Outcome::Lost),
        }
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    let slowest_us = Arc::new(AtomicU64::new(0));
    let options = ConnectOptions::over_socket(&args.socket, "root");
    let mut clients = Vec::new();
    for number in 0..args.clients {
        let mut session = Session::open(&options)?;
        // A later run goes on where an earlier one left off.
        let last = session.value(&format!(
            "SELECT CAST(COALESCE(MAX(number), 0) AS CHAR) FROM bank.ledger WHERE client = {number}"
        ))?;
        clients.push(Client {
            session,
            number,
            transfers: last.and_then(|text| text.parse().ok()).unwrap_or(0),
            accounts: args.accounts,
            tables: args.tables,
            // The same transfers each time, evenly spread.
            random: fastrand::Rng::with_seed(number.into()),
            slowest_us: Arc::clone(&slowest_us),
        });
    }
    let drive = Drive::start(clients, 1, Pace::Closed)?;
    let ended = Arc::new(AtomicBool::new(false));
    let reported = Arc::clone(&ended);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        reported.store(true, Ordering::Relaxed);
    });
    let mut out = std::io::stdout().lock();
    while !ended.load(Ordering::Relaxed) {
        std::thread::sleep(INTERVAL);
        let now = clock_gettime(ClockId::Monotonic);
        let (done, lost) = (drive.done(), drive.lost());
        ensure!(lost == 0, "a session was lost");
        let slowest = slowest_us.swap(0, Ordering::Relaxed);
        writeln!(
            out,
            "{} {done} {slowest}",
            now.tv_sec * 1_000_000_000 + now.tv_nsec
        )?;
        out.flush()?;
    }
    drive.stop();
    Ok(())
}
