//! Asking again. The library below repeats requests that the store refused for now; what broke off
//! while the answer arrived is for us to repeat.

use std::time::{Duration, Instant};

/// How long one question is repeated, beside what the library below does by itself.
const RETRY_FOR: Duration = Duration::from_secs(60);
/// How often at most.
const TRIES: u32 = 8;

/// How often, and since when, something was tried.
pub(crate) struct Tries {
    begun: Instant,
    count: u32,
}

impl Tries {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            count: 0,
        }
    }

    /// Waits a while and returns true, or returns false when it was tried for long enough.
    pub(crate) async fn again(&mut self) -> bool {
        self.count += 1;
        if self.count >= TRIES || self.begun.elapsed() >= RETRY_FOR {
            return false;
        }
        let pause = Duration::from_millis(50) * 2_u32.pow(self.count.min(6));
        tokio::time::sleep(pause).await;
        true
    }
}

/// Does what may be done twice, again and again while the store has trouble: `$ask` is evaluated for
/// each try. A macro, because a closure that returns futures cannot yet say that they are `Send`.
macro_rules! retried {
    ($ask:expr) => {{
        let mut tries = $crate::retry::Tries::new();
        loop {
            match $ask.await {
                Err(error) if $crate::fault::is_passing(&error) => {
                    if !tries.again().await {
                        break Err(error);
                    }
                }
                other => break other,
            }
        }
    }};
}
pub(crate) use retried;
