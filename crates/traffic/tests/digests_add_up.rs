//! Is every statement counted once, in memory that does not grow with them, and what changed told from chance?

use evenkeel_traffic::digest::fingerprint::{Mode, Rules};
use evenkeel_traffic::digest::{
    Change, Changed, Digest, Earlier, INTERVALS, Options, Summary, changes,
};
use evenkeel_traffic::{Command, Filter, Statement};

const SECOND: i64 = 1_000_000_000;
const BEGIN: i64 = 1_795_853_835 * SECOND;

fn options(classes: usize) -> Options {
    Options {
        classes,
        rules: Rules::Evenkeel,
        mode: Mode::default(),
        filter: Filter::default(),
    }
}

fn statement(sql: &str, at_ns: i64, total_ns: u64) -> Statement<'_> {
    Statement {
        at_ns,
        connection: 1,
        session: Some(1),
        user: Some("app"),
        host: Some("web"),
        schema: Some("shop"),
        command: Command::Query,
        sql: sql.as_bytes(),
        sql_bytes: sql.len() as u64,
        is_unseen: false,
        first_ns: None,
        total_ns: Some(total_ns),
        lock_ns: Some(7),
        rows_sent: Some(2),
        rows_examined: Some(9),
        rows_affected: Some(1),
        bytes_in: None,
        bytes_out: Some(100),
        warnings: Some(1),
        error: None,
        checksum: None,
        statement: None,
        values: None,
    }
}

fn counts(summary: &Summary) -> u64 {
    summary.classes.iter().map(|class| class.count).sum::<u64>() + summary.others.count
}

#[test]
fn figures_are_those_of_the_statements() {
    let mut digest = Digest::new(options(100));
    for number in 1..=1000_u64 {
        let sql = format!("SELECT {number}");
        let mut one = statement(&sql, BEGIN + number as i64 * SECOND, number * 1_000_000);
        one.error = (number % 10 == 0).then_some(1064);
        digest.add(&one);
    }
    let summary = digest.end();
    let [class] = &summary.classes[..] else {
        panic!("{:#?}", summary.classes)
    };
    assert_eq!(
        (class.count, class.timed, class.errors, class.warnings),
        (1000, 1000, 100, 1000)
    );
    assert_eq!(class.sum_ns, 500_500 * 1_000_000);
    assert_eq!((class.min_ns, class.max_ns), (1_000_000, 1_000_000_000));
    assert_eq!(
        (class.rows_sent, class.rows_examined, class.rows_affected),
        (Some(2000), Some(9000), Some(1000))
    );
    assert_eq!((class.bytes_out, class.lock_ns), (100_000, 7000));
    for (share, expected) in [(0.5, 500_000.0), (0.95, 950_000.0), (0.99, 990_000.0)] {
        let found = class.within_us(share).unwrap() as f64;
        assert!((found / expected - 1.0).abs() < 0.01, "{share}: {found}");
    }
    // Two digits are exact: what is near a step may be beyond it.
    let steps = class.steps_us();
    assert_eq!(steps.iter().map(|(_, count)| count).sum::<u64>(), 1000);
    let (up_to, count) = steps[steps.len() - 1];
    assert!(
        up_to == 1_000_000 && (495..=505).contains(&count),
        "{steps:?}"
    );
    assert_eq!(class.sample.as_ref().unwrap().sql, "SELECT 1000");
    assert_eq!(class.users.all(), [("app", 1000)]);
    let buckets = &class.series.buckets;
    assert_eq!(buckets.len(), INTERVALS);
    assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 1000);
    assert_eq!(
        buckets.iter().map(|bucket| bucket.sum_ns).sum::<u64>(),
        class.sum_ns
    );
    // A thousand seconds in intervals of thirty-two.
    assert_eq!(summary.series_width_ns, 32 * SECOND);
    let full = buckets.iter().filter(|bucket| bucket.count == 32);
    assert!(full.count() >= 30, "{buckets:?}");
}

