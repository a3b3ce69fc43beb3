//! Reads the file's statements in order: runs them itself, or hands them to the connections.

use super::Request;
use super::batch::{BATCH, Batch, Joined};
use super::classify::{Change, Head, Kind, Name, Verb, classify};
use super::facts::{Counter, Facts, Table};
use super::later::Later;
use super::settings::State;
use super::split::{Quoting, Splitter};
use super::values;
use super::work::{Counts, Job, Pool, is_duplicate, open};
use evenkeel_op::{Error, Progress, Result};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::Connection;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How many bytes of rows may be gathered for all tables.
const GATHERED: usize = 8 * BATCH;
/// A statement of more bytes is run from where it was read: a copy for a connection would be as much
/// memory again.
const HUGE: usize = 16 << 20;
/// How many settings of the file are remembered for connections that have not followed them.
const SETTINGS: usize = 4096;
/// What a packet holds beside a statement, and then some.
const SLACK: usize = 1024;
/// After how many bytes of the file progress is told.
const TOLD: u64 = 256 << 10;

/// Stands for all tables that are not named.
pub(super) const ALL: &str = "all";

/// What is known of a table of the file.
pub(super) struct Known {
    pub(super) name: Table,
    /// What the server says; asked anew after what may change it.
    facts: Option<Facts>,
    /// Whether the table was made by this very run.
    created: bool,
    /// The last line that rows of it were on; 0 for none.
    pub(super) last_line: u64,
    /// Rows on lines before this are there.
    done_before: u64,
    /// Whether each of its statements is there wholly or not at all, and can be told.
    pub(super) exact: bool,
    pub(super) later: Option<Later>,
}

