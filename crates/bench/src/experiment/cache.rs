//! The query cache and memcached before a table, under a share of writes.
//!
//! Stale reads are counted: each row has a version. A writer notes the version after its UPDATE is
//! committed and the cache is updated. A read is stale if it returns an older version than was noted before it.

use super::memcached::{Client, Memcached};
use super::report::{ExperimentReport, Metric};
use super::rounds::{Ran, Rounds};
use evenkeel_drive::{Outcome, Pace, Plan, Unit, Work};
use evenkeel_op::{Error, Result, Run};
use evenkeel_server::connect::{Session, quote_name};
use evenkeel_server::options::ConnectOptions;
use evenkeel_wire::Connection;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const METRICS: [Metric; 5] = [
    Metric {
        name: "reads_per_s",
        says: "reads a second",
        more_is_better: true,
        digits: 0,
    },
    Metric {
        name: "hit_percent",
        says: "answered by the cache, %",
        more_is_better: true,
        digits: 1,
    },
    Metric {
        name: "read_p50_us",
        says: "median time of a read, µs",
        more_is_better: false,
        digits: 0,
    },
    Metric {
        name: "read_p99_us",
        says: "99 % of reads, µs",
        more_is_better: false,
        digits: 0,
    },
    Metric {
        name: "stale_reads",
        says: "stale reads",
        more_is_better: false,
        digits: 0,
    },
];
const TABLE: &str = "evenkeel_cache";
/// Holds the settings as they were, as long as they are changed.
const NOTE: &str = "evenkeel_cache_settings";
/// How far the time at which a server was started may seem to be off, in seconds.
const CLOCK_S: u64 = 3;
/// Rows of a statement that loads.
const STATEMENT: u32 = 500;
/// Megabytes of each cache.
const MEGABYTES: u32 = 64;
const READ: usize = 0;
const WRITE: usize = 1;

/// What to measure.
#[derive(Debug, Clone)]
pub struct CacheRequest {
    /// The schema for the table; made when it is not there.
    pub database: String,
    /// Rows of the table.
    pub rows: u32,
    /// Of a hundred requests, so many write.
    pub writes_percent: f64,
    /// Connections.
    pub threads: usize,
    /// How long a run is measured.
    pub measure: Duration,
    /// The program memcached.
    pub memcached: PathBuf,
    /// An empty directory of our own, for its socket.
    pub directory: PathBuf,
    /// How often each way is run.
    pub repeat: usize,
    /// What requests are drawn from.
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Table,
    QueryCache,
    Memcached,
}

impl Way {
    const ALL: [Self; 3] = [Self::Table, Self::QueryCache, Self::Memcached];

    fn name(self) -> &'static str {
        match self {
            Self::Table => "the table alone",
            Self::QueryCache => "query cache",
            Self::Memcached => "memcached, look-aside",
        }
    }
}

/// What all sessions of a run share.
#[derive(Debug)]
struct Common {
    options: ConnectOptions,
    database: String,
    way: Way,
    writes_percent: f64,
    socket: Option<PathBuf>,
    cancel: evenkeel_op::Cancel,
    /// The version of each row that every reader has to see by now.
    seen: Vec<AtomicU64>,
    /// One writer to a group of rows at a time, as an application would lock.
    writers: Vec<Mutex<()>>,
    hits: AtomicU64,
    stale: AtomicU64,
    trouble: Mutex<Option<String>>,
}

struct Asker {
    common: Arc<Common>,
    random: Rng,
    connection: Connection,
    cache: Option<Client>,
    value: Vec<u8>,
}

impl Asker {
    fn open(common: &Arc<Common>, random: Rng) -> Result<Self> {
        let mut connection = Connection::open(&common.options, &common.cancel)?;
        connection.run(&format!("USE {}", quote_name(&common.database)))?;
        if common.way == Way::QueryCache {
            connection.run("SET SESSION query_cache_type = 1")?;
        }
        let cache = common.socket.as_deref().map(Client::open).transpose();
        let cache = cache.map_err(|e| Error::failed("failed to reach memcached").because(e))?;
        Ok(Self {
            common: Arc::clone(common),
            random,
            connection,
            cache,
            value: Vec::new(),
        })
    }

