//! A connection with its prepared statements.

use evenkeel_op::Result;
use evenkeel_server::connect::mysql::prelude::{FromRow, Queryable};
use evenkeel_server::connect::mysql::{self, Params, Statement};
use evenkeel_server::connect::{Session, query_error, quote_name};
use evenkeel_server::options::ConnectOptions;

/// Why a transaction did not end as it should.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server or the connection.
    Server(mysql::Error),
    /// A row that has to be there is not.
    Missing(&'static str),
}

impl From<mysql::Error> for Trouble {
    fn from(error: mysql::Error) -> Self {
        Self::Server(error)
    }
}

impl Trouble {
    /// Returns whether the transaction may simply be retried: a deadlock, a lock not had in time,
    /// a row changed since this transaction's snapshot (newer MariaDB).
    pub(super) fn is_conflict(&self) -> bool {
        const CONFLICTS: [u16; 3] = [1213, 1205, 1020];
        matches!(self, Self::Server(mysql::Error::MySqlError(e)) if CONFLICTS.contains(&e.code))
    }

    /// Returns whether the session is gone.
    pub(super) fn is_loss(&self) -> bool {
        match self {
            // Shutting down, killed by an administrator, closed for lack of packets in time.
            Self::Server(mysql::Error::MySqlError(e)) => {
                matches!(e.code, 1053 | 1317 | 1927 | 4031)
            }
            Self::Server(_) => true,
            Self::Missing(_) => false,
        }
    }

    /// Returns what to call it in a list of failures.
    pub(super) fn reported(&self) -> String {
        match self {
            Self::Server(mysql::Error::MySqlError(e)) => format!("ERROR {}: {}", e.code, e.message),
            Self::Server(other) => other.to_string(),
            Self::Missing(what) => format!("there is no {what}"),
        }
    }
}

/// What a transaction's step comes to.
pub(super) type Step<T> = std::result::Result<T, Trouble>;

macro_rules! statements {
    ($($name:ident: $sql:expr $(, like $like:expr)?;)*) => {
        /// All statements of all transactions.
        pub(super) struct Statements {
            $(pub(super) $name: Statement,)*
        }

        impl Statements {
            /// The client library keeps 32 of a connection and closes others: only those that are
            /// needed are prepared.
            fn prepare(session: &mut Session, like_tpcc_mysql: bool) -> Result<Self> {
                let mut prepared = |sql: &str, like: Option<&str>| {
                    let sql = like.filter(|_| like_tpcc_mysql).unwrap_or(sql);
                    session.raw().prep(sql).map_err(|e| query_error(&e, sql))
                };
                Ok(Self {
                    $($name: prepared($sql, None $(.or(Some($like)))?)?,)*
                })
            }
        }
    };
}

statements! {
    customer_and_warehouse: "SELECT c_discount, c_last, c_credit, w_tax FROM customer, warehouse \
        WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?";
    district_for_order: "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE";
    count_order: "UPDATE district SET d_next_o_id = ? + 1 WHERE d_w_id = ? AND d_id = ?";
    insert_order: "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
        VALUES (?, ?, ?, ?, NOW(), ?, ?)";
    insert_new_order: "INSERT INTO new_orders (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)";
    item: "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?";
    stock: "SELECT s_quantity, s_data, ELT(?, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
        s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10) FROM stock \
        WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE";
    take_stock: "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
        s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?",
        like "UPDATE stock SET s_quantity = ? WHERE s_w_id = ? AND s_i_id = ?";
    insert_line: "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
        ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    pay_warehouse: "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?";
    warehouse: "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = ?";
    pay_district: "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?";
    district: "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district \
        WHERE d_w_id = ? AND d_id = ?";
    customers_by_name: "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? \
        ORDER BY c_first";
    customer_to_pay: "SELECT c_first, c_middle, c_last, c_street_1, c_city, c_state, c_zip, c_phone, \
        c_credit, c_credit_lim, c_discount, c_balance FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE";
    customer_data: "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    pay_bad_customer: "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
        c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        like "UPDATE customer SET c_balance = c_balance - ?, c_data = ? \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    pay_customer: "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
        c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        like "UPDATE customer SET c_balance = c_balance - ? \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    insert_history: "INSERT INTO history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, \
        h_data) VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)";
    customer_status: "SELECT c_balance, c_first, c_middle, c_last FROM customer \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    last_order: "SELECT o_id, o_carrier_id, o_entry_d FROM orders \
        WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1";
    lines_of_order: "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
        FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    oldest_new_order: "SELECT no_o_id FROM new_orders WHERE no_w_id = ? AND no_d_id = ? \
        ORDER BY no_o_id LIMIT 1 FOR UPDATE";
    delete_new_order: "DELETE FROM new_orders WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?";
    customer_of_order: "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    carry_order: "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?";
    deliver_lines: "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? \
        AND ol_o_id = ?";
    sum_of_order: "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?";
    charge_customer: "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
        WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?";
    next_order: "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?";
    low_stock: "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_i_id = ol_i_id \
        WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_w_id = ? \
        AND s_quantity < ?";
}

/// Which statement.
type Pick = fn(&Statements) -> &Statement;

/// One session with its statements. Its transactions begin by themselves.
pub(super) struct Link {
    session: Session,
    statements: Statements,
    /// How many statements were sent, COMMIT and ROLLBACK among them.
    pub(super) sent: u64,
}

impl Link {
    /// Connects and prepares all statements; with the faults of tpcc-mysql those that it has.
    pub(super) fn open(
        options: &ConnectOptions,
        database: &str,
        like_tpcc_mysql: bool,
    ) -> Result<Self> {
        let mut session = Session::open(options)?;
        session.run(&format!("USE {}", quote_name(database)))?;
        session.run("SET autocommit = 0")?;
        let statements = Statements::prepare(&mut session, like_tpcc_mysql)?;
        Ok(Self {
            session,
            statements,
            sent: 0,
        })
    }

    /// Runs a statement without rows.
    pub(super) fn run(&mut self, pick: Pick, values: impl Into<Params>) -> Step<()> {
        self.sent += 1;
        let statement = pick(&self.statements);
        Ok(self.session.raw().exec_drop(statement, values)?)
    }

    /// Returns the first row.
    pub(super) fn first<R: FromRow>(
        &mut self,
        pick: Pick,
        values: impl Into<Params>,
    ) -> Step<Option<R>> {
        self.sent += 1;
        let statement = pick(&self.statements);
        Ok(self.session.raw().exec_first(statement, values)?)
    }

    /// Returns the row that has to be there.
    pub(super) fn one<R: FromRow>(
        &mut self,
        what: &'static str,
        pick: Pick,
        values: impl Into<Params>,
    ) -> Step<R> {
        self.first(pick, values)?.ok_or(Trouble::Missing(what))
    }

    /// Returns all rows.
    pub(super) fn all<R: FromRow>(
        &mut self,
        pick: Pick,
        values: impl Into<Params>,
    ) -> Step<Vec<R>> {
        self.sent += 1;
        let statement = pick(&self.statements);
        Ok(self.session.raw().exec(statement, values)?)
    }

    pub(super) fn commit(&mut self) -> Step<()> {
        self.sent += 1;
        Ok(self.session.raw().query_drop("COMMIT")?)
    }

    pub(super) fn roll_back(&mut self) -> Step<()> {
        self.sent += 1;
        Ok(self.session.raw().query_drop("ROLLBACK")?)
    }
}
