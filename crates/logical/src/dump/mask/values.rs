//! Values, masked one after the other, whole or in pieces.

use super::fits::{EMAIL, How};
use super::fold::Folder;
use super::key::MaskKey;
use super::{integers, shape};
use evenkeel_wire::Malformed;

/// The longest value that is gathered, in bytes: TEXT has less.
const GATHERED: usize = 1 << 18;

/// What makes masks with a key.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    hash: blake3::Hasher,
    email: blake3::Hasher,
    shape: blake3::Hasher,
    integer: blake3::Hasher,
}

/// What is known of a value so far.
#[derive(Debug)]
pub(super) enum Taken {
    /// It does not count.
    Nothing,
    Folded(Folder),
    Whole(Vec<u8>),
}

impl Maker {
    pub(super) fn new(key: &MaskKey) -> Self {
        Self {
            hash: key.hasher("hash"),
            email: key.hasher("email"),
            shape: key.hasher("shape"),
            integer: key.hasher("integer"),
        }
    }

    /// Begins a value.
    pub(super) fn begin(&mut self, how: &How) -> Taken {
        match how {
            How::Null | How::Constant(_) => Taken::Nothing,
            How::Hash { fold, .. } | How::Email { fold, .. } => {
                self.hasher(how).reset();
                Taken::Folded(Folder::new(*fold))
            }
            How::Bytes(..) | How::Uuid => {
                self.hash.reset();
                Taken::Folded(Folder::new(super::fold::Fold::NOTHING))
            }
            _ => Taken::Whole(Vec::new()),
        }
    }

    fn hasher(&mut self, how: &How) -> &mut blake3::Hasher {
        match how {
            How::Email { .. } => &mut self.email,
            _ => &mut self.hash,
        }
    }

    /// Takes some of its bytes.
    pub(super) fn add(
        &mut self,
        how: &How,
        taken: &mut Taken,
        bytes: &[u8],
    ) -> Result<(), Malformed> {
        match taken {
            Taken::Nothing => {}
            Taken::Folded(folder) => folder.add(bytes, self.hasher(how)),
            Taken::Whole(value) => {
                value.extend_from_slice(bytes);
                if value.len() > GATHERED {
                    return Err(Malformed);
                }
            }
        }
        Ok(())
    }

    /// Ends it, and returns what stands for it; `None` is NULL.
    pub(super) fn end(&mut self, how: &How, taken: Taken) -> Result<Option<Vec<u8>>, Malformed> {
        let mut out = Vec::new();
        match (how, taken) {
            (How::Null, _) => return Ok(None),
            (How::Constant(bytes), _) => out.extend_from_slice(bytes),
            (_, Taken::Folded(folder)) => {
                let with = self.hasher(how);
                if folder.end(with) {
                    hashed(how, &with.finalize(), &mut out);
                }
            }
            (_, Taken::Whole(value)) => self.whole(how, &value, &mut out)?,
            (_, Taken::Nothing) => return Err(Malformed),
        }
        Ok(Some(out))
    }

    fn whole(&mut self, how: &How, value: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        match how {
            How::Text { code, fold } => {
                self.shape.reset();
                let mut folder = Folder::new(*fold);
                folder.add(value, &mut self.shape);
                folder.end(&mut self.shape);
                shape::text(value, *code, &self.shape, out);
            }
            How::Integer(span) => {
                integers::mask(value, *span, &mut self.integer, out).ok_or(Malformed)?;
            }
            How::Decimal => {
                self.shape.reset();
                self.shape.update(value);
                shape::decimal(value, &self.shape, out);
            }
            How::Year { is_timestamp } => year(value, *is_timestamp, out)?,
            _ => return Err(Malformed),
        }
        Ok(())
    }
}

