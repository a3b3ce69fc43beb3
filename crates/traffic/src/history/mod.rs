//! Digests of many periods, kept so that periods can be compared: in an SQLite file, or in a server.
//!
//! Every change is one transaction: whatever ends the program, a period is there with all of its classes or not
//! at all. `docs/src/formats/history.md` describes the tables.

mod class_row;
mod server;
mod sqlite;
mod store;
mod when;

pub use when::{Wanted, chosen, meant};

use crate::digest::{Class, Summary, merged};
use class_row::{Part, class_of, values_of};
use evenkeel_op::{Cancel, Error, ErrorKind, Result};
use evenkeel_server::options::ConnectOptions;
use server::InServer;
use sqlite::InFile;
use std::path::PathBuf;
use store::{Store, Value, integer, number, text};

/// The version of the tables that this program writes.
const VERSION: u64 = 1;

/// Where a history is kept.
#[derive(Debug, Clone)]
pub enum HistoryPlace {
    /// In an SQLite file.
    File(PathBuf),
    /// In this schema of a server.
    Server(Box<ConnectOptions>, String),
}

/// A history that is open.
pub struct History {
    store: Box<dyn Store>,
    place: String,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "History in {}", self.place)
    }
}

/// What a period is about, besides its classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Whose statements they are: periods of one name follow each other.
    pub name: String,
    /// When it begins, in nanoseconds since 1970.
    pub from_ns: i64,
    /// When it is over.
    pub to_ns: i64,
    /// Whether someone said when it begins, and when it is over. Otherwise it is where the statements were.
    pub is_typed: [bool; 2],
    /// By which rules statements are alike.
    pub rules: String,
    /// Entries that were read.
    pub entries: u64,
    /// Entries that could not be read.
    pub unreadable: u64,
    /// Which files were read, for people.
    pub files: String,
}

/// A period of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Period {
    /// Its number: the first has 1, and none is used twice.
    pub number: u64,
    /// What it is about.
    pub about: About,
    /// How many statements ran in it.
    pub statements: u64,
    /// How long they took, in nanoseconds.
    pub sum_ns: u64,
    content: String,
    series_from_ns: i64,
    series_width_ns: i64,
    folded: u64,
    left_out: u64,
}

/// What became of a digest that was to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Added {
    /// The number of its period.
    pub number: u64,
    /// Whether it was added now; it may have been there.
    pub is_new: bool,
}

const PERIOD: &str = "number, name, from_ns, to_ns, rules, entries, unreadable, files, statements, sum_ns, \
     content, series_from_ns, series_width_ns, folded, left_out";

impl History {
    /// Opens a history; one that does not exist is made.
    ///
    /// # Errors
    ///
    /// `Usage` for a file that is none; `Refused` for one of a newer program; those of the server.
    pub fn open(place: &HistoryPlace, cancel: &Cancel) -> Result<Self> {
        let (store, place): (Box<dyn Store>, String) = match place {
            HistoryPlace::File(path) => (
                Box::new(InFile::open(path, cancel)?),
                path.display().to_string(),
            ),
            HistoryPlace::Server(options, schema) => {
                let store = InServer::open(options, schema)?;
                let place = format!("{schema} at {}", store.place());
                (Box::new(store), place)
            }
        };
        let mut history = Self { store, place };
        history.check_version()?;
        Ok(history)
    }