    fn read(&mut self, row: usize) -> Result<()> {
        let wanted = self.common.seen[row].load(Ordering::SeqCst);
        let key = row.to_string();
        let failed = |e| Error::failed("memcached failed").because(e);
        let cached = match &mut self.cache {
            Some(cache) => cache.get(&key, &mut self.value).map_err(failed)?,
            None => false,
        };
        if cached {
            self.common.hits.fetch_add(1, Ordering::Relaxed);
        } else {
            self.ask(row)?;
            if let Some(cache) = &mut self.cache {
                cache.set(&key, &self.value).map_err(failed)?;
            }
        }
        let text = self
            .value
            .split(|byte| *byte == b' ')
            .next()
            .unwrap_or_default();
        let version = std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok());
        let version: u64 = version.ok_or_else(|| Error::failed("a row came back damaged"))?;
        if version < wanted {
            self.common.stale.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Asks the table.
    fn ask(&mut self, row: usize) -> Result<()> {
        // The query cache goes by the text.
        let hint = if self.common.way == Way::QueryCache {
            ""
        } else {
            "SQL_NO_CACHE "
        };
        let sql = format!("SELECT {hint}version, body FROM {TABLE} WHERE id = {row}");
        let mut rows = self.connection.query(&sql)?;
        self.value.clear();
        let damaged = |_| Error::failed("a row came back damaged");
        let Some(found) = rows.next()? else {
            return Err(Error::failed(format!("row {row} of {TABLE} is gone")));
        };
        let mut cells = found.cells();
        self.value
            .extend_from_slice(cells.next().map_err(damaged)?.unwrap_or_default());
        self.value.push(b' ');
        self.value
            .extend_from_slice(cells.next().map_err(damaged)?.unwrap_or_default());
        while rows.next()?.is_some() {}
        Ok(())
    }

    fn write(&mut self, row: usize) -> Result<()> {
        let common = Arc::clone(&self.common);
        let group = &common.writers[row % common.writers.len()];
        let _alone = group.lock().unwrap_or_else(PoisonError::into_inner);
        let next = common.seen[row].load(Ordering::SeqCst) + 1;
        self.connection.run(&format!(
            "UPDATE {TABLE} SET version = {next} WHERE id = {row}"
        ))?;
        if let Some(cache) = &mut self.cache {
            let failed = |e| Error::failed("memcached failed").because(e);
            cache.delete(&row.to_string()).map_err(failed)?;
        }
        common.seen[row].store(next, Ordering::SeqCst);
        Ok(())
    }
}

impl Work for Asker {
    fn once(&mut self) -> Unit {
        let row = self.random.usize(0..self.common.seen.len());
        let is_write = self.random.f64() * 100.0 < self.common.writes_percent;
        let kind = if is_write { WRITE } else { READ };
        let done = match is_write {
            true => self.write(row),
            false => self.read(row),
        };
        match done {
            Ok(()) => Unit::done(kind),
            Err(error) => {
                let trouble = self.common.trouble.lock();
                let mut trouble = trouble.unwrap_or_else(PoisonError::into_inner);
                trouble.get_or_insert_with(|| error.chain());
                Unit::ended(kind, Outcome::Lost)
            }
        }
    }
}

/// Measures.
///
/// Errors: `Usage` for no rows; what the server refuses but for a query cache that it has not.
pub fn cache(
    options: &ConnectOptions,
    request: &CacheRequest,
    run: Run<'_>,
) -> Result<ExperimentReport> {
    if request.rows == 0 || request.repeat == 0 || request.threads == 0 {
        return Err(Error::usage(
            "at least one row, one connection and one run are needed",
        ));
    }
    let mut session = Session::open(options)?;
    let name = quote_name(&request.database);
    session.run(&format!("CREATE DATABASE IF NOT EXISTS {name}"))?;
    session.run(&format!("USE {name}"))?;
    let before = QueryCache::noted(&mut session)?;
    let rounds = Rounds {
        experiment: "cache",
        did: format!(
            "In a run, {} connections ask for rows by their keys for {} s, any of {} as often as any other; {} of \
             a hundred requests change one. Each cache has {MEGABYTES} MiB and begins empty.",
            request.threads,
            request.measure.as_secs_f64(),
            request.rows,
            request.writes_percent
        ),
        names: Way::ALL.map(|way| way.name().to_owned()).to_vec(),
        metrics: METRICS.to_vec(),
        repeat: request.repeat,
        seed: request.seed,
    };
    let report = rounds.run(run, |number| {
        let way = Way::ALL[number];
        let ready = QueryCache::set(&mut session, before.as_ref(), way == Way::QueryCache);
        let ran = ready.and_then(|()| once(&mut session, options, request, way, run));
        Ran::or_left_out(ran)
    });
    let restored = QueryCache::restore(&mut session, before.as_ref());
    let dropped = session.run(&format!("DROP TABLE IF EXISTS {TABLE}"));
    let report = report?;
    restored?;
    dropped?;
    Ok(report)
}

/// The server's settings of its query cache.
#[derive(Debug, Clone, PartialEq, Eq)]
struct QueryCache {
    bytes: String,
    kind: String,
}

impl QueryCache {
    /// Notes what they are, in the session's schema: whoever runs next after a run that was killed puts that
    /// back. A server that was started since then has settings of its own again. `None` where it has no query
    /// cache.
    fn noted(session: &mut Session) -> Result<Option<Self>> {
        let bytes = session.variable("query_cache_size")?;
        let kind = session.variable("query_cache_type")?;
        let Some((bytes, kind)) = bytes.zip(kind) else {
            return Ok(None);
        };
        session.run(&format!(
            "CREATE TABLE IF NOT EXISTS {NOTE} (started BIGINT, bytes VARCHAR(30), kind VARCHAR(30))"
        ))?;
        let started = started(session)?;
        let (from, to) = (started.saturating_sub(CLOCK_S), started + CLOCK_S);
        let noted = session.one(&format!(
            "SELECT bytes, kind FROM {NOTE} WHERE started BETWEEN {from} AND {to} LIMIT 1"
        ))?;
        let noted = noted.and_then(|row| {
            Some(Self {
                bytes: row.at(0)?.to_owned(),
                kind: row.at(1)?.to_owned(),
            })
        });
        if noted.is_some() {
            return Ok(noted);
        }
        session.run(&format!("DELETE FROM {NOTE}"))?;
        session.run(&format!(
            "INSERT INTO {NOTE} VALUES ({started}, '{bytes}', '{kind}')"
        ))?;
        Ok(Some(Self { bytes, kind }))
    }

