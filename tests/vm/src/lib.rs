//! Cases on LVM, which the host's kernel need not have: their tests are run by `make test-vm`
//! inside a virtual machine, one process each. Anywhere else they fail.

mod case;

pub use case::{Case, VolumeKind};

use evenkeel_cases::program::Evenkeel;

/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;

/// Returns the program under test, as the machine's host built it. Panics outside the machine.
#[must_use]
pub fn evenkeel() -> Evenkeel {
    let program = std::env::var("EVENKEEL_UNDER_TEST");
    Evenkeel::new(&program.expect("make test-vm names the program under test"))
}