    /// Returns where it is, for messages.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    fn check_version(&mut self) -> Result<()> {
        let rows = self.store.rows("SELECT version FROM digest_history", &[])?;
        let version = rows.first().and_then(|row| row.first()).map_or(0, number);
        if version == VERSION {
            return Ok(());
        }
        Err(Error::refused(format!(
            "the history in {} has version {version} of its tables, but this program knows version {VERSION}",
            self.place
        ))
        .hint("use the evenkeel that wrote it, or one that is newer"))
    }

    /// Adds a digest as a period. The same statements are never counted twice.
    ///
    /// # Errors
    ///
    /// `Usage` where the history has other statements of that time under that name; those of the file or server.
    pub fn add(&mut self, about: &About, summary: &Summary) -> Result<Added> {
        self.change(|history| history.added(about, summary))
    }

    /// Removes the periods that ended before a time, and returns their numbers.
    ///
    /// # Errors
    ///
    /// Those of the file or server.
    pub fn expire(&mut self, before_ns: i64) -> Result<Vec<u64>> {
        self.change(|history| {
            let sql = "SELECT number FROM digest_period WHERE to_ns < ? ORDER BY number";
            let rows = history.store.rows(sql, &[Value::Integer(before_ns)])?;
            let gone: Vec<u64> = rows.iter().map(|row| number(&row[0])).collect();
            history.without(&gone)?;
            Ok(gone)
        })
    }

    /// Removes the periods of these numbers.
    ///
    /// # Errors
    ///
    /// Those of the file or server.
    pub fn forget(&mut self, periods: &[u64]) -> Result<()> {
        self.change(|history| history.without(periods))
    }

    fn without(&mut self, periods: &[u64]) -> Result<()> {
        for period in periods {
            let period = [integer(*period)];
            let classes = "DELETE FROM digest_class WHERE period = ?";
            self.store.run(classes, &period)?;
            let period_itself = "DELETE FROM digest_period WHERE number = ?";
            self.store.run(period_itself, &period)?;
        }
        Ok(())
    }

    /// Does something as one transaction, alone.
    fn change<T>(&mut self, what: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.store.begin()?;
        // Whoever comes second waits here, in a file as in a server.
        let alone = "UPDATE digest_history SET writes = writes + 1";
        let done = self.store.run(alone, &[]).and_then(|()| what(self));
        let done = done.and_then(|done| self.store.commit().map(|()| done));
        if done.is_err() {
            self.store.roll_back();
        }
        done
    }

    fn added(&mut self, about: &About, summary: &Summary) -> Result<Added> {
        let content = content(about, summary);
        let there = self.periods()?;
        if let Some(same) = there
            .iter()
            .find(|one| one.content == content && one.about.name == about.name)
        {
            return Ok(Added {
                number: same.number,
                is_new: false,
            });
        }
        let about = &between(about, &there);
        if let Some(other) = there.iter().find(|one| overlaps(&one.about, about)) {
            return Err(self.overlap(about, other));
        }
        let taken = "SELECT next_number FROM digest_history";
        let number = number(&self.store.rows(taken, &[])?[0][0]);
        self.store.run(
            "UPDATE digest_history SET next_number = next_number + 1",
            &[],
        )?;
        let places = "?, ".repeat(14);
        self.store.run(
            &format!("INSERT INTO digest_period ({PERIOD}) VALUES ({places}?)"),
            &[
                integer(number),
                Value::Text(about.name.clone()),
                Value::Integer(about.from_ns),
                Value::Integer(about.to_ns),
                Value::Text(about.rules.clone()),
                integer(about.entries),
                integer(about.unreadable),
                Value::Text(about.files.clone()),
                integer(summary.total.count),
                integer(summary.total.sum_ns),
                Value::Text(content),
                Value::Integer(summary.series_from_ns),
                Value::Integer(summary.series_width_ns),
                integer(summary.folded),
                integer(summary.left_out),
            ],
        )?;
        let kept = summary.classes.iter().map(|class| (Part::Class, class));
        let sums = [
            (Part::Total, &summary.total),
            (Part::Others, &summary.others),
        ];
        for (part, class) in kept.chain(sums) {
            let (sql, values) = values_of(number, part, class);
            self.store.run(&sql, &values)?;
        }
        Ok(Added {
            number,
            is_new: true,
        })
    }

    fn overlap(&self, about: &About, other: &Period) -> Error {
        Error::usage(format!(
            "nothing was added to the history in {}: its period {} has other statements of '{}' from the same time",
            self.place, other.number, about.name
        ))
        .hint(format!(
            "if they are those of another server or with other options, give them a name of their own: --history-name {}-2",
            about.name
        ))
        .hint("if the log has grown since, give the time that the period does not have: --since, --until")
        .hint(format!(
            "if the period is wrong, remove it: evenkeel digest --history PLACE --forget {}",
            other.number
        ))
    }

    /// Returns the periods, the first first.
    ///
    /// # Errors
    ///
    /// Those of the file or server.
    pub fn periods(&mut self) -> Result<Vec<Period>> {
        let sql = format!("SELECT {PERIOD} FROM digest_period ORDER BY from_ns, number");
        let rows = self.store.rows(&sql, &[])?;
        rows.iter().map(|row| self.period(row)).collect()
    }

    fn period(&self, row: &[Value]) -> Result<Period> {
        if row.len() != 15 {
            return Err(self.damaged());
        }
        let signed = |at: usize| match row[at] {
            Value::Integer(value) => value,
            _ => 0,
        };
        Ok(Period {
            number: number(&row[0]),
            about: About {
                name: text(&row[1]),
                from_ns: signed(2),
                to_ns: signed(3),
                is_typed: [true; 2],
                rules: text(&row[4]),
                entries: number(&row[5]),
                unreadable: number(&row[6]),
                files: text(&row[7]),
            },
            statements: number(&row[8]),
            sum_ns: number(&row[9]),
            content: text(&row[10]),
            series_from_ns: signed(11),
            series_width_ns: signed(12),
            folded: number(&row[13]),
            left_out: number(&row[14]),
        })
    }

    fn damaged(&self) -> Error {
        Error::new(
            ErrorKind::Differs,
            format!(
                "the history in {} has a row that makes no sense",
                self.place
            ),
        )
        .hint("use a copy of it, or begin a new one")
    }

    /// Returns what the statements of these periods sum up to.
    ///
    /// # Errors
    ///
    /// Those of the file or server, and `Differs` for rows that make no sense.
    pub fn read(&mut self, periods: &[&Period]) -> Result<Summary> {
        let mut all = Vec::new();
        for period in periods {
            all.push(self.summary(period)?);
        }
        Ok(merged(all))
    }

    fn summary(&mut self, period: &Period) -> Result<Summary> {
        let sql = format!(
            "SELECT {} FROM digest_class WHERE period = ?",
            class_row::COLUMNS
        );
        let rows = self.store.rows(&sql, &[integer(period.number)])?;
        let mut summary = Summary {
            classes: Vec::new(),
            total: Class::default(),
            others: Class::default(),
            folded: period.folded,
            left_out: period.left_out,
            series_from_ns: period.series_from_ns,
            series_width_ns: period.series_width_ns.max(1),
        };
        for row in rows {
            let series = (summary.series_from_ns, summary.series_width_ns);
            let class = class_of(&row, series).ok_or_else(|| self.damaged())?;
            match class {
                (Part::Class, class) => summary.classes.push(class),
                (Part::Total, class) => summary.total = class,
                (Part::Others, class) => summary.others = class,
            }
        }
        Ok(summary)
    }
}

