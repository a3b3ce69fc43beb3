//! Reads the file's statements in order: runs them itself, or hands them to the connections.

use super::batch::{BATCH, Batch, Joined};
use super::classify::{Change, Head, Name, StatementKind, Verb, classify, classify_several};
use super::facts::{Counter, Facts, TableName};
use super::files::Files;
use super::later::Later;
use super::places::{At, Places};
use super::request::{FailedStatement, Request};
use super::settings::ReadSettings;
use super::source::Input;
use super::split::{Statement, without_comments};
use super::values;
use super::work::{Counts, Job, Pool, TRIES, is_duplicate, open};
use evenkeel_op::{Error, Progress, Result};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::options::ConnectOptions;
use evenkeel_sql::{Mode, Wide};
use evenkeel_wire::{Connection, Refusal};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// How many bytes of rows may be gathered for all tables.
const GATHERED: usize = 8 * BATCH;
/// A statement of more bytes is run from where it was read: a copy for a connection would be as much
/// memory again.
const HUGE: usize = 16 << 20;
/// What begins statements that change a definition: all of it, or nothing.
const DEFINES: [&str; 5] = ["DROP", "CREATE", "ALTER", "TRUNCATE", "RENAME"];
/// How long to wait before a statement is tried again that others got in the way of.
const PAUSE: Duration = Duration::from_millis(100);
/// What a packet holds beside a statement, and then some.
const SLACK: usize = 1024;

/// Stands for all tables that are not named.
pub(super) const ALL: &str = "all";

/// What is known of a table of the file.
pub(super) struct Known {
    pub(super) name: TableName,
    /// What the server says; asked again after what may change it.
    facts: Option<Facts>,
    /// Whether the table was made by this very run.
    created: bool,
    /// The last line that rows of it were on; 0 for none.
    pub(super) last_line: u64,
    /// Rows on lines before this are there.
    done_before: u64,
    /// Whether each of its statements is there completely or not at all, and which is known.
    pub(super) exact: bool,
    pub(super) later: Option<Later>,
}