/// The reader of the file.
pub(super) struct Driver<'a> {
    pub(super) request: &'a Request,
    progress: &'a dyn Progress,
    pub(super) pool: &'a Pool,
    /// Runs what is not spread.
    pub(super) main: Connection,
    /// Asks about tables, in a session that the file does not touch.
    asking: Session,
    quoting: Quoting,
    /// A 0 for an AUTO_INCREMENT column stands for itself.
    zero_counts: bool,
    /// Rows are checked against other tables.
    pub(super) checks: bool,
    database: Option<String>,
    numbers: HashMap<Table, usize>,
    pub(super) tables: Vec<Known>,
    pub(super) pending: BTreeMap<usize, Batch>,
    pub(super) state: State,
    /// Everything runs on the one connection from here on.
    bound: bool,
    recent: Option<(Head, usize)>,
    packet: usize,
    /// The line of the statement at hand, or of the last one.
    pub(super) line: u64,
    /// Whether a statement is at hand that has not been done or handed on.
    pub(super) at_hand: bool,
    pub(super) statements: u64,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        options: &ConnectOptions,
        request: &'a Request,
        progress: &'a dyn Progress,
        pool: &'a Pool,
    ) -> Result<Self> {
        let mut asking = Session::open(options)?;
        let packet = asking.value("SELECT @@max_allowed_packet")?;
        let packet = packet.and_then(|text| text.parse().ok());
        let mut driver = Self {
            request,
            progress,
            pool,
            main: open(options, &pool.cancel)?,
            asking,
            quoting: Quoting::default(),
            zero_counts: false,
            checks: true,
            database: None,
            numbers: HashMap::new(),
            tables: Vec::new(),
            pending: BTreeMap::new(),
            state: State::default(),
            bound: false,
            recent: None,
            packet: packet.unwrap_or(BATCH),
            line: 0,
            at_hand: false,
            statements: 0,
        };
        driver.read_modes()?;
        Ok(driver)
    }

    /// Returns how long a statement may be, in bytes.
    pub(super) fn statement_max(&self) -> usize {
        self.packet - 1
    }

    /// Returns how many tables got rows from the connections.
    pub(super) fn tables_with_rows(&self) -> u64 {
        self.tables.iter().filter(|one| one.last_line > 0).count() as u64
    }

    /// Reads the file to its end. Returns false when a connection failed.
    pub(super) fn run<R: Read>(
        &mut self,
        splitter: &mut Splitter<R>,
        read: &AtomicU64,
    ) -> Result<bool> {
        let (mut told, mut said) = (0, Instant::now());
        loop {
            self.pool.cancel.check()?;
            splitter.set_quoting(self.quoting);
            let Some(statement) = splitter.next_statement()? else {
                break;
            };
            (self.line, self.at_hand) = (statement.line, true);
            if !self.statement(statement.text)? {
                return Ok(false);
            }
            self.at_hand = false;
            let now = read.load(Ordering::Relaxed);
            if now - told >= TOLD {
                self.progress.advance(now - told);
                told = now;
            }
            if said.elapsed() >= self.request.tell_every {
                let line = self.frontier();
                self.progress.note(format!(
                    "everything before line {line} was executed; if interrupted, resume with --from-line {line}"
                ));
                said = Instant::now();
            }
        }
        self.progress.advance(read.load(Ordering::Relaxed) - told);
        // What comes from here on is not on any line.
        self.line += 1;
        if !self.flush_all()? || !self.put_off_indexes(true)? {
            return Ok(false);
        }
        self.pool.wait_all()
    }

    /// Returns the line before which everything is done.
    fn frontier(&self) -> u64 {
        let pending = self.pending.values().map(Batch::line);
        let waiting = self.pool.first_line();
        pending
            .chain(waiting)
            .min()
            .unwrap_or(self.line)
            .min(self.line)
    }

    fn statement(&mut self, text: &[u8]) -> Result<bool> {
        if let Some((head, table)) = self.recent.take_if(|(head, _)| head.begins(text)) {
            let done = self.rows(&head, table, text);
            self.recent = Some((head, table));
            return done;
        }
        let kind = classify(text, self.quoting);
        let skipped = self.line < self.request.from_line;
        match kind {
            Kind::Rows(_) | Kind::Table(..) | Kind::Binds | Kind::Alone
                if self.bound && !skipped =>
            {
                self.alone(text)
            }
            Kind::Session => self.set(text),
            Kind::Use(name) => self.use_database(&name, text).map(|()| true),
            Kind::Left => Ok(true),
            Kind::Unlock => self.put_off_indexes(false),
            Kind::Table(name, Change::Create) if skipped => self.remember_later(&name, text),
            Kind::Binds => {
                self.bound = true;
                // What depends on one connection needs all of it.
                self.alone(text)
            }
            _ if skipped => Ok(true),
            Kind::Rows(head) => match self.number(&head.table) {
                Some(table) => {
                    let done = self.rows(&head, table, text);
                    self.recent = Some((head, table));
                    done
                }
                None => self.alone(text),
            },
            Kind::Table(name, change) => match self.number(&name) {
                Some(table) => self.change(table, change, text),
                None => self.alone(text),
            },
            Kind::Refused(what) => Err(Error::failed(format!(
                "the file has a {what}, which cannot be kept when statements run side by side"
            ))
            .hint("import this file with the mariadb or mysql client")),
            Kind::Alone => self.alone(text),
        }
    }

    /// Returns a table's number; `None` without a default database.
    pub(super) fn number(&mut self, name: &Name) -> Option<usize> {
        let table = Table {
            database: name.database.clone().or_else(|| self.database.clone())?,
            name: name.table.clone(),
        };
        if let Some(number) = self.numbers.get(&table) {
            return Some(*number);
        }
        let full = table.to_string();
        let named = |wanted: &str| self.request.done.iter().find(|(name, _)| name == wanted);
        let done = named(&full).or_else(|| named(ALL));
        self.numbers.insert(table.clone(), self.tables.len());
        self.tables.push(Known {
            name: table,
            facts: None,
            created: false,
            last_line: 0,
            done_before: done.map_or(0, |(_, line)| *line),
            exact: true,
            later: None,
        });
        Some(self.tables.len() - 1)
    }

    /// Runs a statement when all before it is done.
    fn alone(&mut self, text: &[u8]) -> Result<bool> {
        // It may be about tables that still lack their indexes, by another name later on.
        let begins = text[..text.len().min(40)].to_ascii_uppercase();
        let says = |word: &[u8]| begins.windows(word.len()).any(|part| part == word);
        let moves = says(b"ALTER") || says(b"RENAME") || says(b"DROP");
        if moves && !self.put_off_indexes(true)? {
            return Ok(false);
        }
        if !self.flush_all()? || !self.pool.wait_all()? {
            return Ok(false);
        }
        self.statements += 1;
        self.main.run_bytes(text)?;
        self.recent = None;
        for table in &mut self.tables {
            table.facts = None;
        }
        Ok(true)
    }

    /// Runs rows when all before them is done. They change no definitions.
    fn rows_alone(&mut self, text: &[u8]) -> Result<bool> {
        if !self.flush_all()? || !self.pool.wait_all()? {
            return Ok(false);
        }
        self.statements += 1;
        self.main.run_bytes(text)?;
        Ok(true)
    }

    fn set(&mut self, text: &[u8]) -> Result<bool> {
        self.statements += 1;
        self.main.run_bytes(text)?;
        let says = |word: &[u8]| {
            text.windows(word.len())
                .any(|part| part.eq_ignore_ascii_case(word))
        };
        self.note(text);
        if says(b"autocommit") {
            // A transaction left open would lock others out of what it has touched, for ever.
            self.main.run("SET autocommit = 1")?;
            self.note(b"SET autocommit = 1");
        }
        if says(b"sql_mode") || says(b"foreign_key_checks") {
            self.read_modes()?;
        }
        if self.pool.settings_held() > SETTINGS {
            if !self.flush_all()? || !self.pool.follow_all()? {
                return Ok(false);
            }
            self.state.all_followed();
        }
        Ok(true)
    }

    /// Has the connections repeat a setting, each before the first rows under it.
    fn note(&mut self, sql: &[u8]) {
        let count = self.pool.set(sql);
        self.state.note(sql, count);
    }

    /// Takes another default database.
    pub(super) fn use_database(&mut self, name: &str, text: &[u8]) -> Result<()> {
        self.main.run_bytes(text)?;
        self.note(text);
        self.database = Some(name.to_owned());
        self.recent = None;
        Ok(())
    }

    /// Asks how the file has set the session.
    fn read_modes(&mut self) -> Result<()> {
        let mut rows = self.main.query("SELECT @@sql_mode, @@foreign_key_checks")?;
        let (mut mode, mut checks) = (String::new(), true);
        while let Some(row) = rows.next()? {
            let mut cells = row.cells();
            let cell = |cell: Option<&[u8]>| {
                String::from_utf8_lossy(cell.unwrap_or_default()).into_owned()
            };
            mode = cell(cells.next().unwrap_or_default());
            checks = cell(cells.next().unwrap_or_default()) != "0";
        }
        let has = |word: &str| mode.split(',').any(|one| one == word);
        self.quoting = Quoting {
            no_backslash: has("NO_BACKSLASH_ESCAPES"),
            ansi: has("ANSI_QUOTES"),
        };
        self.zero_counts = has("NO_AUTO_VALUE_ON_ZERO");
        self.checks = checks;
        Ok(())
    }

    fn change(&mut self, table: usize, change: Change, text: &[u8]) -> Result<bool> {
        if change == Change::Keys && self.facts(table)?.is_some_and(|facts| facts.transactional) {
            // InnoDB has no use for it, and it would wait for all rows of the table.
            return Ok(true);
        }
        if !self.flush(table)? {
            return Ok(false);
        }
        let drops = text
            .first()
            .is_some_and(|byte| byte.eq_ignore_ascii_case(&b'D'));
        if change == Change::Other && !drops && !self.push_later(table)? {
            return Ok(false);
        }
        if !self.pool.wait_table(table)? {
            return Ok(false);
        }
        self.statements += 1;
        let known = &mut self.tables[table];
        if change != Change::Keys {
            (known.facts, known.later) = (None, None);
        }
        if change == Change::Create {
            let split = self.split(table, text)?;
            self.main.run_bytes(split.as_deref().unwrap_or(text))?;
            self.tables[table].created = true;
            return Ok(true);
        }
        self.main.run_bytes(text)?;
        Ok(true)
    }

    /// Returns what the server says about a table; `None` for what is none.
    fn facts(&mut self, table: usize) -> Result<Option<&Facts>> {
        let known = &mut self.tables[table];
        if known.facts.is_none() {
            let Some(facts) = Facts::of(&mut self.asking, &known.name)? else {
                return Ok(None);
            };
            known.exact = facts.transactional && facts.keyed;
            let exact = known.exact;
            known.facts = Some(facts);
            if !exact {
                self.make_sure(table)?;
            }
        }
        Ok(self.tables[table].facts.as_ref())
    }

    /// Makes sure that rows of a table of which nobody can tell whether they are there are not
    /// there.
    fn make_sure(&mut self, table: usize) -> Result<()> {
        let known = &mut self.tables[table];
        known.exact = false;
        if !self.pool.resumed || known.created || known.done_before > 0 {
            return Ok(());
        }
        let name = &known.name;
        let full = format!("{}.{}", quote_name(&name.database), quote_name(&name.name));
        let any = format!("SELECT 1 FROM {full} LIMIT 1");
        if self.asking.one(&any)?.is_none() {
            known.created = true;
            return Ok(());
        }
        Err(Error::refused(format!(
            "{name} has rows, and no unique key, no transactions or no numbers of the file's own: which of the file's rows are among them cannot be told"
        ))
        .hint(format!(
            "say before which line its rows are in, with --done {name}=LINE, or empty it and say --done {name}=1"
        )))
    }

    /// Hands rows over, or runs them alone where their order could matter to anything else.
    fn rows(&mut self, head: &Head, table: usize, text: &[u8]) -> Result<bool> {
        let line = self.line;
        if line < self.request.from_line || line < self.tables[table].done_before {
            return Ok(true);
        }
        let (quoting, zero_counts, checks) = (self.quoting, self.zero_counts, self.checks);
        let Some(facts) = self.facts(table)? else {
            return self.alone(text);
        };
        let depends = head.verb == Verb::Depends;
        if facts.far_reaching || (checks && (facts.refers || depends)) {
            return self.rows_alone(text);
        }
        let counter = facts.counter(head);
        let at = match counter {
            Counter::At(at) => Some((at, zero_counts)),
            Counter::None | Counter::LeftOut => None,
        };
        let (transactional, keyed) = (facts.transactional, facts.keyed);
        let Some(found) = values::read(&text[head.bytes.len()..], quoting, at) else {
            return self.rows_alone(text);
        };
        if !found.numbered || counter == Counter::LeftOut {
            // What comes next may ask for LAST_INSERT_ID().
            self.make_sure(table)?;
            self.tables[table].last_line = line;
            return self.rows_alone(text);
        }
        let (joined, ordered) = match () {
            () if !transactional => (Joined::Apart, true),
            () if depends => (Joined::Transaction, true),
            () => (Joined::Rows, !keyed),
        };
        if depends && !(self.flush(table)? && self.push_later(table)?) {
            return Ok(false);
        }
        if text.len() > HUGE {
            return self.rows_in_place(table, joined, text, found.rows);
        }
        let (settings, other) = self.state.needed(&mut self.main)?;
        // No connection could go back to what they are under.
        if other && !self.flush_all()? {
            return Ok(false);
        }
        self.tables[table].last_line = line;
        self.statements += 1;
        self.gather(
            Batch::new(table, head, joined, ordered, settings),
            text,
            found.rows,
        )
    }

    /// Runs rows as a connection would, when all before them is done.
    fn rows_in_place(
        &mut self,
        table: usize,
        joined: Joined,
        text: &[u8],
        rows: u64,
    ) -> Result<bool> {
        if !self.flush_all()? || !self.pool.wait_all()? {
            return Ok(false);
        }
        self.tables[table].last_line = self.line;
        self.statements += 1;
        let mut counts = Counts {
            rows,
            ..Counts::default()
        };
        match self.main.run_bytes(text) {
            Err(error) if self.pool.resumed && joined != Joined::Apart && is_duplicate(&error) => {
                counts.already_there = 1;
            }
            done => counts.sent = done.map(|_| 1)?,
        }
        self.pool.count(counts);
        Ok(true)
    }

    fn gather(&mut self, like: Batch, text: &[u8], rows: u64) -> Result<bool> {
        let limit = BATCH.min(self.packet.saturating_sub(SLACK));
        let table = like.table;
        let fits = |batch: &Batch| batch.takes(&like, text.len(), limit);
        if !self.pending.get(&table).is_none_or(fits) && !self.flush(table)? {
            return Ok(false);
        }
        let batch = self.pending.entry(table).or_insert(like);
        batch.add(text, self.line, rows);
        if batch.bytes() >= limit {
            return self.flush(table);
        }
        // With many tables side by side.
        if self.pending.len() > 1
            && self.pending.values().map(Batch::bytes).sum::<usize>() > GATHERED
        {
            return self.flush_all();
        }
        Ok(true)
    }

    /// Hands on what was gathered of a table.
    pub(super) fn flush(&mut self, table: usize) -> Result<bool> {
        match self.pending.remove(&table) {
            Some(batch) => self.pool.push(table, batch.ordered, Job::Rows(batch)),
            None => Ok(true),
        }
    }

    fn flush_all(&mut self) -> Result<bool> {
        while let Some(table) = self.pending.keys().next().copied() {
            if !self.flush(table)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
