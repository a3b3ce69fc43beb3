//! Who won, by how much, and what may not be said.
//!
//! The one with the better median is named a winner only where the test of `bench compare` takes its
//! difference from each of the others to be real.

use super::method::NONE;
use super::report::Standing;
use evenkeel_report::compare::{self, LEVEL, Spread};
use serde::Serialize;

/// The share of the undisturbed throughput that evenkeel's backup of files must leave, in percent.
const BAR_PERCENT: f64 = 95.0;
/// What evenkeel's backup of files promises.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    /// Which method.
    pub method: String,
    /// What is asked.
    pub asked: String,
    /// What was measured.
    pub measured: String,
    /// Whether it held, by the medians.
    pub held: bool,
    /// How probable so large a difference is by chance; none where nothing is compared.
    pub p: Option<f64>,
}

/// Who won.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// In sentences.
    pub says: Vec<String>,
    /// Who disturbed the server least; none where nobody is clearly ahead.
    pub least_disturbing: Option<String>,
    /// How probable so large a difference to the next is by chance; none where there were too few rounds to tell.
    pub least_disturbing_p: Option<f64>,
    /// Who was restored fastest; none where nobody is clearly ahead.
    pub fastest_restored: Option<String>,
    /// The same probability for it.
    pub fastest_restored_p: Option<f64>,
    /// What was promised, and whether it held.
    pub bars: Vec<Bar>,
    /// Whether all of it held.
    pub held: bool,
}

/// A method, with one value of each of its rounds.
#[derive(Clone, Copy)]
struct Runner<'a> {
    method: &'a Standing,
    runs: &'a [f64],
    spread: Spread,
}

/// The best one beside the others.
struct Race<'a> {
    first: Runner<'a>,
    /// The next best, or the one that it cannot be distinguished from.
    rival: Option<Runner<'a>>,
    /// What the test says of the two.
    reported: Option<compare::Verdict>,
}

impl<'a> Race<'a> {
    /// Sorts them; `None` when nobody ran.
    fn of(
        methods: &'a [Standing],
        value: fn(&Standing) -> &[f64],
        most_wins: bool,
    ) -> Option<Self> {
        let mut order: Vec<Runner<'_>> = methods
            .iter()
            .filter(|method| method.method != NONE && method.is_measured())
            .filter_map(|method| {
                let runs = value(method);
                Spread::of(runs).map(|spread| Runner {
                    method,
                    runs,
                    spread,
                })
            })
            .collect();
        order.sort_by(|one, other| match most_wins {
            true => other.spread.median.total_cmp(&one.spread.median),
            false => one.spread.median.total_cmp(&other.spread.median),
        });
        let (first, others) = order.split_first()?;
        let first = *first;
        let reported = |other: &Runner<'_>| compare::compare(other.runs, first.runs).ok();
        let is_apart =
            |other: &&Runner<'_>| reported(other).is_some_and(|reported| reported.is_real);
        let rival = others.iter().find(|other| !is_apart(other));
        let rival = rival.or_else(|| others.first()).copied();
        Some(Self {
            reported: rival.as_ref().and_then(reported),
            first,
            rival,
        })
    }

    /// Whether the first is better than every other.
    fn is_clear(&self) -> bool {
        self.rival.is_none()
            || self
                .reported
                .as_ref()
                .is_some_and(|reported| reported.is_real)
    }

    fn winner(&self) -> Option<String> {
        self.is_clear().then(|| self.first.method.method.clone())
    }

    /// Says how sure it is, or why it is not.
    fn why(&self) -> String {
        let reported = self.reported.as_ref();
        reported.map_or("too many rounds to compare".to_owned(), chance)
    }

    /// How probable its result is by chance, if that is known.
    fn p(&self) -> Option<f64> {
        let reported = self
            .reported
            .as_ref()
            .filter(|reported| reported.p_least < LEVEL);
        reported.map(|reported| reported.p)
    }
}

/// Says how probable a difference is by chance.
fn chance(reported: &compare::Verdict) -> String {
    let [one, other] = reported.runs;
    match reported.p_least >= LEVEL {
        true if one.max(other) == 1 => "one round each shows no spread".to_owned(),
        true => format!(
            "{} each: too few runs for a comparison (--repeat 4 at least)",
            evenkeel_op::units::count(one.min(other), "round")
        ),
        false => compare::p_value(reported.p),
    }
}

impl Verdict {
    pub(super) fn of(methods: &[Standing]) -> Self {
        let throughput = Race::of(methods, |method| &method.percents, true);
        let restore = Race::of(methods, restores, false);
        let mut says = Vec::new();
        says.extend(throughput.as_ref().map(reported_throughput));
        says.extend(restore.as_ref().map(reported_restore));
        let bars = bars(methods);
        Self {
            says,
            least_disturbing_p: throughput.as_ref().and_then(Race::p),
            fastest_restored_p: restore.as_ref().and_then(Race::p),
            least_disturbing: throughput.and_then(|race| race.winner()),
            fastest_restored: restore.and_then(|race| race.winner()),
            held: bars.iter().all(|bar| bar.held),
            bars,
        }
    }
}

