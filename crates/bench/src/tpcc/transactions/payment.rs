//! Payment (2.5): a customer pays, and the warehouse and the district count it.

use super::draw::{Draw, Named};
use super::money::money;
use crate::tpcc::link::{Link, Step};

/// How much of a bad customer's data is kept.
const DATA_MAX: usize = 500;

/// Who pays how much where.
#[derive(Debug)]
pub(in crate::tpcc) struct Payment {
    warehouse: u32,
    district: u32,
    customer: Named,
    /// Where the customer is at home: elsewhere in 15 of a hundred payments.
    customer_warehouse: u32,
    customer_district: u32,
    cents: i64,
    /// Whether it counts on the customer.
    counts: bool,
    is_taken_for_bad: bool,
}

impl Payment {
    pub(super) fn draw(draw: &mut Draw) -> Self {
        let (warehouse, district) = (draw.warehouse(), draw.district());
        let (customer_warehouse, customer_district) = match draw.percent(85) {
            true => (warehouse, district),
            false => (draw.other_warehouse(warehouse), draw.district()),
        };
        let is_taken_for_bad = draw
            .faults
            .is_some_and(|faults| faults.takes_for_bad(&mut draw.random));
        Self {
            warehouse,
            district,
            customer: draw.named(),
            customer_warehouse,
            customer_district,
            cents: draw.random.i64(100..=500_000),
            counts: draw.faults.is_none(),
            is_taken_for_bad,
        }
    }

    pub(super) fn run(&self, link: &mut Link) -> Step<()> {
        type Address = (String, String, String, String, String, String);
        let (w, d, amount) = (self.warehouse, self.district, money(self.cents));
        link.run(|s| &s.pay_warehouse, (&amount, w))?;
        let warehouse: Address = link.one("warehouse", |s| &s.warehouse, (w,))?;
        link.run(|s| &s.pay_district, (&amount, w, d))?;
        let district: Address = link.one("district", |s| &s.district, (w, d))?;
        let (cw, cd) = (self.customer_warehouse, self.customer_district);
        let customer = self.customer.find(link, cw, cd)?;
        let key = (cw, cd, customer);
        if self.has_bad_credit(link, key)? || self.is_taken_for_bad {
            let old: String = link.one("customer", |s| &s.customer_data, key)?;
            let mut data = format!("{customer} {cd} {cw} {d} {w} {amount} | {old}");
            data.truncate(DATA_MAX);
            self.pay_bad(link, &amount, data, key)?;
        } else {
            self.pay_good(link, &amount, key)?;
        }
        let data = format!("{:.10}    {:.10}", warehouse.5, district.5);
        link.run(
            |s| &s.insert_history,
            (cd, cw, customer, d, w, amount, data),
        )?;
        link.commit()
    }

    fn pay_bad(
        &self,
        link: &mut Link,
        amount: &str,
        data: String,
        (w, d, c): (u32, u32, u32),
    ) -> Step<()> {
        match self.counts {
            true => link.run(|s| &s.pay_bad_customer, (amount, amount, data, w, d, c)),
            false => link.run(|s| &s.pay_bad_customer, (amount, data, w, d, c)),
        }
    }

    fn pay_good(&self, link: &mut Link, amount: &str, (w, d, c): (u32, u32, u32)) -> Step<()> {
        match self.counts {
            true => link.run(|s| &s.pay_customer, (amount, amount, w, d, c)),
            false => link.run(|s| &s.pay_customer, (amount, w, d, c)),
        }
    }

    fn has_bad_credit(&self, link: &mut Link, key: (u32, u32, u32)) -> Step<bool> {
        type Customer = (
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            String,
            i64,
            String,
            String,
        );
        let customer: Customer = link.one("customer", |s| &s.customer_to_pay, key)?;
        Ok(customer.8 == "BC")
    }
}
