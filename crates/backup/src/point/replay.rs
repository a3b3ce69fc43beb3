//! Applies archived transactions to restored files, by the server's own applier.
//!
//! The archived files become relay logs of a server that is started on the restored files, out of
//! everybody's reach; the last one ends at the point. Nothing is translated: row events, statements,
//! compressed and XA transactions are what they were. Afterwards nothing of it is left.

use super::find::PointPlan;
use super::log::{ArchivedFile, copy_others, files_from};
use super::meaning;
use super::transaction::Transaction;
use super::unmade::Why;
use super::way::Leg;
use crate::throwaway;
use evenkeel_op::own_directory::shown;
use evenkeel_op::{Context, Error, Result, Run, Unit};
use evenkeel_server::abilities::{Abilities, GtidKind};
use evenkeel_server::connect::{Row, Session, quote};
use evenkeel_server::launch::{Account, Binary, Launch, Running};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// Name of the relay logs, before their number.
const RELAY: &str = "evenkeel-relay";
/// How long crash recovery, one transaction, or a clean shutdown may take.
const DEADLINE: Duration = Duration::from_secs(3600);
/// How often the applier is asked how far it is.
const POLL: Duration = Duration::from_millis(100);

/// The private server: nothing runs by itself, nobody reaches it, nothing is logged again. Its
/// files are thrown away unless all goes well, so it need not sync before the end.
const OPTIONS: [&str; 15] = [
    // An applier skips what its own server wrote.
    "--server-id=4294967295",
    "--skip-slave-start",
    // Nobody's password is known. The grant tables are read later, for statements that need them.
    "--skip-grant-tables",
    "--event-scheduler=DISABLED",
    "--relay-log=evenkeel-relay",
    "--relay-log-index=evenkeel-relay.index",
    "--relay-log-recovery=OFF",
    "--log-slave-updates=OFF",
    "--slave-sql-verify-checksum=ON",
    "--slave-max-allowed-packet=1073741824",
    "--max-allowed-packet=1073741824",
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-load-at-startup=OFF",
    // Nobody reads it, and without it MySQL starts in half the processor time.
    "--performance-schema=OFF",
];

/// A point that was found, and the program that goes there.
#[derive(Debug, Clone)]
pub struct Replay {
    /// What was found.
    pub plan: PointPlan,
    /// The server program.
    pub binary: Binary,
}

/// With what transactions are applied, besides the files: known before any is written.
#[derive(Debug)]
pub(crate) struct Means {
    /// Whom the server runs as, when not as this user.
    pub(crate) account: Option<Account>,
    /// The time zone it lives in, when not this host's.
    zone: Option<String>,
}

/// Finds them for files of `owner` at `places`; `None` where nothing needs to be applied.
///
/// Errors: `Refused` for a time zone that is not known here, and for a place or a program that the account
/// does not reach.
pub(crate) fn means(
    replay: &Replay,
    settings: &BTreeMap<String, String>,
    owner: Account,
    places: &[&Path],
    run: Run<'_>,
) -> Result<Option<Means>> {
    if replay.plan.report.last_applied.is_none() {
        return Ok(None);
    }
    let zone = meaning::zone(settings, run)?;
    meaning::tell_what_lacks(settings, run);
    let account = throwaway::account_of(owner);
    if let Some(account) = account {
        throwaway::reach(account, &replay.binary, places)?;
    }
    Ok(Some(Means { account, zone }))
}

/// The directories to work on.
pub(crate) struct ReplayDirectories<'a> {
    /// Where the data directory is.
    pub(crate) place: &'a Path,
    /// How this process reaches it.
    pub(crate) dir: &'a Path,
    /// What a server starts with on it.
    pub(crate) options: Vec<String>,
    /// Gives all of them to an account.
    pub(crate) lend: &'a dyn Fn(Account) -> Result<()>,
    /// Makes them this user's again, and closes them.
    pub(crate) take_back: &'a dyn Fn() -> Result<()>,
}