/// Has a period begin where the one before it is over, and end where the next one begins. Of two logs that follow each
/// other, the second may have statements that began before the last of the first.
fn between(about: &About, there: &[Period]) -> About {
    let mut about = about.clone();
    let middle = about
        .from_ns
        .saturating_add(about.to_ns.saturating_sub(about.from_ns) / 2);
    let [from_is_typed, to_is_typed] = about.is_typed;
    let (from, to) = (about.from_ns, about.to_ns);
    for other in there
        .iter()
        .map(|one| &one.about)
        .filter(|one| one.name == about.name)
    {
        let is_before = other.from_ns < from && (from..middle).contains(&other.to_ns);
        if is_before && !from_is_typed {
            about.from_ns = about.from_ns.max(other.to_ns);
        }
        let is_after = other.to_ns > to && (middle..to).contains(&other.from_ns);
        if is_after && !to_is_typed {
            about.to_ns = about.to_ns.min(other.from_ns);
        }
    }
    about
}

fn overlaps(one: &About, other: &About) -> bool {
    one.name == other.name && one.from_ns < other.to_ns && other.from_ns < one.to_ns
}

/// Returns what tells the same statements from others, whatever their file is called.
fn content(about: &About, summary: &Summary) -> String {
    let mut hash = blake3::Hasher::new();
    let mut add = |number: u64| {
        hash.update(&number.to_be_bytes());
    };
    let mut classes: Vec<&Class> = summary.classes.iter().collect();
    classes.sort_by(|a, b| a.id.cmp(&b.id));
    for class in [&summary.total, &summary.others]
        .into_iter()
        .chain(classes.iter().copied())
    {
        add(class.count);
        add(class.prepares);
        add(class.sum_ns);
        add(class.errors);
        add(class.first_ns.cast_unsigned());
        add(class.last_ns.cast_unsigned());
    }
    for class in classes {
        hash.update(class.id.as_bytes());
    }
    hash.update(about.rules.as_bytes());
    hash.finalize().to_hex()[..32].to_owned()
}
