//! Which rows a consumer wants.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Test = dyn Fn(&[u8]) -> bool + Send + Sync;

/// A test that rows pass or not, always the same way. Clones share how far it has been looked for, so
/// whoever waits for the same should use a clone.
#[derive(Clone)]
pub struct Condition {
    key: u64,
    holds: Arc<Test>,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Condition").field("key", &self.key).finish()
    }
}

impl Condition {
    /// Rows of which this is true. It is called with locks held: it has to be quick, and must not come
    /// back here.
    pub fn new(holds: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        static KEYS: AtomicU64 = AtomicU64::new(1);
        Self {
            key: KEYS.fetch_add(1, Ordering::Relaxed),
            holds: Arc::new(holds),
        }
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Whether it holds. One that panics does not.
    pub(crate) fn holds(&self, row: &[u8]) -> bool {
        catch_unwind(AssertUnwindSafe(|| (self.holds)(row))).unwrap_or(false)
    }
}
