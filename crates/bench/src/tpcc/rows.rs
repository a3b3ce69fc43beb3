//! The rows that the tables begin with (TPC-C 5.11, clause 4.3.3.1), as INSERT statements.

use super::random::{self, Constants, last_name, push_data, push_digits, push_text};
use super::{DISTRICTS, Scale};
use evenkeel_op::Result;
use fastrand::Rng;
use std::io::Write;

/// How large a statement gets before it is sent, in bytes: below every server's limit by default.
const STATEMENT: usize = 1 << 20;

/// Collects rows into statements.
pub(super) struct Insert<'s> {
    head: String,
    statement: Vec<u8>,
    send: &'s mut dyn FnMut(&[u8]) -> Result<()>,
}

impl<'s> Insert<'s> {
    pub(super) fn into(table: &str, send: &'s mut dyn FnMut(&[u8]) -> Result<()>) -> Self {
        Self {
            head: format!("INSERT INTO {table} VALUES "),
            statement: Vec::with_capacity(STATEMENT + 4096),
            send,
        }
    }

    /// Adds a row; `write` appends its values, which need no escaping.
    fn row(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        match self.statement.is_empty() {
            true => self.statement.extend_from_slice(self.head.as_bytes()),
            false => self.statement.push(b','),
        }
        self.statement.push(b'(');
        write(&mut self.statement);
        self.statement.push(b')');
        match self.statement.len() >= STATEMENT {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Sends what is left.
    pub(super) fn flush(&mut self) -> Result<()> {
        if !self.statement.is_empty() {
            (self.send)(&self.statement)?;
            self.statement.clear();
        }
        Ok(())
    }
}

/// Appends formatted text; a vector takes anything.
macro_rules! put {
    ($out:expr, $($what:tt)*) => { write!($out, $($what)*).expect("memory takes it") };
}

/// Appends a quoted text.
fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'\'');
    write(out);
    out.push(b'\'');
}

fn text(out: &mut Vec<u8>, random: &mut Rng, from: usize, to: usize) {
    quoted(out, |out| push_text(out, random, from, to));
}

/// Two streets, city, state, ZIP code.
fn address(out: &mut Vec<u8>, random: &mut Rng) {
    for _ in 0..3 {
        text(out, random, 10, 20);
        out.push(b',');
    }
    quoted(out, |out| {
        (0..2).for_each(|_| out.push(random.uppercase() as u8))
    });
    out.push(b',');
    quoted(out, |out| {
        push_digits(out, random, 4);
        out.extend_from_slice(b"11111");
    });
}

pub(super) fn items(into: &mut Insert<'_>, scale: Scale, random: &mut Rng) -> Result<()> {
    for id in 1..=scale.items {
        into.row(|out| {
            put!(out, "{id},{},", random.u32(1..=10_000));
            text(out, random, 14, 24);
            let cents = random.u32(100..=10_000);
            put!(out, ",{}.{:02},", cents / 100, cents % 100);
            quoted(out, |out| push_data(out, random));
        })?;
    }
    into.flush()
}

/// What a district's customers have paid before anything begins: ten each.
fn taken(scale: Scale) -> u32 {
    10 * scale.customers
}

pub(super) fn warehouse(
    into: &mut Insert<'_>,
    warehouse: u32,
    scale: Scale,
    random: &mut Rng,
) -> Result<()> {
    let taken = taken(scale);
    into.row(|out| {
        put!(out, "{warehouse},");
        text(out, random, 6, 10);
        out.push(b',');
        address(out, random);
        put!(
            out,
            ",0.{:04},{}.00",
            random.u32(0..=2000),
            taken * DISTRICTS
        );
    })?;
    into.flush()
}

pub(super) fn districts(
    into: &mut Insert<'_>,
    warehouse: u32,
    scale: Scale,
    random: &mut Rng,
) -> Result<()> {
    let taken = taken(scale);
    for district in 1..=DISTRICTS {
        into.row(|out| {
            put!(out, "{district},{warehouse},");
            text(out, random, 6, 10);
            out.push(b',');
            address(out, random);
            let (tax, next) = (random.u32(0..=2000), scale.customers + 1);
            put!(out, ",0.{tax:04},{taken}.00,{next}");
        })?;
    }
    into.flush()
}

