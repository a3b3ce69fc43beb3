//! Does a plot show each of its lines and points, also where there are few or none?

use super::*;

fn series(name: &str, group: usize, points: &[(f64, f64)]) -> Series {
    let point = |&(x, y): &(f64, f64)| Point {
        x,
        y,
        spread: Some((y / 1.2, y * 1.2)),
    };
    Series {
        name: name.to_owned(),
        group,
        is_dashed: group % 2 == 1,
        points: points.iter().map(point).collect(),
    }
}

fn plot(series: Vec<Series>) -> Plot {
    Plot {
        title: "How long <it> takes".to_owned(),
        x: Axis::logarithmic("tables"),
        y: Axis::linear("time, seconds"),
        series,
        events: Vec::new(),
    }
}

#[test]
fn every_line_is_named_and_every_point_is_there() {
    let svg = plot(vec![
        series(
            "MySQL 5.7",
            0,
            &[(1000.0, 2.0), (10_000.0, 12.0), (30_000.0, 38.0)],
        ),
        series("MySQL 5.7 & prewarm", 1, &[(1000.0, 1.0), (30_000.0, 3.0)]),
    ])
    .to_svg();
    assert!(svg.starts_with("<svg"), "{svg}");
    for text in [
        "MySQL 5.7",
        "MySQL 5.7 &amp; prewarm",
        "How long &lt;it&gt; takes",
        "tables",
        "time, seconds",
    ] {
        let found = svg.lines().filter(|line| line.trim() == text).count();
        assert_eq!(found, 1, "{text}: {svg}");
    }
    assert_eq!(svg.matches("<circle").count(), 5);
    assert!(svg.contains("prefers-color-scheme:dark"));
}

#[test]
fn no_line_or_a_single_point_is_a_plot_too() {
    assert!(plot(Vec::new()).to_svg().contains("time, seconds"));
    assert!(plot(vec![series("none", 0, &[])]).to_svg().contains("none"));
    let one = plot(vec![series("one", 0, &[(1000.0, 1.5)])]).to_svg();
    assert_eq!(one.matches("<circle").count(), 1);
}

#[test]
fn what_has_no_place_is_left_out() {
    let mut all = plot(vec![series(
        "odd",
        0,
        &[
            (0.0, 1.0),
            (f64::NAN, 1.0),
            (10.0, f64::INFINITY),
            (10.0, 0.0),
        ],
    )]);
    assert_eq!(all.to_svg().matches("<circle").count(), 1);
    all.y = Axis::logarithmic("time, seconds");
    assert_eq!(all.to_svg().matches("<circle").count(), 0);
}

#[test]
fn both_divisions_can_be_had_of_each_axis() {
    let points = [(1000.0, 2.0), (30_000.0, 38.0)];
    let make: [fn(&str) -> Axis; 2] = [Axis::linear, Axis::logarithmic];
    let mut seen = std::collections::BTreeSet::new();
    for x in make {
        for y in make {
            let mut plot = plot(vec![series("line", 0, &points)]);
            (plot.x, plot.y) = (x("tables"), y("time, seconds"));
            let svg = plot.to_svg();
            assert_eq!(svg.matches("<circle").count(), 2);
            seen.insert(svg);
        }
    }
    assert_eq!(seen.len(), 4, "an axis makes no difference");
}

#[test]
fn events_are_marked_with_their_names() {
    let mut plot = plot(vec![series("line", 0, &[(1000.0, 2.0), (30_000.0, 38.0)])]);
    let event = |name: &str, from, to| Event {
        name: name.to_owned(),
        from,
        to,
    };
    let bare = plot.to_svg().matches("<rect").count();
    plot.events = vec![
        event("backup", 2000.0, Some(9000.0)),
        event("restart", 12_000.0, None),
        // Nowhere on an axis that is divided by factors.
        event("before", -5.0, None),
    ];
    let svg = plot.to_svg();
    assert_eq!(svg.matches("<rect").count(), bare + 1, "one band: {svg}");
    for (name, times) in [("backup", 1), ("restart", 1), ("before", 0)] {
        let found = svg.lines().filter(|line| line.trim() == name).count();
        assert_eq!(found, times, "{name}: {svg}");
    }
}
