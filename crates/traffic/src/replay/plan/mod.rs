//! From statements to steps: what each session does, after whom, and what the original came to.

mod prepared;
mod schema;

use super::access::{Access, Act, Left, NamedTable};
use super::known::Known;
use super::order::{self, At, Doing, Order, Sees, There};
use super::returns::{self, Returns};
use super::sorted::Sorted;
use super::spool::{Spool, Spooled, StepOffset, Window};
use super::step::{Did, Step, What};
use crate::digest::fingerprint::{Mode, Rules, Shapes};
use crate::digest::{self, Digest, Summary};
use crate::{Command, Filter, Statement};
use evenkeel_op::Result;
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

/// Classes are told apart up to so many; all beyond count together.
const CLASSES_MAX: usize = 1 << 17;
/// Which of two packets came first is not sure if their times are closer: captures have microseconds, and are written
/// by several processors.
const UNSURE_NS: i64 = 10_000;
/// What stands for a password in a captured statement.
const HIDDEN: &[u8] = b"'***'";

/// What is to be replayed.
#[derive(Debug)]
pub struct Choice {
    /// Which statements.
    pub filter: Filter,
    /// How the server read them.
    pub mode: Mode,
    /// Whether it is known to the microsecond when a statement was sent and done.
    pub is_exact: bool,
    /// Whether a statement without an error is known to have succeeded.
    pub knows_errors: bool,
    /// Leave out what changes data.
    pub read_only: bool,
    /// Default schemas that have another name where the replay runs.
    pub schemas: HashMap<String, String>,
    /// The default schema of sessions of which the capture knows none: they were open before it began.
    pub default_schema: Option<String>,
    /// Statements of this long from the beginning are not counted: they warm the server up.
    pub warm_up: Duration,
    /// How many classes are kept.
    pub classes: usize,
    /// Compare what the returned rows contain.
    pub compare_results: bool,
}

/// What one session does.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) first: StepOffset,
    /// When its first step was captured.
    pub(super) from_ns: i64,
    /// From when to when it was open, in the order in which things took effect.
    pub(super) window: (i64, i64),
    pub(super) statements: u64,
}

/// What is to be done.
#[derive(Debug)]
pub struct Plan {
    /// In the order in which they begin.
    pub(super) sessions: Vec<Session>,
    pub(super) steps: Spooled,
    /// For each class of the steps, its place among the summary's classes.
    pub(super) classes: Vec<Option<usize>>,
    /// What the statements came to when they were captured.
    pub original: Summary,
    /// Statements that are replayed.
    pub statements: u64,
    /// Of these, how many are prepared statements that run with their values, and how many of them run as text.
    pub prepared: [u64; 2],
    /// Those that are not, and why.
    pub left: BTreeMap<Left, u64>,
    /// How often a statement waits for one of another session.
    pub waits: u64,
    /// Default schemas that got another name.
    pub mapped: BTreeSet<String>,
    /// When the first statement was captured, in nanoseconds since 1970.
    pub from_ns: i64,
    /// When the last one was done.
    pub to_ns: i64,
    pub(super) mode: Mode,
    pub(super) is_exact: bool,
    concurrent: HashSet<At, RandomState>,
}

/// What is known of a session while its steps come.
#[derive(Debug)]
struct Open {
    number: u32,
    first: StepOffset,
    last: StepOffset,
    steps: u32,
    statements: u64,
    from_ns: i64,
    window: (i64, i64),
    schema: Option<String>,
    autocommit: bool,
    in_transaction: bool,
    may_have_locks: bool,
    /// When the transaction's first statement was sent.
    begun_ns: i64,
    /// Tables changed since the transaction began, and what the first change had waited for.
    changed: BTreeMap<u64, Sees>,
    changed_anything: bool,
    /// The statements that are prepared, and whether they only read.
    prepared: HashMap<u32, bool, RandomState>,
}

/// Makes a plan.
#[derive(Debug)]
pub struct Planner {
    choice: Choice,
    spool: Spool,
    digest: Digest,
    shapes: Shapes<Known>,
    open: HashMap<u64, Open, RandomState>,
    /// Those that ended, by their number.
    sessions: Vec<Option<Session>>,
    classes: HashMap<String, u32, RandomState>,
    sorted: Sorted,
    order: Order,
    left: BTreeMap<Left, u64>,
    statements: u64,
    prepared: [u64; 2],
    waits: u64,
    span_ns: Option<(i64, i64)>,
    /// Statements beside which a change of what they read committed.
    concurrent: HashSet<At, RandomState>,
    /// Default schemas that got another name.
    mapped: BTreeSet<String>,
    /// When the last of all took effect.
    clock_ns: i64,
}