/// The restores of a method; what is not sound is not restored.
fn restores(method: &Standing) -> &[f64] {
    match method.is_sound {
        Some(true) => &method.restores_s,
        _ => &[],
    }
}

fn reported_throughput(race: &Race<'_>) -> String {
    let percent = race.first.spread;
    let name = &race.first.method.method;
    let Some(rival) = race.rival else {
        return format!(
            "{name} left {:.1} % of the undisturbed throughput.",
            percent.median
        );
    };
    let (second, other) = (&rival.method.method, rival.spread);
    if race.is_clear() {
        return format!(
            "{name} disturbed the server least: {:.1} % of the undisturbed throughput, {:.1} points ahead of \
             {second} with {:.1} % ({}).",
            percent.median,
            percent.median - other.median,
            other.median,
            race.why()
        );
    }
    format!(
        "Who disturbs the server least: no clear winner ({}). {name} left {} of the undisturbed throughput, \
         {second} left {}.",
        race.why(),
        range(percent, "%"),
        range(other, "%")
    )
}

fn reported_restore(race: &Race<'_>) -> String {
    let seconds = race.first.spread;
    let name = &race.first.method.method;
    let Some(rival) = race.rival else {
        return format!("{name} was restored in {:.1} s.", seconds.median);
    };
    let (second, other) = (&rival.method.method, rival.spread);
    if race.is_clear() {
        return format!(
            "{name} was restored fastest: {:.1} s, {:.1} times as fast as {second} with {:.1} s ({}).",
            seconds.median,
            other.median / seconds.median,
            other.median,
            race.why()
        );
    }
    format!(
        "Who is restored fastest: no clear winner ({}). {name} took {}, {second} took {}.",
        race.why(),
        range(seconds, "s"),
        range(other, "s")
    )
}

fn range(spread: Spread, unit: &str) -> String {
    match spread.least < spread.most {
        true => format!(
            "{:.1} {unit} ({:.1} to {:.1})",
            spread.median, spread.least, spread.most
        ),
        false => format!("{:.1} {unit}", spread.median),
    }
}

/// What is promised for evenkeel's best backup of files, against everything that is not one.
fn bars(methods: &[Standing]) -> Vec<Bar> {
    let ran = || methods.iter().filter(|method| method.is_measured());
    let ours: Vec<Standing> = ran().filter(|method| method.is_ours).cloned().collect();
    let others: Vec<Standing> = ran().filter(|method| !method.is_ours).cloned().collect();
    let Some(best) = Race::of(&ours, |method| &method.percents, true) else {
        return Vec::new();
    };
    let (best, left) = (best.first.method, best.first.spread);
    let bar = |asked: String, measured: String, held, p| Bar {
        method: best.method.clone(),
        asked,
        measured,
        held,
        p,
    };
    let mut bars = vec![bar(
        format!("at least {BAR_PERCENT:.0} % of the undisturbed throughput"),
        range(left, "%"),
        left.median >= BAR_PERCENT,
        None,
    )];
    let mut against = |asked: &str, own: &[f64], value, most_wins, unit| {
        let next = Race::of(&others, value, most_wins).map(|race| race.first);
        let (Some(next), Some(spread)) = (next, Spread::of(own)) else {
            return;
        };
        let reported = compare::compare(next.runs, own).ok();
        let ahead = spread.median - next.spread.median;
        let measured = format!(
            "{}, and {} {}{}",
            range(spread, unit),
            next.method.method,
            range(next.spread, unit),
            reported
                .as_ref()
                .map_or(String::new(), |reported| format!(" ({})", chance(reported)))
        );
        let held = ahead != 0.0 && (ahead > 0.0) == most_wins;
        bars.push(bar(
            asked.to_owned(),
            measured,
            held,
            reported.map(|reported| reported.p),
        ));
    };
    let percents: fn(&Standing) -> &[f64] = |method| &method.percents;
    against(
        "ahead of every other method",
        &best.percents,
        percents,
        true,
        "%",
    );
    let restored = "restored faster than every other method";
    against(restored, restores(best), restores, false, "s");
    bars
}

#[cfg(test)]
mod tests {
    use super::super::method::Leaves;
    use super::super::report::MeasurementState;
    use super::*;

