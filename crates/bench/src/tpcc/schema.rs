//! The nine tables, as tpcc-mysql names them and their columns, so that each can use the other's data.

use super::Scale;
use evenkeel_op::{Error, Result};
use evenkeel_server::connect::Session;

/// The tables without secondary indexes. Taxes and discounts have the four digits of the
/// specification (tpcc-mysql keeps two).
const TABLES: [(&str, &str); 9] = [
    (
        "warehouse",
        "w_id SMALLINT NOT NULL, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_street_2 VARCHAR(20), \
         w_city VARCHAR(20), w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4,4), w_ytd DECIMAL(12,2), \
         PRIMARY KEY (w_id)",
    ),
    (
        "district",
        "d_id TINYINT NOT NULL, d_w_id SMALLINT NOT NULL, d_name VARCHAR(10), d_street_1 VARCHAR(20), \
         d_street_2 VARCHAR(20), d_city VARCHAR(20), d_state CHAR(2), d_zip CHAR(9), d_tax DECIMAL(4,4), \
         d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id)",
    ),
    (
        "customer",
        "c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id SMALLINT NOT NULL, c_first VARCHAR(16), \
         c_middle CHAR(2), c_last VARCHAR(16), c_street_1 VARCHAR(20), c_street_2 VARCHAR(20), \
         c_city VARCHAR(20), c_state CHAR(2), c_zip CHAR(9), c_phone CHAR(16), c_since DATETIME, \
         c_credit CHAR(2), c_credit_lim BIGINT, c_discount DECIMAL(4,4), c_balance DECIMAL(12,2), \
         c_ytd_payment DECIMAL(12,2), c_payment_cnt SMALLINT, c_delivery_cnt SMALLINT, c_data TEXT, \
         PRIMARY KEY (c_w_id, c_d_id, c_id)",
    ),
    (
        "history",
        "h_c_id INT, h_c_d_id TINYINT, h_c_w_id SMALLINT, h_d_id TINYINT, h_w_id SMALLINT, \
         h_date DATETIME, h_amount DECIMAL(6,2), h_data VARCHAR(24)",
    ),
    (
        "new_orders",
        "no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id SMALLINT NOT NULL, \
         PRIMARY KEY (no_w_id, no_d_id, no_o_id)",
    ),
    (
        "orders",
        "o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id SMALLINT NOT NULL, o_c_id INT, \
         o_entry_d DATETIME, o_carrier_id TINYINT, o_ol_cnt TINYINT, o_all_local TINYINT, \
         PRIMARY KEY (o_w_id, o_d_id, o_id)",
    ),
    (
        "order_line",
        "ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id SMALLINT NOT NULL, \
         ol_number TINYINT NOT NULL, ol_i_id INT, ol_supply_w_id SMALLINT, ol_delivery_d DATETIME, \
         ol_quantity TINYINT, ol_amount DECIMAL(6,2), ol_dist_info CHAR(24), \
         PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    ),
    (
        "item",
        "i_id INT NOT NULL, i_im_id INT, i_name VARCHAR(24), i_price DECIMAL(5,2), i_data VARCHAR(50), \
         PRIMARY KEY (i_id)",
    ),
    (
        "stock",
        "s_i_id INT NOT NULL, s_w_id SMALLINT NOT NULL, s_quantity SMALLINT, s_dist_01 CHAR(24), \
         s_dist_02 CHAR(24), s_dist_03 CHAR(24), s_dist_04 CHAR(24), s_dist_05 CHAR(24), \
         s_dist_06 CHAR(24), s_dist_07 CHAR(24), s_dist_08 CHAR(24), s_dist_09 CHAR(24), \
         s_dist_10 CHAR(24), s_ytd DECIMAL(8,0), s_order_cnt SMALLINT, s_remote_cnt SMALLINT, \
         s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id)",
    ),
];

/// What is added once the rows are there: those indexes of tpcc-mysql that the transactions need,
/// and those that its foreign keys need. The foreign keys themselves are left out.
const INDEXES: [(&str, &str, &str); 4] = [
    (
        "customer",
        "idx_customer",
        "c_w_id, c_d_id, c_last, c_first",
    ),
    ("orders", "idx_orders", "o_w_id, o_d_id, o_c_id, o_id"),
    ("stock", "fkey_stock_2", "s_i_id"),
    ("order_line", "fkey_order_line_2", "ol_supply_w_id, ol_i_id"),
];

/// Makes the tables that are not there.
pub(super) fn create(session: &mut Session) -> Result<()> {
    for (name, columns) in TABLES {
        session.run(&format!(
            "CREATE TABLE IF NOT EXISTS {name} ({columns}) ENGINE=InnoDB DEFAULT CHARSET=latin1"
        ))?;
    }
    Ok(())
}

/// Returns the missing indexes, as statements.
pub(super) fn missing_indexes(session: &mut Session) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for (table, name, columns) in INDEXES {
        let there = session.value(&format!(
            "SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
             AND TABLE_NAME = '{table}' AND INDEX_NAME = '{name}' LIMIT 1"
        ))?;
        if there.is_none() {
            missing.push(format!("ALTER TABLE {table} ADD INDEX {name} ({columns})"));
        }
    }
    Ok(missing)
}

/// Returns how large the data in the session's schema are, from the last rows' numbers.
///
/// Errors: `Refused` where there are none.
pub(super) fn scale(session: &mut Session) -> Result<Scale> {
    let mut highest = |column: &str, table: &str| -> Result<u32> {
        let value = session.value(&format!("SELECT MAX({column}) FROM {table}"))?;
        let value = value.and_then(|text| text.parse().ok());
        value.ok_or_else(|| {
            Error::refused(format!("there are no rows in {table}"))
                .hint("load the tables first: evenkeel bench tpcc load")
        })
    };
    Ok(Scale {
        warehouses: highest("w_id", "warehouse")?,
        items: highest("i_id", "item")?,
        customers: highest("c_id", "customer")?,
    })
}
