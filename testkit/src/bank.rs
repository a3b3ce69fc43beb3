//! A bank: a schema in which any lost, doubled or half-done transaction shows.
//!
//! Every transfer is one transaction over up to three tables: it takes money from one account, gives
//! it to another, and appends a row to a ledger. So at every instant the sum of all balances is what
//! it was, each balance is what the ledger explains, and each client's transfers are numbered
//! without a gap, because a client starts one only after the one before was acknowledged.

use evenkeel_op::{Error, Result};
use evenkeel_server::connect::Session;
use std::collections::BTreeMap;

/// What every account holds at first.
pub const OPENING_BALANCE: i64 = 1000;

/// The schema's name.
pub const SCHEMA: &str = "bank";

/// How large a bank is. `accounts` are spread evenly over `tables` tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bank {
    /// How many accounts there are, numbered from 0.
    pub accounts: u32,
    /// How many tables they lie in: account `a` is in `accounts_{a % tables}`.
    pub tables: u32,
}

/// What [`Bank::check`] found in a bank that is in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BankState {
    /// The number of each client's last transfer; clients without any are left out.
    pub last: BTreeMap<u32, u64>,
    /// The number of rows in the ledger.
    pub transfers: u64,
}

impl Bank {
    /// Creates a bank of `accounts` in four tables.
    pub fn load(session: &mut Session, accounts: u32) -> Result<Self> {
        Self::load_over(session, accounts, 4)
    }

    /// Creates a bank of `accounts` in `tables` tables.
    pub fn load_over(session: &mut Session, accounts: u32, tables: u32) -> Result<Self> {
        let bank = Self { accounts, tables };
        session.run(&format!("CREATE DATABASE {SCHEMA}"))?;
        session.run(&format!(
            "CREATE TABLE {SCHEMA}.ledger (client INT NOT NULL, seq BIGINT NOT NULL, \
             giver INT NOT NULL, taker INT NOT NULL, amount BIGINT NOT NULL, \
             PRIMARY KEY (client, seq), KEY (giver), KEY (taker)) ENGINE=InnoDB"
        ))?;
        for table in 0..tables {
            session.run(&format!(
                "CREATE TABLE {SCHEMA}.accounts_{table} (id INT PRIMARY KEY, \
                 balance BIGINT NOT NULL, note VARCHAR(100) NOT NULL, KEY (balance)) ENGINE=InnoDB"
            ))?;
            let ids: Vec<u32> = (table..accounts).step_by(tables as usize).collect();
            for some in ids.chunks(1000) {
                let rows: Vec<String> = some
                    .iter()
                    .map(|id| format!("({id},{OPENING_BALANCE},REPEAT('x',100))"))
                    .collect();
                session.run(&format!(
                    "INSERT INTO {SCHEMA}.accounts_{table} VALUES {}",
                    rows.join(",")
                ))?;
            }
        }
        Ok(bank)
    }

    /// Looks at a bank that exists: how many tables and accounts it has.
    pub fn find(session: &mut Session) -> Result<Self> {
        let tables = number(
            session,
            &format!(
                "SELECT COUNT(*) FROM information_schema.tables \
                 WHERE table_schema='{SCHEMA}' AND table_name LIKE 'accounts\\_%'"
            ),
        )? as u32;
        let mut bank = Self {
            accounts: 0,
            tables,
        };
        let count = format!("SELECT COUNT(*) FROM ({}) a", bank.all_accounts());
        bank.accounts = number(session, &count)? as u32;
        Ok(bank)
    }

    /// Checks that the bank is in order; `Differs` says what is not.
    pub fn check(&self, session: &mut Session) -> Result<BankState> {
        self.check_tables(session)?;
        self.check_balances(session)?;
        check_ledger(session)
    }

