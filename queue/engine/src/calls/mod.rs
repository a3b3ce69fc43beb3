//! All of it as C functions, for a handler in C++. `engine.h` declares them.
//!
//! A function returns 0, or a `Code` with a text in the fault that the caller handed over. None of them
//! lets a panic out. Objects belong to the caller: a connection to one thread at a time, a cursor too.
#![allow(unsafe_code)] // the caller hands over pointers

mod names;
mod whole;

use crate::connection::{Asked, Connection, Ended, look};
use crate::cursor::Cursor;
use crate::fault::{Code, Fault};
use crate::keeper::Keeper;
use crate::tables::Tables;
use evenkeel_queue::{Killer, Options, Source, Stats, Sync};
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// What a fault's text may have, with a zero behind it, in bytes.
const TEXT: usize = 512;

/// What went wrong, for the caller.
#[repr(C)]
struct CFault {
    text: [c_char; TEXT],
}

/// How tables are kept; see `Options`.
#[repr(C)]
struct COptions {
    /// 0 never, 1 each half second, 2 before it is acknowledged.
    sync_rows: u32,
    sync_removals: u32,
    map_bytes: u64,
    slice_bytes: u64,
    /// 0: none on its own.
    compacts: u32,
}

struct Engine {
    tables: Arc<Tables>,
    _keeper: Keeper,
}

static ENGINE: RwLock<Option<Engine>> = RwLock::new(None);

fn tables() -> Result<Arc<Tables>, Fault> {
    let engine = ENGINE.read().unwrap_or_else(PoisonError::into_inner);
    let tables = engine.as_ref().map(|engine| engine.tables.clone());
    tables.ok_or_else(|| Fault::misuse("the engine has not been started"))
}

/// Runs a call: a fault becomes a number and a text, a panic too.
fn guard(fault: *mut CFault, call: impl FnOnce() -> Result<(), Fault>) -> c_int {
    let done = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        Err(Fault {
            code: Code::Panic,
            text: "a defect of the queue engine: its message is in the server's error log"
                .to_owned(),
        })
    });
    let Err(why) = done else {
        return 0;
    };
    let shown = why.text.floor_char_boundary(TEXT - 1);
    // SAFETY: the caller hands over a fault or null.
    if let Some(fault) = unsafe { fault.as_mut() } {
        let bytes = why.text.as_bytes()[..shown].iter();
        for (to, from) in fault.text.iter_mut().zip(bytes.chain(&[0])) {
            *to = *from as c_char;
        }
    }
    why.code as c_int
}

/// # Safety
/// `text` is a string in C's sense.
unsafe fn path(text: *const c_char) -> PathBuf {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    Path::new(OsStr::from_bytes(text.to_bytes())).to_owned()
}

/// # Safety
/// There are as many bytes.
unsafe fn bytes<'a>(at: *const u8, count: usize) -> &'a [u8] {
    match count {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts(at, count) },
    }
}

/// The data directory. Servers are in it, and begin the paths of tables so: what is found there has to have the same
/// path, or one table is open twice, and each of the two writes over the other.
const DATADIR: &str = ".";

/// Called once before all else, and not at the same time as anything else.
#[unsafe(no_mangle)]
extern "C" fn evq_start(fault: *mut CFault) -> c_int {
    guard(fault, || {
        let tables = Arc::new(Tables::start(Path::new(DATADIR))?);
        let keeper = Keeper::start(tables.clone()).map_err(|error| Fault {
            code: Code::Io,
            text: format!("failed to start a thread: {error}"),
        })?;
        *ENGINE.write().unwrap_or_else(PoisonError::into_inner) = Some(Engine {
            tables,
            _keeper: keeper,
        });
        Ok(())
    })
}

/// Closes all tables. Nothing may be called afterwards.
#[unsafe(no_mangle)]
extern "C" fn evq_stop() {
    let _ = guard(std::ptr::null_mut(), || {
        let engine = ENGINE
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(Engine { tables, _keeper }) = engine else {
            return Ok(());
        };
        drop(_keeper);
        tables.close()
    });
}

/// # Safety
/// `options` is there.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_set_options(options: *const COptions) {
    let _ = guard(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let options = unsafe { &*options };
        let sync = |number| match number {
            0 => Sync::Never,
            1 => Sync::Every(Duration::from_millis(500)),
            _ => Sync::Each,
        };
        tables()?.set_options(Options {
            rows: sync(options.sync_rows),
            removals: sync(options.sync_removals),
            map_bytes: options.map_bytes,
            slice_bytes: options.slice_bytes,
            compact_from: match options.compacts {
                0 => u64::MAX,
                _ => Options::default().compact_from,
            },
            ..Options::default()
        });
        Ok(())
    });
}