/// Applies what `replay` says. While the server runs, the directories are its account's; before and after
/// that they are closed.
pub(crate) fn replay(
    replay: &Replay,
    means: &Means,
    directories: &ReplayDirectories<'_>,
    settings: &BTreeMap<String, String>,
    run: Run<'_>,
) -> Result<()> {
    let Some(last) = &replay.plan.report.last_applied else {
        return Ok(());
    };
    forget_sources(directories.dir)?;
    let relay = write_relay_logs(replay, last, directories.dir, run)?;
    fail::fail_point!("point::relay_written");
    let mut launch = Launch::new(replay.binary.clone(), directories.place);
    launch
        .extra_args
        .extend(directories.options.iter().cloned());
    launch.extra_args.extend(OPTIONS.map(str::to_owned));
    launch.extra_args.extend(more_options(replay, settings));
    launch.time_zone.clone_from(&means.zone);
    launch.is_sealed = true;
    launch.account = means.account;
    let start = || -> Result<Running> {
        means.account.map_or(Ok(()), directories.lend)?;
        run.progress
            .phase("starting a server on the restored files", None, Unit::Items);
        let server = launch.start(DEADLINE, run.cancel)?;
        run.progress.end();
        Ok(server)
    };
    let take_back = || means.account.map_or(Ok(()), |_| (directories.take_back)());
    let mut server = start()?;
    if forget_channels(&server)? {
        // With them the server took the relay logs for its own of then.
        server.stop(DEADLINE)?;
        take_back()?;
        clear(directories.dir)?;
        write_relay_logs(replay, last, directories.dir, run)?;
        server = start()?;
    }
    apply(replay, settings, &server, &relay, run)?;
    fail::fail_point!("point::applied");
    server.stop(DEADLINE)?;
    take_back()?;
    clear(directories.dir)
}

/// Removes the files in which a replica keeps whom it follows and how far it is: relay logs that are not there.
/// With them it applies nothing. And at the point it is not where they say: it has to follow nobody.
fn forget_sources(datadir: &Path) -> Result<()> {
    remove_named(datadir, |name| {
        let of_channel = name.starts_with("master") || name.starts_with("relay-log");
        name == "multi-master.info"
            || of_channel && name.ends_with(".info")
            || name.starts_with("worker-relay-log.info.")
    })
}

/// The same where they are in tables, as with MySQL. Returns whether there was anything to forget.
fn forget_channels(server: &Running) -> Result<bool> {
    let mut session = server.session()?;
    let abilities = Abilities::probe(&mut session)?;
    if !abilities.channels_in_tables {
        return Ok(false);
    }
    let channels = session.value("SELECT COUNT(*) FROM mysql.slave_master_info")?;
    if channels.as_deref() == Some("0") {
        return Ok(false);
    }
    session.run("SET SESSION sql_log_bin = 0")?;
    session.run(&format!("RESET {} ALL", Words::of(&abilities).replica))?;
    Ok(true)
}

/// The relay logs: how many, and how long the last one is.
struct Relay {
    files: u64,
    bytes: u64,
    end: u64,
}

fn relay_name(number: u64) -> String {
    format!("{RELAY}.{number:06}")
}

/// Writes the files up to the end of the last transaction that should be applied: of events behind
/// it an applier does not say that it has come by them.
fn write_relay_logs(
    replay: &Replay,
    last: &Transaction,
    datadir: &Path,
    run: Run<'_>,
) -> Result<Relay> {
    let plan = &replay.plan;
    let mut relay = Relay {
        files: 0,
        bytes: 0,
        end: 0,
    };
    let mut index = String::new();
    run.progress
        .phase("fetching binary logs", None, Unit::Bytes);
    for (number, leg) in plan.legs.iter().enumerate() {
        let is_last_leg = number + 1 == plan.legs.len();
        for file in files_from(&leg.timeline, &leg.from.file) {
            let ends_leg = leg.until.as_ref().is_some_and(|until| until.file == file);
            let until = match (is_last_leg, leg.whole) {
                (true, _) if file == last.at.file => Some(last.end),
                (false, Some(whole)) if ends_leg => Some(whole),
                _ => None,
            };
            run.cancel.check()?;
            let name = relay_name(relay.files + 1);
            let copied = write_relay_log(replay, leg, file, until, &datadir.join(&name))?;
            run.progress.advance(copied);
            index.push_str(&format!("./{name}\n"));
            relay.files += 1;
            relay.bytes += copied;
            relay.end = copied;
            if until.is_some() {
                break;
            }
        }
    }
    run.progress.end();
    let path = datadir.join(format!("{RELAY}.index"));
    let mut out = create(&path)?;
    std::io::Write::write_all(&mut out, index.as_bytes())
        .context(|| format!("failed to write {}", shown(&path).display()))?;
    Ok(relay)
}

