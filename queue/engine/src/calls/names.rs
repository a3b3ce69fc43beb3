//! Names of tables: made, changed, taken away, and settled where a server has a dictionary of its own.

use super::{CConnection, CFault, bytes, guard, path, tables};
use crate::fault::{Code, Fault};
use crate::tables::Statement;
use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;

/// What a path may have, with a zero behind it, in bytes.
const PATH: usize = 1024;

/// A statement that is done when the server's dictionary has it.
#[repr(C)]
struct CStatement {
    by: *mut CConnection,
    table: u64,
}

/// # Safety
/// `statement` is null, or one of a connection that lives longer.
unsafe fn part<'a>(statement: *const CStatement) -> Option<Statement<'a>> {
    // SAFETY: the caller's promise.
    unsafe {
        statement.as_ref().map(|statement| Statement {
            names: (*statement.by).own.unsettled(),
            table: statement.table,
        })
    }
}

/// # Safety
/// `name` is a string, `layout` has as many bytes, `statement` is null or one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_create(
    name: *const c_char,
    layout: *const u8,
    count: usize,
    statement: *const CStatement,
    fault: *mut CFault,
) -> c_int {
    guard(fault, || {
        // SAFETY: the caller's promise.
        let (name, layout) = unsafe { (path(name), bytes(layout, count)) };
        // SAFETY: as above.
        match unsafe { part(statement) } {
            Some(mut part) => tables()?.create_in(&mut part, &name, layout),
            None => tables()?.create(&name, layout),
        }
    })
}

/// # Safety
/// Both names are strings, `statement` is null or one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_rename(
    from: *const c_char,
    to: *const c_char,
    statement: *const CStatement,
    fault: *mut CFault,
) -> c_int {
    guard(fault, || {
        // SAFETY: the caller's promise.
        let (from, to) = unsafe { (path(from), path(to)) };
        // SAFETY: as above.
        match unsafe { part(statement) } {
            Some(mut part) => tables()?.rename_in(&mut part, &from, &to),
            None => tables()?.rename(&from, &to),
        }
    })
}

/// # Safety
/// `name` is a string, `statement` is null or one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_drop(
    name: *const c_char,
    statement: *const CStatement,
    fault: *mut CFault,
) -> c_int {
    guard(fault, || {
        // SAFETY: the caller's promise.
        let name = unsafe { path(name) };
        // SAFETY: as above.
        match unsafe { part(statement) } {
            Some(mut part) => tables()?.drop_in(&mut part, &name),
            None => tables()?.drop_table(&name),
        }
    })
}

/// Whether a queue may get a name: fails where the functions could not be told it.
///
/// # Safety
/// `name` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_name(name: *const c_char, fault: *mut CFault) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe { tables()?.must_be_sayable(&path(name)) })
}

/// Drops what a server without the engine has forgotten in a schema's directory.
///
/// # Safety
/// `schema` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_drop_forgotten_in(schema: *const c_char, fault: *mut CFault) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe {
        tables()?.drop_forgotten_in(&path(schema))
    })
}

/// Hands what the error log is to say of queues that a server without the engine has forgotten to `print`, if there are any.
///
/// # Safety
/// `print` may be called with `of` and so many bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_forgotten(
    print: extern "C" fn(*mut c_void, *const u8, usize),
    of: *mut c_void,
    fault: *mut CFault,
) -> c_int {
    guard(fault, || {
        let said = tables()?.forgotten()?;
        if !said.is_empty() {
            print(of, said.as_ptr(), said.len());
        }
        Ok(())
    })
}

/// Asks the dictionary; see `engine.h`.
type CLookUp = extern "C" fn(*mut c_void, u64, *const c_char, *mut c_char, usize) -> c_int;

/// Whether no statement has left names.
#[unsafe(no_mangle)]
extern "C" fn evq_are_names_settled() -> c_int {
    let mut is_settled = true;
    let _ = guard(std::ptr::null_mut(), || {
        is_settled = tables()?.is_settled();
        Ok(())
    });
    c_int::from(is_settled)
}

/// Settles names that were left, and those of a connection's statement, which has ended.
///
/// # Safety
/// `connection` is null or one; `look_up` may be called with `of`.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_settle_names(
    connection: *mut CConnection,
    look_up: CLookUp,
    of: *mut c_void,
    fault: *mut CFault,
) -> c_int {
    guard(fault, || {
        let tables = tables()?;
        // SAFETY: the caller's promise.
        if let Some(connection) = unsafe { connection.as_mut() } {
            tables.leave(std::mem::take(connection.own.unsettled()));
        }
        if tables.is_settled() {
            return Ok(());
        }
        tables.settle(&|table, at| {
            let name = CString::new(at.as_os_str().as_bytes());
            let name = name.map_err(|_| Fault::misuse("a path with a zero byte"))?;
            let mut place = [0; PATH];
            match look_up(of, table, name.as_ptr(), place.as_mut_ptr(), PATH) {
                0 => Ok(None),
                // SAFETY: it has written a string there.
                1 => Ok(Some(unsafe { path(place.as_ptr()) })),
                _ => Err(Fault {
                    code: Code::Io,
                    text: format!(
                        "the server's dictionary is busy, so the schema of the queue {} is not known: try again later",
                        at.display()
                    ),
                }),
            }
        })
    })
}
