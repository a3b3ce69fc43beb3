//! The five transactions. Each is drawn once, and run again as it is after a deadlock.

mod delivery;
mod draw;
mod money;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

pub(super) use draw::Draw;

use super::TransactionKind;
use super::link::{Link, Step};

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
    pub(super) fn draw(kind: TransactionKind, draw: &mut Draw) -> Self {
        match kind {
            TransactionKind::NewOrder => Self::NewOrder(new_order::NewOrder::draw(draw)),
            TransactionKind::Payment => Self::Payment(payment::Payment::draw(draw)),
            TransactionKind::OrderStatus => {
                Self::OrderStatus(order_status::OrderStatus::draw(draw))
            }
            TransactionKind::Delivery => Self::Delivery(delivery::Delivery::draw(draw)),
            TransactionKind::StockLevel => Self::StockLevel(stock_level::StockLevel::draw(draw)),
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
