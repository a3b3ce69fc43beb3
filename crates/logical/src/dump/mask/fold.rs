//! Values that a column's collation takes for equal as the same bytes, so that joins hold: letters
//! without their case, texts without blanks behind them, in UTF-8 whatever their character set. Accents are
//! not looked at.

use super::code::{Code, Unit};
use crate::objects::Column;

/// Blanks that are passed on at a time.
const BLANKS: [u8; 64] = [b' '; 64];
/// What stands in front of bytes that are no letter: no text in UTF-8 has it.
const NO_LETTER: u8 = 0xFF;

/// What of a value does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fold {
    code: Code,
    /// The case of letters does not count.
    folds_case: bool,
    /// Blanks at the end do not count.
    trims: bool,
}

impl Fold {
    /// Everything counts.
    pub(super) const NOTHING: Self = Self {
        code: Code::Unknown,
        folds_case: false,
        trims: false,
    };

    /// Returns what does not count in a column.
    pub(super) fn of(column: &Column) -> Self {
        let (Some(charset), Some(collation)) = (&column.charset, &column.collation) else {
            return Self::NOTHING;
        };
        // Elsewhere a byte that looks like a letter or a blank may be half of something else.
        let code = Code::of(charset);
        if code == Code::Unknown {
            return Self::NOTHING;
        }
        Self {
            code,
            // `utf8mb4_ja_0900_as_cs_ks` has the word inside.
            folds_case: !collation
                .split('_')
                .any(|word| word == "bin" || word == "cs"),
            trims: !collation.contains("_0900_") && !collation.contains("nopad"),
        }
    }

    /// Returns whether bytes are passed on as they are.
    fn keeps_bytes(self) -> bool {
        !self.folds_case && matches!(self.code, Code::Utf8 | Code::Unknown)
    }
}

/// Folds a value that comes in pieces.
#[derive(Debug)]
pub(super) struct Folder {
    how: Fold,
    /// The beginning of a character.
    tail: Vec<u8>,
    /// Blanks that count only if something follows.
    blanks: usize,
    any: bool,
}

impl Folder {
    pub(super) fn new(how: Fold) -> Self {
        Self {
            how,
            tail: Vec::new(),
            blanks: 0,
            any: false,
        }
    }

    /// Takes the next piece and hands what counts of it to `to`.
    pub(super) fn add(&mut self, piece: &[u8], to: &mut blake3::Hasher) {
        let how = self.how;
        if how.keeps_bytes() {
            return self.pass(piece, to);
        }
        let mut bytes = std::mem::take(&mut self.tail);
        bytes.extend_from_slice(piece);
        let (mut folded, mut letters) = (Vec::with_capacity(bytes.len()), [0; 4]);
        let rest = how.code.units(&bytes, &mut |unit| match unit {
            Unit::Letter(letter) => {
                let letter = if how.folds_case {
                    small(letter)
                } else {
                    letter
                };
                folded.extend_from_slice(letter.encode_utf8(&mut letters).as_bytes());
            }
            Unit::Bytes(some) => {
                folded.extend((how.code != Code::Utf8).then_some(NO_LETTER));
                folded.extend_from_slice(some);
            }
        });
        self.tail = rest.to_vec();
        self.pass(&folded, to);
    }

    /// Ends the value. Returns whether anything of it counted.
    pub(super) fn end(mut self, to: &mut blake3::Hasher) -> bool {
        let mut tail = std::mem::take(&mut self.tail);
        if !tail.is_empty() && self.how.code != Code::Utf8 {
            tail.insert(0, NO_LETTER);
        }
        self.pass(&tail, to);
        self.any
    }

    fn pass(&mut self, bytes: &[u8], to: &mut blake3::Hasher) {
        if !self.how.trims {
            to.update(bytes);
            self.any |= !bytes.is_empty();
            return;
        }
        let end = bytes.iter().rposition(|byte| *byte != b' ');
        let end = end.map_or(0, |at| at + 1);
        if end > 0 {
            while self.blanks > 0 {
                let some = self.blanks.min(BLANKS.len());
                to.update(&BLANKS[..some]);
                self.blanks -= some;
            }
            to.update(&bytes[..end]);
            self.any = true;
        }
        self.blanks += bytes.len() - end;
    }
}

