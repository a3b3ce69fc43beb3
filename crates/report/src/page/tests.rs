//! Does a page hold all it was given, harmless, and fetch nothing?

use super::*;
use crate::{Axis, Bar, BarSeries, Event, Point, Series};

fn plot() -> Plot {
    let point = |x, y| Point { x, y, spread: None };
    Plot {
        title: "Orders <per> second".to_owned(),
        x: Axis::linear("seconds"),
        y: Axis::linear("orders"),
        series: vec![Series {
            name: "New-Order".to_owned(),
            group: 0,
            is_dashed: false,
            points: vec![point(1.0, 10.5), point(2.0, 12_345.0)],
        }],
        events: vec![Event {
            name: "backup".to_owned(),
            from: 1.2,
            to: Some(1.8),
        }],
        note: String::new(),
    }
}

fn bars() -> Bars {
    Bars {
        title: "Methods".to_owned(),
        axis: Axis::linear("TpmC"),
        groups: vec!["a & b".to_owned(), "c".to_owned()],
        series: vec![BarSeries {
            name: String::new(),
            bars: vec![Bar::median_of(&[1.0, 2.0, 3.0]), None],
        }],
        note: String::new(),
    }
}

fn page() -> Page {
    let mut table = PageTable::new(&["kind", "p95"]);
    table.row([
        Cell::text("<script>alert(1)</script>"),
        Cell::number(1.25, 1),
    ]);
    Page {
        title: "A \"title\" <b>".to_owned(),
        lead: vec!["It took 5 s & no more.".to_owned()],
        headline: vec![Fact::new("TpmC", "19\u{202f}698")],
        parts: vec![
            Part::Heading("Over time".to_owned()),
            plot().into(),
            bars().into(),
            Part::Table(table),
            Part::Points(vec!["one <i>".to_owned()]),
        ],
        about: About {
            command: "evenkeel bench tpcc run --seed 7".to_owned(),
            seed: Some(7),
            when: "2026-01-02".to_owned(),
            program: "evenkeel 0.1.0".to_owned(),
            machine: vec![Fact::new("memory", "8 GiB")],
            server: vec![Fact::new("version", "10.11 <'x'>")],
        },
    }
}

#[test]
fn everything_given_is_there_and_harmless() {
    let html = page().to_html();
    for text in [
        "<title>A &quot;title&quot; &lt;b&gt;</title>",
        "It took 5 s &amp; no more.",
        "<dt>TpmC</dt><dd>19\u{202f}698</dd>",
        "<h2>Over time</h2>",
        "aria-label=\"Orders &lt;per&gt; second\"",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "<li>one &lt;i&gt;</li>",
        "evenkeel bench tpcc run --seed 7",
        "the seed 7:",
        "<th scope=\"row\">memory</th><td>8 GiB</td>",
        "10.11 &lt;&#39;x&#39;&gt;",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
    assert!(!html.contains("<script"), "{html}");
}

#[test]
fn the_numbers_behind_each_picture_are_there() {
    let html = page().to_html();
    assert_eq!(html.matches("<figure>").count(), 2);
    assert_eq!(html.matches("<details>").count(), 2);
    for text in [
        "<td class=\"n\">10.5</td>",
        "<td class=\"n\">12\u{202f}345</td>",
        "backup: from 1.2 to 1.8",
        "<td>a &amp; b</td><td class=\"n\">2 (1 to 3)</td>",
        "<td>c</td><td class=\"n\"></td>",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
}

#[test]
fn no_line_begins_with_the_sign_of_percent() {
    let mut page = page();
    let mut table = PageTable::new(&["", "within 95 %"]);
    table.row([Cell::text("x"), Cell::Number("12 %".to_owned())]);
    page.parts.push(Part::Table(table));
    page.about.command = "date '+%s %N'".to_owned();
    let html = page.to_html();
    assert!(html.contains("within 95\u{a0}%") && html.contains("12\u{a0}%"));
    // Who copies a command has spaces where there were some.
    assert!(html.contains("&#39;+%s %N&#39;"), "{html}");
}

#[test]
fn nothing_is_fetched() {
    let html = page().to_html();
    // The only address is the name of the language of the pictures.
    let addresses = html.replace("http://www.w3.org/2000/svg", "");
    for reference in [
        "http:", "https:", "url(", "src=", "href=", "@import", "<link",
    ] {
        assert!(!addresses.contains(reference), "{reference}: {html}");
    }
}

#[test]
fn tags_are_closed_in_order() {
    let html = page().to_html();
    let body = &html[html.find("<html").unwrap()..];
    // Neither rules nor those that are never closed.
    let body = body.replace(
        &body[body.find("<meta").unwrap()..body.find("</head>").unwrap()],
        "",
    );
    let mut open = Vec::new();
    for piece in body.split('<').skip(1) {
        let tag = &piece[..piece.find('>').unwrap()];
        let name = tag.split([' ', '/']).find(|word| !word.is_empty()).unwrap();
        match tag {
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "{piece}"),
            _ if tag.ends_with('/') => (),
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn numbers_are_readable() {
    for (value, digits, text) in [
        (0.0, 1, "0.0"),
        (-0.01, 1, "0.0"),
        (-12.34, 1, "−12.3"),
        (1234.0, 0, "1234"),
        (12_345.6, 1, "12\u{202f}345.6"),
        (1_234_567.0, 0, "1\u{202f}234\u{202f}567"),
        (f64::NAN, 2, "–"),
    ] {
        assert_eq!(number(value, digits), text);
    }
}
