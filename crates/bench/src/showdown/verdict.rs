//! Who won, by how much, and what may not be said.
//!
//! The one with the better median is named a winner only where its worst round is better than the other's
//! best one.

use super::method::NONE;
use super::report::{Spread, Standing};
use serde::Serialize;

/// The share of the undisturbed throughput that evenkeel's backup of files is to leave, in percent.
const BAR_PERCENT: f64 = 95.0;
/// Fewer rounds of two equal methods are apart too often by chance: two of each in a third of all cases,
/// three in a tenth, four in a thirty-fifth.
const ROUNDS_MIN: usize = 3;

/// What evenkeel's backup of files promises.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    /// Which method.
    pub method: String,
    /// What is asked.
    pub asked: String,
    /// What was measured.
    pub measured: String,
    /// Whether it held.
    pub held: bool,
}

/// Who won.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// In sentences.
    pub says: Vec<String>,
    /// Who disturbed the server least; none where nobody is clearly ahead.
    pub least_disturbing: Option<String>,
    /// Who was restored fastest; none where nobody is clearly ahead.
    pub fastest_restored: Option<String>,
    /// What was promised, and whether it held.
    pub bars: Vec<Bar>,
    /// Whether all of it held.
    pub held: bool,
}

/// Two methods side by side.
struct Race<'a> {
    first: (&'a Standing, Spread),
    second: Option<(&'a Standing, Spread)>,
}

impl<'a> Race<'a> {
    /// Puts them in order; `None` when nobody ran.
    fn of(
        methods: &'a [Standing],
        value: fn(&Standing) -> Option<Spread>,
        most_wins: bool,
    ) -> Option<Self> {
        let mut order: Vec<(&Standing, Spread)> = methods
            .iter()
            .filter(|method| method.method != NONE && method.is_measured())
            .filter_map(|method| Some((method, value(method)?)))
            .collect();
        order.sort_by(|(_, one), (_, other)| match most_wins {
            true => other.median.total_cmp(&one.median),
            false => one.median.total_cmp(&other.median),
        });
        let mut order = order.into_iter();
        Some(Self {
            first: order.next()?,
            second: order.next(),
        })
    }

    /// Whether the first is better even at its worst.
    fn is_clear(&self, most_wins: bool, repeat: usize) -> bool {
        let (_, first) = self.first;
        repeat >= ROUNDS_MIN
            && self.second.is_none_or(|(_, second)| match most_wins {
                true => first.least > second.most,
                false => first.most < second.least,
            })
    }
}

impl Verdict {
    pub(super) fn of(methods: &[Standing], repeat: usize) -> Self {
        let percent = |method: &Standing| method.percent;
        let sound = |method: &Standing| method.restore_s.filter(|_| method.is_sound == Some(true));
        let throughput = Race::of(methods, percent, true);
        let restore = Race::of(methods, sound, false);
        let mut says = Vec::new();
        if let Some(race) = &throughput {
            says.push(told_throughput(race, repeat));
        }
        if let Some(race) = &restore {
            says.push(told_restore(race, repeat));
        }
        let clear = |race: &Option<Race<'_>>, most_wins| {
            let race = race
                .as_ref()
                .filter(|race| race.is_clear(most_wins, repeat));
            race.map(|race| race.first.0.method.clone())
        };
        let bars = bars(methods);
        Self {
            says,
            least_disturbing: clear(&throughput, true),
            fastest_restored: clear(&restore, false),
            held: bars.iter().all(|bar| bar.held),
            bars,
        }
    }
}

fn told_throughput(race: &Race<'_>, repeat: usize) -> String {
    let (first, percent) = race.first;
    let name = &first.method;
    let Some((second, other)) = race.second else {
        return format!(
            "{name} left {:.1} % of the undisturbed throughput.",
            percent.median
        );
    };
    if race.is_clear(true, repeat) {
        return format!(
            "{name} disturbed the server least: {:.1} % of the undisturbed throughput, {:.1} points ahead of \
             {} with {:.1} %; its worst round was better than the other's best.",
            percent.median,
            percent.median - other.median,
            second.method,
            other.median
        );
    }
    format!(
        "Nobody clearly disturbed the server least: {name} left {} of the undisturbed throughput, {} left {}{}.",
        range(percent, "%"),
        second.method,
        range(other, "%"),
        why(repeat)
    )
}

fn told_restore(race: &Race<'_>, repeat: usize) -> String {
    let (first, seconds) = race.first;
    let name = &first.method;
    let Some((second, other)) = race.second else {
        return format!("{name} was restored in {:.1} s.", seconds.median);
    };
    if race.is_clear(false, repeat) {
        return format!(
            "{name} was restored fastest: {:.1} s, {:.1} times as fast as {} with {:.1} s.",
            seconds.median,
            other.median / seconds.median,
            second.method,
            other.median
        );
    }
    format!(
        "Nobody was clearly restored fastest: {name} took {}, {} took {}{}.",
        range(seconds, "s"),
        second.method,
        range(other, "s"),
        why(repeat)
    )
}