impl Planner {
    /// Begins a plan; the statements go to a file without a name in `tmpdir`.
    ///
    /// # Errors
    ///
    /// `Failed` where none can be made.
    pub fn new(choice: Choice, tmpdir: &Path) -> Result<Self> {
        let options = digest::Options {
            classes: choice.classes,
            rules: Rules::Evenkeel,
            mode: choice.mode,
            filter: Filter::default(),
        };
        Ok(Self {
            spool: Spool::new(tmpdir)?,
            digest: Digest::new(options),
            shapes: Shapes::default(),
            choice,
            open: HashMap::default(),
            sessions: Vec::new(),
            classes: HashMap::default(),
            sorted: Sorted::default(),
            order: Order::default(),
            left: BTreeMap::new(),
            statements: 0,
            prepared: [0; 2],
            waits: 0,
            span_ns: None,
            concurrent: HashSet::default(),
            mapped: BTreeSet::new(),
            clock_ns: i64::MIN,
        })
    }

    /// Adds a statement. Those of one session come in their order; all come about when they were done.
    ///
    /// # Errors
    ///
    /// `Failed` where there is no space for it.
    pub fn add(&mut self, one: &Statement<'_>) -> Result<()> {
        if one.command == Command::Prepare && one.statement.is_none() || !self.is_wanted(one) {
            return Ok(());
        }
        let is_statement = matches!(one.command, Command::Query | Command::Execute);
        let (mode, is_asked) = (self.choice.mode, self.choice.read_only);
        let read = || Known::of(one.sql, mode, is_asked);
        let known = is_statement.then(|| self.shapes.get(one.sql, read));
        if !self.choice.is_exact {
            let effect_ns = self.clock_ns.saturating_add(1).max(one.at_ns);
            return self.take(one, known.as_deref(), effect_ns);
        }
        let is_commit = known
            .as_ref()
            .is_some_and(|it| it.access.act == Act::Commit);
        let effect_ns = if is_commit { one.at_ns } else { done_ns(one) };
        self.sorted.push(one, known, effect_ns);
        self.take_sorted(false)
    }

    fn is_wanted(&self, one: &Statement<'_>) -> bool {
        let is_edge = matches!(one.command, Command::Connect | Command::Quit);
        is_edge || self.choice.filter.keeps(one)
    }

    fn take_sorted(&mut self, is_end: bool) -> Result<()> {
        while let Some(kept) = self.sorted.pop(is_end) {
            self.take(&kept.statement(), kept.known.as_deref(), kept.effect_ns)?;
        }
        Ok(())
    }

    /// Takes a statement that comes in its place.
    fn take(&mut self, one: &Statement<'_>, known: Option<&Known>, effect_ns: i64) -> Result<()> {
        self.clock_ns = self.clock_ns.max(effect_ns);
        if let Some(known) = known {
            return self.take_statement(one, known, effect_ns);
        }
        match one.command {
            // A number that is used again: the session before it ended unseen.
            Command::Connect | Command::Quit => self.quit(one),
            Command::Prepare => self.prepare(one),
            Command::Other(0x19) => self.forget_prepared(one),
            // RESET_CONNECTION and CHANGE_USER.
            Command::Other(31 | 17) => self.reset(one),
            // The next statement's default schema says the same, and several statements in one are allowed anyway; the
            // others leave nothing behind.
            Command::Other(2 | 0x0e | 0x18 | 0x1a | 0x1b) => Ok(()),
            _ => {
                self.leave(match one.is_unseen {
                    true => Left::Unseen,
                    false => Left::Command,
                });
                Ok(())
            }
        }
    }

    fn take_statement(&mut self, one: &Statement<'_>, known: &Known, effect_ns: i64) -> Result<()> {
        if let Some(left) = self.reason_to_leave(one, known) {
            self.leave(left);
            return Ok(());
        }
        let access = &known.access;
        match access.uses.as_ref().filter(|_| one.error.is_none()) {
            Some(name) => {
                let name = String::from_utf8_lossy(name).into_owned();
                self.set_schema(one, &name)
            }
            None => {
                self.follow_schema(one)?;
                self.statement(one, access, effect_ns)
            }
        }
    }

    fn leave(&mut self, left: Left) {
        *self.left.entry(left).or_default() += 1;
    }

