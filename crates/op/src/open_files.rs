//! How many files and connections this process may have open at once.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit as far as the system lets this process, and the servers that it starts. Returns it; `None` where
/// there is none.
pub fn raise() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it may not be raised, what there is may do.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current
}
