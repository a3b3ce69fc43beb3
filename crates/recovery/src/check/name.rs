//! Which table and index a damaged page is of, and what would repair it.

use super::copies::Copies;
use super::pages::Pages;
use super::report::{Finding, GoodCopy};
use super::survey::{CheckContext, FileLocation, Subject};
use super::tally::{Raw, What};
use super::walk;
use evenkeel_innodb::names::{self, IndexRow, Names, PageName, TableName, sdi, system};
use evenkeel_innodb::{PageHeader, PageKind};
use evenkeel_op::{Result, units};
use evenkeel_server::abilities::Abilities;
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;

/// Gives findings their names. `copies` are those of the findings, in their order.
pub(super) fn name(
    raws: &[Raw],
    copies: &[Copies],
    context: &CheckContext,
    notes: &mut Vec<String>,
) -> Vec<Finding> {
    let mut names = match raws.is_empty() {
        true => Names::default(),
        false => dictionary(context, notes),
    };
    let mut findings = Vec::new();
    let mut space: Option<(usize, Space)> = None;
    for (raw, copies) in raws.iter().zip(copies) {
        let subject = &context.subjects[raw.subject];
        if space.as_ref().is_none_or(|(of, _)| *of != raw.subject) {
            let read = Space::read(context, subject);
            names.add(read.dictionary.iter().cloned());
            space = Some((raw.subject, read));
        }
        if let Some((_, space)) = &space {
            findings.push(finding(raw, copies, subject, space, &names));
        }
    }
    findings
}

/// Returns what the server calls its indexes, as far as anyone here knows.
fn dictionary(context: &CheckContext, notes: &mut Vec<String>) -> Names {
    if let Some(options) = &context.server {
        return ask(options).unwrap_or_else(|error| {
            let note = format!("the server does not name its indexes: {}", error.chain());
            notes.push(note);
            Names::default()
        });
    }
    let is_first = |subject: &&Subject| {
        let path = match &subject.place {
            FileLocation::Path(path) => path.display().to_string(),
            FileLocation::Stored(_) => subject.name.clone(),
        };
        context.page_size.is_some()
            && context
                .doublewrite
                .first()
                .is_some_and(|first| first.display().to_string() == path)
            || walk::is_system(&path) && walk::number(&path) <= 1
    };
    let first = context.subjects.iter().find(is_first);
    let pages = first.and_then(|first| Pages::open(context, first).ok().flatten());
    match pages {
        Some(pages) => Names::new(system::read(|number| pages.sound(number))),
        None => Names::default(),
    }
}

fn ask(options: &ConnectOptions) -> Result<Names> {
    let mut session = Session::open(options)?;
    let abilities = Abilities::probe(&mut session)?;
    let rows = session.rows(names::query(abilities.dictionary_in_innodb))?;
    let columns = rows.iter().map(|row| std::array::from_fn(|at| row.at(at)));
    Ok(Names::new(columns.filter_map(IndexRow::of_columns)))
}

/// What a tablespace says of itself.
#[derive(Default)]
struct Space {
    pages: Option<Pages>,
    /// MySQL 8.0's own dictionary in it.
    dictionary: Vec<IndexRow>,
    /// The index that holds the rows, in a file of one table.
    clustered: Option<u64>,
}

/// Where a table's first index has its root, without and with a dictionary before it.
const FIRST_ROOTS: [u32; 2] = [3, 4];

impl Space {
    fn read(context: &CheckContext, subject: &Subject) -> Self {
        // A file that cannot be opened any more has no more to say.
        let Some(pages) = Pages::open(context, subject).ok().flatten() else {
            return Self::default();
        };
        let dictionary = match pages.format().has_dictionary() && pages.format().zip_size.is_none()
        {
            true => sdi::of_space(|number| pages.sound(number)),
            false => Vec::new(),
        };
        let header = |number| {
            let page = pages.sound(number)?;
            Some((
                PageKind::of(&page, pages.format()),
                PageHeader::read(&page, pages.format())?,
            ))
        };
        // A table is made with the index of its rows first, and one that is added later gets
        // another page.
        let root = match header(FIRST_ROOTS[0]) {
            Some((PageKind::Dictionary, _)) => header(FIRST_ROOTS[1]),
            other => other,
        };
        let clustered = match root {
            Some((PageKind::Index, header)) if is_of_one_table(&subject.name) => header.index_id,
            _ => None,
        };
        Self {
            pages: Some(pages),
            dictionary,
            clustered,
        }
    }

    /// Whether a page beside this one on its level is of the same index: then what its damaged
    /// header says is right.
    fn agrees(&self, header: &PageHeader) -> bool {
        let Some(pages) = &self.pages else {
            return false;
        };
        [header.prev, header.next]
            .into_iter()
            .flatten()
            .any(|beside| {
                let page = pages.sound(beside);
                let beside = page.and_then(|page| PageHeader::read(&page, pages.format()));
                beside.is_some_and(|beside| beside.index_id == header.index_id)
            })
    }
}

fn is_of_one_table(file: &str) -> bool {
    TableName::of_file(file).is_some()
}

