//! Workloads and measurements that repeat.

pub mod experiment;
pub mod machine;
pub mod oltp;
mod parts;
pub mod recovery;
pub mod repeated;
pub mod showdown;
pub mod tpcc;

use evenkeel_op::Run;

/// What is written below pictures of what was done once.
const ONE_RUN: &str = "One run of each: it shows no spread.";

/// A run that was driven, and what it cost whoever drove it.
struct Driven {
    run: evenkeel_drive::Run,
    /// Processor time of this process, in seconds.
    cpu_s: f64,
}

/// Keeps sessions busy as a plan says, and tells how far it is; `watch` sees every interval.
fn driven<W: evenkeel_drive::Work>(
    sessions: Vec<W>,
    plan: &evenkeel_drive::Plan,
    mut watch: impl FnMut(&evenkeel_drive::Sample),
    run: Run<'_>,
) -> evenkeel_op::Result<Driven> {
    let seconds = (plan.ramp_up + plan.measure).as_secs();
    run.progress.phase(
        "running transactions",
        Some(seconds),
        evenkeel_op::Unit::Items,
    );
    let mut passed = 0.0;
    let each = |sample: &evenkeel_drive::Sample| {
        watch(sample);
        let before = passed as u64;
        passed += sample.seconds;
        run.progress
            .advance((passed as u64).min(seconds) - before.min(seconds));
    };
    let before = cpu_s();
    let driven = evenkeel_drive::run(sessions, plan, each, run.cancel)?;
    run.progress.end();
    Ok(Driven {
        run: driven,
        cpu_s: cpu_s() - before,
    })
}

/// Processor time of this process so far, in seconds.
fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