/// Writes one file, up to a place between transactions. Of a server that took over, without what the
/// one before had executed.
fn write_relay_log(
    replay: &Replay,
    leg: &Leg,
    file: &str,
    until: Option<u64>,
    path: &Path,
) -> Result<u64> {
    let failed = || format!("failed to write {}", shown(path).display());
    let mut archived = ArchivedFile::open(&replay.plan.logs, &leg.timeline, file);
    let mut out = std::io::BufWriter::new(create(path)?);
    let limit = until.unwrap_or(u64::MAX);
    let copied = match leg.link {
        Some(_) => copy_others(archived, limit, leg.known.as_ref(), &mut out)?,
        None => std::io::copy(&mut archived.by_ref().take(limit), &mut out).context(failed)?,
    };
    std::io::Write::flush(&mut out).context(failed)?;
    if leg.link.is_none() && until.is_some_and(|until| until != copied) {
        return Err(Error::failed(format!(
            "the archive of {file} ends at {copied}"
        )));
    }
    Ok(copied)
}

/// Creates a new file.
fn create(path: &Path) -> Result<fs::File> {
    fs::File::create_new(path).context(|| format!("failed to create {}", shown(path).display()))
}

/// Options that depend on what is applied.
fn more_options(replay: &Replay, settings: &BTreeMap<String, String>) -> Vec<String> {
    let mut options = Vec::new();
    if replay.binary.abilities().gtid_mode {
        // An applier takes only what fits its own mode.
        match replay.plan.gtids {
            (true, false) => {
                options.push("--gtid-mode=ON".to_owned());
                options.push("--enforce-gtid-consistency=ON".to_owned());
            }
            (true, true) => options.push("--gtid-mode=OFF_PERMISSIVE".to_owned()),
            (false, _) => options.push("--gtid-mode=OFF".to_owned()),
        }
    }
    options.extend(meaning::options(settings));
    let unmade = &replay.plan.report.unmade;
    if unmade.iter().any(|one| one.why == Why::Library) {
        // Without grant tables no function of a library is registered, and none shall be: it would be loaded.
        // MariaDB says so as "out of memory", so that is passed over only where such a statement is known of.
        options.push("--slave-skip-errors=1123,1041".to_owned());
    }
    options
}

fn apply(
    replay: &Replay,
    settings: &BTreeMap<String, String>,
    server: &Running,
    relay: &Relay,
    run: Run<'_>,
) -> Result<()> {
    let mut session = server.session()?;
    let abilities = Abilities::probe(&mut session)?;
    let words = Words::of(&abilities);
    // A statement of ours that is logged would take the GTID of the first transaction, which the
    // applier would then leave out without a word.
    session.run("SET SESSION sql_log_bin = 0")?;
    // Now statements about accounts can be applied; this session keeps its rights.
    session.run("FLUSH PRIVILEGES")?;
    // An applier begins with the global values.
    meaning::statements(settings).try_for_each(|sql| session.run(&sql))?;
    session.run(&words.change(&relay_name(1), replay.plan.report.from.position))?;
    if let Some(transaction) = &replay.plan.report.last_applied
        && has(&mut session, &abilities, transaction)? == Some(true)
    {
        return Err(Error::failed(
            "the generation contains transactions that should come after it",
        ));
    }
    let (last, end) = (relay_name(relay.files), relay.end);
    session.run(&format!(
        "START {} SQL_THREAD UNTIL RELAY_LOG_FILE = {}, RELAY_LOG_POS = {end}",
        words.replica,
        quote(&last)
    ))?;
    run.progress
        .phase("applying transactions", Some(relay.bytes), Unit::Bytes);
    let outcome = wait(&mut session, &words, relay, server, run);
    run.progress.end();
    outcome?;
    session.run(&format!("STOP {}", words.replica))?;
    if let Some(transaction) = &replay.plan.report.last_applied
        && has(&mut session, &abilities, transaction)? == Some(false)
    {
        return Err(Error::failed(format!(
            "the SQL thread reached the end, but the server does not have {}",
            transaction.gtid.as_deref().unwrap_or_default()
        )));
    }
    session.run(&format!("RESET {} ALL", words.replica))
}

/// The words of a server's statements: newer ones have others.
struct Words {
    replica: &'static str,
    new: bool,
    use_gtid: bool,
}

impl Words {
    fn of(abilities: &Abilities) -> Self {
        Self {
            replica: if abilities.replica_statements {
                "REPLICA"
            } else {
                "SLAVE"
            },
            new: abilities.change_replication_source,
            use_gtid: abilities.master_use_gtid,
        }
    }

