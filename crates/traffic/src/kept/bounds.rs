//! What a file says that it takes is looked at before anything is made as large: a few bytes can claim to be a
//! gigabyte.
//!
//! Sizes stand in the file's footer and before each page, in Thrift's compact protocol.

use std::ops::ControlFlow;

/// What the pages of a row group may take once they are decompressed. Those that are written take 8 MiB, and one
/// statement that may be kept four times over: text, bytes, class and values.
const GROUP_MOST: u64 = 384 << 20;
/// What a value of a dictionary takes beside its bytes.
const DICTIONARY_VALUE: u64 = 64;
/// Structures in structures: no more than a file of statements has.
const DEEPEST: u32 = 16;
/// Plain values, and numbers of those in a dictionary: nothing else is written. Others have counts of their own.
const ENCODINGS: [i64; 4] = [0, 2, 3, 8];
/// Those that name values of a dictionary.
const BY_DICTIONARY: [i64; 2] = [2, 8];

/// What is wrong.
pub(super) const TOO_LARGE: &str = "it claims to be larger than any file that is written";
pub(super) const NOT_READ: &str = "its structure cannot be read";

/// What is left to be walked over.
struct Walk<'a>(&'a [u8]);

/// A field of a structure.
#[derive(Clone, Copy)]
struct Field {
    id: i64,
    kind: u8,
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const STRUCTURE: u8 = 12;

impl<'a> Walk<'a> {
    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn number(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Returns how many elements a list has, and of which kind: at least a byte of each is there.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        (count <= self.0.len() as u64).then_some((count, head & 15))
    }

    /// Walks over an element of a list, where truths have a byte of their own.
    fn element(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            TRUE | FALSE => self.byte().map(|_| ()),
            kind => self.value(kind, depth),
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Option<()> {
        if depth == 0 {
            return None;
        }
        match kind {
            TRUE | FALSE => Some(()),
            3 => self.byte().map(|_| ()),
            4..=6 => self.varint().map(|_| ()),
            7 => self.take(8).map(|_| ()),
            8 => {
                let length = self.varint()?;
                self.take(length).map(|_| ())
            }
            9 | 10 => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.element(kind, depth - 1))
            }
            STRUCTURE => self.structure(depth, &mut |_, _| None),
            // There are no maps.
            _ => None,
        }
    }

    /// Walks over the fields of a structure. `own` takes those that it knows, and breaks where something is wrong.
    fn structure(
        &mut self,
        depth: u32,
        own: &mut dyn FnMut(&mut Self, Field) -> Option<ControlFlow<()>>,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let mut id = 0_i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            id = match head >> 4 {
                0 => self.number()?,
                step => id.checked_add(step.into())?,
            };
            let kind = head & 15;
            match own(self, Field { id, kind }) {
                Some(ControlFlow::Continue(())) => {}
                Some(ControlFlow::Break(())) => return None,
                None => self.value(kind, depth)?,
            }
        }
    }
}

fn taken(value: Option<()>) -> Option<ControlFlow<()>> {
    Some(match value {
        Some(()) => ControlFlow::Continue(()),
        None => ControlFlow::Break(()),
    })
}

/// Looks at the footer of a file: its lists are no longer than it is, and its columns are not within each other.
pub(super) fn is_footer_sound(footer: &[u8]) -> bool {
    let mut walk = Walk(footer);
    let schema = &mut |walk: &mut Walk<'_>, field: Field| match (field.id, field.kind) {
        (2, 9) => taken(is_flat(walk)),
        _ => None,
    };
    walk.structure(DEEPEST, schema).is_some()
}

/// Walks over a schema, of which only the first element has others below it.
fn is_flat(walk: &mut Walk<'_>) -> Option<()> {
    let (count, kind) = walk.list()?;
    for at in 0..count {
        if kind != STRUCTURE {
            return None;
        }
        walk.structure(DEEPEST, &mut |walk, field| match (field.id, field.kind) {
            (5, 5) => {
                let below = walk.number();
                taken(below.filter(|below| at == 0 || *below == 0).map(|_| ()))
            }
            _ => None,
        })?;
    }
    Some(())
}

/// What stands before a page.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct PageHead {
    decompressed: i64,
    compressed: i64,
    /// Of a dictionary.
    values: i64,
    /// It is one.
    is_dictionary: bool,
    /// How its values are written, of a page of data.
    encoding: i64,
}

impl PageHead {
    /// Reads it, and returns what follows.
    fn of(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut head = Self::default();
        let mut walk = Walk(bytes);
        walk.structure(DEEPEST, &mut |walk, field| {
            let number = match (field.id, field.kind) {
                (2, 5) => &mut head.decompressed,
                (3, 5) => &mut head.compressed,
                (5, STRUCTURE) => return taken(pages(walk, 2, &mut 0, &mut head.encoding)),
                (7, STRUCTURE) => {
                    head.is_dictionary = true;
                    return taken(pages(walk, 2, &mut head.values, &mut 0));
                }
                (8, STRUCTURE) => return taken(pages(walk, 4, &mut 0, &mut head.encoding)),
                _ => return None,
            };
            taken(walk.number().map(|value| *number = value))
        })?;
        Some((head, walk.0))
    }
}

