//! Values that a column's collation takes for equal as the same bytes, so that joins hold: letters
//! without their case, texts without blanks behind them. Accents are not looked at.

use crate::objects::Column;

/// Blanks that are passed on at a time.
const BLANKS: [u8; 64] = [b' '; 64];
/// Character sets in which bytes below 128 are ASCII wherever they stand, beside UTF-8: all of one
/// byte, but for swe7.
const ONE_BYTE: [&str; 24] = [
    "ascii", "latin1", "latin2", "latin5", "latin7", "cp1250", "cp1251", "cp1256", "cp1257",
    "cp850", "cp852", "cp866", "koi8r", "koi8u", "greek", "hebrew", "armscii8", "geostd8", "macce",
    "macroman", "keybcs2", "tis620", "dec8", "hp8",
];

/// Returns whether a character set is UTF-8 of any name.
pub(super) fn is_utf8(charset: &str) -> bool {
    matches!(charset, "utf8" | "utf8mb3" | "utf8mb4")
}

/// Returns whether each byte is a character.
pub(super) fn is_one_byte(charset: &str) -> bool {
    ONE_BYTE.contains(&charset)
}

/// Which letters are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Counts,
    /// Those of ASCII, small and capital.
    Ascii,
    /// Those of UTF-8.
    Unicode,
}

/// What of a value does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fold {
    case: Case,
    /// Blanks at the end do not count.
    trims: bool,
}

impl Fold {
    /// Everything counts.
    pub(super) const NOTHING: Self = Self {
        case: Case::Counts,
        trims: false,
    };

    /// Returns what does not count in a column.
    pub(super) fn of(column: &Column) -> Self {
        let (Some(charset), Some(collation)) = (&column.charset, &column.collation) else {
            return Self::NOTHING;
        };
        // Elsewhere a byte that looks like a letter or a blank may be half of something else.
        if !is_utf8(charset) && !is_one_byte(charset) {
            return Self::NOTHING;
        }
        let case_counts = collation.ends_with("_bin") || collation.ends_with("_cs");
        Self {
            case: match (case_counts, is_utf8(charset)) {
                (true, _) => Case::Counts,
                (false, true) => Case::Unicode,
                (false, false) => Case::Ascii,
            },
            trims: !collation.contains("_0900_") && !collation.contains("nopad"),
        }
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
        match self.how.case {
            Case::Counts => self.pass(piece, to),
            Case::Ascii => self.pass(&piece.to_ascii_lowercase(), to),
            Case::Unicode => self.letters(piece, to),
        }
    }

    /// Ends the value. Returns whether anything of it counted.
    pub(super) fn end(mut self, to: &mut blake3::Hasher) -> bool {
        let tail = std::mem::take(&mut self.tail);
        self.pass(&tail, to);
        self.any
    }

    fn letters(&mut self, piece: &[u8], to: &mut blake3::Hasher) {
        let mut bytes = std::mem::take(&mut self.tail);
        bytes.extend_from_slice(piece);
        let (mut rest, mut folded) = (&bytes[..], String::new());
        while !rest.is_empty() {
            let (good, bad, left) = match std::str::from_utf8(rest) {
                Ok(text) => (text, &rest[..0], &rest[..0]),
                Err(error) => {
                    let (good, after) = rest.split_at(error.valid_up_to());
                    let length = error.error_len().unwrap_or(0);
                    if length == 0 {
                        self.tail = after.to_vec();
                    }
                    let left = if length == 0 {
                        &rest[..0]
                    } else {
                        &after[length..]
                    };
                    (
                        std::str::from_utf8(good).unwrap_or_default(),
                        &after[..length],
                        left,
                    )
                }
            };
            folded.clear();
            folded.extend(good.chars().map(small));
            self.pass(folded.as_bytes(), to);
            self.pass(bad, to);
            rest = left;
        }
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
            ("sjis", "sjis_japanese_ci", "äB", false),
        ] {
            let how = fold(charset, collation);
            let is_same = one(how, "äb") == one(how, other);
            assert_eq!(is_same, same, "{collation} {other:?}");
        }
        assert!(!one(fold("latin1", "latin1_bin"), "  ").1);
        assert!(one(Fold::NOTHING, " ").1);
    }

    proptest! {
        #[test]
        fn pieces_fold_as_the_whole(text in any::<Vec<u8>>(), blank in ".{0,9} {0,70}.{0,3}", step in 1usize..6) {
            for value in [&text[..], blank.as_bytes()] {
                for collation in ["utf8mb4_general_ci", "utf8mb4_bin"] {
                    let how = fold("utf8mb4", collation);
                    let pieces: Vec<&[u8]> = value.chunks(step).collect();
                    prop_assert_eq!(folded(how, &pieces), folded(how, &[value]));
                }
            }
        }
    }
}
