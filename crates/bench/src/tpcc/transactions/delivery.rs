//! Delivery (2.7): the oldest new order of each district. Done at once, not deferred.

use super::draw::Draw;
use crate::tpcc::DISTRICTS;
use crate::tpcc::link::{Link, Step};

/// Which warehouse delivers, by whom.
#[derive(Debug)]
pub(in crate::tpcc) struct Delivery {
    warehouse: u32,
    carrier: u32,
}

impl Delivery {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        Self {
            warehouse: draw.warehouse(),
            carrier: draw.random.u32(1..=10),
        }
    }

    pub(super) fn run(&self, link: &mut Link) -> Step<()> {
        for district in 1..=DISTRICTS {
            self.deliver(link, district)?;
        }
        link.commit()
    }

    fn deliver(&self, link: &mut Link, d: u32) -> Step<()> {
        let w = self.warehouse;
        let oldest: Option<u32> = link.first(|s| &s.oldest_new_order, (w, d))?;
        // A district without new orders is passed over.
        let Some(order) = oldest else {
            return Ok(());
        };
        link.run(|s| &s.delete_new_order, (w, d, order))?;
        // The order may be younger than this transaction's snapshot. What it has changed itself it
        // sees all the same: so changes come first.
        link.run(|s| &s.carry_order, (self.carrier, w, d, order))?;
        let customer: u32 = link.one("order", |s| &s.customer_of_order, (w, d, order))?;
        link.run(|s| &s.deliver_lines, (w, d, order))?;
        let sum: String = link.one("line of the order", |s| &s.sum_of_order, (w, d, order))?;
        link.run(|s| &s.charge_customer, (sum, w, d, customer))
    }
}
