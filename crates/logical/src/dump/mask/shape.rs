//! A text as another one of the same shape: a letter for each letter, a digit for each digit. They come
//! from a hash of the whole value, so that values with the same beginning do not show it.

use super::code::{Code, Unit};

/// The characters that may take a character's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Small,
    Capital,
    Digit,
    /// Digits but for zero, at the beginning of a number.
    First,
}

impl Class {
    fn first_and_count(self) -> (u8, u8) {
        match self {
            Self::Small => (b'a', 26),
            Self::Capital => (b'A', 26),
            Self::Digit => (b'0', 10),
            Self::First => (b'1', 9),
        }
    }
}

/// What stands for a character that is none of the above and not ASCII.
const OTHER: u8 = b'*';

/// The characters that a hash gives, one after the other.
struct Choices {
    from: blake3::OutputReader,
    block: [u8; 64],
    at: usize,
}

impl Choices {
    fn new(with: &blake3::Hasher) -> Self {
        Self {
            from: with.finalize_xof(),
            block: [0; 64],
            at: 64,
        }
    }

    fn next(&mut self, class: Class) -> u8 {
        // Two bytes, that no choice is much likelier than another.
        if self.at + 2 > self.block.len() {
            self.from.fill(&mut self.block);
            self.at = 0;
        }
        let number = u16::from_le_bytes([self.block[self.at], self.block[self.at + 1]]);
        self.at += 2;
        let (first, count) = class.first_and_count();
        first + (number % u16::from(count)) as u8
    }
}

/// Adds a text of the same shape to `out`; `with` has hashed what counts of the value.
pub(super) fn text(value: &[u8], code: Code, with: &blake3::Hasher, out: &mut Vec<u8>) {
    let mut made = Made {
        choices: Choices::new(with),
        first: None,
        from: out.len(),
        out,
    };
    let rest = code.units(value, &mut |unit| match unit {
        Unit::Letter(letter) => made.letter(letter),
        Unit::Bytes(some) => some.iter().for_each(|_| made.out.push(OTHER)),
    });
    rest.iter().for_each(|_| made.out.push(OTHER));
    made.end(value);
}

/// A text that is made.
struct Made<'o> {
    choices: Choices,
    /// The first place that was chosen for.
    first: Option<(usize, Class)>,
    from: usize,
    out: &'o mut Vec<u8>,
}

impl Made<'_> {
    fn letter(&mut self, letter: char) {
        match letter {
            _ if letter.is_uppercase() => self.choose(Class::Capital),
            _ if letter.is_alphabetic() => self.choose(Class::Small),
            _ if letter.is_numeric() => self.choose(Class::Digit),
            _ if letter.is_ascii() => self.out.push(letter as u8),
            _ => self.out.push(OTHER),
        }
    }

    fn choose(&mut self, class: Class) {
        self.first.get_or_insert((self.out.len(), class));
        self.out.push(self.choices.next(class));
    }

    /// Makes sure that no value is its own mask.
    fn end(self, value: &[u8]) {
        let Some((at, class)) = self.first else {
            let signs = self.out[self.from..].iter_mut();
            signs
                .filter(|sign| **sign != b' ')
                .for_each(|sign| *sign = OTHER);
            return;
        };
        if self.out[self.from..] == *value {
            let (first, count) = class.first_and_count();
            self.out[at] = first + (self.out[at] - first + 1) % count;
        }
    }
}

/// Adds a number with as many digits before and behind the point to `out`.
pub(super) fn decimal(value: &[u8], with: &blake3::Hasher, out: &mut Vec<u8>) {
    let from = out.len();
    let mut choices = Choices::new(with);
    let unsigned = value.strip_prefix(b"-").unwrap_or(value);
    let whole = unsigned.iter().take_while(|byte| byte.is_ascii_digit());
    let last = whole.count().saturating_sub(1);
    let mut begun = false;
    for (at, byte) in unsigned.iter().enumerate() {
        let may_lead = !begun && at < last;
        begun |= byte.is_ascii_digit() && !(may_lead && *byte == b'0');
        out.push(match byte {
            // ZEROFILL has zeros in front.
            b'0' if may_lead => b'0',
            b'0'..=b'9' if may_lead => choices.next(Class::First),
            b'0'..=b'9' => choices.next(Class::Digit),
            other => *other,
        });
    }
    // There is no negative zero.
    let is_zero = out[from..].iter().all(|byte| matches!(byte, b'0' | b'.'));
    if unsigned.len() < value.len() && !is_zero {
        out.insert(from, b'-');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(value: &[u8], charset: &str) -> String {
        let mut with = blake3::Hasher::new_keyed(&[7; 32]);
        with.update(value);
        let mut out = b"before".to_vec();
        text(value, Code::of(charset), &with, &mut out);
        String::from_utf8(out[6..].to_vec()).unwrap()
    }

    fn shape(text: &str) -> String {
        let signs = text.chars().map(|letter| match letter {
            'a'..='z' => 'a',
            'A'..='Z' => 'A',
            '0'..='9' => '0',
            other => other,
        });
        signs.collect()
    }

    #[test]
    fn shapes_stay() {
        for (value, wanted) in [
            ("Ann-Marie 0x2F", "Aaa-Aaaaa 0a0A"),
            ("Ölçü Straße 山田", "Aaaa Aaaaaa aa"),
            ("١٢ €5", "00 *0"),
            ("!?", "**"),
            ("-- -", "** *"),
            ("", ""),
        ] {
            assert_eq!(shape(&of(value.as_bytes(), "utf8mb4")), wanted, "{value}");
        }
        assert_eq!(shape(&of(b"\xC4b\xFF\x80", "latin1")), "Aaa*");
        assert_eq!(shape(&of(b"a\xFF\xC3", "utf8mb4")), "a**");
    }

    #[test]
    fn decimals_stay_decimals() {
        for value in ["-12345.670", "0.05", "-0.1", "7", "0012.5"] {
            let mut with = blake3::Hasher::new_keyed(&[7; 32]);
            with.update(value.as_bytes());
            let mut out = Vec::new();
            decimal(value.as_bytes(), &with, &mut out);
            let out = String::from_utf8(out).unwrap();
            assert_eq!(shape(&out), shape(value), "{value} {out}");
            assert_eq!(out.starts_with("00"), value.starts_with("00"), "{out}");
        }
    }

    proptest! {
        #[test]
        fn no_value_is_its_own(value in "[a-zA-Z0-9]{1,3}|\\PC{1,9}") {
            let out = of(value.as_bytes(), "utf8mb4");
            let only_stars = value.chars().all(|sign| matches!(sign, '*' | ' '));
            prop_assert!(out != value || only_stars, "{}", out);
            prop_assert_eq!(out.chars().count(), value.chars().count());
        }
    }
}
