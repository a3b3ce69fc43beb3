//! The five transactions. Each is drawn once, and run again as it is after a deadlock.

mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

use super::like::Faults;
use super::link::{Link, Step, Trouble};
use super::random::{self, Constants};
use super::{DISTRICTS, Kind, Scale};
use fastrand::Rng;

/// What transactions are drawn from.
#[derive(Debug)]
pub(super) struct Draw {
    pub(super) random: Rng,
    pub(super) constants: Constants,
    pub(super) scale: Scale,
    /// The terminal's warehouse; any for each transaction where it has none.
    pub(super) home: Option<u32>,
    /// Those of tpcc-mysql, where they are wanted.
    pub(super) faults: Option<Faults>,
}

impl Draw {
    fn warehouse(&mut self) -> u32 {
        self.home
            .unwrap_or_else(|| self.random.u32(1..=self.scale.warehouses))
    }

    /// Returns another warehouse than `this`, if there is one.
    fn other_warehouse(&mut self, this: u32) -> u32 {
        if self.scale.warehouses == 1 {
            return this;
        }
        match self.random.u32(1..self.scale.warehouses) {
            drawn if drawn >= this => drawn + 1,
            drawn => drawn,
        }
    }

    fn district(&mut self) -> u32 {
        self.random.u32(1..=DISTRICTS)
    }

    fn customer(&mut self) -> u32 {
        random::customer(&mut self.random, self.constants, self.scale.customers)
    }

    fn item(&mut self) -> u32 {
        random::item(&mut self.random, self.constants, self.scale.items)
    }

    /// A customer as a clerk names one: six of ten by the last name.
    fn named(&mut self) -> Named {
        match self.percent(60) {
            true => {
                let names = self.scale.customers.min(1000);
                let number = random::last_name_number(&mut self.random, self.constants, names);
                Named::Last(random::last_name(number))
            }
            false => Named::Number(self.customer()),
        }
    }

    fn percent(&mut self, share: u32) -> bool {
        self.random.u32(1..=100) <= share
    }
}

/// How a customer is named.
#[derive(Debug, Clone)]
enum Named {
    Number(u32),
    Last(String),
}

impl Named {
    /// Returns the customer's number: of those with the name, the one in the middle by first name.
    fn find(&self, link: &mut Link, warehouse: u32, district: u32) -> Step<u32> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Last(name) => {
                let key = (warehouse, district, name);
                let all: Vec<u32> = link.all(|s| &s.customers_by_name, key)?;
                let middle = all.len().div_ceil(2);
                let found = middle.checked_sub(1).and_then(|at| all.get(at));
                found
                    .copied()
                    .ok_or(Trouble::Missing("customer of that name"))
            }
        }
    }
}

/// A transaction with all that was drawn for it.
#[derive(Debug)]
pub(super) enum Transaction {
    NewOrder(new_order::NewOrder),
    Payment(payment::Payment),
    OrderStatus(order_status::OrderStatus),
    Delivery(delivery::Delivery),
    StockLevel(stock_level::StockLevel),
}

impl Transaction {
    pub(super) fn draw(kind: Kind, draw: &mut Draw) -> Self {
        match kind {
            Kind::NewOrder => Self::NewOrder(new_order::NewOrder::draw(draw)),
            Kind::Payment => Self::Payment(payment::Payment::draw(draw)),
            Kind::OrderStatus => Self::OrderStatus(order_status::OrderStatus::draw(draw)),
            Kind::Delivery => Self::Delivery(delivery::Delivery::draw(draw)),
            Kind::StockLevel => Self::StockLevel(stock_level::StockLevel::draw(draw)),
        }
    }

    /// Runs it to its COMMIT, or to the ROLLBACK that it was drawn to end with.
    pub(super) fn run(&self, link: &mut Link) -> Step<()> {
        match self {
            Self::NewOrder(drawn) => drawn.run(link),
            Self::Payment(drawn) => drawn.run(link),
            Self::OrderStatus(drawn) => drawn.run(link),
            Self::Delivery(drawn) => drawn.run(link),
            Self::StockLevel(drawn) => drawn.run(link),
        }
    }
}

/// Money, in cents, from a DECIMAL's text.
fn cents(text: &str) -> i64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, "00"));
    let negative = whole.starts_with('-');
    let digits: String = whole
        .trim_start_matches('-')
        .chars()
        .chain(part.chars().chain("00".chars()).take(2))
        .collect();
    let value: i64 = digits.parse().unwrap_or(0);
    if negative { -value } else { value }
}

/// Cents as a DECIMAL's text.
fn money(cents: i64) -> String {
    let sign = if cents < 0 { "-" } else { "" };
    let cents = cents.unsigned_abs();
    format!("{sign}{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_goes_to_cents_and_back() {
        for (text, expected) in [
            ("0.05", 5),
            ("-0.05", -5),
            ("123.40", 12340),
            ("-10.00", -1000),
        ] {
            assert_eq!(cents(text), expected, "{text}");
            assert_eq!(money(expected), text);
        }
        assert_eq!((cents("7"), cents("7.1")), (700, 710));
    }

    #[test]
    fn another_warehouse_is_another_one() {
        let mut draw = Draw {
            random: Rng::with_seed(3),
            constants: Constants::DATA,
            scale: Scale::of(3),
            home: None,
            faults: None,
        };
        let drawn: std::collections::BTreeSet<u32> =
            (0..100).map(|_| draw.other_warehouse(2)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [1, 3]);
        draw.scale = Scale::of(1);
        assert_eq!(draw.other_warehouse(1), 1);
    }
}
