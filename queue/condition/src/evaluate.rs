//! From an expression and a row to a value.

use crate::{Decimal, Expression, Operator};
use std::borrow::Cow;
use std::cmp::Ordering;

/// What a column holds, or an expression comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// Nothing is known.
    Null,
    /// An integer; dates and times are integers, too.
    Number(i128),
    /// An exact decimal.
    Decimal(Decimal),
    /// Floating point. What is computed or compared with it is floating point.
    Real(f64),
    /// A text, compared byte by byte.
    Text(Cow<'a, [u8]>),
}

/// Whether a condition is true of a row, whose columns are asked for one by one.
pub fn holds<'a>(condition: &'a Expression, column: &dyn Fn(usize) -> Value<'a>) -> bool {
    truth(&evaluate(condition, column)) == Some(true)
}

/// What an expression comes to for a row. Truths are 1 and 0.
pub fn evaluate<'a>(of: &'a Expression, column: &dyn Fn(usize) -> Value<'a>) -> Value<'a> {
    let value = |of: &'a Expression| evaluate(of, column);
    match of {
        Expression::Null => Value::Null,
        Expression::Number(number) => Value::Number(*number),
        Expression::Decimal(decimal) => Value::Decimal(*decimal),
        Expression::Real(real) => Value::Real(*real),
        Expression::Text(text) => Value::Text(Cow::Borrowed(text.as_bytes())),
        Expression::Bytes(bytes) => Value::Text(Cow::Borrowed(bytes)),
        Expression::Column(at, _) => column(*at),
        Expression::Not(of) => reported(truth(&value(of)).map(|truth| !truth)),
        Expression::Negative(of) => match value(of) {
            Value::Decimal(decimal) => Value::Decimal(decimal.negative()),
            Value::Real(real) => Value::Real(-real),
            other => number(&other, |number| within(number.checked_neg())),
        },
        // As MySQL has it: of 64 bits, without a sign.
        Expression::Inverse(of) => number(&value(of), |number| {
            bits(number).map(|bits| !bits).map(i128::from)
        }),
        Expression::Binary(operator, a, b) => binary(*operator, &value(a), || value(b)),
        Expression::Power(a, b) => match (value(a), value(b)) {
            (Value::Number(a), Value::Number(b)) => u32::try_from(b)
                .ok()
                .and_then(|b| within(a.checked_pow(b)))
                .map_or(Value::Null, Value::Number),
            (a, b) => reals(&a, &b, f64::powf),
        },
        Expression::Is(of, None) => reported(Some(value(of) == Value::Null)),
        Expression::Is(of, truth_asked) => reported(Some(truth(&value(of)) == *truth_asked)),
        Expression::In(of, list) => {
            let left = value(of);
            let found = list
                .iter()
                .map(|one| compare(&left, &value(one)).map(Ordering::is_eq));
            reported(found.fold(Some(false), or))
        }
        Expression::Between(of, low, high) => {
            let mut all = [value(of), value(low), value(high)];
            // As servers have it: where one is floating point, all three are.
            if all.iter().any(|one| matches!(one, Value::Real(_))) {
                for one in &mut all {
                    if let Some(number) = real(one) {
                        *one = Value::Real(number);
                    }
                }
            }
            let above = compare(&all[0], &all[1]).map(Ordering::is_ge);
            let below = compare(&all[0], &all[2]).map(Ordering::is_le);
            reported(and(above, below))
        }
        Expression::Like(of, prefix, continues) => match value(of) {
            Value::Text(text) if *continues => reported(Some(text.starts_with(prefix.as_bytes()))),
            Value::Text(text) => reported(Some(*text == *prefix.as_bytes())),
            _ => Value::Null,
        },
    }
}

fn reported<'a>(truth: Option<bool>) -> Value<'a> {
    truth.map_or(Value::Null, |truth| Value::Number(i128::from(truth)))
}

fn truth(value: &Value<'_>) -> Option<bool> {
    match value {
        Value::Number(number) => Some(*number != 0),
        Value::Decimal(decimal) => Some(!decimal.is_zero()),
        Value::Real(real) => Some(*real != 0.0),
        Value::Null | Value::Text(_) => None,
    }
}

fn and(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    and(a.map(|a| !a), b.map(|b| !b)).map(|neither| !neither)
}

fn compare(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Some(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Real(_), _) | (_, Value::Real(_)) => real(a)?.partial_cmp(&real(b)?),
        _ => Some(decimal(a)?.compare(decimal(b)?)),
    }
}

fn real(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number as f64),
        Value::Decimal(decimal) => Some(decimal.real()),
        Value::Real(real) => Some(*real),
        Value::Null | Value::Text(_) => None,
    }
}

