//! Stock-Level (2.8): how many of the items last ordered in a district run low.

use super::draw::Draw;
use crate::tpcc::link::{Link, Step};

/// How many orders are looked back on.
const ORDERS: u32 = 20;

/// Where, and what is low.
#[derive(Debug)]
pub(in crate::tpcc) struct StockLevel {
    warehouse: u32,
    district: u32,
    threshold: u32,
}

impl StockLevel {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        Self {
            warehouse: draw.warehouse(),
            district: draw.district(),
            threshold: draw.random.u32(10..=20),
        }
    }

    pub(super) fn run(&self, link: &mut Link) -> Step<()> {
        let (w, d) = (self.warehouse, self.district);
        let next: u32 = link.one("district", |s| &s.next_order, (w, d))?;
        let from = next.saturating_sub(ORDERS);
        let _: u64 = link.one(
            "count",
            |s| &s.low_stock,
            (w, d, from, next, w, self.threshold),
        )?;
        link.commit()
    }
}
