//! What a server hands over to a loadable function, and what it expects back: `udf_registration_types.h`
//! of MySQL, `mysql_com.h` of MariaDB. It has not changed since MySQL 4.1.
#![allow(unsafe_code)] // the server calls with pointers

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `STRING_RESULT` of `enum Item_result`.
const STRING: c_int = 0;
/// `REAL_RESULT`.
const REAL: c_int = 1;
/// `INT_RESULT`.
const INT: c_int = 2;
/// `DECIMAL_RESULT`.
const DECIMAL: c_int = 4;

/// The server's buffer for a message has 512 bytes, but it shows 80 of them.
const MESSAGE_MAX: usize = 80;

/// `UDF_ARGS`: what a function is called with.
#[repr(C)]
pub(crate) struct Args {
    count: c_uint,
    types: *mut c_int,
    values: *mut *mut c_char,
    lengths: *mut c_ulong,
    maybe_null: *mut c_char,
    attributes: *mut *mut c_char,
    attribute_lengths: *mut c_ulong,
    extension: *mut c_void,
}

/// `UDF_INIT`: what the server remembers of a function between the calls of one statement.
#[repr(C)]
pub(crate) struct Init {
    maybe_null: u8,
    decimals: c_uint,
    max_length: c_ulong,
    ptr: *mut c_char,
    const_item: u8,
    extension: *mut c_void,
}

/// What a function takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// No argument.
    Nothing,
    /// One, and numbers are taken as the text that they are shown as.
    Text,
    /// One, and nothing but a string.
    Bytes,
}

/// A function as the server sees it.
pub(crate) struct Function<S> {
    /// What it takes.
    pub(crate) takes: Takes,
    /// Prepares it for one statement. What cannot be goes to the user, 80 bytes of it.
    pub(crate) begin: fn() -> Result<S, String>,
    /// The most bytes that it returns for an argument of at most that many.
    pub(crate) longest: fn(usize) -> usize,
    /// Its value; `None` is NULL.
    pub(crate) answer: fn(&S, &[u8]) -> Option<Vec<u8>>,
}

/// What is kept between the calls of one statement.
struct Kept<S> {
    own: S,
    /// The last answer: the server reads it after the call.
    answer: Vec<u8>,
}

/// `xxx_init`: returns 1, with a message, where the statement cannot be run.
///
/// # Safety
///
/// The pointers are those that a server calls `xxx_init` with.
pub(crate) unsafe fn begin<S>(
    function: &Function<S>,
    init: *mut Init,
    args: *mut Args,
    message: *mut c_char,
) -> u8 {
    let begun = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the server's own structures, which nobody else uses during the call.
        let (init, args) = unsafe { (&mut *init, &mut *args) };
        let longest = unsafe { checked(function.takes, args) }?;
        let kept = Kept {
            own: (function.begin)()?,
            answer: Vec::new(),
        };
        init.maybe_null = 1;
        init.max_length = (function.longest)(longest) as c_ulong;
        init.ptr = Box::into_raw(Box::new(kept)).cast();
        Ok(())
    }));
    let why = match begun {
        Ok(Ok(())) => return 0,
        Ok(Err(why)) => why,
        Err(_) => "it failed: see the server's error log for the line".to_owned(),
    };
    let shown = why.floor_char_boundary(MESSAGE_MAX);
    // SAFETY: the buffer has 512 bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(why.as_ptr(), message.cast(), shown);
        message.add(shown).write(0);
    }
    1
}