fn why(repeat: usize) -> &'static str {
    match repeat {
        0 | 1 => "; one round each says nothing about the spread",
        few if few < ROUNDS_MIN => "; two rounds each are too few to tell",
        _ => "; their rounds overlap",
    }
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
    let percent = |method: &Standing| method.percent.map_or(0.0, |percent| percent.median);
    let ours = ran().filter(|method| method.is_ours);
    let best = ours.max_by(|one, other| percent(one).total_cmp(&percent(other)));
    let Some((best, left)) = best.and_then(|best| Some((best, best.percent?))) else {
        return Vec::new();
    };
    let others = || ran().filter(|method| !method.is_ours && method.method != NONE);
    let bar = |asked: String, measured: String, held| Bar {
        method: best.method.clone(),
        asked,
        measured,
        held,
    };
    let mut bars = vec![bar(
        format!("at least {BAR_PERCENT:.0} % of the undisturbed throughput"),
        range(left, "%"),
        left.median >= BAR_PERCENT,
    )];
    let next = others().max_by(|one, other| percent(one).total_cmp(&percent(other)));
    if let Some((next, theirs)) = next.and_then(|next| Some((next, next.percent?))) {
        bars.push(bar(
            "ahead of every other method".to_owned(),
            against(left, next, theirs, "%"),
            left.median > theirs.median,
        ));
    }
    let restored = |method: &Standing| method.restore_s.map_or(f64::MAX, |spread| spread.median);
    let next = others().min_by(|one, other| restored(one).total_cmp(&restored(other)));
    let next = next.and_then(|next| Some((next, next.restore_s?)));
    if let (Some(own), Some((next, theirs))) = (best.restore_s, next) {
        bars.push(bar(
            "restored faster than every other method".to_owned(),
            against(own, next, theirs, "s"),
            own.median < theirs.median,
        ));
    }
    bars
}

fn against(own: Spread, next: &Standing, theirs: Spread, unit: &str) -> String {
    let (own, theirs) = (range(own, unit), range(theirs, unit));
    format!("{own}, and {} {theirs}", next.method)
}

#[cfg(test)]
mod tests {
    use super::super::method::Leaves;
    use super::super::report::State;
    use super::*;

    fn method(name: &str, percent: &[f64], restore: &[f64]) -> Standing {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        Standing {
            method: name.to_owned(),
            state: State::Measured,
            leaves: Leaves::Files,
            is_ours: name.starts_with("evenkeel"),
            is_incremental: false,
            command: None,
            restore_command: None,
            tpmc: of(percent),
            percent: of(percent),
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
            is_sound: Some(true),
        }
    }

    fn undisturbed() -> Standing {
        method(NONE, &[100.0, 100.0, 100.0], &[])
    }

    #[test]
    fn a_winner_is_ahead_even_in_its_worst_round() {
        let methods = [
            undisturbed(),
            method("dump", &[80.0, 82.0, 84.0], &[30.0, 31.0, 32.0]),
            method("evenkeel-reflink", &[96.0, 97.0, 98.0], &[3.0, 3.1, 3.2]),
        ];
        let verdict = Verdict::of(&methods, 3);
        let winner = Some("evenkeel-reflink".to_owned());
        assert_eq!(verdict.least_disturbing, winner);
        assert_eq!(verdict.fastest_restored, winner);
        assert!(verdict.held && verdict.bars.len() == 3, "{verdict:?}");
        assert!(
            verdict.says[0].contains("15.0 points ahead of dump"),
            "{verdict:?}"
        );
        assert!(
            verdict.says[1].contains("10.0 times as fast"),
            "{verdict:?}"
        );
    }

    #[test]
    fn rounds_that_overlap_have_no_winner() {
        let methods = [
            undisturbed(),
            method("dump", &[93.0, 95.0, 97.0], &[3.0, 4.0, 5.0]),
            method("evenkeel-reflink", &[96.0, 97.0, 98.0], &[4.5, 4.6, 4.7]),
        ];
        let verdict = Verdict::of(&methods, 3);
        assert_eq!(verdict.least_disturbing, None);
        assert_eq!(verdict.fastest_restored, None);
        assert!(
            verdict.says[0].contains("their rounds overlap"),
            "{verdict:?}"
        );
        // What was promised goes by the medians, and the second promise is broken.
        let held: Vec<bool> = verdict.bars.iter().map(|bar| bar.held).collect();
        assert_eq!(held, [true, true, false]);
        assert!(!verdict.held);
    }

    #[test]
    fn one_round_names_no_winner_and_who_failed_does_not_run() {
        let mut methods = [
            undisturbed(),
            method("dump", &[99.0], &[1.0]),
            method("evenkeel-reflink", &[90.0], &[2.0]),
        ];
        let verdict = Verdict::of(&methods, 1);
        assert_eq!(verdict.least_disturbing, None);
        assert!(verdict.says[0].contains("one round each"), "{verdict:?}");
        assert!(verdict.bars.iter().all(|bar| !bar.held));
        let two = Verdict::of(&methods, 2);
        assert_eq!(two.least_disturbing, None);
        assert!(two.says[0].contains("too few"), "{two:?}");
        methods[1].state = State::Failed("gone".to_owned());
        methods[2].is_sound = Some(false);
        let verdict = Verdict::of(&methods, 3);
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
