use super::*;
use proptest::prelude::*;

/// A server that answers `rate` statements a second, less a share `cost` of them while it is read
/// from, and whose counts are noisy.
struct Simulated {
    rate: f64,
    cost: f64,
    noise: f64,
    random: u64,
}

impl Simulated {
    /// xorshift64, as a number from -1 to 1.
    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn span(&mut self, seconds: f64, working: bool) -> Span {
        let share = if working { 1.0 - self.cost } else { 1.0 };
        // Noise evens out in longer spans.
        let noise = 1.0 + self.noise * self.random() * (0.06 / seconds).sqrt().min(2.0);
        let statements = self.rate * seconds * share * noise.max(0.0);
        // Statements are whole; which of them fall into the span is chance.
        let statements = (statements + 0.5 * (1.0 + self.random())).floor();
        Span {
            statements,
            seconds,
        }
    }
}

/// What a simulated run came to.
#[derive(Default)]
struct Sum {
    work_s: f64,
    rest_s: f64,
    lost: f64,
    rounds: u32,
}

impl Sum {
    fn loss(&self, rate: f64) -> f64 {
        self.lost / (rate * (self.work_s + self.rest_s))
    }

    fn share(&self) -> f64 {
        self.work_s / (self.work_s + self.rest_s)
    }
}

/// Does `work_s` seconds of work beside a server, as the watching thread does.
fn simulate(percent: u8, server: &mut Simulated, work_s: f64) -> Sum {
    let mut pace = Pace::new(percent);
    let mut sum = Sum::default();
    while sum.work_s < work_s {
        let seconds = pace.work().as_secs_f64();
        let work = server.span(seconds, true);
        sum.work_s += seconds;
        sum.rounds += 1;
        sum.lost += server.rate * seconds * server.cost;
        if !pace.is_busy() {
            pace.worked_on(work);
            continue;
        }
        let rest_s = pace.rest(seconds).as_secs_f64();
        sum.rest_s += rest_s;
        let recovery = server.span(0.02, false);
        let rest = server.span(rest_s - 0.02, false);
        pace.learn(work, recovery, rest);
    }
    sum
}

proptest! {
    #[test]
    fn a_server_that_suffers_loses_no_more_than_allowed(
        percent in 4u8..=60,
        cost in 0.15f64..0.95,
        rate in 1000.0f64..50_000.0,
        noise in 0.0f64..0.2,
        seed in 1u64..,
    ) {
        let mut server = Simulated { rate, cost, noise, random: seed };
        let sum = simulate(percent, &mut server, 20.0);
        let loss = sum.loss(rate);
        prop_assert!(loss <= f64::from(percent) / 100.0, "lost {loss} of {percent} %");
        // Nor does it rest for nothing: what is allowed is used, unless work may not be more anyway.
        let used = f64::from(percent) / 100.0 * MARGIN * 0.5;
        prop_assert!(loss >= used || sum.share() > MOST * 0.9, "{loss}, share {}", sum.share());
    }

    #[test]
    fn an_idle_server_is_never_rested_for(
        percent in 1u8..=99,
        rate in 0.0f64..5.0,
        seed in 1u64..,
    ) {
        let mut server = Simulated { rate, cost: 0.5, noise: 1.0, random: seed };
        prop_assert_eq!(simulate(percent, &mut server, 20.0).rest_s, 0.0);
    }

    #[test]
    fn a_run_ends_whatever_the_server_suffers(
        percent in 1u8..=6,
        cost in -0.5f64..=1.0,
        rate in 0.0f64..100_000.0,
        noise in 0.0f64..=1.0,
        seed in 1u64..,
    ) {
        let mut server = Simulated { rate, cost, noise, random: seed };
        let sum = simulate(percent, &mut server, 3.0);
        prop_assert!(sum.share() >= LEAST - 1e-9, "share {}", sum.share());
    }
}

#[test]
fn a_server_that_does_not_suffer_is_hardly_rested_for() {
    let mut server = Simulated {
        rate: 5000.0,
        cost: 0.0,
        noise: 0.0,
        random: 7,
    };
    let sum = simulate(5, &mut server, 60.0);
    assert!(sum.share() > MOST - 0.05, "share {}", sum.share());
}

#[test]
fn recovery_counts_as_the_work_s_fault() {
    let span = |statements: f64, seconds: f64| Span {
        statements,
        seconds,
    };
    let (mut harmless, mut late) = (Pace::new(5), Pace::new(5));
    for _ in 0..50 {
        let (work, rest) = (span(60.0, 0.06), span(600.0, 0.6));
        harmless.learn(work, span(20.0, 0.02), rest);
        late.learn(work, span(0.0, 0.02), rest);
    }
    assert_eq!(harmless.rest(0.06), REST);
    // A third of what work took is lost after it: 0.333 / 0.0375 - 1 = 7.9 times as long.
    let rest = late.rest(0.06).as_secs_f64();
    assert!((0.46..0.49).contains(&rest), "{rest}");
}

#[test]
fn a_server_that_falls_idle_is_read_at_full_speed_again() {
    let mut pace = Pace::new(5);
    let none = Span {
        statements: 0.0,
        seconds: 0.5,
    };
    let many = Span {
        statements: 1000.0,
        seconds: 0.5,
    };
    pace.learn(many, many, many);
    assert!(pace.is_busy());
    for _ in 0..20 {
        pace.worked_on(none);
    }
    assert!(!pace.is_busy());
}

#[test]
fn one_slow_go_does_not_bring_a_run_to_a_halt() {
    let mut pace = Pace::new(1);
    assert_eq!(pace.rest(3600.0), FIRST_REST);
    let span = Span {
        statements: 1000.0,
        seconds: 0.1,
    };
    let nothing = Span {
        statements: 0.0,
        ..span
    };
    pace.learn(nothing, span, span);
    assert_eq!(pace.rest(3600.0), LONGEST_REST);
}
