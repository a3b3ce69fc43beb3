//! Order-Status (2.6): a customer's last order.

use super::draw::{Draw, Named};
use crate::tpcc::link::{Link, Step};
use evenkeel_server::connect::mysql::Value;

/// Whose order.
#[derive(Debug)]
pub(in crate::tpcc) struct OrderStatus {
    warehouse: u32,
    district: u32,
    customer: Named,
}

impl OrderStatus {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        Self {
            warehouse: draw.warehouse(),
            district: draw.district(),
            customer: draw.named(),
        }
    }

    pub(super) fn run(&self, link: &mut Link) -> Step<()> {
        let (w, d) = (self.warehouse, self.district);
        let customer = self.customer.find(link, w, d)?;
        let key = (w, d, customer);
        let _: (String, String, String, String) =
            link.one("customer", |s| &s.customer_status, key)?;
        let last: Option<(u32, Value, Value)> = link.first(|s| &s.last_order, key)?;
        if let Some((order, ..)) = last {
            let _: Vec<(u32, u32, u32, String, Value)> =
                link.all(|s| &s.lines_of_order, (w, d, order))?;
        }
        link.commit()
    }
}