fn finding(raw: &Raw, copies: &Copies, subject: &Subject, space: &Space, names: &Names) -> Finding {
    let space_id = raw.space.unwrap_or_default();
    let said = said(raw, copies, space, names, space_id);
    let mut named = said
        .as_ref()
        .map(|said| names.describe(&subject.name, space_id, &said.header));
    let index_id = said.as_ref().and_then(|said| said.header.index_id);
    if let Some(named) = &mut named
        && named.secondary.is_none()
    {
        named.secondary = match (index_id, space.clustered) {
            _ if said
                .as_ref()
                .is_some_and(|said| said.kind == PageKind::SpatialIndex) =>
            {
                Some(true)
            }
            (Some(index), Some(clustered)) => Some(index != clustered),
            _ => None,
        };
    }
    let page_kind = said.as_ref().map(|said| said.kind).or(raw.kind);
    let kind = match named.as_ref().and_then(|named| named.secondary) {
        Some(true) => "secondary",
        Some(false) => "clustered",
        None => said.as_ref().map_or("unknown", |said| said.kind.name()),
    };
    let index = named.as_ref().and_then(|named| named.index.clone());
    let table = named.as_ref().and_then(|named| named.table.clone());
    let table = table.or_else(|| TableName::of_file(&subject.name));
    let lookup = index_id.filter(|_| index.is_none());
    let is_mysql_8 = space
        .pages
        .as_ref()
        .is_some_and(|pages| pages.format().has_dictionary());
    Finding {
        severity: raw.severity,
        file: subject.name.clone(),
        page: raw.page.map(u64::from),
        space: raw.space,
        what: raw.what.name(),
        why: why(raw),
        expected: raw.expected,
        found: raw.found,
        lsn: raw.header.map(|header| header.lsn),
        page_kind: page_kind.map(PageKind::name),
        kind,
        index_id,
        table: table.map(|table| table.to_string()),
        index,
        rebuild_sql: named.as_ref().and_then(PageName::rebuild_sql),
        lookup_sql: lookup.map(|index| lookup_sql(space_id, index, is_mysql_8)),
        copy: copies.newest.as_ref().map(|copy| GoodCopy {
            generation: copy.generation,
            lsn: copy.lsn(),
        }),
    }
}

/// What is believed of a damaged page.
struct Said {
    header: PageHeader,
    kind: PageKind,
}

/// Returns what the page is, by a good copy of it, or by its own header where something else agrees.
fn said(raw: &Raw, copies: &Copies, space: &Space, names: &Names, space_id: u32) -> Option<Said> {
    if let Some(copy) = &copies.newest {
        let header = PageHeader::read(&copy.bytes, &copy.format)?;
        return Some(Said {
            header,
            kind: PageKind::of(&copy.bytes, &copy.format),
        });
    }
    let (header, kind) = (raw.header?, raw.kind?);
    let agreed = match (&raw.what, header.index_id) {
        // It is another page that lies here.
        (What::PageNumber | What::SpaceId, _) => false,
        // The checksum is right.
        (What::FutureLsn | What::StrayBits, _) => true,
        (_, Some(index)) => {
            names.knows(space_id, index) || space.clustered == Some(index) || space.agrees(&header)
        }
        (_, None) => kind != PageKind::Unknown,
    };
    agreed.then_some(Said { header, kind })
}

fn why(raw: &Raw) -> String {
    let number = |value: Option<u64>| value.unwrap_or_default();
    let (expected, found) = (number(raw.expected), number(raw.found));
    match &raw.what {
        What::Checksum => {
            format!("the checksum does not match: stored {found:#010x}, computed {expected:#010x}")
        }
        What::Torn => "header and trailer have different LSNs: two versions in one page".to_owned(),
        What::PageNumber => {
            format!("its header says page {found}: it was written in the wrong place")
        }
        What::SpaceId => format!("its header says tablespace {found}, not {expected}"),
        What::FirstPage(why) => format!("none of its pages could be checked: {why}"),
        What::Header => "its header fields contradict each other".to_owned(),
        What::CutOff => format!("the file ends after {found} of the page's {expected} bytes"),
        What::FutureLsn => format!(
            "its LSN {found} is after the redo log's end {expected}: the page is newer than this \
             log, or the log was re-created"
        ),
        What::Unreadable(why) => format!("it cannot be read: {why}"),
        What::ShortFile => format!(
            "the file has {}, but its header says {expected}",
            units::count(found, "page")
        ),
        What::StrayBits => "bytes 26 to 33, which are unused and not checksummed, are not zero: \
             harmless, but no server writes that"
            .to_owned(),
    }
}

fn lookup_sql(space: u32, index: u64, is_mysql_8: bool) -> String {
    let prefix = if is_mysql_8 { "INNODB_" } else { "INNODB_SYS_" };
    format!(
        "SELECT t.NAME, i.NAME FROM information_schema.{prefix}INDEXES i \
         JOIN information_schema.{prefix}TABLES t ON t.TABLE_ID = i.TABLE_ID \
         WHERE i.SPACE = {space} AND i.INDEX_ID = {index}"
    )
}