    /// The applier gets a source that it never contacts.
    fn change(&self, file: &str, position: u64) -> String {
        let file = quote(file);
        if self.new {
            return format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_USER = 'none', \
                 SOURCE_AUTO_POSITION = 0, RELAY_LOG_FILE = {file}, RELAY_LOG_POS = {position}"
            );
        }
        // A replica's settings for its source stay valid until they are changed.
        let gtid = match self.use_gtid {
            true => ", MASTER_USE_GTID = no",
            false => ", MASTER_AUTO_POSITION = 0",
        };
        format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_USER = 'none', \
             RELAY_LOG_FILE = {file}, RELAY_LOG_POS = {position}{gtid}"
        )
    }
}

/// Waits until the applier is at the end.
fn wait(
    session: &mut Session,
    words: &Words,
    relay: &Relay,
    server: &Running,
    run: Run<'_>,
) -> Result<()> {
    let mut done = 0;
    let mut moved = (Instant::now(), 0, 0);
    loop {
        run.cancel.check()?;
        let status = session
            .one(&format!("SHOW {} STATUS", words.replica))
            .context(|| format!("the server ended:\n{}", server.log_tail(15)))?
            .ok_or_else(|| Error::failed("the server reports no SQL thread"))?;
        let number = field(&status, "Last_SQL_Errno").unwrap_or("0");
        if number != "0" {
            let text = field(&status, "Last_SQL_Error").unwrap_or_default();
            let error = Error::failed(format!(
                "the server could not apply a transaction: {text} ({number})"
            ));
            // A function that does not exist.
            return Err(match number {
                "1305" => error.hint(
                    "loadable functions are not available during a restore: if the statement \
                     calls one, restore to an earlier point",
                ),
                _ => error,
            });
        }
        let file = field(&status, "Relay_Log_File").unwrap_or_default();
        let at: u64 = field(&status, "Relay_Log_Pos")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0);
        let at_file = evenkeel_binlog::number_of(file).unwrap_or(0);
        if at_file > relay.files || at_file == relay.files && at >= relay.end {
            return Ok(());
        }
        let running = ["Slave_SQL_Running", "Replica_SQL_Running"];
        if running
            .iter()
            .any(|name| field(&status, name) == Some("No"))
        {
            return Err(Error::failed(format!(
                "the SQL thread stopped at {file}:{at}:\n{}",
                server.log_tail(15)
            )));
        }
        if (moved.1, moved.2) != (at_file, at) {
            moved = (Instant::now(), at_file, at);
        } else if moved.0.elapsed() > DEADLINE {
            return Err(Error::failed(format!(
                "the SQL thread has not moved from {file}:{at} for an hour:\n{}",
                server.log_tail(15)
            )));
        }
        // Files are about as long as each other.
        let now = (relay.bytes / relay.files).saturating_mul(at_file.saturating_sub(1)) + at;
        run.progress.advance(now.saturating_sub(done));
        done = done.max(now);
        std::thread::sleep(POLL);
    }
}

fn field<'a>(row: &'a Row, name: &str) -> Option<&'a str> {
    row.get(name)
}

/// Asks the server itself whether it has a transaction; `None` for one without a GTID.
fn has(
    session: &mut Session,
    abilities: &Abilities,
    transaction: &Transaction,
) -> Result<Option<bool>> {
    let Some(gtid) = &transaction.gtid else {
        return Ok(None);
    };
    Ok(Some(match abilities.gtid {
        GtidKind::MySql | GtidKind::None => {
            let sql = format!(
                "SELECT GTID_SUBSET({}, @@global.gtid_executed)",
                quote(gtid)
            );
            session.value(&sql)?.as_deref() == Some("1")
        }
        GtidKind::MariaDb => {
            let applied = session.value("SELECT @@gtid_slave_pos")?;
            let applied = applied.unwrap_or_default();
            applied.split(',').any(|one| one.trim() == gtid)
        }
    }))
}

/// Removes what only the replay needed.
fn clear(datadir: &Path) -> Result<()> {
    remove_named(datadir, |name| name.starts_with(RELAY))
}

fn remove_named(datadir: &Path, is_named: impl Fn(&str) -> bool) -> Result<()> {
    let failed = || format!("failed to clean up {}", shown(datadir).display());
    for entry in fs::read_dir(datadir).context(failed)? {
        let entry = entry.context(failed)?;
        let is_dir = entry.file_type().context(failed)?.is_dir();
        if !is_dir && is_named(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path()).context(failed)?;
        }
    }
    Ok(())
}