/// Checks number and types of the arguments and returns the most bytes that the argument may have.
///
/// # Safety
///
/// The arrays have as many elements as there are arguments, as the server promises.
unsafe fn checked(takes: Takes, args: &mut Args) -> Result<usize, String> {
    match (takes, args.count) {
        (Takes::Nothing, 0) => return Ok(0),
        (Takes::Nothing, _) => return Err("it takes no argument".to_owned()),
        (Takes::Text | Takes::Bytes, 1) => {}
        (Takes::Text, _) => return Err("it takes one argument, a string".to_owned()),
        (Takes::Bytes, _) => return Err("it takes one argument, a code".to_owned()),
    }
    // SAFETY: there is one argument.
    let (kind, length) = unsafe { (&mut *args.types, *args.lengths) };
    match (takes, *kind) {
        (_, STRING) => {}
        // The server then hands over the text of the number.
        (Takes::Text, REAL | INT | DECIMAL) => *kind = STRING,
        (Takes::Text, _) => return Err("it takes one argument, a string".to_owned()),
        _ => return Err("its argument is a number, not what url_compress() returned".to_owned()),
    }
    Ok(length as usize)
}

/// `xxx`: returns the value, or NULL with `is_null` set.
///
/// `error` is never set: after that, servers make all later rows of the statement NULL too, without
/// a call and without a warning.
///
/// # Safety
///
/// The pointers are those that a server calls `xxx` with, after `xxx_init` of the same function.
pub(crate) unsafe fn answer<S>(
    function: &Function<S>,
    init: *mut Init,
    args: *mut Args,
    length: *mut c_ulong,
    is_null: *mut u8,
) -> *const c_char {
    let answered = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the server's own structures; `ptr` is what `begin` put there, and one session uses
        // it at a time.
        let (kept, args) = unsafe { (&mut *(*init).ptr.cast::<Kept<S>>(), &*args) };
        let argument = match function.takes {
            Takes::Nothing => &[][..],
            // SAFETY: there is one argument, as `begin` has seen: a pointer with a length, or NULL.
            Takes::Text | Takes::Bytes => unsafe {
                let value = *args.values;
                if value.is_null() {
                    return None;
                }
                std::slice::from_raw_parts(value.cast::<u8>(), *args.lengths as usize)
            },
        };
        kept.answer = (function.answer)(&kept.own, argument)?;
        Some((kept.answer.as_ptr(), kept.answer.len()))
    }));
    // A panic is one row's NULL; its message is in the server's error log.
    let (value, count, null) = match answered {
        Ok(Some((value, count))) => (value.cast(), count, 0),
        Ok(None) | Err(_) => (std::ptr::null(), 0, 1),
    };
    // SAFETY: both are places for the answer.
    unsafe {
        length.write(count as c_ulong);
        is_null.write(null);
    }
    value
}

/// `xxx_deinit`: the statement is over.
///
/// # Safety
///
/// As for [`answer`], once.
pub(crate) unsafe fn end<S>(init: *mut Init) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: `ptr` is what `begin` put there, or null.
        unsafe {
            let kept = (*init).ptr.cast::<Kept<S>>();
            (*init).ptr = std::ptr::null_mut();
            if !kept.is_null() {
                drop(Box::from_raw(kept));
            }
        }
    }));
}

/// Makes the three functions that a server looks for.
macro_rules! exported {
    ($name:ident, $begin:ident, $end:ident, $state:ty, $function:expr) => {
        /// # Safety
        /// Called by a server.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $begin(
            init: *mut $crate::abi::Init,
            args: *mut $crate::abi::Args,
            message: *mut std::ffi::c_char,
        ) -> u8 {
            // SAFETY: the server's pointers are passed on.
            unsafe { $crate::abi::begin::<$state>(&$function, init, args, message) }
        }

        /// # Safety
        /// Called by a server.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            init: *mut $crate::abi::Init,
            args: *mut $crate::abi::Args,
            _room: *mut std::ffi::c_char,
            length: *mut std::ffi::c_ulong,
            is_null: *mut u8,
            _error: *mut u8,
        ) -> *const std::ffi::c_char {
            // SAFETY: the server's pointers are passed on.
            unsafe { $crate::abi::answer::<$state>(&$function, init, args, length, is_null) }
        }

        /// # Safety
        /// Called by a server.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $end(init: *mut $crate::abi::Init) {
            // SAFETY: the server's pointer is passed on.
            unsafe { $crate::abi::end::<$state>(init) }
        }
    };
}
pub(crate) use exported;

#[cfg(test)]
mod tests;
