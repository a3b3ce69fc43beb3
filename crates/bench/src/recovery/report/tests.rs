//! Do medians, ratios and bars come out of the rounds?

use super::*;
use crate::recovery::{WorkLocation, plot};

fn round(mode: Mode, seconds: f64, tablespaces: f64) -> Round {
    let step = |name: &str, seconds| StepTime {
        name: name.to_owned(),
        seconds,
    };
    Round {
        mode,
        seconds,
        prewarm_seconds: (mode == Mode::Prewarmed).then_some(0.5),
        start_seconds: seconds,
        steps: vec![
            step("tablespaces", tablespaces),
            step("rest", seconds - tablespaces),
        ],
        reads: None,
        warmed: None,
    }
}

fn case(server: &str, tables: usize, reads_every_table: bool, warmed: f64) -> Case {
    let rounds = vec![
        round(Mode::Own, 40.0, 35.0),
        round(Mode::Prewarmed, warmed, 0.1),
        round(Mode::Own, 30.0, 28.0),
        round(Mode::Own, 99.0, 1.0),
    ];
    let own = Timing::of(&rounds, Mode::Own);
    let prewarmed = Timing::of(&rounds, Mode::Prewarmed);
    Case {
        server: server.to_owned(),
        tables,
        changed_tables: 1,
        reads_every_table,
        ratio: prewarmed.seconds / own.seconds,
        own,
        prewarmed,
        rounds,
    }
}

fn report(cases: Vec<Case>) -> RecoveryReport {
    let request = RecoveryRequest {
        servers: Vec::new(),
        tables: Vec::new(),
        changed_percent: 1.0,
        latency: Duration::from_millis(1),
        repeat: 3,
        seed: 7,
        place: WorkLocation::Below("/nowhere".into()),
    };
    RecoveryReport::of(&request, cases, Duration::from_secs(9))
}

#[test]
fn the_median_and_the_step_that_takes_longest_are_reported() {
    let case = case("MySQL 5.7.22", 1000, true, 4.0);
    assert_eq!(case.own.seconds, 40.0);
    assert_eq!(
        (case.own.least_seconds, case.own.most_seconds),
        (30.0, 99.0)
    );
    assert_eq!(case.own.slowest_step.as_deref(), Some("tablespaces"));
    assert_eq!(case.own.took("tablespaces"), 28.0);
    assert_eq!(case.prewarmed.slowest_step.as_deref(), Some("rest"));
    assert_eq!(median(&[1.0, 4.0]), Some(2.5));
    assert_eq!(median(&[]), None);
}

#[test]
fn each_server_is_judged_at_its_largest_number_of_tables() {
    let all = report(vec![
        case("MySQL 5.7.22", 1000, true, 20.0),
        case("MySQL 5.7.22", 30_000, true, 4.0),
        case("MariaDB 10.11.19", 1000, false, 40.8),
    ]);
    let reported = all
        .bars
        .iter()
        .map(|bar| (bar.server.as_str(), bar.tables, bar.held));
    let expected = [
        ("MySQL 5.7.22", 30_000, true),
        ("MariaDB 10.11.19", 1000, true),
    ];
    assert_eq!(reported.collect::<Vec<_>>(), expected);
    assert!(all.held);
    let late = report(vec![case("MySQL 5.7.22", 30_000, true, 4.1)]);
    assert!(!late.held);
    let slower = report(vec![case("MariaDB 10.11.19", 1000, false, 40.9)]);
    assert!(!slower.held);
}

#[test]
fn the_chart_has_a_pair_of_lines_for_each_server() {
    let all = report(vec![
        case("MySQL 5.7.22", 30_000, true, 4.0),
        case("MySQL 5.7.22", 1000, true, 20.0),
        case("MariaDB 10.11.19", 1000, false, 40.8),
    ]);
    let drawn = plot(&all);
    let names: Vec<&str> = drawn.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "MySQL 5.7.22",
            "MySQL 5.7.22, prewarm included",
            "MariaDB 10.11.19",
            "MariaDB 10.11.19, prewarm included"
        ]
    );
    let xs: Vec<f64> = drawn.series[1].points.iter().map(|p| p.x).collect();
    assert_eq!(xs, [1000.0, 30_000.0]);
    assert_eq!(drawn.series[1].points[1].y, 4.0);
    assert!(drawn.to_svg().contains("prewarm included"));
}
