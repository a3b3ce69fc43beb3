//! A workload after TPC-C, revision 5.11: five kinds of transactions of a wholesale supplier.
//!
//! Its results are no audited tpmC. What differs from the specification is said with each result.
//!
//! | file | what |
//! |---|---|
//! | `random` | the specification's skewed numbers, names, strings |
//! | `schema` | the nine tables, as tpcc-mysql has them |
//! | `rows`, `load` | what they begin with, loaded in parallel, and on after an interruption |
//! | `consistency` | the specification's twelve conditions |
//! | `link` | a connection with its prepared statements |
//! | `transactions` | one file each |
//! | `like` | the faults of tpcc-mysql |
//! | `terminal` | a session that runs them in the specification's mix |
//! | `stall` | the longest time in which nobody could commit |
//! | `measure`, `report`, `plot`, `page` | a run, and what it came to |

mod consistency;
mod like;
mod link;
mod load;
mod measure;
mod page;
mod plot;
mod random;
mod report;
mod rows;
mod schema;
mod stall;
mod terminal;
mod transactions;

pub use consistency::{Condition, check};
pub use like::TPCC_MYSQL;
pub use load::{LoadReport, LoadRequest, load};
pub use measure::{Keying, TpccRequest, measure};
pub use page::page;
pub use plot::plot;
pub use report::{KindReport, SampleReport, TpccReport};

use evenkeel_op::{Error, Result, Run};
use serde::Serialize;

/// Districts of a warehouse.
const DISTRICTS: u32 = 10;
/// Items, and so stock rows of a warehouse, in the specification.
pub const ITEMS: u32 = 100_000;
/// Customers of a district, and orders that it begins with, in the specification.
pub const CUSTOMERS: u32 = 3000;

/// How large the tables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Scale {
    /// Warehouses: about 90 MB each.
    pub warehouses: u32,
    /// Items; [`ITEMS`] but for a look at whether all works.
    pub items: u32,
    /// Customers of a district; [`CUSTOMERS`] but for a look at whether all works.
    pub customers: u32,
}

impl Scale {
    /// The specification's sizes for so many warehouses.
    #[must_use]
    pub fn of(warehouses: u32) -> Self {
        Self {
            warehouses,
            items: ITEMS,
            customers: CUSTOMERS,
        }
    }

    /// Returns whether these are the specification's sizes.
    #[must_use]
    pub fn is_specified(self) -> bool {
        self == Self::of(self.warehouses)
    }

    fn check(self) -> Result<()> {
        // The tables' SMALLINT; fewer items than an order may have lines have no distinct ones.
        let sound = (1..=32_767).contains(&self.warehouses)
            && (100..=ITEMS).contains(&self.items)
            && (10..=CUSTOMERS).contains(&self.customers);
        match sound {
            true => Ok(()),
            false => Err(Error::usage(
                "there are 1 to 32767 warehouses, 100 to 100000 items, 10 to 3000 customers",
            )),
        }
    }
}

/// The kinds of transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TransactionKind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl TransactionKind {
    /// All, in the specification's order, which is also that of the reports.
    const ALL: [Self; 5] = [
        Self::NewOrder,
        Self::Payment,
        Self::OrderStatus,
        Self::Delivery,
        Self::StockLevel,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::NewOrder => "New-Order",
            Self::Payment => "Payment",
            Self::OrderStatus => "Order-Status",
            Self::Delivery => "Delivery",
            Self::StockLevel => "Stock-Level",
        }
    }

    /// Whether it changes rows.
    fn writes(self) -> bool {
        !matches!(self, Self::OrderStatus | Self::StockLevel)
    }

    /// How many of 23 cards of the deck it has (5.2.4.2).
    fn cards(self) -> usize {
        match self {
            Self::NewOrder | Self::Payment => 10,
            _ => 1,
        }
    }

    /// The share of all transactions that it has to have at least, in percent (5.2.3); New-Order is
    /// the rest.
    fn least_percent(self) -> Option<f64> {
        match self {
            Self::NewOrder => None,
            Self::Payment => Some(43.0),
            _ => Some(4.0),
        }
    }

    /// What ninety percent have to keep below, in seconds (5.2.5.7); a delivery is done at once
    /// here, so it has the time of the deferred part.
    fn limit_s(self) -> f64 {
        match self {
            Self::NewOrder | Self::Payment | Self::OrderStatus => 5.0,
            Self::Delivery => 80.0,
            Self::StockLevel => 20.0,
        }
    }

    /// The time at the keyboard before it, in seconds (5.2.5.2).
    fn keying_s(self) -> f64 {
        match self {
            Self::NewOrder => 18.0,
            Self::Payment => 3.0,
            _ => 2.0,
        }
    }

    /// The mean time for thinking after it, in seconds (5.2.5.4).
    fn thinking_s(self) -> f64 {
        match self {
            Self::NewOrder | Self::Payment => 12.0,
            Self::OrderStatus => 10.0,
            _ => 5.0,
        }
    }
}
