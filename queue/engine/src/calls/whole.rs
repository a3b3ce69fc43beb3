//! What is done to all rows of a table.

use super::{CFault, guard, path, tables};
use crate::cursor::Cursor;
use std::ffi::{c_char, c_int, c_void};

/// # Safety
/// `name` is a string.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_compact(name: *const c_char, fault: *mut CFault) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe {
        Ok(tables()?.table(&path(name))?.compact(true)?)
    })
}

/// Reads all rows, whoever owns them.
///
/// # Safety
/// `cursor` is one; `is_killed` may be called with `of`.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_check(
    cursor: *const Cursor,
    is_killed: extern "C" fn(*mut c_void) -> c_int,
    of: *mut c_void,
    fault: *mut CFault,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe { (*cursor).check(&|| is_killed(of) != 0) })
}

/// # Safety
/// `cursor` is one.
#[unsafe(no_mangle)]
unsafe extern "C" fn evq_truncate(cursor: *const Cursor, fault: *mut CFault) -> c_int {
    // SAFETY: the caller's promise.
    guard(fault, || unsafe { Ok((*cursor).table().truncate()?) })
}
