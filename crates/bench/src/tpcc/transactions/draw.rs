//! How what a transaction is about is drawn.

use super::super::like::Faults;
use super::super::link::{Link, Step, Trouble};
use super::super::random::{self, Constants};
use super::super::{DISTRICTS, Scale};
use fastrand::Rng;

/// What transactions are drawn from.
#[derive(Debug)]
pub(in super::super) struct Draw {
    pub(in super::super) random: Rng,
    pub(in super::super) constants: Constants,
    pub(in super::super) scale: Scale,
    /// The terminal's warehouse; any for each transaction where it has none.
    pub(in super::super) home: Option<u32>,
    /// Those of tpcc-mysql, where they are wanted.
    pub(in super::super) faults: Option<Faults>,
}

impl Draw {
    pub(super) fn warehouse(&mut self) -> u32 {
        self.home
            .unwrap_or_else(|| self.random.u32(1..=self.scale.warehouses))
    }

    /// Returns another warehouse than `this`, if there is one.
    pub(super) fn other_warehouse(&mut self, this: u32) -> u32 {
        if self.scale.warehouses == 1 {
            return this;
        }
        match self.random.u32(1..self.scale.warehouses) {
            drawn if drawn >= this => drawn + 1,
            drawn => drawn,
        }
    }

    pub(super) fn district(&mut self) -> u32 {
        self.random.u32(1..=DISTRICTS)
    }

    pub(super) fn customer(&mut self) -> u32 {
        random::customer(&mut self.random, self.constants, self.scale.customers)
    }

    pub(super) fn item(&mut self) -> u32 {
        random::item(&mut self.random, self.constants, self.scale.items)
    }

    /// A customer as a clerk names one: six of ten by the last name.
    pub(super) fn named(&mut self) -> Named {
        match self.percent(60) {
            true => {
                let names = self.scale.customers.min(1000);
                let number = random::last_name_number(&mut self.random, self.constants, names);
                Named::Last(random::last_name(number))
            }
            false => Named::Number(self.customer()),
        }
    }

    pub(super) fn percent(&mut self, share: u32) -> bool {
        self.random.u32(1..=100) <= share
    }
}

/// How a customer is named.
#[derive(Debug, Clone)]
pub(super) enum Named {
    Number(u32),
    Last(String),
}

impl Named {
    /// Returns the customer's number: of those with the name, the one in the middle by first name.
    pub(super) fn find(&self, link: &mut Link, warehouse: u32, district: u32) -> Step<u32> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