/// Walks over what is known of one kind of page; its encoding is the field of the number `at`.
fn pages(walk: &mut Walk<'_>, at: i64, values: &mut i64, encoding: &mut i64) -> Option<()> {
    walk.structure(DEEPEST, &mut |walk, field| match (field.id, field.kind) {
        (1, 5) => taken(walk.number().map(|value| *values = value)),
        (id, 5) if id == at => {
            let known = walk.number().filter(|it| ENCODINGS.contains(it));
            taken(known.map(|value| *encoding = value))
        }
        _ => None,
    })
}

/// What the pages of a row group take.
#[derive(Debug, Default)]
pub(super) struct GroupSize(u64);

impl GroupSize {
    /// Adds the pages of a column.
    ///
    /// Errors: what is wrong with them, also where they take too much together with those before.
    pub(super) fn add(&mut self, mut pages: &[u8]) -> Result<(), &'static str> {
        let mut has_dictionary = false;
        while !pages.is_empty() {
            let (head, rest) = PageHead::of(pages).ok_or(NOT_READ)?;
            let known = |number: i64| u64::try_from(number).map_err(|_| NOT_READ);
            let compressed = usize::try_from(known(head.compressed)?).map_err(|_| NOT_READ)?;
            pages = rest.get(compressed..).ok_or(NOT_READ)?;
            has_dictionary |= head.is_dictionary;
            if BY_DICTIONARY.contains(&head.encoding) && !has_dictionary {
                return Err(NOT_READ);
            }
            let values = known(head.values)?.saturating_mul(DICTIONARY_VALUE);
            let size = known(head.decompressed)?.saturating_add(values);
            self.0 = self.0.saturating_add(size);
            if self.0 > GROUP_MOST {
                return Err(TOO_LARGE);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// A page of a dictionary or of data, of four bytes that claim to be more.
    fn page(is_dictionary: bool, claims: u64, values: u64, encoding: u64) -> Vec<u8> {
        let mut page = vec![0x15, if is_dictionary { 4 } else { 0 }, 0x15];
        page.extend(varint(claims << 1));
        page.extend([0x15, 4 << 1]);
        page.push(if is_dictionary { 0x4c } else { 0x2c });
        page.push(0x15);
        page.extend(varint(values << 1));
        page.push(0x15);
        page.extend(varint(encoding << 1));
        page.extend([0, 0]);
        page.extend(*b"data");
        page
    }

    fn checked(pages: &[Vec<u8>]) -> Result<u64, &'static str> {
        let mut size = GroupSize::default();
        for column in pages {
            size.add(column)?;
        }
        Ok(size.0)
    }

    #[test]
    fn pages_that_claim_too_much_are_not_decompressed() {
        let data = |claims| page(false, claims, 1, 0);
        assert_eq!(checked(&[[data(100), data(50)].concat()]), Ok(150));
        assert_eq!(checked(&[data(1200 << 20)]), Err(TOO_LARGE));
        // Each of them would do, all of them would not.
        assert_eq!(checked(&vec![data(200 << 20); 32]), Err(TOO_LARGE));
        let negative = page(false, u64::MAX >> 1, 1, 0);
        assert!(checked(&[negative]).is_err());
    }

    #[test]
    fn dictionaries_have_no_more_values_than_fit() {
        assert_eq!(
            checked(&[page(true, 9, 2, 0)]),
            Ok(9 + 2 * DICTIONARY_VALUE)
        );
        assert_eq!(checked(&[page(true, 9, 1 << 30, 0)]), Err(TOO_LARGE));
    }

    #[test]
    fn encodings_with_counts_of_their_own_are_not_read() {
        for delta in [5, 6, 7, 9] {
            assert_eq!(
                checked(&[page(false, 9, 1, delta)]),
                Err(NOT_READ),
                "{delta}"
            );
        }
        for by_dictionary in [2, 8] {
            let data = page(false, 9, 1, by_dictionary);
            assert_eq!(checked(std::slice::from_ref(&data)), Err(NOT_READ));
            let both = [page(true, 9, 1, 0), data].concat();
            assert!(checked(&[both]).is_ok(), "{by_dictionary}");
        }
        let cut = &page(false, 9, 1, 0)[..9];
        assert_eq!(checked(&[cut.to_vec()]), Err(NOT_READ));
    }

    #[test]
    fn footers_have_lists_that_fit_and_columns_side_by_side() {
        let element = |children: u8| [0x55, children << 1, 0].to_vec();
        let schema = |elements: &[Vec<u8>]| {
            let mut footer = vec![0x15, 2, 0x19, (elements.len() as u8) << 4 | STRUCTURE];
            footer.extend(elements.concat());
            footer.push(0);
            footer
        };
        assert!(is_footer_sound(&schema(&[
            element(2),
            element(0),
            element(0)
        ])));
        assert!(!is_footer_sound(&schema(&[
            element(1),
            element(1),
            element(0)
        ])));
        let mut groups = vec![0x49, 0xf0 | STRUCTURE];
        groups.extend(varint(2_000_000_000));
        groups.extend([0; 8]);
        assert!(!is_footer_sound(&groups));
        let deep = vec![0x1c; 10_000];
        assert!(!is_footer_sound(&deep));
    }
}