    /// Sets it for a run, and empties it.
    fn set(session: &mut Session, there: Option<&Self>, wanted: bool) -> Result<()> {
        if there.is_none() {
            return match wanted {
                true => Err(Error::refused("the server has no query cache")),
                false => Ok(()),
            };
        }
        session.run("SET GLOBAL query_cache_size = 0")?;
        if wanted {
            let bytes = MEGABYTES << 20;
            // Some that were started without it do not let it be set any more.
            for sql in [
                "SET GLOBAL query_cache_type = 1",
                "SET SESSION query_cache_type = 1",
                &format!("SET GLOBAL query_cache_size = {bytes}"),
            ] {
                let set = session.run(sql);
                set.map_err(|error| Error::refused(error.to_string()))?;
            }
        }
        Ok(())
    }

    fn restore(session: &mut Session, there: Option<&Self>) -> Result<()> {
        let Some(Self { bytes, kind }) = there else {
            return Ok(());
        };
        session.run(&format!("SET GLOBAL query_cache_size = {bytes}"))?;
        let now = session.variable("query_cache_type")?;
        // A server that was started without it takes no value of it, not even the one that it has.
        if now.as_ref() != Some(kind) {
            session.run(&format!("SET GLOBAL query_cache_type = '{kind}'"))?;
        }
        session.run(&format!("DROP TABLE IF EXISTS {NOTE}"))
    }