/// Returns the small letter, where that is one.
fn small(letter: char) -> char {
    let mut small = letter.to_lowercase();
    match (small.next(), small.next()) {
        (Some(one), None) => one,
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fold(charset: &str, collation: &str) -> Fold {
        let mut column = Column::for_tests("c", "varchar", Some(charset));
        column.collation = Some(collation.to_owned());
        Fold::of(&column)
    }

    fn folded(how: Fold, pieces: &[&[u8]]) -> (blake3::Hash, bool) {
        let mut hasher = blake3::Hasher::new();
        let mut folder = Folder::new(how);
        for piece in pieces {
            folder.add(piece, &mut hasher);
        }
        let any = folder.end(&mut hasher);
        (hasher.finalize(), any)
    }

    #[test]
    fn what_a_collation_takes_for_equal_is_the_same() {
        let one = |how: Fold, text: &str| folded(how, &[text.as_bytes()]);
        for (charset, collation, other, same) in [
            ("utf8mb4", "utf8mb4_general_ci", "ÄB  ", true),
            ("utf8mb4", "utf8mb4_0900_ai_ci", "ÄB", true),
            ("utf8mb4", "utf8mb4_0900_ai_ci", "äb ", false),
            ("utf8mb4", "utf8mb4_bin", "äb ", true),
            ("utf8mb4", "utf8mb4_bin", "äB", false),
            ("utf8mb4", "utf8mb4_nopad_bin", "äb ", false),
            ("latin1", "latin1_swedish_ci", "äB ", true),
            ("latin1", "latin1_general_cs", "äB", false),
            ("utf8mb4", "utf8mb4_ja_0900_as_cs_ks", "äB", false),
            ("sjis", "sjis_japanese_ci", "äB", false),
        ] {
            let how = fold(charset, collation);
            let is_same = one(how, "äb") == one(how, other);
            assert_eq!(is_same, same, "{collation} {other:?}");
        }
        assert!(!one(fold("latin1", "latin1_bin"), "  ").1);
        let utf8 = one(fold("utf8mb4", "utf8mb4_general_ci"), "ÄÖ x");
        for (charset, bytes) in [
            ("latin1", &b"\xC4\xD6 X "[..]),
            ("cp850", b"\x8E\x94 x"),
            ("utf16", b"\0\xE4\0\xD6\0 \0x"),
            ("utf32", b"\0\0\0\xE4\0\0\0\xD6\0\0\0 \0\0\0x\0\0\0 "),
        ] {
            let found = folded(fold(charset, &format!("{charset}_general_ci")), &[bytes]);
            assert_eq!(found, utf8, "{charset}");
        }
        assert!(one(Fold::NOTHING, " ").1);
        // What is cut off is no letter: as bytes in UTF-8 this one would be.
        let utf16 = |bytes: &[u8]| folded(fold("utf16", "utf16_general_ci"), &[bytes]);
        assert_ne!(utf16(b"\xD8\x80"), utf16(b"\x06\0"));
    }

    proptest! {
        #[test]
        fn pieces_fold_as_the_whole(text in any::<Vec<u8>>(), blank in ".{0,9} {0,70}.{0,3}", step in 1usize..6) {
            for value in [&text[..], blank.as_bytes()] {
                for collation in ["utf8mb4_general_ci", "utf8mb4_bin", "utf16_bin", "utf32_bin", "latin1_bin"] {
                    let charset = collation.split('_').next().unwrap_or_default();
                    let how = fold(charset, collation);
                    let pieces: Vec<&[u8]> = value.chunks(step).collect();
                    prop_assert_eq!(folded(how, &pieces), folded(how, &[value]));
                }
            }
        }
    }
}
