//! Those who make, change and lock tables.

use super::shared::{Lost, QUEUES, Soak};
use crate::queues::QueueSite;
use evenkeel_server::connect::Session;
use evenkeel_server::options::ConnectOptions;
use evenkeel_testkit::traffic::Random;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::Duration;

/// Changes the shared queues.
pub(super) fn change(soak: &Soak, options: &ConnectOptions, mut random: Random) {
    let Ok(mut session) = Session::open(options) else {
        return;
    };
    if session.run("USE shop").is_err() {
        return;
    }
    while soak.continues() {
        sleep(Duration::from_millis(u64::from(20 + random.below(100))));
        let queue = QUEUES[random.below(3) as usize];
        soak.counts.ddl.fetch_add(1, Ordering::Relaxed);
        let sql = match random.below(7) {
            0 => "FLUSH TABLES".to_owned(),
            1 => "FLUSH TABLES WITH READ LOCK".to_owned(),
            2 => format!("SELECT queue_compact('{queue}')"),
            3 => format!("OPTIMIZE TABLE {queue}"),
            4 => format!("ALTER TABLE {queue} MODIFY producer BIGINT NOT NULL"),
            5 => format!("ALTER TABLE {queue} MODIFY producer INT NOT NULL"),
            _ => format!("ALTER TABLE {queue} COMMENT 'seen {}'", random.below(1000)),
        };
        let mut done = soak.done(&mut session, &sql);
        if sql.ends_with("READ LOCK") {
            sleep(Duration::from_millis(u64::from(random.below(50))));
            done = done.and(soak.done(&mut session, "UNLOCK TABLES"));
        }
        if done.is_err() {
            return;
        }
    }
}

/// Tables and their rows.
type TableRows = BTreeMap<&'static str, Vec<i64>>;

/// Queues of one client: each statement is done, or not done.
#[derive(Debug, Default)]
pub struct Own {
    is: TableRows,
    /// What there is when the statement that was sent last is done.
    may_be: TableRows,
}

impl Own {
    /// Makes, fills, renames, empties and drops queues until it is over.
    pub(super) fn work(&mut self, soak: &Soak, options: &ConnectOptions) {
        let Ok(mut session) = Session::open(options) else {
            return;
        };
        while soak.continues() {
            if self.cycle(soak, &mut session).is_err() {
                return;
            }
        }
    }

    fn cycle(&mut self, soak: &Soak, session: &mut Session) -> Result<(), Lost> {
        let of = |name, rows: &[i64]| TableRows::from([(name, rows.to_vec())]);
        let rows = [1, 2, 3];
        let steps = [
            ("CREATE DATABASE IF NOT EXISTS own", TableRows::new()),
            (
                "CREATE TABLE own.a (id BIGINT NOT NULL) ENGINE=QUEUE",
                of("a", &[]),
            ),
            ("INSERT INTO own.a VALUES (1), (2), (3)", of("a", &rows)),
            ("RENAME TABLE own.a TO own.b", of("b", &rows)),
            ("RENAME TABLE own.b TO own.a", of("a", &rows)),
            ("ALTER TABLE own.a ADD COLUMN more INT", of("a", &rows)),
            (
                "ALTER TABLE own.a DROP COLUMN more, RENAME TO own.b",
                of("b", &rows),
            ),
            ("ALTER TABLE own.b RENAME TO own.a", of("a", &rows)),
            ("TRUNCATE TABLE own.a", of("a", &[])),
            ("INSERT INTO own.a VALUES (7)", of("a", &[7])),
            ("DROP TABLE own.a", TableRows::new()),
        ];
        for (sql, then) in steps {
            self.may_be = then;
            soak.counts.ddl.fetch_add(1, Ordering::Relaxed);
            soak.done(session, sql)?;
            self.is = self.may_be.clone();
            let there = look(session).map_err(|why| soak.allow(sql, &why))?;
            if there != self.is {
                soak.fails(format!("{sql}: there is {there:?}"));
            }
        }
        Ok(())
    }

    /// Compares with what is there after a start, and starts over. Errors: what is wrong.
    ///
    /// # Panics
    ///
    /// The server cannot be asked.
    pub fn compare(&mut self, site: &QueueSite) -> Result<(), String> {
        let mut session = site.session();
        let there = look(&mut session).map_err(|why| format!("{} for {self:?}", why.chain()))?;
        if there != self.is && there != self.may_be {
            return Err(format!("{there:?} is there for {self:?}"));
        }
        session
            .run("DROP DATABASE IF EXISTS own")
            .map_err(|why| why.chain())?;
        *self = Self::default();
        Ok(())
    }
}

fn look(session: &mut Session) -> evenkeel_op::Result<TableRows> {
    let mut state = TableRows::new();
    let tables = session
        .rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'own'")?;
    for table in tables {
        let name = if table.at(0) == Some("a") { "a" } else { "b" };
        let rows = session.rows(&format!("SELECT id FROM own.{name}"))?;
        let id = |text: Option<&str>| text.and_then(|text| text.parse().ok()).unwrap_or(-1);
        state.insert(name, rows.iter().map(|row| id(row.at(0))).collect());
    }
    Ok(state)
}