    fn hits(session: &mut Session) -> Result<f64> {
        let row = session.one("SHOW GLOBAL STATUS LIKE 'Qcache_hits'")?;
        Ok(row.and_then(|row| row.at(1)?.parse().ok()).unwrap_or(0.0))
    }
}

/// Returns when the server was started, by its own clock, in seconds.
fn started(session: &mut Session) -> Result<u64> {
    let whole = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let now = session.value("SELECT UNIX_TIMESTAMP()")?;
    let uptime = session.one("SHOW GLOBAL STATUS LIKE 'Uptime'")?;
    let uptime = uptime.as_ref().and_then(|row| row.at(1));
    Ok(whole(now.as_deref()).saturating_sub(whole(uptime)))
}

fn fill(session: &mut Session, rows: u32) -> Result<()> {
    session.run(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
    session.run(&format!(
        "CREATE TABLE {TABLE} (id INT NOT NULL PRIMARY KEY, version BIGINT NOT NULL, body CHAR(200) NOT NULL) \
         ENGINE=InnoDB DEFAULT CHARACTER SET latin1"
    ))?;
    for from in (0..rows).step_by(STATEMENT as usize) {
        let ids = from..from.saturating_add(STATEMENT).min(rows);
        let values: Vec<String> = ids.map(|id| format!("({id},1,REPEAT('x',200))")).collect();
        session.run(&format!("INSERT INTO {TABLE} VALUES {}", values.join(",")))?;
    }
    Ok(())
}

fn once(
    session: &mut Session,
    options: &ConnectOptions,
    request: &CacheRequest,
    way: Way,
    run: Run<'_>,
) -> Result<BTreeMap<&'static str, f64>> {
    fill(session, request.rows)?;
    let memcached = match way {
        Way::Memcached => Some(Memcached::start(
            &request.memcached,
            &request.directory,
            MEGABYTES,
        )?),
        _ => None,
    };
    if let Some(one) = &memcached {
        let emptied = one.connect().and_then(|mut client| client.flush());
        emptied.map_err(|e| Error::failed("failed to reach memcached").because(e))?;
    }
    let common = Arc::new(Common {
        options: options.clone(),
        database: request.database.clone(),
        way,
        writes_percent: request.writes_percent,
        socket: memcached.as_ref().map(|one| one.socket().to_owned()),
        cancel: run.cancel.clone(),
        seen: (0..request.rows).map(|_| AtomicU64::new(1)).collect(),
        writers: (0..64).map(|_| Mutex::new(())).collect(),
        hits: AtomicU64::new(0),
        stale: AtomicU64::new(0),
        trouble: Mutex::new(None),
    });
    let mut random = Rng::with_seed(request.seed);
    let askers: Result<Vec<Asker>> = (0..request.threads)
        .map(|_| Asker::open(&common, random.fork()))
        .collect();
    let plan = Plan {
        kinds: 2,
        pace: Pace::Closed,
        ramp_up: Duration::ZERO,
        measure: request.measure,
        interval: request.measure,
        failures_allowed: None,
    };
    let hits_before = QueryCache::hits(session)?;
    let driven = evenkeel_drive::run(askers?, &plan, |_| (), run.cancel)?;
    run.cancel.check()?;
    let trouble = common
        .trouble
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(trouble) = trouble.as_ref() {
        return Err(Error::failed(trouble.clone()));
    }
    let hits = match way {
        Way::QueryCache => QueryCache::hits(session)? - hits_before,
        _ => common.hits.load(Ordering::Relaxed) as f64,
    };
    let stale = common.stale.load(Ordering::Relaxed);
    Ok(reported(&driven, hits, stale))
}

/// What a run came to, by metric.
fn reported(driven: &evenkeel_drive::Run, hits: f64, stale: u64) -> BTreeMap<&'static str, f64> {
    let reads = &driven.total.kinds[READ];
    let latency = reads.latency();
    let done = reads.done as f64;
    BTreeMap::from([
        ("reads_per_s", done / driven.seconds.max(1e-9)),
        ("hit_percent", (100.0 * hits / done.max(1.0)).min(100.0)),
        ("read_p50_us", latency.p50_us as f64),
        ("read_p99_us", latency.p99_us as f64),
        ("stale_reads", stale as f64),
    ])
}
