//! Tables of engines that InnoDB's redo log knows nothing of, under write load: what is half done, lost or
//! doubled in an image of them shows.
//!
//! Each table has one client that takes turns, numbered without a gap. A turn is one statement that makes,
//! changes or deletes the rows of one group, and is one entry of the binary log. So a table is that of some
//! turn, or it is not whole.

mod look;
mod rounds;
mod taken;
mod traffic;

pub use look::check;
pub use rounds::{go_round, write_to_aria_while_it_is_cloned};
pub use traffic::{Bounds, EngineTraffic};

use evenkeel_op::{Error, Result};
use evenkeel_server::connect::Session;
use look::{accounts, groups, wrong};
use std::collections::BTreeMap;

/// Rounds of each provider in full.
pub const ALL: u32 = 200;
/// Options of a server with small caches, so that pages are written all the time, and a checkpoint of Aria every
/// second.
pub const RESTLESS: [&str; 5] = [
    "--key-buffer-size=1M",
    "--loose-aria-pagecache-buffer-size=1M",
    "--loose-aria-checkpoint-interval=1",
    "--innodb-buffer-pool-dump-at-shutdown=OFF",
    "--sync-binlog=0",
];

/// The schema of these tables.
pub const SCHEMA: &str = "engines";
/// How many rows a statement is about: enough for it to be met half way.
const ROWS: i64 = 150;
/// From this turn on each one changes something.
const SETTLED: i64 = 12;
/// What a row's checksum is made of.
const CONTENT: &str = "CONCAT_WS('-', g, id, turn, w)";

/// Something that is written to, turn after turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A table of groups of rows.
    Table {
        /// Its name.
        name: &'static str,
        /// The engine, as CREATE TABLE is told.
        engine: &'static str,
        /// What else is in CREATE TABLE.
        keys: &'static str,
        /// Whether its rows can be changed and deleted.
        changes: bool,
    },
    /// A sequence, of an engine.
    Sequence(&'static str),
    /// Accounts: the server's own tables.
    Accounts,
    /// Statistics of a table: the server's own tables.
    Statistics,
}

const KEYS: &str = ", PRIMARY KEY (g, id), KEY (turn), KEY (w)";

const fn table(name: &'static str, engine: &'static str) -> Subject {
    Subject::Table {
        name,
        engine,
        keys: KEYS,
        changes: true,
    }
}

/// What is written to on every server.
const EVERYWHERE: [Subject; 4] = [
    table("isam", "MyISAM"),
    Subject::Table {
        name: "csv",
        engine: "CSV",
        keys: "",
        changes: true,
    },
    Subject::Table {
        name: "archive",
        engine: "ARCHIVE",
        keys: "",
        changes: false,
    },
    Subject::Accounts,
];
/// What is written to on MariaDB besides, beside Aria's tables.
const MARIADB: [Subject; 2] = [Subject::Sequence("MyISAM"), Subject::Statistics];
/// Tables of Aria: only the first two have a log.
const ARIA: [Subject; 4] = [
    table("aria_1", "Aria TRANSACTIONAL=1"),
    table("aria_2", "Aria TRANSACTIONAL=1"),
    table("aria_0", "Aria TRANSACTIONAL=0"),
    Subject::Sequence("Aria"),
];

/// Makes everything that is written to, and returns it. Without `aria` no table of a user is Aria's.
pub fn make(session: &mut Session, aria: bool) -> Result<Vec<Subject>> {
    let is_mariadb = session
        .value("SELECT VERSION()")?
        .is_some_and(|version| version.contains("MariaDB"));
    let mut subjects = EVERYWHERE.to_vec();
    if is_mariadb {
        subjects.extend(MARIADB);
        subjects.extend(aria.then_some(ARIA).into_iter().flatten());
    }
    subjects.retain(|subject| subject.is_known_to(session));
    session.run(&format!("CREATE DATABASE {SCHEMA}"))?;
    session.run(&format!(
        "CREATE TABLE {SCHEMA}.numbers (id INT PRIMARY KEY) ENGINE=InnoDB"
    ))?;
    let numbers: Vec<String> = (1..=ROWS).map(|id| format!("({id})")).collect();
    session.run(&format!(
        "INSERT INTO {SCHEMA}.numbers VALUES {}",
        numbers.join(",")
    ))?;
    for subject in &subjects {
        subject.make(session)?;
    }
    Ok(subjects)
}

impl Subject {
    fn is_known_to(self, session: &mut Session) -> bool {
        let Self::Table { engine, .. } = self else {
            return true;
        };
        let name = engine.split(' ').next().unwrap_or_default();
        let sql = format!("SELECT support FROM information_schema.engines WHERE engine = '{name}'");
        matches!(session.value(&sql), Ok(Some(said)) if said == "YES" || said == "DEFAULT")
    }