fn decimal(value: &Value<'_>) -> Option<Decimal> {
    match value {
        Value::Number(number) => Some(Decimal::from(*number)),
        Value::Decimal(decimal) => Some(*decimal),
        Value::Real(real) => Decimal::of(*real),
        Value::Null | Value::Text(_) => None,
    }
}

/// Numbers are those of BIGINT, with or without a sign.
fn within(number: Option<i128>) -> Option<i128> {
    number.filter(|number| (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(number))
}

fn bits(number: i128) -> Option<u64> {
    u64::try_from(number)
        .ok()
        .or(i64::try_from(number).ok().map(i64::cast_unsigned))
}

fn number<'a>(value: &Value<'_>, compute: impl Fn(i128) -> Option<i128>) -> Value<'a> {
    numbers(value, value, |number, _| compute(number))
}

fn numbers<'a>(
    a: &Value<'_>,
    b: &Value<'_>,
    compute: impl Fn(i128, i128) -> Option<i128>,
) -> Value<'a> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compute(*a, *b).map_or(Value::Null, Value::Number),
        _ => Value::Null,
    }
}

fn binary<'a>(operator: Operator, a: &Value<'a>, b: impl FnOnce() -> Value<'a>) -> Value<'a> {
    use Operator as O;
    let ordered = |test: fn(Ordering) -> bool, b: &Value<'_>| reported(compare(a, b).map(test));
    // The right side is not looked at when the left one decides.
    match (operator, truth(a)) {
        (O::And, Some(false)) => return reported(Some(false)),
        (O::Or, Some(true)) => return reported(Some(true)),
        _ => {}
    }
    let b = &b();
    let bitwise = |compute: fn(u64, u64) -> u64| {
        numbers(a, b, |a, b| Some(i128::from(compute(bits(a)?, bits(b)?))))
    };
    match operator {
        O::Or => reported(or(truth(a), truth(b))),
        O::And => reported(and(truth(a), truth(b))),
        O::Xor => reported(truth(a).zip(truth(b)).map(|(a, b)| a != b)),
        O::Equal => ordered(Ordering::is_eq, b),
        O::Unequal => ordered(Ordering::is_ne, b),
        O::Less => ordered(Ordering::is_lt, b),
        O::LessEqual => ordered(Ordering::is_le, b),
        O::Greater => ordered(Ordering::is_gt, b),
        O::GreaterEqual => ordered(Ordering::is_ge, b),
        O::BitOr => bitwise(|a, b| a | b),
        O::BitAnd => bitwise(|a, b| a & b),
        O::BitXor => bitwise(|a, b| a ^ b),
        // Shifts by 64 and more leave nothing.
        O::Left => bitwise(|a, b| {
            u32::try_from(b)
                .ok()
                .and_then(|b| a.checked_shl(b))
                .unwrap_or(0)
        }),
        O::Right => bitwise(|a, b| {
            u32::try_from(b)
                .ok()
                .and_then(|b| a.checked_shr(b))
                .unwrap_or(0)
        }),
        O::Add => computed(a, b, i128::checked_add, Decimal::add, |a, b| a + b),
        O::Subtract => computed(
            a,
            b,
            i128::checked_sub,
            |a, b| a.add(b.negative()),
            |a, b| a - b,
        ),
        O::Multiply => computed(a, b, i128::checked_mul, Decimal::multiply, |a, b| a * b),
        // An integer, whatever is divided; servers divide floating point as decimals, too.
        O::Divide => decimal(a)
            .zip(decimal(b))
            .and_then(|(a, b)| within(a.divide(b)))
            .map_or(Value::Null, Value::Number),
        O::Modulo => computed(a, b, i128::checked_rem, Decimal::remainder, |a, b| a % b),
    }
}

/// Floating point where one side is that, else decimals where one side is that, else integers.
fn computed<'a>(
    a: &Value<'_>,
    b: &Value<'_>,
    integers: fn(i128, i128) -> Option<i128>,
    decimals: fn(Decimal, Decimal) -> Option<Decimal>,
    floats: fn(f64, f64) -> f64,
) -> Value<'a> {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            within(integers(*a, *b)).map_or(Value::Null, Value::Number)
        }
        (Value::Real(_), _) | (_, Value::Real(_)) => reals(a, b, floats),
        _ => decimal(a)
            .zip(decimal(b))
            .and_then(|(a, b)| decimals(a, b))
            .map_or(Value::Null, Value::Decimal),
    }
}

/// What comes to infinity or to no number is NULL.
fn reals<'a>(a: &Value<'_>, b: &Value<'_>, compute: fn(f64, f64) -> f64) -> Value<'a> {
    real(a)
        .zip(real(b))
        .map(|(a, b)| compute(a, b))
        .filter(|number| number.is_finite())
        .map_or(Value::Null, Value::Real)
}
