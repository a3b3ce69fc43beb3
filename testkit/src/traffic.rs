//! Clients of the bank: random transfers, one after the other, at a pace that leaves the machine for what is
//! tested; or as fast as the server takes them.

use crate::bank::{Bank, SCHEMA, number};
use evenkeel_op::{Error, ErrorKind, Result};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a client rests after each transfer. Without a rest, clients and server take both processors
/// for as long as a test runs, whatever it waits for.
const REST: Duration = Duration::from_millis(5);

/// The number of each client's last transfer, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    /// Sent to the server, or about to be.
    pub started: BTreeMap<u32, u64>,
    /// Committed, as the server said.
    pub acknowledged: BTreeMap<u32, u64>,
}

/// Running clients. Dropping them stops them.
#[derive(Debug)]
pub struct BankTraffic {
    clients: Vec<Client>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Client {
    number: u32,
    thread: Option<JoinHandle<()>>,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    started: AtomicU64,
    acknowledged: AtomicU64,
    lost: Mutex<Option<String>>,
}

impl Bank {
    /// Starts `clients` clients that rest between transfers; each goes on numbering after its last transfer
    /// in the ledger.
    pub fn start(&self, options: &ConnectOptions, clients: u32) -> Result<BankTraffic> {
        self.start_with(options, clients, REST)
    }

    /// The same without a rest: as many transfers as the server takes.
    pub fn rush(&self, options: &ConnectOptions, clients: u32) -> Result<BankTraffic> {
        self.start_with(options, clients, Duration::ZERO)
    }

    /// The same with random choices from a given seed.
    pub fn rush_seeded(
        &self,
        options: &ConnectOptions,
        clients: u32,
        seed: u64,
    ) -> Result<BankTraffic> {
        self.start_seeded(options, clients, Duration::ZERO, seed)
    }

    /// Random choices come from a seed that is printed: a failed test shows it.
    fn start_with(
        &self,
        options: &ConnectOptions,
        clients: u32,
        rest: Duration,
    ) -> Result<BankTraffic> {
        let seed = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(1, |now| now.as_nanos() as u64);
        println!("bank traffic: seed {seed}");
        self.start_seeded(options, clients, rest, seed)
    }

    fn start_seeded(
        &self,
        options: &ConnectOptions,
        clients: u32,
        rest: Duration,
        seed: u64,
    ) -> Result<BankTraffic> {
        let mut traffic = BankTraffic {
            clients: Vec::new(),
            stop: Arc::default(),
        };
        for client in 0..clients {
            let mut session = Session::open(options)?;
            let last = number(
                &mut session,
                &format!("SELECT COALESCE(MAX(seq), 0) FROM {SCHEMA}.ledger WHERE client={client}"),
            )? as u64;
            let counters = Arc::new(Counters {
                started: AtomicU64::new(last),
                acknowledged: AtomicU64::new(last),
                lost: Mutex::new(None),
            });
            let worker = Worker {
                bank: *self,
                client,
                session,
                random: Random::new(seed ^ (u64::from(client) << 32)),
                counters: Arc::clone(&counters),
                stop: Arc::clone(&traffic.stop),
                rest,
            };
            traffic.clients.push(Client {
                number: client,
                thread: Some(std::thread::spawn(move || worker.work())),
                counters,
            });
        }
        Ok(traffic)
    }
}

impl BankTraffic {
    /// Returns how far each client is now. Acknowledged is read before started, so a transfer that
    /// is acknowledged here is always started here.
    #[must_use]
    pub fn marks(&self) -> Marks {
        let each = |pick: fn(&Counters) -> &AtomicU64| {
            self.clients
                .iter()
                .map(|client| (client.number, pick(&client.counters).load(Ordering::SeqCst)))
                .collect()
        };
        let acknowledged = each(|counters| &counters.acknowledged);
        let started = each(|counters| &counters.started);
        Marks {
            started,
            acknowledged,
        }
    }

