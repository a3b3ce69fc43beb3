//! tpcc-mysql's known faults as a set, for who has to compare with its old figures.

use super::TransactionKind;
use evenkeel_op::Result;
use evenkeel_server::connect::Session;

/// What it is called in reports.
pub const TPCC_MYSQL: &str = "tpcc-mysql";
/// The condition that it breaks: a payment does not count on the customer (`c_ytd_payment`).
pub(super) const BROKEN: u8 = 12;
/// How often it retries a transaction within one response time.
pub(super) const RETRIES: u32 = 2000;
/// The share of customers with bad credit above which tables are its own, in percent: it gives bad credit to
/// half of them, the specification to a tenth.
const OWN_PERCENT: f64 = 30.0;

/// The faults, as transactions need to know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Faults {
    /// Whether customers with good credit have to be taken for bad ones, until half of all are bad.
    pub(super) more_bad_credit: bool,
}

impl Faults {
    /// Looks at the tables in the session's schema.
    pub(super) fn of(session: &mut Session) -> Result<Self> {
        let share = session.value(
            "SELECT 100 * AVG(c_credit = 'BC') FROM customer WHERE c_w_id = 1 AND c_d_id = 1",
        )?;
        let share: f64 = share.and_then(|text| text.parse().ok()).unwrap_or(0.0);
        Ok(Self {
            more_bad_credit: share < OWN_PERCENT,
        })
    }

    /// Whether a customer whose credit may be good is taken for a bad one. A tenth is bad: four ninths of the
    /// others make it half.
    pub(super) fn takes_for_bad(self, random: &mut fastrand::Rng) -> bool {
        self.more_bad_credit && random.u32(0..9) < 4
    }

    /// The limit in seconds that it compares with: its numbers are meant as seconds, but the time is in
    /// milliseconds.
    pub(super) fn limit_s(kind: TransactionKind) -> f64 {
        kind.limit_s() / 1000.0
    }

    /// What it does otherwise than the specification.
    pub(super) fn reported(self) -> Vec<String> {
        let mut reported = vec![
            format!("WITH THE FAULTS OF {TPCC_MYSQL}, to be compared with its figures only"),
            "response times are held against limits of as many milliseconds as the specification has seconds"
                .to_owned(),
            format!(
                "payments do not count on the customer, so condition {BROKEN} is not met by design of \
                 {TPCC_MYSQL}; orders do not count on the stock"
            ),
            format!(
                "a transaction is retried up to {RETRIES} times within its response time"
            ),
            "the constants of skewed numbers are independent of those of the data (tpcc-mysql \
             itself uses uninitialized memory)"
                .to_owned(),
        ];
        if self.more_bad_credit {
            reported.push(
                "half of the payments are by customers with bad credit: the tables' tenth, and others taken for it"
                    .to_owned(),
            );
        }
        reported
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_milliseconds() {
        let limits = TransactionKind::ALL.map(Faults::limit_s);
        assert_eq!(limits, [0.005, 0.005, 0.005, 0.08, 0.02]);
    }

    #[test]
    fn half_of_all_payments_are_by_bad_customers() {
        let mut random = fastrand::Rng::with_seed(11);
        let faults = |more_bad_credit| Faults { more_bad_credit };
        let bad = (0..20_000)
            .filter(|_| random.u32(0..10) == 0 || faults(true).takes_for_bad(&mut random))
            .count();
        assert!((9_600..10_400).contains(&bad), "{bad}");
        assert!(!faults(false).takes_for_bad(&mut random));
        assert_eq!(
            faults(true).reported().len(),
            faults(false).reported().len() + 1
        );
    }
}