    fn reason_to_leave(&self, one: &Statement<'_>, known: &Known) -> Option<Left> {
        if let Act::Left(left) = known.access.act {
            return Some(left);
        }
        if one.is_cut() {
            return Some(Left::Cut);
        }
        if one.is_unseen {
            return Some(Left::Unseen);
        }
        if memchr::memmem::find(one.sql, HIDDEN).is_some() {
            return Some(Left::Secret);
        }
        let only_reads = self.is_prepared(one).unwrap_or(known.only_reads);
        (self.choice.read_only && !only_reads).then_some(Left::Writes)
    }

    fn session(&mut self, one: &Statement<'_>) -> &mut Open {
        let begun = if self.choice.is_exact {
            one.at_ns
        } else {
            self.clock_ns
        };
        let window = (begun, begun);
        let sessions = &mut self.sessions;
        self.open.entry(one.connection).or_insert_with(|| {
            sessions.push(None);
            Open {
                number: (sessions.len() - 1) as u32,
                first: 0,
                last: 0,
                steps: 0,
                statements: 0,
                from_ns: one.at_ns,
                window,
                schema: None,
                autocommit: true,
                in_transaction: false,
                may_have_locks: false,
                begun_ns: 0,
                changed: BTreeMap::new(),
                changed_anything: false,
                prepared: HashMap::default(),
            }
        })
    }

    /// Adds a step to its session.
    fn step(&mut self, one: &Statement<'_>, step: &Step, text: &[u8]) -> Result<()> {
        let to_ns = if self.choice.is_exact {
            done_ns(one)
        } else {
            self.clock_ns
        };
        let open = self.session(one);
        let before = (open.steps > 0).then_some(open.last);
        let values = one.values.filter(|_| step.what == What::Execute);
        let both = [text, values.unwrap_or_default()];
        let place = self.spool.add(before, step, both)?;
        let open = self.session(one);
        if before.is_none() {
            open.first = place;
        }
        open.last = place;
        open.steps += 1;
        open.window.1 = open.window.1.max(to_ns);
        open.statements += u64::from(step.what.is_statement());
        Ok(())
    }

    fn reset(&mut self, one: &Statement<'_>) -> Result<()> {
        let open = self.session(one);
        open.autocommit = true;
        open.in_transaction = false;
        open.changed.clear();
        open.prepared.clear();
        let step = Step {
            at_ns: one.at_ns,
            what: What::Reset,
            ..Step::default()
        };
        self.step(one, &step, &[])
    }

    fn quit(&mut self, one: &Statement<'_>) -> Result<()> {
        if !self.open.contains_key(&one.connection) {
            return Ok(());
        }
        let step = Step {
            at_ns: one.at_ns,
            what: What::Quit,
            ..Step::default()
        };
        self.step(one, &step, &[])?;
        if let Some(open) = self.open.remove(&one.connection) {
            self.close(open);
        }
        Ok(())
    }

    fn close(&mut self, open: Open) {
        self.order.forget(open.number);
        self.sessions[open.number as usize] = Some(Session {
            first: open.first,
            from_ns: open.from_ns,
            window: open.window,
            statements: open.statements,
        });
    }

    fn statement(&mut self, one: &Statement<'_>, access: &Access, effect_ns: i64) -> Result<()> {
        let class = self.class(one);
        let is_snapshot = self.choice.is_exact && access.act == Act::Read;
        let known_ns = match self.choice.is_exact {
            true => done_ns(one),
            false => effect_ns,
        };
        let open = self.session(one);
        let in_transaction = open.in_transaction || open.may_have_locks;
        let doing = Doing {
            by: (open.number, open.steps),
            sees: match is_snapshot {
                true => Sees::Known(one.at_ns),
                false => Sees::Effects(effect_ns),
            },
            there: There {
                effect_ns,
                known_ns,
            },
        };
        let tables = keys(access, open.schema.as_deref());
        let committed: Vec<u64> = match access.act {
            Act::Commit | Act::Begin => open.changed.keys().copied().collect(),
            _ => Vec::new(),
        };
        let mut after = Vec::new();
        for table in committed {
            self.order.waits_for_readers(table, doing, &mut after);
        }
        match access.act {
            Act::Anything => self.order.waits_for_all(doing, &mut after),
            _ => {
                for (table, is_written) in &tables {
                    self.order.waits(*table, *is_written, doing, &mut after);
                }
            }
        }
        order::tidy(&mut after);
        let step = Step {
            at_ns: one.at_ns,
            what: self.how(one),
            class,
            in_transaction,
            after,
            did: Did {
                total_ns: one.total_ns,
                rows: one.rows_sent,
                affected: one.rows_affected,
                error: one.error,
                is_error_known: self.choice.knows_errors || one.error.is_some(),
                checksum: one.checksum,
                returns: self.returns(one, access),
            },
            statement: one.statement.unwrap_or(0),
            ..Step::default()
        };
        self.step(one, &step, one.sql)?;
        self.statements += 1;
        if one.command == Command::Execute {
            self.prepared[usize::from(step.what == What::Statement)] += 1;
        }
        self.waits += u64::from(!step.after.is_empty());
        // The first entries of a log may have no time: they come with the first that has one.
        if one.at_ns > 0 {
            let (from, to) = self.span_ns.unwrap_or((one.at_ns, one.at_ns));
            self.span_ns = Some((from.min(one.at_ns), to.max(done_ns(one))));
        }
        self.note(one, access, &tables, doing);
        Ok(())
    }