    /// Returns the sum of all acknowledged transfer numbers: the bank's transfers so far.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.marks().acknowledged.values().sum()
    }

    /// Waits until `transfers` more were acknowledged. Panics when that takes over 30 s.
    #[track_caller]
    pub fn wait_for(&self, transfers: u64) {
        let goal = self.acknowledged() + transfers;
        crate::until("the bank's clients got further", || {
            self.acknowledged() >= goal || self.lost().len() == self.clients.len()
        });
    }

    /// Returns what the clients that lost their connection were told.
    #[must_use]
    pub fn lost(&self) -> Vec<String> {
        self.clients
            .iter()
            .filter_map(|client| client.counters.lost.lock().ok()?.clone())
            .collect()
    }

    /// Panics when a client lost its connection: whatever was done meanwhile must not disturb them.
    #[track_caller]
    pub fn assert_undisturbed(&self) {
        assert_eq!(self.lost(), Vec::<String>::new(), "a client was disturbed");
    }

    /// Stops every client after the transfer it is at, and returns how far each got. A client whose
    /// server was killed has stopped already: its last transfer may be started and not acknowledged.
    #[must_use]
    pub fn stop(mut self) -> Marks {
        self.end();
        self.marks()
    }

    fn end(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for client in &mut self.clients {
            if let Some(thread) = client.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for BankTraffic {
    fn drop(&mut self) {
        self.end();
    }
}

struct Worker {
    bank: Bank,
    client: u32,
    session: Session,
    random: Random,
    counters: Arc<Counters>,
    stop: Arc<AtomicBool>,
    rest: Duration,
}

impl Worker {
    fn work(mut self) {
        while !self.stop.load(Ordering::SeqCst) {
            if let Err(error) = self.transfer() {
                if let Ok(mut lost) = self.counters.lost.lock() {
                    *lost = Some(error.chain());
                }
                return;
            }
            if !self.rest.is_zero() {
                std::thread::sleep(self.rest);
            }
        }
    }

    /// Does one transfer; tries again when the server rolled it back.
    fn transfer(&mut self) -> Result<()> {
        let giver = self.random.below(self.bank.accounts);
        let taker = (giver + 1 + self.random.below(self.bank.accounts - 1)) % self.bank.accounts;
        let amount = i64::from(self.random.below(100)) + 1;
        let seq = self.counters.acknowledged.load(Ordering::SeqCst) + 1;
        self.counters.started.store(seq, Ordering::SeqCst);
        while let Err(error) = self.attempt(seq, giver, taker, amount) {
            // A connection that is gone leaves it open whether the transfer was committed.
            if error.kind() == ErrorKind::Unreachable || self.session.run("ROLLBACK").is_err() {
                return Err(error);
            }
            if self.stop.load(Ordering::SeqCst) {
                return Err(Error::failed("stopped before the transfer was through"));
            }
        }
        self.counters.acknowledged.store(seq, Ordering::SeqCst);
        Ok(())
    }

    fn attempt(&mut self, seq: u64, giver: u32, taker: u32, amount: i64) -> Result<()> {
        let tables = self.bank.tables;
        let mut moves = [(giver, -amount), (taker, amount)];
        // Always in one order, or two clients would wait for each other.
        moves.sort_by_key(|(account, _)| (account % tables, *account));
        self.session.run("BEGIN")?;
        for (account, by) in moves {
            let table = account % tables;
            self.session.run(&format!(
                "UPDATE {SCHEMA}.accounts_{table} SET balance = balance + {by} WHERE id = {account}"
            ))?;
        }
        let client = self.client;
        self.session.run(&format!(
            "INSERT INTO {SCHEMA}.ledger VALUES ({client}, {seq}, {giver}, {taker}, {amount})"
        ))?;
        self.session.run("COMMIT")
    }
}

/// Numbers that look random and repeat for the same seed (xorshift64*).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // Zero would stay zero.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Returns a number from 0 to `bound` - 1; `bound` must not be 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        ((self.number() >> 32) % u64::from(bound)) as u32
    }
}