/// A table's numbers as text, handed to `print`.
///
/// # Safety
/// `name` is a string; `print` may be called with `of` and so many bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_numbers_of(
    name: *const c_char,
    print: extern "C" fn(*mut c_void, *const u8, usize),
    of: *mut c_void,
    fault: *mut CFault,
) -> c_int {
    guard(fault, || {
        // SAFETY: the caller's promise.
        let text = tables()?.numbers(&unsafe { path(name) })?;
        print(of, text.as_ptr(), text.len());
        Ok(())
    })
}

/// What a table looks like; see `Stats`.
#[repr(C)]
struct CStats {
    rows: u64,
    owned: u64,
    waiters: u64,
    appended: u64,
    removed: u64,
    files: u64,
    bytes: u64,
    memory: u64,
    dead_bytes: u64,
    waits_at_once: u64,
    waits_later: u64,
    waits_timed_out: u64,
    back_by_abort: u64,
    back_by_close: u64,
    groups: u64,
    requests: u64,
    syncs: u64,
}

impl From<Stats> for CStats {
    fn from(stats: Stats) -> Self {
        Self {
            rows: stats.rows as u64,
            owned: stats.owned as u64,
            waiters: stats.waiters as u64,
            appended: stats.appended,
            removed: stats.removed,
            files: stats.files as u64,
            bytes: stats.bytes,
            memory: stats.memory as u64,
            dead_bytes: stats.dead_bytes,
            waits_at_once: stats.waits_at_once,
            waits_later: stats.waits_later,
            waits_timed_out: stats.waits_timed_out,
            back_by_abort: stats.back_by_abort,
            back_by_close: stats.back_by_close,
            groups: stats.groups,
            requests: stats.requests,
            syncs: stats.syncs,
        }
    }
}

/// Sums over all tables.
///
/// # Safety
/// `stats` is room for an answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_totals(stats: *mut CStats, fault: *mut CFault) -> c_int {
    guard(fault, || {
        let totals = tables()?.totals();
        // SAFETY: the caller's promise.
        unsafe { stats.write(totals.into()) };
        Ok(())
    })
}

/// All numbers as text, handed to `print`.
///
/// # Safety
/// `print` may be called with `of` and so many bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_status(
    print: extern "C" fn(*mut c_void, *const u8, usize),
    of: *mut c_void,
    fault: *mut CFault,
) -> c_int {
    guard(fault, || {
        let text = tables()?.status();
        print(of, text.as_ptr(), text.len());
        Ok(())
    })
}

/// A connection, and what another thread may hold of it.
struct CConnection {
    own: Connection,
    killer: Killer,
}

/// Makes a connection, of which the server has this number; null when that fails.
#[unsafe(no_mangle)]
extern "C" fn evq_connection_new(id: u64) -> *mut CConnection {
    let mut made = std::ptr::null_mut();
    let _ = guard(std::ptr::null_mut(), || {
        let own = Connection::new(id);
        let killer = own.killer();
        made = Box::into_raw(Box::new(CConnection { own, killer }));
        Ok(())
    });
    made
}

/// # Safety
/// `connection` came from `evq_connection_new` and is not used afterwards.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_connection_free(connection: *mut CConnection) {
    let _ = guard(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        let mut connection = unsafe { Box::from_raw(connection) };
        let names = std::mem::take(connection.own.unsettled());
        drop(connection);
        if !names.is_empty() {
            tables()?.leave(names);
        }
        Ok(())
    });
}

/// Makes a connection as new: what it owns goes back.
///
/// # Safety
/// `connection` is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_connection_reset(connection: *mut CConnection) {
    let _ = guard(std::ptr::null_mut(), || {
        // SAFETY: the caller's promise.
        unsafe { (*connection).own.reset() };
        Ok(())
    });
}

/// Ends a connection's wait, from any thread.
///
/// # Safety
/// `connection` came from `evq_connection_new` and was not freed.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_connection_kill(connection: *const CConnection) {
    let _ = guard(std::ptr::null_mut(), || {
        // SAFETY: the connection's own thread never writes this field.
        unsafe { (*connection).killer.kill() };
        Ok(())
    });
}

