//! Columns whose values are exchanged while they are dumped, so that no original of them is in what is
//! written.
//!
//! | file | what |
//! |---|---|
//! | `way` | what is typed |
//! | `fits`, `constant` | which ways suit which types |
//! | `definition`, `rules` | what a table's keys, checks and joins forbid |
//! | `key` | what hashes are made with |
//! | `code` | letters of a character set |
//! | `fold` | values that a collation takes for equal |
//! | `values`, `shape`, `integers` | what is made of a value |
//! | `columns` | what is masked of a table |
//! | `row` | rows on their way to an encoder |

mod code;
mod columns;
mod constant;
mod definition;
mod fits;
mod fold;
mod integers;
mod key;
mod row;
mod rules;
mod shape;
mod values;
mod way;

pub(super) use columns::TableMask;
pub use key::MaskKey;
pub(super) use row::RowMask;

use super::table::{DumpTable, uncounted};
use crate::objects::{Generated, Objects};
use columns::ColumnMask;
use definition::Definition;
use evenkeel_op::{Error, Result};
use fits::How;
use rules::{Chosen, Site, check_joins};
use std::collections::BTreeMap;
use std::sync::Arc;
use way::Rule;

/// What fits where something else does not.
const OTHER_WAYS: &str = "choose another way: null fits where NULL does, fixed:TEXT where the text is a value of the type";

/// Which columns are masked, and how.
#[derive(Debug, Clone, Default)]
pub struct Masks {
    rules: Vec<Rule>,
    key: Option<Arc<MaskKey>>,
}

/// What was masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masked {
    /// `schema.table.column` and the way's name, in order.
    pub columns: Vec<(String, &'static str)>,
    /// Whether masks are the same in another dump with the same key; none where no key was needed.
    pub key_lasts: Option<bool>,
}

impl Masks {
    /// Reads `schema.table.column=way` for each; `key` is the kept one.
    ///
    /// Errors: `Usage` for what is no pattern or no way; `Failed` where no key can be drawn.
    pub fn new(rules: &[String], key: Option<MaskKey>) -> Result<Self> {
        let rules = rules.iter().map(|text| Rule::read(text));
        let rules: Vec<Rule> = rules.collect::<Result<_>>()?;
        let key = match key {
            Some(key) => Some(key),
            None if rules.is_empty() => None,
            None => Some(MaskKey::random()?),
        };
        Ok(Self {
            rules,
            key: key.map(Arc::new),
        })
    }

    /// Returns whether nothing is masked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether another run masks alike.
    #[must_use]
    pub fn can_be_repeated(&self) -> bool {
        !self.is_keyed() || self.key.as_ref().is_some_and(|key| key.lasts())
    }

    fn is_keyed(&self) -> bool {
        self.rules.iter().any(|rule| rule.way.is_keyed())
    }

    /// Finds the columns, and gives the tables what is masked of them.
    ///
    /// Errors: `Usage` where a pattern matches no column, or a way does not suit one.
    pub(super) fn apply(&self, objects: &Objects, tables: &mut [DumpTable]) -> Result<()> {
        let Some(key) = self.key.as_ref().filter(|_| !self.is_empty()) else {
            return Ok(());
        };
        let sites = self.sites(objects)?;
        for site in &sites {
            site.check()?;
        }
        check_joins(&sites)?;
        for table in tables {
            let mut sites = sites.iter();
            let site = sites.find(|site| site.schema == table.schema && site.name == table.name);
            let Some(site) = site.filter(|site| !site.chosen.is_empty()) else {
                continue;
            };
            let masked = table.columns.iter().map(|column| {
                let one = site.chosen.get(&column.name.to_lowercase());
                one.map(|one| ColumnMask {
                    way: one.rule.way.name(),
                    how: one.how.clone(),
                })
            });
            table.set_mask(TableMask {
                columns: masked.collect(),
                key: Arc::clone(key),
            });
        }
        Ok(())
    }

