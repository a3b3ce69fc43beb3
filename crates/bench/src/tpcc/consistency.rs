//! The specification's conditions (3.3.2): a run on tables that break one does not count.

use evenkeel_op::{Result, Run, Unit};
use evenkeel_server::connect::{Session, quote_name};
use serde::Serialize;

/// A condition, and how often it is broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Its number in 3.3.2.
    pub number: u8,
    /// What it demands.
    pub says: &'static str,
    /// How many warehouses, districts, orders or customers break it.
    pub broken: u64,
    /// Whether what was asked for breaks it, so that it says nothing about the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_by_design: bool,
}

impl Condition {
    /// Whether it is broken, and not by design.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken > 0 && !self.is_by_design
    }
}

/// What is demanded, and the query that counts who breaks it. Every sum is made once for all in a
/// derived table and joined by key, so that the cost is a few passes over the tables.
const CONDITIONS: [(u8, &str, &str); 12] = [
    (
        1,
        "a warehouse has taken what its districts have",
        "SELECT COUNT(*) FROM warehouse LEFT JOIN (SELECT d_w_id, SUM(d_ytd) AS ytd FROM district \
         GROUP BY d_w_id) AS d ON d_w_id = w_id WHERE NOT w_ytd <=> ytd",
    ),
    (
        2,
        "a district's next order is one after its last",
        "SELECT COUNT(*) FROM district LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last FROM orders \
         GROUP BY o_w_id, o_d_id) AS o ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN (SELECT no_w_id, \
         no_d_id, MAX(no_o_id) AS last_new FROM new_orders GROUP BY no_w_id, no_d_id) AS n \
         ON no_w_id = d_w_id AND no_d_id = d_id \
         WHERE NOT last <=> d_next_o_id - 1 OR last_new <> d_next_o_id - 1",
    ),
    (
        3,
        "a district's new orders are without gaps",
        "SELECT COUNT(*) FROM (SELECT no_w_id FROM new_orders GROUP BY no_w_id, no_d_id \
         HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)) AS gaps",
    ),
    (
        4,
        "a district has as many order lines as its orders say",
        "SELECT COUNT(*) FROM (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS said FROM orders \
         GROUP BY o_w_id, o_d_id) AS o LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS there \
         FROM order_line GROUP BY ol_w_id, ol_d_id) AS l ON ol_w_id = o_w_id AND ol_d_id = o_d_id \
         WHERE NOT said <=> there",
    ),
    (
        5,
        "an order has no carrier if and only if it is new",
        "SELECT COUNT(*) FROM orders LEFT JOIN new_orders ON no_w_id = o_w_id AND no_d_id = o_d_id \
         AND no_o_id = o_id WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    ),
    (
        6,
        "an order has as many lines as it says",
        "SELECT COUNT(*) FROM orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS there \
         FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l ON ol_w_id = o_w_id \
         AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE NOT there <=> o_ol_cnt",
    ),
    (
        7,
        "a line is undelivered if and only if its order has no carrier",
        "SELECT COUNT(*) FROM order_line LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id \
         AND o_id = ol_o_id WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    ),
    (
        8,
        "a warehouse has taken what its history says",
        "SELECT COUNT(*) FROM warehouse LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS paid FROM history \
         GROUP BY h_w_id) AS h ON h_w_id = w_id WHERE NOT w_ytd <=> paid",
    ),
    (
        9,
        "a district has taken what its history says",
        "SELECT COUNT(*) FROM district LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS paid \
         FROM history GROUP BY h_w_id, h_d_id) AS h ON h_w_id = d_w_id AND h_d_id = d_id \
         WHERE NOT d_ytd <=> paid",
    ),
    (
        10,
        "a customer's balance is what was delivered less what was paid",
        "SELECT COUNT(*) FROM customer LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS owed \
         FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS o ON o_w_id = c_w_id \
         AND o_d_id = c_d_id AND o_c_id = c_id LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, \
         SUM(h_amount) AS paid FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h \
         ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
         WHERE NOT c_balance <=> COALESCE(owed, 0) - COALESCE(paid, 0)",
    ),
    (
        11,
        "a district's orders that are not new are those it began with and those delivered",
        "SELECT COUNT(*) FROM (SELECT o_w_id, o_d_id, COUNT(*) AS orders FROM orders \
         GROUP BY o_w_id, o_d_id) AS o LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS fresh \
         FROM new_orders GROUP BY no_w_id, no_d_id) AS n ON no_w_id = o_w_id AND no_d_id = o_d_id \
         LEFT JOIN (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) + FLOOR(COUNT(*) * 7 / 10) AS gone \
         FROM customer GROUP BY c_w_id, c_d_id) AS c ON c_w_id = o_w_id AND c_d_id = o_d_id \
         WHERE NOT gone <=> orders - COALESCE(fresh, 0)",
    ),
    (
        12,
        "a customer's balance and payments are what was delivered",
        "SELECT COUNT(*) FROM customer LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS owed \
         FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
         WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS o ON o_w_id = c_w_id \
         AND o_d_id = c_d_id AND o_c_id = c_id \
         WHERE NOT c_balance + c_ytd_payment <=> COALESCE(owed, 0)",
    ),
];

/// Checks all twelve on one schema that nobody writes to.
pub fn check(session: &mut Session, database: &str, run: Run<'_>) -> Result<Vec<Condition>> {
    session.run(&format!("USE {}", quote_name(database)))?;
    let all = CONDITIONS.len() as u64;
    run.progress
        .phase("checking conditions", Some(all), Unit::Items);
    let mut found = Vec::new();
    for (number, says, query) in CONDITIONS {
        run.cancel.check()?;
        let broken = session.value(query)?;
        found.push(Condition {
            number,
            says,
            broken: broken.and_then(|text| text.parse().ok()).unwrap_or(0),
            is_by_design: false,
        });
        run.progress.advance(1);
    }
    run.progress.end();
    Ok(found)
}