    fn make(self, session: &mut Session) -> Result<()> {
        match self {
            Self::Table {
                name, engine, keys, ..
            } => session.run(&format!(
                "CREATE TABLE {SCHEMA}.{name} (g INT NOT NULL, id INT NOT NULL, turn INT NOT NULL, \
                 w VARCHAR(200) NOT NULL, c INT UNSIGNED NOT NULL{keys}) ENGINE={engine}"
            )),
            Self::Sequence(engine) => session.run(&format!(
                "CREATE SEQUENCE {SCHEMA}.sequence_{engine} NOCACHE ENGINE={engine}"
            )),
            Self::Accounts | Self::Statistics => Ok(()),
        }
    }

    /// Whether its turns are in the binary log.
    fn is_logged(self) -> bool {
        matches!(self, Self::Table { .. })
    }

    /// Returns the statement of a turn.
    fn statement(self, turn: i64) -> String {
        match self {
            Self::Table { name, changes, .. } => rows_of(name, changes, turn),
            Self::Sequence(engine) => format!("SELECT NEXTVAL({SCHEMA}.sequence_{engine})"),
            Self::Statistics => format!("ANALYZE TABLE {SCHEMA}.numbers PERSISTENT FOR ALL"),
            Self::Accounts => match turn % 3 {
                1 => format!("CREATE USER turn_{turn}@localhost IDENTIFIED BY 'Pass-w0rd'"),
                2 => format!("GRANT SELECT ON {SCHEMA}.* TO turn_{}@localhost", turn - 1),
                _ if turn < 8 => "DO 0".to_owned(),
                _ => format!("DROP USER turn_{}@localhost", turn - 8),
            },
        }
    }

    /// Returns at which turn an image has it; `Differs` when at none between `bounds`.
    fn turn_in(self, session: &mut Session, bounds: Bounds) -> Result<i64> {
        let found = match self {
            Self::Statistics => return Ok(bounds.acknowledged),
            Self::Sequence(_) => {
                let next = session.value(&self.statement(0))?;
                let turn = next.and_then(|next| next.parse::<i64>().ok()).unwrap_or(0) - 1;
                return match bounds.holds(turn) {
                    true => Ok(turn),
                    false => Err(self.differs(&format!("it is at {turn}"), bounds)),
                };
            }
            Self::Accounts => accounts(session)?,
            Self::Table { name, .. } => groups(session, name)?,
        };
        // Turn by turn: on a busy machine there are thousands between the bounds.
        let mut content = self.content(bounds.acknowledged);
        let mut turn = bounds.acknowledged;
        while content != found {
            if turn >= bounds.started {
                return Err(self.differs(&format!("{found:?}"), bounds));
            }
            turn += 1;
            self.go_on(&mut content, turn);
        }
        Ok(turn)
    }

    fn differs(self, found: &str, bounds: Bounds) -> Error {
        wrong(format!("{self:?} is of no turn in {bounds:?}: {found}"))
    }

    /// Returns every group and the turn it was last changed in, after a turn.
    fn content(self, last: i64) -> BTreeMap<i64, i64> {
        let mut groups = BTreeMap::new();
        for turn in 1..=last {
            self.go_on(&mut groups, turn);
        }
        groups
    }

    /// Makes of every group's last turn what it is after one more.
    fn go_on(self, groups: &mut BTreeMap<i64, i64>, turn: i64) {
        let is_insert_only = matches!(self, Self::Table { changes: false, .. });
        match (self, turn % 4) {
            (Self::Accounts, _) if turn % 3 == 1 => drop(groups.insert(turn, turn)),
            (Self::Accounts, _) if turn % 3 == 0 => drop(groups.remove(&(turn - 8))),
            (Self::Accounts, _) => {}
            (_, 1) => drop(groups.insert(turn, turn)),
            _ if is_insert_only => drop(groups.insert(turn, turn)),
            (_, 0) => drop(groups.remove(&(turn - 11))),
            (_, rest) => {
                let group = if rest == 2 { turn - 1 } else { turn - 6 };
                groups.entry(group).and_modify(|changed| *changed = turn);
            }
        }
    }
}

/// The statement of a turn on a table.
fn rows_of(name: &str, changes: bool, turn: i64) -> String {
    let text = format!("REPEAT('{}', {})", turn % 10, 20 + turn * 7 % 170);
    let update = |group: i64| {
        format!(
            "UPDATE {SCHEMA}.{name} SET turn = {turn}, w = {text}, c = CRC32({CONTENT}) WHERE g = {group}"
        )
    };
    match turn % 4 {
        2 if changes => update(turn - 1),
        3 if changes => update(turn - 6),
        0 if changes => format!("DELETE FROM {SCHEMA}.{name} WHERE g = {}", turn - 11),
        _ => format!(
            "INSERT INTO {SCHEMA}.{name} SELECT {turn}, id, {turn}, {text}, \
             CRC32(CONCAT_WS('-', {turn}, id, {turn}, {text})) FROM {SCHEMA}.numbers"
        ),
    }
}