#[test]
fn text_prepare_and_execute_are_one_class() {
    let mut digest = Digest::new(options(100));
    let text = statement("SELECT a FROM t WHERE b = 5", BEGIN, 10);
    digest.add(&text);
    digest.add(&statement(
        "PREPARE p FROM 'SELECT a FROM t WHERE b = ?'",
        BEGIN,
        1000,
    ));
    let prepare = Statement {
        command: Command::Prepare,
        ..statement("SELECT a FROM t WHERE b=?", BEGIN, 1000)
    };
    digest.add(&prepare);
    digest.add(&Statement {
        command: Command::Execute,
        ..text
    });
    digest.add(&Statement {
        command: Command::Quit,
        ..statement("", BEGIN, 5)
    });
    let summary = digest.end();
    let [class] = &summary.classes[..] else {
        panic!("{:#?}", summary.classes)
    };
    // Neither a preparation nor its time is counted as a run.
    assert_eq!((class.count, class.prepares, class.max_ns), (2, 2, 10));
}

#[test]
fn classes_are_bounded_and_none_is_lost() {
    let mut digest = Digest::new(options(10));
    for number in 0..5000 {
        let sql = format!("SELECT column_{number} FROM t");
        digest.add(&statement(&sql, BEGIN, 1000));
        digest.add(&statement("SELECT often", BEGIN, 500));
    }
    let summary = digest.end();
    assert_eq!(summary.classes.len(), 10);
    assert_eq!(summary.classes[0].fingerprint, "select often");
    assert_eq!(summary.classes[0].count, 5000);
    assert_eq!((counts(&summary), summary.total.count), (10_000, 10_000));
    assert_eq!(summary.folded, 5001 - 10);
    assert_eq!(
        summary.others.sum_ns + summary.classes.iter().map(|c| c.sum_ns).sum::<u64>(),
        summary.total.sum_ns
    );
}

#[test]
fn times_may_be_of_any_year() {
    let mut digest = Digest::new(options(10));
    for at_ns in [i64::MIN, -8_520_336_000 * SECOND, BEGIN, i64::MAX, 0] {
        digest.add(&statement("SELECT 1", at_ns, 5));
    }
    assert_eq!(counts(&digest.end()), 5);
}

#[test]
fn only_what_passes_the_filter_is_counted() {
    let filter = Filter {
        since_ns: Some(BEGIN),
        until_ns: Some(BEGIN + SECOND),
        users: vec!["app".to_owned()],
        pattern: regex::bytes::Regex::new("(?i)select").ok(),
        ..Filter::default()
    };
    let mut digest = Digest::new(Options {
        filter,
        ..options(10)
    });
    digest.add(&statement("SELECT 1", BEGIN, 5));
    digest.add(&statement("SELECT 1", BEGIN - 1, 5));
    digest.add(&statement("SELECT 1", BEGIN + SECOND, 5));
    digest.add(&statement("DELETE FROM t", BEGIN, 5));
    digest.add(&Statement {
        user: Some("other"),
        ..statement("SELECT 1", BEGIN, 5)
    });
    digest.add(&Statement {
        user: None,
        ..statement("SELECT 1", BEGIN, 5)
    });
    let summary = digest.end();
    assert_eq!((summary.total.count, summary.left_out), (1, 5));
}

#[test]
fn intervals_reach_what_came_before() {
    let mut digest = Digest::new(options(10));
    for at in [0, 59, -500, 100_000] {
        digest.add(&statement("SELECT 1", BEGIN + at * SECOND, 5));
    }
    let summary = digest.end();
    let buckets = &summary.classes[0].series.buckets;
    assert_eq!(buckets.iter().map(|bucket| bucket.count).sum::<u64>(), 4);
    assert_eq!(
        (buckets[0].count, summary.series_width_ns),
        (3, 2048 * SECOND)
    );
}

