//! Is a condition parsed to what it says, printed to the same, and true of the right rows?

use evenkeel_queue_condition::{Decimal, Expression, Operator, Value, evaluate, parse};
use proptest::prelude::*;

fn column(name: &str) -> Option<usize> {
    ["a", "ab", "or", "s"]
        .into_iter()
        .position(|known| known == name)
}

/// a = 3, ab = 20, `or` = NULL, s = 'mail/42'.
fn value<'a>(at: usize) -> Value<'a> {
    match at {
        0 => Value::Number(3),
        1 => Value::Number(20),
        2 => Value::Null,
        _ => Value::Text(b"mail/42".into()),
    }
}

fn number(text: &str) -> Option<i128> {
    let parsed = parse(text, &column).unwrap_or_else(|wrong| panic!("{text}: {wrong}"));
    match evaluate(&parsed, &value) {
        Value::Number(number) => Some(number),
        _ => None,
    }
}

#[test]
fn by_example() {
    let examples = [
        ("a = 3", Some(1)),
        ("`ab` = 20 and a", Some(1)),
        ("1 + 2 * 3 ^ 1", Some(5)),
        ("1 | 2 & 3", Some(3)),
        ("1 << 2 + 1", Some(8)),
        ("7 DIV 2 % 2", Some(1)),
        ("7 mod 4 - -1", Some(4)),
        ("7 DIV 0", None),
        ("7 % 0 IS NULL", Some(1)),
        ("NULL AND 0", Some(0)),
        ("NULL AND 1", None),
        ("NULL OR 1", Some(1)),
        ("1 OR 0 XOR 1 AND 0", Some(1)),
        ("NOT a = 3", Some(0)),
        ("NOT a = 4 AND 1", Some(1)),
        ("`or` IS NULL", Some(1)),
        ("`or` = NULL", None),
        ("`or` IS NOT TRUE", Some(1)),
        ("a <> 4", Some(1)),
        ("a != 3 || ab >= 20", Some(1)),
        ("a IN (1, 2, 3)", Some(1)),
        ("a IN (1, NULL)", None),
        ("a NOT IN (1, 2)", Some(1)),
        ("a BETWEEN 1 AND 3 AND ab", Some(1)),
        ("a NOT BETWEEN 4 AND 5", Some(1)),
        ("s = X'6d61696c2F3432'", Some(1)),
        ("s > x'6D' AND X'' < s AND X'00' <> X'0000'", Some(1)),
        ("s LIKE 'mail/%'", Some(1)),
        ("s NOT LIKE 'mail'", Some(1)),
        ("s LIKE 'mail\\%%'", Some(0)),
        ("s = 'mail/42' && s > 'mail'", Some(1)),
        ("s = 5", None),
        ("pow(2, 10) = 0x400 AND 010 = 8", Some(1)),
        ("~0 = 18446744073709551615", Some(1)),
        ("9223372036854775807 * 4", None),
        ("-a", Some(-3)),
        ("'it''s' = 'it''s'", Some(1)),
    ];
    for (text, expected) in examples {
        assert_eq!(number(text), expected, "{text}");
    }
}

