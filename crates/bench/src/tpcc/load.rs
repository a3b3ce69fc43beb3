//! Fills the tables, several connections at once.
//!
//! Work is cut into parts, each one transaction: it is there whole or not at all. So a load that was
//! interrupted resumes with the parts that are missing.

use super::rows::{self, Insert};
use super::{DISTRICTS, Run, Scale, schema};
use crate::parts;
use evenkeel_op::{Error, Result, Unit};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::Connection;
use fastrand::Rng;
use serde::Serialize;
use std::time::Instant;

/// What to load.
#[derive(Debug, Clone)]
pub struct LoadRequest {
    /// The schema; made when it is not there.
    pub database: String,
    /// How much.
    pub scale: Scale,
    /// How many connections; at least 1.
    pub threads: usize,
    /// The same rows for the same number, whatever the threads.
    pub seed: u64,
}

/// What was loaded.
#[derive(Debug, Clone, Serialize)]
pub struct LoadReport {
    /// Warehouses.
    pub warehouses: u32,
    /// Parts that were loaded.
    pub parts_loaded: usize,
    /// Parts that an earlier load had left whole.
    pub parts_found: usize,
    /// Wall clock time in seconds, with indexes.
    pub seconds: f64,
    /// Of it, for the indexes.
    pub indexes_s: f64,
}

/// What is loaded in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Items,
    Stock(u32),
    Customers(u32, u32),
    Orders(u32, u32),
    /// The warehouse itself comes last: where it is, all of its rows are.
    Warehouse(u32),
}

impl Part {
    fn all(scale: Scale) -> Vec<Self> {
        let warehouses = 1..=scale.warehouses;
        let districts = |warehouse| (1..=DISTRICTS).map(move |district| (warehouse, district));
        let mut all = vec![Self::Items];
        for warehouse in warehouses.clone() {
            all.push(Self::Stock(warehouse));
            all.extend(districts(warehouse).map(|(w, d)| Self::Customers(w, d)));
            all.extend(districts(warehouse).map(|(w, d)| Self::Orders(w, d)));
        }
        all.extend(warehouses.map(Self::Warehouse));
        all
    }

    /// Asks whether one of its rows is there: then all are.
    fn query(self) -> String {
        let (table, condition) = match self {
            Self::Items => ("item", "i_id = 1".to_owned()),
            Self::Stock(w) => ("stock", format!("s_w_id = {w} AND s_i_id = 1")),
            Self::Customers(w, d) => {
                let key = format!("c_w_id = {w} AND c_d_id = {d} AND c_id = 1");
                ("customer", key)
            }
            Self::Orders(w, d) => (
                "orders",
                format!("o_w_id = {w} AND o_d_id = {d} AND o_id = 1"),
            ),
            Self::Warehouse(w) => ("warehouse", format!("w_id = {w}")),
        };
        format!("SELECT 1 FROM {table} WHERE {condition}")
    }

    /// Its own random numbers.
    fn random(self, seed: u64) -> Rng {
        let (kind, warehouse, district) = match self {
            Self::Items => (1, 0, 0),
            Self::Stock(w) => (2, w, 0),
            Self::Customers(w, d) => (3, w, d),
            Self::Orders(w, d) => (4, w, d),
            Self::Warehouse(w) => (5, w, 0),
        };
        let part = (u64::from(warehouse) << 16) | (u64::from(district) << 8) | kind;
        Rng::with_seed(seed.rotate_left(32) ^ part)
    }

    fn send(
        self,
        scale: Scale,
        seed: u64,
        send: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let random = &mut self.random(seed);
        match self {
            Self::Items => rows::items(&mut Insert::into("item", send), scale, random),
            Self::Stock(w) => rows::stock(&mut Insert::into("stock", send), w, scale, random),
            Self::Customers(w, d) => {
                rows::customers(&mut Insert::into("customer", send), (w, d), scale, random)?;
                rows::history(&mut Insert::into("history", send), (w, d), scale, random)
            }
            Self::Orders(w, d) => {
                let orders = rows::draw_orders(scale, random);
                let at = (w, d);
                rows::orders(
                    &mut Insert::into("orders", send),
                    at,
                    scale,
                    &orders,
                    random,
                )?;
                rows::new_orders(&mut Insert::into("new_orders", send), at, scale, &orders)?;
                let lines = &mut Insert::into("order_line", send);
                rows::order_lines(lines, at, scale, &orders, random)
            }
            Self::Warehouse(w) => {
                rows::districts(&mut Insert::into("district", send), w, scale, random)?;
                rows::warehouse(&mut Insert::into("warehouse", send), w, scale, random)
            }
        }
    }
}