fn hashed(how: &How, hash: &blake3::Hash, out: &mut Vec<u8>) {
    let hex = hash.to_hex();
    match how {
        How::Bytes(count, length) => {
            out.extend_from_slice(&hash.as_bytes()[..*count]);
            out.resize(*length, 0);
        }
        How::Uuid => {
            let parts = [
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..32],
            ];
            out.extend_from_slice(parts.join("-").as_bytes());
        }
        How::Email { digits, width, .. } => {
            let text = [EMAIL.0, &hex[..*digits], EMAIL.1].concat();
            out.extend_from_slice(&width.text(text.as_bytes()));
        }
        How::Hash { digits, width, .. } => {
            out.extend_from_slice(&width.text(&hex.as_bytes()[..*digits]));
        }
        _ => {}
    }
}

/// Adds the first day of a date's year, as long as the date is written.
fn year(value: &[u8], is_timestamp: bool, out: &mut Vec<u8>) -> Result<(), Malformed> {
    const NEVER: &str = "0000-00-00 00:00:00.000000";
    let shape = |byte: &u8| if byte.is_ascii_digit() { b'0' } else { *byte };
    let found: Vec<u8> = value.iter().map(shape).collect();
    if found.len() < 10 || !NEVER.as_bytes().starts_with(&found) {
        return Err(Malformed);
    }
    // No date at all says nothing.
    if &value[..10] == b"0000-00-00" {
        out.extend_from_slice(&found);
        return Ok(());
    }
    out.extend_from_slice(&value[..4]);
    // 1970 has no earlier second, as the second before is the mark for no time.
    let rest = match is_timestamp && value.starts_with(b"1970") {
        true => "-01-01 00:00:01.000000",
        false => "-01-01 00:00:00.000000",
    };
    out.extend_from_slice(&rest.as_bytes()[..value.len() - 4]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(how: &How, pieces: &[&[u8]]) -> Option<String> {
        let mut maker = Maker::new(&MaskKey::of(b"k"));
        let mut taken = maker.begin(how);
        for piece in pieces {
            maker.add(how, &mut taken, piece).unwrap();
        }
        let out = maker.end(how, taken).unwrap();
        out.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn dates_keep_their_year() {
        for (value, is_timestamp, wanted) in [
            ("2024-05-06", false, "2024-01-01"),
            ("2024-05-06 07:08:09.12", false, "2024-01-01 00:00:00.00"),
            ("1970-05-06 07:08:09", true, "1970-01-01 00:00:01"),
            ("1970-05-06 07:08:09", false, "1970-01-01 00:00:00"),
            ("0000-00-00 00:00:00", true, "0000-00-00 00:00:00"),
            ("0000-05-06", false, "0000-01-01"),
        ] {
            let found = masked(&How::Year { is_timestamp }, &[value.as_bytes()]);
            assert_eq!(found.as_deref(), Some(wanted), "{value}");
        }
        for wrong in ["", "2024", "24-05-06", "2024-05-06x", "12024-05-06"] {
            let mut maker = Maker::new(&MaskKey::of(b"k"));
            let how = How::Year {
                is_timestamp: false,
            };
            let taken = Taken::Whole(wrong.as_bytes().to_vec());
            assert_eq!(maker.end(&how, taken), Err(Malformed), "{wrong}");
        }
    }

    #[test]
    fn pieces_make_the_same_mask() {
        use super::super::fold::Fold;
        let fold = Fold::NOTHING;
        let width = super::super::fits::Width::One;
        for how in [
            How::Hash {
                digits: 32,
                fold,
                width,
            },
            How::Email {
                digits: 24,
                fold,
                width,
            },
            How::Uuid,
            How::Text {
                code: super::super::code::Code::Utf8,
                fold,
            },
            How::Decimal,
        ] {
            let whole = masked(&how, &[b"12.34"]);
            assert_eq!(masked(&how, &[b"12", b"", b".34"]), whole, "{how:?}");
            assert_ne!(masked(&how, &[b"12.35"]), whole, "{how:?}");
            assert_eq!(masked(&how, &[]).as_deref(), Some(""), "{how:?}");
        }
        assert_eq!(masked(&How::Null, &[b"x"]), None);
    }
}
