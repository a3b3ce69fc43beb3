//! Exact decimals, as DECIMAL columns hold them.

use std::cmp::Ordering;
use std::fmt;

/// How many digits a decimal may have here. A column may have more: such a one cannot be compared.
pub const DIGITS: u32 = 38;

/// A number of up to 38 digits, so many of them behind the point. 1.5 and 1.50 are equal, and yet two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    digits: i128,
    behind: u32,
}

impl Decimal {
    /// All digits as one integer, and how many of them are behind the point. `None` for more digits
    /// than there may be.
    #[must_use]
    pub fn new(digits: i128, behind: u32) -> Option<Self> {
        let fits = digits.unsigned_abs() < 10_u128.pow(DIGITS) && behind <= DIGITS;
        fits.then_some(Self { digits, behind })
    }

    /// Reads `12.5`, `-12` or `.5`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Self::new(digits, u32::try_from(fraction.len()).ok()?)
    }

    /// The shortest decimal that is this number to whoever reads it as one, which is how servers turn
    /// floating point into decimals. `None` where it has too many digits.
    #[must_use]
    pub fn of(number: f64) -> Option<Self> {
        Self::read(&number.to_string())
    }

    /// The nearest number in floating point.
    #[must_use]
    pub fn real(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Whether it is 0.
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Which of two is worth more.
    #[must_use]
    pub fn compare(self, other: Self) -> Ordering {
        // What is before the point decides, then what is behind it: aligned as a whole they could be too large.
        let parts = |one: Self| {
            let unit = 10_i128.pow(one.behind);
            (one.digits / unit, one.digits % unit)
        };
        let behind = self.behind.max(other.behind);
        let wide = |one: Self, part: i128| part * 10_i128.pow(behind - one.behind);
        let ((a, a_part), (b, b_part)) = (parts(self), parts(other));
        a.cmp(&b)
            .then_with(|| wide(self, a_part).cmp(&wide(other, b_part)))
    }

    pub(crate) fn negative(self) -> Self {
        Self {
            digits: -self.digits,
            behind: self.behind,
        }
    }

    /// All digits, with so many behind the point; none where they are too many.
    fn wide(self, behind: u32) -> Option<i128> {
        let unit = 10_i128.checked_pow(behind - self.behind)?;
        self.digits.checked_mul(unit)
    }

    /// Both as integers, of the same number of digits behind the point.
    fn aligned(self, other: Self) -> Option<(i128, i128, u32)> {
        let behind = self.behind.max(other.behind);
        Some((self.wide(behind)?, other.wide(behind)?, behind))
    }

    pub(crate) fn add(self, other: Self) -> Option<Self> {
        let (a, b, behind) = self.aligned(other)?;
        Self::new(a.checked_add(b)?, behind)
    }

    pub(crate) fn multiply(self, other: Self) -> Option<Self> {
        let digits = self.digits.checked_mul(other.digits)?;
        Self::new(digits, self.behind + other.behind)
    }

    pub(crate) fn remainder(self, other: Self) -> Option<Self> {
        let (a, b, behind) = self.aligned(other)?;
        Self::new(a.checked_rem(b)?, behind)
    }

    /// How often the other goes into this one.
    pub(crate) fn divide(self, other: Self) -> Option<i128> {
        let behind = self.behind.max(other.behind);
        let a = self.wide(behind)?;
        // What is too large beside it goes into it no time.
        other.wide(behind).map_or(Some(0), |b| a.checked_div(b))
    }
}

impl From<i128> for Decimal {
    /// Integers of conditions are those of BIGINT, which have fewer digits.
    fn from(number: i128) -> Self {
        Self {
            digits: number,
            behind: 0,
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.digits < 0 { "-" } else { "" };
        let behind = self.behind as usize;
        let digits = format!("{:0width$}", self.digits.unsigned_abs(), width = behind + 1);
        let (whole, fraction) = digits.split_at(digits.len() - behind);
        let point = if behind > 0 { "." } else { "" };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_length_are_compared_by_what_they_are_worth() {
        let nines = "9".repeat(38);
        let long = [
            format!("-{nines}"),
            "-1.5".into(),
            "-0.5".into(),
            format!("-0.{}1", "0".repeat(36)),
            "0.0".into(),
            format!("0.{}1", "0".repeat(37)),
            "0.5".into(),
            "0.50001".into(),
            "1".into(),
            "10.05".into(),
            nines,
        ];
        let read: Vec<Decimal> = long
            .iter()
            .map(|text| Decimal::read(text).unwrap())
            .collect();
        for (at, a) in read.iter().enumerate() {
            assert_eq!(a.to_string(), long[at]);
            for (other, b) in read.iter().enumerate() {
                assert_eq!(a.compare(*b), at.cmp(&other), "{a} and {b}");
            }
        }
        let same = |a: &str, b: &str| Decimal::read(a).unwrap().compare(Decimal::read(b).unwrap());
        assert_eq!(same("1.5", "1.50000"), Ordering::Equal);
        assert_eq!(same("-0.0", "0"), Ordering::Equal);
        assert_eq!(Decimal::read(&"1".repeat(39)), None);
    }

    #[test]
    fn floating_point_becomes_its_shortest_decimal() {
        assert_eq!(Decimal::of(0.1), Decimal::read("0.1"));
        assert_eq!(Decimal::of(-5.1e3), Decimal::read("-5100"));
        assert_eq!(Decimal::of(1e300), None);
        assert_eq!(
            Decimal::read("0.1").unwrap().real().to_bits(),
            0.1_f64.to_bits()
        );
    }
}