    fn sites(&self, objects: &Objects) -> Result<Vec<Site<'_>>> {
        let mut used = vec![false; self.rules.len()];
        let mut sites = Vec::new();
        for database in &objects.databases {
            for table in &database.tables {
                let mut site = Site {
                    schema: database.name.clone(),
                    name: table.name.clone(),
                    columns: table.columns.iter().map(|one| one.name.clone()).collect(),
                    definition: Definition::of(&table.create).ok_or_else(|| {
                        let shown = format!("{}.{}", database.name, table.name);
                        Error::usage(format!(
                            "evenkeel does not understand the definition of {shown}, so it cannot mask anything in that table"
                        ))
                        .hint("leave it out with --exclude")
                    })?,
                    chosen: BTreeMap::new(),
                    computed: Vec::new(),
                };
                for column in &table.columns {
                    let shown = format!("{}.{}.{}", database.name, table.name, column.name);
                    let Some(rule) = self.rule(&shown, &mut used)? else {
                        continue;
                    };
                    let name = column.name.to_lowercase();
                    if column.generated != Generated::No {
                        site.computed.push((name, rule));
                        continue;
                    }
                    let how = How::of(&rule.way, column).map_err(|why| {
                        Error::usage(format!("{rule}: {shown} {why}")).hint(OTHER_WAYS)
                    })?;
                    site.chosen.insert(name, Chosen { rule, how });
                }
                sites.push(site);
            }
        }
        match self.rules.iter().zip(used).find(|(_, used)| !used) {
            Some((rule, _)) => Err(
                Error::usage(format!("{rule} matches no column of this dump")).hint(
                    "a pattern must match the complete SCHEMA.TABLE.COLUMN: 'shop\\.users\\.email'",
                ),
            ),
            None => Ok(sites),
        }
    }

    /// Returns the rule for a column.
    fn rule(&self, shown: &str, used: &mut [bool]) -> Result<Option<&Rule>> {
        let mut found: Option<&Rule> = None;
        for (rule, used) in self.rules.iter().zip(used) {
            if !rule.columns.is_match(shown) {
                continue;
            }
            *used = true;
            match found {
                Some(first) if first.way != rule.way => {
                    return Err(
                        Error::usage(format!("{first} and {rule} both match {shown}"))
                            .hint("choose one way for each column"),
                    );
                }
                _ => found = Some(rule),
            }
        }
        Ok(found)
    }

    /// Takes out of tables' texts what tells of masked values: where the next automatic number is.
    pub(super) fn clean(&self, objects: &mut Objects, tables: &[DumpTable]) {
        for table in tables {
            let Some(mask) = &table.mask else { continue };
            let columns = table.columns.iter().zip(&mask.columns);
            let counts = |(column, one): (&crate::objects::Column, &Option<ColumnMask>)| {
                column.auto_increment && one.is_some()
            };
            if !columns.into_iter().any(counts) {
                continue;
            }
            let databases = objects.databases.iter_mut();
            let all = databases.filter(|database| database.name == table.schema);
            for one in all.flat_map(|database| &mut database.tables) {
                if one.name == table.name {
                    one.create = uncounted(&one.create);
                }
            }
        }
    }

    /// Says what is masked; `None` is nothing.
    pub(super) fn reported(&self, tables: &[DumpTable]) -> Option<Masked> {
        if self.is_empty() {
            return None;
        }
        let columns = tables.iter().flat_map(|table| {
            let names = table.columns.iter().enumerate();
            names.filter_map(|(at, column)| {
                let way = table.masked_as(at)?;
                Some((format!("{}.{}", table.shown(), column.name), way))
            })
        });
        let mut columns: Vec<_> = columns.collect();
        columns.sort();
        Some(Masked {
            columns,
            key_lasts: self
                .key
                .as_ref()
                .filter(|_| self.is_keyed())
                .map(|key| key.lasts()),
        })
    }
}
