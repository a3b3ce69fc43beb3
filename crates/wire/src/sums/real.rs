//! Floating-point numbers as servers print them: with the fewest digits that mean the same number. Of a FLOAT they
//! print six.

use std::fmt::Write as _;

/// With more digits before the point and none behind it, or more zeros behind it, servers write an exponent.
const PLAIN: i32 = 15;
/// With fewer digits, no other number is as near.
const TIES: usize = 15;
/// Digits of a FLOAT.
const FLOAT_DIGITS: usize = 6;
/// Numbers of columns have a fixed count of digits after the point up to this.
pub(super) const FIXED: u8 = 30;

/// Appends a DOUBLE.
pub(super) fn double(value: f64, decimals: u8, out: &mut String) {
    match decimals <= FIXED {
        true => fixed(value, decimals, out),
        false => shortest(&digits(value), out),
    }
}

/// Returns the fewest digits, with an exponent.
fn digits(value: f64) -> String {
    let text = format!("{value:e}");
    let count = text.bytes().take_while(|byte| *byte != b'e');
    let count = count.filter(u8::is_ascii_digit).count();
    // Of two numbers that are as near, servers print the one with an even last digit.
    match count {
        TIES.. => format!("{value:.*e}", count - 1),
        _ => text,
    }
}

/// Appends a FLOAT.
pub(super) fn float(value: f32, decimals: u8, out: &mut String) {
    let value = f64::from(value);
    match decimals <= FIXED {
        true => fixed(value, decimals, out),
        false => shortest(&format!("{value:.*e}", FLOAT_DIGITS - 1), out),
    }
}

fn fixed(value: f64, decimals: u8, out: &mut String) {
    let _ = write!(out, "{value:.*}", usize::from(decimals));
}

/// Appends a number that is given as one digit, a point, more digits, and an exponent.
fn shortest(scientific: &str, out: &mut String) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let mut digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    digits.truncate(digits.trim_end_matches('0').len().max(1));
    // How many of them stand before the point.
    let before = exponent.parse::<i32>().unwrap_or(0) + 1;
    out.push_str(sign);
    if digits == "0" {
        out.push('0');
    } else if before <= -PLAIN || before > PLAIN && digits.len() as i32 <= before {
        let (first, rest) = digits.split_at(1);
        out.push_str(first);
        if !rest.is_empty() {
            out.push('.');
            out.push_str(rest);
        }
        let _ = write!(out, "e{}", before - 1);
    } else if before <= 0 {
        out.push_str("0.");
        out.extend(std::iter::repeat_n('0', before.unsigned_abs() as usize));
        out.push_str(&digits);
    } else {
        let before = before as usize;
        if digits.len() <= before {
            out.push_str(&digits);
            out.extend(std::iter::repeat_n('0', before - digits.len()));
        } else {
            out.push_str(&digits[..before]);
            out.push('.');
            out.push_str(&digits[before..]);
        }
    }
}