pub(super) fn stock(
    into: &mut Insert<'_>,
    warehouse: u32,
    scale: Scale,
    random: &mut Rng,
) -> Result<()> {
    for item in 1..=scale.items {
        into.row(|out| {
            put!(out, "{item},{warehouse},{},", random.u32(10..=100));
            for _ in 0..DISTRICTS {
                text(out, random, 24, 24);
                out.push(b',');
            }
            put!(out, "0,0,0,");
            quoted(out, |out| push_data(out, random));
        })?;
    }
    into.flush()
}

pub(super) fn customers(
    into: &mut Insert<'_>,
    (warehouse, district): (u32, u32),
    scale: Scale,
    random: &mut Rng,
) -> Result<()> {
    for id in 1..=scale.customers {
        let name = match id {
            1..=1000 => id - 1,
            _ => random::last_name_number(random, Constants::DATA, 1000),
        };
        into.row(|out| {
            put!(out, "{id},{district},{warehouse},");
            text(out, random, 8, 16);
            put!(out, ",'OE','{}',", last_name(name));
            address(out, random);
            out.push(b',');
            quoted(out, |out| push_digits(out, random, 16));
            let credit = if random.u8(..10) == 0 { "BC" } else { "GC" };
            let discount = random.u32(0..=5000);
            put!(
                out,
                ",NOW(),'{credit}',50000,0.{discount:04},-10.00,10.00,1,0,"
            );
            text(out, random, 300, 500);
        })?;
    }
    into.flush()
}

pub(super) fn history(
    into: &mut Insert<'_>,
    (warehouse, district): (u32, u32),
    scale: Scale,
    random: &mut Rng,
) -> Result<()> {
    for id in 1..=scale.customers {
        into.row(|out| {
            put!(
                out,
                "{id},{district},{warehouse},{district},{warehouse},NOW(),10.00,"
            );
            text(out, random, 12, 24);
        })?;
    }
    into.flush()
}

/// An order as the tables begin with it.
pub(super) struct FirstOrder {
    id: u32,
    customer: u32,
    lines: u32,
}

/// Orders below this share of all were delivered: 2 100 of 3 000.
fn is_delivered(order: u32, scale: Scale) -> bool {
    order <= scale.customers * 7 / 10
}

/// Draws a district's orders: one of each customer, in random order.
pub(super) fn draw_orders(scale: Scale, random: &mut Rng) -> Vec<FirstOrder> {
    let mut customers: Vec<u32> = (1..=scale.customers).collect();
    random.shuffle(&mut customers);
    let orders = customers.into_iter().zip(1..);
    orders
        .map(|(customer, id)| FirstOrder {
            id,
            customer,
            lines: random.u32(5..=15),
        })
        .collect()
}

pub(super) fn orders(
    into: &mut Insert<'_>,
    (warehouse, district): (u32, u32),
    scale: Scale,
    orders: &[FirstOrder],
    random: &mut Rng,
) -> Result<()> {
    for order in orders {
        into.row(|out| {
            let (id, customer) = (order.id, order.customer);
            put!(out, "{id},{district},{warehouse},{customer},NOW(),");
            match is_delivered(id, scale) {
                true => put!(out, "{}", random.u32(1..=10)),
                false => put!(out, "NULL"),
            }
            put!(out, ",{},1", order.lines);
        })?;
    }
    into.flush()
}

pub(super) fn new_orders(
    into: &mut Insert<'_>,
    (warehouse, district): (u32, u32),
    scale: Scale,
    orders: &[FirstOrder],
) -> Result<()> {
    for order in orders.iter().filter(|order| !is_delivered(order.id, scale)) {
        into.row(|out| put!(out, "{},{district},{warehouse}", order.id))?;
    }
    into.flush()
}

pub(super) fn order_lines(
    into: &mut Insert<'_>,
    (warehouse, district): (u32, u32),
    scale: Scale,
    orders: &[FirstOrder],
    random: &mut Rng,
) -> Result<()> {
    for order in orders {
        for number in 1..=order.lines {
            into.row(|out| {
                let item = random.u32(1..=scale.items);
                put!(
                    out,
                    "{},{district},{warehouse},{number},{item},{warehouse},",
                    order.id
                );
                let cents = random.u32(1..=999_999);
                match is_delivered(order.id, scale) {
                    true => put!(out, "NOW(),5,0.00,"),
                    false => put!(out, "NULL,5,{}.{:02},", cents / 100, cents % 100),
                }
                text(out, random, 24, 24);
            })?;
        }
    }
    into.flush()
}