/// What `evq_wait` says when no table gave a row: the time is over, somebody ended it, there is no such table.
const TIMED_OUT: i64 = 0;
const KILLED: i64 = -1;
const MISSING: i64 = -2;

/// # Safety
/// `names` are `count` strings, `conditions` as many strings or null; `is_killed` may be called with `of`; `answer` is room for an answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_wait(
    connection: *mut CConnection,
    names: *const *const c_char,
    conditions: *const *const c_char,
    count: usize,
    most: u64,
    timeout_s: f64,
    is_killed: extern "C" fn(*mut c_void) -> c_int,
    of: *mut c_void,
    answer: *mut i64,
    fault: *mut CFault,
) -> c_int {
    guard(fault, || {
        // SAFETY: the caller's promise.
        let (own, asked) = unsafe {
            let asked = all_asked(names, conditions, count);
            (&mut (*connection).own, asked)
        };
        let timeout = Duration::try_from_secs_f64(timeout_s.max(0.0)).unwrap_or(Duration::MAX);
        let killed = || is_killed(of) != 0;
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
        let ended = own.wait(&*tables()?, &asked, most, timeout, &killed)?;
        // SAFETY: the caller's promise.
        unsafe {
            answer.write(match ended {
                Ended::Rows(place) => place as i64 + 1,
                Ended::TimedOut => TIMED_OUT,
                Ended::Killed => KILLED,
                Ended::Missing => MISSING,
            });
        }
        Ok(())
    })
}

/// # Safety
/// `names` are `count` strings, `conditions` as many strings or null.
unsafe fn all_asked(
    names: *const *const c_char,
    conditions: *const *const c_char,
    count: usize,
) -> Vec<Asked> {
    // SAFETY: the caller's promise.
    unsafe {
        let names = std::slice::from_raw_parts(names, count);
        let conditions = std::slice::from_raw_parts(conditions, count);
        let asked = names.iter().zip(conditions).map(|(name, condition)| Asked {
            path: path(*name),
            condition: (!condition.is_null())
                .then(|| CStr::from_ptr(*condition).to_string_lossy().into_owned()),
        });
        asked.collect()
    }
}

/// # Safety
/// As [`evq_wait`]; `is_there` is room for an answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_look(
    names: *const *const c_char,
    conditions: *const *const c_char,
    count: usize,
    is_there: *mut c_int,
    fault: *mut CFault,
) -> c_int {
    guard(fault, || {
        // SAFETY: the caller's promise.
        let asked = unsafe { all_asked(names, conditions, count) };
        let found = look(&*tables()?, &asked)?;
        // SAFETY: the caller's promise.
        unsafe { is_there.write(c_int::from(found)) };
        Ok(())
    })
}

/// # Safety
/// `connection` is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_consume(connection: *mut CConnection, fault: *mut CFault) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe { (*connection).own.consume() })
}

/// # Safety
/// `connection` is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_holds(connection: *const CConnection) -> c_int {
    let mut holds = false;
    // SAFETY: the caller's promise.
    let _ = guard(std::ptr::null_mut(), || unsafe {
        holds = (*connection).own.holds();
        Ok(())
    });
    c_int::from(holds)
}

/// # Safety
/// `connection` is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_end(connection: *mut CConnection, fault: *mut CFault) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe { (*connection).own.end() })
}

/// # Safety
/// `connection` is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_abort(connection: *mut CConnection, fault: *mut CFault) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe { (*connection).own.abort() })
}

/// # Safety
/// `connection` is one, `id` room for an answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_row_id(
    connection: *const CConnection,
    id: *mut u64,
    fault: *mut CFault,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe {
        id.write((*connection).own.row_id()?);
        Ok(())
    })
}

/// # Safety
/// `connection` is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_set_source(
    connection: *mut CConnection,
    slot: u64,
    is_reset: c_int,
    id: u64,
    fault: *mut CFault,
) -> c_int {
    guard(fault, || {
        let small = u8::try_from(slot).ok().filter(|slot| *slot < 64);
        let slot = small.ok_or(evenkeel_queue::Error::NoSlot(slot))?;
        let is_reset = is_reset != 0;
        // SAFETY: the caller's promise.
        unsafe { (*connection).own.set_source(Source { slot, id, is_reset }) };
        Ok(())
    })
}

