use super::*;
use proptest::prelude::*;

/// A value, with its column.
#[derive(Debug, Clone)]
enum Value {
    Null,
    Number(i64),
    Unsigned(u64),
    Filled(u32),
    Real(f64),
    Text(Vec<u8>),
    /// Days, microseconds of a day, and whether it is negative.
    Time(u32, u64, bool),
    /// Year, month, day, microseconds of the day, digits after the point.
    Moment(u16, u8, u8, u64, u8),
}

const DAY_US: u64 = 86_400_000_000;

impl Value {
    fn kind(&self) -> TokenKind {
        let (number, is_unsigned, decimals, filled_to) = match self {
            Self::Null | Self::Text(_) => (253, false, 0, 0),
            Self::Number(_) => (8, false, 0, 0),
            Self::Unsigned(_) => (8, true, 0, 0),
            Self::Filled(_) => (3, true, 0, 10),
            Self::Real(_) => (5, false, 31, 0),
            Self::Time(..) => (11, false, 6, 0),
            Self::Moment(.., decimals) => (12, false, *decimals, 0),
        };
        TokenKind {
            number,
            is_unsigned,
            decimals,
            filled_to,
        }
    }

    fn text(&self) -> Option<Vec<u8>> {
        let clock = |us: &u64| {
            let seconds = us / 1_000_000;
            (
                seconds / 3600,
                seconds / 60 % 60,
                seconds % 60,
                us % 1_000_000,
            )
        };
        Some(match self {
            Self::Null => return None,
            Self::Number(number) => number.to_string().into_bytes(),
            Self::Unsigned(number) => number.to_string().into_bytes(),
            Self::Filled(number) => format!("{number:010}").into_bytes(),
            Self::Real(number) => {
                let mut text = String::new();
                real::double(*number, 31, &mut text);
                text.into_bytes()
            }
            Self::Text(text) => text.clone(),
            Self::Time(days, us, is_negative) => {
                let (hour, minute, second, us) = clock(us);
                let hours = u64::from(*days) * 24 + hour;
                let sign = if *is_negative { "-" } else { "" };
                format!("{sign}{hours:02}:{minute:02}:{second:02}.{us:06}").into_bytes()
            }
            Self::Moment(year, month, day, us, decimals) => {
                let (hour, minute, second, us) = clock(us);
                let mut text =
                    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}");
                if *decimals > 0 {
                    text += &format!(".{us:06}")[..1 + usize::from(*decimals)];
                }
                text.into_bytes()
            }
        })
    }

    /// As servers send it: with as much of a time as is not zero.
    fn binary(&self) -> Vec<u8> {
        let clock = |us: u64| {
            let seconds = us / 1_000_000;
            let mut bytes = vec![
                (seconds / 3600) as u8,
                (seconds / 60 % 60) as u8,
                (seconds % 60) as u8,
            ];
            if !us.is_multiple_of(1_000_000) {
                bytes.extend_from_slice(&((us % 1_000_000) as u32).to_le_bytes());
            }
            bytes
        };
        let counted = |bytes: Vec<u8>| [&[bytes.len() as u8], &bytes[..]].concat();
        match self {
            Self::Null => Vec::new(),
            Self::Number(number) => number.to_le_bytes().to_vec(),
            Self::Unsigned(number) => number.to_le_bytes().to_vec(),
            Self::Filled(number) => number.to_le_bytes().to_vec(),
            Self::Real(number) => number.to_le_bytes().to_vec(),
            Self::Text(text) => cell(text),
            Self::Time(0, 0, _) => vec![0],
            Self::Time(days, us, is_negative) => {
                let head = [&[u8::from(*is_negative)], &days.to_le_bytes()[..]].concat();
                counted([head, clock(*us)].concat())
            }
            Self::Moment(0, 0, 0, 0, _) => vec![0],
            Self::Moment(year, month, day, us, _) => {
                let date = [&year.to_le_bytes()[..], &[*month, *day]].concat();
                counted(match us {
                    0 => date,
                    us => [date, clock(*us)].concat(),
                })
            }
        }
    }
}

/// A string after its length.
fn cell(text: &[u8]) -> Vec<u8> {
    let wide = (text.len() as u64).to_le_bytes();
    let length = match text.len() {
        0..=0xFA => wide[..1].to_vec(),
        0xFB..=0xFFFF => vec![0xFC, wide[0], wide[1]],
        _ => vec![0xFD, wide[0], wide[1], wide[2]],
    };
    [&length[..], text].concat()
}

fn as_text(row: &[Value]) -> Vec<u8> {
    let cells = row.iter().map(|value| match value.text() {
        None => vec![0xFB],
        Some(text) => cell(&text),
    });
    cells.flatten().collect()
}

fn as_binary(row: &[Value]) -> Vec<u8> {
    let mut bytes = vec![0; 1 + (row.len() + 9) / 8];
    for (at, value) in row.iter().enumerate() {
        if matches!(value, Value::Null) {
            bytes[1 + (at + 2) / 8] |= 1 << ((at + 2) % 8);
        }
        bytes.extend(value.binary());
    }
    bytes
}

