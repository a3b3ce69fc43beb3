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
        note: String::new(),
    }
}

#[test]
fn axes_fit_their_values() {
    let scale = |values: &[f64]| Axis::fitting("ms", values.iter().copied()).scale;
    assert_eq!(scale(&[1.0, 30.0]), Scale::Linear);
    assert_eq!(scale(&[0.0, 1.0, 31.0]), Scale::Logarithmic);
    assert_eq!(scale(&[f64::NAN, 0.0]), Scale::Linear);
    assert_eq!(scale(&[]), Scale::Linear);
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
    assert!(one.contains(NO_CURVE), "{one}");
    let two = plot(vec![series("two", 0, &[(1000.0, 1.5), (2000.0, 2.0)])]);
    assert!(!two.to_svg().contains(NO_CURVE));
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

#[test]
fn many_lines_have_a_plane_for_each_colour() {
    let points = [(1000.0, 2.0), (30_000.0, 38.0)];
    let of = |count: usize| {
        let all = (0..count).map(|n| series(&format!("line {n}"), n / 2, &points));
        plot(all.collect()).to_svg()
    };
    // Where an axis begins: each plane has a name for zero.
    let zeros = |svg: &str| svg.lines().filter(|line| line.trim() == "0").count();
    assert_eq!((zeros(&of(4)), zeros(&of(8))), (1, 4));
    // What lies to the right, and what upwards, is said once.
    for name in ["tables", "time, seconds"] {
        assert_eq!(of(8).lines().filter(|line| line.trim() == name).count(), 1);
    }
    assert_eq!(of(8).matches("<circle").count(), 16);
}

#[test]
fn letters_are_as_high_as_a_narrow_screen_needs() {
    let points = [(1000.0, 2.0), (30_000.0, 38.0)];
    let mut plot = plot(vec![series("line", 0, &points)]);
    plot.note = "One run of each".to_owned();
    let svg = plot.to_svg();
    let number = |text: &str, name: &str| -> f64 {
        let from = text.find(&format!("{name}=\"")).unwrap() + name.len() + 2;
        text[from..].split('"').next().unwrap().parse().unwrap()
    };
    let factor = 400.0 / number(&svg, "width");
    let sizes = svg.split("<text").skip(1);
    let least = sizes.map(|text| factor * number(text, "font-size"));
    let least = least.fold(f64::INFINITY, f64::min);
    assert!(
        least >= 11.0,
        "{least} pixels where the picture is 400 wide"
    );
}
