//! Threads that read ahead of those who check, hash and compress: several wait for the device at a time.
//!
//! They do nothing but wait, so there are as many as a device rewards, whatever the processors are.

use super::buffers::Buffers;
use super::give_way;
use super::pieces::{self, Filled, Piece};
use super::{Open, Panics, Shop};
use crossbeam_channel::{Receiver, Sender, bounded};
use evenkeel_op::Result;
use std::sync::Arc;

/// How many read at a time: a device answers scattered requests faster when it has many.
pub(super) const READERS: usize = 16;
/// Bytes that wait in the device's queue at most. A commit of the server waits behind them, and so few are enough
/// for a device to read as fast as it can.
pub(super) const IN_DEVICE: u64 = 2 << 20;

/// A piece that somebody is to read.
pub(super) struct Order {
    open: Arc<Open>,
    piece: Piece,
    done: Sender<Result<Filled>>,
}

/// Returns an order, and where what was read will come from: once, or never when the readers have ended.
pub(super) fn order(open: &Arc<Open>, piece: Piece) -> (Order, Receiver<Result<Filled>>) {
    let (done, filled) = bounded(1);
    let open = Arc::clone(open);
    (Order { open, piece, done }, filled)
}

impl Order {
    /// Returns how many bytes it is about.
    pub(super) fn length(&self) -> u64 {
        pieces::length(&self.piece, self.open.block_size)
    }
}

/// Reads what is ordered until nobody orders any more. What cannot be read is told to whoever waits for it.
pub(super) fn read(orders: &Receiver<Order>, buffers: &Buffers, shop: &Shop<'_>) -> Result<()> {
    give_way::thread();
    let _panics = Panics(&shop.failed);
    while let Ok(order) = orders.recv() {
        // What nobody waits for any more need not be read.
        if shop.failed.is_cancelled() {
            continue;
        }
        let (open, length) = (&order.open, order.length());
        if shop
            .device
            .order(length, &shop.failed, shop.run.cancel)
            .is_err()
        {
            continue;
        }
        let pace = |bytes| shop.pace(bytes);
        let filled = pieces::fill(
            &open.source,
            &order.piece,
            open.block_size,
            (buffers, &pace),
        );
        shop.device.stored(length);
        // Whoever no longer listens has failed; that error is reported.
        let _ = order.done.send(filled);
    }
    Ok(())
}