/// The reader of the file.
pub(super) struct Driver<'a> {
    pub(super) request: &'a Request,
    pub(super) progress: &'a dyn Progress,
    pub(super) pool: &'a Pool,
    /// Runs what is not spread.
    pub(super) main: Connection,
    /// Asks about tables, in a session that the file does not touch.
    asking: Session,
    pub(super) mode: Mode,
    /// BEGIN is the beginning of a block.
    pub(super) oracle: bool,
    /// A 0 for an AUTO_INCREMENT column stands for itself.
    pub(super) zero_counts: bool,
    /// Rows are checked against other tables.
    pub(super) checks: bool,
    pub(super) database: Option<String>,
    numbers: HashMap<TableName, usize>,
    pub(super) tables: Vec<Known>,
    pub(super) pending: BTreeMap<usize, Batch>,
    pub(super) state: ReadSettings,
    /// A character set was set that decides where strings end, or may have been.
    pub(super) wide_seen: bool,
    /// Everything runs on the one connection from here on.
    pub(super) bound: bool,
    /// The line on which the transaction was begun that is open on the connection that the file sees.
    pub(super) transaction: Option<u64>,
    /// A transaction of the file was begun, and left out.
    pub(super) left_open: bool,
    /// The file has tables locked.
    pub(super) locked: bool,
    pub(super) recent: Option<(Head, usize)>,
    packet: usize,
    /// Where the statement at hand begins, or the last one.
    pub(super) at: At,
    /// How many lines come before the first of the file at hand.
    pub(super) offset: u64,
    /// How many lines the file had that was read to its end last.
    pub(super) lines: u64,
    pub(super) places: Places,
    pub(super) files: Files,
    /// No other files are run from here on.
    pub(super) sandboxed: bool,
    /// Bytes of the files that were read to their ends, packed.
    pub(super) bytes: u64,
    /// Statements that were left out because the server refused them, and the first of them.
    pub(super) failed: u64,
    pub(super) failures: Vec<FailedStatement>,
    /// Whether a statement is at hand that has not been done or handed on.
    pub(super) at_hand: bool,
    pub(super) statements: u64,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        options: &ConnectOptions,
        request: &'a Request,
        name: &str,
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
            mode: Mode::default(),
            oracle: false,
            zero_counts: false,
            checks: true,
            database: None,
            numbers: HashMap::new(),
            tables: Vec::new(),
            pending: BTreeMap::new(),
            state: ReadSettings::default(),
            wide_seen: false,
            bound: false,
            transaction: None,
            left_open: false,
            locked: false,
            recent: None,
            packet: packet.unwrap_or(BATCH),
            at: At::default(),
            offset: 0,
            lines: 0,
            places: Places::new(name),
            files: Files::default(),
            sandboxed: false,
            bytes: 0,
            failed: 0,
            failures: Vec::new(),
            at_hand: false,
            statements: 0,
        };
        driver.main.allow_several()?;
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
    pub(super) fn run(&mut self, input: Input) -> Result<bool> {
        if self.file(input, b";".to_vec())?.is_none() {
            return Ok(false);
        }
        // What comes from here on is not on any line.
        self.at.line += 1;
        if !self.flush_all()? || !self.put_off_indexes(true)? {
            return Ok(false);
        }
        let done = self.pool.wait_all();
        self.tell_forgiven();
        done
    }

    /// Returns the line before which everything is done.
    pub(super) fn frontier(&self) -> u64 {
        let pending = self.pending.values().map(|batch| batch.at().line);
        let waiting = self.pool.first_line();
        // Where a transaction is open, all of it goes with the connection.
        let undone = pending.chain(waiting).chain(self.transaction);
        undone.min().unwrap_or(self.at.line).min(self.at.line)
    }

    pub(super) fn statement(&mut self, statement: &Statement<'_>) -> Result<bool> {
        let text = statement.text;
        fail::fail_point!("import.statement");
        // What looks like a quote may be half a character.
        let reported = self.mode.wide == Wide::No || text.is_ascii();
        let again = |(head, _): &mut (Head, usize)| reported && head.begins(text);
        if let Some((head, table)) = self.recent.take_if(again) {
            let done = self.rows(&head, table, text);
            self.recent = Some((head, table));
            return done;
        }
        let kind = match statement.several {
            true => classify_several(text),
            false => classify(text, self.mode),
        };
        if self.request.skip_comments && !matches!(kind, StatementKind::Rows(_)) {
            let text = without_comments(text, self.mode);
            return self.sorted(kind, &text);
        }
        self.sorted(kind, text)
    }

    /// Commits what is open on the connection that the file sees.
    fn commit_open(&mut self, skipped: bool) -> Result<bool> {
        match self.transaction.is_some() && !skipped {
            true => self.alone(b"COMMIT"),
            false => Ok(true),
        }
    }

    /// Runs a statement by what it is.
    fn sorted(&mut self, kind: StatementKind, text: &[u8]) -> Result<bool> {
        let skipped = self.at.line < self.request.from_line;
        let on_one = !skipped && (self.bound || self.transaction.is_some());
        // That unlocks.
        self.locked &= kind != StatementKind::Begin;
        match kind {
            StatementKind::Session => self.set(text),
            StatementKind::Use(name) => {
                let quoted = name.replace('`', "``");
                self.use_database(&name, &quoted).map(|()| true)
            }
            // Locking tables ends a transaction.
            StatementKind::Left => {
                self.locked = true;
                self.commit_open(skipped)
            }
            // So does unlocking what is locked.
            StatementKind::Unlock
                if std::mem::take(&mut self.locked) && self.transaction.is_some() =>
            {
                self.commit_open(skipped)
            }
            StatementKind::Unlock if self.transaction.is_none() => self.put_off_indexes(false),
            StatementKind::Unlock => Ok(true),
            _ if on_one && kind != StatementKind::Binds => self.alone(text),
            StatementKind::Table(name, Change::Create) if skipped => {
                self.remember_later(&name, text)
            }
            StatementKind::Binds => {
                self.bound = true;
                // What depends on one connection needs all of it.
                self.alone(text)
            }
            _ if skipped => Ok(true),
            StatementKind::Begin if self.oracle => self.alone(text),
            StatementKind::Begin
            | StatementKind::Commit
            | StatementKind::Rollback
            | StatementKind::Autocommit(_) => self.transaction(&kind, text),
            StatementKind::Rows(head) => match self.number(&head.table) {
                Some(table) => {
                    let done = self.rows(&head, table, text);
                    self.recent = Some((head, table));
                    done
                }
                None => self.alone(text),
            },
            StatementKind::Table(name, change) => match self.number(&name) {
                Some(table) => self.change(table, change, text),
                None => self.alone(text),
            },
            StatementKind::Alone => self.alone(text),
        }
    }

    /// Returns a table's number; `None` without a default database.
    pub(super) fn number(&mut self, name: &Name) -> Option<usize> {
        let table = TableName {
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
    pub(super) fn alone(&mut self, text: &[u8]) -> Result<bool> {
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
        self.recent = None;
        for table in &mut self.tables {
            table.facts = None;
        }
        self.on_main(text)?;
        self.look_at_session(text)?;
        Ok(true)
    }

    /// Runs a statement on the connection that the file sees, again where others got in the way of what is
    /// there wholly or not at all.
    fn on_main(&mut self, text: &[u8]) -> Result<()> {
        let first = text.iter().take_while(|byte| byte.is_ascii_alphabetic());
        let first = text[..first.count()].to_ascii_uppercase();
        let defines = DEFINES.iter().any(|word| word.as_bytes() == first);
        // What is bound may be several statements.
        let tries = match defines && !self.bound && self.transaction.is_none() {
            true => TRIES,
            false => 1,
        };
        self.try_on_main(text, tries)
    }

    fn try_on_main(&mut self, text: &[u8], tries: usize) -> Result<()> {
        for _ in 1..tries {
            match self.main.run_bytes(text) {
                Err(error) if Refusal::of(&error) == Some(Refusal::InTheWay) => {
                    self.pool.cancel.check()?;
                    std::thread::sleep(PAUSE);
                }
                done => return done.map(|_| ()),
            }
        }
        self.main.run_bytes(text).map(|_| ())
    }

    /// Runs rows when all before them is done. They change no definitions. `again` says that a statement of
    /// them is there wholly or not at all.
    fn rows_alone(&mut self, text: &[u8], again: bool) -> Result<bool> {
        if !self.flush_all()? || !self.pool.wait_all()? {
            return Ok(false);
        }
        self.statements += 1;
        self.try_on_main(text, if again { TRIES } else { 1 })?;
        Ok(true)
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
            self.on_main(split.as_deref().unwrap_or(text))?;
            self.tables[table].created = true;
            return Ok(true);
        }
        self.on_main(text)?;
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
            "{name} has rows, and it has no unique key or no transactions, or the file has no ids for its rows: evenkeel cannot tell which of the file's rows are already in it"
        ))
        .hint(format!(
            "pass --done {name}=LINE if its rows before that line are loaded, or empty it and pass --done {name}=1"
        )))
    }

    /// Hands rows over, or runs them alone where their order could matter to anything else.
    fn rows(&mut self, head: &Head, table: usize, text: &[u8]) -> Result<bool> {
        let line = self.at.line;
        if line < self.request.from_line || line < self.tables[table].done_before {
            return Ok(true);
        }
        let (mode, zero_counts, checks) = (self.mode, self.zero_counts, self.checks);
        let Some(facts) = self.facts(table)? else {
            return self.alone(text);
        };
        let depends = head.verb == Verb::Depends;
        if facts.far_reaching || (checks && (facts.refers || depends)) {
            let again = facts.transactional && !facts.far_reaching;
            return self.rows_alone(text, again);
        }
        let counter = facts.counter(head);
        let at = match counter {
            Counter::At(at) => Some((at, zero_counts)),
            Counter::None | Counter::LeftOut => None,
        };
        let (transactional, keyed) = (facts.transactional, facts.keyed);
        let Some(found) = values::read(&text[head.bytes.len()..], mode, at) else {
            return self.rows_alone(text, transactional);
        };
        if !found.numbered || counter == Counter::LeftOut {
            // What comes next may ask for LAST_INSERT_ID().
            self.make_sure(table)?;
            self.tables[table].last_line = line;
            return self.rows_alone(text, transactional);
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
        self.tables[table].last_line = self.at.line;
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
        batch.add(text, self.at, rows);
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

    pub(super) fn flush_all(&mut self) -> Result<bool> {
        while let Some(table) = self.pending.keys().next().copied() {
            if !self.flush(table)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