/// Makes the tables and fills them; continues where an earlier load was interrupted.
///
/// Errors: `Usage` for a scale that is none; `Refused` when there are rows of another scale, and for
/// what the server refuses.
pub fn load(options: &ConnectOptions, request: &LoadRequest, run: Run<'_>) -> Result<LoadReport> {
    let begun = Instant::now();
    request.scale.check()?;
    let mut session = Session::open(options)?;
    let name = quote_name(&request.database);
    session.run(&format!("CREATE DATABASE IF NOT EXISTS {name}"))?;
    session.run(&format!("USE {name}"))?;
    schema::create(&mut session)?;
    same_scale(&mut session, request.scale)?;
    let mut missing = Vec::new();
    let all = Part::all(request.scale);
    for part in &all {
        if session.value(&part.query())?.is_none() {
            missing.push(*part);
        }
    }
    run.progress.phase(
        "loading warehouses",
        Some(missing.len() as u64),
        Unit::Items,
    );
    fill(options, request, &missing, run)?;
    run.progress.end();
    let before_indexes = Instant::now();
    for statement in schema::missing_indexes(&mut session)? {
        run.cancel.check()?;
        session.run(&statement)?;
    }
    session.rows("ANALYZE TABLE warehouse, district, customer, orders, order_line, stock, item")?;
    Ok(LoadReport {
        warehouses: request.scale.warehouses,
        parts_loaded: missing.len(),
        parts_found: all.len() - missing.len(),
        seconds: begun.elapsed().as_secs_f64(),
        indexes_s: before_indexes.elapsed().as_secs_f64(),
    })
}

/// More warehouses may be added to what is there; other sizes cannot be.
fn same_scale(session: &mut Session, scale: Scale) -> Result<()> {
    for (column, table, wanted) in [
        ("i_id", "item", scale.items),
        ("c_id", "customer", scale.customers),
    ] {
        let there = session.value(&format!("SELECT MAX({column}) FROM {table}"))?;
        if there
            .as_ref()
            .is_some_and(|text| *text != wanted.to_string())
        {
            return Err(Error::refused(format!(
                "{table} holds rows of another scale, not {wanted}"
            ))
            .hint("load into another --database, or drop this one"));
        }
    }
    Ok(())
}

fn fill(
    options: &ConnectOptions,
    request: &LoadRequest,
    missing: &[Part],
    run: Run<'_>,
) -> Result<()> {
    parts::each(missing, request.threads, |take, stop| {
        let mut connection = Connection::open(options, run.cancel)?;
        connection.run(&format!("USE {}", quote_name(&request.database)))?;
        for sql in [
            "SET NAMES latin1",
            "SET unique_checks = 0",
            "SET autocommit = 0",
        ] {
            connection.run(sql)?;
        }
        while let Some(part) = take() {
            let mut send = |statement: &[u8]| {
                run.cancel.check()?;
                stop.check()?;
                connection.run_bytes(statement).map(|_| ())
            };
            part.send(request.scale, request.seed, &mut send)?;
            connection.run("COMMIT")?;
            run.progress.advance(1);
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_the_same_for_a_seed_whoever_loads_it() {
        let scale = Scale {
            warehouses: 1,
            items: 30,
            customers: 10,
        };
        let text = |part: Part, seed| {
            let mut all = Vec::new();
            let mut send = |statement: &[u8]| {
                all.extend_from_slice(statement);
                Ok(())
            };
            part.send(scale, seed, &mut send).unwrap();
            all
        };
        let all = Part::all(scale);
        assert_eq!(all.len(), 1 + 1 + 10 + 10 + 1);
        let mut seen = std::collections::HashSet::new();
        for part in all {
            assert_eq!(text(part, 7), text(part, 7));
            assert_ne!(text(part, 7), text(part, 8), "{part:?}");
            assert!(seen.insert(text(part, 7)), "{part:?} repeats another");
        }
    }
}