    /// Returns what can be expected of the rows that a statement returns.
    fn returns(&self, one: &Statement<'_>, access: &Access) -> Returns {
        let is_system = |schema: &str| returns::is_system(schema.as_bytes());
        match self.choice.compare_results {
            false => Returns::Ignored,
            true if one.schema.is_some_and(is_system) => Returns::OfServer,
            true => access.returns,
        }
    }

    fn class(&mut self, one: &Statement<'_>) -> u32 {
        let begun = self.span_ns.map_or(one.at_ns, |(from, _)| from);
        let after = u64::try_from(one.at_ns.saturating_sub(begun)).unwrap_or(0);
        if Duration::from_nanos(after) < self.choice.warm_up {
            return u32::MAX;
        }
        let Some(id) = self.digest.add(one) else {
            return u32::MAX;
        };
        if let Some(class) = self.classes.get(id) {
            return *class;
        }
        if self.classes.len() >= CLASSES_MAX {
            return u32::MAX;
        }
        let class = self.classes.len() as u32;
        self.classes.insert(id.to_owned(), class);
        class
    }

    /// Takes note of what a statement did, for those that come later.
    fn note(&mut self, one: &Statement<'_>, access: &Access, tables: &[(u64, bool)], doing: Doing) {
        self.order.did(doing);
        let is_compared = self.choice.is_exact && self.choice.compare_results;
        let Self {
            open,
            order,
            concurrent,
            ..
        } = self;
        let Some(open) = open.get_mut(&one.connection) else {
            return;
        };
        let number = open.number;
        // In a transaction, a statement may read as of the transaction's beginning.
        let began_ns = match open.in_transaction {
            true => open.begun_ns,
            false => one.at_ns,
        };
        let since_ns = began_ns.saturating_sub(UNSURE_NS);
        let committed_ns = one.at_ns.saturating_sub(UNSURE_NS);
        for (table, is_written) in tables {
            if *is_written {
                open.changed.entry(*table).or_insert(doing.sees);
            } else {
                order.read(*table, doing);
                if is_compared && order.is_changed_since(*table, number, since_ns) {
                    concurrent.insert(doing.by);
                }
            }
        }
        open.changed_anything |= access.act == Act::Anything;
        let was_open = open.in_transaction;
        open.in_transaction = match access.act {
            Act::Begin => true,
            Act::Commit | Act::Rollback | Act::Define => false,
            Act::Read | Act::Write | Act::Anything => was_open || !open.autocommit,
            _ => was_open,
        };
        open.in_transaction = access.opens.unwrap_or(open.in_transaction);
        open.may_have_locks = access.locks.unwrap_or(open.may_have_locks);
        if let Act::Autocommit(is_on) = access.act {
            open.in_transaction &= !is_on;
            open.autocommit = is_on;
        }
        if access.act == Act::Rollback {
            open.changed.clear();
        }
        if !was_open && open.in_transaction {
            open.begun_ns = one.at_ns;
        }
        let commits = !open.in_transaction || access.act == Act::Begin;
        if !commits {
            return;
        }
        for (table, sees) in std::mem::take(&mut open.changed) {
            if is_compared {
                concurrent.extend(order.readers_at(Some(table), number, committed_ns));
            }
            order.written(table, sees, doing);
        }
        if std::mem::take(&mut open.changed_anything) {
            if is_compared {
                concurrent.extend(order.readers_at(None, number, committed_ns));
            }
            order.changed_anything(doing);
        }
    }