    fn check_tables(&self, session: &mut Session) -> Result<()> {
        let mut names: Vec<String> = (0..self.tables)
            .map(|table| format!("{SCHEMA}.accounts_{table}"))
            .collect();
        names.push(format!("{SCHEMA}.ledger"));
        for row in session.rows(&format!("CHECK TABLE {}", names.join(", ")))? {
            let (kind, text) = (row.at(2).unwrap_or(""), row.at(3).unwrap_or(""));
            if kind != "status" || text != "OK" {
                let table = row.at(0).unwrap_or("?");
                return Err(wrong(format!("CHECK TABLE {table}: {kind}: {text}")));
            }
        }
        Ok(())
    }

    fn check_balances(&self, session: &mut Session) -> Result<()> {
        let all = self.all_accounts();
        let sums = format!("SELECT COUNT(*), COALESCE(SUM(balance), 0) FROM ({all}) a");
        let row = session.one(&sums)?.unwrap_or_else(|| unreachable!());
        let (count, sum) = (parsed(row.at(0))?, parsed(row.at(1))?);
        if count != i64::from(self.accounts) {
            let expected = self.accounts;
            return Err(wrong(format!("{count} accounts instead of {expected}")));
        }
        let expected = count * OPENING_BALANCE;
        if sum != expected {
            return Err(wrong(format!(
                "the balances add up to {sum}, not {expected}"
            )));
        }
        let unexplained = format!(
            "SELECT COUNT(*) FROM ({all}) a LEFT JOIN (SELECT account, SUM(amount) AS moved FROM \
             (SELECT giver AS account, -amount AS amount FROM {SCHEMA}.ledger \
             UNION ALL SELECT taker, amount FROM {SCHEMA}.ledger) l GROUP BY account) m \
             ON m.account = a.id WHERE a.balance <> {OPENING_BALANCE} + COALESCE(m.moved, 0)"
        );
        match number(session, &unexplained)? {
            0 => Ok(()),
            some => Err(wrong(format!(
                "the ledger does not explain the balance of {some} accounts"
            ))),
        }
    }

    /// A query for id and balance of every account.
    fn all_accounts(&self) -> String {
        let each: Vec<String> = (0..self.tables)
            .map(|table| format!("SELECT id, balance FROM {SCHEMA}.accounts_{table}"))
            .collect();
        each.join(" UNION ALL ")
    }
}

fn check_ledger(session: &mut Session) -> Result<BankState> {
    let mut state = BankState {
        last: BTreeMap::new(),
        transfers: 0,
    };
    let numbers =
        format!("SELECT client, COUNT(*), MIN(seq), MAX(seq) FROM {SCHEMA}.ledger GROUP BY client");
    for row in session.rows(&numbers)? {
        let client = parsed(row.at(0))? as u32;
        let (count, first, last) = (parsed(row.at(1))?, parsed(row.at(2))?, parsed(row.at(3))?);
        if first != 1 || last != count {
            return Err(wrong(format!(
                "client {client} has {count} transfers, numbered {first} to {last}"
            )));
        }
        state.last.insert(client, last as u64);
        state.transfers += count as u64;
    }
    Ok(state)
}

impl BankState {
    /// Checks that this state is one of an instant between two looks at the traffic: every transfer
    /// acknowledged by the first is there, and none started after the second.
    pub fn check_between(&self, before: &crate::Marks, after: &crate::Marks) -> Result<()> {
        for (client, acknowledged) in &before.acknowledged {
            let last = self.last.get(client).copied().unwrap_or(0);
            if last < *acknowledged {
                return Err(wrong(format!(
                    "client {client}: transfer {acknowledged} was acknowledged, {last} is the last"
                )));
            }
        }
        for (client, last) in &self.last {
            let started = after.started.get(client).copied().unwrap_or(0);
            if *last > started {
                return Err(wrong(format!(
                    "client {client}: transfer {last} is there, {started} was the last one started"
                )));
            }
        }
        Ok(())
    }
}

fn wrong(message: String) -> Error {
    Error::new(evenkeel_op::ErrorKind::Differs, message)
}

fn parsed(text: Option<&str>) -> Result<i64> {
    text.and_then(|text| text.parse().ok())
        .ok_or_else(|| Error::failed(format!("not a number: {text:?}")))
}

pub(crate) fn number(session: &mut Session, sql: &str) -> Result<i64> {
    parsed(session.value(sql)?.as_deref())
}
