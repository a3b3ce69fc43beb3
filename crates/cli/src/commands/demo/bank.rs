//! The demo's application: a bank whose every transaction keeps the total.
//!
//! Each client numbers its transfers and writes the number into the ledger in the same transaction,
//! and keeps its own record of when it began and when the server acknowledged the commit. After a
//! restore, that record says exactly which transfers must be there and which must not.

use evenkeel_drive::{Outcome, Unit, Work};
use evenkeel_op::{Context, Error, Result};
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Accounts in the bank.
pub(super) const ACCOUNTS: u64 = 100_000;
/// What every account starts with.
const OPENING_BALANCE: u64 = 1_000;
/// The total that every transaction keeps.
pub(super) const TOTAL: u64 = ACCOUNTS * OPENING_BALANCE;

/// Creates the schema and fills it: accounts, an empty ledger, and an archive of older rows, so
/// that there is something to back up that does not change.
pub(super) fn load(session: &mut Session, archive_rows: u64) -> Result<()> {
    for sql in [
        "CREATE DATABASE bank".to_owned(),
        "CREATE TABLE bank.account (id INT UNSIGNED PRIMARY KEY, balance BIGINT NOT NULL, \
         owner CHAR(60) NOT NULL) ENGINE=InnoDB"
            .to_owned(),
        "CREATE TABLE bank.ledger (client INT UNSIGNED NOT NULL, number INT UNSIGNED NOT NULL, \
         debit INT UNSIGNED NOT NULL, credit INT UNSIGNED NOT NULL, amount INT UNSIGNED NOT NULL, \
         PRIMARY KEY (client, number)) ENGINE=InnoDB"
            .to_owned(),
        "CREATE TABLE bank.archive (id INT UNSIGNED PRIMARY KEY, note VARCHAR(255) NOT NULL) \
         ENGINE=InnoDB"
            .to_owned(),
        // The sequence engine needs a default schema.
        "USE bank".to_owned(),
        "SET SESSION sql_log_bin = 0".to_owned(),
        format!(
            "INSERT INTO bank.account SELECT seq, {OPENING_BALANCE}, SHA2(seq, 224) \
             FROM seq_1_to_{ACCOUNTS}"
        ),
        format!(
            "INSERT INTO bank.archive SELECT seq, CONCAT(SHA2(seq, 512), REPEAT('transfer ', 8)) \
             FROM seq_1_to_{archive_rows}"
        ),
    ] {
        session.run(&sql).context(|| "failed to load the bank")?;
    }
    Ok(())
}

/// What one client remembers of its transfers: when each was begun and when its commit was
/// acknowledged. Number n is at index n - 1.
#[derive(Debug, Default)]
pub(super) struct Diary {
    /// When transfer n was begun.
    pub(super) begun: Vec<Instant>,
    /// When its commit was acknowledged; transfers end in the order in which they begin.
    pub(super) committed: Vec<Instant>,
}

/// One client.
pub(super) struct Client {
    session: Session,
    number: u32,
    diary: Arc<Mutex<Diary>>,
    random: fastrand::Rng,
}

impl Client {
    pub(super) fn open(options: &ConnectOptions, number: u32) -> Result<Self> {
        let session = Session::open(options)?;
        // Transfers only have to be spread evenly, and the same each time.
        let random = fastrand::Rng::with_seed(number.into());
        Ok(Self {
            session,
            number,
            diary: Arc::default(),
            random,
        })
    }

    pub(super) fn diary(&self) -> Arc<Mutex<Diary>> {
        Arc::clone(&self.diary)
    }

    fn transfer(&mut self, number: usize) -> Result<()> {
        let (debit, amount) = (1 + self.random.u64(..ACCOUNTS), 1 + self.random.u64(..100));
        let credit = 1 + (debit + self.random.u64(..ACCOUNTS - 1)) % ACCOUNTS;
        // Lower id first, so that two transfers cannot lock each other out.
        let (first, second) = (debit.min(credit), debit.max(credit));
        self.session.run("BEGIN")?;
        for id in [first, second] {
            let sign = if id == debit { '-' } else { '+' };
            self.session.run(&format!(
                "UPDATE bank.account SET balance = balance {sign} {amount} WHERE id = {id}"
            ))?;
        }
        self.session.run(&format!(
            "INSERT INTO bank.ledger VALUES ({}, {number}, {debit}, {credit}, {amount})",
            self.number
        ))?;
        self.session.run("COMMIT")
    }
}

impl Work for Client {
    fn once(&mut self) -> Unit {
        let number = {
            let mut diary = self.diary.lock().unwrap_or_else(|e| e.into_inner());
            diary.begun.push(Instant::now());
            diary.begun.len()
        };
        match self.transfer(number) {
            Ok(()) => {
                let mut diary = self.diary.lock().unwrap_or_else(|e| e.into_inner());
                diary.committed.push(Instant::now());
                Unit::done(0)
            }
            // A failed transfer would leave a gap in the numbers, so the client stops instead: with
            // ordered locks nothing but the end of the server makes a transfer fail.
            Err(_) => Unit::ended(0, Outcome::Lost),
        }
    }
}

/// What a restored bank holds.
#[derive(Debug)]
pub(super) struct Holdings {
    /// Sum of all balances.
    pub(super) total: u64,
    /// Accounts whose balance is not what the ledger makes of it.
    pub(super) unexplained: u64,
    /// Per client, the highest transfer number and how many there are: equal when none is missing.
    pub(super) transfers: Vec<(u32, u64, u64)>,
}

/// Reads what a bank holds.
pub(super) fn holdings(session: &mut Session) -> Result<Holdings> {
    let number = |text: Option<String>| {
        text.and_then(|t| t.parse::<u64>().ok())
            .ok_or_else(|| Error::failed("the restored bank gives no number"))
    };
    let total = number(session.value("SELECT CAST(SUM(balance) AS CHAR) FROM bank.account")?)?;
    let unexplained = number(session.value(&format!(
        "SELECT COUNT(*) FROM bank.account a LEFT JOIN (SELECT id, SUM(change_) AS change_ FROM \
         (SELECT credit AS id, CAST(amount AS SIGNED) AS change_ FROM bank.ledger UNION ALL \
          SELECT debit, -CAST(amount AS SIGNED) FROM bank.ledger) m GROUP BY id) l USING (id) \
         WHERE a.balance <> {OPENING_BALANCE} + COALESCE(l.change_, 0)"
    ))?)?;
    let mut transfers = Vec::new();
    for row in session.rows(
        "SELECT client, MAX(number) AS last, COUNT(*) AS n FROM bank.ledger GROUP BY client",
    )? {
        let cell = |i| number(row.at(i).map(str::to_owned));
        transfers.push((
            u32::try_from(cell(0)?).unwrap_or(u32::MAX),
            cell(1)?,
            cell(2)?,
        ));
    }
    Ok(Holdings {
        total,
        unexplained,
        transfers,
    })
}
