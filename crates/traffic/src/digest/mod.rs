//! What statements sum up to: classes of those that differ in their values only.
//!
//! Memory is the same for a thousand statements and a thousand million: each class has sums, a histogram, a time
//! series of so many intervals and its slowest statement. Of classes there are at most twice as many as asked for;
//! then those with the least time go to the others.

mod change;
mod class;
mod explain;
pub mod fingerprint;
mod merged;
mod names;
mod page;
mod series;

pub use change::{Change, Changed, Earlier, changes};
pub use class::{Class, Sample};
pub use explain::{ExplainOptions, Explained, Explanations, Plan, PlanTable, explain};
pub use merged::merged;
pub use names::Names;
pub use page::{as_often, page};
pub(crate) use page::{changed_part, label, short};
pub(crate) use series::Grid;
pub use series::{Bucket, INTERVALS, Series};

use crate::{Command, Filter, Statement};
use fingerprint::{Fingerprint, Mode, Rules, Shapes, fingerprint, prepared};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;

const SECOND: i64 = 1_000_000_000;

/// How statements should be summed up.
#[derive(Debug)]
pub struct Options {
    /// How many classes are kept; the others are counted together.
    pub classes: usize,
    /// By which rules they are alike.
    pub rules: Rules,
    /// How the server reads statements.
    pub mode: Mode,
    /// Which are counted at all.
    pub filter: Filter,
}

/// Sums of statements.
#[derive(Debug)]
pub struct Digest {
    options: Options,
    grid: series::Grid,
    shapes: Shapes<Fingerprint>,
    classes: HashMap<String, Class, RandomState>,
    /// All that were counted, of whatever class.
    total: Class,
    /// Those whose class was not kept.
    others: Class,
    folded: u64,
    left_out: u64,
}

/// What came out.
#[derive(Debug)]
pub struct Summary {
    /// The classes kept, those with the most time first.
    pub classes: Vec<Class>,
    /// All statements that were counted.
    pub total: Class,
    /// Those of classes that were not kept.
    pub others: Class,
    /// How many times a class was given to the others.
    pub folded: u64,
    /// Statements that the filter left out.
    pub left_out: u64,
    /// When the first interval of the series begins, in nanoseconds since 1970.
    pub series_from_ns: i64,
    /// How long each is, in nanoseconds.
    pub series_width_ns: i64,
}

/// What a statement counts as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// What it has in common with the others of its class.
    pub fingerprint: Arc<Fingerprint>,
    /// It prepares a statement, which runs later.
    pub is_prepare: bool,
    /// It is SQL's `PREPARE`; the class is that of the statement within.
    pub is_inner: bool,
}

/// Whether a statement is counted: sessions that begin and end, and commands without a text, are not.
#[must_use]
pub fn is_counted(statement: &Statement<'_>) -> bool {
    let is_bare = matches!(statement.command, Command::Other(_)) && statement.sql.is_empty();
    !is_bare && !matches!(statement.command, Command::Connect | Command::Quit)
}

impl Counted {
    /// Returns what a statement counts as that is counted.
    #[must_use]
    pub fn of(statement: &Statement<'_>, rules: Rules, mode: Mode) -> Self {
        Self::by(statement, rules, mode, &mut Shapes::default())
    }

    /// The same for many, all by these rules in this mode; `shapes` is for the caller to keep.
    pub(crate) fn by(
        statement: &Statement<'_>,
        rules: Rules,
        mode: Mode,
        shapes: &mut Shapes<Fingerprint>,
    ) -> Self {
        let inner = match rules {
            Rules::Evenkeel => prepared(statement.sql, mode),
            Rules::Percona => None,
        };
        let sql = inner.as_deref().unwrap_or(statement.sql);
        let read = || fingerprint(sql, statement.is_cut(), rules, mode);
        // By Percona's rules, what is in a string may count.
        let fingerprint = match statement.is_cut() || rules == Rules::Percona {
            true => Arc::new(read()),
            false => shapes.get(sql, read),
        };
        Self {
            fingerprint,
            is_prepare: inner.is_some() || statement.command == Command::Prepare,
            is_inner: inner.is_some(),
        }
    }
}

impl Digest {
    /// Begins with nothing.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            grid: series::Grid::default(),
            shapes: Shapes::default(),
            classes: HashMap::default(),
            total: Class::default(),
            others: Class::default(),
            folded: 0,
            left_out: 0,
        }
    }

    /// Counts a statement, and returns its class's identifier. Sessions that begin
    /// and end, and commands without a text, are no statements.
    pub fn add(&mut self, statement: &Statement<'_>) -> Option<&str> {
        if !is_counted(statement) {
            return None;
        }
        if !self.options.filter.keeps(statement) {
            self.left_out += 1;
            return None;
        }
        let mode = self.options.mode;
        let rules = self.options.rules;
        let Counted {
            fingerprint: print,
            is_prepare,
            ..
        } = Counted::by(statement, rules, mode, &mut self.shapes);
        if self.grid.reach(statement.at_ns) {
            let classes = self.classes.values_mut();
            for class in classes.chain([&mut self.total, &mut self.others]) {
                class.series.follow(&self.grid);
            }
        }
        let slot = self.grid.slot(statement.at_ns);
        self.total.add(statement, is_prepare, slot, mode);
        let is_full = self.classes.len() >= self.options.classes.saturating_mul(2).max(2);
        if is_full && !self.classes.contains_key(&print.id) {
            self.fold();
        }
        if !self.classes.contains_key(&print.id) {
            let class = Class::of(Fingerprint::clone(&print), &self.grid);
            self.classes.insert(print.id.clone(), class);
        }
        let class = self.classes.get_mut(&print.id)?;
        class.add(statement, is_prepare, slot, mode);
        Some(&class.id)
    }

    /// Gives the classes with the least time to the others.
    fn fold(&mut self) {
        let mut all: Vec<Class> = self.classes.drain().map(|(_, class)| class).collect();
        all.sort_by(Class::by_time);
        for class in all.drain(all.len().min(self.options.classes.max(1))..) {
            self.folded += 1;
            self.others.merge(&class);
        }
        self.classes = all
            .into_iter()
            .map(|class| (class.id.clone(), class))
            .collect();
    }

    /// Returns what came out.
    #[must_use]
    pub fn end(mut self) -> Summary {
        if self.classes.len() > self.options.classes {
            self.fold();
        }
        let mut classes: Vec<Class> = self.classes.into_values().collect();
        classes.sort_by(Class::by_time);
        Summary {
            classes,
            total: self.total,
            others: self.others,
            folded: self.folded,
            left_out: self.left_out,
            series_from_ns: self.grid.from_ns,
            series_width_ns: self.grid.width_ns,
        }
    }
}

impl Summary {
    /// Returns for how long statements came, in seconds: from the first to the last, at least a second. Of times in whole
    /// seconds, the last second counts as well: what is cut off of the last time is up to that.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let (first, last) = (self.total.first_ns, self.total.last_ns);
        let is_in_seconds = first <= last && [first, last].iter().all(|at| at % SECOND == 0);
        let cut_off = if is_in_seconds { 1.0 } else { 0.0 };
        (last.saturating_sub(first) as f64 / 1e9 + cut_off).max(1.0)
    }
}