    /// Ends the plan.
    ///
    /// # Errors
    ///
    /// `Failed` where there is no space for it.
    pub fn end(mut self) -> Result<Plan> {
        self.take_sorted(true)?;
        let mut open: Vec<Open> = std::mem::take(&mut self.open).into_values().collect();
        open.sort_unstable_by_key(|open| open.number);
        for open in open {
            self.close(open);
        }
        let original = self.digest.end();
        let places: HashMap<&str, usize> = original
            .classes
            .iter()
            .enumerate()
            .map(|(place, class)| (class.id.as_str(), place))
            .collect();
        let mut classes = vec![None; self.classes.len()];
        for (id, class) in &self.classes {
            classes[*class as usize] = places.get(id.as_str()).copied();
        }
        let (from_ns, to_ns) = self.span_ns.unwrap_or_default();
        Ok(Plan {
            sessions: self.sessions.into_iter().flatten().collect(),
            steps: self.spool.end()?,
            classes,
            original,
            statements: self.statements,
            prepared: self.prepared,
            left: self.left,
            waits: self.waits,
            mapped: self.mapped,
            from_ns,
            to_ns,
            mode: self.choice.mode,
            is_exact: self.choice.is_exact,
            concurrent: self.concurrent,
        })
    }
}

/// When a statement was done, as far as that is known: else when it came.
fn done_ns(one: &Statement<'_>) -> i64 {
    let took = i64::try_from(one.total_ns.unwrap_or(0)).unwrap_or(i64::MAX);
    one.at_ns.saturating_add(took)
}

/// Returns the tables that a statement names, as numbers, and whether it changes them.
fn keys(access: &Access, schema: Option<&str>) -> Vec<(u64, bool)> {
    let tables = access.tables.iter();
    tables
        .map(|table| (key(table, schema), table.is_written))
        .collect()
}

/// Returns a number that stands for a table. Letters of either case are the same: who waits too often waits in vain,
/// who does not wait errs.
fn key(table: &NamedTable, schema: Option<&str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let schema = table.schema.as_deref().or(schema.map(str::as_bytes));
    schema.map(<[u8]>::to_ascii_lowercase).hash(&mut hasher);
    table.name.to_ascii_lowercase().hash(&mut hasher);
    hasher.finish()
}

impl Plan {
    /// Says how many statements are left out, and why.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        let left = self.left.iter();
        left.map(|(left, count)| format!("{count} {}", left.reason()))
            .collect()
    }

    /// Whether a change of what a session's step reads committed beside it.
    pub(super) fn is_concurrent(&self, session: u32, step: u32) -> bool {
        self.concurrent.contains(&(session, step))
    }

    /// Returns how many sessions there are.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Returns how many sessions were open at a time at most when they were captured.
    #[must_use]
    pub fn most_at_a_time(&self) -> usize {
        let edges = self.sessions.iter();
        let mut edges: Vec<(i64, i32)> = edges
            .flat_map(|session| [(session.window.0, 1), (session.window.1, -1)])
            .collect();
        edges.sort_unstable_by_key(|(at, change)| (*at, -change));
        let mut open = 0;
        let counts = edges.iter().map(|(_, change)| {
            open += change;
            open
        });
        usize::try_from(counts.max().unwrap_or(0)).unwrap_or(0)
    }

    /// Returns the texts of a session's statements, for checks.
    ///
    /// # Errors
    ///
    /// `Failed` where the temporary file cannot be read.
    #[doc(hidden)]
    pub fn texts_of(&self, session: usize) -> Result<Vec<Vec<u8>>> {
        let steps = self.all_of(session)?;
        let statements = steps.filter(|step| step.what.is_statement());
        Ok(statements.map(|step| step.text).collect())
    }

    /// Returns the default schemas that a session takes one after the other, for checks. Errors as [`Plan::texts_of`].
    #[doc(hidden)]
    pub fn schemas_of(&self, session: usize) -> Result<Vec<String>> {
        let steps = self.all_of(session)?;
        let schemas = steps.filter(|step| step.what == What::Schema);
        Ok(schemas
            .map(|step| String::from_utf8_lossy(&step.text).into_owned())
            .collect())
    }

    fn all_of(&self, session: usize) -> Result<impl Iterator<Item = Step>> {
        let (mut all, mut window) = (Vec::new(), Window::default());
        let mut next = self.sessions.get(session).map(|session| session.first);
        while let Some(place) = next {
            let mut step = Step::default();
            next = self.steps.read(place, &mut step, &mut window)?;
            all.push(step);
        }
        Ok(all.into_iter())
    }
}