#[test]
fn by_example_with_fractions() {
    let examples = [
        ("1.5 = 1.50 AND .5 < 1 AND a = 3.0", Some(1)),
        ("0.1 + 0.2 = 0.3", Some(1)),
        ("0.1e0 + 0.2e0 = 0.3", Some(0)),
        ("7.5 DIV 2", Some(3)),
        ("5.1e0 DIV 0.1e0", Some(51)),
        ("0.12345678901234567 DIV 1e30", Some(0)),
        ("1e30 DIV 0.12345678901234567", None),
        ("7.5 DIV 0.0", None),
        ("-7.5 % 2 = -1.5", Some(1)),
        ("7.5 % 0 IS NULL", Some(1)),
        ("1e3 = 1000 && 1E+3 > 999.999", Some(1)),
        // Floating point has no place for all the digits of an integer.
        ("9007199254740993 = 9007199254740992.0", Some(0)),
        ("9007199254740993 = 9007199254740992e0", Some(1)),
        (
            "9007199254740993 BETWEEN 9007199254740994 AND 9007199254740994e0",
            Some(0),
        ),
        (
            "9007199254740992 BETWEEN 9007199254740993 AND 9007199254740994e0",
            Some(1),
        ),
        ("0.5 AND 0.1e0", Some(1)),
        ("0.0 IS FALSE AND NOT 0e0", Some(1)),
        ("1e308 * 10 IS NULL", Some(1)),
        (
            "99999999999999999999.5 * 99999999999999999999.5 IS NULL",
            Some(1),
        ),
        ("1.5 | 1 IS NULL", Some(1)),
        ("pow(2.0, 0.5) > 1.41", Some(1)),
        ("a IN (1.5, 3.0) AND a NOT IN (2.99)", Some(1)),
    ];
    for (text, expected) in examples {
        assert_eq!(number(text), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_where_it_is() {
    let wrong = [
        ("", 0),
        ("a =", 3),
        ("a = b", 4),
        ("A = 3", 0),
        ("(a", 2),
        ("a b", 2),
        ("'a", 0),
        ("a = 1x", 4),
        ("s LIKE '%x'", 7),
        ("a # 1", 2),
        ("a IS 5", 5),
        ("a = 1.", 5),
        ("a = 1e", 4),
        ("a = 1.5x", 4),
        ("a = 1e400", 4),
    ];
    for (text, at) in wrong {
        assert_eq!(parse(text, &column).unwrap_err().at, at, "{text}");
    }
    let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
    assert!(parse(&deep, &column).is_err());
    assert!(parse(&"NOT ".repeat(10_000), &column).is_err());
    assert!(parse(&format!("1{}", " + 1".repeat(10_000)), &column).is_err());
}

fn expressions() -> impl Strategy<Value = Expression> {
    let leaf = prop_oneof![
        Just(Expression::Null),
        (-3..4i128).prop_map(Expression::Number),
        "[a-c%_'\\\\]{0,3}".prop_map(Expression::Text),
        prop_oneof![Just("a"), Just("ab"), Just("or")]
            .prop_map(|name| Expression::Column(column(name).unwrap(), name.into())),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        use Operator as O;
        let operator = prop::sample::select(vec![
            O::Or,
            O::Xor,
            O::And,
            O::Equal,
            O::Unequal,
            O::Less,
            O::LessEqual,
            O::Greater,
            O::GreaterEqual,
            O::Add,
            O::Subtract,
            O::Multiply,
            O::Divide,
            O::Modulo,
        ]);
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            4 => (operator, two).prop_map(|(o, (a, b))| Expression::Binary(o, a.into(), b.into())),
            1 => inner.clone().prop_map(|of| Expression::Not(of.into())),
            1 => (inner.clone(), prop::option::of(any::<bool>()))
                .prop_map(|(of, what)| Expression::Is(of.into(), what)),
            1 => (inner.clone(), prop::collection::vec(inner.clone(), 1..3))
                .prop_map(|(of, list)| Expression::In(of.into(), list)),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(of, a, b)| Expression::Between(of.into(), a.into(), b.into())),
            1 => (inner, "[a-c%_'\\\\]{0,3}", any::<bool>())
                .prop_map(|(of, prefix, on)| Expression::Like(of.into(), prefix, on)),
        ]
    })
}

type Simple = (Option<i128>, Option<String>);

/// The same in another way: truths are 0, 1 and 2, with NULL in the middle; texts are numbers of
/// their own kind, far away.
fn simply(of: &Expression) -> Simple {
    match of {
        Expression::Number(number) => (Some(*number), None),
        Expression::Text(text) => (None, Some(text.clone())),
        Expression::Column(at, _) => ([Some(3), Some(20), None][*at], None),
        Expression::Not(of) => reported(2 - truth(of)),
        Expression::Is(of, None) => reported(if simply(of) == (None, None) { 2 } else { 0 }),
        Expression::Is(of, Some(what)) => reported(if truth(of) == i32::from(*what) * 2 {
            2
        } else {
            0
        }),
        Expression::In(of, list) => reported(
            list.iter()
                .map(|one| compared(of, one, &|sign| sign == 0))
                .max()
                .unwrap(),
        ),
        Expression::Between(of, low, high) => reported(
            compared(of, low, &|sign| sign >= 0).min(compared(of, high, &|sign| sign <= 0)),
        ),
        Expression::Like(of, prefix, on) => match simply(of).1 {
            None => reported(1),
            Some(text) if *on => reported(i32::from(text.find(prefix.as_str()) == Some(0)) * 2),
            Some(text) => reported(i32::from(text == *prefix) * 2),
        },
        Expression::Binary(operator, a, b) => simply_two(*operator, a, b),
        _ => (None, None),
    }
}

