//! New-Order (2.4): an order of five to fifteen lines. What is counted as throughput.

use super::draw::Draw;
use super::money::{cents, money};
use crate::tpcc::link::{Link, Step};
use std::collections::BTreeSet;

/// One line of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    item: u32,
    supplier: u32,
    quantity: u32,
}

/// What the customer orders.
#[derive(Debug)]
pub(in crate::tpcc) struct NewOrder {
    warehouse: u32,
    district: u32,
    customer: u32,
    lines: Vec<Line>,
    /// Its last item does not exist, and so it is rolled back: one in a hundred.
    mistaken: bool,
    /// Whether the stock counts what was ordered of it.
    counts: bool,
}

impl NewOrder {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        let warehouse = draw.warehouse();
        let (district, customer) = (draw.district(), draw.customer());
        let count = draw.random.usize(5..=15);
        let mut items = BTreeSet::new();
        while items.len() < count {
            items.insert(draw.item());
        }
        let line = |item| Line {
            item,
            // One line in a hundred comes from another warehouse.
            supplier: match draw.percent(1) {
                true => draw.other_warehouse(warehouse),
                false => warehouse,
            },
            quantity: draw.random.u32(1..=10),
        };
        let mut lines: Vec<Line> = items.into_iter().map(line).collect();
        // One order of locks for all: only then do two orders seldom lock each other out.
        lines.sort_by_key(|line| (line.supplier, line.item));
        Self {
            warehouse,
            district,
            customer,
            lines,
            mistaken: draw.percent(1),
            counts: draw.faults.is_none(),
        }
    }

    pub(super) fn run(&self, link: &mut Link) -> Step<()> {
        let (w, d) = (self.warehouse, self.district);
        let _: (String, String, String, String) = link.one(
            "customer",
            |s| &s.customer_and_warehouse,
            (w, d, self.customer),
        )?;
        let (order, _): (u32, String) = link.one("district", |s| &s.district_for_order, (w, d))?;
        link.run(|s| &s.count_order, (order, w, d))?;
        let local = self.lines.iter().all(|line| line.supplier == w);
        let head = (
            order,
            d,
            w,
            self.customer,
            self.lines.len(),
            u8::from(local),
        );
        link.run(|s| &s.insert_order, head)?;
        link.run(|s| &s.insert_new_order, (order, d, w))?;
        for (line, number) in self.lines.iter().zip(1u32..) {
            let last = number as usize == self.lines.len();
            // No item has the number 0.
            let item = if last && self.mistaken { 0 } else { line.item };
            let found: Option<(String, String, String)> = link.first(|s| &s.item, (item,))?;
            let Some((price, ..)) = found else {
                return link.roll_back();
            };
            self.order_line(link, order, number, line, cents(&price))?;
        }
        link.commit()
    }

    fn order_line(
        &self,
        link: &mut Link,
        order: u32,
        number: u32,
        line: &Line,
        price: i64,
    ) -> Step<()> {
        let (w, d) = (self.warehouse, self.district);
        let Line {
            item,
            supplier,
            quantity,
        } = *line;
        let (stock, _, district_info): (i64, String, String) =
            link.one("stock", |s| &s.stock, (d, supplier, item))?;
        let left = match stock - i64::from(quantity) {
            enough if enough >= 10 => enough,
            few => few + 91,
        };
        let remote = u8::from(supplier != w);
        match self.counts {
            true => link.run(|s| &s.take_stock, (left, quantity, remote, supplier, item))?,
            false => link.run(|s| &s.take_stock, (left, supplier, item))?,
        }
        let amount = money(price * i64::from(quantity));
        let values = (
            order,
            d,
            w,
            number,
            item,
            supplier,
            quantity,
            amount,
            district_info,
        );
        link.run(|s| &s.insert_line, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::Scale;
    use crate::tpcc::random::Constants;
    use fastrand::Rng;

    #[test]
    fn orders_are_of_the_specified_shape() {
        let mut draw = Draw {
            random: Rng::with_seed(11),
            constants: Constants::DATA,
            scale: Scale::of(4),
            home: Some(2),
            faults: None,
        };
        let all: Vec<NewOrder> = (0..20_000).map(|_| NewOrder::draw(&mut draw)).collect();
        let lines: Vec<&Line> = all.iter().flat_map(|order| &order.lines).collect();
        let share = |part: usize, whole: usize| part as f64 / whole as f64;
        let remote = lines.iter().filter(|line| line.supplier != 2).count();
        let mistaken = all.iter().filter(|order| order.mistaken).count();
        assert!(
            (0.008..0.012).contains(&share(remote, lines.len())),
            "{remote}"
        );
        assert!(
            (0.007..0.013).contains(&share(mistaken, all.len())),
            "{mistaken}"
        );
        assert!((9.9..10.1).contains(&share(lines.len(), all.len())));
        for order in &all {
            assert!((5..=15).contains(&order.lines.len()) && order.warehouse == 2);
            let keys: BTreeSet<u32> = order.lines.iter().map(|line| line.item).collect();
            assert_eq!(keys.len(), order.lines.len(), "an item twice");
        }
    }
}