/// Sums up rows, each in pieces of so many bytes.
fn summed(columns: &[Value], rows: &[Vec<u8>], is_binary: bool, step: usize) -> Option<Checksum> {
    let mut sums = Sums::default();
    sums.begin();
    sums.result(is_binary);
    let kinds: Vec<TokenKind> = columns.iter().map(Value::kind).collect();
    sums.columns_as_before(&kinds, columns.len() as u64);
    for row in rows {
        let mut pieces: Vec<&[u8]> = row.chunks(step).collect();
        let last = pieces.pop().unwrap_or_default();
        for piece in pieces {
            sums.piece(piece);
        }
        sums.row(last);
    }
    sums.checksum()
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Number),
        any::<u64>().prop_map(Value::Unsigned),
        any::<u32>().prop_map(Value::Filled),
        any::<f64>()
            .prop_filter("finite", |it| it.is_finite())
            .prop_map(Value::Real),
        (-1e6..1e6_f64).prop_map(Value::Real),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(Value::Text),
        (0usize..70_000, any::<u8>()).prop_map(|(length, byte)| Value::Text(vec![byte; length])),
        (0u32..34, 0..DAY_US, any::<bool>())
            .prop_map(|(days, us, sign)| Value::Time(days, us, sign)),
        (0u16..9999, 0u8..13, 0u8..32, 0..DAY_US, 0u8..=6).prop_map(
            |(year, month, day, us, decimals)| {
                let unit = 10_u64.pow(6 - u32::from(decimals));
                Value::Moment(year, month, day, us / unit * unit, decimals)
            }
        ),
    ]
}

proptest! {
    #[test]
    fn text_and_binary_have_one_checksum(
        row in proptest::collection::vec(value(), 1..20),
        step in 1usize..5000,
    ) {
        let (text, binary) = ([as_text(&row)], [as_binary(&row)]);
        let expected = summed(&row, &text, false, usize::MAX);
        prop_assert!(expected.is_some());
        prop_assert_eq!(summed(&row, &binary, true, usize::MAX), expected);
        // Pieces change nothing.
        prop_assert_eq!(summed(&row, &text, false, step), expected);
        prop_assert_eq!(summed(&row, &binary, true, step), expected);
    }

    #[test]
    fn order_is_told_from_contents(mut rows in proptest::collection::vec(0u64..1000, 2..30)) {
        let sum = |rows: &[u64]| {
            let rows: Vec<Vec<u8>> = rows.iter().map(|row| cell(row.to_string().as_bytes())).collect();
            summed(&[Value::Null], &rows, false, usize::MAX).unwrap()
        };
        let before = sum(&rows);
        let first = rows.remove(0);
        rows.push(first);
        let turned = sum(&rows);
        let is_same = rows.iter().all(|row| *row == first);
        prop_assert_eq!(turned.in_order == before.in_order, is_same);
        prop_assert_eq!(turned.any_order, before.any_order);
        rows[0] += 1;
        prop_assert_ne!(sum(&rows).any_order, before.any_order);
    }

    #[test]
    fn any_bytes_are_taken(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        columns in proptest::collection::vec(value(), 0..10),
        step in 1usize..50,
    ) {
        summed(&columns, &[bytes], true, step);
    }
}

#[test]
fn null_is_no_empty_string() {
    let columns = [Value::Null];
    let null = summed(&columns, &[as_text(&[Value::Null])], false, 9);
    let empty = summed(&columns, &[as_text(&[Value::Text(Vec::new())])], false, 9);
    assert_ne!(null, empty);
}

#[test]
fn a_row_is_not_cut_elsewhere() {
    let sum = |rows: &[&[u8]]| {
        let rows: Vec<Vec<u8>> = rows.iter().map(|row| row.to_vec()).collect();
        summed(&[Value::Null], &rows, false, 9)
    };
    assert_ne!(sum(&[b"\x01a\x01b"]), sum(&[b"\x01a", b"\x01b"]));
}

#[test]
fn numbers_are_printed_as_servers_do() {
    for (value, expected) in [
        (0.1, "0.1"),
        (-0.0, "-0"),
        (1e14, "100000000000000"),
        (1e15, "1e15"),
        (123_456_789_012_345.6, "123456789012345.6"),
        (1e-15, "0.000000000000001"),
        (1.5e-16, "1.5e-16"),
        (1_234_567_890_123_456.0, "1.234567890123456e15"),
        (2_533_158_104_784_122.5, "2533158104784122.5"),
        (828_069_318_077_210.3, "828069318077210.2"),
        (12_503_604_868_301.063, "12503604868301.062"),
        (1.797_693_134_862_315_7e308, "1.7976931348623157e308"),
    ] {
        let mut text = String::new();
        real::double(value, 31, &mut text);
        assert_eq!(text, expected);
    }
    let mut text = String::new();
    real::float(16_777_216.0, 31, &mut text);
    assert_eq!(text, "16777200");
}