    fn method(name: &str, percent: &[f64], restore: &[f64]) -> Standing {
        let of = Spread::of;
        Standing {
            method: name.to_owned(),
            state: MeasurementState::Measured,
            leaves: Leaves::Files,
            is_ours: name.starts_with("evenkeel"),
            is_incremental: false,
            command: None,
            restore_command: None,
            tpmc: of(percent),
            percent: of(percent),
            percents: percent.to_vec(),
            lost: None,
            p95_ms: None,
            p99_ms: None,
            max_ms: None,
            stall_ms: None,
            backups: 1,
            outlasts: false,
            first_s: None,
            next_s: None,
            first_cpu_s: None,
            next_cpu_s: None,
            first_bytes: None,
            next_bytes: None,
            restore_s: of(restore),
            restores_s: restore.to_vec(),
            restore_command_s: None,
            is_sound: Some(true),
        }
    }

    fn undisturbed() -> Standing {
        method(NONE, &[100.0; 4], &[])
    }

    #[test]
    fn a_winner_is_told_from_each_of_the_others() {
        let methods = [
            undisturbed(),
            method("dump", &[80.0, 82.0, 84.0, 86.0], &[30.0, 31.0, 32.0, 33.0]),
            method(
                "evenkeel-reflink",
                &[96.0, 97.0, 98.0, 99.0],
                &[3.0, 3.1, 3.1, 3.2],
            ),
        ];
        let verdict = Verdict::of(&methods);
        let winner = Some("evenkeel-reflink".to_owned());
        assert_eq!(verdict.least_disturbing, winner);
        assert_eq!(verdict.fastest_restored, winner);
        assert!(verdict.held && verdict.bars.len() == 3, "{verdict:?}");
        let [throughput, restore] = &verdict.says[..] else {
            panic!("{verdict:?}")
        };
        assert!(
            throughput.contains("14.5 points ahead of dump"),
            "{throughput}"
        );
        // Two of the 70 ways to deal eight rounds.
        assert!(throughput.contains("(p = 0.029)"), "{throughput}");
        assert!(restore.contains("10.2 times as fast"), "{restore}");
    }

    #[test]
    fn what_may_be_chance_has_no_winner() {
        let methods = [
            undisturbed(),
            method("dump", &[93.0, 95.0, 97.0, 98.5], &[3.0, 4.0, 5.0, 5.5]),
            method(
                "evenkeel-reflink",
                &[96.0, 97.0, 98.0, 99.0],
                &[4.5, 4.6, 4.7, 4.8],
            ),
        ];
        let verdict = Verdict::of(&methods);
        assert_eq!(verdict.least_disturbing, None);
        assert_eq!(verdict.fastest_restored, None);
        assert!(
            verdict.says[0].contains("no clear winner (p = 0."),
            "{verdict:?}"
        );
        // What was promised goes by the medians, and the chance is shown beside it.
        let held: Vec<bool> = verdict.bars.iter().map(|bar| bar.held).collect();
        assert_eq!(held, [true, true, false]);
        assert!(verdict.bars[1].p.is_some_and(|p| p > LEVEL), "{verdict:?}");
        assert!(!verdict.held);
    }

    #[test]
    fn who_is_ahead_of_the_next_may_not_be_of_a_third() {
        let methods = [
            undisturbed(),
            method("steady", &[90.0, 91.0, 92.0, 93.0], &[]),
            method("wild", &[60.0, 70.0, 98.0, 99.0], &[]),
            method("evenkeel-reflink", &[96.0, 96.5, 97.0, 97.5], &[]),
        ];
        let verdict = Verdict::of(&methods);
        assert_eq!(verdict.least_disturbing, None);
        assert!(verdict.says[0].contains("wild left"), "{verdict:?}");
    }

    #[test]
    fn few_rounds_name_no_winner_and_who_failed_does_not_run() {
        let rounds = |n: usize| {
            [
                undisturbed(),
                method("dump", &[99.0, 98.0, 97.0, 96.0][..n], &[1.0; 4][..n]),
                method(
                    "evenkeel-reflink",
                    &[90.0, 89.0, 88.0, 87.0][..n],
                    &[2.0; 4][..n],
                ),
            ]
        };
        let one = Verdict::of(&rounds(1));
        assert_eq!(one.least_disturbing, None);
        assert!(one.says[0].contains("one round each"), "{one:?}");
        assert!(one.bars.iter().all(|bar| !bar.held));
        let three = Verdict::of(&rounds(3));
        assert_eq!(three.least_disturbing, None);
        assert!(
            three.says[0].contains("3 rounds each: too few"),
            "{three:?}"
        );
        let mut methods = rounds(4);
        assert_eq!(
            Verdict::of(&methods).least_disturbing.as_deref(),
            Some("dump")
        );
        methods[1].state = MeasurementState::Failed("gone".to_owned());
        methods[2].is_sound = Some(false);
        let verdict = Verdict::of(&methods);
        assert_eq!(
            verdict.least_disturbing.as_deref(),
            Some("evenkeel-reflink")
        );
        assert_eq!(
            verdict.fastest_restored, None,
            "what is not sound is not restored"
        );
    }
}
