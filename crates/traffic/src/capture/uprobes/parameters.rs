//! Parameters of MySQL's executions, which the server took apart, as the packet that they came in.

/// The execution says how many parameters it has.
const COUNT_FOLLOWS: u8 = 0x08;

/// The type of what is always NULL.
const NULL: u8 = 6;

/// Types whose values begin with their length.
fn has_length(kind: u8) -> bool {
    matches!(kind, 0 | 7 | 10..=12 | 14..=19 | 242 | 245..=255)
}

/// A type as the protocol has it: its number, and whether it is unsigned.
pub(super) type Type = [u8; 2];

/// The parameters of an execution: `plugin/com_data.h` of the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameters<'a> {
    pub(super) statement: u32,
    pub(super) count: u64,
    /// Bytes from one to the next.
    pub(super) stride: u64,
    pub(super) parameters: &'a [u8],
    /// Where the first value is in the server's memory.
    pub(super) begin: u64,
    pub(super) values: &'a [u8],
}

impl Parameters<'_> {
    /// Returns the types of the parameters, if the execution brought them.
    pub(super) fn types(&self) -> Vec<Type> {
        let sign = |one: &[u8]| if one[8] == 0 { 0 } else { 0x80 };
        let each = self.each().into_iter().flatten();
        each.map(|one| [one[4], sign(one)]).collect()
    }

    /// Returns the parameters, if all of them are here.
    fn each(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let count = usize::try_from(self.count).ok()?;
        let stride = usize::try_from(self.stride).ok().filter(|it| *it >= 32)?;
        let has_all = self.parameters.len() / stride >= count;
        has_all.then(|| self.parameters.chunks_exact(stride).take(count))
    }

    /// Writes the packet into `into`; returns whether it has all values.
    pub(super) fn packet(&self, types: &[Type], into: &mut Vec<u8>) -> bool {
        into.clear();
        into.extend_from_slice(&self.statement.to_le_bytes());
        into.extend_from_slice(&[COUNT_FOLLOWS, 1, 0, 0, 0]);
        let Some(each) = self.each().filter(|_| types.len() as u64 == self.count) else {
            return false;
        };
        length(into, self.count);
        let nulls = into.len();
        into.resize(nulls + types.len().div_ceil(8), 0);
        into.push(1);
        into.extend_from_slice(types.as_flattened());
        for (number, (one, [kind, _])) in each.zip(types).enumerate() {
            let at = |place: usize| {
                let bytes = one[place..].first_chunk::<8>();
                bytes.map_or(0, |bytes| u64::from_ne_bytes(*bytes))
            };
            let (value, size) = (at(16), at(24));
            // What was sent ahead has no value here either; it comes before what is said of it here.
            if one[0] != 0 || *kind == NULL || value == 0 {
                into[nulls + number / 8] |= 1 << (number % 8);
                continue;
            }
            let Some(bytes) = self.value(value, size) else {
                return false;
            };
            if has_length(*kind) {
                length(into, size);
            }
            into.extend_from_slice(bytes);
        }
        true
    }

    fn value(&self, at: u64, size: u64) -> Option<&[u8]> {
        let from = usize::try_from(at.checked_sub(self.begin)?).ok()?;
        let size = usize::try_from(size).ok()?;
        self.values.get(from..)?.get(..size)
    }
}

/// Appends a number as the protocol has lengths.
fn length(into: &mut Vec<u8>, number: u64) {
    let bytes = number.to_le_bytes();
    match number {
        0..=250 => into.push(bytes[0]),
        251..=0xFFFF => {
            into.push(0xFC);
            into.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xFF_FFFF => {
            into.push(0xFD);
            into.extend_from_slice(&bytes[..3]);
        }
        _ => {
            into.push(0xFE);
            into.extend_from_slice(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_wire::watch::Inside;
    use proptest::prelude::*;

    /// Where the values would be in the server's memory.
    const BEGIN: u64 = 0x7f00_0000_1000;

    /// Lays out parameters as the server has them: a number, a text or NULL each.
    fn laid_out(stride: usize, all: &[Option<Result<i32, String>>]) -> (Vec<u8>, Vec<u8>) {
        let (mut array, mut values) = (Vec::new(), Vec::new());
        for one in all {
            let mut parameter = vec![0_u8; stride];
            let mut put = |at: usize, value: u64| {
                parameter[at..at + 8].copy_from_slice(&value.to_ne_bytes());
            };
            let at = BEGIN + values.len() as u64;
            match one {
                None => put(0, 1 | 253 << 32),
                Some(Ok(number)) => {
                    put(0, 3 << 32);
                    put(16, at);
                    put(24, 4);
                    values.extend_from_slice(&number.to_le_bytes());
                }
                Some(Err(text)) => {
                    put(0, 253 << 32);
                    put(16, at);
                    put(24, text.len() as u64);
                    values.extend_from_slice(text.as_bytes());
                }
            }
            array.extend_from_slice(&parameter);
        }
        (array, values)
    }

    proptest! {
        #[test]
        fn parameters_are_as_they_were_sent(
            all in prop::collection::vec(prop::option::of(prop::result::maybe_err(any::<i32>(), "[a-z]{0,300}")), 1..40),
            stride in prop::sample::select(vec![32_usize, 48]),
        ) {
            let (array, values) = laid_out(stride, &all);
            let parameters = Parameters {
                statement: 7,
                count: all.len() as u64,
                stride: stride as u64,
                parameters: &array,
                begin: BEGIN,
                values: &values,
            };
            let mut session = Inside::new(1 << 20);
            let marks = vec!["?"; all.len()].join(", ");
            let sql = format!("SELECT {marks}");
            session.prepare(7, sql.as_bytes(), sql.len() as u64);
            let (mut packet, mut text) = (Vec::new(), Vec::new());
            prop_assert!(parameters.packet(&parameters.types(), &mut packet));
            let execution = session.execute(&packet, &mut text);
            prop_assert!(!execution.is_unseen);
            let expected: Vec<String> = all.iter().map(|one| match one {
                None => "NULL".to_owned(),
                Some(Ok(number)) => number.to_string(),
                Some(Err(text)) => format!("'{text}'"),
            }).collect();
            prop_assert_eq!(String::from_utf8(text).unwrap(), format!("SELECT {}", expected.join(", ")));
        }

        #[test]
        fn anything_may_come(
            array in prop::collection::vec(any::<u8>(), 0..200),
            values in prop::collection::vec(any::<u8>(), 0..50),
            numbers in any::<[u64; 3]>(),
            stride in 0_u64..60,
        ) {
            let [begin, count, few] = numbers;
            for count in [count, few % 5] {
                let parameters = Parameters {
                    statement: 1,
                    count,
                    stride,
                    parameters: &array,
                    begin,
                    values: &values,
                };
                let mut into = Vec::new();
                parameters.packet(&parameters.types(), &mut into);
            }
        }
    }
}
