//! One page: is it whole, in its place, of a time that has been?

use super::bound::Bound;
use super::report::Severity;
use super::tally::{Raw, Tally, What};
use evenkeel_innodb::{
    ChecksumKind, PageHeader, PageKind, SpaceFormat, Verdict, Why, has_stray_bits, verify,
};

/// What pages of a file are compared with.
#[derive(Clone, Copy)]
pub(super) struct Measure<'a> {
    pub(super) format: &'a SpaceFormat,
    pub(super) bound: &'a Bound,
    /// Which file, for findings.
    pub(super) subject: usize,
}

impl Measure<'_> {
    /// Judges a page and counts it, unless it is damaged: then it says how. `page` is what there is
    /// of it, `number` its number in the tablespace, `offset` where it begins in the file.
    pub(super) fn judge(
        &self,
        page: &[u8],
        number: u32,
        offset: u64,
        tally: &mut Tally,
    ) -> Option<Raw> {
        let format = self.format;
        let verdict = verify(page, number, format);
        match verdict {
            Verdict::Empty => {
                tally.empty += 1;
                return None;
            }
            Verdict::Corrupt {
                stored,
                computed,
                why,
            } => return Some(self.bad(page, (number, offset), (stored, computed), why)),
            Verdict::Unchecked(why) if is_doublewrite(number, format) => {
                // Of any place and time.
                *tally.unchecked.entry(why).or_default() += 1;
                return None;
            }
            Verdict::Unchecked(_) | Verdict::Good => {}
        }
        let lsn = lsn(page);
        if let Some(end) = self.bound.is_passed_by(lsn) {
            return Some(Raw {
                expected: Some(end),
                found: Some(lsn),
                ..self.raw(Severity::Damage, page, (number, offset), What::FutureLsn)
            });
        }
        match verdict {
            Verdict::Unchecked(why) => *tally.unchecked.entry(why).or_default() += 1,
            _ => tally.checked += 1,
        }
        tally.kinds[PageKind::of(page, format).number()] += 1;
        tally.lsn_max = tally.lsn_max.max(lsn);
        has_stray_bits(page, number, format)
            .then(|| self.raw(Severity::Notice, page, (number, offset), What::StrayBits))
    }

    fn bad(&self, page: &[u8], at: (u32, u64), sums: (u32, u32), why: Why) -> Raw {
        let (stored, computed) = sums;
        let number = |value: u32| Some(u64::from(value));
        let (what, expected, found) = match why {
            Why::Checksum => (What::Checksum, number(computed), number(stored)),
            Why::TornLsn => {
                let behind = match self.format.checksum {
                    ChecksumKind::FullCrc32 => 8,
                    ChecksumKind::Classic => 4,
                };
                let at = page.len() - behind;
                let tail = page[at..at + 4].iter();
                let tail = tail.fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
                (What::Torn, Some(lsn(page) & 0xffff_ffff), Some(tail))
            }
            Why::PageNumber(found) => (What::PageNumber, number(at.0), number(found)),
            Why::SpaceId(found) => (What::SpaceId, number(self.format.space_id), number(found)),
            Why::Header => (What::Header, None, None),
            Why::Length(got) => (
                What::CutOff,
                Some(self.format.physical_size() as u64),
                Some(got as u64),
            ),
        };
        Raw {
            expected,
            found,
            ..self.raw(Severity::Damage, page, at, what)
        }
    }

    fn raw(&self, severity: Severity, page: &[u8], at: (u32, u64), what: What) -> Raw {
        let header = PageHeader::read(page, self.format);
        Raw {
            severity,
            subject: self.subject,
            page: Some(at.0),
            offset: at.1,
            space: Some(self.format.space_id),
            what,
            expected: None,
            found: None,
            kind: header.map(|_| PageKind::of(page, self.format)),
            header,
        }
    }

    /// Describes a page that cannot be read.
    pub(super) fn unreadable(&self, number: u32, offset: u64, why: String) -> Raw {
        Raw {
            severity: Severity::Damage,
            subject: self.subject,
            page: Some(number),
            offset,
            space: Some(self.format.space_id),
            what: What::Unreadable(why),
            expected: None,
            found: None,
            header: None,
            kind: None,
        }
    }
}

fn is_doublewrite(number: u32, format: &SpaceFormat) -> bool {
    format.doublewrite.is_some_and(|area| area.contains(number))
}

/// The LSN in a page's header.
pub(super) fn lsn(page: &[u8]) -> u64 {
    page[16..24]
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