/// # Safety
/// `name` is a string, `cursor` room for an answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_open(
    name: *const c_char,
    cursor: *mut *mut Cursor,
    fault: *mut CFault,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe {
        let opened = Cursor::open(&*tables()?, &path(name))?;
        cursor.write(Box::into_raw(Box::new(opened)));
        Ok(())
    })
}

/// Says that rows go to this table now, from another one.
///
/// # Safety
/// `connection` is one, `name` a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_copies_to(connection: *mut CConnection, name: *const c_char) {
    // SAFETY: the caller's promise.
    let _ = guard(std::ptr::null_mut(), || unsafe {
        (*connection).own.copies_to(&path(name));
        Ok(())
    });
}

/// Begins a scan of all rows, whoever owns them, to be copied.
///
/// # Safety
/// `cursor` and `connection` are such.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_copy(
    cursor: *mut Cursor,
    connection: *mut CConnection,
    fault: *mut CFault,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe {
        (*cursor).copy(&*tables()?, &mut (*connection).own)
    })
}

/// # Safety
/// `cursor` came from `evq_open` and is not used afterwards.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_close(cursor: *mut Cursor, fault: *mut CFault) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe {
        Box::from_raw(cursor).close(&*tables()?)
    })
}

/// # Safety
/// `cursor` is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_gather(cursor: *mut Cursor) {
    // SAFETY: the caller's promise.
    let _ = guard(std::ptr::null_mut(), || unsafe {
        (*cursor).gather();
        Ok(())
    });
}

/// # Safety
/// `cursor` and `connection` are such.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_gathered(
    cursor: *mut Cursor,
    connection: *mut CConnection,
    drops: c_int,
    fault: *mut CFault,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe {
        (*cursor).gathered(&mut (*connection).own, drops != 0)
    })
}

/// # Safety
/// `cursor` and `connection` are such; the row has as many bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_insert(
    cursor: *mut Cursor,
    connection: *mut CConnection,
    row: *const u8,
    count: usize,
    fault: *mut CFault,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe {
        (*cursor).insert(&mut (*connection).own, bytes(row, count))
    })
}

/// # Safety
/// `cursor` and `connection` are such.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_scan(cursor: *mut Cursor, connection: *const CConnection) {
    // SAFETY: the caller's promise.
    let _ = guard(std::ptr::null_mut(), || unsafe {
        (*cursor).scan(&(*connection).own);
        Ok(())
    });
}

/// Reads the next row; its id is 0 at the end.
///
/// # Safety
/// `cursor` is one; `id` is room for an answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_next(cursor: *mut Cursor, id: *mut u64, fault: *mut CFault) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe {
        id.write((*cursor).advance()?.unwrap_or(0));
        Ok(())
    })
}

/// Reads a row; `found` is 0 when it is gone.
///
/// # Safety
/// `cursor` is one; `found` is room for an answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_read(
    cursor: *mut Cursor,
    id: u64,
    found: *mut c_int,
    fault: *mut CFault,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe {
        found.write(c_int::from((*cursor).read(id)?));
        Ok(())
    })
}

/// The row at hand; it is there until the next is read.
///
/// # Safety
/// `cursor` is one; `count` is room for an answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_row(cursor: *const Cursor, count: *mut usize) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let row = (*cursor).row();
        count.write(row.len());
        row.as_ptr()
    }
}

/// Which row is at hand.
///
/// # Safety
/// `cursor` is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_row_at_hand(cursor: *const Cursor) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { (*cursor).row_id() }
}

/// Has the row at hand removed when the statement ends. Returns 0 when somebody else has it.
///
/// # Safety
/// `cursor` and `connection` are such.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_doom(cursor: *mut Cursor, connection: *const CConnection) -> c_int {
    let mut is_ours = false;
    // SAFETY: the caller's promise.
    let _ = guard(std::ptr::null_mut(), || unsafe {
        is_ours = (*cursor).doom(&(*connection).own);
        Ok(())
    });
    c_int::from(is_ours)
}

/// # Safety
/// `cursor` and `connection` are such.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_settle(
    cursor: *mut Cursor,
    connection: *mut CConnection,
    fault: *mut CFault,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe {
        (*cursor).settle(&mut (*connection).own)
    })
}

/// # Safety
/// `cursor` is one, `stats` room for an answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_cursor_stats(cursor: *const Cursor, stats: *mut CStats) {
    // SAFETY: the caller's promise.
    let _ = guard(std::ptr::null_mut(), || unsafe {
        stats.write((*cursor).table().stats().into());
        Ok(())
    });
}
