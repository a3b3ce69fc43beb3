//! The locks that `group` and `token` are made of. A test that goes through all orders of events
//! compiles those two files with other ones in this place.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