fn simply_two(operator: Operator, a: &Expression, b: &Expression) -> Simple {
    match operator.sign() {
        "OR" => reported(truth(a).max(truth(b))),
        "AND" => reported(truth(a).min(truth(b))),
        "XOR" => reported(if truth(a) == 1 || truth(b) == 1 {
            1
        } else {
            (truth(a) - truth(b)).abs()
        }),
        "=" => reported(compared(a, b, &|sign| sign == 0)),
        "<>" => reported(compared(a, b, &|sign| sign != 0)),
        "<" => reported(compared(a, b, &|sign| sign < 0)),
        "<=" => reported(compared(a, b, &|sign| sign <= 0)),
        ">" => reported(compared(a, b, &|sign| sign > 0)),
        ">=" => reported(compared(a, b, &|sign| sign >= 0)),
        "+" => computed(a, b, &|a, b| Some(a + b)),
        "-" => computed(a, b, &|a, b| Some(a - b)),
        "*" => computed(a, b, &|a, b| a.checked_mul(b)),
        "DIV" => computed(a, b, &|a, b| (b != 0).then(|| a / b)),
        _ => computed(a, b, &|a, b| (b != 0).then(|| a % b)),
    }
}

fn truth(of: &Expression) -> i32 {
    simply(of)
        .0
        .map_or(1, |number| if number == 0 { 0 } else { 2 })
}

fn reported(truth: i32) -> Simple {
    let known = (truth != 1).then_some(i128::from(truth / 2));
    (known, None)
}

fn compared(a: &Expression, b: &Expression, test: &dyn Fn(i32) -> bool) -> i32 {
    let sign = match (simply(a), simply(b)) {
        ((Some(a), _), (Some(b), _)) => (a - b).signum() as i32,
        ((_, Some(a)), (_, Some(b))) => a.cmp(&b) as i32,
        _ => return 1,
    };
    if test(sign) { 2 } else { 0 }
}

fn computed(
    a: &Expression,
    b: &Expression,
    compute: &dyn Fn(i128, i128) -> Option<i128>,
) -> Simple {
    let both = simply(a).0.zip(simply(b).0);
    let number = both.and_then(|(a, b)| compute(a, b));
    (number.filter(|n| *n >= -(1 << 63) && *n < 1 << 64), None)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn printed_it_is_the_same(of in expressions()) {
        let text = of.to_string();
        let parsed = parse(&text, &column);
        prop_assert_eq!(parsed, Ok(of), "{}", text);
    }

    #[test]
    fn so_are_decimals_and_floating_point(digits in any::<i64>(), behind in 1..20_u32, real in any::<f64>()) {
        let decimal = Decimal::new(digits.into(), behind).unwrap();
        let real = if real.is_finite() { real } else { 1.0 };
        for of in [Expression::Decimal(decimal), Expression::Real(real)] {
            let text = of.to_string();
            prop_assert_eq!(parse(&text, &column), Ok(of), "{}", text);
        }
        let of = Expression::Binary(
            Operator::Less,
            Expression::Decimal(decimal).into(),
            Expression::Real(real).into(),
        );
        let expected = i128::from(decimal.real() < real);
        prop_assert_eq!(evaluate(&of, &value), Value::Number(expected), "{}", of);
    }

    #[test]
    fn it_comes_to_what_a_simple_look_says(of in expressions()) {
        let expected = simply(&of);
        let found = match evaluate(&of, &value) {
            Value::Null => (None, None),
            Value::Number(number) => (Some(number), None),
            Value::Text(text) => (None, Some(String::from_utf8(text.into_owned()).unwrap())),
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(found, expected, "{}", of);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[abe.0-9 ()'`,<>=!&|^~%*+-]{0,40}|.{0,40}") {
        let _ = parse(&text, &column);
    }
}