/// Statements of three classes for a minute; the second takes `slow` microseconds.
fn minute(slow: u64, third: &str) -> Summary {
    let mut digest = Digest::new(options(10));
    for second in 0..60 {
        let at = BEGIN + second * SECOND;
        let jitter = second as u64 * 7919 % 13;
        digest.add(&statement("SELECT a FROM t", at, (100 + jitter) * 1000));
        digest.add(&statement("SELECT b FROM t", at, (slow + jitter) * 1000));
        digest.add(&statement(third, at, 1000));
    }
    digest.end()
}

fn earlier(summary: &Summary) -> Vec<Earlier> {
    let classes = summary.classes.iter().map(|class| Earlier {
        id: class.id.clone(),
        fingerprint: class.fingerprint.clone(),
        count: class.count,
        sum_us: class.sum_ns as f64 / 1000.0,
        averages_us: class
            .series
            .buckets
            .iter()
            .filter(|bucket| bucket.timed > 0)
            .map(|bucket| bucket.sum_ns as f64 / bucket.timed as f64 / 1000.0)
            .collect(),
        seconds: Some(summary.seconds()),
    });
    classes.collect()
}

#[test]
fn whole_seconds_make_no_rate_too_high() {
    let span = |times: &[i64]| {
        let mut digest = Digest::new(options(10));
        for at in times {
            digest.add(&statement("SELECT 1", *at, 1000));
        }
        digest.end().seconds()
    };
    let second = |after: i64| BEGIN + after * SECOND;
    // Each may be as much as a second later than it says.
    for (last, expected) in [(0, 1.0), (1, 2.0), (2, 3.0), (59, 60.0)] {
        let times: Vec<i64> = (0..=last).map(second).collect();
        assert_eq!(span(&times), expected);
    }
    assert_eq!(span(&[second(0) + 1000, second(59)]), 59.0 - 1e-6);
    assert_eq!(span(&[second(0) + 1000, second(0) + 2000]), 1.0);
    assert_eq!(span(&[]), 1.0);
}

#[test]
fn what_comes_far_more_often_is_no_chance() {
    let of = |count: i64| {
        let mut digest = Digest::new(options(10));
        for number in 0..count {
            let at = BEGIN + number * 60 * SECOND / count;
            digest.add(&statement("SELECT a FROM t", at, 100_000));
        }
        digest.end()
    };
    let changed = |before: i64, now: i64| {
        let found = changes(&earlier(&of(before)), &of(now));
        found[0].changed.clone()
    };
    let Changed::Rate(factor) = changed(120, 6000) else {
        panic!("{:?}", changed(120, 6000))
    };
    assert!((45.0..55.0).contains(&factor), "{factor}");
    let Changed::Rate(factor) = changed(6000, 120) else {
        panic!("{:?}", changed(6000, 120))
    };
    assert!((0.018..0.022).contains(&factor), "{factor}");
    // A little more, and so few that chance may double them.
    for (before, now) in [(120, 180), (4, 9)] {
        let found = changed(before, now);
        assert!(
            matches!(found, Changed::Same(_)),
            "{before} {now} {found:?}"
        );
    }
    // Of a replay, how fast it was played says nothing.
    let untimed: Vec<Earlier> = of(120).classes.iter().map(Earlier::of).collect();
    let found = changes(&untimed, &of(6000));
    assert!(matches!(found[0].changed, Changed::Same(_)), "{found:?}");
}

#[test]
fn what_changed_is_told_from_chance() {
    let found = changes(
        &earlier(&minute(200, "SELECT old")),
        &minute(300, "SELECT new"),
    );
    let of = |text: &str| -> &Change {
        found
            .iter()
            .find(|change| change.fingerprint == text)
            .unwrap()
    };
    assert_eq!(of("select new").changed, Changed::New);
    assert_eq!(of("select old").changed, Changed::Gone);
    assert!(
        matches!(of("select a from t").changed, Changed::Same(Some(_))),
        "{found:#?}"
    );
    let Changed::Latency(verdict) = &of("select b from t").changed else {
        panic!("{found:#?}")
    };
    assert!(verdict.change_percent.unwrap() > 40.0, "{verdict:?}");
    // The one that moved the most comes first.
    assert_eq!(found[0].fingerprint, "select b from t");
}
