//! The evenkeel binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    evenkeel_cli::run()
}
